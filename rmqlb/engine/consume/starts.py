"""Where the new owners of a plan's queues start to pull, and what brokers have to be asked for it.

A snapshot does not tell all of it: consume stats know no queue that is not read yet, nor its first message, and what is
found for a `consumeTimestamp` depends on the consumer. So brokers are asked once more, only about the queues that a
plan moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from rmqlb.engine.consume.consume_timestamp import timestamps
from rmqlb.engine.consume.pull_from_where import start_of, start_without_file
from rmqlb.model.group import ConsumerGroup, States
from rmqlb.model.group_scenario import CONSUME_FROM_TIMESTAMP
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.plan import ADDED, ASSIGNED, MOVED, Move, RebalancePlan, TopicPlan
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import OffsetQuestion


def with_starts(
    plan: RebalancePlan, states: States, consume_from: str, routes: Sequence[TopicRouteData] = ()
) -> RebalancePlan:
    """The plan, with the start offset of each queue's new owner as far as it was observed; routes are those before."""
    is_new = new_queues(routes)
    of = start_without_file if plan.broadcasting else start_of

    def started(topic: str, move: Move) -> Move:
        queue = MessageQueue(topic, move.broker_name, move.queue_id)
        if not _is_taken(plan, move) or not (states or is_new(queue)):
            return move
        first = queue not in states and is_new(queue)
        start = of(states.get(queue), consume_from, topic=queue.topic, is_new=first)
        return replace(move, start_offset=start.offset, start_rule=start.rule)

    topics = (TopicPlan(each.topic, tuple(started(each.topic, move) for move in each.queues)) for each in plan.topics)
    return replace(plan, topics=tuple(topics))


def new_queues(before: Iterable[TopicRouteData]) -> Callable[[MessageQueue], bool]:
    """Whether no message can be in a queue yet: its broker has no such queue before, neither to read nor to write.

    Of topics without a route before, and of static ones, no queue is new.
    """
    numbers: dict[str, dict[str, int]] = {}
    for route in before:
        if not route.is_static:
            of_brokers = numbers.setdefault(route.topic, {})
            for data in route.queue_datas:
                number = max(data.read_queue_nums, data.write_queue_nums)
                of_brokers[data.broker_name] = max(number, of_brokers.get(data.broker_name, 0))
    return lambda queue: queue.topic in numbers and queue.queue_id >= numbers[queue.topic].get(queue.broker_name, 0)


def start_questions(
    plan: RebalancePlan, group: ConsumerGroup, consume_from: str, routes: Sequence[TopicRouteData]
) -> tuple[OffsetQuestion, ...]:
    """What is to be asked: one question for each queue that a consumer takes and whose broker is there before."""
    addresses = {
        (route.topic, broker.broker_name): broker.address
        for route in routes
        if not route.is_static  # their queues are logical: another broker may have the group's offsets
        for broker in route.broker_datas
    }
    return tuple(_questions(plan, group, consume_from, addresses))


def _questions(
    plan: RebalancePlan, group: ConsumerGroup, consume_from: str, addresses: Mapping[tuple[str, str], str | None]
) -> Iterator[OffsetQuestion]:
    for topic, move in ((each.topic, move) for each in plan.topics for move in each.queues):
        address = addresses.get((topic, move.broker_name))
        if address is None or not _is_taken(plan, move):
            continue
        moments: tuple[int, ...] = ()
        if consume_from == CONSUME_FROM_TIMESTAMP:
            new_owners = [each for each in move.owners_after if each not in move.owners_before]
            moments = timestamps(group.reports, new_owners)
        yield OffsetQuestion(MessageQueue(topic, move.broker_name, move.queue_id), address, moments)


def _is_taken(plan: RebalancePlan, move: Move) -> bool:
    if plan.broadcasting:
        return not set(move.owners_after) <= set(move.owners_before)
    return bool(move.owners_after) and move.change in (MOVED, ASSIGNED, ADDED)
