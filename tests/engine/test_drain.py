"""Drain times by closed forms, and by an independent simulation of consumers, message by message."""

from bisect import bisect_right
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert, to_builtins
from msgspec.structs import replace

from rmqlb import MessageQueue, check, diagnose, show_consumers, show_groups
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.backlog import Flow, Pool
from rmqlb.engine.diagnose.diagnose import case_of
from rmqlb.engine.diagnose.lags import LagSamples, queue_lag
from rmqlb.engine.drain import Drains, Shared, drains_of, queue_drains
from rmqlb.model.diagnosis import Diagnosis, Drain
from rmqlb.model.group import BROADCASTING, CONSUME_POP, QueueState
from rmqlb.model.groups import Consumers
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, ProcessQueue
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.check import amount_text
from rmqlb.views.diagnose import diagnosis_report
from rmqlb.views.show_groups import consumers_report, drain_sentence, drain_text
from tests.engine.check.clusters import cluster, members
from tests.engine.test_backlog import Simulation
from tests.support.builders import route
from tests.support.mismatches import every_case

RETRY = "%RETRY%g"
AT = datetime(2026, 11, 21, 2, tzinfo=UTC)
STEP_S = 20
SAMPLES = st.integers(2, 3)
RATES = st.integers(0, 2_000)
LAGS = st.integers(1, 10**7)


def constant(lag: int, inflow: int, consumed: int, samples: int = 3, step_s: int = STEP_S) -> LagSamples:
    """A queue with these rates that ends with this lag."""
    ago = [(samples - 1 - n) * step_s for n in range(samples)]
    at = tuple(1000 * (samples * step_s - each) for each in ago)
    offsets = tuple(10**9 - consumed * each for each in ago)
    return queue_lag(at, offsets, tuple(lag - (inflow - consumed) * each for each in ago))


def queue_drain(lag: LagSamples) -> Drain:
    queue = MessageQueue("T", "a", 0)
    return queue_drains({queue: lag})[queue]


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
    lag += 7 * (consumed + more) + 2 * STEP_S * inflow  # messages waited at all samples
    slow, fast = (queue_drain(constant(lag, inflow, rate)) for rate in (consumed, consumed + more))
    order = ("finite", "unknown", "never")
    assert order.index(fast.drains) <= order.index(slow.drains)
    if slow.drains == "finite":
        assert (fast.drain_ms or 0) <= (slow.drain_ms or 0)


@given(lag=LAGS, inflow=st.integers(100, 2_000), share=st.floats(0, 0.4))
def test_a_queue_that_gets_far_more_than_is_consumed_never_drains(lag: int, inflow: int, share: float) -> None:
    consumed = int(inflow * share)
    drain = queue_drain(constant(lag + 7 * consumed + 2 * STEP_S * inflow, inflow, consumed))
    assert drain.drains == "never"
    assert drain.drain_ms is None
    assert drain.reason == f"never at this rate: inflow {inflow:,}/s, consumption {consumed:,}/s"


@every_case(("at", "offsets", "lags", "expected"), [
    ((0,), (5,), (9,), "unknown: needs 2 samples, got 1"),
    ((0,), (5,), (0,), "finite"),
    ((0, 20_000), (5, 9), (4, 0), "finite"),
    ((0, 10_000), (5, 5), (9, 9), "unknown: its offsets do not move; needs samples over at least 15 s"),
    ((0, 15_000), (5, 5), (9, 9), "never: never at this rate: inflow 0/s, consumption 0/s"),
    ((0, 20_000), (500, 5), (9, 504), "unknown: offsets went back between the samples"),
    ((0, 20_000), (5, 5), (900, 400), "unknown: offsets went back between the samples"),
    ((0, 20_000, 40_000), (0, 100, 300), (900, 950, 800), "unknown: its lag did not change the same way between the samples"),
    ((0, 20_000, 40_000), (0, 100, 200), (9, 8, 900), "unknown: its lag did not change the same way between the samples"),
    ((0, 20_000), (0, 100), (900, 910), "unknown: inflow 5.5/s and consumption 5/s are too close: needs samples over more time"),
    ((0, 20_000), (0, 100), (30, 35), "finite"),
])  # fmt: skip
def test_what_samples_do_not_show_is_unknown(
    at: tuple[int, ...], offsets: tuple[int, ...], lags: tuple[int, ...], expected: str
) -> None:
    drain = queue_drain(queue_lag(at, offsets, lags))
    assert ": ".join(filter(None, (drain.drains, drain.reason))) == expected


