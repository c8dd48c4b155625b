from typing import Any

import pytest

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.rebalance.reported_clients import consumer_types
from rmqlb.engine.rebalance.simulate import simulate_group
from rmqlb.errors import UsageError
from rmqlb.model.group import Connection, ConsumerGroup, ConsumerType, MemberReport, MemberView, Seen
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario
from rmqlb.model.simulate_rebalance import RebalanceResult
from tests.engine.rebalance.groups import (
    again,
    at,
    hold,
    length,
    line,
    moments,
    owners_at_the_end,
    read,
    simulate,
    takeovers,
    trials,
)
from tests.support.builders import route
from tests.support.mismatches import every_case

PULLS: tuple[ConsumerType, ...] = ("pull", "lite-pull")
JOIN = at("join", "c3")


def firsts(kind: ConsumerType, **more: Any) -> list[tuple[float, float]]:
    taken = takeovers(simulate("c1 c2", JOIN, consumer_type=kind, **more), "c3")
    assert taken
    return [(each.at_ms - 10_000, (each.reads_from_ms or 0) - each.at_ms) for each in taken]


@pytest.mark.parametrize("kind", PULLS)
def test_the_first_heartbeat_of_one_that_pulls_is_its_timers_and_it_pulls_at_once(kind: ConsumerType) -> None:
    assert all(after >= 1000 and pulls < 100 for after, pulls in firsts(kind))
    assert all(1000 <= after < 2200 and 500 <= pulls < 600 for after, pulls in firsts("push"))
    assert {pulls for _, pulls in firsts(kind, latency_us=0)} == {0}
    push, pull = (
        min(moments(simulate("c1 c2", JOIN, consumer_type=each, explain=True), "notice", "c3 for the first"))
        for each in ("push", kind)
    )
    assert push < 10.1
    assert 11 <= pull < 11.1


@pytest.mark.parametrize("kind", PULLS)
def test_pulls_that_stall_are_not_mended_by_the_rebalance(kind: ConsumerType) -> None:
    """`updateProcessQueueTableInRebalance` looks at the last pull of push consumers only."""
    push, pull = (
        simulate("c1 c2", at("pull-stall", "c1"), until_us=300 * SECOND_US, consumer_type=each).figures
        for each in ("push", kind)
    )
    assert (push.taken, pull.taken, pull.queues_unread_at_end) == (4, 0, 4)


def test_a_pull_consumer_takes_queues_without_asking_for_an_offset() -> None:
    events = at("broker-loss", "b", 10), at("join", "c3", 20)
    taken = {
        kind: [
            each
            for report in trials(20, "c1 c2", *events, consumer_type=kind, until_us=100 * SECOND_US)
            for each in takeovers(report)
            if each.broker_name == "b"
        ]
        for kind in PULLS
    }
    assert taken["pull"]
    assert not taken["lite-pull"]


def test_one_that_assigns_itself_queues_takes_no_part_and_is_counted_by_all_others() -> None:
    report = simulate("c1 c2 c3", at("leave", "c3"), consumer_types={"c2": "assign"})
    assert not any("c2" in interval.owners for each in report.queues for interval in each.intervals)
    assert {name for name, owners in owners_at_the_end(report).items() if not owners} == {"b0", "b1", "b2", "b3"}
    assert report.figures.queues_unread_at_end == 4


@pytest.mark.parametrize(("committed", "persisted", "redelivered"), [(180, False, 40), (210, True, 10), (220, True, 0)])
def test_a_lite_pull_consumer_stores_what_it_has_committed(committed: int, persisted: bool, redelivered: int) -> None:
    """It reads until 220, stored at 200 what was committed at 180, and gives up what was committed at 210."""
    old = hold("c1", -500, 220, persisted=persisted, committed_before=lambda at_us: min(at_us, committed))
    assert again(read(old, hold("c2", 230))) == [redelivered]


@pytest.mark.parametrize("scenario", [{"consumer_type": "pull"}, {"consumer_types": {"c1": "lite-pull"}}])
def test_only_push_consumers_are_orderly(scenario: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="only push consumers have a listener"):
        simulate("c1 c2", JOIN, orderly=True, **scenario)


def reporting(consume_type: str | None, **reported: ConsumerType | None) -> ConsumerGroup:
    ids, seen = tuple(Connection(client_id) for client_id in ("c1", "c2")), Seen("here")
    reports = {client_id: MemberReport(client_id, consumer_type=kind) for client_id, kind in reported.items()}
    return ConsumerGroup("g", seen, consume_type=consume_type, views=(MemberView(ids, seen),), reports=reports)


