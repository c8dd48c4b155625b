"""The fluid model of lag by closed forms, and by an independent simulation, message by message, of 1,000 groups."""

import heapq
from collections import deque
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.backlog import Change, Flow, Lag, Pool, backlog, fill, gone_in
from rmqlb.model.message_queue import MessageQueue

RATES = st.floats(0.1, 5_000)
LAGS = st.floats(1, 1e7)
SECONDS = st.floats(1e-4, 2)


def queue(number: int, topic: str = "T") -> MessageQueue:
    return MessageQueue(topic, "broker-a", number)


Q0, Q1, Q2 = map(queue, range(3))


def lag_at(lag: Lag, second: float) -> float:
    """At a jump, the lag after it."""
    begin = max((point for point in enumerate(lag.points) if point[1][0] <= second), key=lambda point: point[0])
    at, (since, messages) = begin
    if at + 1 == len(lag.points):
        return messages + lag.growth * (second - since)
    until, later = lag.points[at + 1]
    return messages + (later - messages) * (second - since) / (until - since)


def test_an_outage_is_caught_up_by_the_spare_capacity() -> None:
    # 500/s for 30 minutes without a consumer; then 20 threads of 20 ms: 1,000/s.
    found = backlog({Q0: Flow(500, 0.02)}, {"a": Pool(20)}, [Change(1800, {Q0: ("a",)})])
    assert [*found.group.points] == [(0, 0), (1800, 900_000), (3600, 0)]
    assert (found.group.peak, found.group.gone_s) == ((1800, 900_000), 3600)
    assert lag_at(found.group, 900) == lag_at(found.group, 2700) == 450_000
    assert found.queues[Q0] == found.group


@given(RATES, SECONDS, LAGS, st.integers(1, 64), st.integers(1, 12))
def test_a_concurrent_pool_is_through_when_its_work_is(
    rate: float, consume_s: float, lag: float, threads: int, queues: int
) -> None:
    flows = {queue(n): Flow(rate / (n + 1), consume_s * (1 + n % 3), lag * (n + 1), ("a",)) for n in range(queues)}
    work = sum(flow.lag * flow.consume_s for flow in flows.values())
    busy = sum(flow.inflow * flow.consume_s for flow in flows.values())
    expected = gone_in(work, busy, threads)
    found = backlog(flows, {"a": Pool(threads)}).group.gone_s
    assert found == (None if expected is None else pytest.approx(expected, rel=1e-6))


@given(RATES, SECONDS, LAGS, st.integers(1, 12))
def test_an_orderly_queue_has_one_thread(rate: float, consume_s: float, lag: float, queues: int) -> None:
    flows = {queue(n): Flow(rate, consume_s, lag * (n + 1), ("a",)) for n in range(queues)}
    found = backlog(flows, {"a": Pool(queues, orderly=True)})
    for each, flow in flows.items():
        expected = gone_in(flow.lag, rate, 1 / consume_s)
        got = found.queues[each].gone_s
        assert got == (None if expected is None else pytest.approx(expected, rel=1e-6))


def test_queues_of_one_pool_get_one_rate_until_the_first_is_empty() -> None:
    flows = {Q0: Flow(0, 0.1, 100, ("a",)), Q1: Flow(0, 0.1, 300, ("a",))}
    found = backlog(flows, {"a": Pool(2)})  # 20 messages per second
    assert [*found.queues[Q0].points] == [(0, 100), (10, 0)]
    assert [*found.queues[Q1].points] == [(0, 300), (10, 200), (20, 0)]
    assert [*found.group.points] == [(0, 400), (10, 200), (20, 0)]
    assert found.last == Q1


def test_no_more_messages_come_in_full_calls_than_wait() -> None:
    flow = Flow(37.5, 0.01, 40, ("a",), batch=8.0, full=40)
    pools = {"a": Pool(20, orderly=True)}
    assert backlog({Q0: replace(flow, full=100)}, pools) == backlog({Q0: flow}, pools)


def test_topics_with_other_consume_times_get_the_same_messages_per_second() -> None:
    flows = {Q0: Flow(0, 0.1, 100, ("a",)), queue(0, "Slow"): Flow(0, 0.9, 100, ("a",))}
    found = backlog(flows, {"a": Pool(10)})
    assert {lag.gone_s for lag in found.queues.values()} == {10}


def test_a_queue_within_its_share_has_no_lag_next_to_a_hot_one() -> None:
    flows = {Q0: Flow(900, 0.01, 0, ("a",)), Q1: Flow(200, 0.01, 0, ("a",))}  # 1,000/s are possible
    found = backlog(flows, {"a": Pool(10)})
    assert [*found.queues[Q1].points] == [(0, 0)]
    assert (found.queues[Q0].growth, found.queues[Q0].gone_s, found.group.gone_s) == (100, None, None)
    assert (found.group.peak, lag_at(found.group, 10), found.last) == (None, 1000, Q0)


