"""Jumping over stretches that repeat themselves: between two events a producer's behaviour is periodic.

Rules of this file:
- What is jumped over was seen, never derived. A *period*: the state before a message equals, times taken relative, the
  state before an earlier one, and nothing random or new happened in between. A *stretch*: what one thread once did from
  a state on until the next random number came; from an equal state it does the same.
- Messages that wait for their thread repeat themselves too, until the last of them is sent.
- A jump ends at the next event outside, slice of the time line, end of an isolation, message-numbered moment, or wrap
  of a 32-bit index; what lies between is simulated attempt by attempt.
"""

from __future__ import annotations

from math import lcm

from msgspec import Struct

from rmqlb.engine.send.clock import Thread
from rmqlb.engine.send.cluster_state import NEVER
from rmqlb.engine.send.profile import ClientProfile
from rmqlb.engine.send.publish_info import MASK, break_margin, int32, meets_break, steps_before_break
from rmqlb.engine.send.simulation import Moment, SendSimulation

_MIN = -0x80000000
_MOST_STRETCHES = 1000
Key = tuple[object, ...]


class _State(Struct):
    """A state before a message of the first thread."""

    place: object  # its round robin's place; two equal states have the same, and it is told apart in no time
    fixed: Key  # all that the coming messages depend on, isolations by the tick at which they end
    moving: Key  # likewise, isolations by how long they last from then on
    moment: Moment


class _Milestone:
    """A state to come back to; until it comes back, later ones replace it at distances that double."""

    def __init__(self) -> None:
        self.state: _State | None = None
        self.restart(1)

    def restart(self, distance: int) -> None:
        """Forget the state: the next one is taken."""
        self.state = None
        self._distance = self._left = distance

    def is_due(self) -> bool:
        """Another message comes by: its state is to be taken."""
        self._left -= 1
        return self.state is None or self._left < 0

    def take(self, state: _State) -> None:
        if self.state is not None:
            self._distance *= 2
        self._left = self._distance
        self.state = state