def test_a_long_call_of_the_listener_may_hide_consumption() -> None:
    def drain(call_ms: float) -> Drain:
        return queue_drain(queue_lag((0, 20_000), (5, 5), (900, 900), call_ms))

    assert [drain(call_ms).drains for call_ms in (0, 10_000, 10_001)] == ["never", "never", "unknown"]
    assert drain(90_000).reason == "its offsets do not move; needs samples over at least 180 s"
    lag = queue_lag((0, 60_000), (0, 60_000), (600_000, 570_000), 30_000)
    assert queue_drain(lag).drain_ms_at_most is None
    assert queue_drain(replace(lag, call_ms=1_000)).drain_ms_at_most is not None


# -- groups


def looks(
    *queues: tuple[int, int, int],
    owners: str = "x x y y",
    ids: str = "x y",
    samples: int = 3,
    retry: tuple[int, int, int] | None = None,
    **group: object,
) -> tuple[ClusterSnapshot, ...]:
    """A group over samples: the last lag, the inflow and the consumption of each of four queues, and of its retries."""
    found = []
    more = {} if retry is None else {MessageQueue(RETRY, "a", 0): QueueState(frozenset("x"))}
    for n in range(samples):
        ago = (samples - 1 - n) * STEP_S
        base = replace(members(ids, owners=owners, lag=dict.fromkeys(range(4), 0)), **group)
        queued = zip(sorted({**base.queues, **more}.items()), (*([retry] if retry else []), *queues), strict=True)
        states = {
            queue: replace(
                state,
                consumer_offset=10**9 - consumed * ago,
                broker_offset=10**9 - consumed * ago + lag - (inflow - consumed) * ago,
            )
            for (queue, state), (lag, inflow, consumed) in queued
        }
        taken = replace(cluster(replace(base, queues=states)), taken_at=AT - timedelta(seconds=ago))
        found.append(taken)
    return tuple(found)


def drains(snapshots: tuple[ClusterSnapshot, ...]) -> Drains:
    return drains_of(case_of(snapshots, "g", Settings()))


def reported(
    snapshots: tuple[ClusterSnapshot, ...],
    *,
    language: str | None = "JAVA",
    orderly: bool | None = False,
    **evidence: object,
) -> tuple[ClusterSnapshot, ...]:
    """The last sample has a report of each consumer."""
    *before, now = snapshots
    group, report = now.groups["g"], convert({"orderly": orderly, **to_builtins(evidence)}, ConsumerEvidence)
    views = tuple(
        replace(view, connections=tuple(replace(each, language=language) for each in view.connections))
        for view in group.views or ()
    )
    reports = {i: replace(each, evidence=report) for i, each in group.reports.items()}
    return *before, replace(now, groups={"g": replace(group, views=views, reports=reports)})


STUCK, SLOW, FAST, HOT = (10**6, 0, 0), (10**6, 100, 10), (10**6, 10, 100), (10**6, 400, 100)
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


