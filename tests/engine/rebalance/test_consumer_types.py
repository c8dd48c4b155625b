"""Pull consumers rebalance by rules of their own: what each of RocketMQ's consumers does, and how a member's is known."""

from __future__ import annotations

from typing import Any

import pytest

from rmqlb.engine.rebalance.event_log import EventLog, Hold
from rmqlb.engine.rebalance.reported_clients import consumer_types
from rmqlb.engine.rebalance.timelines import timelines
from rmqlb.errors import UsageError
from rmqlb.model.group import Connection, ConsumerGroup, ConsumerType, MemberReport, MemberView, Seen
from rmqlb.model.group_scenario import SECOND_US, GroupScenario
from rmqlb.model.message_queue import MessageQueue
from tests.support.group_builders import us

from .groups import at, owners_at_the_end, seconds, simulate

PULLS: tuple[ConsumerType, ...] = ("pull", "lite-pull")


def firsts(kind: ConsumerType, **more: Any) -> list[tuple[float, float]]:
    """Of each queue that a newcomer takes: when, after its start, and how long until it pulls it."""
    report = simulate("c1 c2", at("join", "c3"), consumer_type=kind, **more)
    taken = [each for queue in report.queues for each in queue.takeovers if each.client_id == "c3"]
    assert taken
    return [(seconds(us(each.at_ms)) - 10, seconds((us(each.reads_from_ms) or 0) - us(each.at_ms))) for each in taken]


@pytest.mark.parametrize("kind", PULLS)
def test_the_first_heartbeat_of_one_that_pulls_is_its_timers_and_it_pulls_at_once(kind: ConsumerType) -> None:
    assert all(after >= 1 and pulls < 0.1 for after, pulls in firsts(kind))
    assert all(1 <= after < 2.2 and 0.5 <= pulls < 0.6 for after, pulls in firsts("push"))
    assert {pulls for _, pulls in firsts(kind, latency_us=0)} == {0}
    heard = []
    for each in ("push", kind):
        report = simulate("c1 c2", at("join", "c3"), consumer_type=each, explain=True)
        heard.append(
            min(us(s.at_ms) for s in report.steps or () if s.what == "notice" and "c3 for the first" in s.text)
        )
    assert seconds(heard[0]) < 10.1
    assert 11 <= seconds(heard[1]) < 11.1


@pytest.mark.parametrize("kind", PULLS)
def test_pulls_that_stall_are_not_mended_by_the_rebalance(kind: ConsumerType) -> None:
    """`updateProcessQueueTableInRebalance` looks at the last pull of push consumers only."""
    push = simulate("c1 c2", at("pull-stall", "c1"), until_us=300 * SECOND_US)
    assert push.figures.taken == 4
    pull = simulate("c1 c2", at("pull-stall", "c1"), until_us=300 * SECOND_US, consumer_type=kind)
    assert pull.figures.taken == 0
    assert pull.figures.queues_unread_at_end == 4


def test_a_pull_consumer_takes_queues_without_asking_for_an_offset() -> None:
    """So it does while their broker is down, of which it learns nothing before; a lite pull consumer cannot."""
    events = at("broker-loss", "b", 10), at("join", "c3", 20)
    taken = {}
    for kind in ("pull", "lite-pull"):
        found = []
        for trial in range(20):
            report = simulate("c1 c2", *events, consumer_type=kind, trial=trial, until_us=100 * SECOND_US)
            found += [t for each in report.queues if each.queue.broker_name == "b" for t in each.takeovers]
        taken[kind] = len(found)
    assert taken["pull"] > 0
    assert taken["lite-pull"] == 0


def test_one_that_assigns_itself_queues_takes_no_part_and_is_counted_by_all_others() -> None:
    report = simulate("c1 c2 c3", at("leave", "c3"), consumer_types={"c2": "assign"})
    assert not any("c2" in interval.owners for each in report.queues for interval in each.intervals)
    assert {name for name, owners in owners_at_the_end(report).items() if not owners} == {"b0", "b1", "b2", "b3"}
    assert report.figures.queues_unread_at_end == 4


def test_a_lite_pull_consumer_stores_what_it_has_committed() -> None:
    """It reads until 220, stored at 200 what was committed at 180, and gives up what was committed at 210."""
    queue = MessageQueue("T", "a", 0)

    def again(committed: int, to_us: int, *, persisted: bool) -> list[int | None]:
        old = Hold(queue, "c1", -500, lambda at_us: at_us // 50 * 50, lambda at_us: min(at_us, committed))
        old.reads_from_us, old.to_us, old.persisted = -500, to_us, persisted
        new = Hold(queue, "c2", 230, lambda at_us: at_us // 50 * 50)
        new.reads_from_us = 230
        log = EventLog(explain=False)
        log.holds, log.there[queue] = [old, new], [(0, True)]
        scenario = GroupScenario(latency_us=0, rates={queue: 1e6})
        return [takeover.redelivered for takeover in timelines(log, scenario, {}, 1000)[0].takeovers]

    assert again(180, 220, persisted=False) == [40]
    assert again(210, 220, persisted=True) == [10]
    assert again(220, 220, persisted=True) == [0]


@pytest.mark.parametrize("scenario", [{"consumer_type": "pull"}, {"consumer_types": {"c1": "lite-pull"}}])
def test_only_push_consumers_are_orderly(scenario: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="only push consumers have a listener"):
        simulate("c1 c2", at("join", "c3"), orderly=True, **scenario)


def group(consume_type: str | None, **reported: ConsumerType | None) -> ConsumerGroup:
    ids = tuple(Connection(client_id) for client_id in ("c1", "c2"))
    reports = {client_id: MemberReport(client_id, consumer_type=kind) for client_id, kind in reported.items()}
    seen = Seen("here")
    return ConsumerGroup("g", seen, consume_type=consume_type, views=(MemberView(ids, seen),), reports=reports)


def test_a_member_says_which_consumer_it_is_and_brokers_only_that_it_pulls() -> None:
    assert consumer_types(None) == ("push", {}, ())
    assert consumer_types(group(None)) == ("push", {}, ())
    assert consumer_types(group("CONSUME_PASSIVELY")) == ("push", {}, ())
    usual, types, findings = consumer_types(group("CONSUME_ACTIVELY", c1="pull"))
    assert (usual, types) == ("lite-pull", {"c1": "pull"})
    assert [(each.code, each.message.split()[0]) for each in findings] == [("consumer-type-unknown", "c2")]
    usual, types, findings = consumer_types(group("CONSUME_ACTIVELY", c1="pull", c2="assign"))
    assert [each.code for each in findings] == ["assigns-itself"]
    assert types == {"c1": "pull", "c2": "assign"}
