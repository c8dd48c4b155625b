"""The notes of a simulation, read queue by queue: intervals, takeovers, and how much is delivered again.

Messages are taken for a stream of even rate that each owner delivers as it comes, so that a position in the queue is a
moment in time. An owner that takes a queue begins at the last position that was stored before; what others delivered
beyond it is delivered again. A listener's own time counts on top: what it has in hand is not stored yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil

from rmqlb.engine.consume.pull_from_where import start_of
from rmqlb.engine.consume.record import Hold, Record
from rmqlb.engine.consume.starts import is_new
from rmqlb.model.group import States
from rmqlb.model.group_report import GroupFigures, Interval, OwnerState, QueueTimeline, StartOffset, Takeover
from rmqlb.model.group_scenario import SECOND_US, GroupScenario
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.route import TopicRouteData


def timelines(
    record: Record, scenario: GroupScenario, states: States, end_us: int, routes: Sequence[TopicRouteData] = ()
) -> tuple[QueueTimeline, ...]:
    """One line for each queue that was there at any time, in the clients' order.

    Args:
        record: the notes.
        scenario: rates, the listener's time, the latency and where members start.
        states: what was observed of each queue.
        end_us: where the time axis ends.
        routes: the topics at the beginning, which tell the queues that events make.
    """
    before = {route.topic: route for route in routes}

    def start(queue: MessageQueue, *, stored_since: bool) -> StartOffset:
        new = queue not in states and queue.topic in before and is_new(queue, before[queue.topic])
        if new and stored_since:
            return StartOffset("stored", None, "what an owner before it has stored")
        return start_of(states.get(queue), scenario.consume_from, topic=queue.topic, is_new=new)

    holds: dict[MessageQueue, list[Hold]] = {}
    for hold in record.holds:
        holds.setdefault(hold.queue, []).append(hold)
    return tuple(
        _timeline(queue, holds.get(queue, []), record.there.get(queue, []), scenario, partial(start, queue), end_us)
        for queue in sort_queues(record.there.keys() | holds.keys())
    )


def figures(lines: Sequence[QueueTimeline], record: Record, first_us: int, *, settled: bool) -> GroupFigures:
    """A simulation in numbers.

    Args:
        lines: one a queue.
        record: the notes.
        first_us: when the first event was.
        settled: nothing more was to come.
    """
    again = [line.again for line in lines]
    return GroupFigures(
        settled_us=max(record.last_change_us - first_us, 0) if settled else None,
        longest_none_us=max((line.longest_none_us for line in lines), default=0),
        none_us=sum(line.none_us for line in lines),
        longest_several_us=max((line.longest_several_us for line in lines), default=0),
        several_us=sum(line.several_us for line in lines),
        unread_us=max((line.unread_us for line in lines), default=0),
        again=None if None in again else sum(number or 0 for number in again),
        queues_none=sum(1 for line in lines if line.none_us),
        queues_several=sum(1 for line in lines if line.several_us),
        taken=sum(len(line.takeovers) for line in lines),
        rebalances=record.rebalances,
    )


def _timeline(
    queue: MessageQueue,
    holds: Sequence[Hold],
    there: Sequence[tuple[int, bool]],
    scenario: GroupScenario,
    start: Callable[..., StartOffset],
    end_us: int,
) -> QueueTimeline:
    intervals = _intervals(holds, there, end_us)
    lengths: dict[OwnerState, list[int]] = {"none": [], "several": []}
    for state_of_it, longest in _stretches(intervals):
        if state_of_it != "several" or not scenario.broadcasting:  # where several are the rule
            lengths[state_of_it].append(longest)
    takeovers = _takeovers(queue, holds, there, scenario, start, end_us)
    again = [takeover.again for takeover in takeovers]
    return QueueTimeline(
        queue=queue,
        intervals=intervals,
        takeovers=takeovers,
        none_us=sum(lengths["none"]),
        longest_none_us=max(lengths["none"], default=0),
        several_us=sum(lengths["several"]),
        longest_several_us=max(lengths["several"], default=0),
        unread_us=max((takeover.unread_us or 0 for takeover in takeovers), default=0),
        again=None if None in again else sum(number or 0 for number in again),
    )


def _intervals(holds: Sequence[Hold], there: Sequence[tuple[int, bool]], end_us: int) -> tuple[Interval, ...]:
    """The time axis cut wherever the owners, or whether the queue can be read, change."""
    changes: list[tuple[int, str | None, bool]] = [(at, None, up) for at, up in there]
    for hold in holds:
        changes.append((max(hold.from_us, 0), hold.client_id, True))
        if hold.to_us is not None:
            changes.append((hold.to_us, hold.client_id, False))
    changes.sort(key=lambda change: change[0])
    intervals: list[Interval] = []
    owners: list[str] = []
    up = False
    since = 0
    for at, client_id, begins in changes:
        if at > since and since < end_us:
            _add(intervals, since, min(at, end_us), owners, up)
        since = max(since, at)
        if client_id is None:
            up = begins
        elif begins:
            owners.append(client_id)
        else:
            owners.remove(client_id)
    if since < end_us:
        _add(intervals, since, end_us, owners, up)
    return tuple(intervals)


def _add(intervals: list[Interval], from_us: int, to_us: int, owners: Sequence[str], up: bool) -> None:
    """One more stretch, which goes on with the last one when nothing differs."""
    ids = tuple(sort_client_ids(owners))
    state: OwnerState = "gone" if not up else "none" if not ids else "one" if len(ids) == 1 else "several"
    if intervals and intervals[-1].state == state and intervals[-1].owners == ids:
        from_us = intervals.pop().from_us
    intervals.append(Interval(from_us, to_us, state, ids))


def _stretches(intervals: Sequence[Interval]) -> list[tuple[OwnerState, int]]:
    """How long it was without or with several owners each time, whoever the several were."""
    lengths: list[tuple[OwnerState, int]] = []
    begin, state = 0, None
    for interval in intervals:
        if interval.state != state:
            begin, state = interval.from_us, interval.state
            if state in ("none", "several"):
                lengths.append((state, 0))
        if state in ("none", "several"):
            lengths[-1] = state, interval.to_us - begin
    return lengths


def _takeovers(
    queue: MessageQueue,
    holds: Sequence[Hold],
    there: Sequence[tuple[int, bool]],
    scenario: GroupScenario,
    start: Callable[..., StartOffset],
    end_us: int,
) -> tuple[Takeover, ...]:
    if scenario.broadcasting:
        return _own_takeovers(queue, holds)
    takeovers: list[Takeover] = []
    positions: list[int | None] = []
    way_us = scenario.latency_us // 2
    for number, hold in enumerate(holds):
        earlier = list(zip(holds[:number], positions, strict=True))
        stored = _stored(earlier, hold.from_us, way_us)
        positions.append(stored)
        if hold.from_us < 0:
            continue
        again_us = _again_us(hold, holds[:number], stored, scenario.consume_us, end_us)
        rate = scenario.rates.get(queue)
        takeovers.append(
            Takeover(
                queue=queue,
                client_id=hold.client_id,
                at_us=hold.from_us,
                reads_from_us=hold.reads_from_us,
                unread_us=None if hold.reads_from_us is None else _unread_us(hold, hold.reads_from_us, holds, there),
                start=start(stored_since=any(_persisted(other, hold.from_us, way_us) for other, _ in earlier)),
                again_us=again_us,
                again=0 if again_us == 0 else None if rate is None else ceil(rate * again_us / SECOND_US),
            )
        )
    return tuple(takeovers)


def _own_takeovers(queue: MessageQueue, holds: Sequence[Hold]) -> tuple[Takeover, ...]:
    """BROADCASTING: nobody takes anything from anybody, and each member keeps its offsets in a file of its own."""
    start = StartOffset("unknown", None, "each member keeps its offsets in a file of its own")
    return tuple(
        Takeover(
            queue=queue,
            client_id=hold.client_id,
            at_us=hold.from_us,
            reads_from_us=hold.reads_from_us,
            unread_us=None if hold.reads_from_us is None else hold.reads_from_us - hold.from_us,
            start=start,
            again_us=0,
            again=0,
        )
        for hold in holds
        if hold.from_us >= 0
    )


def _stored(earlier: Sequence[tuple[Hold, int | None]], at_us: int, way_us: int) -> int | None:
    """The position that the broker has stored by then; None when nobody ever read the queue."""
    known: list[int] = []
    for hold, began_at in earlier:
        if began_at is not None or hold.from_us >= 0:
            known.append(hold.from_us if began_at is None else began_at)
        known += _persisted(hold, at_us, way_us)
    return max(known, default=None)


def _persisted(hold: Hold, at_us: int, way_us: int) -> list[int]:
    """The positions that the owner has stored by then: by its timer, and when it gave the queue up."""
    known = []
    tick = hold.persisted_before(at_us if hold.to_us is None else min(at_us, hold.to_us))
    if tick is not None and tick >= hold.from_us:
        known.append(tick)
    if hold.persisted and hold.to_us is not None and hold.to_us + way_us <= at_us:
        known.append(hold.to_us)
    return known


def _again_us(hold: Hold, earlier: Sequence[Hold], stored: int | None, consume_us: int, end_us: int) -> int:
    """How much both this owner and one before it deliver, as a length of time."""
    readers = [other for other in earlier if other.reads_from_us is not None]
    if stored is None or not readers or hold.reads_from_us is None:
        return 0
    own_end = _read_end(hold, end_us)
    return max(max(min(_read_end(other, end_us), own_end) for other in readers) - stored, 0) + consume_us


def _read_end(hold: Hold, end_us: int) -> int:
    """Until when it was read."""
    ends = [end for end in (hold.stalled_us, hold.to_us) if end is not None]
    return min(ends, default=end_us)


def _unread_us(hold: Hold, at_us: int, holds: Sequence[Hold], there: Sequence[tuple[int, bool]]) -> int:
    """For how long nobody had read the queue when this owner's first pull came."""
    last = max((at for at, up in there if up and at <= at_us), default=0)
    for other in holds:
        if other is hold or other.reads_from_us is None or other.reads_from_us > at_us:
            continue
        end = _read_end(other, at_us)
        if end >= at_us:
            return 0
        last = max(last, end)
    return at_us - last
