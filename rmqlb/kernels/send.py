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
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from rmqlb.kernels.fault_lanes import FaultLanes, Stage
from rmqlb.kernels.send_plan import NEVER, OK, REFUSED, TIMEOUT, SendPlan
from rmqlb.kernels.send_tables import Bools, Ints, SendTables
from rmqlb.kernels.splitmix import GAMMA, Bits, mix, stream_keys

MASK = 0x7FFFFFFF
MOST_LANES = 4096
_MEMORY = 64_000_000
_BUFFERED = 64
_PLAIN, _IDLE, _ODD = 0, 1, 2
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, kw_only=True)
class SendCounts:
    """What came of each trial. All arrays are int64 but two, and their first axis is the trial.

    Attributes:
        flagged: bool, shape (n,): the trial left what is reproduced here, and its figures mean nothing.
        picks: shape (n, rows): how often a queue was chosen.
        failed: shape (n, rows): attempts that failed.
        stored: shape (n, rows): attempts that were stored; with `failed`, all attempts.
        stored_by_broker: shape (n, brokers).
        attempts: shape (n,).
        messages: shape (n,).
        not_store_ok: shape (n,): messages stored with a lesser status.
        lost: shape (n, reasons): messages lost, by reason.
        extra_attempts: shape (n,): attempts beyond each message's first.
        retried: shape (n,): messages with more than one attempt.
        failing: shape (n,): ticks in failed attempts.
        longest: shape (n,): ticks of the longest send.
        last_done: shape (n,): the tick at which the last message was done.
        isolations: shape (n, brokers).
        avoided: shape (n, brokers): ticks for which a broker was isolated or not listed.
        began: shape (n, failures): when a failure began, −1 when no message came to it.
        avoided_at: shape (n, failures): when its broker was first isolated or unlisted while it lasted, or −1.
    """

    flagged: Bools
    picks: Ints
    failed: Ints
    stored: Ints
    stored_by_broker: Ints
    attempts: Ints
    messages: Ints
    not_store_ok: Ints
    lost: Ints
    extra_attempts: Ints
    retried: Ints
    failing: Ints
    longest: Ints
    last_done: Ints
    isolations: Ints
    avoided: Ints
    began: Ints
    avoided_at: Ints