@given(
    lags=st.lists(st.integers(10**5, 10**7), min_size=4, max_size=4),
    inflows=st.lists(st.integers(0, 90), min_size=4, max_size=4),
)
def test_a_concurrent_consumer_drains_at_the_sum_of_its_queues(lags: list[int], inflows: list[int]) -> None:
    queues = [(lag, inflow, 100) for lag, inflow in zip(lags, inflows, strict=True)]
    seen = looks(*queues, owners="x x x x", ids="x")
    found, alone = drains(reported(seen)), drains(reported(seen, orderly=True))
    assert found.group.drain_ms == pytest.approx(sum(lags) * 1000 / (400 - sum(inflows)))
    for queue, drain in found.queues.items():
        assert (drain.drain_ms_at_least or 0) <= (drain.drain_ms or 0) <= (drain.drain_ms_at_most or float("inf"))
        assert (drain.drain_ms or 0) <= (alone.queues[queue].drain_ms or 0) * (1 + 1e-9)
    assert alone.group.drain_ms == pytest.approx(
        max(lag * 1000 / (100 - inflow) for lag, inflow in zip(lags, inflows, strict=True))
    )
    assert drains(seen).group.drain_ms == alone.group.drain_ms  # without a report
    assert drains(seen).group.drain_ms_at_least == pytest.approx(found.group.drain_ms_at_least)


LATE, NEAR, EASY = (10**6, 160, 100), (10**6, 120, 100), (10**5, 10, 100)
SHARED = 13 * 10**5 / (4 * 100 - 160 - 3 * 10)


@every_case(("queues", "report", "owners", "expected"), [
    ((LATE, EASY, EASY, EASY), {}, "x x x x", SHARED),
    ((LATE, EASY, EASY, EASY), {"orderly": True}, "x x x x", "never"),
    ((LATE, EASY, EASY, EASY), {"orderly": None}, "x x x x", "unknown"),
    ((LATE, EASY, EASY, EASY), {"language": "GO"}, "x x x x", "unknown"),
    ((LATE, EASY, EASY, EASY), {"language": None}, "x x x x", "unknown"),
    ((LATE, EASY, EASY, EASY), {}, "x x+y x x", 12 * 10**5 / (3 * 100 - 160 - 2 * 10)),
    ((LATE, EASY, EASY, EASY), {}, "x y y y", "never"),
    ((LATE, (10**5, 10, 300), EASY, EASY), {}, "x x x x", "never"),  # no thread limits the other queue
    ((LATE, (300, 300, 300), EASY, EASY), {}, "x x x x", "never"),
    ((LATE, (50, 50, 50), EASY, EASY), {}, "x x x x", 12 * 10**5 / (3 * 100 - 160 - 2 * 10)),
    ((NEAR, NEAR, NEAR, EASY), {}, "x x x x", 31 * 10**5 / (4 * 100 - 3 * 120 - 10)),
    ((NEAR, NEAR, NEAR, NEAR), {}, "x x x x", "unknown"),
    (((10**6, 300, 100), NEAR, NEAR, EASY), {}, "x x x x", "never"),
])  # fmt: skip
def test_who_shares_threads(
    queues: tuple[tuple[int, int, int], ...], report: dict[str, str | bool], owners: str, expected: float | str
) -> None:
    found = drains(reported(looks(*queues, owners=owners), **report)).group  # type: ignore[arg-type]
    assert (found.drains if found.drain_ms is None else pytest.approx(found.drain_ms / 1000)) == expected


def test_consumers_that_share_threads_and_others_are_side_by_side() -> None:
    *before, now = reported(looks(EASY, LATE, EASY, EASY, owners="x y y y"))
    group = now.groups["g"]
    orderly = reported((now,), orderly=True)[0].groups["g"].reports["x"]
    mixed = replace(now, groups={"g": replace(group, reports={**group.reports, "x": orderly})})
    assert drains((*before, mixed)).group.drain_ms == pytest.approx(1000 * 12 * 10**5 / (3 * 100 - 160 - 2 * 10))


def cached(*messages: int) -> list[ProcessQueue]:
    return [ProcessQueue(MessageQueue("T", "a", n), cached=number) for n, number in enumerate(messages)]