def test_more_orderly_queues_than_threads_take_turns() -> None:
    flows = {each: Flow(0, 0.1, lag, ("a",)) for each, lag in zip((Q0, Q1, Q2), (10, 20, 20), strict=True)}
    found = backlog(flows, {"a": Pool(2, orderly=True)})
    # Two threads for three queues: 20/3 per second each; then one thread each.
    assert [found.queues[each].gone_s for each in (Q0, Q1, Q2)] == pytest.approx([1.5, 2.5, 2.5])


@given(st.integers(1, 12), st.floats(0.01, 0.9), st.integers(2, 16), st.floats(1_000.5, 1e6))
def test_messages_come_alone_once_all_are_cached(queues: int, load: float, batch: int, lag: float) -> None:
    alone = 100.0  # messages of a queue per second, one in each call
    inflow, full = load * alone, batch * alone
    flows = {queue(n): Flow(inflow, 0.01 / queues, lag, ("a",), batch=batch) for n in range(queues)}
    found = backlog(flows, {"a": Pool(1)})
    # Until 1,000 messages wait, all of them cached; until these are consumed; until those that came meanwhile are.
    expected = (lag - 1_000) / (full - inflow) + 1_000 / full + 1_000 / full * inflow / (alone - inflow)
    assert [each.gone_s for each in found.queues.values()] == pytest.approx([expected] * queues)


def test_a_queue_without_more_than_is_cached_empties_its_full_calls_first() -> None:
    flows = {Q0: Flow(10, 0.05, 400, ("a",), batch=4), Q1: Flow(0, 0.05, 0, ("a",), batch=4)}
    # 80/s for 5 s, in which 50 messages come; then 20/s.
    assert [*backlog(flows, {"a": Pool(1)}).queues[Q0].points] == [(0, 400), (5, 50), (10, 0)]
    alone = {each: replace(flow, full=0) for each, flow in flows.items()}
    assert backlog(alone, {"a": Pool(1)}).group.gone_s == 40
    again = [Change(20, {Q0: ("b",)}, again={Q0: 10})]  # 200 wait, and 10 more, for a new owner: 80/s again
    assert backlog(alone, {"a": Pool(1), "b": Pool(1)}, again).group.gone_s == pytest.approx(20 + 2.625 + 2.625)


def test_more_than_threads_can_take_alone_is_never_gone() -> None:
    found = backlog({Q0: Flow(30, 0.05, 5_000, ("a",), batch=4)}, {"a": Pool(1)}).group
    # 80/s until the last of the messages that waited at the broker is consumed; then 20/s.
    assert [*found.points] == [(0, 5_000), (80 + 12.5, 375)]
    assert (found.growth, found.gone_s) == (10, None)


def test_owners_change() -> None:
    flows = {Q0: Flow(10, 0.05, 0, ("a",)), Q1: Flow(10, 0.05, 0, ("a",))}
    gap = [Change(5, {Q1: ()}), Change(15, {Q1: ("b",)}, again={Q1: 50})]
    found = backlog(flows, {"a": Pool(1), "b": Pool(1)}, gap)
    assert [*found.queues[Q0].points] == [(0, 0)]
    assert [*found.queues[Q1].points] == [(0, 0), (5, 0), (15, 100), (15, 150), (30, 0)]
    assert found.group.points == found.queues[Q1].points
    assert (found.group.peak, lag_at(found.group, 14), lag_at(found.group, 15)) == ((15, 150), 90, 150)


def test_the_faster_of_two_owners_decides() -> None:
    flows = {Q0: Flow(10, 0.05, 100, ("a", "b"))}
    assert backlog(flows, {"a": Pool(1), "b": Pool(2)}).group.gone_s == pytest.approx(100 / 30)


def test_inflow_changes() -> None:
    flows = {Q0: Flow(10, 0.05, 0, ("a",))}
    found = backlog(flows, {"a": Pool(1)}, [Change(10, inflow={Q0: 30}), Change(20, inflow={Q0: 10})])
    assert [*found.group.points] == [(0, 0), (10, 0), (20, 100), (30, 0)]


def test_a_queue_without_an_owner_is_never_back() -> None:
    found = backlog({Q0: Flow(10, 1), Q1: Flow(0, 1)}, {})
    assert (found.group.gone_s, found.queues[Q1].gone_s, found.group.growth) == (None, 0, 10)


def test_nothing() -> None:
    assert [*backlog({}, {}).group.points] == [(0, 0)]
    assert backlog({}, {}).group.gone_s == 0