class SendKernel:
    """A scenario, ready to be run for any trials.

    Args:
        plan: the scenario.

    Attributes:
        lanes: how many trials at a time stay within some 64 MB of memory, results included.
    """

    def __init__(self, plan: SendPlan) -> None:
        self._tables = SendTables(plan)
        per_lane = 112 * len(plan.row_brokers) + 128 * plan.threads + 64 * (plan.brokers + len(plan.failures)) + 1024
        self.lanes = max(16, min(MOST_LANES, _MEMORY // per_lane))

    def run(self, trials: Sequence[int]) -> SendCounts:
        """Simulate trials.

        Args:
            trials: their numbers, best no more than `lanes` of them.

        Returns:
            Their counts, in that order.
        """
        block = _Block(self._tables, np.asarray(trials, np.int64))
        block.run()
        return block.counts


class _Block:
    """Trials under way.

    Args:
        tables: the scenario.
        trials: numbers of the trials.

    Attributes:
        counts: the results; a lane's are there when it is at its end.
    """

    def __init__(self, tables: SendTables, trials: Ints) -> None:
        plan = tables.plan
        self._tables, self._plan = tables, plan
        self._lanes = len(trials)
        self._all = np.arange(self._lanes)
        self._ids = self._all
        self.counts = _no_counts(plan, len(trials))
        self._shift = (plan.threads - 1).bit_length()
        self._far = NEVER >> self._shift
        self._end = min(plan.end, self._far)
        self._faults = FaultLanes(tables, self._lanes) if plan.strategy != "plain" else None
        self._stages: tuple[Stage, ...] = {
            "plain": ("other",),
            "filter": ("available", "reachable"),
            "scan": ("scan",),
        }[plan.strategy]  # type: ignore[assignment]
        self._one_step = plan.strategy == "scan" or (plan.strategy == "plain" and plan.plain_scan)
        first = plan.timeout_ms
        if plan.cap_ms is not None and plan.attempts > 1:
            first = min(first, plan.cap_ms)
        self._first_ms = first
        self._late = tables.slowest > first * tables.per_ms or first == 0
        self._tracks = self._faults is not None and (plan.strategy == "scan" or not tables.reachable.all())
        self._slow = tables.slowest >= tables.isolates_from
        self._make_threads(trials)
        self._make_lanes()
        self._buffer = np.empty(_BUFFERED * self._lanes, np.int64)
        self._filled = 0
        if len(plan.lists) == 1:
            self._new_index(np.arange(plan.threads * self._lanes), np.zeros(plan.threads * self._lanes, np.int64))

    def _make_threads(self, trials: Ints) -> None:
        plan = self._plan
        threads, places = plan.threads, plan.threads * self._lanes
        number = np.repeat(np.arange(threads), self._lanes)
        self._wake = self._key(number * (plan.interval or 0), number)
        self._code = np.full(places, _IDLE, np.int8)
        self._began = np.full(places, self._far)
        self._index = np.zeros(places, np.int64)
        self._next: Bits = np.concatenate([stream_keys(plan.seed, trials, thread + 1) for thread in range(threads)])
        self._next += GAMMA
        self._list = np.full(places, -1, np.int64)
        self._arrival = number
        self._attempt = np.zeros(places, np.int64)
        self._row = np.zeros(places, np.int64)
        self._kept = np.zeros(places, np.bool_)
        self._phase = np.zeros(places, np.int64)
        self._isolates = np.zeros(places, np.int64)

    def _make_lanes(self) -> None:
        plan, lanes = self._plan, self._lanes
        self._segment = np.zeros(lanes, np.int64)
        self._segment_end = np.full(lanes, self._tables.ends[0])
        self._failing = bool(self._tables.failing[0])
        self._next_detect = np.full(lanes, 3000 * self._tables.per_ms)
        self._flagged = np.zeros(lanes, np.bool_)
        self._news = False
        self._started = np.zeros(lanes, np.int64)
        self._longest = np.zeros(lanes, np.int64)
        self._last_done = np.zeros(lanes, np.int64)
        self._last_wake = np.zeros(lanes, np.int64)
        self._not_store_ok = np.zeros(lanes, np.int64)
        self._extra = np.zeros(lanes, np.int64)
        self._retried = np.zeros(lanes, np.int64)
        self._failing_time = np.zeros(lanes, np.int64)
        self._lost = np.zeros(plan.reasons * lanes, np.int64)
        rows = len(plan.row_brokers)
        self._attempts = np.zeros(2 * rows * lanes, np.int64)
        self._empty_picks = np.zeros(rows * lanes, np.int64)

    def run(self) -> None:
        """Go on until every lane is at its end."""
        while self._lanes:
            for _ in range(32):
                self._step()
            self._retire()

    # ---------------------------------------------------------------- a step

    def _step(self) -> None:
        now, places = self._earliest()
        self._look_outside(now)
        busy = self._end_attempts(now, places)
        self._begin(now, places, busy)
        if self._news:
            self._stop_flagged()

    def _earliest(self) -> tuple[Ints, Ints | None]:
        if self._plan.threads == 1:
            return self._wake.copy(), None
        key = np.minimum.reduce(self._wake.reshape(-1, self._lanes), axis=0)
        places = (key & ((1 << self._shift) - 1)) * self._lanes
        places += self._all
        key >>= self._shift
        return key, places

    def _key(self, at: Ints, threads: Ints) -> Ints:
        """A wake, made so that the earliest is the least, and of those at one time the lowest thread's."""
        return (at << self._shift) | threads if self._shift else at

    def _sleep(self, places: Ints | None, at: Ints) -> None:
        if places is None:
            self._wake[:] = at
        else:
            self._wake[places] = self._key(at, places // self._lanes) if self._shift else at

    def _look_outside(self, now: Ints) -> None:
        tables = self._tables
        if len(tables.starts) > 1:
            due = (now >= self._segment_end).nonzero()[0]
            if due.size:
                self._segment[due] = segment = np.searchsorted(tables.starts, now[due], side="right") - 1
                self._segment_end[due] = tables.ends[segment]
                self._failing = bool(tables.failing[self._segment].any())
        if self._plan.detects and self._faults is not None:
            due = ((now >= self._next_detect) & (now < self._far)).nonzero()[0]
            if due.size:
                period = 3000 * tables.per_ms
                self._next_detect[due] += ((now[due] - self._next_detect[due]) // period + 1) * period
                self._faults.detect(due, self._segment[due])

    # ---------------------------------------------------------------- the end of attempts

    def _end_attempts(self, now: Ints, places: Ints | None) -> Ints | None:
        """The threads' attempts are over.

        Returns:
            The lanes whose thread has another attempt of its message under way; None when there is none.
        """
        code = self._code if places is None else self._code[places]
        began = self._began if places is None else self._began[places]
        # An idle thread's message began in the far future; one that goes on takes no less in the end.
        np.maximum(self._longest, now - began, out=self._longest)
        if self._plan.interval is not None:
            np.copyto(self._last_done, now, where=code != _IDLE)
        if self._tracks:
            self._learn_plain(now, places, code)
        odd = code.nonzero()[0]
        if odd.size:
            odd = odd[code[odd] != _IDLE]
        if not odd.size:
            return None
        at = odd if places is None else places[odd]
        then = now[odd]
        outcome = code[odd] - _ODD
        tables = self._tables
        if self._faults is not None:
            self._faults.learn(
                tables.row_brokers[self._row[at]],
                odd,
                then,
                self._isolates[at],
                tables.reachable[outcome],
                tables.under_way[self._segment[odd]],
            )
        self._kept[at] |= tables.lesser[outcome]
        again = tables.retry[outcome] & (self._attempt[at] < self._plan.attempts)
        reason = tables.reason[outcome]
        if again.any():
            which = again.nonzero()[0]
            passed = which[self._retry(odd[which], at[which], then[which])]
            again[passed] = False
            reason[passed] = self._plan.reasons - 1
        over = (~again).nonzero()[0]
        if over.size:
            self._end_messages(odd[over], at[over], outcome[over], reason[over])
        return odd[again] if over.size < odd.size else None

    def _learn_plain(self, now: Ints, places: Ints | None, code: npt.NDArray[np.int8]) -> None:
        """Plain attempts say that their broker is reachable, and before 5.1.4 end its isolation."""
        faults = self._faults
        if faults is None or not (faults.isolated or faults.unreachable):
            return
        lanes = (code == _PLAIN).nonzero()[0]
        at = lanes if places is None else places[lanes]
        faults.succeed(self._tables.row_brokers[self._row[at]], lanes, now[lanes])

    def _end_messages(self, lanes: Ints, places: Ints, outcome: npt.NDArray[np.int8], reason: Ints) -> None:
        """Messages are over; an earlier attempt with a lesser status is the result, whatever came later."""
        kept = self._kept[places]
        self._not_store_ok[lanes] += kept & (outcome != OK)
        lost = ((reason >= 0) & ~kept).nonzero()[0]
        self._lost[reason[lost] * self._lanes + lanes[lost]] += 1
        self._attempt[places] = 0
        self._kept[places] = False
        self._phase[places] = 0
        self._code[places] = _PLAIN

    def _retry(self, lanes: Ints, places: Ints, now: Ints) -> Ints:
        """Another attempt, if the deadline allows one.

        Returns:
            Which of these lanes' messages are over because it does not.
        """
        plan, tables = self._plan, self._tables
        if plan.strategy == "filter" and plan.resets:
            self._index[places] = ((self._draw(places) >> _HALF) * np.uint64(MASK) >> _HALF).astype(np.int64)
        row = self._pick(lanes, places, now, tables.row_brokers[self._row[places]])
        budget = plan.timeout_ms - (now - self._began[places] + self._phase[places]) // tables.per_ms
        passed = (budget < 0).nonzero()[0]
        if passed.size:
            self._empty_picks[row[passed] * self._lanes + lanes[passed]] += 1
            some = (budget >= 0).nonzero()[0]
            lanes, places, now, row, budget = lanes[some], places[some], now[some], row[some], budget[some]
        attempt = self._attempt[places] + 1
        self._attempt[places] = attempt
        if plan.cap_ms is not None:
            budget = np.where(attempt < plan.attempts, np.minimum(budget, plan.cap_ms), budget)
        self._extra[lanes] += 1
        self._retried[lanes] += attempt == 2
        if lanes.size:
            self._send(lanes, places, now, row, budget)
        return passed

    # ---------------------------------------------------------------- the next message

    def _begin(self, now: Ints, places: Ints | None, busy: Ints | None) -> None:
        """The threads that are not busy take their next message."""
        plan = self._plan
        free: Bools | None = None
        if busy is not None:
            free = np.ones(self._lanes, np.bool_)
            free[busy] = False
        if plan.interval is not None:
            now, free = self._await(now, places, free)
        stop = now >= self._end
        if plan.limit < NEVER:
            begun = self._started if plan.interval is None else self._of(self._arrival, places)
            stop |= begun >= plan.limit
        if stop.any():
            if free is None:
                free = ~stop
            else:
                stop &= free
                free &= ~stop
            self._stop(now, places, stop.nonzero()[0])
        lanes: Ints | None = None
        if free is not None:
            lanes = free.nonzero()[0]
            if not lanes.size:
                return
            if lanes.size == self._lanes:
                lanes = None
        if lanes is not None:
            now = now[lanes]
            places = lanes if places is None else places[lanes]
            self._started[lanes] += 1
        else:
            self._started += 1
        if plan.interval is not None:
            self._put(self._arrival, places, self._of(self._arrival, places) + plan.threads)
        self._put(self._began, places, now)
        self._put(self._code, places, _PLAIN)
        if len(plan.lists) > 1:
            self._look_at_route(lanes, places)
        row = self._pick(lanes, places, now, None)
        self._send(lanes, places, now, row, None)

    def _await(self, now: Ints, places: Ints | None, free: Bools | None) -> tuple[Ints, Bools | None]:
        """With a rate: a thread that is done waits for its next message; one thread alone has no need to sleep."""
        due = self._of(self._arrival, places) * (self._plan.interval or 0)
        if places is None:
            later = np.maximum(now, due)
            if free is not None:
                later[~free] = now[~free]
            self._look_outside(later)
            return later, free
        early = due > now
        if free is not None:
            early &= free
        waits = early.nonzero()[0]
        if waits.size:
            at = places[waits]
            self._sleep(at, due[waits])
            self._code[at] = _IDLE
            self._began[at] = self._far
            free = ~early if free is None else free & ~early
        return now, free

    def _stop(self, now: Ints, places: Ints | None, lanes: Ints) -> None:
        """These threads have no message any more."""
        if not lanes.size:
            return
        at = lanes if places is None else places[lanes]
        self._wake[at] = NEVER
        self._code[at] = _IDLE
        self._began[at] = self._far
        then = now[lanes]
        self._last_wake[lanes] = np.where(then < self._far, then, self._last_wake[lanes])

    def _look_at_route(self, lanes: Ints | None, places: Ints | None) -> None:
        """The threads take the client's newest queue list, with a round robin that starts anew."""
        wanted = self._tables.queue_list[self._of(self._segment, lanes)]
        new = (self._of(self._list, places) != wanted).nonzero()[0]
        if new.size:
            self._new_index(new if places is None else places[new], wanted[new])

    def _new_index(self, places: Ints, lists: Ints) -> None:
        plan = self._plan
        known = self._list[places] < 0
        self._list[places] = lists
        if plan.start_at is not None:
            given = (known & (places < self._lanes)).nonzero()[0]
            self._index[places[given]] = plan.start_at - 1 + self._tables.sizes[lists[given]]
            places = places[~(known & (places < self._lanes))]
        if not places.size:
            return
        start = (self._draw(places) >> _HALF).astype(np.int64)
        if not plan.any_start:  # the magnitude; that of the least is itself
            start = np.where(start > MASK, (1 << 32) - start, start)
            start = np.where(start > MASK, {"clamp": 0, "mask": 0}.get(plan.index_step, MASK), start)
        self._index[places] = start & MASK

    # ---------------------------------------------------------------- picks

    def _pick(self, lanes: Ints | None, places: Ints | None, now: Ints, last: Ints | None) -> Ints:
        """The rows of the queues for these lanes' next attempts.

        Args:
            lanes: which; None for all.
            places: of their threads.
            now: ticks.
            last: the brokers of the attempts before; None when all are first attempts.
        """
        tables = self._tables
        index = self._of(self._index, places) + 1
        over = index > MASK
        if over.any():
            if self._plan.index_step == "mask":
                index[over] = 0
            else:
                self._flag(self._of(self._all, lanes)[over])
        base, size = self._lists(places)
        spot = index % size
        if base is not None:
            spot += base
        faults = self._faults
        if last is not None or (faults is not None and (faults.isolated or faults.unreachable)):
            self._pass_over(index, spot, base, size, self._of(self._all, lanes), now, last)
        self._put(self._index, places, index)
        return tables.rows[spot]

    def _lists(self, places: Ints | None) -> tuple[Ints | None, Ints | int]:
        """Where the threads' lists begin, and their sizes; one number where there is one list."""
        tables = self._tables
        if len(tables.sizes) == 1:
            return None, int(tables.sizes[0])
        lists = self._of(self._list, places)
        return tables.bases[lists], tables.sizes[lists]

    def _pass_over(
        self,
        index: Ints,
        spot: Ints,
        base: Ints | None,
        size: Ints | int,
        lanes: Ints,
        now: Ints,
        last: Ints | None,
    ) -> None:
        """Correct the picks, each one step ahead, whose broker may not be picked."""
        brokers = self._tables.brokers[spot]
        accepted = (
            brokers != last
            if self._faults is None
            else self._faults.accepts(self._stages[0], brokers, lanes, now, last)
        )
        bad = (~accepted).nonzero()[0]
        if not bad.size:
            return
        bases = np.zeros(bad.size, np.int64) if base is None else base[bad]
        sizes = np.full(bad.size, size) if isinstance(size, int) else size[bad]
        start = index[bad] - 1
        near = (start < 0) | (start > MASK - 2 * sizes - 2)
        if near.any():
            self._flag(lanes[bad[near]])
        moved, found = self._walk(start, bases, sizes, lanes[bad], now[bad], None if last is None else last[bad])
        index[bad] = start + moved
        spot[bad] = found

    def _walk(
        self, start: Ints, bases: Ints, sizes: Ints, lanes: Ints, now: Ints, last: Ints | None
    ) -> tuple[Ints, Ints]:
        """Filter after filter through the list.

        Returns:
            By how many steps each index moves on, and the spots that are found.
        """
        moved, spots = np.zeros_like(start), np.zeros_like(start)
        todo = np.arange(len(start))
        for stage in self._stages:
            steps = self._seek(
                stage,
                start[todo] + moved[todo],
                bases[todo],
                sizes[todo],
                lanes[todo],
                now[todo],
                None if last is None else last[todo],
            )
            hit = steps > 0
            which, steps = todo[hit], steps[hit]
            spots[which] = bases[which] + (start[which] + moved[which] + steps) % sizes[which]
            moved[which] += 1 if self._one_step else steps
            todo = todo[~hit]
            if not todo.size:
                return moved, spots
            moved[todo] += 1 if self._one_step else sizes[todo]
        if self._plan.strategy == "scan":
            self._flag(lanes[todo])
        moved[todo] += 1
        spots[todo] = bases[todo] + (start[todo] + moved[todo]) % sizes[todo]
        return moved, spots

    def _seek(
        self, stage: Stage, start: Ints, bases: Ints, sizes: Ints, lanes: Ints, now: Ints, last: Ints | None
    ) -> Ints:
        """How many steps ahead the first accepted queue is; 0 when none in the list is."""
        tables, faults = self._tables, self._faults
        steps = np.ones_like(start)
        todo = np.arange(len(start))
        while todo.size:
            spots = bases[todo] + (start[todo] + steps[todo]) % sizes[todo]
            brokers = tables.brokers[spots]
            known = None if last is None else last[todo]
            if faults is None:
                accepted = brokers != known
            else:
                accepted = faults.accepts(stage, brokers, lanes[todo], now[todo], known)
            refused = (~accepted).nonzero()[0]
            todo = todo[refused]
            steps[todo] += tables.runs[spots[refused]]
            beyond = steps[todo] > sizes[todo]
            steps[todo[beyond]] = 0
            todo = todo[~beyond]
        return steps

    # ---------------------------------------------------------------- attempts

    def _send(self, lanes: Ints | None, places: Ints | None, now: Ints, row: Ints, budget: Ints | None) -> None:
        """Attempts begin; what they will end in is settled now.

        Args:
            lanes: which; None for all.
            places: of their threads.
            now: ticks.
            row: to which queues.
            budget: how many ms each has; None for first attempts.
        """
        tables = self._tables
        where = self._of(self._all, lanes)
        outcome, took = self._outcomes(where, places, row, budget)
        self._sleep(places, now + took)
        if self._tracks:
            self._put(self._row, places, row)
        isolates = self._isolations(outcome, took)
        cell = row * (2 * self._lanes)
        cell += where
        odd: Ints | None = None
        if outcome is not None:
            failed = tables.failed[outcome]
            cell += failed * self._lanes
            lost = failed.nonzero()[0]
            self._failing_time[where[lost]] += took[lost]
        if budget is not None:
            odd = np.arange(len(row))
        elif outcome is not None:
            odd = (outcome > 0 if isolates is None else (outcome > 0) | (isolates > 0)).nonzero()[0]
        elif isolates is not None:
            odd = isolates.nonzero()[0]
        self._record(cell)
        if odd is None or not odd.size:
            return
        at = odd if places is None else places[odd]
        self._code[at] = _ODD if outcome is None else outcome[odd] + _ODD
        self._row[at] = row[odd]
        self._isolates[at] = 0 if isolates is None else isolates[odd]
        if budget is None:
            self._attempt[at] = 1

    def _outcomes(
        self, lanes: Ints, places: Ints | None, row: Ints, budget: Ints | None
    ) -> tuple[npt.NDArray[np.int8] | None, Ints]:
        """What attempts end in (None: all in SEND_OK) and how many ticks they take."""
        plan, tables = self._plan, self._tables
        brokers = None if tables.one_table and not self._failing else tables.row_brokers[row]
        outcome: npt.NDArray[np.int8] | None = None
        met: Ints | None = None
        empty = None if budget is None else budget == 0
        if budget is None and self._first_ms == 0:
            empty = np.ones(len(row), np.bool_)
        asks: Bools | None = None if empty is None or not empty.any() else ~empty
        failure = row
        if self._failing and brokers is not None:
            failure = tables.reactions[self._segment[lanes] * plan.brokers + brokers]
            met = (failure >= 0).nonzero()[0]
            if met.size:
                failure = failure[met]
                outcome = np.zeros(len(row), np.int8)
                outcome[met] = tables.answer_outcomes[failure]
                answers = tables.answers[failure]
                if not answers.all():
                    asks = np.ones(len(row), np.bool_) if asks is None else asks
                    asks[met] &= answers
        took = self._latencies(places, brokers, asks, len(row))
        if outcome is not None and met is not None:
            cost = tables.costs[failure]
            took[met] = np.where(tables.answers[failure], took[met], cost)
        if self._late or outcome is not None or budget is not None:
            outcome = self._cut(places, outcome, took, budget, empty)
        return outcome, took

    def _cut(
        self,
        places: Ints | None,
        outcome: npt.NDArray[np.int8] | None,
        took: Ints,
        budget: Ints | None,
        empty: Bools | None,
    ) -> npt.NDArray[np.int8] | None:
        """Attempts whose time is over before an answer comes; `took` is corrected for them."""
        plan, tables = self._plan, self._tables
        room = self._first_ms * tables.per_ms if budget is None else budget * tables.per_ms
        late = took > room
        if outcome is not None:
            late &= outcome != REFUSED
        if empty is not None:
            late &= ~empty
        which = late.nonzero()[0]
        if which.size:
            outcome = np.zeros(len(took), np.int8) if outcome is None else outcome
            outcome[which] = TIMEOUT
            took[which] = (room if isinstance(room, int) else room[which]) + plan.overshoot
            if budget is None and plan.cap_ms is None:
                at = which if places is None else places[which]
                bits = self._draw(at) >> _HALF
                self._phase[at] = (bits * np.uint64(tables.per_ms) >> _HALF).astype(np.int64)
        if empty is not None and empty.any():
            outcome = np.zeros(len(took), np.int8) if outcome is None else outcome
            outcome[empty] = TIMEOUT
            took[empty] = plan.empty
        return outcome

    def _latencies(self, places: Ints | None, brokers: Ints | None, asks: Bools | None, count: int) -> Ints:
        """Ticks until healthy brokers answer; lanes that do not ask get anything."""
        if asks is None:
            return self._latency(places, brokers, count)
        took = np.zeros(count, np.int64)
        which = asks.nonzero()[0]
        if which.size:
            at = which if places is None else places[which]
            took[which] = self._latency(at, None if brokers is None else brokers[which], which.size)
        return took

    def _latency(self, places: Ints | None, brokers: Ints | None, count: int) -> Ints:
        tables = self._tables
        if tables.one_table or brokers is None:
            if len(tables.values) == 1:
                return np.full(count, tables.values[0])
            bits = self._draw(places)
            cell = ((bits >> _HALF) * tables.value_counts[0] >> _HALF).astype(np.int64)
            took = tables.values[cell]
            tail = tables.tails[0]
            if tail is not None:
                self._refine(took, bits, (cell == len(tables.values) - 1).nonzero()[0], tail)
            return took
        took = tables.values[tables.value_bases[brokers]]
        drawing = (tables.value_counts[brokers] > 1).nonzero()[0]
        if drawing.size:
            bits = self._draw(drawing if places is None else places[drawing])
            of = brokers[drawing]
            lengths = tables.value_counts[of]
            cell = ((bits >> _HALF) * lengths >> _HALF).astype(np.int64)
            drawn = tables.values[tables.value_bases[of] + cell]
            for broker, tail in enumerate(tables.tails):
                if tail is not None:
                    last = (of == broker) & (cell == lengths.astype(np.int64) - 1)
                    self._refine(drawn, bits, last.nonzero()[0], tail)
            took[drawing] = drawn
        return took

    @staticmethod
    def _refine(took: Ints, bits: Bits, which: Ints, tail: Ints) -> None:
        """The last entry of a table stands for a finer one."""
        if which.size:
            cell = (bits[which] & _LOW) * np.uint64(len(tail)) >> _HALF
            took[which] = tail[cell.astype(np.int64)]

    def _isolations(self, outcome: npt.NDArray[np.int8] | None, took: Ints) -> Ints | None:
        """For how many ticks attempts will isolate their brokers; None: no one does."""
        if self._faults is None:
            return None
        tables = self._tables
        isolates: Ints | None = None
        if self._slow:
            slow = (took >= tables.isolates_from).nonzero()[0]
            if slow.size:
                isolates = np.zeros(len(took), np.int64)
                isolates[slow] = tables.durations(took[slow])
        if outcome is not None:
            isolates = np.zeros(len(took), np.int64) if isolates is None else isolates
            isolates[tables.isolation[outcome]] = self._plan.isolation_ms * tables.per_ms
        return isolates

    def _draw(self, places: Ints | None) -> Bits:
        """The threads' next random numbers."""
        if places is None:
            bits = mix(self._next)
            self._next += GAMMA
        else:
            state = self._next[places]
            bits = mix(state)
            state += GAMMA
            self._next[places] = state
        return bits

    # ---------------------------------------------------------------- arrays

    @staticmethod
    def _of(values: Ints, where: Ints | None) -> Ints:
        return values if where is None else values[where]

    @staticmethod
    def _put(values: npt.NDArray[np.int64] | npt.NDArray[np.int8], where: Ints | None, new: Ints | int) -> None:
        if where is None:
            values[:] = new
        else:
            values[where] = new

    def _record(self, cells: Ints) -> None:
        """Count attempts by row, whether they fail, and lane; many together are counted faster."""
        filled = self._filled + len(cells)
        if filled > len(self._buffer):
            self._count()
            filled = len(cells)
        self._buffer[self._filled : filled] = cells
        self._filled = filled

    def _count(self) -> None:
        self._attempts += np.bincount(self._buffer[: self._filled], minlength=len(self._attempts))
        self._filled = 0

    def _flag(self, lanes: Ints) -> None:
        self._flagged[lanes] = True
        self._news = True

    def _stop_flagged(self) -> None:
        self._news = False
        lanes = self._flagged.nonzero()[0]
        self._wake.reshape(-1, self._lanes)[:, lanes] = NEVER
        self._code.reshape(-1, self._lanes)[:, lanes] = _IDLE
        self._began.reshape(-1, self._lanes)[:, lanes] = self._far

    def _retire(self) -> None:
        """Note the results of lanes at their end, and drop them when they are many."""
        active = (self._wake.reshape(-1, self._lanes) < NEVER).any(axis=0)
        kept = active.nonzero()[0]
        if kept.size > 0.8 * self._lanes:
            return
        self._count()
        self._note((~active).nonzero()[0])
        self._keep(kept)

    def _note(self, lanes: Ints) -> None:
        counts, ids, plan, tables = self.counts, self._ids[lanes], self._plan, self._tables
        attempts = self._attempts.reshape(-1, 2, self._lanes)[:, :, lanes]
        counts.flagged[ids] = self._flagged[lanes]
        counts.stored[ids], counts.failed[ids] = attempts[:, 0].T, attempts[:, 1].T
        counts.picks[ids] = self._empty_picks.reshape(-1, self._lanes)[:, lanes].T + attempts.sum(axis=1).T
        for broker in range(plan.brokers):
            counts.stored_by_broker[ids, broker] = attempts[tables.row_brokers == broker, 0].sum(axis=0)
        counts.attempts[ids] = attempts.sum(axis=(0, 1))
        counts.messages[ids] = self._started[lanes]
        counts.not_store_ok[ids] = self._not_store_ok[lanes]
        counts.lost[ids] = self._lost.reshape(-1, self._lanes)[:, lanes].T
        counts.extra_attempts[ids] = self._extra[lanes]
        counts.retried[ids] = self._retried[lanes]
        counts.failing[ids] = self._failing_time[lanes]
        counts.longest[ids] = self._longest[lanes]
        wake = self._last_wake[lanes]
        counts.last_done[ids] = done = wake if plan.interval is None else self._last_done[lanes]
        end = np.maximum(done, wake)
        if plan.end < NEVER:
            end = np.maximum(end, plan.end)
        faults = FaultLanes(tables, self._lanes) if self._faults is None else self._faults
        counts.isolations[ids] = faults.isolations.reshape(-1, self._lanes)[:, lanes].T
        counts.avoided[ids] = faults.avoided_until(lanes, wake, end)
        for index, failure in enumerate(plan.failures):
            first = np.minimum(
                faults.first.reshape(-1, self._lanes)[index, lanes],
                np.where(wake >= failure.unlisted, failure.unlisted, NEVER),
            )
            counts.began[ids, index] = np.where(wake >= failure.began, failure.began, -1)
            counts.avoided_at[ids, index] = np.where(first < NEVER, first, -1)

    def _keep(self, lanes: Ints) -> None:
        before, self._lanes = self._lanes, len(lanes)
        self._ids = self._ids[lanes]
        self._all = np.arange(len(lanes))
        if self._faults is not None:
            self._faults.keep(lanes)
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray) and name not in ("_ids", "_all", "_buffer"):
                setattr(self, name, np.ascontiguousarray(values.reshape(-1, before)[:, lanes]).ravel())


def _no_counts(plan: SendPlan, trials: int) -> SendCounts:
    rows, brokers, failures = len(plan.row_brokers), plan.brokers, len(plan.failures)
    width = {"picks": rows, "failed": rows, "stored": rows, "lost": plan.reasons, "isolations": brokers}
    width |= {"stored_by_broker": brokers, "avoided": brokers, "began": failures, "avoided_at": failures}
    arrays = {
        field.name: np.zeros((trials, width[field.name]) if field.name in width else trials, np.int64)
        for field in fields(SendCounts)
        if field.name != "flagged"
    }
    return SendCounts(flagged=np.zeros(trials, np.bool_), **arrays)