def test_a_member_says_which_consumer_it_is_and_brokers_only_that_it_pulls() -> None:
    for silent in (None, reporting(None), reporting("CONSUME_PASSIVELY")):
        assert consumer_types(silent) == ("push", {}, ())
    usual, types, findings = consumer_types(reporting("CONSUME_ACTIVELY", c1="pull"))
    assert (usual, types) == ("lite-pull", {"c1": "pull"})
    assert [(each.code, each.message.split()[0]) for each in findings] == [("consumer-type-unknown", "c2")]
    _, types, findings = consumer_types(reporting("CONSUME_ACTIVELY", c1="pull", c2="assign"))
    assert ([each.code for each in findings], types) == (["assigns-itself"], {"c1": "pull", "c2": "assign"})


def simulate_sdk(
    client_ids: str, *events: Event, sdk: str = "go", of: dict[str, str] | None = None, **more: Any
) -> RebalanceResult:
    members = Members(tuple(client_ids.split()), more.pop("strategy", "AVG"), sdk=sdk, sdk_of=of or {})
    trial = more.pop("trial", 0)
    return simulate_group("g", members, (route(a=4, b=4),), GroupScenario(events, **more), trial=trial, explain=True)


@pytest.mark.parametrize("sdk", ["go", "cpp"])
def test_a_consumer_that_joins_rebalances_and_pulls_at_once(sdk: str) -> None:
    """Java waits a second after a rebalance without a list, and half a second before its first pull."""
    java, other = (simulate_sdk("a b", at("join", "c"), sdk=each) for each in ("java", sdk))
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
    before = simulate_sdk("a", sdk="go", until_us=11 * SECOND_US).figures.rebalances
    after = simulate_sdk("a", at("join", "b"), sdk="go", until_us=11 * SECOND_US).figures.rebalances
    told = simulate_sdk("a", at("join", "b"), sdk="go", until_us=11 * SECOND_US)
    notices = len(moments(told, "wake", who="a")) + len(moments(told, "wake", who="b"))
    assert notices == 4
    assert after == before + notices + 1  # the first rebalance of b itself


def test_a_go_consumer_that_ends_hangs_up_and_java_unregisters() -> None:
    def end(sdk: str) -> list[str]:
        report = simulate_sdk("x y", at("leave", "x"), sdk=sdk)
        return [step.text for step in report.steps or () if step.what == "notice"]

    assert all("finds the connection of x closed" in text for text in end("go"))
    assert all("is told that x goes" in text for text in end("cpp"))
    assert len(end("go")) == len(end("cpp")) == 2


def test_a_go_consumer_keeps_the_lock_of_an_orderly_queue_that_it_loses() -> None:
    """The broker gives it to another 60 s after its last renewal; Java gives it back at once."""
    go = simulate_sdk("x", at("join", "y"), sdk="go", orderly=True)
    java = simulate_sdk("x", at("join", "y"), sdk="java", orderly=True)
    assert length(java, "longest_gap") < 2
    assert 40 < length(go, "longest_gap") < 85
    mixed = simulate_sdk("x", at("join", "y"), sdk="go", of={"y": "java"}, orderly=True)
    assert 40 < length(mixed, "longest_gap") < 62  # Java tries again every half second
    assert owners_at_the_end(go) == owners_at_the_end(java) == owners_at_the_end(mixed)


def test_an_orderly_go_consumer_first_pulls_after_its_locks_were_renewed() -> None:
    report = simulate_sdk("x", at("leave", "x", 30), all_new=True, orderly=True, until_us=29 * SECOND_US)
    (taken, *_), (pulled, *_) = moments(report, "take", who="x"), moments(report, "pull", who="x")
    assert taken < 1
    assert pulled == pytest.approx(taken + 3, abs=0.1)  # the timer renews locks 1 s after the start


def test_a_go_consumer_takes_a_broker_that_has_forgotten_the_group_for_an_empty_group() -> None:
    """The broker answers with an error, for which Java keeps its queues; Go looks at the list only and gives them up."""

    def lost(sdk: str) -> set[str]:
        restarted = at("broker-down", "b", 10), at("broker-up", "b", 10.5)
        found = (line(simulate_sdk("x", *restarted, sdk=sdk, trial=trial), "a", 0) for trial in range(8))
        return {each.state for queue in found for each in queue.intervals}

    assert lost("java") == lost("cpp") == {"one"}
    assert lost("go") == {"one", "unassigned"}