@given(st.floats(0.1, 100), st.lists(st.tuples(st.floats(0, 50), st.floats(0.01, 5)), max_size=8))
def test_a_level_uses_the_capacity_or_satisfies_all(capacity: float, wants: list[tuple[float, float]]) -> None:
    level = fill(capacity, wants)
    used = sum(min(much, level) * cost for much, cost in wants)
    if level == float("inf"):
        assert used <= capacity * (1 + 1e-9)
    else:
        assert used == pytest.approx(capacity)


# An independent simulation: messages come in at equal intervals, threads take them one by one.

Group = tuple[dict[MessageQueue, Flow], dict[str, Pool], list[Change]]


def random_group(random: Random) -> Group:
    consumers = [f"c{n}" for n in range(random.randint(1, 4))]
    queues = [queue(n) for n in range(random.randint(1, 6))]
    orderly, consume_s = random.random() < 0.4, random.choice([0.05, 0.1, 0.3])
    pools = {each: Pool(random.randint(1, 6), orderly) for each in consumers}
    flows = {
        each: Flow(
            random.choice([0, random.uniform(0.2, 1.2 / consume_s)]),
            consume_s,
            random.choice([0, random.randint(1, 150)]),
            (random.choice(consumers),),
        )
        for each in queues
    }
    times = sorted(random.uniform(0, 12) for _ in range(random.randint(0, 4)))
    owners = [(), *((each,) for each in consumers)]
    changes = [Change(at, {random.choice(queues): random.choice(owners)}) for at in times]
    return flows, pools, changes


class Simulation:
    """Threads of consumers that take whole messages; a consumer's queues take turns where they compete."""

    def __init__(self, group: Group, until_s: float) -> None:
        flows, self.pools, changes = group
        self.flows, self.until_s = flows, until_s
        self.owner = {each: next(iter(flow.owners), None) for each, flow in flows.items()}
        self.waiting = {each: int(flow.lag) for each, flow in flows.items()}
        self.running: dict[tuple[str, MessageQueue], int] = {}
        self.done = dict.fromkeys(flows, 0)
        self.finished: dict[MessageQueue, list[float]] = {each: [] for each in flows}
        self.turns = {name: deque(flows) for name in self.pools}
        self.events: list[tuple[float, int, str, object]] = []
        self.count = 0
        for each, flow in flows.items():
            for n in range(1, int(until_s * flow.inflow) + 1):
                self.plan(n / flow.inflow, "arrival", each)
        for change in changes:
            self.plan(change.at_s, "owner", change.owners)

    def plan(self, at: float, kind: str, what: object) -> None:
        self.count += 1
        heapq.heappush(self.events, (at, self.count, kind, what))

    def run(self) -> None:
        self.serve(0.0)
        while self.events:
            at, _, kind, what = heapq.heappop(self.events)
            if at > self.until_s:
                return
            if kind == "arrival":
                assert isinstance(what, MessageQueue)
                self.waiting[what] += 1
            elif kind == "owner":
                assert isinstance(what, dict)
                self.owner |= {each: next(iter(owners), None) for each, owners in what.items()}
            else:
                assert isinstance(what, tuple)
                self.running[what] -= 1
                self.finished[what[1]].append(at)
            self.serve(at)

    def serve(self, at: float) -> None:
        for name, pool in self.pools.items():
            while sum(n for (owner, _), n in self.running.items() if owner == name) < pool.threads:
                each = next((each for each in self.turns[name] if self.may_run(name, each)), None)
                if each is None:
                    break
                self.turns[name].remove(each)
                self.turns[name].append(each)
                self.waiting[each] -= 1
                self.running[name, each] = self.running.get((name, each), 0) + 1
                self.plan(at + self.flows[each].consume_s, "done", (name, each))

    def may_run(self, name: str, each: MessageQueue) -> bool:
        free = not (self.pools[name].orderly and self.running.get((name, each), 0))
        return self.owner[each] == name and self.waiting[each] > 0 and free

    def lag(self, each: MessageQueue, at: float) -> float:
        flow = self.flows[each]
        return flow.lag + int(at * flow.inflow) - sum(finished <= at for finished in self.finished[each])


@pytest.mark.parametrize("block", range(10))
def test_a_thousand_groups_are_as_simulated(block: int) -> None:
    for number in range(100):
        group = random_group(Random(f"{block}-{number}"))
        _, pools, changes = group
        found = backlog(*group)
        until_s = min(max(at for lag in found.queues.values() for at, _ in lag.points) + 2, 40)
        simulation = Simulation(group, until_s)
        simulation.run()
        # A message that is coming in, those being consumed, and one for each change of owners.
        tolerance = 1 + max(pool.threads for pool in pools.values()) + len(changes)
        for at in (until_s * n / 40 for n in range(41)):
            for each, lag in found.queues.items():
                assert simulation.lag(each, at) == pytest.approx(lag_at(lag, at), abs=tolerance), (
                    block,
                    number,
                    each,
                    at,
                )
