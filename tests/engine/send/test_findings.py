"""What a simulation of sends finds odd."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import Failure, Moment, Reaction, SendReport, SendScenario, simulate_send
from rmqlb.engine.send.findings import send_findings
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import Selector
from tests.engine.send.scenarios import ERROR, READ_ONLY, REFUSED, TIMEOUT, TWO, UNSAFE
from tests.support.builders import route
from tests.support.mismatches import every_case


@every_case(("reaction", "drops"), [(READ_ONLY, True), (ERROR, False), (REFUSED, True), (UNSAFE, False)])
def test_only_what_leaves_the_route_waits_for_a_route_poll(reaction: Reaction, drops: bool) -> None:
    """Without `notices_us` the NameServer notices nothing, but of the write permission, which it knows."""
    noticed = 1_000_000 if reaction is REFUSED else None
    scenario = SendScenario(
        messages=5, failures=(Failure("a", reaction, notices_us=noticed),), first_poll_us=30_000_000
    )
    codes = [finding.code for finding in simulate_send(TWO, scenario).findings]
    assert ("before-route-poll" in codes) is drops


@pytest.mark.parametrize(("selector", "skewed"), [(None, True), (Selector("hash", (4, 4, 8)), False)])
def test_only_a_broker_that_is_isolated_passes_its_turns_on(selector: Selector | None, skewed: bool) -> None:
    failing = Failure("a", REFUSED)
    scenario = SendScenario("4.9.7", messages=1200, start_at=0, latency_fault=True, failures=(failing,))
    report = simulate_send(route(a=4, b=4, c=4), replace(scenario, selector=selector))
    assert any(finding.code == "skewed" for finding in report.findings) is skewed


@every_case(("retries", "blamed"), [(0, False), (2, True)])
@every_case(("reaction", "late"), [(TIMEOUT, True), (REFUSED, False)], ids=["timeout", "refused"])
def test_time_outs_that_isolate_healthy_brokers_are_a_finding(
    reaction: Reaction, late: bool, retries: int, blamed: bool
) -> None:
    scenario = SendScenario(messages=60, rate=Fraction(1, 60), retries=retries, latency_fault=True)
    report = simulate_send(TWO, replace(scenario, failures=(Failure("a", reaction),)))
    assert (report.brokers[1].isolations > 0) is (late and blamed)
    assert any(finding.code == "healthy-isolated" for finding in report.findings) is (late and blamed)


def said(code: str, topic: TopicRouteData = TWO, **settings: Any) -> list[str]:
    """The texts of one kind of finding."""
    given: dict[str, Any] = {"messages": 40, "rate": Fraction(1), "start_at": 0}
    return [
        each.message for each in simulate_send(topic, SendScenario(**given | settings)).findings if each.code == code
    ]


@every_case(("noticed_s", "began_s", "poll_s"), [(31, 0, 60), (59.999, 0, 60), (60, 0, 90), (30, 31, 90), (0, 39, 60)])
def test_the_poll_that_lets_a_broker_drop_is_the_next_after_it_is_known(
    noticed_s: float, began_s: int, poll_s: int
) -> None:
    """Polls at 30, 60, 90 s; one at the very moment comes too early."""
    failing = Failure("a", REFUSED, Moment(us=began_s * 1_000_000), notices_us=round(noticed_s * 1_000_000))
    (text,) = said("before-route-poll", failures=(failing,))
    assert f"is done after 39.001 s, before the route poll at {poll_s} s " in text


def test_polls_are_as_far_apart_as_they_are_told_to_be() -> None:
    failing = Failure("a", REFUSED, notices_us=41_000_000)
    (text,) = said("before-route-poll", failures=(failing,), first_poll_us=7_000_000, poll_us=20_000_000)
    assert "before the route poll at 47 s " in text
    (text,) = said("before-route-poll", failures=(replace(failing, notices_us=6_000_000),), messages=3)
    assert "before the route poll at 30 s " in text


def test_all_is_lost_only_when_no_message_is_stored() -> None:
    both = (Failure("a", REFUSED), Failure("b", REFUSED))
    assert said("all-lost", failures=both) == ["every one of the 40 messages is lost"]
    assert said("all-lost", failures=both[:1]) == []
    assert said("all-lost", failures=(both[0], replace(both[1], start=Moment(message=2))), start_at=2) == []


def test_a_failure_that_never_begins_is_told_with_the_time_of_the_end() -> None:
    later = Failure("a", REFUSED, Moment(us=40_000_000))
    assert said("failure-not-reached", failures=(later,)) == [
        "the failure of a never begins: the last message is done after 39.001 s"
    ]


def test_messages_that_time_outs_use_up_are_counted() -> None:
    """Queues 0 and 1 are a's: it has messages 1 and 3, since the pick after a time-out takes queue 2 of message 2."""
    failing = Failure("a", TIMEOUT)
    (text,) = said("timeouts-not-retried", failures=(failing,), messages=3, timeout_ms=500, overshoot_us=1000)
    assert text.startswith("2 messages used up their 500 ms in one attempt: ")
    (text,) = said("timeouts-not-retried", failures=(failing,), messages=2, timeout_ms=500, overshoot_us=1000)
    assert text.startswith("1 message used up its 500 ms in one attempt: ")


