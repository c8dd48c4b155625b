"""A fluid model of lag: inflow into queues, consumption by consumers' threads, and changes of owners.

- Concurrent (`ConsumeMessageConcurrentlyService`): a consumer's threads take tasks in the order of submission. Flow
  control (`pullThresholdForQueue`) gives every queue with lag the same number of tasks there. By Little's law, these
  queues then have the same rate in messages per second, whatever their topics and consume times are. A queue without
  lag has the rate of its inflow, at most that of the others. No thread rests while there is lag.
- Orderly (`ConsumeMessageOrderlyService`): one thread at a time consumes a queue. If more queues than threads have lag,
  they take turns of a minute (`MAX_TIME_CONSUME_CONTINUOUSLY`), so equal shares of the threads' time.
- Batches (`consumeMessageBatchMaxSize`): a pull of a concurrent consumer is cut into calls. Calls are full while
  messages wait at the broker. In a queue that the consumer has pulled to its end, each new message comes alone. A
  thread needs the same time for both.
- POP: all consumers share the queues, which is a pool with the threads of all of them.
- A queue with two owners is consumed by both, message by message: the faster one decides its lag.
- Not modelled: time on the network, and processes that are slower with all threads busy.

Rates are constant between events, which are changes and queues whose lag ends; so lags are piecewise linear, and exact
except for rounding. A real lag differs by the messages in the making: one per thread and queue.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import accumulate, pairwise
from math import inf
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from rmqlb.model.message_queue import MessageQueue

Turn = Literal["lag", "cached", "full"]
PULLED_AHEAD = 1000  # messages of a queue that a consumer caches (`pullThresholdForQueue`)
_SAME = 1e-9  # relative; rates and times this close are equal


class Pool(Struct, frozen=True):
    """The consume threads of a consumer, or of all consumers under POP."""

    threads: float = 20
    orderly: bool = False


class Flow(Struct, frozen=True):
    """The inflow and the lag of a queue, in messages and seconds, and its owners at the beginning."""

    inflow: float
    consume_s: float  # thread time per message that comes alone
    lag: float = 0.0
    owners: tuple[str, ...] = ()
    batch: float = 1.0  # messages of a full call
    cached: float = PULLED_AHEAD  # messages that its consumer pulls ahead
    full: float | None = None  # messages of the lag that come in full calls; None: all


def full_call(batch: int) -> float:
    """The mean size of calls for a pull of 32 messages (`pullBatchSize`).

    >>> full_call(1), full_call(10), full_call(100)
    (1.0, 8.0, 32.0)
    """
    return 32 / -(-32 // batch)


class Change(Struct, frozen=True):
    at_s: float
    owners: Mapping[MessageQueue, tuple[str, ...]] = {}
    inflow: Mapping[MessageQueue, float] = {}
    again: Mapping[MessageQueue, float] = {}  # messages redelivered because the new owner starts further back


class Lag(Struct, frozen=True):
    """Lag over time: points joined by straight lines; two points at the same time are a jump."""

    points: tuple[tuple[float, float], ...]  # seconds, messages
    growth: float  # messages per second after the last point
    gone_s: float | None  # from then on no lag; None: never

    @property
    def peak(self) -> tuple[float, float] | None:
        """The second and the messages of the first highest point; None if the lag grows without end."""
        return None if self.growth > 0 else max(self.points, key=lambda point: (point[1], -point[0]))


class Backlog(Struct, frozen=True):
    group: Lag
    queues: Mapping[MessageQueue, Lag]

    @property
    def last(self) -> MessageQueue:
        """The queue whose lag ends last; if some never end, the one that grows fastest."""
        ends = {queue: inf if lag.gone_s is None else lag.gone_s for queue, lag in self.queues.items()}
        return max(self.queues, key=lambda queue: (ends[queue], self.queues[queue].growth))


def gone_in(lag: float, inflow: float, capacity: float) -> float | None:
    """Seconds until a lag is gone while messages keep arriving; None is never.

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
    run = _Run({q: _Queue(f, f.lag, f.lag if f.full is None else min(f.full, f.lag)) for q, f in flows.items()}, pools)
    for queue, flow in flows.items():
        for owner in flow.owners:
            run.rates.setdefault(owner, {})[queue] = 0.0
    waiting = sorted(changes, key=lambda change: change.at_s, reverse=True)
    run.settle(0.0, flows)
    while waiting or run.turns:
        at = min([*(change.at_s for change in waiting[-1:]), *(end for end, *_ in run.turns[:1])])
        touched = run.turned(at)
        while waiting and waiting[-1].at_s <= at:
            touched += run.changed(waiting.pop())
        run.settle(at, touched)
    lags = {queue: each.result() for queue, each in run.queues.items()}
    return Backlog(_sum([*lags.values()]), lags)


