"""Consumers of the Go and the C++ library rebalance by their own clocks, beside Java's or alone."""

from __future__ import annotations

from typing import Any

import pytest

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.rebalance.simulate import simulate_group
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario
from rmqlb.model.simulate_rebalance import RebalanceResult
from tests.engine.rebalance.groups import at, length, line, moments, owners_at_the_end
from tests.support.builders import route
from tests.support.mismatches import every_case


def simulate(
    client_ids: str, *events: Event, sdk: str = "go", of: dict[str, str] | None = None, **more: Any
) -> RebalanceResult:
    """A group of a library, but for some consumers, on two brokers with four queues each."""
    members = Members(tuple(client_ids.split()), more.pop("strategy", "AVG"), sdk=sdk, sdk_of=of or {})
    trial = more.pop("trial", 0)
    return simulate_group("g", members, (route(a=4, b=4),), GroupScenario(events, **more), trial=trial, explain=True)


@pytest.mark.parametrize("sdk", ["go", "cpp"])
def test_a_consumer_that_joins_rebalances_and_pulls_at_once(sdk: str) -> None:
    """Java waits a second after a rebalance without a list, and half a second before its first pull."""
    java, other = (simulate("a b", at("join", "c"), sdk=each) for each in ("java", sdk))
    assert owners_at_the_end(java) == owners_at_the_end(other)
    assert length(java, "convergence") > 0.9
    assert length(other, "convergence") < 0.2
    taken, pulled = moments(other, "take", who="c"), moments(other, "pull", who="c")
    assert pulled[0] - taken[0] < 0.02
    assert moments(java, "pull", who="c")[0] - moments(java, "take", who="c")[0] == pytest.approx(0.5, abs=0.02)


@every_case(("sdk", "every"), [("go", 20), ("cpp", 10), ("java", 20)])
def test_a_change_that_nobody_is_told_of_is_seen_at_the_next_interval(sdk: str, every: int) -> None:
    """New queues come with a route poll, after which each waits for its own next rebalance."""
    waits = []
    for trial in range(20):
        members = Members(("a",), "AVG", sdk=sdk)
        event = Event("route-change", 0, "T", read_queues=8)
        report = simulate_group("g", members, (route(a=4),), GroupScenario((event,)), trial=trial)
        gap = next(each for each in report.queues if each.queue.queue_id == 7).intervals[0]
        waits.append(gap.to_ms / 1000)
    assert max(waits) <= 30 + every + 0.1
    assert max(waits) > 0.6 * (30 + every)


def test_a_go_consumer_rebalances_once_for_each_notice() -> None:
    """Two brokers tell it of one that joins; Java's loop takes notices in the second after a rebalance together."""
    before = simulate("a", sdk="go", until_us=11 * SECOND_US).figures.rebalances
    after = simulate("a", at("join", "b"), sdk="go", until_us=11 * SECOND_US).figures.rebalances
    told = simulate("a", at("join", "b"), sdk="go", until_us=11 * SECOND_US)
    notices = len(moments(told, "wake", who="a")) + len(moments(told, "wake", who="b"))
    assert notices == 4
    assert after == before + notices + 1  # the first rebalance of b itself


def test_a_go_consumer_that_ends_hangs_up_and_java_unregisters() -> None:
    def end(sdk: str) -> list[str]:
        report = simulate("x y", at("leave", "x"), sdk=sdk)
        return [step.text for step in report.steps or () if step.what == "notice"]

    assert all("finds the connection of x closed" in text for text in end("go"))
    assert all("is told that x goes" in text for text in end("cpp"))
    assert len(end("go")) == len(end("cpp")) == 2


def test_a_go_consumer_keeps_the_lock_of_an_orderly_queue_that_it_loses() -> None:
    """The broker gives it to another 60 s after its last renewal; Java gives it back at once."""
    go = simulate("x", at("join", "y"), sdk="go", orderly=True)
    java = simulate("x", at("join", "y"), sdk="java", orderly=True)
    assert length(java, "longest_gap") < 2
    assert 40 < length(go, "longest_gap") < 85
    mixed = simulate("x", at("join", "y"), sdk="go", of={"y": "java"}, orderly=True)
    assert 40 < length(mixed, "longest_gap") < 62  # Java tries again every half second
    assert owners_at_the_end(go) == owners_at_the_end(java) == owners_at_the_end(mixed)


def test_an_orderly_go_consumer_first_pulls_after_its_locks_were_renewed() -> None:
    report = simulate("x", at("leave", "x", 30), all_new=True, orderly=True, until_us=29 * SECOND_US)
    (taken, *_), (pulled, *_) = moments(report, "take", who="x"), moments(report, "pull", who="x")
    assert taken < 1
    assert pulled == pytest.approx(taken + 3, abs=0.1)  # the timer renews locks 1 s after the start


def test_a_go_consumer_takes_a_broker_that_has_forgotten_the_group_for_an_empty_group() -> None:
    """The broker answers with an error, for which Java keeps its queues; Go looks at the list only and gives them up."""

    def lost(sdk: str) -> set[str]:
        restarted = at("broker-down", "b", 10), at("broker-up", "b", 10.5)
        found = (line(simulate("x", *restarted, sdk=sdk, trial=trial), "a", 0) for trial in range(8))
        return {each.state for queue in found for each in queue.intervals}

    assert lost("java") == lost("cpp") == {"one"}
    assert lost("go") == {"one", "unassigned"}
