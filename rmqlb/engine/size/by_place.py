"""Sizes under strategies for which of a consumer only its place counts: AVG, AVG_BY_CIRCLE, MACHINE_ROOM.

Of m queues and n consumers each place has m // n queues, and some one more, in each topic those at the front. So the
consumer at the front has the most and the last one the fewest of all topics together, whatever the IDs are: what is
counted here holds for every order of them. The loss of any k consumers leaves n - k places.
"""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.engine.allocate import prepare
from rmqlb.engine.allocate.machine_room import room
from rmqlb.engine.allocate.sdks import JAVA, Sdk
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.size.figures import SizeFigures, utilised
from rmqlb.engine.size.layouts import Layout, TopicQueues
from rmqlb.model.message_queue import MessageQueue, sort_queues


class PlaceSizes:
    """Sizes from the numbers of queues; the raised error is that of the strategy (AllocationError)."""

    trials = 0

    def __init__(self, layout: Layout, strategy: str, settings: Settings, threads: int, sdk: Sdk = JAVA) -> None:
        for topic in layout.topics:
            prepare(strategy, topic.queues, ["a"], settings, sdk).share("a")  # throws what clients throw
        shared_out = tuple(_shared_out(topic, strategy, settings) for topic in layout.topics)
        self._topics = tuple(topic for topic in shared_out if topic.queues)
        self._numbers = [len(topic.queues) for topic in self._topics]
        self._unassigned = len(layout.queues) - sum(self._numbers)
        self._one_thread = Layout(self._topics, layout.has_work, layout.orderly).one_thread
        self._has_work = layout.has_work
        self._strategy, self._settings, self._threads, self._sdk = strategy, settings, threads, sdk
        self._known: dict[int, SizeFigures] = {}

    def of(self, consumers: int, lost: Sequence[int] = ()) -> SizeFigures:
        left = consumers - len(lost)
        if left not in self._known:
            self._known[left] = self._figures(left)
        return self._known[left]

    def bound(self, consumers: int, losses: int) -> SizeFigures:
        """The loss itself: all of them leave the same."""
        return self.of(consumers, range(losses))

    def _figures(self, consumers: int) -> SizeFigures:
        return SizeFigures(
            consumers,
            (sum(-(-number // consumers) for number in self._numbers),),
            (sum(self._numbers),),
            (max(consumers - max(self._numbers, default=0), 0),),
            (utilised(self._busiest(consumers), self._threads, self._one_thread),) if self._has_work else None,
            (self._unassigned,),
        )

    def _busiest(self, consumers: int) -> float:
        each = [topic.each for topic in self._topics]
        if None not in each:
            return sum((one or 0) * -(-number // consumers) for one, number in zip(each, self._numbers, strict=True))
        return max(self._work(consumers))

    def _work(self, consumers: int) -> list[float]:
        """Of each place, where the queues of a topic do not all bring the same."""
        ids = [f"{place:05d}" for place in range(consumers)]
        found = [0.0] * consumers
        for topic in self._topics:
            work = dict(zip(topic.queues, topic.work, strict=True))
            queues = sort_queues(topic.queues, self._sdk.order)
            strategy = prepare(self._strategy, queues, ids, self._settings, self._sdk)
            for place, client_id in enumerate(ids):
                found[place] += sum(work[queue] for queue in strategy.share(client_id))
        return found


def _shared_out(topic: TopicQueues, strategy: str, settings: Settings) -> TopicQueues:
    """The queues that consumers get at all: under MACHINE_ROOM those of the listed rooms."""
    if strategy != "MACHINE_ROOM":
        return topic

    def inside(queue: MessageQueue) -> bool:
        return room(queue.broker_name) in (settings.consumer_idcs or ())

    return TopicQueues(
        tuple(queue for queue in topic.queues if inside(queue)),
        tuple(work for queue, work in zip(topic.queues, topic.work, strict=False) if inside(queue)),
    )
