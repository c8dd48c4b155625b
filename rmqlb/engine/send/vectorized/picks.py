"""The round robin of each lane's threads, and how it passes over brokers.

Rules of this file:
- An index is what `ThreadLocalIndex` holds before its next step, its lower 31 bits. Where the sequence breaks after
  2^31 − 1 and more than a plain step would have to be followed, the lane is flagged.
- A pick looks one step ahead for all lanes at once; only those that may not stay there walk on, from broker to broker.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rmqlb.engine.arrays.lanes import Bools, Ints, PerLane, Streams, assign, take
from rmqlb.engine.send.vectorized.fault_lanes import FaultLanes, Stage
from rmqlb.engine.send.vectorized.scenario import SendPlan
from rmqlb.engine.send.vectorized.tables import SendTables

MASK = 0x7FFFFFFF
_HALF = np.uint64(32)


class _Sought(NamedTuple):
    """Picks that look for a queue, an entry each; `bases` and `sizes` are of their queue lists."""

    bases: Ints
    sizes: Ints
    lanes: Ints
    now: Ints
    last: Ints | None

    def some(self, which: Ints) -> _Sought:
        last = None if self.last is None else self.last[which]
        return _Sought(self.bases[which], self.sizes[which], self.lanes[which], self.now[which], last)


class Picks(PerLane):
    """`FaultStrategy.select` and `TopicPublishInfo` (`rmqlb.engine.send`) over lanes."""

    def __init__(self, tables: SendTables, streams: Streams, faults: FaultLanes | None) -> None:
        super().__init__(streams.lanes)
        plan = tables.plan
        self._tables, self._plan, self._streams, self._faults = tables, plan, streams, faults
        self._stages = _stages(plan)
        self._one_step = plan.strategy == "scan" or (plan.strategy == "plain" and plan.plain_scan)
        self._index = np.zeros(plan.threads * self.lanes, np.int64)
        self._list = np.full(plan.threads * self.lanes, -1, np.int64)
        self.flagged = np.zeros(self.lanes, np.bool_)  # per lane, whether it left what is reproduced here
        self.news = False  # a lane was flagged since the caller last looked
        if len(plan.lists) == 1:
            self._start(np.arange(len(self._list)), np.zeros_like(self._list))

    def look_at_route(self, segments: Ints, places: Ints | None) -> None:
        if len(self._plan.lists) == 1:
            return
        wanted = self._tables.queue_list[segments]
        new = (take(self._list, places) != wanted).nonzero()[0]
        if new.size:
            self._start(new if places is None else places[new], wanted[new])

    def reset(self, places: Ints) -> None:
        """Retries start the round robin anew where the client does so."""
        if self._plan.strategy == "filter" and self._plan.resets:
            bits = self._streams.draw(places) >> _HALF
            self._index[places] = (bits * np.uint64(MASK) >> _HALF).astype(np.int64)

    def pick(self, lanes: Ints | None, places: Ints | None, now: Ints, last: Ints | None) -> Ints:
        """The queues for the next attempts; returns rows; shape (n,)."""
        tables, faults = self._tables, self._faults
        index = take(self._index, places) + 1
        over = index > MASK
        if over.any():
            if self._plan.index_step == "mask":
                index[over] = 0
            else:
                self._flag(take(self.all_lanes, lanes)[over])
        spot, base, size = self._spots(places, index)
        if last is not None or (faults is not None and (faults.isolated or faults.unreachable)):
            refused = (~self._accepts(self._stages[0], spot, take(self.all_lanes, lanes), now, last)).nonzero()[0]
            if refused.size:
                bases = np.zeros_like(refused) if base is None else base[refused]
                sizes = np.full(refused.size, size) if isinstance(size, int) else size[refused]
                which, known = take(self.all_lanes, lanes)[refused], None if last is None else last[refused]
                sought = _Sought(bases, sizes, which, now[refused], known)
                index[refused], spot[refused] = self._pass_over(index[refused], sought)
        assign(self._index, places, index)
        return tables.rows[spot]

    def _start(self, places: Ints, lists: Ints) -> None:
        plan = self._plan
        if plan.start_at is not None:
            given = (self._list[places] < 0) & (places < self.lanes)
            self._index[places[given]] = plan.start_at - 1 + self._tables.sizes[lists[given]]
            self._list[places[given]] = lists[given]
            places, lists = places[~given], lists[~given]
        self._list[places] = lists
        start = (self._streams.draw(places) >> _HALF).astype(np.int64)
        if not plan.any_start:  # the magnitude; the least number has none, and is all but the last before a break
            start = np.where(start > MASK, (1 << 32) - start, start)
            start = np.where(start > MASK, {"clamp": 0, "mask": 0}.get(plan.index_step, MASK), start)
        self._index[places] = start & MASK

    def _spots(self, places: Ints | None, index: Ints) -> tuple[Ints, Ints | None, Ints | int]:
        """Where indexes point in the table of all lists; where the threads' lists begin; their sizes."""
        tables = self._tables
        if len(tables.sizes) == 1:
            size = int(tables.sizes[0])
            return index % size, None, size
        lists = take(self._list, places)
        bases, sizes = tables.bases[lists], tables.sizes[lists]
        return bases + index % sizes, bases, sizes

    def _accepts(self, stage: Stage, spots: Ints, lanes: Ints, now: Ints, last: Ints | None) -> Bools:
        brokers = self._tables.brokers[spots]
        if self._faults is None:
            return np.asarray(brokers != last)
        return self._faults.accepts(stage, brokers, lanes, now, last)

    def _pass_over(self, index: Ints, sought: _Sought) -> tuple[Ints, Ints]:
        """The indexes and spots of picks that may not stay one step ahead, where `index` is."""
        bases, sizes = sought.bases, sought.sizes
        start = index - 1
        near = (start < 0) | (start > MASK - 2 * sizes - 2)
        if near.any():
            self._flag(sought.lanes[near])
        moved, spots = np.zeros_like(start), np.zeros_like(start)
        todo = np.arange(len(start))
        steps = 1 + self._tables.runs[bases + index % sizes]
        for stage in self._stages:
            self._seek(stage, steps, start[todo] + moved[todo], sought.some(todo))
            hit = steps > 0
            which, ahead = todo[hit], steps[hit]
            spots[which] = bases[which] + (start[which] + moved[which] + ahead) % sizes[which]
            moved[which] += 1 if self._one_step else ahead
            todo = todo[~hit]
            if not todo.size:
                return start + moved, spots
            moved[todo] += 1 if self._one_step else sizes[todo]
            steps = np.ones_like(todo)
        if self._plan.strategy == "scan":  # now the client picks one of the isolated, and may change its list
            self._flag(sought.lanes[todo])
        moved[todo] += 1
        spots[todo] = bases[todo] + (start[todo] + moved[todo]) % sizes[todo]
        return start + moved, spots

    def _seek(self, stage: Stage, steps: Ints, start: Ints, sought: _Sought) -> None:
        """Raise `steps`, which is a candidate at first, to the first accepted queue; to 0 when none in the list is."""
        runs = self._tables.runs
        todo = np.arange(len(start))
        while todo.size:
            beyond = steps[todo] > sought.sizes[todo]
            if beyond.any():
                steps[todo[beyond]] = 0
                todo = todo[~beyond]
            left = sought.some(todo)
            spots = left.bases + (start[todo] + steps[todo]) % left.sizes
            refused = (~self._accepts(stage, spots, left.lanes, left.now, left.last)).nonzero()[0]
            todo = todo[refused]
            steps[todo] += runs[spots[refused]]

    def _flag(self, lanes: Ints) -> None:
        self.flagged[lanes] = True
        self.news = True


def _stages(plan: SendPlan) -> tuple[Stage, ...]:
    """By which filters the list is gone through, one after another; then any queue is taken."""
    if plan.strategy == "filter":
        return "available", "reachable"
    return ("scan",) if plan.strategy == "scan" else ("other",)
