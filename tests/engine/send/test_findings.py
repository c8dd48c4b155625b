"""What a simulation of sends finds odd."""

from __future__ import annotations

from fractions import Fraction

import pytest
from msgspec.structs import replace

from rmqlb import Failure, Reaction, SendScenario, simulate_send
from rmqlb.model.send_scenario import Selector
from tests.engine.send.scenarios import ERROR, READ_ONLY, REFUSED, TIMEOUT, TWO, UNSAFE
from tests.support.builders import route


@pytest.mark.parametrize(("reaction", "drops"), [(READ_ONLY, True), (ERROR, False), (REFUSED, True), (UNSAFE, False)])
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


@pytest.mark.parametrize(("retries", "blamed"), [(0, False), (2, True)])
@pytest.mark.parametrize(("reaction", "late"), [(TIMEOUT, True), (REFUSED, False)], ids=["timeout", "refused"])
def test_time_outs_that_isolate_healthy_brokers_are_a_finding(
    reaction: Reaction, late: bool, retries: int, blamed: bool
) -> None:
    scenario = SendScenario(messages=60, rate=Fraction(1, 60), retries=retries, latency_fault=True)
    report = simulate_send(TWO, replace(scenario, failures=(Failure("a", reaction),)))
    assert (report.brokers[1].isolations > 0) is (late and blamed)
    assert any(finding.code == "healthy-isolated" for finding in report.findings) is (late and blamed)
