"""Jumping over stretches that repeat themselves: between two events a producer's behaviour is periodic.

A single thread's messages are counted by `walk`; what is left, several threads above all, is jumped over here.

Rules of this file:
- A period is seen, never derived: the state before a message equals, times taken relative, the state before an earlier
  one, and nothing random or new happened in between. Then everything counted since is counted again so many times.
- Messages that wait for their thread repeat themselves too, until the last of them is sent.
- A jump ends at the next event outside, slice of the time line, end of an isolation, message-numbered moment, or wrap
  of a 32-bit index; what lies between is simulated attempt by attempt.
"""

from __future__ import annotations

from heapq import heapify
from math import lcm

from rmqlb.engine.send.cluster_state import NEVER
from rmqlb.engine.send.counters import Counts
from rmqlb.engine.send.profile import ClientProfile
from rmqlb.engine.send.publish_info import MASK, break_margin, int32, meets_break, steps_before_break
from rmqlb.engine.send.simulation import Run
from rmqlb.engine.send.step_memo import Walk
from rmqlb.engine.send.thread import Thread

_MIN = -0x80000000
Key = tuple[object, ...]


class _Mark:
    """A state to come back to."""

    __slots__ = ("arrivals", "counts", "fixed", "indexes", "late", "moving", "now", "started", "waits")

    def __init__(self, run: Run, now: int, fixed: Key, moving: Key) -> None:
        self.now = now
        self.fixed = fixed
        self.moving = moving
        self.started = run.started
        self.counts: Counts = run.tally.copy()
        self.indexes = _indexes(run)
        self.arrivals = [thread.arrival for thread in run.threads]
        self.late = _lateness(run, now)
        self.waits = run.waits


