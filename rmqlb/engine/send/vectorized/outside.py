"""What happens outside each lane's producer: the segments of the plan, and the detector's rounds."""

from __future__ import annotations

import numpy as np

from rmqlb.engine.arrays.lanes import Ints, PerLane
from rmqlb.engine.send.vectorized.fault_lanes import FaultLanes
from rmqlb.engine.send.vectorized.tables import SendTables

_DETECTS_EACH_MS = 3000


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
