"""The notes of a simulation, read queue by queue: intervals, takeovers, and how much is delivered again.

Messages are taken for a stream of even rate that each owner delivers as it comes, so a position in the queue is a
moment in time. An owner that takes a queue begins at the last position that was stored before; what others delivered
beyond it is redelivered. A listener's own time counts on top: what it has in hand is not stored yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import ceil

from msgspec import Struct

from rmqlb.engine.rebalance.event_log import EventLog, Hold
from rmqlb.engine.rebalance.start_offsets import new_queues, start_of
from rmqlb.model.group import States
from rmqlb.model.group_scenario import SECOND_US, GroupScenario
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.route import TopicRouteData
from rmqlb.model.simulate_rebalance import GroupFigures, Interval, OwnerState, QueueTimeline, StartOffset, Takeover
from rmqlb.model.times import milliseconds, milliseconds_if_known
from rmqlb.model.unknown import sum_if_known

Span = tuple[int, int]  # from when to when, in microseconds
_Stretch = tuple[int, int, OwnerState, tuple[str, ...]]
_COUNTED: tuple[OwnerState, ...] = ("unassigned", "duplicate-owners", "outage")  # what should not be


def timelines(
    log: EventLog,
    scenario: GroupScenario,
    states: States,
    end_us: int,
    routes: Sequence[TopicRouteData] = (),
    *,
    gaps_only: bool = False,
) -> tuple[QueueTimeline, ...]:
    """One timeline for each queue that existed at any time, in the clients' order.

    Args:
        states: what was observed of each queue before.
        routes: those of the beginning.
        gaps_only: leave out who took a queue from whom, and what is redelivered.
    """
    holds: dict[MessageQueue, list[Hold]] = {}
    for hold in log.holds:
        holds.setdefault(hold.queue, []).append(hold)
    starts = None if gaps_only else _Starts(scenario, states, routes)
    found = []
    for queue in sort_queues(log.there.keys() | holds.keys()):
        notes = _Notes(queue, holds.get(queue, ()), log.there.get(queue, ()), log.served.get(queue, ()), end_us)
        found.append(_timeline(notes, scenario, starts))
    return tuple(found)


def figures(
    queues: Sequence[QueueTimeline], log: EventLog, first_us: int, *, settled: bool, broadcasting: bool = False
) -> GroupFigures:
    """A simulation in numbers, from the first event on."""
    at_end = Counter(line.intervals[-1].state for line in queues if line.intervals)
    kinds: dict[str, float] = {}
    for kind, state in zip(("gap", "overlap", "outage"), _COUNTED, strict=True):
        totals = [getattr(line, f"total_{kind}_ms") for line in queues]
        kinds[f"longest_{kind}_ms"] = max((getattr(line, f"longest_{kind}_ms") for line in queues), default=0)
        kinds[f"total_{kind}_ms"] = milliseconds(sum(round(total * 1000) for total in totals))
        kinds[f"queues_with_{kind}"] = sum(total > 0 for total in totals)
        kinds[f"queues_with_{kind}_at_end"] = 0 if broadcasting and kind == "overlap" else at_end[state]
    return GroupFigures(
        convergence_ms=milliseconds(max(log.last_change_us - first_us, 0)) if settled else None,
        unread_ms=max((line.unread_ms for line in queues), default=0),
        redelivered=sum_if_known(line.redelivered for line in queues),
        queues_unread_at_end=sum(line.unread_at_end for line in queues),
        taken=sum(len(line.takeovers) for line in queues),
        rebalances=log.rebalances,
        **kinds,  # type: ignore[arg-type]
    )


class _Notes(Struct, frozen=True, eq=False):
    """What was noted of one queue; when it was there and served is as in the `EventLog`."""

    queue: MessageQueue
    holds: Sequence[Hold]
    there: Sequence[tuple[int, bool]]
    served: Sequence[tuple[int, bool]]
    end_us: int

    def existence(self) -> Iterator[Span]:
        begin: int | None = None
        for at, there in (*self.there, (self.end_us, False)):
            if there and begin is None:
                begin = at
            elif not there and begin is not None:
                yield begin, at
                begin = None


class _Starts:
    """Where new owners start to pull."""

    def __init__(self, scenario: GroupScenario, states: States, routes: Sequence[TopicRouteData]) -> None:
        self._scenario, self._states, self._is_new = scenario, states, new_queues(routes)

    def of(self, queue: MessageQueue, *, stored_since: bool) -> StartOffset:
        """`stored_since`: an owner within the simulation has stored an offset before."""
        state, scenario = self._states.get(queue), self._scenario
        new = state is None and self._is_new(queue)
        if stored_since and scenario.broadcasting:
            return StartOffset("stored", None, "what its own offset file has")
        if stored_since and new:
            return StartOffset("stored", None, "what an owner before it has stored")
        own_file = scenario.broadcasting
        return start_of(state, scenario.consume_from, topic=queue.topic, is_new=new, own_file=own_file)


def _timeline(notes: _Notes, scenario: GroupScenario, starts: _Starts | None) -> QueueTimeline:
    stretches = _stretches(notes)
    lengths = _lengths(stretches)
    if scenario.broadcasting:  # where several owners are the rule
        lengths["duplicate-owners"] = []
    gaps, overlaps, outages = (lengths[state] for state in _COUNTED)
    waits = _own_waits(notes) if scenario.broadcasting else _waits(notes)
    take = _own_takeovers if scenario.broadcasting else _takeovers
    takeovers = () if starts is None else tuple(take(notes, scenario, starts, waits))
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
        intervals=tuple(Interval(milliseconds(a), milliseconds(b), state, ids) for a, b, state, ids in stretches),
        takeovers=takeovers,
    )


def _stretches(notes: _Notes) -> list[_Stretch]:
    """The time axis, cut wherever the owners change, or whether the queue can be read."""
    found: list[_Stretch] = []
    owners: list[str] = []
    is_there, is_served, paused, since = False, True, 0, 0
    for at, what, begins, client_id in _changes(notes):
        until = min(at, notes.end_us)
        if until > since:
            state, ids = _state(is_there, is_served, len(owners), paused), tuple(sort_client_ids(owners))
            if found and found[-1][2:] == (state, ids):
                since = found.pop()[0]
            found.append((since, until, state, ids))
            since = until
        if what == "there":
            is_there = begins
        elif what == "served":
            is_served = begins
        elif what == "pause":
            paused += 1 if begins else -1
        elif what == "owner":
            (owners.append if begins else owners.remove)(client_id)
    return found


def _changes(notes: _Notes) -> list[tuple[int, str, bool, str]]:
    """When, what (there, served, pause, owner), whether it begins, and whose; in the order of time, the end last."""
    changes = [(at, "there", there, "") for at, there in notes.there]
    changes += [(at, "served", served, "") for at, served in notes.served]
    for hold in notes.holds:
        for begin, end in hold.owned():
            changes.append((max(begin, 0), "owner", True, hold.client_id))
            if end is not None:
                changes.append((end, "owner", False, hold.client_id))
        changes += [(at, "pause", pauses, "") for at, pauses in hold.turns()]
    return [*sorted(changes, key=lambda change: change[0]), (notes.end_us, "end", True, "")]


def _state(there: bool, served: bool, owners: int, paused: int) -> OwnerState:
    """Owners whose pulls nobody answers leave a queue unread like a dead broker."""
    if not there:
        return "gone"
    if not served or 0 < owners == paused:
        return "outage"
    return "unassigned" if not owners else "one" if owners == 1 else "duplicate-owners"


def _lengths(stretches: Sequence[_Stretch]) -> dict[OwnerState, list[int]]:
    """State → the length of each time that it lasted, whoever the owners were."""
    lengths: dict[OwnerState, list[int]] = {state: [] for state in _COUNTED}
    begin, last = 0, None
    for start, end, state, _ in stretches:
        if state != last:
            begin, last = start, state
            if state in _COUNTED:
                lengths[state].append(0)
        if state in _COUNTED:
            lengths[state][-1] = end - begin
    return lengths


def _waits(notes: _Notes) -> list[Span]:
    """The stretches in which no consumer reads the queue: the longest wait of a message in it.

    Nobody reads it without an owner, before an owner's first pull, while its broker is down or pulls are lost. A wait
    that is not over lasts until the simulation ends; one that ends because the queue is removed does not count.
    """
    reads = sorted(span for hold in notes.holds for span in hold.reads(notes.end_us))
    return [wait for span in notes.existence() for wait in _between(reads, span, notes.end_us)]


def _own_waits(notes: _Notes) -> list[Span]:
    """With BROADCASTING each consumer has messages of its own that wait for it."""
    waits: list[Span] = []
    for hold in notes.holds:
        until = notes.end_us if hold.to_us is None else hold.to_us
        for begin, end in notes.existence():
            span = max(begin, hold.from_us, 0), min(end, until)
            waits += _between(hold.reads(notes.end_us), span, notes.end_us)
    return waits


def _between(reads: Iterable[Span], span: Span, end_us: int) -> Iterator[Span]:
    """The time between reads within a span; after the last one only if the span lasts until the end."""
    at, last = span
    for begin, end in reads:
        if at < begin < last:
            yield at, begin
        at = max(at, end)
    if at < last == end_us:
        yield at, last


def _takeovers(notes: _Notes, scenario: GroupScenario, starts: _Starts, waits: Sequence[Span]) -> Iterator[Takeover]:
    ends = {end: end - begin for begin, end in waits}
    earlier = _Earlier(scenario.latency_us // 2, notes.end_us)
    rate = scenario.rates.get(notes.queue)
    for hold in notes.holds:
        stored, stored_since, read_until = earlier.position(hold.from_us), earlier.persisted, earlier.read_until
        earlier.add(hold, stored)
        if hold.from_us < 0:
            continue
        own_end = hold.read_until(notes.end_us)
        again_us = 0
        if stored is not None and read_until is not None and own_end is not None:
            again_us = max(min(read_until, own_end) - stored, 0) + scenario.consume_us
        first = next((begin for begin, _ in hold.reads(notes.end_us)), None)
        yield _takeover(
            hold,
            unread_us=None if first is None else ends.get(first, 0),
            start=starts.of(notes.queue, stored_since=stored_since),
            again_us=again_us,
            redelivered=0 if not again_us else None if rate is None else ceil(rate * again_us / SECOND_US),
        )


def _own_takeovers(notes: _Notes, scenario: GroupScenario, starts: _Starts, _: Sequence[Span]) -> Iterator[Takeover]:
    """BROADCASTING: nobody takes anything from anybody, and each consumer keeps its offsets in a file of its own."""
    way_us = scenario.latency_us // 2
    by_client: dict[str, list[Hold]] = {}
    for hold in notes.holds:
        by_client.setdefault(hold.client_id, []).append(hold)
    for hold in notes.holds:
        if hold.from_us < 0:
            continue
        earlier = [other for other in by_client[hold.client_id] if other.from_us < hold.from_us]
        has_file = any(other.from_us < 0 or _persisted(other, hold.from_us, way_us) for other in earlier)
        yield _takeover(
            hold,
            unread_us=next((begin - hold.from_us for begin, _ in hold.reads(notes.end_us)), None),
            start=starts.of(notes.queue, stored_since=has_file),
        )


def _takeover(
    hold: Hold, *, unread_us: int | None, start: StartOffset, again_us: int = 0, redelivered: int | None = 0
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
        redelivered_ms=milliseconds(again_us),
        redelivered=redelivered,
    )


class _Earlier(Struct, eq=False):
    """What a queue's owners before a moment leave behind; moments are passed in the order of time.

    Owners that have dropped the queue are summed up: after many restarts there are many, and each takeover would
    otherwise visit all of them.
    """

    way_us: int  # how long a message takes to the broker
    end_us: int
    persisted: bool = False  # one of them has stored a position by the moment last passed
    read_until: int | None = None  # when the last of them reads last
    _owning: list[Hold] = []
    _begun: int | None = None
    _left: int | None = None
    _set_back: tuple[int, int] | None = None  # when a consumer stored an old position after a freeze, and which

    def add(self, hold: Hold, began_at: int | None) -> None:
        if began_at is not None or hold.from_us >= 0:
            self._begun = _latest(self._begun, hold.from_us if began_at is None else began_at)
        self._owning.append(hold)
        self.read_until = _latest(self.read_until, hold.read_until(self.end_us))

    def position(self, at_us: int) -> int | None:
        """The position that the broker has stored by then; None if nobody ever read the queue.

        Brokers store whatever they receive: a consumer that drops a queue after a freeze sets its offset back.
        """
        for hold in [each for each in self._owning if each.to_us is not None and each.to_us + self.way_us <= at_us]:
            self._owning.remove(hold)
            self._left = _latest(self._left, *_persisted(hold, at_us, self.way_us))
            stale = hold.stale_position_us()
            if stale is not None and hold.to_us:
                self._set_back = max((hold.to_us + self.way_us, stale), self._set_back or (0, 0))
        owning = [position for hold in self._owning for position in _persisted(hold, at_us, self.way_us)]
        self.persisted = self._left is not None or bool(owning)
        known = _latest(self._begun, self._left, *owning)
        if self._set_back is not None and (known is None or known <= self._set_back[0]):
            return self._set_back[1]
        return known


def _persisted(hold: Hold, at_us: int, way_us: int) -> list[int]:
    """The positions that an owner has stored by then: by its timer, and when it dropped the queue."""
    known = []
    tick = hold.stored_before(at_us)
    if tick is not None and hold.committed_before(tick) >= hold.from_us:
        known.append(hold.committed_before(tick))
    stale = hold.stale_position_us()
    if stale is not None:
        return [min(tick, stale) for tick in known]
    if hold.persisted and hold.to_us is not None and hold.to_us + way_us <= at_us:
        given_up = hold.committed_before(hold.to_us)
        known += [given_up] if given_up >= hold.from_us else []
    return known


def _latest(*moments: int | None) -> int | None:
    return max((at for at in moments if at is not None), default=None)
