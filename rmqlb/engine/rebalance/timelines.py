"""The notes of a running simulation, and what they say: intervals, takeovers, redelivered messages, and lag over time.

Messages are a stream of even rate that each owner delivers as it comes, so a position in the queue is a moment in
time. A new owner begins at the last position that was stored before; what others delivered beyond that position is
redelivered, and so is the message that a listener still works on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.backlog import Change, Flow, Lag, Pool, backlog
from rmqlb.engine.rebalance.start_offsets import new_queues, start_of
from rmqlb.model import simulate_rebalance as result
from rmqlb.model.group import RETRY_PREFIX, States
from rmqlb.model.group_scenario import SECOND_US, GroupScenario
from rmqlb.model.message_queue import MessageQueue, grouped, sort_client_ids, sort_queues
from rmqlb.model.result import milliseconds, milliseconds_if_known, sum_if_known
from rmqlb.model.route import TopicRouteData
from rmqlb.model.simulate_rebalance import BAD_STATES, Interval, OwnerState, QueueTimeline, StartOffset, Step, Takeover

Switches = dict[MessageQueue, list[tuple[int, bool]]]
Break = tuple[int, int | None]  # from when to when; None while it lasts


class Hold(Struct, eq=False):
    """A queue in a consumer's table (`ProcessQueue`), until the consumer drops the queue. Times are in microseconds."""

    queue: MessageQueue
    client_id: str
    from_us: int  # negative when it was taken before the start
    persisted_before: Callable[[int], int | None]  # a time → the last time until then at which offsets were stored
    committed_before: Callable[[int], int] = lambda at_us: at_us  # time of storing → time of the last covered delivery
    reads_from_us: int | None = None
    stalled_us: int | None = None
    pauses: list[Break] = []  # its broker answered no pull
    freezes: list[Break] = []  # its owner's process was frozen
    to_us: int | None = None
    persisted: bool = False  # the offset was stored when the queue was dropped
    renewed_us: int = 0  # orderly: when the broker's lock was last renewed
    busy_until_us: int = 0  # orderly: until when the listener holds on to it once it is dropped
    locked: bool = True  # orderly: the client knows that the broker's lock is its own

    @property
    def dropped(self) -> bool:
        """Whether the consumer gave the queue up; the table may keep the queue until the listener lets go."""
        return self.to_us is not None

    @property
    def is_paused(self) -> bool:
        return bool(self.pauses) and self.pauses[-1][1] is None

    def pause(self, at_us: int) -> None:
        if not self.is_paused:
            self.pauses.append((at_us, None))

    def resume(self, at_us: int) -> None:
        self.pauses[-1] = self.pauses[-1][0], at_us

    def owned(self) -> Iterator[Break]:
        yield from _without(self.from_us, self.to_us, self.freezes)

    def turns(self) -> Iterator[tuple[int, bool]]:
        """The times at which its pauses begin (True) and end (False) while it is owned."""
        for owned, until in self.owned():
            for pause, over in self.pauses:
                end = min((at for at in (over, until) if at is not None), default=None)
                if (until is None or pause < until) and (end is None or end > owned):
                    yield max(pause, owned), True
                    if end is not None:
                        yield end, False

    def reads(self, end_us: int) -> Iterator[tuple[int, int]]:
        if self.reads_from_us is not None:
            last = min(at for at in (self.stalled_us, self.to_us, end_us) if at is not None)
            for begin, end in _without(self.reads_from_us, last, self._silences()):
                yield begin, last if end is None else end

    def read_until(self, end_us: int) -> int | None:
        return max((end for _, end in self.reads(end_us)), default=None)

    def stored_before(self, at_us: int) -> int | None:
        """The last time a timer stored the offset; not while the broker is down or the consumer is frozen."""
        tick = self.persisted_before(at_us if self.to_us is None else min(at_us, self.to_us))
        for begin, end in reversed(self._silences()):
            if tick is not None and begin < tick and (end is None or tick < end):
                tick = self.persisted_before(begin)
        return tick

    def stale_position_us(self) -> int | None:
        """The position before a freeze, if the consumer stored it because it dropped the queue before catching up."""
        if not self.persisted or self.to_us is None or not self.freezes:
            return None
        begin, end = self.freezes[-1]
        return begin if end is not None and self.to_us - end < end - begin else None

    def _silences(self) -> list[Break]:
        return sorted([*self.pauses, *self.freezes], key=lambda span: span[0])


