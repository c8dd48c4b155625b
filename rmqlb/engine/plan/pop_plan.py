"""What a change does to topics that are consumed by POP: who may read what, before and after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rmqlb.engine.assignment.brokers import ANY_QUEUE
from rmqlb.model.java import sort_key
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.owners import PopTopic
from rmqlb.model.plan import PopChange, PopTopicPlan
from rmqlb.model.route import TopicRouteData

Rows = dict[tuple[str, int], tuple[str, ...]]
Side = tuple[PopTopic, TopicRouteData]
"""A topic, and its route."""


def pop_plan(before: Iterable[Side], after: Iterable[Side]) -> tuple[PopTopicPlan, ...]:
    """Both sides of each topic; they hold the same topics in the same order."""
    return tuple(_plan(old, new) for old, new in zip(before, after, strict=True))


def _plan(before: Side, after: Side) -> PopTopicPlan:
    (old, _), (new, _) = before, after
    changes = () if old.queues is None or new.queues is None else tuple(_changes(before, after))
    return PopTopicPlan(
        old.topic, old.strategy, new.strategy, old.pop_share_queue_nums, old.assumed, changes, old.by_proxy
    )


def _changes(before: Side, after: Side) -> Iterator[PopChange]:
    was, becomes = _rows(before[0]), _rows(after[0])
    if any(number != ANY_QUEUE for _, number in (*was, *becomes)):
        was, becomes = _queue_by_queue(was, before), _queue_by_queue(becomes, after)
    for name, number in sorted({*was, *becomes}, key=lambda each: (sort_key(each[0]), each[1])):
        yield PopChange(name, number, was.get((name, number)), becomes.get((name, number)))


def _rows(topic: PopTopic) -> Rows:
    return {(queue.broker_name, queue.queue_id): queue.consumers or () for queue in topic.queues or ()}


def _queue_by_queue(rows: Rows, side: Side) -> Rows:
    """Each single queue, where a consumer may also read it because it may read any of the broker."""
    found: Rows = {}
    for queue in side[1].subscribe_queues():
        name, number = queue.broker_name, queue.queue_id
        found[name, number] = tuple(sort_client_ids({*rows.get((name, number), ()), *rows.get((name, ANY_QUEUE), ())}))
    return found
