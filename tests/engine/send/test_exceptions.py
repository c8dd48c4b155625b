"""What the application gets of lost messages. `test_reactions` holds the texts against those of real producers."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

from rmqlb import Failure, Reaction, SendScenario, simulate_send
from rmqlb.engine.send.recorder import MOST_KINDS
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import Selector
from rmqlb.model.simulate_send import MessageException
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
