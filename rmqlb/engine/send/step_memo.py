"""Single-threaded stretches without a replay: what a message does from each place of the round robin is noted once.

Rules of this file:
- Between two events a message's fate depends on its place alone. What it does there is seen, never derived: it is
  simulated the first time, and noted unless anything random, an isolation or an event outside came with it.
- Notes hold while nothing outside changes; which brokers are isolated is part of the place.
"""

from __future__ import annotations

from msgspec import Struct

from rmqlb.engine.send.counters import Growth
from rmqlb.engine.send.publish_info import MASK, break_margin, int32, meets_break, steps_before_break
from rmqlb.engine.send.simulation import Run
from rmqlb.engine.send.thread import Thread

Regime = tuple[tuple[str, bool, bool], ...]
Place = int


class _Step(Struct):
    """What one message does: what it adds to the counters, and where it leads."""

    growth: Growth
    moves: int
    next: Place
    ticks: int
    took: int


class _Pending:
    """A message under way that is to be noted when it is done."""

    __slots__ = ("before", "index", "isolations", "news", "now", "place", "regime", "started")

    def __init__(self, run: Run, regime: Regime, place: Place, news: tuple[int, int], now: int) -> None:
        self.regime = regime
        self.place = place
        self.news = news
        self.now = now
        self.before = run.tally.copy()
        self.index = run.threads[0].info.send_which_queue
        self.isolations = sum(run.tally.isolations.values())
        self.started = run.started


class Walk:
    """Notes what messages do, and counts those that do the same.

    Args:
        run: the simulation that is shortened.

    Attributes:
        possible: the simulation is of the kind that can be walked.
    """

    def __init__(self, run: Run) -> None:
        scenario = run.scenario
        self._run = run
        self._steps: dict[Regime, dict[Place, _Step]] = {}
        self._changes = -1
        self._pending: _Pending | None = None
        self.possible = (
            scenario.threads == 1
            and scenario.mode == "sync"
            and scenario.chosen_by is None
            and not scenario.detector
            and run.profile.index_step == "mask"
            and (not scenario.latency_fault or run.profile.only_extends)
        )

    def advance(self, thread: Thread, now: int) -> bool:
        """Before a message: count the messages from here on that do what is noted of their places.

        Returns:
            Some were counted, and the thread has been given a later time to wake.
        """
        run = self._run
        if run.cluster.changes != self._changes:
            self._changes = run.cluster.changes
            self._steps.clear()
            self._pending = None
        size = len(run.cluster.queues)
        if thread.version != run.cluster.version or not size:
            return False
        if run.interval is not None and run.arrival_of(thread) != now:
            self._pending = None
            return False
        index = thread.info.send_which_queue
        room = steps_before_break(run.profile, index) - break_margin(size)
        if room <= 0:
            self._pending = None
            return False
        regime, place = self._regime(now), (index & MASK) % size
        self._note(thread, now, place)
        steps = self._steps.setdefault(regime, {})
        if place in steps and self._count(thread, now, steps, place, room):
            return True
        if place not in steps:
            news = (run.surprises, run.cluster.changes)
            self._pending = _Pending(run, regime, place, news, now)
        return False

    def _regime(self, now: int) -> Regime:
        return tuple(
            (name, item.start > now, item.reachable)
            for name, item in self._run.strategy.items.items()
            if item.start > now or not item.reachable
        )

    def _note(self, thread: Thread, now: int, place: Place) -> None:
        """The message before is done: note it if nothing else came with it."""
        run, pending = self._run, self._pending
        self._pending = None
        if pending is None or run.started != pending.started + 1:
            return
        if (run.surprises, run.cluster.changes) != pending.news:
            return
        if sum(run.tally.isolations.values()) != pending.isolations:
            return
        index = thread.info.send_which_queue
        if meets_break(run.profile, pending.index, index):
            return
        moves = int32(index - pending.index)
        growth = run.tally.growth(pending.before)
        step = _Step(growth, moves, place, now - pending.now, run.last_done - pending.now)
        self._steps.setdefault(pending.regime, {})[pending.place] = step

    def _count(self, thread: Thread, now: int, steps: dict[Place, _Step], place: Place, room: int) -> bool:
        """Follow the notes as long as nothing else happens, whole rounds at once."""
        run = self._run
        limit = run.next_boundary(now) - 1
        left = min(run.cluster.next_message - 1, run.limit) - run.started
        visits: dict[Place, int] = {}
        seen: dict[Place, tuple[int, int, int]] = {}
        at, messages, moves, done = now, 0, 0, run.last_done
        while messages < left and (step := steps.get(place)) is not None:
            if at + step.ticks > limit or moves + step.moves > room:
                break
            earlier = seen.get(place)
            if earlier is not None:
                rounds = self._rounds(earlier, (at, messages, moves), limit, left, room)
                if rounds > 0:
                    for each in self._round(steps, place):
                        visits[each] = visits.get(each, 0) + rounds
                    done += rounds * (at - earlier[0])
                    at += rounds * (at - earlier[0])
                    messages += rounds * (messages - earlier[1])
                    moves += rounds * (moves - earlier[2])
                seen = {}
                continue
            seen[place] = (at, messages, moves)
            visits[place] = visits.get(place, 0) + 1
            done = at + step.took
            at += step.ticks
            moves += step.moves
            messages += 1
            place = step.next
        if not messages:
            return False
        self._apply(thread, steps, visits, messages, moves)
        run.last_done = max(run.last_done, done)
        run.wake(thread, at)
        return True

    @staticmethod
    def _rounds(earlier: tuple[int, int, int], now: tuple[int, int, int], limit: int, left: int, room: int) -> int:
        """How many whole rounds fit before something else happens."""
        steps = [after - before for before, after in zip(earlier, now, strict=True)]
        ends = (limit, left, room)
        return min((end - here) // step for end, here, step in zip(ends, now, steps, strict=True) if step)

    @staticmethod
    def _round(steps: dict[Place, _Step], place: Place) -> list[Place]:
        """The places of a round, from this one on."""
        places = [place]
        while (following := steps[places[-1]].next) != place:
            places.append(following)
        return places

    def _apply(
        self, thread: Thread, steps: dict[Place, _Step], visits: dict[Place, int], messages: int, moves: int
    ) -> None:
        run, tally = self._run, self._run.tally
        for place, times in visits.items():
            tally.add(steps[place].growth, times)
        run.started += messages
        if run.interval is not None:
            thread.arrival += messages
        thread.info.send_which_queue = int32(thread.info.send_which_queue + moves)
