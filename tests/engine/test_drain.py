"""Drain times by closed forms, and by an independent simulation of groups, message by message."""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import MessageQueue, check, diagnose, show_consumers, show_groups
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.diagnose.diagnose import evidence_of
from rmqlb.engine.diagnose.lags import QueueLag, queue_lag
from rmqlb.engine.drain import Drains, drains_of, queue_drain, slowest
from rmqlb.model.diagnosis import Diagnosis, Drain
from rmqlb.model.group import BROADCASTING, CONSUME_POP
from rmqlb.model.groups import Consumers
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.check import amount_text
from rmqlb.views.diagnose import diagnosis_report
from rmqlb.views.show_groups import consumers_report, drain_sentence, drain_text
from tests.engine.check.clusters import cluster, members
from tests.support.mismatches import every_case

AT = datetime(2026, 11, 21, 2, tzinfo=UTC)
STEP_S = 20
SAMPLES = st.integers(2, 3)
RATES = st.integers(0, 2_000)
LAGS = st.integers(1, 10**7)


def constant(lag: int, inflow: int, consumed: int, samples: int = 3, step_s: int = STEP_S) -> QueueLag:
    """A queue with these rates that ends with this lag."""
    ago = [(samples - 1 - n) * step_s for n in range(samples)]
    at = tuple(1000 * (samples * step_s - each) for each in ago)
    offsets = tuple(10**9 - consumed * each for each in ago)
    return queue_lag(at, offsets, tuple(lag - (inflow - consumed) * each for each in ago))


@given(lag=LAGS, inflow=RATES, net=st.integers(1, 2_000), samples=SAMPLES)
def test_a_queue_with_constant_rates_drains_at_lag_over_net_rate(lag: int, inflow: int, net: int, samples: int) -> None:
    drain = queue_drain(constant(lag, inflow, inflow + net, samples))
    assert drain.drains == "finite"
    assert (drain.inflow_per_second, drain.consumed_per_second) == pytest.approx((inflow, inflow + net))
    if lag > 7 * (inflow + net):  # commits explain a smaller lag
        assert drain.drain_ms == pytest.approx(lag * 1000 / net)
        assert (drain.drain_ms_at_least or 0) <= (drain.drain_ms or 0) <= (drain.drain_ms_at_most or float("inf"))
    else:
        assert drain.drain_ms == 0


@given(lag=LAGS, inflow=RATES, consumed=RATES, more=st.integers(1, 100))
def test_more_consumption_never_takes_longer(lag: int, inflow: int, consumed: int, more: int) -> None:
    slow, fast = (queue_drain(constant(lag, inflow, rate)) for rate in (consumed, consumed + more))
    order = {"never": 1, "unknown": 1, "finite": 0}  # unknown is no answer
    assert order[fast.drains] <= order[slow.drains]
    if slow.drains == "finite":
        assert (fast.drain_ms or 0) <= (slow.drain_ms or 0)


@given(lag=LAGS, inflow=st.integers(100, 2_000), share=st.floats(0, 0.4))
def test_a_queue_that_gets_far_more_than_is_consumed_never_drains(lag: int, inflow: int, share: float) -> None:
    consumed = int(inflow * share)
    drain = queue_drain(constant(lag + 7 * consumed + 2 * STEP_S * inflow, inflow, consumed))
    assert drain.drains == "never"
    assert drain.drain_ms is None
    assert drain.reason == f"never at this rate: inflow {inflow:,}/s, consumption {consumed:,}/s"


