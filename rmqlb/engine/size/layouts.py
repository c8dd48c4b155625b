"""The queues that a group shares out, and the work that each of them brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from rmqlb.engine.plan.changes import Changes, QueueCount, change_routes
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData


class TopicQueues(Struct, frozen=True, dict=True):
    """The readable queues of a topic, sorted as clients sort them."""

    queues: tuple[MessageQueue, ...]
    work: tuple[float, ...]  # of each, in seconds of listening per second; empty when no work is given

    @cached_property
    def each(self) -> float | None:
        """The work of every queue, where all have the same."""
        return self.work[0] if len(set(self.work)) == 1 else None


class Layout(Struct, frozen=True):
    """The topics of a group that have a queue."""

    topics: tuple[TopicQueues, ...]
    has_work: bool
    orderly: bool = False

    @property
    def one_thread(self) -> float:
        """The work that one thread has to do alone: in an orderly group that of a queue (`ProcessQueue`'s lock)."""
        return max((max(topic.work) for topic in self.topics), default=0.0) if self.orderly and self.has_work else 0.0

    @property
    def queues(self) -> list[MessageQueue]:
        return [queue for topic in self.topics for queue in topic.queues]


def layout(routes: Sequence[TopicRouteData], work: Mapping[MessageQueue, float], *, orderly: bool) -> Layout:
    """The queues of these routes."""
    topics = [route.subscribe_queues() for route in routes]
    found = [TopicQueues(tuple(each), tuple(work[queue] for queue in each) if work else ()) for each in topics if each]
    return Layout(tuple(found), bool(work), orderly)


def with_queues(
    routes: Sequence[TopicRouteData],
    work: Mapping[MessageQueue, float],
    number: int,
    work_of_topics: Mapping[str, float],
) -> tuple[tuple[TopicRouteData, ...], dict[MessageQueue, float]]:
    """The topics with so many read queues on each broker; where that is a change, a topic's work is spread evenly.

    `work_of_topics` has the work of topics that have no queue before.
    """
    changed = change_routes(routes, Changes(read_queues=(QueueCount(number),)))
    found: dict[MessageQueue, float] = {}
    for before, after in zip(routes, changed, strict=True):
        queues, were = after.subscribe_queues(), before.subscribe_queues()
        if work and queues == were:
            found |= {queue: work[queue] for queue in queues}
        elif work or work_of_topics:
            total = sum(work[queue] for queue in were) if were else work_of_topics.get(before.topic, 0.0)
            found |= dict.fromkeys(queues, total / max(len(queues), 1))
    return changed, found


def without_broker(
    routes: Sequence[TopicRouteData], work: Mapping[MessageQueue, float], broker_name: str
) -> tuple[tuple[TopicRouteData, ...], dict[MessageQueue, float]]:
    """The topics after the loss of a broker; producers send what went there evenly to a topic's other queues."""
    changed = change_routes(routes, Changes(remove_brokers=(broker_name,)))
    found: dict[MessageQueue, float] = {}
    for before, after in zip(routes, changed, strict=True):
        left = after.subscribe_queues()
        if work and left:
            gone = sum(work[queue] for queue in before.subscribe_queues()) - sum(work[queue] for queue in left)
            found |= {queue: work[queue] + gone / len(left) for queue in left}
    return changed, found


def brokers_of(routes: Sequence[TopicRouteData]) -> tuple[str, ...]:
    """Those with a readable queue, each once."""
    return tuple(dict.fromkeys(queue.broker_name for route in routes for queue in route.subscribe_queues()))