def test_slow_brokers_too_make_healthy_ones_isolated() -> None:
    slow = Failure("a", Reaction("slow", "slow", 0, 4_000_000))
    given: dict[str, Any] = {"failures": (slow,), "rate": Fraction(1, 60), "latency_fault": True, "messages": 60}
    (text,) = said("healthy-isolated", **given)
    (isolations,) = (b.isolations for b in simulate_send(TWO, SendScenario(start_at=0, **given)).brokers[1:])
    assert isolations > 0
    assert text.startswith(f"time-outs isolate brokers that never failed: b {isolations} times (")


def test_a_broker_isolated_once_is_counted_in_words_that_fit() -> None:
    slow = Failure("a", Reaction("slow", "slow", 0, 4_000_000))
    given: dict[str, Any] = {"failures": (slow,), "rate": Fraction(1, 60), "latency_fault": True, "messages": 60}
    report = simulate_send(TWO, SendScenario(start_at=0, **given))
    brokers = tuple(replace(broker, isolations=1) for broker in report.brokers)
    texts = [
        one.message for one in send_findings(replace(report, brokers=brokers), TWO) if one.code == "healthy-isolated"
    ]
    assert texts[0].startswith("time-outs isolate brokers that never failed: b once (")


def tallied(version: str, *stored: int) -> SendReport:
    """A report in which brokers of two queues each stored so many messages; the first of them failed."""
    failing = Failure("a", REFUSED)
    topic = route(a=2, b=2, c=2)
    report = simulate_send(topic, SendScenario(version, messages=1, latency_fault=True, failures=(failing,)))
    brokers = tuple(replace(each, stored=number) for each, number in zip(report.brokers, stored, strict=True))
    return replace(report, brokers=brokers)


@every_case(
    ("version", "stored", "times"),
    [
        ("5.1.3", (0, 120, 100), None),
        ("5.1.3", (0, 122, 100), "b takes 1.22 times"),
        ("5.1.3", (0, 100, 250), "c takes 2.50 times"),
        ("5.1.3", (900, 100, 100), None),  # the broker that failed is no neighbour
        ("5.1.3", (0, 100, 0), None),
        ("5.1.4", (0, 300, 100), None),
    ],
)
def test_a_fifth_more_than_the_least_used_broker_is_no_skew_yet(
    version: str, stored: tuple[int, ...], times: str | None
) -> None:
    found = [f.message for f in send_findings(tallied(version, *stored), TWO) if f.code == "skewed"]
    assert [text.partition(" as much")[0] for text in found] == ([] if times is None else [times])