class FastForward:
    """Finds periods and stretches, and has the simulation repeat them."""

    def __init__(self, simulation: SendSimulation) -> None:
        self._simulation = simulation
        self._news = (-1, -1)
        self._messages = 0
        self._near, self._wide = _Milestone(), _Milestone()
        self._near_distance = 1
        self._jumped = False
        self._stretches = _Stretches(simulation)

    def jump(self, thread: Thread, now: int) -> bool:
        """Before the first thread's next message: jump ahead if what follows is known; True when it did."""
        simulation = self._simulation
        news = (simulation.surprises, simulation.cluster.changes)
        if news != self._news:
            # No state before it comes back; and where each message has news, no time is lost on looking.
            self._news = news
            self._stretches.end()
            self._near_distance = 2 * len(simulation.cluster.queues) * len(simulation.threads) + 8
            self._near.restart(self._near_distance)
            self._wide.restart(1)
            return False
        self._messages += 1
        if self._must_watch() or self._messages % self._stride():
            return False
        stretch = self._stretches.next(thread, now)
        if stretch is not None and _room(simulation, *stretch, now, cut=False) >= 1:
            self._repeat(*stretch, 1, thread, now, isolations=False)
            return True
        due = self._near.is_due()
        near, wide = self._near.state, self._wide.state
        place = _residue_of(simulation, thread)
        if not (due or self._jumped or any(known is not None and known.place == place for known in (near, wide))):
            return False
        return self._compare(_State(place, *_keys(simulation, thread, now), simulation.moment(now)), thread, due=due)

    def _compare(self, state: _State, thread: Thread, *, due: bool) -> bool:
        """Jump if the state has been here before; else it may be a state to come back to."""
        near, wide = self._near.state, self._wide.state
        if wide is not None and wide.moving == state.moving and self._again(wide, state, thread, isolations=True):
            self._wide.state = None
            return True
        if near is not None and near.fixed == state.fixed:
            self._jumped = self._again(near, state, thread, isolations=False)
            return self._jumped
        if near is not None and near.moving == state.moving:
            return self._again(near, state, thread, isolations=True)
        if self._jumped:
            # A period may span many isolations, each jumped over for itself: a slow broker is tried again and again.
            self._jumped = False
            if self._wide.is_due():
                self._wide.take(state)
        if due:
            self._near.take(state)
        return False

    def _again(self, since: _State, until: _State, thread: Thread, *, isolations: bool) -> bool:
        """Jump over as many periods from one state to the other as there is room for."""
        first, last, simulation = since.moment, until.moment, self._simulation
        waited = first.waits != last.waits and first.late != last.late
        if waited or _meets_break(simulation.profile, first, last):
            self._near.restart(self._near_distance)  # it would be no period the next time either
            self._wide.state = None
            return False
        own = len(simulation.indexed)
        if first.indexes[own:] != last.indexes[own:] and not _same_remainders(simulation, first, last):
            return False
        times = _room(simulation, first, last, last.now, cut=not isolations)
        if times >= 1:
            self._repeat(first, last, times, thread, last.now, isolations=isolations)
        return times >= 1

    def _repeat(self, first: Moment, last: Moment, times: int, thread: Thread, now: int, *, isolations: bool) -> None:
        simulation = self._simulation
        simulation.clock.wake(thread, simulation.repeat(first, last, times, now, isolations=isolations))
        self._near.restart(self._near_distance)

    def _must_watch(self) -> bool:
        """The detector is at work: its rounds are not periods of the producer's."""
        simulation = self._simulation
        return simulation.scenario.detector and not all(item.reachable for item in simulation.strategy.items.values())

    def _stride(self) -> int:
        """Of how many messages one is looked at: a state costs as much as there are requests under way."""
        requests = len(self._simulation.clock.events) - len(self._simulation.threads)
        return 1 << max(requests // 32, 0).bit_length()


class _Stretches:
    """What one thread did from a state on until the next random number.

    A retry's round robin starts at a random place, of which there are as many as queues: the same few stretches come
    again and again, where no period lasts.
    """

    def __init__(self, simulation: SendSimulation) -> None:
        scenario = simulation.scenario
        self._simulation = simulation
        # What is equal at both ends must be all that there is: a thread that is idle then, and isolations that only
        # lengthen.
        plain = not scenario.latency_fault or simulation.profile.only_extends
        self._possible = scenario.threads == 1 and scenario.mode == "sync" and plain
        self._known: dict[Key, tuple[Moment, Moment]] = {}
        self._looked = False
        self._first: tuple[Key, Moment, list[tuple[int, bool]]] | None = None
        self._last: tuple[Moment, list[tuple[int, bool]]] | None = None

    def next(self, thread: Thread, now: int) -> tuple[Moment, Moment] | None:
        """What comes from this state on, if it is the first since the last random number, and known."""
        if not self._possible:
            return None
        simulation = self._simulation
        if self._looked:
            if self._first is not None:
                self._last = simulation.moment(now), self._brokers()
            return None
        self._looked = True
        key = (_keys(simulation, thread, now)[1], *simulation.clock.lateness(now))
        known = self._known.get(key)
        if known is None and len(self._known) < _MOST_STRETCHES:
            self._first = key, simulation.moment(now), self._brokers()
        return known

    def end(self) -> None:
        """A random number, or something outside: what was done before it is remembered."""
        if self._first is not None and self._last is not None:
            (key, first, before), (last, after) = self._first, self._last
            if before == after and not _meets_break(self._simulation.profile, first, last):
                self._known[key] = first, last
        self._looked, self._first, self._last = False, None, None

    def _brokers(self) -> list[tuple[int, bool]]:
        return [(item.start, item.reachable) for item in self._simulation.strategy.items.values()]


def _room(simulation: SendSimulation, first: Moment, last: Moment, now: int, *, cut: bool) -> int:
    """How often what came between two moments fits in before something else happens; `cut` by an isolation's end."""
    clock, cluster = simulation.clock, simulation.cluster
    limit = simulation.next_boundary(now, isolations=cut)
    period, messages = last.now - first.now, last.started - first.started
    times = (limit - 1 - now) // period if period else NEVER  # what ends at that very tick comes after it
    if messages:
        before = min(cluster.next_message - 1, clock.limit if clock.interval is None else NEVER)
        times = min(times, (before - clock.started) // messages)
    if clock.interval is not None:
        for thread, since, until in zip(simulation.threads, first.arrivals, last.arrivals, strict=True):
            if until > since:
                # The period ends with a message's arrival, and there must be one.
                times = min(times, (clock.limit - 1 - thread.arrival) // (until - since))
                late = now - clock.arrival_of(thread)
                caught_up = (until - since) * clock.interval - period
                if late >= 0 and caught_up > 0:
                    times = min(times, late // caught_up)
    margin = break_margin(len(cluster.queues))
    for index, since, until in zip(simulation.indexes(), first.indexes, last.indexes, strict=True):
        step = abs(int32(until - since))
        if step:
            times = min(times, (steps_before_break(simulation.profile, index) - margin) // step)
    return times


def _keys(simulation: SendSimulation, thread: Thread, now: int) -> tuple[Key, Key]:
    """All that the coming messages depend on: isolations by the tick at which they end, and by how long they last."""
    profile, cluster, strategy = simulation.profile, simulation.cluster, simulation.strategy
    events = sorted(simulation.clock.events, key=lambda event: event[:2])
    half = len(strategy.items) // 2
    worst = simulation.indexes()[len(simulation.indexed) :] if half > 1 else []  # of one broker it is always that one
    common: Key = (
        cluster.version,
        cluster.changes,
        tuple(_residue_of(simulation, each) for each in simulation.indexed),
        tuple(_residue(profile, index, half, len(cluster.queues) or 1) for index in worst),
        _describe(simulation, thread, now, now),
        *(_describe(simulation, other, at, now) for at, _, other in events),
    )
    if simulation.scenario.mode == "async":
        # Requests without an answer are given up when a table is scanned, each second of the clock.
        common = (*common, now % (1000 * simulation.per_ms) if cluster.reactions else 0)
    if not strategy.enabled:
        return common, common
    if profile.mutates:
        common = (*common, tuple(cluster.queues))
    fixed: list[object] = []
    moving: list[object] = []
    for name, item in strategy.items.items():
        # Up to 5.1.3 `pickOneAtLeast` ranks brokers by their times even when no isolation is left.
        matters = item.start > now or not profile.only_extends
        moving.append((name, item.reachable, (item.start - now, item.latency) if matters else ()))
        fixed.append((name, item.reachable, item.start, item.latency) if item.start > now else moving[-1])
    return (*common, tuple(fixed)), (*common, tuple(moving))


def _describe(simulation: SendSimulation, thread: Thread, at: int, now: int) -> Key:
    """A thread or request that wakes at that time."""
    clock, arrives = simulation.clock, 0
    if clock.interval is not None and thread.number > 0:  # how late a thread is does not matter while it never waits
        arrives = max(clock.arrival_of(thread) - now, 0)
    if not thread.busy:
        return at - now, thread.number, thread.version, arrives
    return (
        at - now,
        max(thread.number, 0),
        thread.version,
        arrives,
        now - thread.began,
        now - thread.started,
        thread.attempt,
        thread.row,
        thread.outcome.name,
        thread.kept,
        thread.failure,
        thread.first,
        tuple(thread.sent),
    )


def _meets_break(profile: ClientProfile, first: Moment, last: Moment) -> bool:
    return any(meets_break(profile, *way) for way in zip(first.indexes, last.indexes, strict=True))


def _same_remainders(simulation: SendSimulation, first: Moment, last: Moment) -> bool:
    """A queue of the better half is the index modulo its broker's write queues, which need not divide the list's."""
    return all(
        (new - old) % lcm(*filter(None, each.info.write_queue_nums.values())) == 0
        for each, old, new in zip(simulation.indexed, first.indexes, last.indexes, strict=False)
    )


def _residue_of(simulation: SendSimulation, thread: Thread) -> object:
    size = len(simulation.cluster.queues) or 1
    return _residue(simulation.profile, thread.info.send_which_queue, size, size)


def _residue(profile: ClientProfile, index: int, modulus: int, size: int) -> object:
    """What the coming positions depend on in a list of that size; near a break, the very index."""
    # −2^31 has no magnitude: `Math.abs` leaves it as it is, and no other index behaves alike.
    if index == _MIN or steps_before_break(profile, index) <= break_margin(size):
        return index, None
    if profile.index_step == "mask":
        return (index & MASK) % modulus
    # Below 0 the magnitude goes down step by step, and the positions with it.
    return index % modulus if index >= 0 else (-index % modulus, "down")