def _without(begin: int, end: int | None, breaks: Iterable[Break]) -> Iterator[Break]:
    """The parts of a time span outside its breaks, which are in order of time and may overlap."""
    for away, back in breaks:
        if end is not None and away >= end:
            break
        if begin < away:
            yield begin, away
        if back is None:
            return
        begin = max(begin, back)
    if end is None or begin < end:
        yield begin, end


class EventLog(Struct, eq=False):
    explain: bool
    holds: list[Hold] = []  # in the order in which queues were taken
    there: Switches = {}  # times of creation (True) and removal (False)
    # times when the last process of a queue's broker went (False) and the first came back (True); without an entry it
    # served all the time
    served: Switches = {}
    steps: list[Step] = []  # empty unless `explain`
    last_change_us: int = -1  # of an owner
    rebalances: int = 0
    waiting_pulls: int = 0  # queues that were taken and not yet pulled
    resuming: set[Hold] = set()  # their brokers are back, and their next pull is due

    def take(self, hold: Hold) -> None:
        self.holds.append(hold)
        self.last_change_us = max(self.last_change_us, hold.from_us)

    def drop(self, hold: Hold, at_us: int, *, persisted: bool) -> None:
        hold.to_us = self.last_change_us = at_us
        hold.persisted = persisted and not hold.is_paused
        self.resuming.discard(hold)

    def freeze(self, holds: Iterable[Hold], at_us: int) -> None:
        for hold in holds:
            hold.freezes.append((at_us, None))
            self.last_change_us = at_us
            self.resuming.discard(hold)

    def unfreeze(self, holds: Iterable[Hold], at_us: int) -> None:
        for hold in holds:
            hold.freezes[-1] = hold.freezes[-1][0], at_us
            self.last_change_us = at_us

    def exist(self, queues: Iterable[MessageQueue], at_us: int, *, there: bool) -> None:
        _switch(self.there, queues, (at_us, there), before=False)

    def serve(self, queues: Iterable[MessageQueue], at_us: int, *, served: bool) -> None:
        _switch(self.served, queues, (at_us, served), before=True)


def _switch(switches: Switches, queues: Iterable[MessageQueue], to: tuple[int, bool], *, before: bool) -> None:
    """Note what changes; `before` is the state of a queue without an entry."""
    for queue in queues:
        if to[1] != switches.get(queue, [(0, before)])[-1][1]:
            switches.setdefault(queue, []).append(to)


Span = tuple[int, int]  # from when to when, in microseconds
_Stretch = tuple[int, int, OwnerState, tuple[str, ...]]
StartOf = Callable[[MessageQueue, bool], StartOffset]


def timelines(
    log: EventLog, scenario: GroupScenario, states: States, end_us: int, routes: Sequence[TopicRouteData] = ()
) -> tuple[QueueTimeline, ...]:
    """One timeline for each queue that ever existed, in the clients' order; `routes` are those of the beginning."""
    holds = grouped((hold.queue, hold) for hold in log.holds)
    is_new, found = new_queues(routes), []

    def start(queue: MessageQueue, is_stored: bool) -> StartOffset:
        """The start offset of a new owner; `is_stored`: an earlier owner in the simulation has stored an offset."""
        state = states.get(queue)
        new = state is None and is_new(queue)
        if is_stored and scenario.broadcasting:
            return StartOffset("stored", None, "what its own offset file has")
        if is_stored and new:
            return StartOffset("stored", None, "what an owner before it has stored")
        return start_of(state, scenario.consume_from, topic=queue.topic, is_new=new, own_file=scenario.broadcasting)

    for queue in sort_queues(log.there.keys() | holds.keys()):
        notes = _Notes(queue, holds.get(queue, ()), log.there.get(queue, ()), log.served.get(queue, ()), end_us)
        found.append(_timeline(notes, scenario, start))
    return tuple(found)


