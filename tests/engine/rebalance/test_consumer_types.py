"""Pull consumers rebalance by rules of their own: what each of RocketMQ's consumers does, and how a consumer's is known."""

from __future__ import annotations

from typing import Any

import pytest

from rmqlb.engine.rebalance.reported_clients import consumer_types
from rmqlb.errors import UsageError
from rmqlb.model.group import Connection, ConsumerGroup, ConsumerType, MemberReport, MemberView, Seen
from rmqlb.model.group_scenario import SECOND_US
from tests.engine.rebalance.groups import (
    again,
    at,
    hold,
    moments,
    owners_at_the_end,
    read,
    simulate,
    takeovers,
    trials,
)

PULLS: tuple[ConsumerType, ...] = ("pull", "lite-pull")
JOIN = at("join", "c3")


def firsts(kind: ConsumerType, **more: Any) -> list[tuple[float, float]]:
    """Of each queue that a newcomer takes: when, after its start, and how long until it pulls it, in ms."""
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
    """So it does while their broker is down, of which it learns nothing before; a lite pull consumer cannot."""
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


def group(consume_type: str | None, **reported: ConsumerType | None) -> ConsumerGroup:
    ids, seen = tuple(Connection(client_id) for client_id in ("c1", "c2")), Seen("here")
    reports = {client_id: MemberReport(client_id, consumer_type=kind) for client_id, kind in reported.items()}
    return ConsumerGroup("g", seen, consume_type=consume_type, views=(MemberView(ids, seen),), reports=reports)


def test_a_member_says_which_consumer_it_is_and_brokers_only_that_it_pulls() -> None:
    for silent in (None, group(None), group("CONSUME_PASSIVELY")):
        assert consumer_types(silent) == ("push", {}, ())
    usual, types, findings = consumer_types(group("CONSUME_ACTIVELY", c1="pull"))
    assert (usual, types) == ("lite-pull", {"c1": "pull"})
    assert [(each.code, each.message.split()[0]) for each in findings] == [("consumer-type-unknown", "c2")]
    _, types, findings = consumer_types(group("CONSUME_ACTIVELY", c1="pull", c2="assign"))
    assert ([each.code for each in findings], types) == (["assigns-itself"], {"c1": "pull", "c2": "assign"})
