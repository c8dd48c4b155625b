"""What a simulation of sends finds odd."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from msgspec.structs import replace

from rmqlb import Failure, Moment, Reaction, SendScenario, simulate_send
from rmqlb.model.route import TopicRouteData
from tests.engine.send.scenarios import ERROR, READ_ONLY, REFUSED, TIMEOUT, TWO, UNSAFE
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


def test_a_failure_that_never_begins_is_told_with_the_time_of_the_end() -> None:
    later = Failure("a", REFUSED, Moment(us=40_000_000))
    assert said("failure-not-reached", failures=(later,)) == [
        "the failure of a never begins: the last message is done after 39.001 s"
    ]
