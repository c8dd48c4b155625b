"""Rules that a change of one word would break, and that the larger comparisons pass by."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import Failure, Moment, MQFaultStrategy, Reaction, SendScenario, UsageError, simulate_send
from rmqlb.engine.send.cluster_state import ClusterState
from rmqlb.engine.send.counters import Counters, Timeline
from rmqlb.engine.send.fault import _wall_clock
from rmqlb.engine.send.latency import constant, lognormal
from rmqlb.engine.send.profile import profile_of
from rmqlb.engine.send.simulate import play, rules
from rmqlb.engine.send.simulation import SendSimulation
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.send_scenario import Selector
from tests.support.builders import route

REFUSED = Reaction("refused", "refused", 0, 1000)
TIMEOUT = Reaction("timeout", "timeout")
UNSAFE = Reaction("status", "FLUSH_DISK_TIMEOUT", 10)
ERROR = Reaction("code", "SYSTEM_ERROR", 1)
GO_AWAY = Reaction("code", "GO_AWAY", 1500)
READ_ONLY = Reaction("read-only", "read-only")
TWO = route(a=2, b=2)


def played(topic: TopicRouteData = TWO, *failures: Failure, **fields: Any) -> SendSimulation:
    """A run at its end, to look at what reports do not say."""
    given: dict[str, Any] = {"messages": 1, "start_at": 0, "failures": failures}
    scenario = SendScenario(**given | fields)
    run = SendSimulation(topic, scenario, rules(scenario))
    play(run, skip=False)
    return run


def test_a_selector_send_with_a_lesser_status_is_stored_and_counted_as_such() -> None:
    scenario = SendScenario(messages=6, selector=Selector("hash", (0, 1, 2)), failures=(Failure("a", UNSAFE),))
    report = simulate_send(TWO, scenario)
    assert (report.totals.stored, report.totals.not_store_ok, report.totals.lost) == (6, 4, 0)
    assert (report.totals.retries, report.totals.retried) == (0, 0)
    assert {attempt.attempt for attempt in report.attempts or ()} == {1}


def test_a_hash_of_no_keys_is_the_first_queue() -> None:
    report = simulate_send(TWO, SendScenario(messages=3, selector=Selector("hash")))
    assert [tally.stored for tally in report.queues] == [3, 0, 0, 0]


@pytest.mark.parametrize("mode", ["async", "oneway"])
def test_a_list_that_is_empty_loses_messages_without_a_callback_or_a_wait_too(mode: Any) -> None:
    failures = tuple(Failure(name, READ_ONLY) for name in "ab")
    scenario = SendScenario(mode=mode, messages=20, rate=Fraction(10), failures=failures, first_poll_us=950_000)
    report = simulate_send(TWO, scenario)
    assert report.totals.lost_by == {"no route": 10}
    assert (report.totals.stored, report.totals.attempts, report.totals.lasted_ms) == (10, 10, 1900.0)


def test_a_oneway_send_has_one_attempt() -> None:
    report = simulate_send(TWO, SendScenario(mode="oneway", messages=5, rate=Fraction(10)))
    assert [attempt.attempt for attempt in report.attempts or ()] == [1] * 5
    assert (report.totals.retried, report.totals.retries, report.totals.attempts) == (0, 0, 5)


def test_a_queue_that_a_broker_does_not_have_isolates_it() -> None:
    failing = Failure("a", REFUSED)
    run = played(route(a=4, b=2), failing, mode="async", start_at=3, rate=Fraction(1), latency_fault=True)
    assert run.recorder.counts.lost_by == {"INVALID_PARAMETER": 1}
    assert run.recorder.counts.isolations == {"a": 1, "b": 1}


def test_an_async_go_away_says_nothing_against_the_brokers_reachability() -> None:
    """`MQClientAPIImpl`, 5.3.1: `operationFail` isolates, with the broker reachable; SYNC sends differ."""
    asked: dict[str, Any] = {"client_version": "5.3.1", "latency_fault": True, "detector": True, "retries": 0}
    run = played(TWO, Failure("a", GO_AWAY), mode="async", rate=Fraction(1), **asked)
    assert run.recorder.counts.lost_by == {"RemotingSendRequestException": 1}
    assert (run.recorder.counts.isolations["a"], run.strategy.items["a"].reachable) == (1, True)
    assert not played(TWO, Failure("a", GO_AWAY), **asked).strategy.items["a"].reachable


@pytest.mark.parametrize("version", ["5.1.4", "5.5.0"])
def test_a_thread_that_has_handed_over_its_request_says_that_the_broker_is_reachable(version: str) -> None:
    """`sendDefaultImpl` updates with isolation false and reachable true, of ASYNC sends too."""
    scenario = SendScenario(version, mode="async", messages=2, rate=Fraction(1), latency_fault=True, start_at=0)
    report = simulate_send(TWO, replace(scenario, failures=(Failure("a", TIMEOUT),), retries=0))
    assert [attempt.broker_name for attempt in report.attempts or ()] == ["a", "a"]


@pytest.mark.parametrize(
    ("version", "known"), [("4.9.7", {"a": 4, "b": 3}), ("4.9.8", {"a": 4}), ("5.1.0", {"a": 4, "b": 3})]
)
def test_only_4_9_8_counts_the_queues_of_writable_brokers_alone(version: str, known: dict[str, int]) -> None:
    datas = (QueueData("a", 4, 4, 6), QueueData("b", 3, 3, 4), QueueData("a", 9, 9, 6))
    topic = TopicRouteData("T", datas, tuple(BrokerData("c", name, {0: f"{name}:1"}) for name in "ab"))
    cluster = ClusterState(topic, SendScenario(version), profile_of(version), 1, 0)
    assert cluster.write_queue_nums == known


@pytest.mark.parametrize("detector", [False, True])
def test_only_the_detector_finds_a_broker_again(detector: bool) -> None:
    failing = Failure("a", ERROR, end=Moment(us=500_000))
    run = played(TWO, failing, messages=8, rate=Fraction(1), latency_fault=True, detector=detector)
    assert run.strategy.items["a"].reachable is detector


@pytest.mark.parametrize(("messages", "found"), [(12, False), (13, True)])
def test_the_detector_asks_every_three_seconds(messages: int, found: bool) -> None:
    """The broker fails at 0 s, is isolated for 10 s, and fails again at 11 s: it is found at 3 s and at 12 s."""
    failing = Failure("a", ERROR)
    run = played(
        route(a=1, b=1), failing, messages=messages, rate=Fraction(1), latency_fault=True, detector=True, retries=1
    )
    assert run.recorder.counts.by_failure == [2]
    assert run.strategy.items["a"].reachable is found


@pytest.mark.parametrize(
    ("failures", "fields", "draws"),
    [
        ((Failure("a", TIMEOUT),), {}, 1),
        ((Failure("a", TIMEOUT),), {"timeout_per_request_ms": 500}, 0),
        ((Failure("a", REFUSED), Failure("b", TIMEOUT)), {"retries": 1}, 0),
    ],
    ids=["first", "capped", "second"],
)
def test_how_far_into_a_millisecond_a_message_began_matters_after_a_first_timeout(
    failures: tuple[Failure, ...], fields: dict[str, Any], draws: int
) -> None:
    assert played(TWO, *failures, **fields).threads[0].draws == draws


def test_the_default_clock_counts_milliseconds_since_1970() -> None:
    assert abs(_wall_clock() / 1000 - time.time()) < 600


def test_a_broker_is_available_until_it_is_isolated_and_again_after() -> None:
    now = [0]
    strategy = MQFaultStrategy(True, clock=lambda: now[0])
    assert strategy.is_available("a")
    strategy.update_fault_item("a", 20, isolation=True)
    assert (strategy.is_available("a"), strategy.is_available("b")) == (False, True)
    now[0] = 9_999
    assert not strategy.is_available("a")
    now[0] = 10_000
    assert strategy.is_available("a")


@pytest.mark.parametrize(
    "reaction", [REFUSED, TIMEOUT, UNSAFE, ERROR, Reaction("slow", "slow", 0, 90_000)], ids=lambda r: r.kind
)
@pytest.mark.parametrize("mode", ["sync", "async", "oneway", "selector"])
def test_a_clock_of_finer_ticks_changes_no_time(mode: Any, reaction: Reaction) -> None:
    """Three messages a second need thirds of a microsecond; the first message is sent at 0 all the same."""
    failing = Failure("a", reaction, end=Moment(us=200_000), notices_us=100_000 if reaction.kind == "timeout" else None)
    how: Any = {"selector": Selector("hash")} if mode == "selector" else {"mode": mode}
    scenario = SendScenario("5.1.0", messages=1, start_at=0, latency_fault=True, failures=(failing,), **how)
    scenario = replace(scenario, timeout_ms=500, duration_us=100_000, first_poll_us=150_000)
    whole, third = (simulate_send(TWO, replace(scenario, rate=Fraction(rate))) for rate in (1, 3))
    assert replace(third, scenario=whole.scenario) == whole
    assert len(whole.attempts or ()) >= 1


@pytest.mark.parametrize(("reaction", "drops"), [(READ_ONLY, True), (ERROR, False), (REFUSED, True), (UNSAFE, False)])
def test_only_what_leaves_the_route_waits_for_a_route_poll(reaction: Reaction, drops: bool) -> None:
    """Without `notices_us` the NameServer notices nothing, but of the write permission, which it knows."""
    noticed = 1_000_000 if reaction is REFUSED else None
    scenario = SendScenario(
        messages=5, failures=(Failure("a", reaction, notices_us=noticed),), first_poll_us=30_000_000
    )
    codes = [finding.code for finding in simulate_send(TWO, scenario).findings]
    assert ("before-route-poll" in codes) is drops


def test_a_failure_is_first_felt_by_the_first_attempt_that_fails_of_it() -> None:
    """A retry takes b's next queue, so that a has its turn at 0, 1, 3 and 5 s."""
    failing = Failure("a", REFUSED, Moment(us=500_000))
    (failure,) = simulate_send(
        TWO, SendScenario(messages=6, rate=Fraction(1), start_at=0, failures=(failing,))
    ).failures
    assert (failure.failed, failure.began_ms, failure.first_failed_ms) == (3, 500.0, 1000.0)


