"""SYNC sends of many trials at once, each trial as `rmqlb.engine.send` simulates it by itself.

Rules of this file:
- A lane is a trial. Lanes go in lockstep: a step takes each lane's earliest thread, which ends its attempt and goes on
  with the next. Wakes at one tick are taken by thread number, so nothing else can come between those two.
- A thread's place in the arrays is thread × lanes + lane. What a step acts on is named by `lanes` (None: all of them)
  and `places` (None: all, with one thread).
- Most attempts are plain: the first of their message, stored, and with nothing to learn from. All others are odd: they
  leave a code and what else must be known when they end.
- A lane that leaves what is reproduced here is flagged and stops; its figures mean nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rmqlb.engine.arrays.lanes import Bools, Codes, Ints, PerLane, Streams, assign, take
from rmqlb.engine.send.vectorized.attempts import Attempts
from rmqlb.engine.send.vectorized.clock import LaneClocks
from rmqlb.engine.send.vectorized.counters import LaneCounters, SendCounts
from rmqlb.engine.send.vectorized.fault_lanes import FaultLanes, Outside
from rmqlb.engine.send.vectorized.picks import Picks
from rmqlb.engine.send.vectorized.scenario import OK, SendPlan
from rmqlb.engine.send.vectorized.tables import SendTables

MOST_LANES = 4096
_MEMORY = 64_000_000
_PLAIN, _IDLE, _ODD = 0, 1, 2
_STEPS, _WORTH_KEEPING = 32, 0.8


class SendKernel:
    """A scenario, ready to be run for any trials."""

    def __init__(self, plan: SendPlan) -> None:
        self._tables = SendTables(plan)
        per_lane = 112 * len(plan.row_brokers) + 128 * plan.threads + 64 * (plan.brokers + len(plan.failures)) + 1024
        # how many trials at a time stay within some 64 MB of memory, results included
        self.lanes = max(16, min(MOST_LANES, _MEMORY // per_lane))

    def run(self, trials: Sequence[int]) -> SendCounts:
        """Simulate trials; returns their counts, in that order."""
        return _Block(self._tables, np.array(trials, np.int64)).run()


class _Block(PerLane):
    """Trials under way: the life of their messages. Arrays are per thread unless said otherwise."""

    def __init__(self, tables: SendTables, trials: Ints) -> None:
        super().__init__(len(trials))
        plan, lanes, places = tables.plan, self.lanes, tables.plan.threads * self.lanes
        self._tables, self._plan = tables, plan
        streams = Streams(plan.seed, trials, plan.threads)
        self._faults = None if plan.strategy == "plain" else FaultLanes(tables, lanes)
        self._clock = LaneClocks(plan, lanes)
        self._outside = Outside(tables, lanes, self._faults)
        self._picks = Picks(tables, streams, self._faults)
        self._attempts = Attempts(tables, streams)
        self._counters = LaneCounters(tables, lanes)
        self._parts = [streams, self._clock, self._outside, self._picks, self._attempts, self._counters]
        if self._faults is not None:
            self._parts.append(self._faults)
        # plain attempts have something to say too, that their broker can be reached
        self._tracks = self._faults is not None and (plan.strategy == "scan" or not tables.reachable.all())
        # `_PLAIN`, `_IDLE`, or `_ODD` plus the outcome that the attempt under way will end in
        self._code: Codes = np.full(places, _IDLE, np.int8)
        self._began = np.full(places, self._clock.far)  # when its message began; far in the future of an idle thread
        self._attempt = np.zeros(places, np.int64)  # the attempt under way, from 1; 0 while it is plain
        self._row = np.zeros(places, np.int64)  # the queue of that attempt, where anybody asks
        # how many earlier attempts of the message were stored with a lesser status
        self._kept = np.zeros(places, np.int64)
        self._isolates = np.zeros(places, np.int64)  # for how many ticks the attempt will isolate its broker

    def run(self) -> SendCounts:
        while self.lanes:
            # Whether any is, costs as much as a step: it is not asked after each.
            for _ in range(_STEPS):
                self._step()
            self._retire()
        return self._counters.counts

    def keep(self, lanes: Ints) -> None:
        super().keep(lanes)
        for part in self._parts:
            part.keep(lanes)

    def _step(self) -> None:
        now, places = self._clock.earliest()
        self._outside.look(now, self._clock.far)
        busy = self._end_attempts(now, places)
        self._begin(now, places, busy)
        if self._picks.news:
            self._stop_flagged()

    def _end_attempts(self, now: Ints, places: Ints | None) -> Ints | None:
        """The threads' attempts are over.

        Returns the lanes whose thread has another attempt of its message under way; None when there is none.
        """
        code = take(self._code, places)
        # Each wake ends something, mostly a message: the longest send is the longest time from a begin to any wake.
        # An idle thread's message began in the far future; one that is not over takes no less in the end.
        np.maximum(self._counters.longest, now - take(self._began, places), out=self._counters.longest)
        if self._plan.interval is not None:
            np.copyto(self._counters.last_done, now, where=code != _IDLE)
        if self._tracks:
            self._learn_plain(now, places, code)
        odd = code.nonzero()[0]
        if odd.size:
            odd = odd[code[odd] != _IDLE]
        if not odd.size:
            return None
        return self._end_odd(odd, odd if places is None else places[odd], now[odd], code[odd] - _ODD)

    def _learn_plain(self, now: Ints, places: Ints | None, code: Codes) -> None:
        """Plain attempts say that their broker is reachable, and before 5.1.4 end its isolation."""
        faults = self._faults
        if faults is None or not (faults.isolated or faults.unreachable):
            return
        lanes = (code == _PLAIN).nonzero()[0]
        at = lanes if places is None else places[lanes]
        faults.succeed(self._tables.row_brokers[self._row[at]], lanes, now[lanes])

    def _end_odd(self, lanes: Ints, places: Ints, now: Ints, outcome: Codes) -> Ints | None:
        tables = self._tables
        if self._faults is not None:
            self._faults.learn(
                tables.row_brokers[self._row[places]],
                lanes,
                now,
                self._isolates[places],
                tables.reachable[outcome],
                tables.under_way[self._outside.segment[lanes]],
            )
        self._kept[places] += tables.lesser[outcome]
        again = tables.retry[outcome] & (self._attempt[places] < self._plan.attempts)
        reason = tables.reason[outcome]
        if again.any():
            which = again.nonzero()[0]
            passed = which[self._retry(lanes[which], places[which], now[which])]
            again[passed] = False
            reason[passed] = self._plan.reasons - 1
        over = (~again).nonzero()[0]
        if over.size:
            self._end_messages(lanes[over], places[over], outcome[over], reason[over])
        return lanes[again] if over.size < lanes.size else None

    def _end_messages(self, lanes: Ints, places: Ints, outcome: Codes, reason: Ints) -> None:
        """Messages are over; an earlier attempt with a lesser status is the result, whatever came later."""
        kept = self._kept[places] > 0
        self._counters.not_store_ok[lanes] += kept & (outcome != OK)
        self._counters.duplicated[lanes] += kept & ((outcome == OK) | (self._kept[places] > 1))
        lost = ((reason >= 0) & ~kept).nonzero()[0]
        self._counters.lose(reason[lost], lanes[lost])
        self._attempt[places] = 0
        self._kept[places] = 0
        self._attempts.phase[places] = 0
        self._code[places] = _PLAIN

    def _retry(self, lanes: Ints, places: Ints, now: Ints) -> Ints:
        """Another attempt, if the deadline allows one.

        Returns which of these lanes' messages are over because it does not.
        """
        plan, tables = self._plan, self._tables
        self._picks.reset(places)
        row = self._picks.pick(lanes, places, now, tables.row_brokers[self._row[places]])
        budget = plan.timeout_ms - (now - self._began[places] + self._attempts.phase[places]) // tables.per_ms
        passed: Ints = (budget < 0).nonzero()[0]
        if passed.size:
            self._counters.pass_deadline(row[passed], lanes[passed])
            some = (budget >= 0).nonzero()[0]
            if not some.size:
                return passed
            lanes, places, now, row, budget = lanes[some], places[some], now[some], row[some], budget[some]
        attempt = self._attempt[places] + 1
        self._attempt[places] = attempt
        if plan.cap_ms is not None:
            budget = np.where(attempt < plan.attempts, np.minimum(budget, plan.cap_ms), budget)
        self._counters.retries[lanes] += 1
        self._counters.retried[lanes] += attempt == 2
        self._send(lanes, places, now, row, budget)
        return passed

    def _begin(self, now: Ints, places: Ints | None, busy: Ints | None) -> None:
        plan = self._plan
        free: Bools | None = None
        if busy is not None:
            free = np.ones(self.lanes, np.bool_)
            free[busy] = False
        if plan.interval is not None:
            now, free = self._await(now, places, free)
        free = self._stop_finished(now, places, free)
        lanes: Ints | None = None
        if free is not None:
            lanes = free.nonzero()[0]
            if not lanes.size:
                return
            now = now[lanes]
            places = lanes if places is None else places[lanes]
        assign(self._counters.started, lanes, take(self._counters.started, lanes) + 1)
        self._clock.begin(places)
        assign(self._began, places, now)
        assign(self._code, places, _PLAIN)
        self._picks.look_at_route(take(self._outside.segment, lanes), places)
        self._send(lanes, places, now, self._picks.pick(lanes, places, now, None), None)

    def _await(self, now: Ints, places: Ints | None, free: Bools | None) -> tuple[Ints, Bools | None]:
        """With a rate: a thread that is done waits for its next message; one thread alone has no need to sleep."""
        due = self._clock.due(places)
        if places is None:
            later = np.maximum(now, due)
            if free is not None:
                later[~free] = now[~free]
            self._outside.look(later, self._clock.far)
            return later, free
        early = due > now
        if free is not None:
            early &= free
        waits = early.nonzero()[0]
        if not waits.size:
            return now, free
        at = places[waits]
        self._clock.sleep(at, due[waits])
        self._make_idle(at)
        return now, ~early if free is None else free & ~early

    def _stop_finished(self, now: Ints, places: Ints | None, free: Bools | None) -> Bools | None:
        """Threads that have no message any more stop; the others stay free."""
        over = self._clock.is_over(now, places, self._counters.started)
        if free is not None:
            over &= free
        lanes = over.nonzero()[0]
        if not lanes.size:
            return free
        at = lanes if places is None else places[lanes]
        self._clock.stop(lanes, at, now[lanes])
        self._make_idle(at)
        return ~over if free is None else free & ~over

    def _make_idle(self, places: Ints) -> None:
        self._code[places] = _IDLE
        self._began[places] = self._clock.far

    def _send(self, lanes: Ints | None, places: Ints | None, now: Ints, row: Ints, budget: Ints | None) -> None:
        """Attempts begin; what they will end in is settled now."""
        outcome, took = self._attempts.settle(
            places, row, budget, take(self._outside.segment, lanes) if self._outside.failing else None
        )
        self._clock.sleep(places, now + took)
        self._counters.attempt(row, take(self.all_lanes, lanes), outcome, took)
        if self._tracks:
            assign(self._row, places, row)
        isolates = None if self._faults is None else self._attempts.isolations(outcome, took)
        if budget is not None:
            odd = np.arange(len(row))
        elif outcome is not None:
            odd = (outcome > OK if isolates is None else (outcome > OK) | (isolates > 0)).nonzero()[0]
        elif isolates is not None:
            odd = isolates.nonzero()[0]
        else:
            return
        at = odd if places is None else places[odd]
        self._code[at] = _ODD if outcome is None else outcome[odd] + _ODD
        self._row[at] = row[odd]
        self._isolates[at] = 0 if isolates is None else isolates[odd]
        if budget is None:
            self._attempt[at] = 1

    def _stop_flagged(self) -> None:
        self._picks.news = False
        lanes = self._picks.flagged.nonzero()[0]
        self._clock.stop_lanes(lanes)
        self._make_idle(np.arange(len(self._code)).reshape(-1, self.lanes)[:, lanes].ravel())

    def _retire(self) -> None:
        """Note the results of lanes at their end, and drop them when they are many: to drop copies all that stays."""
        active = self._clock.active()
        lanes = np.flatnonzero(active)
        if lanes.size > _WORTH_KEEPING * self.lanes:
            return
        if self._plan.interval is None:
            # Without a rate a thread finds that there is no message any more when its last one is done.
            self._counters.last_done = self._clock.last_wake
        faults = FaultLanes(self._tables, self.lanes) if self._faults is None else self._faults
        self._counters.note(np.flatnonzero(~active), self._picks.flagged, self._clock.end, faults)
        self.keep(lanes)