@every_case(
    ("at", "offsets", "lags", "expected"),
    [
        ((0,), (5,), (9,), "unknown: needs 2 samples, got 1"),
        ((0,), (5,), (0,), "finite"),
        ((0, 20_000), (5, 9), (4, 0), "finite"),
        ((0, 10_000), (5, 5), (9, 9), "unknown: its offsets stand still: needs samples over at least 15 s"),
        ((0, 15_000), (5, 5), (9, 9), "never: never at this rate: inflow 0/s, consumption 0/s"),
        ((0, 20_000), (500, 5), (9, 504), "unknown: offsets went back between the samples"),
        ((0, 20_000), (5, 5), (900, 400), "unknown: offsets went back between the samples"),
        ((0, 20_000, 40_000), (0, 100, 300), (900, 950, 800), "unknown: its lag did not change the same way between the samples"),
        ((0, 20_000, 40_000), (0, 100, 200), (9, 8, 900), "unknown: its lag did not change the same way between the samples"),
        ((0, 20_000), (0, 100), (900, 910),
         "unknown: inflow 5.5/s and consumption 5/s are too close: needs samples over more time"),
        ((0, 20_000), (0, 100), (30, 35), "finite"),
    ],
)  # fmt: skip
def test_what_samples_do_not_show_is_unknown(
    at: tuple[int, ...], offsets: tuple[int, ...], lags: tuple[int, ...], expected: str
) -> None:
    drain = queue_drain(queue_lag(at, offsets, lags))
    assert ": ".join(filter(None, (drain.drains, drain.reason))) == expected


def test_a_long_call_of_the_listener_may_hide_consumption() -> None:
    def drain(call_ms: float) -> Drain:
        return queue_drain(queue_lag((0, 20_000), (5, 5), (900, 900), call_ms))

    assert [drain(call_ms).drains for call_ms in (0, 10_000, 10_001)] == ["never", "never", "unknown"]
    assert drain(90_000).reason == "its offsets stand still: needs samples over at least 180 s"
    lag = queue_lag((0, 60_000), (0, 60_000), (600_000, 570_000), 30_000)
    assert queue_drain(lag).drain_ms_at_most is None
    assert queue_drain(replace(lag, call_ms=1_000)).drain_ms_at_most is not None


# -- groups


def looks(
    *queues: tuple[int, int, int], owners: str = "x x y y", ids: str = "x y", samples: int = 3, **group: object
) -> tuple[ClusterSnapshot, ...]:
    """A group with four queues over samples: the last lag, the inflow and the consumption of each queue."""
    found = []
    for n in range(samples):
        ago = (samples - 1 - n) * STEP_S
        base = replace(members(ids, owners=owners, lag=dict.fromkeys(range(4), 0)), **group)
        states = {
            queue: replace(
                state,
                consumer_offset=10**9 - consumed * ago,
                broker_offset=10**9 - consumed * ago + lag - (inflow - consumed) * ago,
            )
            for (queue, state), (lag, inflow, consumed) in zip(sorted(base.queues.items()), queues, strict=True)
        }
        taken = replace(cluster(replace(base, queues=states)), taken_at=AT - timedelta(seconds=ago))
        found.append(taken)
    return tuple(found)


def drains(snapshots: tuple[ClusterSnapshot, ...]) -> Drains:
    return drains_of(evidence_of(snapshots, "g", Settings()))


QUEUES = st.lists(st.tuples(st.integers(10**6, 10**7), RATES, st.integers(1, 2_000)), min_size=4, max_size=4)


@given(queues=QUEUES)
def test_the_slowest_queue_decides(queues: list[tuple[int, int, int]]) -> None:
    queues = [(lag, inflow, inflow + net) for lag, inflow, net in queues]
    found = drains(looks(*queues))
    each = [lag * 1000 / (consumed - inflow) for lag, inflow, consumed in queues]
    assert found.group.drain_ms == pytest.approx(max(each))
    assert {i: drain.drain_ms for i, drain in found.consumers.items()} == {
        "x": pytest.approx(max(each[:2])), "y": pytest.approx(max(each[2:]))
    }  # fmt: skip
    assert found.group.inflow_per_second == pytest.approx(sum(inflow for _, inflow, _ in queues))


@given(queues=QUEUES)
def test_pop_consumers_share_the_queues(queues: list[tuple[int, int, int]]) -> None:
    queues = [(lag, inflow, inflow + net) for lag, inflow, net in queues]
    found = drains(looks(*queues, owners="? ? ? ?", consume_type=CONSUME_POP))
    net = sum(consumed - inflow for _, inflow, consumed in queues)
    assert found.group.drain_ms == pytest.approx(sum(lag for lag, _, _ in queues) * 1000 / net)
    assert not found.consumers


STUCK, SLOW, FAST, HOT = (10**6, 0, 0), (10**6, 100, 10), (10**6, 10, 100), (10**6, 400, 100)