@pytest.mark.parametrize("selector", [None, Selector("hash")], ids=["sync", "selector"])
@pytest.mark.parametrize(("us", "stored"), [(500_000, 1), (500_001, 0)])
def test_an_answer_that_takes_the_whole_budget_is_in_time(selector: Selector | None, us: int, stored: int) -> None:
    fields: dict[str, Any] = {"timeout_ms": 500, "retries": 0, "selector": selector}
    assert simulate_send(TWO, SendScenario(messages=1, latency=constant(us, "x"), **fields)).totals.stored == stored


def test_a_time_line_has_at_most_120_slices() -> None:
    line = Timeline(Counters((), ()), 1)
    for _ in range(119):
        line.mark()
    assert (line.next_at, len(line.slices(120, 1))) == (120, 120)
    line.mark()
    assert (line.next_at, len(line.slices(121, 1))) == (122, 61)


def test_only_the_first_list_begins_where_it_is_told() -> None:
    """The route changes at 1 s: the second list's round robin starts at a random place."""
    failing = Failure("b", READ_ONLY)
    scenario = SendScenario(messages=2, rate=Fraction(1, 2), start_at=0, failures=(failing,), first_poll_us=1_000_000)
    runs = [simulate_send(route(a=8, b=1), replace(scenario, seed=seed)) for seed in range(8)]
    picked = [[attempt.queue_id for attempt in each.attempts or ()] for each in runs]
    assert {first for first, _ in picked} == {0}
    assert len({second for _, second in picked}) > 2


