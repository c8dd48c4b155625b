"""A fluid model of lag: messages flow into queues, consumers' threads take them out, owners may change.

- Concurrent (`ConsumeMessageConcurrentlyService`): a consumer's threads take tasks in the order of submission. Flow
  control (`pullThresholdForQueue`) gives every queue with lag the same number of tasks there. By Little's law, these
  queues then have the same rate in messages per second, whatever their topics and consume times are. A queue without
  lag has the rate of its inflow, at most that of the others. No thread rests while there is lag.
- Orderly (`ConsumeMessageOrderlyService`): one thread at a time consumes a queue. If more queues than threads have lag,
  they take turns of a minute (`MAX_TIME_CONSUME_CONTINUOUSLY`), so equal shares of the threads' time.
- POP: all consumers share the queues, which is a pool with the threads of all of them.
- A queue with two owners is consumed by both, message by message: the faster one decides its lag.
- Not modelled: time on the network, and processes that are slower with all threads busy.

Rates are constant between events, which are changes and queues whose lag ends; so lags are piecewise linear, and exact
except for rounding. A real lag differs by the messages in the making: one per thread and queue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import accumulate, pairwise
from math import inf

from msgspec import Struct, field
from msgspec.structs import replace

from rmqlb.model.message_queue import MessageQueue

_SAME = 1e-9  # relative; rates and times this close are equal


class Pool(Struct, frozen=True):
    """The consume threads of a consumer, or of all consumers under POP."""

    threads: float = 20
    orderly: bool = False


class Flow(Struct, frozen=True):
    """What comes into a queue, in messages and seconds, and the owners at the beginning."""

    inflow: float
    consume_s: float  # thread time per message: the call's time over the size of a batch
    lag: float = 0.0
    owners: tuple[str, ...] = ()


class Change(Struct, frozen=True):
    at_s: float
    owners: Mapping[MessageQueue, tuple[str, ...]] = {}
    inflow: Mapping[MessageQueue, float] = {}
    again: Mapping[MessageQueue, float] = {}  # messages delivered once more, since the new owner starts behind


class Lag(Struct, frozen=True):
    """Lag over time: straight lines between points, a jump where two points share a time."""

    points: tuple[tuple[float, float], ...]  # seconds, messages
    growth: float  # messages per second after the last point
    gone_s: float | None  # from then on no lag; None: never

    def at(self, second: float) -> float:
        """The lag at a time; at a jump, after it."""
        for (begin, before), (end, after) in pairwise(reversed(self.points)):
            if end <= second < begin:
                return after + (before - after) * (second - end) / (begin - end)
        last, lag = self.points[-1]
        return self.points[0][1] if second < last else lag + self.growth * (second - last)

    @property
    def peak(self) -> tuple[float, float] | None:
        """The second and the messages of the first highest point; None if the lag grows for ever."""
        return None if self.growth > 0 else max(self.points, key=lambda point: (point[1], -point[0]))


class Backlog(Struct, frozen=True):
    group: Lag
    queues: Mapping[MessageQueue, Lag]

    @property
    def last(self) -> MessageQueue:
        """The queue whose lag ends last, or of those that never end the one that grows fastest."""
        ends = {queue: inf if lag.gone_s is None else lag.gone_s for queue, lag in self.queues.items()}
        return max(self.queues, key=lambda queue: (ends[queue], self.queues[queue].growth))


def gone_in(lag: float, inflow: float, capacity: float) -> float | None:
    """Seconds until a lag is gone while messages keep coming; None: never.

    In messages or in thread time: a pool of concurrent consumption is through with all of its queues then.

    >>> gone_in(500 * 1800, 500, 1000), gone_in(1, 500, 500), gone_in(0, 500, 500)
    (1800.0, None, 0.0)
    """
    if lag <= 0:
        return 0.0
    return lag / (capacity - inflow) if capacity - inflow > _SAME * capacity else None


def fill(capacity: float, wants: Sequence[tuple[float, float]]) -> float:
    """The level to which a capacity fills several wants (how much, cost of one) equally; inf if it suffices for all.

    >>> fill(10, [(2, 1), (inf, 1), (inf, 1)]), fill(10, [(2, 1), (3, 1)]), fill(12, [(inf, 1), (inf, 2)])
    (4.0, inf, 4.0)
    """
    ascending, left = sorted(wants), capacity
    costs = [*accumulate(cost for _, cost in reversed(ascending))]
    for (much, cost), of_rest in zip(ascending, reversed(costs), strict=True):
        if much * of_rest > left:
            return max(left, 0.0) / of_rest
        left -= much * cost
    return inf


def backlog(flows: Mapping[MessageQueue, Flow], pools: Mapping[str, Pool], changes: Iterable[Change] = ()) -> Backlog:
    """The lag of each queue and of all together, from second 0 on; `pools` has an entry for each owner."""
    run = _Run({queue: _Queue(flow, flow.lag) for queue, flow in flows.items()}, pools)
    for queue, flow in flows.items():
        for owner in flow.owners:
            run.rates.setdefault(owner, {})[queue] = 0.0
    waiting = sorted(changes, key=lambda change: change.at_s, reverse=True)
    run.settle(0.0, flows)
    while waiting or run.ends:
        at = min([*(change.at_s for change in waiting[-1:]), *(end for end, *_ in run.ends[:1])])
        touched = run.emptied(at)
        while waiting and waiting[-1].at_s <= at:
            touched += run.changed(waiting.pop())
        run.settle(at, touched)
    lags = {queue: each.result() for queue, each in run.queues.items()}
    return Backlog(_sum([*lags.values()]), lags)


class _Queue(Struct, eq=False):
    flow: Flow
    lag: float
    at_s: float = 0.0  # of `lag`
    growth: float | None = None  # messages per second; None: to be determined
    version: int = 0  # of its end among `ends`
    points: list[tuple[float, float]] = field(default_factory=list)

    def advance(self, at_s: float) -> None:
        if at_s > self.at_s:
            self.lag = max(self.lag + (self.growth or 0.0) * (at_s - self.at_s), 0.0)
            self.at_s = at_s

    def result(self) -> Lag:
        waits = [at for at, (_, lag) in enumerate(self.points) if lag]
        gone = self.points[min(waits[-1] + 1, len(self.points) - 1)][0] if waits else 0.0
        return Lag(tuple(self.points), self.growth or 0.0, None if self.lag or self.growth else gone)


class _Run(Struct, eq=False):
    queues: dict[MessageQueue, _Queue]
    pools: Mapping[str, Pool]
    ends: list[tuple[float, int, MessageQueue]] = field(default_factory=list)  # of lags; with a queue's version
    rates: dict[str, dict[MessageQueue, float]] = field(default_factory=dict)  # owner → its queues

    def emptied(self, at_s: float) -> list[MessageQueue]:
        found = []
        while self.ends and self.ends[0][0] <= at_s * (1 + _SAME):
            _, version, queue = heappop(self.ends)
            if version == self.queues[queue].version:
                self.queues[queue].advance(at_s)
                self.queues[queue].lag = 0.0
                found.append(queue)
        return found

    def changed(self, change: Change) -> list[MessageQueue]:
        """Apply a change; returns all queues of the touched pools, former ones included."""
        touched = {*change.owners, *change.inflow, *change.again}
        near = [near for queue in touched for owner in self._owners(queue) for near in self.rates[owner]]
        for queue in touched:
            each = self.queues[queue]
            each.advance(change.at_s)
            if queue in change.again:
                self._bend(queue, None)
                each.lag += change.again[queue]
            for owner in self._owners(queue):
                del self.rates[owner][queue]
            inflow = change.inflow.get(queue, each.flow.inflow)
            each.flow = replace(each.flow, inflow=inflow, owners=change.owners.get(queue, each.flow.owners))
            for owner in self._owners(queue):
                self.rates.setdefault(owner, {})[queue] = 0.0
        return [*touched, *near]

    def _owners(self, queue: MessageQueue) -> tuple[str, ...]:
        return self.queues[queue].flow.owners

    def settle(self, at_s: float, touched: Iterable[MessageQueue]) -> None:
        """Determine the rates in all pools of the touched queues, from now on."""
        affected = dict.fromkeys(touched)
        for owner in dict.fromkeys(owner for queue in affected for owner in self._owners(queue)):
            self._share(owner, at_s)
            affected |= dict.fromkeys(self.rates[owner])
        for queue in affected:
            inflow = self.queues[queue].flow.inflow
            rate = max((self.rates[owner][queue] for owner in self._owners(queue)), default=0.0)
            self.queues[queue].advance(at_s)
            self._bend(queue, 0.0 if abs(inflow - rate) <= _SAME * max(inflow, rate) else inflow - rate)

    def _share(self, owner: str, at_s: float) -> None:
        pool, rates = self.pools[owner], self.rates[owner]
        wants = []
        for queue in rates:
            each = self.queues[queue]
            each.advance(at_s)
            much, cost = inf if each.lag else each.flow.inflow, each.flow.consume_s
            wants.append((min(much * cost, 1.0), 1.0) if pool.orderly else (much, cost))
        level = fill(pool.threads, wants)
        for queue, (much, _) in zip(rates, wants, strict=True):
            got = min(much, level)
            rates[queue] = got / self.queues[queue].flow.consume_s if pool.orderly else got

    def _bend(self, queue: MessageQueue, growth: float | None) -> None:
        each = self.queues[queue]
        if growth == each.growth:
            return
        if not each.points or each.points[-1] != (each.at_s, each.lag):
            each.points.append((each.at_s, each.lag))
        each.growth, each.version = growth, each.version + 1
        if growth is not None and growth < 0:
            heappush(self.ends, (each.at_s - each.lag / growth, each.version, queue))


def _sum(lags: Sequence[Lag]) -> Lag:
    jumps, bends = defaultdict[float, float](float), defaultdict[float, float](float)
    for each in lags:
        jumps[0.0] += each.points[0][1]
        growth = 0.0
        for (begin, lag), (end, later) in pairwise(each.points):
            if begin == end:
                jumps[begin] += later - lag
            else:
                bends[begin] += (later - lag) / (end - begin) - growth
                growth = (later - lag) / (end - begin)
        bends[each.points[-1][0]] += each.growth - growth
    ends = [each.gone_s for each in lags]
    gone_s = None if None in ends else max((end or 0.0 for end in ends), default=0.0)
    points, growth = [(0.0, jumps[0.0])], 0.0
    tolerance = _SAME * max((lag for each in lags for _, lag in each.points), default=0.0)
    for at in sorted(jumps.keys() | bends.keys()):
        since, before = points[-1]
        lag = before + growth * (at - since)
        if at:
            points.append((at, 0.0 if at == gone_s or lag < tolerance else lag))
        if at and at in jumps:
            points.append((at, lag + jumps[at]))
        growth += bends[at]
    return Lag(tuple(points), sum(each.growth for each in lags), gone_s)