@every_case(
    ("queues", "group", "expected", "needed"),
    [
        ((SLOW, SLOW, FAST, FAST), {}, "never at this rate: inflow 220/s, consumption 220/s", None),
        ((SLOW, SLOW, SLOW, SLOW), {}, "never at this rate: inflow 400/s, consumption 40/s", None),
        ((STUCK, FAST, FAST, FAST), {}, "T a:0: never at this rate: inflow 0/s, consumption 0/s", None),
        ((HOT, SLOW, SLOW, SLOW), {}, "never at this rate: inflow 700/s, consumption 130/s", None),
        (((10**6, 190, 90),) * 4, {"owners": "x x x x", "ids": "x"}, "never at this rate: inflow 760/s, consumption 360/s", 3),
        (((10**6, 190, 90),) * 4, {"owners": "? ? ? ?", "consume_type": CONSUME_POP},
         "never at this rate: inflow 760/s, consumption 360/s", 5),
    ],
)  # fmt: skip
def test_a_group_with_a_queue_that_never_drains(
    queues: tuple[tuple[int, int, int], ...], group: dict[str, str], expected: str, needed: int | None
) -> None:
    found = drains(looks(*queues, **group)).group  # type: ignore[arg-type]
    assert (found.drains, found.reason, found.consumers_at_least) == ("never", expected, needed)


def test_one_sample_shows_only_that_there_is_no_lag() -> None:
    assert drains(looks(*[FAST] * 4, samples=1)).group.drains == "unknown"
    assert drains(looks(*[(0, 0, 0)] * 4, samples=1)).group == Drain("finite", 0, 0, 0)


def test_offsets_that_consumers_keep_show_nothing() -> None:
    assert drains(looks(*[FAST] * 4, message_model=BROADCASTING)).group.drains == "unknown"
    assert drains(looks(*[FAST] * 4, consume_type="CONSUME_ACTIVELY")).group.drains == "unknown"


@every_case(
    ("queues", "expected", "met", "verdict", "cells"),
    [
        ((FAST,) * 4, "drains in 2h29m2s to 3h43m39s (inflow 40/s, consumption 400/s)", True, "failed: 2h29m2s", ("2h29m2s to 3h43m39s",) * 3),
        (((45_000, 10, 100),) * 4, "drains in 6m35s to 10m6s (inflow 40/s, consumption 400/s)", None, "incomplete", ("6m35s to 10m6s",) * 3),
        ((FAST, FAST, (200, 100, 100), (200, 100, 100)), None, True, "failed: 2h29m2s", ("2h29m2s to 3h43m39s", "2h29m2s to 3h43m39s", "0 s")),
        (((10**6, 190, 90),) * 4, "never drains at this rate: inflow 760/s, consumption 360/s", True, "failed: never", ("never",) * 3),
        (((200, 100, 100),) * 4, "keeps up (inflow 400/s, consumption 400/s)", False, "passed", ("0 s",) * 3),
        (((10**6, 100, 99),) * 4, None, None, "incomplete", (None,) * 3),
    ],
)  # fmt: skip
def test_views_and_conditions_show_drain_times(
    queues: tuple[tuple[int, int, int], ...],
    expected: str | None,
    met: bool | None,
    verdict: str,
    cells: tuple[str | None, ...],
) -> None:
    *before, now = looks(*queues)
    found = show_groups(now, earlier=before, fail_on="drain-ms[g]>10m")
    (line,), (tried,) = found.groups, found.conditions
    assert tried.met is met
    policy = {"rules": [{"name": "drains", "groups": "*", "limits": {"maxDrainTime": "10m"}}]}
    judged = check(now, policy, earlier=before)
    values = [amount_text("ms", one.value) for one in judged.failed]
    assert ": ".join([judged.outcome, *values]) == verdict
    shown = show_consumers(now, "g", earlier=before)
    assert isinstance(shown, Consumers)
    assert tuple(map(drain_text, (line.drain, *(each.drain for each in shown.consumers)))) == cells
    if expected is not None:
        assert drain_sentence(line.drain) == expected
        assert any(fact.strip() == expected for fact in consumers_report(shown).facts)
        assert any(fact.strip() == expected for fact in diagnosis_report(diagnosed(now, before)).facts)


