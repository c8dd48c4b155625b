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

from rmqlb.engine.consume.event_log import EventLog, Hold
from rmqlb.engine.consume.pull_from_where import start_of, start_without_file
from rmqlb.engine.consume.starts import new_queues
from rmqlb.engine.consume.stored import Earlier, persisted
from rmqlb.engine.consume.waits import QueueNotes, own_waits, waits_of
from rmqlb.model.group import States
from rmqlb.model.group_report import GroupFigures, Interval, OwnerState, QueueTimeline, StartOffset, Takeover
from rmqlb.model.group_scenario import SECOND_US, GroupScenario
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.route import TopicRouteData

_COUNTED: tuple[OwnerState, ...] = ("none", "several", "outage")
"""States that should not be."""


def timelines(
    log: EventLog, scenario: GroupScenario, states: States, end_us: int, routes: Sequence[TopicRouteData] = ()
) -> tuple[QueueTimeline, ...]:
    """One line for each queue that was there at any time, in the clients' order; routes are those of the beginning."""
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
            partial(start, queue),
        )
        for queue in sort_queues(log.there.keys() | holds.keys())
    )


def figures(
    lines: Sequence[QueueTimeline], log: EventLog, first_us: int, *, settled: bool, broadcasting: bool = False
) -> GroupFigures:
    """A simulation in numbers.

    Args:
        first_us: when the first event was.
        broadcasting: several owners are as it should be.
    """
    again = [line.again for line in lines]
    at_end = Counter(line.intervals[-1].state for line in lines if line.intervals)
    return GroupFigures(
        settled_us=max(log.last_change_us - first_us, 0) if settled else None,
        longest_none_us=max((line.longest_none_us for line in lines), default=0),
        none_us=sum(line.none_us for line in lines),
        longest_several_us=max((line.longest_several_us for line in lines), default=0),
        several_us=sum(line.several_us for line in lines),
        longest_outage_us=max((line.longest_outage_us for line in lines), default=0),
        total_outage_us=sum(line.outage_us for line in lines),
        unread_us=max((line.unread_us for line in lines), default=0),
        again=None if None in again else sum(number or 0 for number in again),
        queues_none=sum(1 for line in lines if line.none_us),
        queues_several=sum(1 for line in lines if line.several_us),
        queues_outage=sum(1 for line in lines if line.outage_us),
        queues_none_at_end=at_end["none"],
        queues_several_at_end=0 if broadcasting else at_end["several"],
        queues_outage_at_end=at_end["outage"],
        queues_unread_at_end=sum(1 for line in lines if line.unread_at_end),
        taken=sum(len(line.takeovers) for line in lines),
        rebalances=log.rebalances,
    )


def _timeline(notes: QueueNotes, scenario: GroupScenario, start: Callable[..., StartOffset]) -> QueueTimeline:
    intervals = _intervals(notes)
    lengths: dict[OwnerState, list[int]] = {"none": [], "several": [], "outage": []}
    for state_of_it, longest in _stretches(intervals):
        if state_of_it != "several" or not scenario.broadcasting:  # where several are the rule
            lengths[state_of_it].append(longest)
    waits = own_waits(notes) if scenario.broadcasting else waits_of(notes)
    takeovers = _takeovers(notes, scenario, start, waits)
    again = [takeover.again for takeover in takeovers]
    return QueueTimeline(
        queue=notes.queue,
        intervals=intervals,
        takeovers=takeovers,
        none_us=sum(lengths["none"]),
        longest_none_us=max(lengths["none"], default=0),
        several_us=sum(lengths["several"]),
        longest_several_us=max(lengths["several"], default=0),
        outage_us=sum(lengths["outage"]),
        longest_outage_us=max(lengths["outage"], default=0),
        unread_us=max((end - begin for begin, end in waits), default=0),
        unread_at_end=any(end == notes.end_us for _, end in waits),
        again=None if None in again else sum(number or 0 for number in again),
    )


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
    return "none" if not owners else "one" if owners == 1 else "several"


def _add(intervals: list[Interval], from_us: int, to_us: int, owners: Sequence[str], state: OwnerState) -> None:
    """One more stretch, which goes on with the last one when nothing differs."""
    ids = tuple(sort_client_ids(owners))
    if intervals and intervals[-1].state == state and intervals[-1].owners == ids:
        from_us = intervals.pop().from_us
    intervals.append(Interval(from_us, to_us, state, ids))


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
    queue, end_us = notes.queue, notes.end_us
    ends = {end: end - begin for begin, end in waits}
    takeovers: list[Takeover] = []
    earlier = Earlier(scenario.latency_us // 2, end_us)
    for hold in notes.holds:
        stored, stored_since, read_until = earlier.position(hold.from_us), earlier.persisted, earlier.read_until
        earlier.add(hold, stored)
        if hold.from_us < 0:
            continue
        again_us = _again_us(hold.read_until(end_us), read_until, stored, scenario.consume_us)
        rate = scenario.rates.get(queue)
        first = next((begin for begin, _ in hold.reads(end_us)), None)
        takeovers.append(
            Takeover(
                queue=queue,
                client_id=hold.client_id,
                at_us=hold.from_us,
                reads_from_us=hold.reads_from_us,
                unread_us=None if first is None else ends.get(first, 0),
                start=start(stored_since=stored_since),
                again_us=again_us,
                again=0 if again_us == 0 else None if rate is None else ceil(rate * again_us / SECOND_US),
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
        Takeover(
            queue=notes.queue,
            client_id=hold.client_id,
            at_us=hold.from_us,
            reads_from_us=hold.reads_from_us,
            unread_us=next((begin - hold.from_us for begin, _ in hold.reads(notes.end_us)), None),
            start=start(stored_since=has_file(hold)),
            again_us=0,
            again=0,
        )
        for hold in notes.holds
        if hold.from_us >= 0
    )


def _again_us(own_end: int | None, read_until: int | None, stored: int | None, consume_us: int) -> int:
    """How much both this owner and one before it deliver, as a length of time."""
    if stored is None or read_until is None or own_end is None:
        return 0
    return max(min(read_until, own_end) - stored, 0) + consume_us