class _Notes(Struct, frozen=True, eq=False):
    queue: MessageQueue
    holds: Sequence[Hold]
    there: Sequence[tuple[int, bool]]
    served: Sequence[tuple[int, bool]]
    end_us: int

    def existence(self) -> Iterator[Span]:
        times = [at for at, _ in self.there] + [self.end_us]
        return zip(times[::2], times[1::2], strict=False)

    def by_consumer(self) -> Iterator[_Notes]:
        """With BROADCASTING, no consumer takes over a queue, and each keeps its offsets in its own file."""
        for holds in grouped((hold.client_id, hold) for hold in self.holds).values():
            yield replace(self, holds=holds)


def _timeline(notes: _Notes, scenario: GroupScenario, start_of_owner: StartOf) -> QueueTimeline:
    stretches = _stretches(notes)
    lengths: dict[str, float] = {}
    for kind, state in BAD_STATES.items():
        runs = ((each, list(run)) for each, run in groupby(stretches, key=lambda stretch: stretch[2]))
        found = [run[-1][1] - run[0][0] for each, run in runs if each == state]
        if scenario.broadcasting and kind == "overlap":  # where several owners are the rule
            found = []
        lengths[f"total_{kind}_ms"] = milliseconds(sum(found))
        lengths[f"longest_{kind}_ms"] = milliseconds(max(found, default=0))
    waits, takeovers = list[Span](), list[Takeover]()
    for part in notes.by_consumer() if scenario.broadcasting else (notes,):
        own = list(_waits(part, separately=scenario.broadcasting))
        waits += own
        takeovers += _takeovers(part, scenario, start_of_owner, own)
    takeovers.sort(key=lambda takeover: takeover.at_ms)
    return QueueTimeline(
        topic=notes.queue.topic,
        broker_name=notes.queue.broker_name,
        queue_id=notes.queue.queue_id,
        unread_ms=milliseconds(max((end - begin for begin, end in waits), default=0)),
        unread_at_end=any(end == notes.end_us for _, end in waits),
        redelivered=sum_if_known(takeover.redelivered for takeover in takeovers),
        intervals=tuple(Interval(milliseconds(a), milliseconds(b), state, ids) for a, b, state, ids in stretches),
        takeovers=tuple(takeovers),
        **lengths,
    )


def _stretches(notes: _Notes) -> list[_Stretch]:
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
    """Time, kind (there, served, pause, owner), whether it begins, and the client ID; in the order of time."""
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
    """The state of a queue; owners whose pulls get no answer leave a queue unread, like a dead broker."""
    if not there:
        return "gone"
    if not served or 0 < owners == paused:
        return "outage"
    return "unassigned" if not owners else "one" if owners == 1 else "duplicate-owners"


def _waits(notes: _Notes, *, separately: bool) -> Iterator[Span]:
    """The spans in which no consumer reads the queue: the longest wait of a message in it.

    A queue is not read without an owner, before an owner's first pull, while its broker is down, or if pulls are lost.
    A wait lasts until the simulation ends; a wait that ends because the queue is removed does not count. With
    BROADCASTING (`separately`), messages wait for each consumer separately, while it has the queue.
    """
    end_us, spans = notes.end_us, list(notes.existence())
    if separately:
        owned = [(max(hold.from_us, 0), end_us if hold.to_us is None else hold.to_us) for hold in notes.holds]
        spans = [(max(begin, since), min(end, until)) for since, until in owned for begin, end in spans]
    reads = sorted(span for hold in notes.holds for span in hold.reads(end_us))
    for first, last in spans:
        at = first
        for begin, end in reads:
            if at < begin < last:
                yield at, begin
            at = max(at, end)
        if at < last == end_us:
            yield at, last