def test_a_group_that_never_drains_needs_more_consumers() -> None:
    drain = drains(looks(*[(10**6, 190, 90)] * 4, owners="x x x x", ids="x")).group
    expected = "never drains at this rate: inflow 760/s, consumption 360/s; needs at least 3 consumers"
    assert drain_sentence(drain) == expected


def diagnosed(now: ClusterSnapshot, before: list[ClusterSnapshot]) -> Diagnosis:
    found = diagnose(now, "g", earlier=before)
    assert isinstance(found, Diagnosis)
    return found


# -- an independent simulation, message by message


@dataclass
class Simulated:
    """A queue of which one message arrives, and one is consumed, at a time; offsets are committed every 5 s."""

    backlog: int
    inflow: float
    rate: float
    commits_from: float
    stored: int = 0
    consumed: int = 0
    committed: int = 0
    drained_at: float | None = None

    def run(self, reads: list[float], until: float) -> list[tuple[int, int]]:
        """The stored and committed offsets at the reads."""
        self.stored = self.backlog
        events = [(1 / self.inflow, "store"), (1 / self.rate, "consume"), (self.commits_from, "commit")]
        events += [(at, "read") for at in reads]
        heapq.heapify(events)
        seen = []
        while events[0][0] < until and self.drained_at is None:
            at, kind = heapq.heappop(events)
            if kind == "store":
                self.stored += 1
                heapq.heappush(events, (at + 1 / self.inflow, kind))
            elif kind == "consume":
                self.consumed += 1
                self.drained_at = at if self.consumed == self.stored else None
                heapq.heappush(events, (at + 1 / self.rate, kind))
            elif kind == "commit":
                self.committed = self.consumed
                heapq.heappush(events, (at + 5, kind))
            else:
                seen.append((self.stored, self.committed))
        return seen


UNTIL_S = 3_000.0


def simulated(random: Random) -> Iterator[tuple[Drain, float | None]]:
    """Each queue of a group: its drain time from samples, and how long it really takes; None for too long."""
    samples, step = random.choice((2, 3)), random.choice((10, 20, 60))
    at = [10.0 + n * step for n in range(samples)]
    for _ in range(random.randint(1, 3)):
        queue = Simulated(
            random.randint(200, 4_000), random.uniform(1, 15), random.uniform(1, 30), random.uniform(0, 5)
        )
        seen = queue.run([each + random.uniform(0, 2) for each in at], UNTIL_S)
        if len(seen) == samples:  # otherwise it drained before the last sample
            offsets, lags = (tuple(each) for each in zip(*((c, s - c) for s, c in seen), strict=True))
            drain = queue_drain(queue_lag(tuple(round(1000 * each) for each in at), offsets, lags))
            yield drain, None if queue.drained_at is None else (queue.drained_at - at[-1]) * 1000


def is_right(drain: Drain, took_ms: float | None) -> bool:
    if drain.drains == "unknown":
        return True
    if drain.drains == "never" or took_ms is None:
        return took_ms is None and (drain.drain_ms_at_most is None or drain.drain_ms_at_most > 1000 * (UNTIL_S - 130))
    return (drain.drain_ms_at_least or 0) <= took_ms <= (drain.drain_ms_at_most or float("inf"))


def test_simulated_groups_drain_within_the_interval() -> None:
    outcomes, bounded = Counter[str](), 0
    for seed in range(400):
        queues = [*simulated(Random(seed))]
        if queues:
            each = {MessageQueue("T", "a", n): drain for n, (drain, _) in enumerate(queues)}
            waiting = [took for drain, took in queues if drain.drain_ms != 0]  # commits explain the other lags
            times = waiting or [took for _, took in queues]
            longest = None if None in times else max(took for took in times if took is not None)
            queues.append((slowest(each), longest))
        wrong = [(seed, *pair) for pair in queues if not is_right(*pair)]
        assert not wrong
        outcomes.update(drain.drains for drain, _ in queues)
        bounded += sum(drain.drain_ms_at_most is not None for drain, _ in queues)
    assert min(outcomes.values()) > 100, outcomes
    assert bounded > 100
