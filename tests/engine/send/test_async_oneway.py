"""ASYNC and ONEWAY sends: what is handed over, what is retried where, and what nobody notices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import Failure, Reaction, SendReport, SendScenario, simulate_send
from rmqlb.engine.send.latency import constant
from tests.engine.send.scenarios import ERROR, GO_AWAY, READ_ONLY, REFUSED, TIMEOUT, TWO, UNSAFE, played
from tests.support.builders import route
from tests.support.mismatches import every_case

TOPIC = route(a=4, b=2, c=2)


def sent(reaction: Reaction, mode: str, **settings: Any) -> SendReport:
    """One message to queue 3 of a, which fails."""
    given = {"messages": 1, "start_at": 3, "rate": Fraction(1), "mode": mode, "failures": (Failure("a", reaction),)}
    return simulate_send(TOPIC, SendScenario(**given | settings))  # type: ignore[arg-type]


def test_an_async_retry_keeps_the_queue_id_even_where_there_is_none() -> None:
    report = sent(REFUSED, "async")
    attempts = report.attempts or ()
    assert [(a.queue_id, a.outcome) for a in attempts] == [(3, "RemotingConnectException"), (3, "INVALID_PARAMETER")]
    assert attempts[1].broker_name in "bc"
    assert report.totals.lost_by == {"INVALID_PARAMETER": 1}


def test_an_async_attempt_is_of_the_thread_that_sent_its_message() -> None:
    report = sent(REFUSED, "async", messages=4, threads=2, rate=Fraction(10))
    assert [(a.message, a.attempt, a.thread) for a in report.attempts or ()][:4] == [
        (1, 1, 1),
        (1, 2, 1),
        (2, 1, 2),
        (3, 1, 1),
    ]


@pytest.mark.parametrize("threads", [1, 2])
def test_an_async_attempt_takes_as_long_as_its_own_broker_does(threads: int) -> None:
    slow = constant(50_000, "50ms")
    scenario = SendScenario(mode="async", rate=Fraction(1), messages=4, threads=threads, latencies={"a": slow})
    attempts = simulate_send(TOPIC, scenario).attempts or ()
    assert [a.took_ms for a in attempts] == [50.0 if a.broker_name == "a" else 1.0 for a in attempts]


def test_an_async_error_code_is_never_retried() -> None:
    report = sent(Reaction("code", "SYSTEM_ERROR", 1), "async")
    assert (report.totals.attempts, report.totals.lost_by) == (1, {"SYSTEM_ERROR": 1})


def test_an_async_timeout_is_noticed_a_second_late_or_two() -> None:
    report = sent(TIMEOUT, "async", timeout_ms=300)
    assert report.totals.lost_by == {"RemotingTimeoutException": 1}
    assert report.totals.attempts == 1
    assert 1300 <= (report.totals.longest_send_ms or 0) <= 2300


@every_case(("version", "isolated"), [("4.9.7", [1, 1, 1]), ("5.2.0", [1, 1, 1]), ("5.5.0", [1, 0, 0])])
def test_before_5_3_an_async_timeout_isolates_healthy_brokers(version: str, isolated: list[int]) -> None:
    """Retries without any time left fail before anything is sent, and count against the broker they chose."""
    seeds = [
        [
            min(b.isolations, 1)
            for b in sent(TIMEOUT, "async", client_version=version, latency_fault=True, seed=s).brokers
        ]
        for s in range(20)
    ]
    assert isolated in seeds
    if version == "5.5.0":
        assert seeds == [isolated] * 20
    else:  # the first retry goes to another broker, the second perhaps back
        assert all(seed[0] == 1 and sum(seed) >= 2 for seed in seeds)


def test_the_hand_over_of_4_9_clears_the_isolation_that_a_refusal_made() -> None:
    old = sent(REFUSED, "async", client_version="4.9.7", latency_fault=True)
    new = sent(REFUSED, "async", client_version="5.5.0", latency_fault=True)
    assert (old.brokers[0].isolated_ms, old.failures[0].isolated_by) == (0, "isolation")
    assert new.brokers[0].isolations == 1
    assert (
        simulate_send(
            TOPIC,
            SendScenario(
                "5.5.0",
                "async",
                messages=12,
                rate=Fraction(1),
                latency_fault=True,
                failures=(Failure("a", REFUSED),),
                start_at=3,
            ),
        )
        .brokers[0]
        .isolated_ms
        > 9000
    )


def test_an_async_retry_that_is_refused_isolates_the_broker_that_refused_it() -> None:
    """`sendMessageAsync` catches the exception and names the broker that it wanted to send to."""
    both = (Failure("a", REFUSED), Failure("b", REFUSED))
    report = simulate_send(
        route(a=4, b=4),
        SendScenario(mode="async", messages=1, rate=Fraction(1), failures=both, latency_fault=True, retries=1),
    )
    assert [a.outcome for a in report.attempts or ()] == ["RemotingConnectException"] * 2
    assert [(b.broker_name, b.isolations) for b in report.brokers] == [("a", 1), ("b", 1)]


def test_a_oneway_message_to_a_dead_broker_is_lost_unnoticed_since_5_3() -> None:
    new, old = sent(REFUSED, "oneway"), sent(REFUSED, "oneway", client_version="5.2.0")
    assert new.totals.lost_by == {"lost unnoticed": 1}
    assert old.totals.lost_by == {"RemotingConnectException": 1}
    assert [a.outcome for a in new.attempts or ()] == ["ONEWAY_LOST"]


@pytest.mark.parametrize("reaction", [TIMEOUT, Reaction("code", "SYSTEM_ERROR", 1)])
def test_nobody_hears_of_a_oneway_message_that_fails(reaction: Reaction) -> None:
    assert sent(reaction, "oneway").totals.lost_by == {"lost unnoticed": 1}


def test_messages_do_not_wait_for_each_other() -> None:
    report = sent(TIMEOUT, "async", messages=8, rate=Fraction(10))
    assert sorted(a.at_ms for a in report.attempts or ()) == [i * 100 for i in range(8)]


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
    assert run.recorder.lost_by == {"INVALID_PARAMETER": 1}
    assert run.recorder.isolations == {"a": 1, "b": 1}


def test_an_async_go_away_says_nothing_against_the_brokers_reachability() -> None:
    """`MQClientAPIImpl`, 5.3.1: `operationFail` isolates, with the broker reachable; SYNC sends differ."""
    asked: dict[str, Any] = {"client_version": "5.3.1", "latency_fault": True, "detector": True, "retries": 0}
    run = played(TWO, Failure("a", GO_AWAY), mode="async", rate=Fraction(1), **asked)
    assert run.recorder.lost_by == {"RemotingSendRequestException": 1}
    assert (run.recorder.isolations["a"], run.strategy.items["a"].reachable) == (1, True)
    assert not played(TWO, Failure("a", GO_AWAY), **asked).strategy.items["a"].reachable


@pytest.mark.parametrize("version", ["5.1.4", "5.5.0"])
def test_a_thread_that_has_handed_over_its_request_says_that_the_broker_is_reachable(version: str) -> None:
    """`sendDefaultImpl` updates with isolation false and reachable true, of ASYNC sends too."""
    scenario = SendScenario(version, mode="async", messages=2, rate=Fraction(1), latency_fault=True, start_at=0)
    report = simulate_send(TWO, replace(scenario, failures=(Failure("a", TIMEOUT),), retries=0))
    assert [attempt.broker_name for attempt in report.attempts or ()] == ["a", "a"]


@every_case("version", ["4.9.3", "5.3.1"])
@every_case(("refused_ms", "second"), [(300, "SEND_OK"), (301, "RemotingTooMuchRequestException")])
def test_a_retry_is_sent_with_no_time_left_and_refused_a_millisecond_later(
    version: str, refused_ms: int, second: str
) -> None:
    """`NettyRemotingClient.invokeAsync` asks `timeoutMillis < costTime`."""
    failing = Failure("a", Reaction("refused", "refused", 0, 1000 * refused_ms))
    scenario = SendScenario(version, mode="async", start_at=0, rate=Fraction(1), messages=1, timeout_ms=300)
    report = simulate_send(TWO, replace(scenario, failures=(failing,)))
    assert [attempt.outcome for attempt in report.attempts or ()][1] == second


def test_a_retry_without_time_says_nothing_against_the_brokers_reachability() -> None:
    """5.3.1 does not connect before it hands over: `invokeAsync` refuses by itself, and the broker was not asked."""
    failing = Failure("a", Reaction("refused", "refused", 0, 301_000))
    asked: dict[str, Any] = {"client_version": "5.3.1", "latency_fault": True, "detector": True, "timeout_ms": 300}
    run = played(TWO, failing, mode="async", rate=Fraction(1), **asked)
    assert run.recorder.lost_by == {"RemotingTooMuchRequestException": 1}
    assert (run.recorder.isolations["b"], run.strategy.items["b"].reachable) == (1, True)


@every_case(("timeout_ms", "told_ms"), [(300, 2000), (1000, 2000), (1001, 3000)])
def test_an_async_timeout_is_told_when_the_table_is_scanned(timeout_ms: int, told_ms: int) -> None:
    """`scanResponseTable` runs each second and asks `beginTimestamp + timeoutMillis + 1000 <= now`."""
    assert sent(TIMEOUT, "async", timeout_ms=timeout_ms).totals.longest_send_ms == told_ms


@pytest.mark.parametrize(("took_ms", "outcome"), [(2000, "SEND_OK"), (2001, "RemotingTimeoutException")])
def test_an_async_answer_counts_until_the_table_is_scanned(took_ms: int, outcome: str) -> None:
    report = sent(Reaction("slow", "slow", 0, took_ms * 1000), "async", timeout_ms=300)
    assert [attempt.outcome for attempt in report.attempts or ()] == [outcome]


@pytest.mark.parametrize(("queue_id", "outcome"), [(1, "SEND_OK"), (2, "INVALID_PARAMETER")])
def test_the_last_queue_that_a_broker_has_is_no_illegal_one(queue_id: int, outcome: str) -> None:
    report = sent(REFUSED, "async", start_at=queue_id)
    assert [(a.queue_id, a.outcome) for a in report.attempts or ()][1] == (queue_id, outcome)


@pytest.mark.parametrize(("version", "reachable"), [("5.2.0", False), ("5.3.0", True)])
def test_an_async_refusal_says_that_a_broker_cannot_be_reached_before_5_3(version: str, reachable: bool) -> None:
    """`sendMessageAsync` caught it and told `reachable` false; since 5.3.0 `operationFail` tells true.

    Of the first broker the hand-over says better after it.
    """
    both = (Failure("a", REFUSED), Failure("b", REFUSED))
    asked: dict[str, Any] = {"client_version": version, "latency_fault": True, "detector": True, "retries": 1}
    items = played(TWO, *both, mode="async", rate=Fraction(1), **asked).strategy.items
    assert {name: item.reachable for name, item in items.items()} == {"a": True, "b": reachable}


@pytest.mark.parametrize(("version", "reachable"), [("5.2.0", False), ("5.3.0", True)])
def test_a_retry_without_time_counts_against_the_brokers_reachability_before_5_3(version: str, reachable: bool) -> None:
    failing = Failure("a", Reaction("refused", "refused", 0, 301_000))
    asked: dict[str, Any] = {"client_version": version, "latency_fault": True, "detector": True, "timeout_ms": 300}
    run = played(TWO, failing, mode="async", rate=Fraction(1), retries=1, **asked)
    assert run.recorder.lost_by == {"RemotingTooMuchRequestException": 1}
    assert run.strategy.items["b"].reachable is reachable


@pytest.mark.parametrize("reaction", [TIMEOUT, ERROR], ids=lambda reaction: reaction.kind)
def test_whatever_else_an_async_send_fails_of_its_broker_was_reached(reaction: Reaction) -> None:
    """`operationFail` and `processSendResponse` both tell `reachable` true."""
    asked: dict[str, Any] = {"latency_fault": True, "detector": True, "timeout_ms": 300, "retries": 0}
    run = played(TWO, Failure("a", reaction), mode="async", rate=Fraction(1), **asked)
    assert (run.recorder.isolations["a"], run.strategy.items["a"].reachable) == (1, True)


@pytest.mark.parametrize("reaction", [UNSAFE, Reaction("slow", "slow", 0, 9_000_000)], ids=lambda r: r.kind)
def test_a_oneway_message_is_handed_over_to_a_broker_that_stores_it(reaction: Reaction) -> None:
    report = sent(reaction, "oneway")
    assert (report.totals.stored, report.totals.lost, report.totals.not_store_ok) == (1, 0, 0)
    assert [(a.outcome, a.took_ms) for a in report.attempts or ()] == [("ONEWAY", 0.0)]


@pytest.mark.parametrize(("version", "isolations"), [("5.2.0", 1), ("5.3.0", 0)])
def test_a_oneway_refusal_isolates_where_it_is_told(version: str, isolations: int) -> None:
    report = sent(REFUSED, "oneway", client_version=version, latency_fault=True)
    assert report.brokers[0].isolations == isolations
