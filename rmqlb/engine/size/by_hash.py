"""Sizes under CONSISTENT_HASH: the same as those of `by_ids.py`, for all sets of IDs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rmqlb.engine.allocate.consistent_hash import check_ring
from rmqlb.engine.size.figures import SizeFigures, utilised
from rmqlb.engine.size.layouts import Layout
from rmqlb.errors import UsageError
from rmqlb.model.message_queue import MessageQueue, sort_client_ids

_MOST = 20_000_000
"""Entries of all rings, and distances of queues to the nearest consumers: some 200 MB."""

if TYPE_CHECKING:
    from rmqlb.engine.size.vectorized.by_hash import GrowingRings


def growing_rings(
    id_sets: Sequence[Sequence[str]], queues: Sequence[MessageQueue], virtual_nodes: int, losses: int
) -> GrowingRings:
    """The rings of all sets of IDs (raises UsageError): all sizes of one search share them.

    Args:
        id_sets: the IDs in the order in which consumers join; as many in each set.
        queues: all that any of the sizes is about.
        virtual_nodes: of each consumer, 1 or more.
        losses: how many consumers are lost at once, at most.
    """
    from rmqlb.engine.size.vectorized.by_hash import GrowingRings

    check_ring(len(id_sets[0]), virtual_nodes)
    entries, nearest = len(id_sets[0]) * virtual_nodes, (losses + 1) * len(queues)
    if max(entries, nearest) * len(id_sets) > _MOST:
        raise UsageError(
            f"{len(id_sets)} sets of {len(id_sets[0])} client IDs with {virtual_nodes} entries each on the ring of "
            f"CONSISTENT_HASH, {len(queues)} queues and {losses} lost consumers are too many to look at",
            hint=f"with --trials {max(_MOST // max(entries, nearest), 1)} they are not",
            code="ring-too-large",
        )
    ordered = [sort_client_ids(ids) for ids in id_sets]
    places = [{client_id: place for place, client_id in enumerate(ids)} for ids in ordered]
    return GrowingRings(
        [[client_id.encode("utf-8", "replace") for client_id in ids] for ids in ordered],
        [[at[client_id] for client_id in ids] for at, ids in zip(places, id_sets, strict=True)],
        [str(queue).encode("utf-8", "replace") for queue in queues],
        virtual_nodes,
        losses,
    )


class HashSizes:
    """Sizes of a layout; asked in ascending order, with all others that share the rings."""

    def __init__(self, layout: Layout, rings: GrowingRings, rows: Mapping[MessageQueue, int], threads: int) -> None:
        self.trials = rings.trials
        self._rings, self._threads, self._queues = rings, threads, len(layout.queues)
        work = [work for topic in layout.topics for work in topic.work] if layout.has_work else []
        self._one_thread = layout.one_thread
        self._part = rings.part([rows[queue] for queue in layout.queues], work)

    def of(self, consumers: int, lost: Sequence[int] = ()) -> SizeFigures:
        return self._figures(consumers - len(lost), *self._rings.measured(consumers, lost, self._part))

    def bound(self, consumers: int, losses: int) -> SizeFigures:
        """Survivors keep their queues, and what a lost consumer had goes to those that are next on the ring."""
        return self._figures(consumers - losses, *self._rings.bounded(consumers, losses, self._part))

    def _figures(self, left: int, most: list[int], idle: list[int], busiest: list[float] | None) -> SizeFigures:
        return SizeFigures(
            left,
            most,
            [self._queues] * self.trials,
            idle,
            None if busiest is None else [utilised(each, self._threads, self._one_thread) for each in busiest],
        )
