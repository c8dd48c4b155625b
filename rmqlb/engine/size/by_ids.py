"""Sizes under strategies that look at client IDs: every consumer's share, for each of several sets of IDs."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.engine.allocate import prepare
from rmqlb.engine.allocate.sdks import JAVA, Sdk
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.size.figures import SizeFigures, utilised
from rmqlb.engine.size.layouts import Layout
from rmqlb.model.message_queue import sort_client_ids, sort_queues


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
    ) -> None:
        self.trials = len(id_sets)
        self._layout, self._strategy, self._settings, self._threads = layout, strategy, settings, threads
        self._id_sets, self._sdk = id_sets, sdk
        self._queues = [sort_queues(topic.queues, sdk.order) for topic in layout.topics]
        self._work = [dict(zip(topic.queues, topic.work, strict=False)) for topic in layout.topics]

    def of(self, consumers: int, lost: Sequence[int] = ()) -> SizeFigures:
        gone = frozenset(lost)
        found = [
            self._one([each for at, each in enumerate(ids[:consumers]) if at not in gone]) for ids in self._id_sets
        ]
        return SizeFigures(
            consumers - len(gone),
            [most for most, _, _, _ in found],
            [held for _, held, _, _ in found],
            [idle for _, _, idle, _ in found],
            [utilised(busiest, self._threads) for *_, busiest in found] if self._layout.has_work else None,
        )

    def bound(self, consumers: int, losses: int) -> None:
        """There is none: a strategy may give anything to anyone after a loss."""

    def _one(self, client_ids: Sequence[str]) -> tuple[int, int, int, float]:
        """Most queues, queues of all, consumers without one, and the work of the busiest."""
        ids = sort_client_ids(client_ids, self._sdk.order)
        numbers, busy = dict.fromkeys(ids, 0), dict.fromkeys(ids, 0.0)
        for queues, work in zip(self._queues, self._work, strict=True):
            strategy = prepare(self._strategy, queues, ids, self._settings, self._sdk)
            for client_id in ids:
                share = strategy.share(client_id)
                numbers[client_id] += len(share)
                if work:
                    busy[client_id] += sum(work.get(queue, 0.0) for queue in share)
        return max(numbers.values()), sum(numbers.values()), list(numbers.values()).count(0), max(busy.values())