class _Queue(Struct, eq=False):
    flow: Flow
    lag: float
    full: float  # messages of the lag that come in full calls
    at_s: float = 0.0  # of `lag`
    growth: float | None = None  # messages per second; None: to be determined
    version: int = 0  # of its next turn among `turns`
    awaited: bool = False  # that turn is among them, if there is one
    points: list[tuple[float, float]] = field(default_factory=list)

    @property
    def waits(self) -> bool:
        """Whether messages wait at the broker, so that new ones will be pulled together with others."""
        return self.lag > self.flow.cached

    @property
    def cost(self) -> float:
        return self.flow.consume_s / self.flow.batch if self.full else self.flow.consume_s

    @property
    def full_growth(self) -> float:
        return (self.growth or 0.0) - (0.0 if self.waits else self.flow.inflow)

    def advance(self, at_s: float) -> None:
        if at_s > self.at_s:
            full = max(self.full + self.full_growth * (at_s - self.at_s), 0.0)
            self.lag = max(self.lag + (self.growth or 0.0) * (at_s - self.at_s), 0.0)
            self.full, self.at_s = min(full, self.lag), at_s

    def turn(self) -> tuple[float, Turn] | None:
        """The next time at which its lag ends, no messages wait at the broker, or calls are no longer full."""
        if self.growth is None:
            return None
        left: list[tuple[float, Turn]] = [(self.lag / -self.growth, "lag")] if self.growth < 0 else []
        if self.flow.batch > 1 and self.full:
            if self.waits and self.growth < 0:
                left.append(((self.lag - self.flow.cached) / -self.growth, "cached"))
            if self.full_growth < 0:
                left.append((self.full / -self.full_growth, "full"))
        return min(left, default=None)

    def result(self) -> Lag:
        waits = [at for at, (_, lag) in enumerate(self.points) if lag]
        gone = self.points[min(waits[-1] + 1, len(self.points) - 1)][0] if waits else 0.0
        return Lag(tuple(self.points), self.growth or 0.0, None if self.lag or self.growth else gone)


class _Run(Struct, eq=False):
    queues: dict[MessageQueue, _Queue]
    pools: Mapping[str, Pool]
    turns: list[tuple[float, int, MessageQueue, Turn]] = field(default_factory=list)  # with a queue's version
    rates: dict[str, dict[MessageQueue, float]] = field(default_factory=dict)  # owner → its queues

    def turned(self, at_s: float) -> list[MessageQueue]:
        found = []
        while self.turns and self.turns[0][0] <= at_s * (1 + _SAME):
            _, version, queue, turn = heappop(self.turns)
            each = self.queues[queue]
            if version == each.version:
                each.advance(at_s)
                each.lag = {"lag": 0.0, "cached": each.flow.cached, "full": each.lag}[turn]
                each.full = each.full if turn == "cached" else 0.0
                each.awaited = False
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
                each.full += change.again[queue]
            for owner in self._owners(queue):
                del self.rates[owner][queue]
            inflow = change.inflow.get(queue, each.flow.inflow)
            if queue in change.owners:
                each.full = each.lag  # which the new owner pulls
            each.awaited = False
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
            much, cost = inf if each.lag else each.flow.inflow, each.cost
            wants.append((min(much * cost, 1.0), 1.0) if pool.orderly else (much, cost))
        level = fill(pool.threads, wants)
        for queue, (much, _) in zip(rates, wants, strict=True):
            got = min(much, level)
            rates[queue] = got / self.queues[queue].cost if pool.orderly else got

    def _bend(self, queue: MessageQueue, growth: float | None) -> None:
        each = self.queues[queue]
        if growth != each.growth:
            if not each.points or each.points[-1] != (each.at_s, each.lag):
                each.points.append((each.at_s, each.lag))
            each.growth, each.awaited = growth, False
        if not each.awaited:
            each.version, each.awaited = each.version + 1, True
            if (turn := each.turn()) is not None:
                heappush(self.turns, (each.at_s + turn[0], each.version, queue, turn[1]))


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
