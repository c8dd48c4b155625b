from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.kernel import Steps
from rmqlb.engine.rebalance.consumer import Client
from rmqlb.engine.rebalance.environment import GroupEnvironment
from rmqlb.engine.rebalance.reported_clients import consumer_types
from rmqlb.engine.rebalance.shares import Shares
from rmqlb.errors import UsageError
from rmqlb.model.group import Connection, ConsumerGroup, ConsumerType, MemberReport, MemberView, Seen
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario, Timers
from rmqlb.model.route import BrokerData, TopicRouteData
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
    push, pull = (simulate("c1 c2", JOIN, consumer_type=each, explain=True) for each in ("push", kind))
    assert min(moments(push, "notice", "c3 for the first")) < 10.1
    assert 11 <= min(moments(pull, "notice", "c3 for the first")) < 11.1


@every_case(("kind", "taken", "unread"), [("push", 4, 0), ("pull", 0, 4), ("lite-pull", 0, 4)])
def test_pulls_that_stall_are_mended_of_push_consumers_only(kind: ConsumerType, taken: int, unread: int) -> None:
    """`updateProcessQueueTableInRebalance` looks at the last pull."""
    report = simulate("c1 c2", at("pull-stall", "c1"), until_us=300 * SECOND_US, consumer_type=kind)
    assert (report.figures.taken, report.figures.queues_unread_at_end) == (taken, unread)


@every_case(("kind", "takes"), [("pull", True), ("lite-pull", False)])
def test_a_pull_consumer_takes_queues_without_asking_for_an_offset(kind: ConsumerType, takes: bool) -> None:
    events, more = (at("broker-loss", "b", 10), at("join", "c3", 20)), {"until_us": 100 * SECOND_US}
    reports = trials(20, "c1 c2", *events, consumer_type=kind, **more)
    assert any(each.broker_name == "b" for report in reports for each in takeovers(report)) is takes


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


@every_case("sdk", ["go", "cpp"])
def test_a_consumer_that_joins_rebalances_and_pulls_at_once(sdk: str) -> None:
    """Java waits a second after a rebalance without a list, and half a second before its first pull."""
    java, other = (simulate("a b", at("join", "c"), sdk=each, explain=True) for each in ("java", sdk))
    assert owners_at_the_end(java) == owners_at_the_end(other)
    assert length(java, "convergence") > 0.9
    assert length(other, "convergence") < 0.2
    in_java, in_other = (moments(x, "pull", who="c")[0] - moments(x, "take", who="c")[0] for x in (java, other))
    assert in_other < 0.02
    assert in_java == pytest.approx(0.5, abs=0.02)


@every_case(("sdk", "every"), [("go", 20), ("cpp", 10), ("java", 20)])
def test_a_change_that_nobody_is_told_of_is_seen_at_the_next_interval(sdk: str, every: int) -> None:
    """New queues come with a route poll, after which each waits for its own next rebalance."""
    reports = trials(20, "a", at("route-change", "T", 0, read_queues=8), routes=[route(a=4)], sdk=sdk)
    waits = [line(each, "a", 7).intervals[0].to_ms / 1000 for each in reports]
    assert 0.6 * (30 + every) < max(waits) <= 30 + every + 0.1


def test_a_go_consumer_rebalances_once_for_each_notice() -> None:
    """Two brokers tell it of one that joins; Java's loop takes notices in the second after a rebalance together."""
    more: dict[str, Any] = {"sdk": "go", "until_us": 11 * SECOND_US, "explain": True}
    before, after = simulate("a", **more), simulate("a", at("join", "b"), **more)
    assert len(moments(after, "wake")) == 4
    assert after.figures.rebalances == before.figures.rebalances + 4 + 1  # the first rebalance of b itself


@every_case(("sdk", "text"), [("go", "finds the connection of x closed"), ("cpp", "is told that x goes")])
def test_a_go_consumer_that_ends_hangs_up_and_others_unregister(sdk: str, text: str) -> None:
    report = simulate("x y", at("leave", "x"), sdk=sdk, explain=True)
    assert len(moments(report, "notice")) == len(moments(report, "notice", text)) == 2