def test_a_measured_latency_is_a_java_long() -> None:
    strategy = MQFaultStrategy(True, clock=lambda: 0)
    for latency in (2**63 - 1, -(2**63)):
        strategy.update_fault_item("a", latency)
    for latency in (2**63, -(2**63) - 1):
        with pytest.raises(UsageError, match="current_latency"):
            strategy.update_fault_item("a", latency)


@pytest.mark.parametrize(
    ("version", "timeout_ms", "empty_ms"), [("4.9.7", 500.75, 1), ("4.9.8", 500.75, 1), ("5.0.0", 500.5, 0.1)]
)
def test_what_a_client_takes_beyond_its_budget_is_as_measured(version: str, timeout_ms: float, empty_ms: float) -> None:
    asked: dict[str, Any] = {"client_version": version, "timeout_ms": 500, "retries": 0}
    assert played(TWO, Failure("a", TIMEOUT), **asked).recorder.last_done == timeout_ms * 1000
    assert played(TWO, Failure("a", TIMEOUT), **asked | {"timeout_ms": 0}).recorder.last_done == empty_ms * 1000


@pytest.mark.parametrize(("selector", "skewed"), [(None, True), (Selector("hash", (4, 4, 8)), False)])
def test_only_a_broker_that_is_isolated_passes_its_turns_on(selector: Selector | None, skewed: bool) -> None:
    failing = Failure("a", REFUSED)
    scenario = SendScenario("4.9.7", messages=1200, start_at=0, latency_fault=True, failures=(failing,))
    report = simulate_send(route(a=4, b=4, c=4), replace(scenario, selector=selector))
    assert any(finding.code == "skewed" for finding in report.findings) is skewed


@pytest.mark.parametrize(("messages", "kept"), [(1000, True), (1001, False)])
def test_attempts_and_lost_messages_are_kept_of_a_thousand_messages_at_most(messages: int, kept: bool) -> None:
    report = simulate_send(TWO, SendScenario(messages=messages))
    assert ((report.attempts is not None), (report.lost_messages is not None)) == (kept, kept)


def test_no_latency_is_longer_than_a_day() -> None:
    hour_us = 3_600_000_000
    assert max(lognormal(hour_us, 3.0, "lognormal").tail) == 24 * hour_us
    assert max(lognormal(hour_us // 24, 0.1, "lognormal").tail) < hour_us


@pytest.mark.parametrize(("retries", "blamed"), [(0, False), (2, True)])
@pytest.mark.parametrize(("reaction", "late"), [(TIMEOUT, True), (REFUSED, False)], ids=["timeout", "refused"])
def test_time_outs_that_isolate_healthy_brokers_are_a_finding(
    reaction: Reaction, late: bool, retries: int, blamed: bool
) -> None:
    scenario = SendScenario(messages=60, rate=Fraction(1, 60), retries=retries, latency_fault=True)
    report = simulate_send(TWO, replace(scenario, failures=(Failure("a", reaction),)))
    assert (report.brokers[1].isolations > 0) is (late and blamed)
    assert any(finding.code == "healthy-isolated" for finding in report.findings) is (late and blamed)
