"""When the threads of each lane go on: `rmqlb.engine.send.clock` over lanes.

Rule of this file: a wake holds tick and thread in one number, tick << bits | thread, so that the least of a lane's
wakes is its earliest thread, of those at one tick the lowest; with one thread it is the tick.
"""

from __future__ import annotations

import numpy as np

from rmqlb.engine.arrays.lanes import Bools, Ints, PerLane, assign, take
from rmqlb.engine.send.vectorized.scenario import NEVER, SendPlan


class LaneClocks(PerLane):
    """The wakes that are to come."""

    def __init__(self, plan: SendPlan, lanes: int) -> None:
        super().__init__(lanes)
        self._threads, self._interval, self._limit = plan.threads, plan.interval or 0, plan.limit
        self._bits = (plan.threads - 1).bit_length()
        self.far = NEVER >> self._bits  # later than any tick that comes, and still a tick that fits a wake
        self.end = min(plan.end, self.far)  # no message begins at that tick or later
        # per lane, when its last thread found that there is no message any more
        self.last_wake = np.zeros(lanes, np.int64)
        self._arrival = np.repeat(np.arange(plan.threads), lanes)
        self._wake = np.zeros(plan.threads * lanes, np.int64)
        self.sleep(np.arange(len(self._wake)), self._arrival * self._interval)

    def earliest(self) -> tuple[Ints, Ints | None]:
        """When each lane's next thread wakes, and its place."""
        if self._threads == 1:
            return self._wake.copy(), None
        key = np.minimum.reduce(self._wake.reshape(-1, self.lanes), axis=0)
        places = (key & ((1 << self._bits) - 1)) * self.lanes
        places += self.all_lanes
        key >>= self._bits
        return key, places

    def sleep(self, places: Ints | None, at: Ints) -> None:
        if places is None or not self._bits:
            assign(self._wake, places, at)
        else:
            self._wake[places] = (at << self._bits) | (places // self.lanes)

    def due(self, places: Ints | None) -> Ints:
        return take(self._arrival, places) * self._interval

    def begin(self, places: Ints | None) -> None:
        """The threads' next messages begin; each thread's own are every K-th of all."""
        if self._interval:
            assign(self._arrival, places, take(self._arrival, places) + self._threads)

    def is_over(self, now: Ints, places: Ints | None, started: Ints) -> Bools:
        """Which lanes' threads have no message any more, `started` being how many have begun in each."""
        over: Bools = now >= self.end
        if self._limit < NEVER:
            over |= (take(self._arrival, places) if self._interval else started) >= self._limit
        return over

    def stop(self, lanes: Ints, places: Ints, now: Ints) -> None:
        """These threads stop; one that has stopped already comes by again, long after the last."""
        self._wake[places] = NEVER
        self.last_wake[lanes] = np.where(now < self.far, now, self.last_wake[lanes])

    def stop_lanes(self, lanes: Ints) -> None:
        self._wake.reshape(-1, self.lanes)[:, lanes] = NEVER

    def active(self) -> Bools:
        return np.asarray(np.logical_or.reduce(self._wake.reshape(-1, self.lanes) < NEVER, axis=0))
