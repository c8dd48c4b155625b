"""`FaultStrategy` (`rmqlb.engine.send.fault`) over lanes: each lane is a producer with brokers that it isolates.

Rules of this file:
- A lane's cell of a broker is broker × lanes + lane.
- A call has each lane at most once, so that a cell is written at most once: numpy would drop all writes but the last.
- A last broker of −1 is a first attempt's; None stands for first attempts alone.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from rmqlb.engine.arrays.lanes import Bools, Ints, PerLane
from rmqlb.engine.send.vectorized.scenario import NEVER
from rmqlb.engine.send.vectorized.tables import SendTables

_DETECTS_EACH_MS = 3000
Stage = Literal["other", "available", "reachable", "scan"]


class FaultLanes(PerLane):
    """What each lane's producer knows of its brokers, and what that adds up to."""

    def __init__(self, tables: SendTables, lanes: int) -> None:
        self._tables = tables
        plan = tables.plan
        self._strategy, self._scan_last, self._needs_reach = plan.strategy, plan.scan_last, plan.needs_reach
        self._only_extends = plan.only_extends
        cells = plan.brokers * lanes
        super().__init__(lanes)
        # isolated: some lane may have an isolated broker; unreachable: some lane may have a broker that waits for the
        # detector
        self.isolated = self.unreachable = False
        self._until = np.zeros(cells, np.int64)
        self._reach = np.ones(cells, np.bool_)
        self.isolations = np.zeros(cells, np.int64)  # per cell, how often the broker was isolated
        # per cell, ticks for which it is isolated and listed, as far as isolations are known
        self.isolated_ticks = np.zeros(cells, np.int64)
        # per failure and lane (failure × lanes + lane), when its broker was first isolated while it lasted
        self.first = np.full(len(plan.failures) * lanes, NEVER, np.int64)

    def accepts(self, stage: Stage, brokers: Ints, lanes: Ints, now: Ints, last: Ints | None) -> Bools:
        if stage == "other":
            return np.ones(len(brokers), np.bool_) if last is None else brokers != last
        cells = brokers * self.lanes + lanes
        if stage == "reachable":
            accepted: Bools = self._reach[cells]
        else:
            accepted = self._until[cells] <= now
            if self._needs_reach and self.unreachable:
                accepted &= self._reach[cells]
        if last is None or (stage == "scan" and self._scan_last == "ignore"):
            return accepted
        if stage == "scan" and self._scan_last == "same":
            accepted &= brokers == last
        else:
            accepted &= brokers != last
        return accepted

    def learn(self, brokers: Ints, lanes: Ints, now: Ints, durations: Ints, reachable: Bools, under_way: Bools) -> None:
        cells = brokers * self.lanes + lanes
        before, until = self._until[cells], now + durations
        if self._strategy == "filter":
            self._reach[cells] = reachable
            self.unreachable = self.unreachable or not reachable.all()
        longer = until > now
        if self._only_extends:
            isolating = (longer & (until > before)).nonzero()[0]
            changed = isolating
        else:
            isolating = (longer & (until != before)).nonzero()[0]
            changed = (longer | (before > now)).nonzero()[0]
        if changed.size:
            at, which = cells[changed], brokers[changed]
            then, since, till = now[changed], before[changed], until[changed]
            time = self._tables.listed_time
            self.isolated_ticks[at] += time(which, np.maximum(till, then)) - time(which, np.maximum(since, then))
            self._until[at] = till
        if isolating.size:
            self.isolated = True
            self.isolations[cells[isolating]] += 1
            self._isolate(brokers[isolating], lanes[isolating], now[isolating], under_way[isolating])

    def _isolate(self, brokers: Ints, lanes: Ints, now: Ints, under_way: Bools) -> None:
        for failure, broker in enumerate(self._tables.failure_brokers):
            places = failure * self.lanes + lanes
            hit = (brokers == broker) & under_way[:, failure] & (self.first[places] == NEVER)
            self.first[places[hit]] = now[hit]

    def succeed(self, brokers: Ints, lanes: Ints, now: Ints) -> None:
        """Attempts have ended well, and quickly enough to isolate no broker."""
        cells = brokers * self.lanes + lanes
        if self._strategy == "filter":
            self._reach[cells] = True
        if self._only_extends:
            return
        freed = (self._until[cells] > now).nonzero()[0]
        if freed.size:
            at, which, then = cells[freed], brokers[freed], now[freed]
            time = self._tables.listed_time
            self.isolated_ticks[at] += time(which, then) - time(which, self._until[at])
            self._until[at] = then

    def detect(self, lanes: Ints, segments: Ints) -> None:
        """The detector has asked all brokers: those that answer are reachable."""
        for broker in range(self._tables.plan.brokers):
            self._reach[broker * self.lanes + lanes] |= ~self._tables.silent[segments, broker]

    def isolated_until(self, lanes: Ints, end: Ints) -> Ints:
        """For how many ticks each broker was isolated; returns shape (n, brokers)."""
        tables = self._tables
        isolated_ticks = np.empty((len(lanes), tables.plan.brokers), np.int64)
        for broker in range(tables.plan.brokers):
            cells = broker * self.lanes + lanes
            which, until = np.full(len(lanes), broker), self._until[cells]
            listed = tables.listed_time(which, end)
            isolated = self.isolated_ticks[cells] - (tables.listed_time(which, np.maximum(until, end)) - listed)
            isolated_ticks[:, broker] = (end - listed) + isolated
        return isolated_ticks


class Outside(PerLane):
    """Where each lane is in the plan."""

    def __init__(self, tables: SendTables, lanes: int, faults: FaultLanes | None) -> None:
        super().__init__(lanes)
        self._tables, self._faults = tables, faults
        self.segment = np.zeros(lanes, np.int64)  # per lane
        self.failing = bool(tables.failing[0])  # some lane may be in a segment in which a broker fails
        self._segment_end = np.full(lanes, tables.ends[0])
        self._period = _DETECTS_EACH_MS * tables.per_ms
        self._next_detect = np.full(lanes, self._period)

    def look(self, now: Ints, far: int) -> None:
        """Let everything happen that is due by then; lanes at `far` have stopped."""
        tables = self._tables
        if len(tables.starts) > 1:
            due = (now >= self._segment_end).nonzero()[0]
            if due.size:
                self.segment[due] = segment = np.searchsorted(tables.starts, now[due], side="right") - 1
                self._segment_end[due] = tables.ends[segment]
                self.failing = bool(tables.failing[self.segment].any())
        if tables.plan.detects and self._faults is not None:
            due = ((now >= self._next_detect) & (now < far)).nonzero()[0]
            if due.size:
                self._next_detect[due] += ((now[due] - self._next_detect[due]) // self._period + 1) * self._period
                self._faults.detect(due, self.segment[due])