# Threads come to the messages of the first queue again after a round over the cached messages of the others.
ROUND = (10**5, 10, 0), (10**5, 10, 150), (10**5, 10, 100), (10**5, 10, 150)
# The thread is through with the first queue, and now consumes the second one.
TURNS = (200, 10, 190), (3_000, 10, 110), (10_000, 10, 0), (10_000, 10, 0)
# Two threads for 140/s each: the last queue gets one of them.
UNEVEN = (10**5, 10, 130), (900, 10, 130), (50, 10, 10), (50, 10, 10)


@every_case(("queues", "report", "expected"), [
    (ROUND, {"queues": cached(1_000, 1_000, 990, 1_000)}, 4 * 10**5 / (400 - 40)),
    (ROUND, {"queues": cached(0, 1_000, 990, 1_000)}, "never"),
    (ROUND, {"queues": cached(1_000, 1_000, 990, 1_000), "language": "GO"}, "never"),
    (ROUND, {}, "never"),
    (TURNS, {"orderly": True, "threads": 1}, 23_200 / (300 - 40)),
    (TURNS, {"orderly": True, "threads": 4}, "never"),
    (TURNS, {"orderly": True}, "never"),
    (UNEVEN, {"orderly": True, "threads": 2}, 900 / (130 - 10) + (10**5 - 900) / (140 - 10)),
])  # fmt: skip
def test_a_queue_that_waits_for_threads_does_not_stand_still(
    queues: tuple[tuple[int, int, int], ...], report: dict[str, object], expected: float | str
) -> None:
    found = drains(reported(looks(*queues, owners="x x x x", ids="x"), **report)).group  # type: ignore[arg-type]
    assert (found.drains if found.drain_ms is None else pytest.approx(found.drain_ms / 1000, rel=1e-3)) == expected


def test_messages_that_come_at_the_end_come_alone() -> None:
    """Two threads, 40 ms a call: 50 calls per second, each with two messages while more than 1,000 wait in a queue."""
    statuses = {"T": ConsumeStatus(consume_ms=40)}
    for (lags, inflow), expected in {
        ((5_000, 5_000, 0, 0), 10): 4_000 / 40 + 1_000 / 50 + 200 / (25 - 10),
        ((5_000, 5_000, 0, 0), 30): None,
        # 1,420 waited at the sample before, so 1,000 did 9.5 s ago, and 525 of these still do.
        ((620, 620, 0, 0), 10): 525 / 50 + (620 - 40 * 525 / 50) / (25 - 10),
    }.items():
        queues = [(lag, inflow if lag else 0, 50 if lag else 0) for lag in lags]
        seen = looks(*queues, owners="x x x x", ids="x")
        found = drains(reported(seen, statuses=statuses, threads=2, batch=2)).group
        assert found.drain_ms == (None if expected is None else pytest.approx(1000 * expected)), lags


def test_a_lag_that_commits_may_explain_may_last() -> None:
    statuses = {"T": ConsumeStatus(consume_ms=40)}
    queues = ((340, 20, 50), (340, 20, 50), (0, 0, 0), (0, 0, 0))
    found = drains(reported(looks(*queues, owners="x x x x", ids="x"), statuses=statuses, threads=2, batch=2)).group
    # 1,000 waited 22 s ago, and 1,100 have been consumed since, so these messages come alone: 25/s.
    assert found.drain_ms == 0
    assert (found.drain_ms_at_most or 0) > 1000 * 340 / (25 - 20)


def test_topics_share_thread_time() -> None:
    slow, fast = MessageQueue("S", "a", 0), MessageQueue("F", "a", 0)
    lags = {slow: constant(10_000, 0, 10), fast: constant(30_000, 0, 10)}
    # 1,000 s with 10 messages per second each; then all thread time, 9 + 1 per second, for the fast topic.
    found = queue_drains(lags, [Shared({slow: 9.0, fast: 1.0})])
    assert (found[slow].drain_ms, found[fast].drain_ms) == (pytest.approx(1_000_000), pytest.approx(1_200_000))
    more = queue_drains(lags, [Shared({slow: 9.0, fast: 1.0}, certain=False)])
    assert (more[fast].drain_ms, more[fast].drain_ms_at_least) == (3_000_000, found[fast].drain_ms_at_least)