def _takeovers(
    notes: _Notes, scenario: GroupScenario, start_of_owner: StartOf, waits: Sequence[Span]
) -> Iterator[Takeover]:
    ends = {end: end - begin for begin, end in waits}
    earlier, rate = _Earlier(scenario.latency_us // 2, notes.end_us), scenario.rates.get(notes.queue)
    for hold in notes.holds:
        stored, is_stored, read_until = earlier.position(hold.from_us), earlier.persisted, earlier.read_until
        earlier.add(hold, stored)
        if hold.from_us < 0:
            continue
        own_end, again_us = hold.read_until(notes.end_us), 0
        if not scenario.broadcasting and stored is not None and read_until is not None and own_end is not None:
            again_us = max(min(read_until, own_end) - stored, 0) + scenario.consume_us
        first = next((begin for begin, _ in hold.reads(notes.end_us)), None)
        start = start_of_owner(notes.queue, is_stored)
        yield Takeover(
            *(notes.queue.topic, notes.queue.broker_name, notes.queue.queue_id),
            client_id=hold.client_id,
            at_ms=milliseconds(hold.from_us),
            reads_from_ms=milliseconds_if_known(hold.reads_from_us),
            unread_ms=None if first is None else milliseconds(ends.get(first, 0)),
            start_rule=start.rule,
            start_offset=start.offset,
            start_reason=start.reason,
            redelivered_ms=milliseconds(again_us),
            redelivered=0 if not again_us else None if rate is None else ceil(rate * again_us / SECOND_US),
        )


class _Earlier(Struct, eq=False):
    """The positions that a queue's earlier owners leave behind; moments are passed in the order of time.

    Owners that have dropped the queue are merged: otherwise each takeover would visit all of them.
    """

    way_us: int  # a message's time to the broker
    end_us: int
    persisted: bool = False  # an owner has stored a position by the moment last passed
    read_until: int | None = None  # the end of the last read
    _owning: list[Hold] = []
    _begun: int | None = None
    _left: int | None = None
    _set_back: tuple[int, int] | None = None  # the time and the value of an old position stored after a freeze

    def add(self, hold: Hold, began_at: int | None) -> None:
        if began_at is not None or hold.from_us >= 0:
            self._begun = _latest(self._begun, hold.from_us if began_at is None else began_at)
        self._owning.append(hold)
        self.read_until = _latest(self.read_until, hold.read_until(self.end_us))

    def position(self, at_us: int) -> int | None:
        """The position that the broker has stored by then; None if no consumer ever read the queue.

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


Reads = Mapping[MessageQueue, Sequence[tuple[int, int, str]]]  # queue → from, to, client ID


def lag_over_time(
    log: EventLog, lines: Sequence[QueueTimeline], scenario: GroupScenario, states: States, end_us: int
) -> result.LagOverTime | None:
    """The lag, by the fluid model on the queues' readers; None if a rate or a listener's time is unknown.

    A topic's inflow goes to its queues that exist and whose brokers run, in the ratio of their rates. A new owner
    without another reader begins at the stored offset: what is redelivered is lag again. Lag begins with the observed
    one. Consumers without consume threads have none.
    """
    queues = [line.queue for line in lines]
    unknown = (each for each in queues if each not in scenario.rates and not each.topic.startswith(RETRY_PREFIX))
    known = scenario.consume_us > 0 and scenario.rates and not any(_is(log.there[each], 0) for each in unknown)
    kinds = {scenario.consumer_type, *scenario.consumer_types.values()}
    if not known or scenario.broadcasting or kinds != {"push"}:
        return None
    reads: dict[MessageQueue, list[tuple[int, int, str]]] = {queue: [] for queue in queues}
    for hold in log.holds:
        reads[hold.queue] += ((begin, end, hold.client_id) for begin, end in hold.reads(end_us))
    of_topics = grouped((queue.topic, rate) for queue, rate in scenario.rates.items())
    usual = {topic: sum(rates) / len(rates) for topic, rates in of_topics.items()}  # of queues that events add
    weights = {each: scenario.rates.get(each, usual.get(each.topic, 0.0)) for each in queues}
    switches = [*log.there.values(), *log.served.values()]
    inflow = {at: _inflow(log, weights, at) for at in {0, *(at for each in switches for at, _ in each)}}
    flows = {
        queue: Flow(
            inflow[0][queue],
            scenario.consume_us / SECOND_US,
            float((state.lag or 0) if (state := states.get(queue)) is not None else 0),
            _readers(reads[queue], 0, end_us),
        )
        for queue in queues
    }
    pools = {hold.client_id: Pool(scenario.consume_threads, scenario.orderly) for hold in log.holds}
    changes = [Change(at / SECOND_US, inflow=rates) for at, rates in inflow.items() if at > 0]
    for queue, spans in reads.items():
        times = sorted({at for begin, end, _ in spans for at in (begin, end) if 0 < at < end_us})
        changes += (Change(at / SECOND_US, {queue: _readers(spans, at, end_us)}) for at in times)
    found = backlog(flows, pools, [*changes, *_redelivered(lines, reads)])
    each = (result.QueueLag(q.topic, q.broker_name, q.queue_id, lag=_curve(lag)) for q, lag in found.queues.items())
    return result.LagOverTime(_curve(found.group), tuple(each), scenario.consume_threads)


def _is(switches: Sequence[tuple[int, bool]], at_us: int) -> bool:
    place = bisect_right(switches, at_us, key=lambda switch: switch[0])
    return place > 0 and switches[place - 1][1]


def _inflow(log: EventLog, weights: Mapping[MessageQueue, float], at_us: int) -> dict[MessageQueue, float]:
    total, serving = defaultdict[str, float](float), defaultdict[str, float](float)
    is_up = {each: _is(log.there[each], at_us) and _is(log.served.get(each, [(0, True)]), at_us) for each in weights}
    for queue, weight in weights.items():
        total[queue.topic] += weight * _is(log.there[queue], 0)
        serving[queue.topic] += weight * is_up[queue]
    scale = {topic: total[topic] / weight if weight else 0.0 for topic, weight in serving.items()}
    return {queue: weight * scale[queue.topic] * is_up[queue] for queue, weight in weights.items()}


def _readers(spans: Sequence[tuple[int, int, str]], at_us: int, end_us: int) -> tuple[str, ...]:
    """The readers from then on; the end of the simulation does not end them."""
    return tuple(dict.fromkeys(who for begin, end, who in spans if begin <= at_us and (at_us < end or end == end_us)))


def _redelivered(lines: Sequence[QueueTimeline], reads: Reads) -> list[Change]:
    found = []
    for line in lines:
        for each in line.takeovers:
            if each.reads_from_ms is None or not each.redelivered:
                continue
            at_us = round(each.reads_from_ms * 1000)
            if not any(begin < at_us < end for begin, end, _ in reads[line.queue]):
                found.append(Change(at_us / SECOND_US, again={line.queue: float(each.redelivered)}))
    return found


def _curve(lag: Lag) -> result.LagCurve:
    def point(at_s: float, messages: float) -> result.LagPoint:
        return result.LagPoint(round(1000 * at_s, 3), round(messages, 3))

    gone_ms = None if lag.gone_s is None else round(1000 * lag.gone_s, 3)
    points, peak = tuple(point(*each) for each in lag.points), None if lag.peak is None else point(*lag.peak)
    return result.LagCurve(points, peak, gone_ms, round(lag.growth, 3))