def test_a_go_consumer_keeps_the_lock_of_an_orderly_queue_that_it_loses() -> None:
    """The broker gives it to another 60 s after its last renewal; Java gives it back at once."""
    go, java, mixed = (
        simulate("x", at("join", "y"), sdk=sdk, sdk_of=of, orderly=True)
        for sdk, of in (("go", {}), ("java", {}), ("go", {"y": "java"}))
    )
    assert length(java, "longest_gap") < 2
    assert 40 < length(go, "longest_gap") < 85
    assert 40 < length(mixed, "longest_gap") < 62  # Java tries again every half second
    assert owners_at_the_end(go) == owners_at_the_end(java) == owners_at_the_end(mixed)


def test_an_orderly_go_consumer_first_pulls_after_its_locks_were_renewed() -> None:
    more: dict[str, Any] = {"sdk": "go", "all_new": True, "orderly": True, "until_us": 29 * SECOND_US}
    report = simulate("x", at("leave", "x", 30), explain=True, **more)
    (taken, *_), (pulled, *_) = moments(report, "take", who="x"), moments(report, "pull", who="x")
    assert taken < 1
    assert pulled == pytest.approx(taken + 3, abs=0.1)  # the timer renews locks 1 s after the start


@every_case(("sdk", "states"), [("java", {"one"}), ("cpp", {"one"}), ("go", {"one", "unassigned"})])
def test_a_go_consumer_takes_a_broker_that_has_forgotten_the_group_for_empty(sdk: str, states: set[str]) -> None:
    """The broker answers with an error, for which Java keeps its queues; Go looks at the list only and gives them up."""
    reports = trials(8, "x", at("broker-down", "b", 10), at("broker-up", "b", 10.5), sdk=sdk)
    assert {each.state for report in reports for each in line(report, "a", 0).intervals} == states


def environment(topic: TopicRouteData, **scenario: Any) -> GroupEnvironment:
    members, settings = Members((), "AVG"), GroupScenario(**scenario)
    more: dict[str, Any] = {"shares": Shares(members), "lagging": frozenset(), "trial": 0, "explain": False}
    return GroupEnvironment((topic,), members, settings, **more)


def lone_client(kind: ConsumerType = "push") -> tuple[GroupEnvironment, Client]:
    env = environment(route(a=4), latency_us=1000, consumer_type=kind)
    client = Client("c1", number=0, strategy="AVG", topics=("T",), env=env, created_us=0)
    client.views["T"] = env.name_server.views["T"]
    client.connections.learn(client.views["T"])
    client.connections.have_stood()
    return env, client


@every_case(("kind", "beats"), [("push", True), ("pull", False), ("lite-pull", False)])
def test_a_push_consumer_whose_queues_have_changed_sends_a_heartbeat(kind: ConsumerType, beats: bool) -> None:
    """`RebalancePushImpl.messageQueueChanged`; not when the next rebalance changes nothing."""
    env, client = lone_client(kind)
    (broker,) = client.connections.addresses
    broker.beat(client, at_us=0)

    def rebalance() -> Steps:
        yield from client.queues.rebalance_by_topic("T")

    for begin_us in (5 * SECOND_US, 7 * SECOND_US):
        env.clock.start(rebalance(), begin_us)
    while env.clock.do_next(10 * SECOND_US):
        pass
    assert len(client.queues.working()) == 4
    assert 5 * SECOND_US * beats <= (broker.last_beat_us(client) or 0) <= 6 * SECOND_US * beats


def test_a_master_hears_the_pulls_of_an_owner_and_a_slave_its_heartbeats_only() -> None:
    timers = Timers(socket_idle_us=60 * SECOND_US, pull_hold_us=1, channel_expiry_us=10**12)
    addresses = {0: "192.0.2.1:10911", 1: "192.0.2.2:10911"}
    topic = replace(route(a=2), broker_datas=(BrokerData("c", "a", addresses),))
    more = {"routes": [topic], "timers": timers, "latency_us": 0, "until_us": 120 * SECOND_US, "explain": True}
    heard: dict[str, list[float]] = {"broker a": [], "broker a:1": []}
    for report in trials(60, "c1 c2", at("host-loss", "c2"), **more):
        for name, found in heard.items():
            found += [70 - when for when in moments(report, "notice", "connection of c2 closed", name)]
    assert [len(each) for each in heard.values()] == [60, 60]
    assert set(heard["broker a"]) == {0.0}
    assert 0 <= min(heard["broker a:1"]) < 3
    assert 27 < max(heard["broker a:1"]) <= 30


