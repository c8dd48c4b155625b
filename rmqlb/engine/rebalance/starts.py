"""Where the new owners of a plan's queues start to pull, and what brokers have to be asked for it.

A snapshot does not tell all of it: consume stats know no queue that is not read yet, nor its first message, and what is
found for a `consumeTimestamp` depends on the consumer. So brokers are asked once more, only about the queues that a
plan moves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from rmqlb.engine.rebalance.pull_from_where import start_of, start_without_file
from rmqlb.model.group import ConsumerGroup, MemberReport, States
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


_TEXT = r"(?a)[12][0-9]{3}[01][0-9][0-3][0-9][0-2][0-9][0-5][0-9][0-5][0-9]"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEFAULT_AGE = timedelta(minutes=30)
_FURTHEST_EAST, _FURTHEST_WEST = timedelta(hours=14), timedelta(hours=-12)
_ZONE_STEP = timedelta(minutes=15)
_MAKING = timedelta(seconds=3)  # a consumer is made within it; the text, in whole seconds, is that much older at most


def timestamps(reports: Mapping[str, MemberReport], takers: Iterable[str]) -> tuple[int, ...]:
    """The moment from which those who take a queue begin it, in ms since 1970; or the earliest and latest, or ().

    A taker that has not come yet is configured as the members are, when all of them have the same text and it is none
    that each makes for itself.
    """
    found: set[tuple[int, ...]] = set()
    for client_id in takers:
        report = reports.get(client_id) or _like_all(reports)
        found.add(() if report is None else _moments(report))
    return found.pop() if len(found) == 1 else ()


def _like_all(reports: Mapping[str, MemberReport]) -> MemberReport | None:
    texts = {report.consume_timestamp for report in reports.values()}
    if len(texts) != 1 or any(_own_zone(report) is not None for report in reports.values()):
        return None
    return next(iter(reports.values()))


def _moments(report: MemberReport) -> tuple[int, ...]:
    local, zone = _local(report), _own_zone(report)
    if local is None:
        return ()
    moments = [local - ahead for ahead in ((_FURTHEST_EAST, _FURTHEST_WEST) if zone is None else (zone,))]
    return tuple(round(moment.timestamp() * 1000) for moment in moments)


def _local(report: MemberReport) -> datetime | None:
    """What the consumer's clock shows at the moment, as if it were UTC; None when the text is none that Java reads."""
    if not re.fullmatch(_TEXT, report.consume_timestamp or ""):
        return None
    try:
        return datetime.strptime(report.consume_timestamp or "", "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _own_zone(report: MemberReport) -> timedelta | None:
    """How far the consumer's zone is ahead of UTC, if its text is the one that it made for itself."""
    local = _local(report)
    if local is None or report.started_at is None:
        return None
    ahead = local - (_EPOCH + timedelta(milliseconds=report.started_at) - _DEFAULT_AGE)
    zone = -(-ahead // _ZONE_STEP) * _ZONE_STEP
    return zone if zone - ahead <= _MAKING and _FURTHEST_WEST <= zone <= _FURTHEST_EAST else None
