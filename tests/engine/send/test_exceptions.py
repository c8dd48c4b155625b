"""What the application gets of lost messages. `test_reactions` holds the texts against those of real producers."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from rmqlb import Failure, Moment, Reaction, SendReport, SendScenario, simulate_send
from rmqlb.engine.send.recorder import MOST_KINDS
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import Selector
from rmqlb.model.simulate_send import LostMessage, MessageException
from tests.engine.send.scenarios import routes, scenarios
from tests.support.builders import route
from tests.support.mismatches import every_case

REFUSED = Reaction("refused", "refused", 0, 1000)
TIMEOUT = Reaction("timeout", "timeout")
OLD, NEW = "http://rocketmq.apache.org/docs/faq/", "https://rocketmq.apache.org/docs/bestPractice/06FAQ"
ONE = route(a=2)


def told(reaction: Reaction | None, *names: str, topic: TopicRouteData = ONE, **given: Any) -> MessageException:
    """What comes of the first message, which is lost."""
    failures = () if reaction is None else tuple(Failure(name, reaction) for name in names or ("a",))
    settings: dict[str, Any] = {"messages": 1, "failures": failures, "start_at": 0}
    report = simulate_send(topic, SendScenario(**settings | given))
    (lost,) = report.lost_messages or ()
    (tally,) = report.exceptions
    assert (tally.messages, tally.first_message) == (1, lost.message)
    assert report.totals.lost_by == {lost.reason: 1}
    assert lost.exception is not None
    return lost.exception


@every_case(("version", "url"), [("4.7.1", OLD), ("5.0.0", OLD), ("5.1.0", NEW), ("5.5.0", NEW)])
def test_after_the_last_attempt_the_exception_names_the_brokers_tried(version: str, url: str) -> None:
    exception = told(REFUSED, "a", "b", topic=route(a=1, b=1), client_version=version)
    assert exception.text == (
        f"Send [3] times, still failed, cost [3]ms, Topic: T, BrokersSent: [a, b, a]\nSee {url} for further details."
    )
    assert (exception.exception_class, exception.response_code) == ("MQClientException", 10001)
    assert exception.cause == "RemotingConnectException"


def test_a_code_that_is_retried_is_the_code_of_the_exception_even_without_retries() -> None:
    exception = told(Reaction("code", "SYSTEM_ERROR", 1), retries=0)
    assert (exception.exception_class, exception.response_code) == ("MQClientException", 1)
    assert exception.cause == "MQBrokerException"
    assert (exception.text or "").startswith("Send [1] times, still failed, cost [1]ms")


def test_a_code_that_is_not_retried_comes_as_it_is_and_its_remark_is_unknown() -> None:
    exception = told(Reaction("code", "MESSAGE_ILLEGAL", 13))
    assert exception == MessageException("MQBrokerException", None, 13)


def test_a_list_that_is_empty_is_no_route() -> None:
    read_only = Failure("a", Reaction("read-only", "read-only"))
    scenario = SendScenario(messages=300, rate=Fraction(10), failures=(read_only,), first_poll_us=1_000_000)
    report = simulate_send(ONE, scenario)
    (tally,) = report.exceptions
    assert (report.lost_messages or ())[0].exception == MessageException(
        "MQClientException", f"No route info of this topic: T\nSee {NEW} for further details.", 10005
    )
    assert tally.brokers_sent == ()
    assert tally.first_message == 11


def test_a_selector_that_finds_nothing_and_one_whose_broker_is_gone() -> None:
    nothing = told(None, selector=Selector("machine-room"))
    text = f"select message queue return null.\nFor more information, please visit the url, {NEW}"
    assert nothing == MessageException("MQClientException", text, -1)
    refused = told(REFUSED, selector=Selector("hash", (0,)))
    assert refused == MessageException("RemotingConnectException", "connect to a:10911 failed")
    silent = told(TIMEOUT, selector=Selector("hash", (0,)))
    assert silent == MessageException("RemotingTimeoutException")


@every_case(
    ("version", "attempts", "expected"),
    [
        ("4.7.1", 1, ("MQClientException", 10001, "RemotingConnectException", "Send [1] times, still failed")),
        ("4.9.2", 1, ("MQClientException", 10001, "RemotingConnectException", "Send [1] times, still failed")),
        ("4.9.3", 3, ("RemotingConnectException", None, None, "connect to ")),
        ("5.2.0", 3, ("RemotingConnectException", None, None, "connect to ")),
        ("5.3.0", 3, ("MQClientException", -1, "RemotingConnectException", "unknown reason\n")),
    ],
)
def test_a_refused_async_send_is_retried_since_4_9_3(version: str, attempts: int, expected: tuple[Any, ...]) -> None:
    """Before, `sendMessageAsync` let the exception pass, and `sendDefaultImpl` has one attempt for ASYNC."""
    failures = (Failure("a", REFUSED), Failure("b", REFUSED))
    scenario = SendScenario(version, "async", messages=1, rate=Fraction(1), failures=failures, latency_fault=True)
    report = simulate_send(route(a=1, b=1), scenario)
    exception = report.exceptions[0]
    assert report.totals.attempts == attempts
    assert (exception.exception_class, exception.response_code, exception.cause) == expected[:3]
    assert (exception.text or "").startswith(expected[3])
    if version in ("4.7.1", "4.9.2"):  # no hand-over that would speak well of it follows
        assert [b.isolations for b in report.brokers if b.attempts] == [1]
        assert [b.isolated_ms for b in report.brokers] == [0.0, 0.0]


@every_case(
    ("version", "text"),
    [("4.8.0", "wait response timeout 300ms"), ("5.1.4", "wait response timeout 300ms"), ("5.2.0", "…, cost=")],
)
def test_an_async_timeout_tells_its_budget_and_since_5_2_its_cost(version: str, text: str) -> None:
    exception = told(TIMEOUT, client_version=version, mode="async", rate=Fraction(1), retries=0, timeout_ms=300)
    assert exception.exception_class == "MQClientException"
    assert (exception.text or "").partition("\n")[0].replace("wait response timeout, ", "…, ").startswith(text)
    assert exception.cause == ("RemotingTimeoutException" if version == "5.2.0" else None)


@every_case(
    ("version", "attempts", "text", "isolated"),
    [
        ("4.9.2", 2, "invokeAsync call timeout", 1),
        ("4.9.3", 3, "invokeAsync call the addr[", 3),
        ("5.3.0", 2, "unknown reason", 2),
    ],
)
def test_an_async_retry_without_time_left(version: str, attempts: int, text: str, isolated: int) -> None:
    scenario = SendScenario(
        version, "async", messages=1, rate=Fraction(1), timeout_ms=300, latency_fault=True,
        failures=tuple(Failure(name, TIMEOUT) for name in "abc"),
    )  # fmt: skip
    report = simulate_send(route(a=1, b=1, c=1), scenario)
    assert report.totals.attempts == attempts
    assert (report.exceptions[0].text or "").startswith(text)
    assert sum(broker.isolations > 0 for broker in report.brokers) == isolated


def test_what_is_lost_unnoticed_is_no_exception() -> None:
    scenario = SendScenario(mode="oneway", messages=3, rate=Fraction(1), failures=(Failure("a", REFUSED),))
    report = simulate_send(ONE, scenario)
    assert report.exceptions == ()
    assert [(lost.reason, lost.exception) for lost in report.lost_messages or ()] == [("lost unnoticed", None)] * 3


def test_exceptions_of_more_kinds_than_anyone_reads_are_counted_together() -> None:
    names = [f"b{number}" for number in range(12)]
    scenario = SendScenario(
        messages=2000, latency_fault=True, failures=tuple(Failure(name, Reaction("code", "X", 1)) for name in names)
    )
    brokers: dict[str, Any] = dict.fromkeys(names, 1)
    report = simulate_send(route(**brokers), scenario, trace=True)
    kinds = Counter(lost.brokers_sent for lost in report.lost_messages or ())
    assert len(kinds) > MOST_KINDS
    assert len(report.exceptions) == MOST_KINDS + 1
    others = [tally for tally in report.exceptions if tally.brokers_sent is None]
    assert len(others) == 1
    assert sum(tally.messages for tally in report.exceptions) == report.totals.lost
    assert all(kinds[tally.brokers_sent] == tally.messages for tally in report.exceptions if tally.brokers_sent)


def of_each_message(report: SendReport) -> dict[int, list[tuple[str, bool]]]:
    """Message → broker and whether it stored the message, attempt by attempt."""
    stored = {"SEND_OK", "FLUSH_DISK_TIMEOUT", "ONEWAY"}
    found: dict[int, list[tuple[str, bool]]] = {}
    for attempt in report.attempts or ():
        found.setdefault(attempt.message, []).append((attempt.broker_name, attempt.outcome in stored))
    return found


@settings(max_examples=150)
@given(routes(), scenarios(modes=("sync", "sync", "async", "oneway"), most_messages=300))
def test_every_lost_message_and_every_one_stored_twice_is_counted(
    topic: TopicRouteData, scenario: SendScenario
) -> None:
    report = simulate_send(topic, scenario, trace=True)
    attempts, lost, totals = of_each_message(report), report.lost_messages or (), report.totals
    assert Counter(each.reason for each in lost) == totals.lost_by
    assert sum(tally.messages for tally in report.exceptions) == sum(each.exception is not None for each in lost)
    assert all([name for name, _ in attempts.get(each.message, [])] == list(each.brokers_sent) for each in lost)
    assert all(not any(stored for _, stored in attempts.get(each.message, [])) for each in lost)
    assert totals.duplicated == sum(sum(stored for _, stored in tries) > 1 for tries in attempts.values())
    assert (totals.longest_send_ms is None) == (totals.attempts == 0)
    untraced = simulate_send(topic, scenario, trace=False)
    assert (untraced.exceptions, untraced.totals) == (report.exceptions, totals)


def test_a_message_stored_by_every_attempt_counts_once() -> None:
    unsafe = Reaction("status", "FLUSH_DISK_TIMEOUT", 10)
    scenario = SendScenario(messages=4, retry_not_store_ok=True, failures=tuple(Failure(n, unsafe) for n in "ab"))
    totals = simulate_send(route(a=1, b=1), scenario).totals
    assert (totals.stored, totals.not_store_ok, totals.duplicated, totals.attempts) == (4, 4, 4, 12)
    later = Failure("a", unsafe, Moment(message=2))
    once = SendScenario(messages=2, retry_not_store_ok=True, failures=(later,), start_at=1)
    assert simulate_send(route(a=1, b=1), once).totals.duplicated == 1


def test_lost_messages_are_handed_on_as_they_are_kept() -> None:
    topic, lasting = route(a=2, b=2), Failure("a", REFUSED, Moment(message=2))
    scenario = SendScenario(messages=3000, retries=0, start_at=0, failures=(lasting,))
    handed: list[LostMessage] = []
    streamed = simulate_send(topic, scenario, lost_sink=handed.append)
    assert (streamed.attempts, streamed.lost_messages) == (None, None)
    assert len(handed) == streamed.totals.lost == 1499
    both: list[LostMessage] = []
    kept = simulate_send(topic, scenario, trace=True, lost_sink=both.append)
    assert list(kept.lost_messages or ()) == both == handed
    assert simulate_send(topic, replace(scenario, messages=3), lost_sink=both.append).lost_messages is None


@pytest.mark.parametrize(
    ("reaction", "code", "cause"),
    [
        (TIMEOUT, 10002, "RemotingTimeoutException"),
        (Reaction("code", "GO_AWAY", 1500), -1, "RemotingSendRequestException"),
    ],
    ids=["timeout", "go-away"],
)
def test_the_code_of_the_last_attempts_exception_is_that_of_client_error_code(
    reaction: Reaction, code: int, cause: str
) -> None:
    """`ClientErrorCode.ACCESS_BROKER_TIMEOUT`; a request that could not be sent has no code."""
    exception = told(reaction, retries=0)
    assert (exception.response_code, exception.cause) == (code, cause)


def test_a_broker_without_an_address_does_not_exist() -> None:
    """The route leaves it out at 30 s, the order config keeps its queues; `BROKER_NOT_EXIST_EXCEPTION` is 10003."""
    topic = replace(route(a=1, b=1), order_topic_conf="a:1;b:1")
    gone = Failure("a", REFUSED, notices_us=0)
    asked: dict[str, Any] = {"messages": 2, "rate": Fraction(1, 40), "retries": 0, "failures": (gone,)}
    asked |= {"exclude": frozenset("b")}
    _, lost = simulate_send(topic, SendScenario(**asked)).lost_messages or ()
    assert lost.exception is not None
    assert (lost.exception.response_code, lost.exception.cause) == (10003, "MQClientException")
    assert (lost.at_ms, lost.message, lost.thread, lost.brokers_sent) == (40_000.1, 2, 1, ("a",))
    chosen = SendScenario(**asked | {"selector": Selector("hash", (0,))})
    by_selector = [each.exception for each in simulate_send(topic, chosen).lost_messages or ()]
    text = f"The broker[a] not exist\nFor more information, please visit the url, {NEW}"
    assert by_selector[1] == MessageException("MQClientException", text, -1)


def test_a_selector_without_a_list_has_no_route() -> None:
    read_only = Failure("a", Reaction("read-only", "read-only"))
    scenario = SendScenario(
        messages=2, rate=Fraction(1), failures=(read_only,), first_poll_us=500_000, selector=Selector("hash")
    )
    first, *_ = simulate_send(ONE, scenario).lost_messages or ()
    text = f"No route info for this topic, T\nFor more information, please visit the url, {NEW}"
    assert first.exception == MessageException("MQClientException", text, -1)
    assert first.at_ms == 1001.0  # a question to a NameServer takes a millisecond