def test_more_queues_than_the_model_takes_end_together() -> None:
    lags = {MessageQueue("T", "a", n): constant(1000 * (n + 1), 0, 10) for n in range(100)}
    found = queue_drains(lags, [Shared(dict.fromkeys(lags, 1.0))])
    assert {round(drain.drain_ms or 0) for drain in found.values()} == {5_050_000}


FAILS, HELD = ConsumeStatus(failed_per_s=2.5, failed_last_hour=9_000), ConsumeStatus(failed_per_s=0, failed_last_hour=0)
AGAIN = ConsumeStatus(failed_per_s=0, failed_last_hour=3)


@every_case(("retry", "statuses", "expected"), [
    (None, {"T": HELD}, (11_111, True, None)),
    ((0, 5, 5), {"T": HELD}, (11_111, True, None)),
    ((10**6, 10, 20), {"T": HELD, RETRY: HELD}, (100_000, True, None)),
    ((0, 5, 5), {"T": FAILS, RETRY: HELD}, (11_121, True, "5/s fail and come back after 10 s or more")),
    (None, {"T": FAILS}, (11_121, False, "5/s fail and come back after 10 s or more")),
    ((0, 5, 5), {"T": FAILS, RETRY: AGAIN}, (11_121, False, "5/s fail and come back after 30 s or more")),
    ((0, 5, 5), {"T": HELD, RETRY: AGAIN}, (11_111, False, "messages that failed again come back after 30 s or more")),
])  # fmt: skip
def test_failed_messages_come_back(
    retry: tuple[int, int, int] | None, statuses: dict[str, ConsumeStatus], expected: tuple[int, bool, str | None]
) -> None:
    found = drains(reported(looks(*[FAST] * 4, retry=retry), orderly=None, statuses=statuses)).group
    assert (round((found.drain_ms or 0) / 1000), found.drain_ms_at_most is not None, found.reason) == expected
    ordered = drains(reported(looks(*[FAST] * 4), orderly=True, statuses=statuses)).group
    assert (round((ordered.drain_ms or 0) / 1000), ordered.reason) == (11_111, None)


@every_case(("queues", "group", "expected", "needed"), [
    ((SLOW, SLOW, FAST, FAST), {}, "never at this rate: inflow 220/s, consumption 220/s", None),
    ((SLOW, SLOW, SLOW, SLOW), {}, "never at this rate: inflow 400/s, consumption 40/s", None),
    ((STUCK, FAST, FAST, FAST), {}, "T a:0: never at this rate: inflow 0/s, consumption 0/s", None),
    ((HOT, SLOW, SLOW, SLOW), {}, "never at this rate: inflow 700/s, consumption 130/s", None),
    ((FAST,) * 4, {"retry": (5, 0, 0)}, "%RETRY%g a:0: never at this rate: inflow 0/s, consumption 0/s", None),
    (((10**6, 190, 90),) * 4, {"owners": "x x x x", "ids": "x"}, "never at this rate: inflow 760/s, consumption 360/s", 3),
    (((10**6, 190, 90),) * 4, {"owners": "? ? ? ?", "consume_type": CONSUME_POP}, "never at this rate: inflow 760/s, consumption 360/s", 5),
])  # fmt: skip
def test_a_group_with_a_queue_that_never_drains(
    queues: tuple[tuple[int, int, int], ...], group: dict[str, Any], expected: str, needed: int | None
) -> None:
    found = drains(looks(*queues, **group)).group
    assert (found.drains, found.reason, found.consumers_at_least) == ("never", expected, needed)
    assert needed is None or (drain_sentence(found) or "").endswith(f"; needs at least {needed} consumers")