class Steady:
    """Finds periods and jumps.

    Args:
        run: the simulation that is shortened.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._walk = Walk(run)
        self._mark: _Mark | None = None
        self._left = 0
        self._span = 0
        self._wide: _Mark | None = None
        self._wide_left = 0
        self._wide_span = 0
        self._jumped = False
        self._calls = 0
        self._news = (-1, -1)

    def jump(self, thread: Thread, now: int) -> bool:
        """Before the first thread's next message: jump ahead if the state has been here before.

        Returns:
            The thread has been given a later time to wake, and nothing else is to be done now.
        """
        run = self._run
        if self._walk.possible and self._walk.advance(thread, now):
            self._mark = None
            self._jumped = True
            return True
        news = (run.surprises, run.cluster.changes)
        if news != self._news:
            self._news = news
            self._mark = self._wide = None
            self._wide_span = self._wide_left = 1
        if self._mark is None:
            self._span = self._left = 2 * len(run.cluster.queues) * len(run.threads) + 8
        self._calls += 1
        if self._must_watch() or self._calls % _stride(len(run.events) - len(run.threads)):
            return False
        run.avoidance.count(now)
        fixed, moving = self._keys(thread, now)
        wide = self._wide
        if wide is not None and wide.moving == moving and self._repeat(wide, thread, now, moving=True):
            self._wide = None
            return True
        if self._mark is not None and self._mark.fixed == fixed:
            self._jumped = self._repeat(self._mark, thread, now, moving=False)
            return self._jumped
        if self._mark is not None and self._mark.moving == moving:
            return self._repeat(self._mark, thread, now, moving=True)
        self._look_back_to(now, fixed, moving)
        return False

    def _look_back_to(self, now: int, fixed: Key, moving: Key) -> None:
        """Mark this state, at ever greater distances, until one comes back."""
        if self._jumped:
            self._jumped = False
            self._mark_wide(now, fixed, moving)
        self._left -= 1
        if self._mark is None or self._left < 0:
            if self._mark is not None:
                self._span *= 2
            self._left = self._span
            self._mark = _Mark(self._run, now, fixed, moving)

    def _mark_wide(self, now: int, fixed: Key, moving: Key) -> None:
        """A period may span many isolations, each jumped over for itself: a slow broker is tried again and again."""
        self._wide_left -= 1
        if self._wide is None or self._wide_left < 0:
            if self._wide is not None:
                self._wide_span *= 2
            self._wide_left = self._wide_span
            self._wide = _Mark(self._run, now, fixed, moving)

    def _must_watch(self) -> bool:
        """The detector is at work: its rounds are not periods of the producer's."""
        run = self._run
        return run.scenario.detector and not all(item.reachable for item in run.strategy.items.values())

    def _repeat(self, mark: _Mark, thread: Thread, now: int, *, moving: bool) -> bool:
        run = self._run
        indexes = _indexes(run)
        waited = mark.waits != run.waits and mark.late != _lateness(run, now)
        if waited or any(meets_break(run.profile, *way) for way in zip(mark.indexes, indexes, strict=True)):
            self._mark = self._wide = None  # it would be no period the next time either
            return False
        if mark.indexes[-1] != indexes[-1] and not _same_remainders(run, mark.indexes, indexes):
            return False
        times = self._room(mark, now, moving=moving)
        if times < 1:
            return False
        ticks = times * (now - mark.now)
        run.tally.repeat(mark.counts, times)
        run.avoidance.shift(ticks, isolations=moving)
        for item in run.strategy.items.values():
            if moving or item.start <= now:
                item.start += ticks
        for place, (before, after) in enumerate(zip(mark.indexes, indexes, strict=True)):
            _set_index(run, place, after + times * int32(after - before))
        messages = times * (run.started - mark.started)
        run.started += messages
        for each, arrival in zip(run.threads, mark.arrivals, strict=True):
            each.arrival += times * (each.arrival - arrival)
        for _, _, other in run.events:
            other.began += ticks
            other.started += ticks
            other.message += messages
        run.events[:] = [(at + ticks, number, other) for at, number, other in run.events]
        heapify(run.events)
        run.last_done += ticks
        run.wake(thread, now + ticks)
        self._mark = None
        return True

    def _room(self, mark: _Mark, now: int, *, moving: bool) -> int:
        """How many whole periods fit before something else happens."""
        run = self._run
        limit = min(run.cluster.next_at, run.timeline.next_at, run.end) if moving else run.next_boundary(now)
        period, messages = now - mark.now, run.started - mark.started
        times = (limit - 1 - now) // period if period else NEVER  # what ends at that very tick comes after it
        if messages:
            before = min(run.cluster.next_message - 1, run.limit if run.interval is None else NEVER)
            times = min(times, (before - run.started) // messages)
        if run.interval is not None:
            for thread, arrival in zip(run.threads, mark.arrivals, strict=True):
                if thread.arrival > arrival:
                    # The period ends with a message's arrival, and there must be one.
                    times = min(times, (run.limit - 1 - thread.arrival) // (thread.arrival - arrival))
                    late = now - run.arrival_of(thread)
                    caught_up = (thread.arrival - arrival) * run.interval - period
                    if late >= 0 and caught_up > 0:
                        times = min(times, late // caught_up)
        margin = break_margin(len(run.cluster.queues))
        for before_, after in zip(mark.indexes, _indexes(run), strict=True):
            step = abs(int32(after - before_))
            if step:
                times = min(times, (steps_before_break(run.profile, after) - margin) // step)
        return times

    def _keys(self, thread: Thread, now: int) -> tuple[Key, Key]:
        """The state with isolations by their end, and with all times relative."""
        run = self._run
        profile, cluster = run.profile, run.cluster
        size = len(cluster.queues) or 1
        margin = break_margin(size)
        indexes = tuple(_residue(profile, index, modulus, margin) for index, modulus in _places(run, size))
        threads = (
            self._describe(thread, now, now),
            *(self._describe(other, at, now) for at, _, other in sorted(run.events, key=_by_time)),
        )
        common: Key = (cluster.version, cluster.changes, indexes, threads)
        if run.scenario.mode == "async":
            common = (*common, now % (1000 * run.per_ms) if cluster.reactions else 0)
        strategy = run.strategy
        if not strategy.enabled:
            return common, common
        if profile.mutates:
            common = (*common, tuple(cluster.queues))
        fixed: list[object] = []
        moving: list[object] = []
        for name, item in strategy.items.items():
            if item.start > now:
                fixed.append((name, item.start, item.latency, item.reachable))
                moving.append((name, item.start - now, item.latency, item.reachable))
            else:
                about = (item.start - now, item.latency) if not profile.only_extends else ()
                fixed.append((name, item.reachable, about))
                moving.append((name, item.reachable, about))
        return (*common, tuple(fixed)), (*common, tuple(moving))

    def _describe(self, thread: Thread, at: int, now: int) -> Key:
        run = self._run
        arrives = 0
        if run.interval is not None and thread.number > 0:  # how late a thread is does not matter while it never waits
            arrives = max(run.arrival_of(thread) - now, 0)
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


def _stride(requests: int) -> int:
    """Of how many messages one is looked at: a state costs as much as there are requests under way."""
    return 1 << max(requests // 32, 0).bit_length()


def _lateness(run: Run, now: int) -> list[int]:
    """How long each thread's next message has been waiting; below 0 it is still to come."""
    return [] if run.interval is None else [now - run.arrival_of(thread) for thread in run.threads]


def _by_time(event: tuple[int, int, Thread]) -> tuple[int, int]:
    return event[0], event[1]


def _places(run: Run, size: int) -> list[tuple[int, int]]:
    """Each round robin's index with what it is taken modulo."""
    places = [(thread.info.send_which_queue, size) for thread in run.indexed]
    half = len(run.strategy.items) // 2
    places.append((run.strategy.worst_index, half or 1))
    return places


def _indexes(run: Run) -> list[int]:
    return [index for index, _ in _places(run, 1)]


def _same_remainders(run: Run, before: list[int], after: list[int]) -> bool:
    """A queue of the better half is the index modulo its broker's write queues, which need not divide the list's."""
    return all(
        (new - old) % lcm(*filter(None, each.info.write_queue_nums.values())) == 0
        for each, old, new in zip(run.indexed, before, after, strict=False)
    )


def _set_index(run: Run, place: int, value: int) -> None:
    if place < len(run.indexed):
        run.indexed[place].info.send_which_queue = int32(value)
    else:
        run.strategy.worst_index = int32(value)


def _residue(profile: ClientProfile, index: int, modulus: int, margin: int) -> object:
    """What the coming positions depend on; near a break, the very index."""
    if steps_before_break(profile, index) <= margin or index == _MIN:
        return index, None
    if profile.index_step == "mask":
        return (index & MASK) % modulus
    return index % modulus if index >= 0 else (-index % modulus, "down")
