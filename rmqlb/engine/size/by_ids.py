"""Sizes under strategies that look at client IDs: every consumer's share, for each of several sets of IDs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from rmqlb.engine.allocate import prepare
from rmqlb.engine.allocate.sdks import JAVA, Sdk
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.size.figures import SizeFigures, utilised
from rmqlb.engine.size.layouts import Layout
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues


class _Counted(Struct, frozen=True):
    """What one set of IDs gives."""

    most: int
    held: int
    idle: int
    busiest: float
    unassigned: int
    duplicate_owners: int


class IdSizes:
    """Sizes as `rmqlb.allocate` gives them (raises AllocationError)."""

    def __init__(
        self,
        layout: Layout,
        strategy: str,
        settings: Settings,
        threads: int,
        id_sets: Sequence[Sequence[str]],
        sdk: Sdk = JAVA,
        subscribed: Mapping[str, frozenset[str]] = {},
    ) -> None:
        self.trials = len(id_sets)
        self._layout, self._strategy, self._settings, self._threads = layout, strategy, settings, threads
        self._id_sets, self._sdk = id_sets, sdk
        self._subscribed = subscribed
        self._queues = [sort_queues(topic.queues, sdk.order) for topic in layout.topics]
        self._one_thread = layout.one_thread
        self._work = [dict(zip(topic.queues, topic.work, strict=False)) for topic in layout.topics]

    def of(self, consumers: int, lost: Sequence[int] = ()) -> SizeFigures:
        gone = frozenset(lost)
        sets = [tuple(each for at, each in enumerate(ids[:consumers]) if at not in gone) for ids in self._id_sets]
        counted = {ids: self._one(ids) for ids in dict.fromkeys(sets)}
        found = [counted[ids] for ids in sets]
        utilisation = [utilised(each.busiest, self._threads, self._one_thread) for each in found]
        return SizeFigures(
            consumers - len(gone),
            [each.most for each in found],
            [each.held for each in found],
            [each.idle for each in found],
            utilisation if self._layout.has_work else None,
            [each.unassigned for each in found],
            [each.duplicate_owners for each in found],
        )

    def bound(self, consumers: int, losses: int) -> None:
        """There is none: a strategy may give anything to anyone after a loss."""

    def _one(self, client_ids: Sequence[str]) -> _Counted:
        ids = sort_client_ids(client_ids, self._sdk.order)
        numbers, busy = dict.fromkeys(ids, 0), dict.fromkeys(ids, 0.0)
        unassigned = several = 0
        for queues, work in zip(self._queues, self._work, strict=True):
            strategy = prepare(self._strategy, queues, ids, self._settings, self._sdk)
            owned: Counter[MessageQueue] = Counter()
            for client_id in ids:
                if queues[0].topic not in self._subscribed.get(client_id, (queues[0].topic,)):
                    continue  # it never asks for its share, which the others leave to it
                share = strategy.share(client_id)
                owned.update(share)
                numbers[client_id] += len(share)
                if work:
                    busy[client_id] += sum(work.get(queue, 0.0) for queue in share)
            unassigned += len(queues) - len(owned)
            several += sum(number > 1 for number in owned.values())
        each = numbers.values()
        return _Counted(max(each), sum(each), list(each).count(0), max(busy.values()), unassigned, several)