def test_a_late_unlock_frees_the_lock_of_nobody_else() -> None:
    """`RebalanceLockManager.unlockBatch` removes an entry of the very client only, whichever of the ids sorts first."""
    (broker,) = lone_client()[1].connections.addresses
    first, second, *_ = route(a=4).subscribe_queues()
    for queue, holder, late in ((first, "c1", "c2"), (second, "c2", "c1")):
        assert broker.try_lock(queue, holder)
        broker.unlock(queue, late)
        assert broker.lock_of(queue) == holder
        assert not broker.try_lock(queue, late)
        broker.unlock(queue, holder)
        assert broker.lock_of(queue) is None
        assert broker.try_lock(queue, late)


@every_case(("version", "at_once"), [("5.5.0", True), ("5.2.0", True), ("5.1.4", False), ("4.9.8", False)])
def test_since_5_2_a_broker_that_is_back_hears_a_client_as_soon_as_it_connects(version: str, at_once: bool) -> None:
    """By `onChannelActive`, when c2, who owns all of b, pulls again within a second; before, by the heartbeat every 30 s."""
    soon, events = 0, (at("broker-down", "b", 10), at("broker-up", "b", 10.5))
    for report in trials(20, "c1 c2", *events, client_version=version, explain=True):
        heard = min(moments(report, "notice", "hears c2 for the first time")) - 10.5
        assert 0 < heard < 31
        soon += heard < 1.6
    assert soon == 20 if at_once else soon < 5


@every_case(("known", "asked"), [((0, 1, 2), {0}), ((0, 2), {0}), ((1, 2), {1, 2}), ((2,), {2}), ((), set())])
def test_members_come_from_the_master_or_else_from_any_slave(known: tuple[int, ...], asked: set[int]) -> None:
    """`BrokerData.selectBrokerAddr`: the master whenever its address is known, otherwise an address at random."""
    addresses = {number: f"a{number}:10911" for number in range(3)}
    env = environment(replace(route(a=4), broker_datas=(BrokerData("c", "a", addresses),)))
    draws = env.draws(0)
    brokers = [env.any_of("a", known, draws) for _ in range(40)]
    assert {each.broker_id for each in brokers if each is not None} == asked
    assert (None in brokers) is (not known)


def drops_us(events: Sequence[Event], trial: int, timers: Timers) -> list[int]:
    more: dict[str, Any] = {"routes": [route(a=1, b=1, c=1)], "timers": timers, "until_us": 600 * SECOND_US}
    report = simulate("c1", *events, trial=trial, explain=True, **more)
    return [round(when * SECOND_US) for when in moments(report, "route", who="NameServer")]


LOST_TWICE = at("broker-loss", "a", 10), at("broker-up", "a", 300), at("broker-loss", "a", 310)


@every_case(("events", "apart_us"), [
    ((at("broker-loss", "a", 10), at("broker-loss", "b", 10)), 0),
    (LOST_TWICE, 300 * SECOND_US),
])  # fmt: skip
def test_each_lost_broker_has_registered_in_its_own_time(events: Sequence[Event], apart_us: int) -> None:
    """Each registers every 30 s by a timer of its own, and is dropped 120 s after the last time.

    `RouteInfoManager.scanNotActiveBroker` runs every 5 s, whenever the brokers were lost: one scan drops all that have expired.
    """
    apart, phases = set(), set()
    for trial in range(20):
        first, second = drops_us(events, trial, Timers(nameserver_scan_us=0))
        assert all(100 * SECOND_US <= each <= 130 * SECOND_US for each in (first, second - apart_us))
        apart.add(abs(second - apart_us - first) // SECOND_US)
        (phase,) = {each % (5 * SECOND_US) for each in drops_us(events, trial, Timers())}
        phases.add(phase)
    assert len(apart) > 5
    assert max(apart) > 10
    assert len(phases) == 20
    assert max(phases) - min(phases) > 3 * SECOND_US
