"""Where the new owner of a queue starts to pull: `RebalancePushImpl.computePullFromWhereWithException`.

A snapshot lacks facts that a plan needs: consume stats omit queues without a consumer and the first message of each
queue, and the offset for a `consumeTimestamp` depends on the consumer. So brokers are queried again, about the queues
that the plan moves.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from rmqlb.model.group import NOT_STORED, RETRY_PREFIX, ConsumerGroup, MemberReport, QueueState, States
from rmqlb.model.group_scenario import CONSUME_FROM_FIRST_OFFSET, CONSUME_FROM_TIMESTAMP
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.plan import ADDED, ASSIGNED, MOVED, Move, RebalancePlan, TopicPlan
from rmqlb.model.route import TopicRouteData
from rmqlb.model.simulate_rebalance import StartOffset
from rmqlb.model.snapshot import OffsetQuestion


def start_of(
    state: QueueState | None,
    consume_from: str,  # `consumeFromWhere`; the deprecated values mean CONSUME_FROM_LAST_OFFSET
    *,
    topic: str,
    is_new: bool = False,
    own_file: bool = False,
) -> StartOffset:
    """The offset that a push consumer begins with, from the observed queue.

    A new queue is empty, so each rule starts at 0. Consume stats report 0 for a queue without a stored offset, so 0 is
    ambiguous unless the broker was queried for the offset; for a static topic they report −1. A broker answers an
    offset below 0 as none, not as an error (`ConsumerManageProcessor.queryConsumerOffset`). With `own_file`, a
    BROADCASTING consumer has no own offset: `LocalFileOffsetStore.readOffset` returns −1. Where the offset lies before
    the queue's first message, the broker sends the consumer there (`OFFSET_ILLEGAL`).
    """
    none = "it has no offset of its own" if own_file else "nothing is stored"
    is_retry, where = topic.startswith(RETRY_PREFIX), f"{none}, and {consume_from}"
    empty = QueueState(broker_offset=0, stored_offset=NOT_STORED, timestamp_offset=0)
    seen = empty if is_new else state or QueueState()
    stored = seen.consumer_offset if seen.stored_offset is None else seen.stored_offset
    if own_file:
        stored = NOT_STORED
    elif seen.stored_offset is None and stored == 0 and seen.broker_offset != 0:
        return StartOffset("unknown", None, "0 is reported, which may also mean that nothing is stored")
    if stored is None:
        return StartOffset("unknown", None, "the group's offset was not observed")
    if stored >= 0:
        start = StartOffset("stored", stored, f"the group has stored {stored}")
    elif consume_from == CONSUME_FROM_FIRST_OFFSET:
        start = StartOffset("beginning", 0, where)
    elif consume_from == CONSUME_FROM_TIMESTAMP and not is_retry:
        start = StartOffset("timestamp", seen.timestamp_offset, f"{where}: what the broker finds for it")
    elif consume_from == CONSUME_FROM_TIMESTAMP:
        start = StartOffset("end", seen.broker_offset, f"{where} on a retry topic")
    elif is_retry:
        start = StartOffset("beginning", 0, f"{none}, and it is a retry topic")
    else:
        start = StartOffset("end", seen.broker_offset, where)
    begin = seen.min_offset
    if start.offset is None or begin is None or start.offset >= begin:
        return replace(start, reason=f"{start.reason}: the queue is new") if is_new else start
    return StartOffset(start.rule, begin, f"{start.reason}; the first message that is still there is {begin}")


def with_starts(
    plan: RebalancePlan, states: States, consume_from: str, routes: Sequence[TopicRouteData] = ()
) -> RebalancePlan:
    is_new = new_queues(routes)

    def started(topic: str, move: Move) -> Move:
        queue = MessageQueue(topic, move.broker_name, move.queue_id)
        if not _is_taken(plan, move) or not (states or is_new(queue)):
            return move
        first = queue not in states and is_new(queue)
        start = start_of(states.get(queue), consume_from, topic=topic, is_new=first, own_file=plan.broadcasting)
        return replace(move, start_offset=start.offset, start_rule=start.rule)

    topics = (TopicPlan(each.topic, tuple(started(each.topic, move) for move in each.queues)) for each in plan.topics)
    return replace(plan, topics=tuple(topics))


def new_queues(before: Iterable[TopicRouteData]) -> Callable[[MessageQueue], bool]:
    """Whether a queue must be empty: its broker had no such queue before; false for static and unknown topics."""
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
    addresses = {
        (route.topic, broker.broker_name): broker.address
        for route in routes
        if not route.is_static  # their queues are logical: another broker may have the group's offsets
        for broker in route.broker_datas
    }
    found = []
    for topic, move in ((each.topic, move) for each in plan.topics for move in each.queues):
        address = addresses.get((topic, move.broker_name))
        if address is not None and _is_taken(plan, move):
            new_owners = [each for each in move.owners_after if each not in move.owners_before]
            moments = timestamps(group.reports, new_owners) if consume_from == CONSUME_FROM_TIMESTAMP else ()
            found.append(OffsetQuestion(MessageQueue(topic, move.broker_name, move.queue_id), address, moments))
    return tuple(found)


def _is_taken(plan: RebalancePlan, move: Move) -> bool:
    if plan.broadcasting:
        return not set(move.owners_after) <= set(move.owners_before)
    return bool(move.owners_after) and move.change in (MOVED, ASSIGNED, ADDED)


_TEXT = r"(?a)[12][0-9]{3}[01][0-9][0-3][0-9][0-2][0-9][0-5][0-9][0-5][0-9]"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEFAULT_AGE = timedelta(minutes=30)
_FURTHEST_EAST, _FURTHEST_WEST = timedelta(hours=14), timedelta(hours=-12)
_ZONE_STEP = timedelta(minutes=15)
_MAKING = timedelta(seconds=3)  # a consumer starts within it; the text, in whole seconds, is at most that much older


def timestamps(reports: Mapping[str, MemberReport], takers: Iterable[str]) -> tuple[int, ...]:
    """The moment at which new owners begin a queue, in ms since 1970; or the earliest and latest moment, or ().

    A consumer that has not joined yet is configured like the others if all of them have the same text, except the
    default, which each consumer computes for itself.
    """
    texts = {report.consume_timestamp for report in reports.values()}
    alike = len(texts) == 1 and all(_own_zone(report) is None for report in reports.values())
    like_all = next(iter(reports.values())) if alike else None
    known = [reports.get(client_id) or like_all for client_id in takers]
    found = {() if report is None else _moments(report) for report in known}
    return found.pop() if len(found) == 1 else ()


def _moments(report: MemberReport) -> tuple[int, ...]:
    local, zone = _local(report), _own_zone(report)
    zones = (_FURTHEST_EAST, _FURTHEST_WEST) if zone is None else (zone,)
    return () if local is None else tuple(round((local - ahead).timestamp() * 1000) for ahead in zones)


def _local(report: MemberReport) -> datetime | None:
    """The consumer's local time at the start moment, as if in UTC; None if Java cannot parse the text."""
    text = report.consume_timestamp or ""
    try:
        return datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC) if re.fullmatch(_TEXT, text) else None
    except ValueError:
        return None


def _own_zone(report: MemberReport) -> timedelta | None:
    """The consumer's zone ahead of UTC, if its text is the default that it computed for itself."""
    local = _local(report)
    if local is None or report.started_at is None:
        return None
    ahead = local - (_EPOCH + timedelta(milliseconds=report.started_at) - _DEFAULT_AGE)
    zone = -(-ahead // _ZONE_STEP) * _ZONE_STEP
    return zone if zone - ahead <= _MAKING and _FURTHEST_WEST <= zone <= _FURTHEST_EAST else None