def test_one_sample_and_offsets_that_consumers_keep_show_only_that_there_is_no_lag() -> None:
    unknown: tuple[dict[str, Any], ...] = (
        {"samples": 1}, {"message_model": BROADCASTING}, {"consume_type": "CONSUME_ACTIVELY"}
    )  # fmt: skip
    assert [drains(looks(*[FAST] * 4, **each)).group.drains for each in unknown] == ["unknown"] * 3
    assert drains(looks(*[(0, 0, 0)] * 4, samples=1)).group == Drain("finite", 0, 0, 0)


def test_the_last_three_samples_decide() -> None:
    first, *last = looks(*[FAST] * 4, samples=4)
    group = first.groups["g"]
    slower = {queue: replace(state, consumer_offset=0) for queue, state in group.queues.items()}
    assert drains((replace(first, groups={"g": replace(group, queues=slower)}), *last)) == drains(tuple(last))


@every_case(("queues", "expected", "met", "verdict", "cells"), [
    ((FAST,) * 4, "drains in 2h29m2s to 3h43m39s (inflow 40/s, consumption 400/s)", True, "failed: 2h29m2s", ("2h29m2s to 3h43m39s",) * 3),
    (((45_000, 10, 100),) * 4, "drains in 6m35s to 10m6s (inflow 40/s, consumption 400/s)", None, "incomplete", ("6m35s to 10m6s",) * 3),
    ((FAST, FAST, (200, 100, 100), (200, 100, 100)), None, True, "failed: 2h29m2s", ("2h29m2s to 3h43m39s", "2h29m2s to 3h43m39s", "0 s")),
    (((10**6, 190, 90),) * 4, "never drains at this rate: inflow 760/s, consumption 360/s", True, "failed: never", ("never",) * 3),
    (((200, 100, 100),) * 4, "keeps up (inflow 400/s, consumption 400/s)", False, "passed", ("0 s",) * 3),
    (((10**6, 100, 99),) * 4, None, None, "incomplete", (None,) * 3),
])  # fmt: skip
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


def test_queues_are_shown_the_slowest_first() -> None:
    queues = ((10**6, 400, 90), FAST, (200, 100, 100), (10**6, 100, 99))
    *before, now = looks(*queues, owners="x x - y")
    shown, found = show_consumers(now, "g", earlier=before), diagnosed(now, before)
    assert isinstance(shown, Consumers)
    assert [(each.queue_id, each.owners, drain_text(each.drain)) for each in shown.queues] == [
        (0, ("x",), "never"), (3, ("y",), None), (1, ("x",), "2h29m2s to 3h43m39s"), (2, (), "0 s"),
    ]  # fmt: skip
    assert found.slowest == shown.queues[:3]
    facts = diagnosis_report(found).facts
    assert "  slowest queues: T a 0 (never); T a 1 (2h29m2s to 3h43m39s)" in facts
    (section,) = (each for each in consumers_report(shown).sections if each.name == "queues")
    assert (section.brief, len(section.rows)) == ((0, 1, 2), 4)
    assert show_consumers(now, "g").queues == diagnosed(now, []).slowest == ()  # type: ignore[union-attr]


def test_an_unknown_drain_time_has_its_reason() -> None:
    *before, now = looks(*[(10**6, 100, 99)] * 4)
    reason = "T a:0: inflow 100/s and consumption 99/s are too close: needs samples over more time"
    assert f"  drain time unknown: {reason}" in diagnosis_report(diagnosed(now, before)).facts
    assert not [fact for fact in diagnosis_report(diagnosed(now, [])).facts if "drain" in fact]


