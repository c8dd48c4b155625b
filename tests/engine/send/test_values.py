"""The small parts, the conditions of `--fail-on`, and what a simulation of sends finds odd."""

from __future__ import annotations

from fractions import Fraction
from math import exp
from statistics import NormalDist
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import Failure, Moment, Reaction, SendScenario, UsageError, simulate_send
from rmqlb.engine.conditions import parse_condition
from rmqlb.engine.send.cluster import Cluster
from rmqlb.engine.send.findings import SEND_FIGURES, try_on
from rmqlb.engine.send.java_producer import is_silent
from rmqlb.engine.send.producer import pick
from rmqlb.engine.send.profile import PROFILES, profile_of
from rmqlb.engine.send.recorder import Recorder
from rmqlb.engine.send.scenarios import from_samples, lognormal
from rmqlb.model.client_versions import parse_version
from rmqlb.model.route import TopicRouteData
from rmqlb.model.simulate_send import BrokerTally
from tests.engine.send.scenarios import ERROR, READ_ONLY, REFUSED, TIMEOUT, TWO, UNSAFE
from tests.support.builders import route
from tests.support.mismatches import every_case


@every_case(
    ("version", "name"),
    [
        ("5.5.0", "5.3.3 and newer"),
        ("5.5.1", "5.3.3 and newer"),
        ("6.0.0", "5.3.3 and newer"),
        ("5.3.2", "5.3.2"),
        ("V5_1_4", "5.1.4"),
        ("5.1.3-SNAPSHOT", "5.1.1 to 5.1.3"),
        ("5.0", "5.0.0"),
        ("4.9.8", "4.9.8"),
        ("4.9.10", "4.9.8"),
        ("4.9.7", "4.9.4 to 4.9.7"),
        ("4.3.0", "4.7.1 and older"),
    ],
)
def test_a_version_has_the_rules_of_its_stretch(version: str, name: str) -> None:
    assert profile_of(version).name == name


def test_stretches_are_told_apart_and_in_order() -> None:
    assert [profile.since for profile in PROFILES] == sorted((p.since for p in PROFILES), reverse=True)
    for profile in PROFILES:
        assert profile_of(".".join(map(str, profile.since))) is profile
    for profile in PROFILES[:-1]:
        assert ".".join(map(str, profile.since)) == profile.name.split()[0]
    assert parse_version("5.1.4_SNAPSHOT") == (5, 1, 4)


TALLIES = (BrokerTally("a", 1, 60, 55, 5, 45, 0.25, 3, 12.5), BrokerTally("b", 1, 240, 195, 25, 135, 0.75, 4, 13.5))


@every_case(
    ("name", "value", "share"),
    [
        ("lost", 20, 10),  # of 200 messages
        ("failed-attempts", 30, 12),  # of 250 attempts
        ("longest-send-ms", 8.5, None),
        ("share[a]", 25, 25),
        ("picks[a]", 60, 20),  # of 300 picks
        ("failed[a]", 5, 2),
        ("isolated-ms[a]", 12.5, None),
        ("isolations[a]", 3, None),
    ],
)
def test_each_figure_of_sends_is_its_own_and_has_its_whole(name: str, value: float, share: float | None) -> None:
    report = simulate_send(route(a=1, b=1), SendScenario(messages=1))
    totals = replace(report.totals, messages=200, lost=20, attempts=250, failed_attempts=30, longest_send_ms=8.5)
    report = replace(report, totals=totals, brokers=TALLIES)
    assert try_on(parse_condition(f"{name}>=0", SEND_FIGURES), report).value == value
    if share is not None:
        assert try_on(parse_condition(f"{name}>=0%", SEND_FIGURES), report).value == share
    assert (name.partition("[")[0] in SEND_FIGURES.shares) is (share is not None)


def test_of_no_message_stored_no_broker_has_a_share() -> None:
    lost = tuple(replace(tally, stored=0, share=None) for tally in TALLIES)
    report = replace(simulate_send(route(a=1, b=1), SendScenario(messages=1)), brokers=lost)
    for text in ("share[a]>=0", "share[a]>=0%"):
        tried = try_on(parse_condition(text, SEND_FIGURES), report)
        assert (tried.value, tried.met) == (None, None)


@every_case("text", ["share>5%", "lost[a]>0", "attempts>5%", "shares[a]>1", "share[x]>1%", "share[a>1"])
def test_conditions_that_make_no_sense_are_refused(text: str) -> None:
    report = simulate_send(route(a=2), SendScenario(messages=1))
    with pytest.raises(UsageError):
        try_on(parse_condition(text, SEND_FIGURES), report)


def recorder(**scenario: Any) -> Recorder:
    """Of topic T with a queue on each of a and b; a slice takes 10 ms, a tick is a microsecond."""
    given = SendScenario(**{"messages": 600} | scenario)
    topic, profile = route(a=1, b=1), profile_of(given.client_version)
    return Recorder(topic, given, Cluster(topic, given, profile, 1, 0), 1)


def test_a_time_line_has_at_most_120_slices() -> None:
    line = recorder()
    for _ in range(119):
        line.end_slice(line.next_slice)
    assert (line.next_slice, len(line.slices(1_200_000))) == (1_200_000, 120)
    line.end_slice(line.next_slice)
    assert (line.next_slice, len(line.slices(1_210_000))) == (1_220_000, 61)


@every_case(
    ("reaction", "expected"),
    [
        (None, False),
        (Reaction("refused", "refused"), True),
        (Reaction("timeout", "timeout"), True),
        (Reaction("slow", "slow", 0, 200_000), False),
        (Reaction("slow", "slow", 0, 200_001), True),
        (Reaction("code", "SYSTEM_BUSY", 2, 300_000), False),
        (Reaction("status", "FLUSH_DISK_TIMEOUT", 10), False),
        (Reaction("read-only", "read-only"), False),
    ],
    ids=str,
)
def test_the_detector_waits_200_ms_for_an_answer(reaction: Reaction | None, expected: bool) -> None:
    assert is_silent(reaction) == expected


def test_a_lognormal_latencys_table_is_refined_at_its_end() -> None:
    """65,536 equal cells, the last of them cut into as many again; ln(latency / median) is normal."""
    latency, normal = lognormal(1_000_000, 1.0, "x"), NormalDist()
    assert (len(latency.table), len(latency.tail)) == (65_536, 65_536)
    for values, place, probability in (
        (latency.table, 0, 0.5 / 65_536),
        (latency.table, 65_535, 1 - 0.5 / 65_536),
        (latency.tail, 0, 1 - 65_535.5 / 65_536**2),
        (latency.tail, 65_535, 1 - 0.5 / 65_536**2),
    ):
        assert values[place] == pytest.approx(1_000_000 * exp(normal.inv_cdf(probability)), rel=1e-6, abs=0.5)
    assert pick(latency, (65_534 << 48) + (0xFFFF << 32) + 0xFFFFFFFF) == latency.table[65_534]
    assert pick(latency, (65_535 << 48) + (1 << 31)) == latency.tail[32_768]
    assert lognormal(5000, 10, "x").table
    with pytest.raises(UsageError, match="latency x: sigma is not between 0 and 10"):
        lognormal(5000, -0.1, "x")
    with pytest.raises(UsageError, match="latency x: no sample"):
        from_samples([], "x")


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
