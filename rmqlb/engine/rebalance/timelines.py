"""The notes of a simulation, read queue by queue: intervals, takeovers, and how much is delivered again.

Messages are taken for a stream of even rate that each owner delivers as it comes, so that a position in the queue is a
moment in time. An owner that takes a queue begins at the last position that was stored before; what others delivered
beyond it is delivered again. A listener's own time counts on top: what it has in hand is not stored yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil

from rmqlb.engine.rebalance.event_log import EventLog, Hold
from rmqlb.engine.rebalance.pull_from_where import start_of, start_without_file
from rmqlb.engine.rebalance.starts import new_queues
from rmqlb.engine.rebalance.stored import Earlier, QueueNotes, own_waits, persisted, waits_of
from rmqlb.model.group import States
from rmqlb.model.group_report import GroupFigures, Interval, OwnerState, QueueTimeline, StartOffset, Takeover
from rmqlb.model.group_scenario import SECOND_US, GroupScenario
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.route import TopicRouteData
from rmqlb.model.times import milliseconds, milliseconds_if_known
from rmqlb.model.unknown import sum_if_known

_COUNTED: tuple[OwnerState, ...] = ("unassigned", "duplicate-owners", "outage")  # states that should not be


def timelines(
    log: EventLog,
    scenario: GroupScenario,
    states: States,
    end_us: int,
    routes: Sequence[TopicRouteData] = (),
    *,
    gaps_only: bool = False,
) -> tuple[QueueTimeline, ...]:
    """One line for each queue that was there at any time, in the clients' order; routes are those of the beginning.

    With `gaps_only` only gaps are looked for, not who took it from whom or what is delivered again.
    """
    is_new = new_queues(routes)

    def start(queue: MessageQueue, *, stored_since: bool) -> StartOffset:
        new = queue not in states and is_new(queue)
        if scenario.broadcasting:
            if stored_since:
                return StartOffset("stored", None, "what its own offset file has")
            return start_without_file(states.get(queue), scenario.consume_from, topic=queue.topic, is_new=new)
        if new and stored_since:
            return StartOffset("stored", None, "what an owner before it has stored")
        return start_of(states.get(queue), scenario.consume_from, topic=queue.topic, is_new=new)

    holds: dict[MessageQueue, list[Hold]] = {}
    for hold in log.holds:
        holds.setdefault(hold.queue, []).append(hold)
    return tuple(
        _timeline(
            QueueNotes(queue, holds.get(queue, ()), log.there.get(queue, ()), log.served.get(queue, ()), end_us),
            scenario,
            None if gaps_only else partial(start, queue),
        )
        for queue in sort_queues(log.there.keys() | holds.keys())
    )


def figures(
    lines: Sequence[QueueTimeline], log: EventLog, first_us: int, *, settled: bool, broadcasting: bool = False
) -> GroupFigures:
    """A simulation in numbers, from when the first event was."""
    at_end = Counter(line.intervals[-1].state for line in lines if line.intervals)
    return GroupFigures(
        convergence_ms=milliseconds(max(log.last_change_us - first_us, 0)) if settled else None,
        longest_gap_ms=max((line.longest_gap_ms for line in lines), default=0),
        total_gap_ms=milliseconds(sum(line.none_us for line in lines)),
        longest_overlap_ms=max((line.longest_overlap_ms for line in lines), default=0),
        total_overlap_ms=milliseconds(sum(line.several_us for line in lines)),
        longest_outage_ms=max((line.longest_outage_ms for line in lines), default=0),
        total_outage_ms=milliseconds(sum(line.outage_us for line in lines)),
        unread_ms=max((line.unread_ms for line in lines), default=0),
        redelivered=sum_if_known(line.redelivered for line in lines),
        queues_with_gap=sum(1 for line in lines if line.total_gap_ms),
        queues_with_overlap=sum(1 for line in lines if line.total_overlap_ms),
        queues_with_outage=sum(1 for line in lines if line.total_outage_ms),
        queues_with_gap_at_end=at_end["unassigned"],
        queues_with_overlap_at_end=0 if broadcasting else at_end["duplicate-owners"],
        queues_with_outage_at_end=at_end["outage"],
        queues_unread_at_end=sum(1 for line in lines if line.unread_at_end),
        taken=sum(len(line.takeovers) for line in lines),
        rebalances=log.rebalances,
    )


def _timeline(notes: QueueNotes, scenario: GroupScenario, start: Callable[..., StartOffset] | None) -> QueueTimeline:
    owner = _lasting_owner(notes)
    intervals = _intervals(notes) if owner is None else (Interval(0, milliseconds(notes.end_us), "one", (owner,)),)
    lengths: dict[OwnerState, list[int]] = {state: [] for state in _COUNTED}
    for state, length in _stretches(intervals):
        if state != "duplicate-owners" or not scenario.broadcasting:  # where several are the rule
            lengths[state].append(length)
    gaps, overlaps, outages = (lengths[state] for state in _COUNTED)
    waits: Sequence[tuple[int, int]] = ()
    takeovers: tuple[Takeover, ...] = ()
    if owner is None:
        waits = own_waits(notes) if scenario.broadcasting else waits_of(notes)
        takeovers = () if start is None else _takeovers(notes, scenario, start, waits)
    return QueueTimeline(
        topic=notes.queue.topic,
        broker_name=notes.queue.broker_name,
        queue_id=notes.queue.queue_id,
        total_gap_ms=milliseconds(sum(gaps)),
        longest_gap_ms=milliseconds(max(gaps, default=0)),
        total_overlap_ms=milliseconds(sum(overlaps)),
        longest_overlap_ms=milliseconds(max(overlaps, default=0)),
        total_outage_ms=milliseconds(sum(outages)),
        longest_outage_ms=milliseconds(max(outages, default=0)),
        unread_ms=milliseconds(max((end - begin for begin, end in waits), default=0)),
        unread_at_end=any(end == notes.end_us for _, end in waits),
        redelivered=sum_if_known(takeover.redelivered for takeover in takeovers),
        intervals=intervals,
        takeovers=takeovers,
    )


def _lasting_owner(notes: QueueNotes) -> str | None:
    """Who reads the queue from before the start to the end, alone and always: most queues in most simulations."""
    if len(notes.holds) != 1 or len(notes.there) != 1 or notes.served or notes.end_us <= 0:
        return None
    (hold,), ((began_us, there),) = notes.holds, notes.there
    if not there or began_us > 0 or hold.from_us >= 0 or hold.to_us is not None or hold.stalled_us is not None:
        return None
    reads_always = hold.reads_from_us is not None and hold.reads_from_us <= 0
    return hold.client_id if reads_always and not hold.pauses and not hold.freezes else None


def _intervals(notes: QueueNotes) -> tuple[Interval, ...]:
    """The time axis cut wherever the owners, or whether the queue can be read, change."""
    intervals: list[Interval] = []
    owners: list[str] = []
    there, served, paused, since = False, True, 0, 0
    for at, what, begins, client_id in _changes(notes):
        if at > since and since < notes.end_us:
            _add(intervals, since, min(at, notes.end_us), owners, _state(there, served, len(owners), paused))
        since = max(since, at)
        if what == "there":
            there = begins
        elif what == "served":
            served = begins
        elif what == "pause":
            paused += 1 if begins else -1
        elif begins:
            owners.append(client_id)
        else:
            owners.remove(client_id)
    if since < notes.end_us:
        _add(intervals, since, notes.end_us, owners, _state(there, served, len(owners), paused))
    return tuple(intervals)


def _changes(notes: QueueNotes) -> list[tuple[int, str, bool, str]]:
    """When, what of (there, served, pause, owner), whether it begins, and whose; in the order of time."""
    changes: list[tuple[int, str, bool, str]] = []
    changes += [(at, "there", there, "") for at, there in notes.there]
    changes += [(at, "served", served, "") for at, served in notes.served]
    for hold in notes.holds:
        for begin, end in hold.owned():
            changes.append((max(begin, 0), "owner", True, hold.client_id))
            if end is not None:
                changes.append((end, "owner", False, hold.client_id))
        changes += [(at, "pause", pauses, "") for at, pauses in hold.turns()]
    return sorted(changes, key=lambda change: change[0])


def _state(there: bool, served: bool, owners: int, paused: int) -> OwnerState:
    """What a queue is in; owners whose pulls nobody answers leave it unread as a dead broker does."""
    if not there:
        return "gone"
    if not served or 0 < owners == paused:
        return "outage"
    return "unassigned" if not owners else "one" if owners == 1 else "duplicate-owners"


def _add(intervals: list[Interval], from_us: int, to_us: int, owners: Sequence[str], state: OwnerState) -> None:
    ids = tuple(sort_client_ids(owners))
    if intervals and intervals[-1].state == state and intervals[-1].owners == ids:
        from_us = intervals.pop().from_us
    intervals.append(Interval(milliseconds(from_us), milliseconds(to_us), state, ids))


def _stretches(intervals: Sequence[Interval]) -> list[tuple[OwnerState, int]]:
    """How long it was without owner, with several or in an outage each time, whoever the owners were."""
    lengths: list[tuple[OwnerState, int]] = []
    begin, state = 0, None
    for interval in intervals:
        if interval.state != state:
            begin, state = interval.from_us, interval.state
            if state in _COUNTED:
                lengths.append((state, 0))
        if state in _COUNTED:
            lengths[-1] = state, interval.to_us - begin
    return lengths


def _takeovers(
    notes: QueueNotes, scenario: GroupScenario, start: Callable[..., StartOffset], waits: Sequence[tuple[int, int]]
) -> tuple[Takeover, ...]:
    if scenario.broadcasting:
        return _own_takeovers(notes, scenario, start)
    end_us = notes.end_us
    ends = {end: end - begin for begin, end in waits}
    takeovers: list[Takeover] = []
    earlier = Earlier(scenario.latency_us // 2, end_us)
    for hold in notes.holds:
        stored, stored_since, read_until = earlier.position(hold.from_us), earlier.persisted, earlier.read_until
        earlier.add(hold, stored)
        if hold.from_us < 0:
            continue
        redelivered_us = _redelivered_us(hold.read_until(end_us), read_until, stored, scenario.consume_us)
        rate = scenario.rates.get(notes.queue)
        redelivered = None if rate is None else ceil(rate * redelivered_us / SECOND_US)
        first = next((begin for begin, _ in hold.reads(end_us)), None)
        takeovers.append(
            _takeover(
                hold,
                unread_us=None if first is None else ends.get(first, 0),
                start=start(stored_since=stored_since),
                redelivered_us=redelivered_us,
                redelivered=redelivered if redelivered_us else 0,
            )
        )
    return tuple(takeovers)


def _own_takeovers(
    notes: QueueNotes, scenario: GroupScenario, start: Callable[..., StartOffset]
) -> tuple[Takeover, ...]:
    """BROADCASTING: nobody takes anything from anybody, and each member keeps its offsets in a file of its own."""
    way_us = scenario.latency_us // 2
    of_client: dict[str, list[Hold]] = {}
    for hold in notes.holds:
        of_client.setdefault(hold.client_id, []).append(hold)

    def has_file(hold: Hold) -> bool:
        """A process with the same client id has read the queue before, and stored where it was."""
        earlier = [other for other in of_client[hold.client_id] if other.from_us < hold.from_us]
        return any(other.from_us < 0 or persisted(other, hold.from_us, way_us) for other in earlier)

    return tuple(
        _takeover(
            hold,
            unread_us=next((begin - hold.from_us for begin, _ in hold.reads(notes.end_us)), None),
            start=start(stored_since=has_file(hold)),
            redelivered_us=0,
            redelivered=0,
        )
        for hold in notes.holds
        if hold.from_us >= 0
    )


def _takeover(
    hold: Hold, *, unread_us: int | None, start: StartOffset, redelivered_us: int, redelivered: int | None
) -> Takeover:
    return Takeover(
        topic=hold.queue.topic,
        broker_name=hold.queue.broker_name,
        queue_id=hold.queue.queue_id,
        client_id=hold.client_id,
        at_ms=milliseconds(hold.from_us),
        reads_from_ms=milliseconds_if_known(hold.reads_from_us),
        unread_ms=milliseconds_if_known(unread_us),
        start_rule=start.rule,
        start_offset=start.offset,
        start_reason=start.reason,
        redelivered_ms=milliseconds(redelivered_us),
        redelivered=redelivered,
    )


def _redelivered_us(own_end: int | None, read_until: int | None, stored: int | None, consume_us: int) -> int:
    """How much both this owner and one before it deliver, as a length of time."""
    if stored is None or read_until is None or own_end is None:
        return 0
    return max(min(read_until, own_end) - stored, 0) + consume_us