def test_a_queue_that_never_drains_is_named_next_to_one_with_unknown_offsets() -> None:
    *before, now = looks(SLOW, FAST, FAST, FAST)
    group = now.groups["g"]
    states = {q: replace(each, consumer_offset=None) if q.queue_id == 3 else each for q, each in group.queues.items()}
    shown = show_consumers(replace(now, groups={"g": replace(group, queues=states)}), "g", earlier=before)
    assert isinstance(shown, Consumers)
    assert (drain_text(shown.overview.drain), drain_text(shown.consumers[1].drain)) == ("never", None)
    facts = consumers_report(shown).facts
    assert shown.overview.drain is not None
    assert shown.overview.drain.inflow_per_second is None
    assert "  T a:0: never drains at this rate: inflow 100/s, consumption 10/s" in facts


def diagnosed(now: ClusterSnapshot, before: list[ClusterSnapshot]) -> Diagnosis:
    found = diagnose(now, "g", earlier=before)
    assert isinstance(found, Diagnosis)
    return found


# -- the independent simulation of tests/engine/test_backlog.py, message by message

UNTIL_S = 400.0


def simulated(random: Random) -> tuple[Drains, dict[MessageQueue, float | None]]:
    """A consumer's drain times from samples, and how long each queue really takes; None for too long."""
    orderly, number = random.random() < 0.3, random.randint(1, 3)
    consume_s = random.uniform(0.05, 0.2) * number
    inflows = [random.choice((random.uniform(0.1, 1), random.uniform(1, 2.5))) / consume_s for _ in range(number)]
    flows = {
        MessageQueue("T", "a", n): Flow(inflow, consume_s, random.randint(50, 1_000))
        for n, inflow in enumerate(inflows)
    }
    owned = {queue: replace(flow, owners=("x",)) for queue, flow in flows.items()}
    simulation = Simulation((owned, {"x": Pool(number, orderly)}, []), UNTIL_S)
    simulation.run()
    step_s, commits_from = random.choice((10, 20, 40)), random.uniform(0, 5)
    at = [30.0 + n * step_s for n in range(random.choice((2, 3)))]
    snapshots = []
    for each in at:
        states = {}
        for queue, flow in flows.items():
            read = each + random.uniform(0, 2)
            committed = bisect_right(simulation.finished[queue], read - (read - commits_from) % 5)
            states[queue] = QueueState(frozenset("x"), int(flow.lag) + int(read * flow.inflow), committed)
        group = replace(members("x"), queues=states)
        taken = replace(cluster(group, routes=(route(a=number),)), taken_at=AT + timedelta(seconds=each))
        snapshots.append(taken)
    took_ms = {}
    for queue, flow in flows.items():
        ends = (
            end
            for n, end in enumerate(simulation.finished[queue], 1)
            if end > at[-1]
            and flow.lag + int(end * flow.inflow) < n + number  # the other threads have messages in the making
        )
        end = next(ends, None)
        took_ms[queue] = None if end is None else 1000 * (end - at[-1])
    return drains(reported(tuple(snapshots), orderly=orderly)), took_ms


def is_right(drain: Drain, took_ms: float | None) -> bool:
    if drain.drains == "unknown":
        return True
    if drain.drains == "never" or took_ms is None:
        return took_ms is None and (drain.drain_ms_at_most is None or drain.drain_ms_at_most > 1000 * (UNTIL_S - 130))
    return (drain.drain_ms_at_least or 0) <= took_ms <= (drain.drain_ms_at_most or float("inf"))


def test_simulated_consumers_drain_within_the_interval() -> None:
    outcomes, bounded = Counter[str](), 0
    for seed in range(200):
        found, took = simulated(Random(seed))
        waiting = [ms for queue, ms in took.items() if found.queues[queue].drain_ms != 0]  # commits explain other lags
        times = waiting or [*took.values()]
        longest = None if None in times else max(ms for ms in times if ms is not None)
        both = [(found.group, longest), *((found.queues[queue], ms) for queue, ms in took.items())]
        assert not [(seed, *pair) for pair in both if not is_right(*pair)]
        outcomes.update(drain.drains for drain, _ in both)
        bounded += sum(drain.drain_ms_at_most is not None for drain, _ in both)
    assert min(outcomes.values()) > 50, outcomes
    assert bounded > 100
