from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import Members, UsageError, simulate_group
from rmqlb.engine.kernel import Steps
from rmqlb.engine.rebalance.consumer import Client
from rmqlb.engine.rebalance.environment import GroupEnvironment, NameServer, Shares
from rmqlb.engine.rebalance.reported_clients import consumer_types
from rmqlb.model.group import Connection, ConsumerGroup, ConsumerType, MemberReport, MemberView, QueueState, Seen
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario, Timers
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
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
    spans,
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
    with pytest.raises(UsageError, match="only push consumers have an orderly listener"):
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


def test_a_go_consumer_renews_locks_before_it_pulls_and_keeps_those_that_it_loses() -> None:
    """The broker gives it to another 60 s after its last renewal; Java gives it back at once."""
    go, java, mixed = (
        simulate("x", at("join", "y"), sdk=sdk, sdk_of=of, orderly=True)
        for sdk, of in (("go", {}), ("java", {}), ("go", {"y": "java"}))
    )
    assert length(java, "longest_gap") < 2
    assert 40 < length(go, "longest_gap") < 85
    assert 40 < length(mixed, "longest_gap") < 62  # Java tries again every half second
    assert owners_at_the_end(go) == owners_at_the_end(java) == owners_at_the_end(mixed)
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


def lone_client(kind: ConsumerType = "push", latency_us: int = 1000) -> tuple[GroupEnvironment, Client]:
    env = environment(route(a=4), latency_us=latency_us, consumer_type=kind)
    client = Client("c1", number=0, strategy="AVG", topics=("T",), env=env, created_us=0)
    client.views["T"] = env.name_server.views["T"]
    client.connections.learn(client.views["T"])
    client.connections.have_stood()
    return env, client


def run(env: GroupEnvironment) -> None:
    while env.clock.do_next(10 * SECOND_US):
        pass


@every_case(("connected", "silent", "arrives", "after_us"), [
    (False, None, True, Timers().connect_us),
    (False, False, False, 0),  # the broker's process has ended
    (True, True, False, Timers().rpc_timeout_us),  # its machine
])  # fmt: skip
def test_requests_need_time_to_connect(connected: bool, silent: bool | None, arrives: bool, after_us: int) -> None:
    env, client = lone_client(latency_us=0)
    (broker,) = client.connections.addresses
    if not connected:
        client.connections.connected.clear()
    if silent is not None:
        broker.stop(silent=silent)
    found: list[tuple[bool, int]] = []

    def request() -> Steps:
        found.append(((yield from client.connections.request(broker)), env.clock.now))

    env.clock.start(request())
    run(env)
    assert found == [(arrives, after_us)]
    assert (broker in client.connections.connected) == (connected or arrives)


@every_case(("queues", "addresses"), [("ab", "ab"), ("ab", ""), ("ab", "b"), ("b", "ab")])
def test_a_lost_broker_leaves_both_lists_of_a_route(queues: str, addresses: str) -> None:
    brokers = tuple(BrokerData("c", name, {0: f"{name}:10911"}) for name in addresses)
    topic = TopicRouteData("T", tuple(QueueData(name, 2, 2, 6) for name in queues), brokers)
    server = NameServer([topic], Shares(Members((), "AVG")).view_of)
    server.drop("a", {0})
    assert [queue.broker_name for queue in server.views["T"].queues] == ["b", "b"]
    assert server.views["T"].brokers == ("b",)


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
    run(env)
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


DOWN, UP = at("broker-down", "b", 30), at("broker-up", "b", 300)


def with_slave(topic: TopicRouteData, name: str) -> TopicRouteData:
    addresses = {0: f"{name}:10911", 1: f"{name}s:10911"}
    found = (BrokerData("c", b.broker_name, addresses) if b.broker_name == name else b for b in topic.broker_datas)
    return replace(topic, broker_datas=tuple(found))


def test_the_queues_of_a_broker_cannot_be_read_for_as_long_as_it_is_down() -> None:
    report = simulate("c1 c2 c3", DOWN, UP)
    f = report.figures
    assert (f.longest_outage_ms, f.total_outage_ms, f.queues_with_outage) == (270_000, 4 * 270_000, 4)
    assert (f.queues_with_outage_at_end, f.queues_unread_at_end) == (0, 0)
    assert f.unread_ms - 210_000 > 60_000 > f.longest_gap_ms
    for down in (line(report, "b", queue_id) for queue_id in range(4)):
        assert (down.total_outage_ms, down.longest_outage_ms) == (270_000, 270_000)
        assert "gone" not in {interval.state for interval in down.intervals}
        # from the death to the first pull of the consumer that took it afterwards
        after = [takeover for takeover in down.takeovers if takeover.at_ms > 300_000]
        assert down.unread_ms == after[0].unread_ms == min(each.reads_from_ms or 0 for each in after) - 30_000
    report = simulate("c1 c2", at("broker-down", "b"))
    f = report.figures
    assert (f.queues_with_outage_at_end, f.queues_unread_at_end) == (4, 4)
    assert f.longest_outage_ms == f.unread_ms == report.end_ms - 10_000
    report = simulate("c1 c2", at("broker-loss", "b", 30), at("broker-up", "b", 40))
    assert 10_000 <= line(report, "b", 0).total_outage_ms < 12_000


def test_an_owner_that_keeps_its_queue_pulls_again_a_second_later_at_most() -> None:
    waits = set()
    events = at("broker-down", "a", 10), at("broker-up", "a", 10.5)
    for report in trials(20, "c1 c2", *events, routes=[route(a=2, b=2)]):
        kept = [each for each in (line(report, "a", 0), line(report, "a", 1)) if not each.takeovers]
        for each in kept:
            states = [(interval.state, interval.owners) for interval in each.intervals]
            assert states == [("one", ("c1",)), ("outage", ("c1",)), ("one", ("c1",))]
            assert 500 < each.unread_ms < 1600
            assert each.unread_ms == each.total_outage_ms == each.longest_outage_ms
            waits.add(each.unread_ms)
        assert report.figures.unread_ms >= max((each.unread_ms for each in kept), default=0)
    assert len(waits) > 10


def test_consumers_read_from_a_slave_and_lock_at_the_master_only() -> None:
    """A route poll later at the most, and a second for the next pull; nobody changes its queues."""
    longest = []
    for report in trials(20, "c1 c2", DOWN, routes=[with_slave(route(a=4, b=4), "b")]):
        assert not takeovers(report)
        assert {interval.state for each in report.queues for interval in each.intervals} == {"one", "outage"}
        assert report.figures.queues_unread_at_end == 0
        longest.append(length(report, "longest_outage"))
    assert max(longest) <= 31.5
    assert max(longest) - min(longest) > 10
    # A consumer that joins while the master is down cannot take the queues that only the slave has.
    events = at("broker-down", "b", 10), at("join", "c3", 100), at("broker-up", "b", 200)
    report = simulate("c1 c2", *events, routes=[with_slave(route(a=4, b=4), "b")], orderly=True)
    from_slave = [takeover.at_ms for takeover in takeovers(report) if takeover.broker_name == "b"]
    assert from_slave
    assert min(from_slave) > 200_000


def test_an_outage_lasts_until_a_pull_arrives_again_and_nothing_is_stored_meanwhile() -> None:
    found = read(hold("c1", -5, pauses=[(200, 420)]), served=((200, False), (400, True)))
    assert spans(found) == [("one", 0, 200), ("outage", 200, 420), ("one", 420, 1000)]
    assert (found.total_outage_ms, found.longest_outage_ms, found.unread_ms) == (0.22, 0.22, 0.22)
    assert (found.total_gap_ms, found.unread_at_end) == (0, False)
    # c1 reads until 220 and stores at 200; its timer at 250 meets a broker that is down: c2 starts 20 behind.
    held = hold("c1", -5, 300, pauses=[(220, None)]), hold("c2", 450)
    assert again(read(*held, served=((220, False), (400, True)))) == [20]


LONG = at("freeze", "c2", 10), at("unfreeze", "c2", 180)


def test_brokers_forget_it_by_its_heartbeats_and_the_others_find_out_by_themselves() -> None:
    """The last heartbeat is up to 30 s old; the first look, of one in 10 s, more than 120 s after it forgets it.

    Then each of the others finds out by its next rebalance, within 20 s. 94 s were measured. Now and then the broker's
    own close is heard first, and tells them.
    """
    forgotten, gaps = [], []
    for report in trials(60, "c1 c2 c3", *LONG, explain=True):
        heard = [when - 10 for when in moments(report, "expire") if 10 <= when < 180]
        closed = [when for when in moments(report, "notice") if 10 <= when < 180]
        assert len(heard) + len(closed) == 2
        forgotten += heard
        gaps.append(length(report, "longest_gap"))
    assert 90 <= min(forgotten) < 97
    assert 120 < max(forgotten) <= 130
    assert 60 < len(forgotten) < 115
    assert min(gaps) > 90
    assert max(gaps) <= 150.1


def test_it_drops_what_it_had_at_once_and_has_its_share_again_a_second_later() -> None:
    for report in trials(20, "c1 c2 c3", *LONG, explain=True):
        dropped = [when for when in moments(report, "drop", who="c2") if 180 <= when < 181]
        assert not dropped or 180 < dropped[0] < 180.2  # otherwise its heartbeat was there first
        assert all(180.9 < when < 182.1 for when in moments(report, "take", who="c2") if 180 <= when < 190)
        assert len(set(owners_at_the_end(report).values())) == 3
        assert owners_at_the_end(report)["b0"] == ("c2",)
        if not any("of no use" in step.text for step in report.steps or ()):
            assert length(report, "longest_overlap") < 1.2
            assert length(report, "convergence") < 173


@every_case(("version", "least"), [("5.5.0", 10), ("5.1.4", 0), ("4.9.7", 0)])
def test_a_connection_that_it_forgets_lets_a_broker_name_it_twice_for_two_minutes(version: str, least: int) -> None:
    """Clients since 5.2.0; the share of the second one is nobody's, by turns with the broker that names it once."""
    twice = 0
    for report in trials(40, "c1 c2 c3", *LONG, client_version=version, explain=True):
        ends = moments(report, "notice", "of no use")
        assert all(300 <= end < 302 for end in ends)
        assert len(ends) <= 1
        twice += len(ends)
        assert bool(ends) is (length(report, "convergence") > 200)
        assert owners_at_the_end(report)["b0"] == ("c2",)
    assert least <= twice <= 3 * least


def test_one_that_never_goes_on_leaves_the_group_and_orderly_members_wait_for_its_locks() -> None:
    report = simulate("c1 c2 c3", at("freeze", "c2"), trial=1)
    assert 90 < length(report, "convergence") <= 150
    assert {owner for owners in owners_at_the_end(report).values() for owner in owners} == {"c1", "c3"}
    for report in trials(10, "c1 c2 c3", *LONG, orderly=True):
        assert length(report, "longest_gap") > 90
        assert owners_at_the_end(report)["b0"] == ("c2",)


LOST_AND_JOINED = at("broker-loss", "b", 10), at("join", "c2", 12)
"""The NameServers name the lost broker until two minutes have passed, so that the one that joins asks it."""


@every_case("trial", range(10))
def test_a_queue_whose_offset_is_not_told_is_not_taken(trial: int) -> None:
    """c2's half is what the lost broker has: it asks queue by queue, pass after pass, and owns nothing of it."""
    report = simulate("c1", *LOST_AND_JOINED, trial=trial, explain=True, until_us=60 * SECOND_US)
    refused = [step.text for step in report.steps or () if step.who == "c2" and "no offset from" in step.text]
    texts = [f"cannot take b:{number}: no offset from broker b" for number in range(4)]
    assert refused == (texts * 4)[: len(refused)]
    assert trial or len(refused) >= 8
    assert all("c2" not in each.owners for queue in range(4) for each in line(report, "b", queue).intervals)


@every_case("version", ["5.5.0", "5.1.4", "4.9.7"])
def test_a_lock_that_no_broker_gives_ends_the_matter_before_an_offset_is_asked_for(version: str) -> None:
    """`RebalanceImpl.updateProcessQueueTableInRebalance`: the queue is passed over."""
    more: dict[str, Any] = {"orderly": True, "explain": True, "until_us": 60 * SECOND_US}
    report = simulate("c1", *LOST_AND_JOINED, client_version=version, **more)
    assert not [step for step in report.steps or () if "no offset from" in step.text]
    assert all("c2" not in each.owners for queue in range(4) for each in line(report, "b", queue).intervals)


@every_case(("version", "lag", "after"), [("4.9.7", 3, 20), ("4.9.7", 0, 0), ("5.5.0", 3, 0)])
def test_older_clients_keep_the_lock_of_a_queue_with_cached_messages(version: str, lag: int, after: float) -> None:
    """`ProcessQueue.hasTempMessage`: `unlockDelay` gives the lock back 20 s after the queue; c2 takes a2 and a3."""
    states = {queue: QueueState(broker_offset=9, consumer_offset=9 - lag) for queue in route(a=4).subscribe_queues()}
    scenario = GroupScenario((at("join", "c2"),), orderly=True, client_version=version)
    report = simulate_group("g", Members(("c1",), "AVG"), [route(a=4)], scenario, states=states)
    for number in (2, 3):
        (given_up,) = (each.to_ms / 1000 for each in line(report, "a", number).intervals if each.owners == ("c1",))
        (taken,) = line(report, "a", number).takeovers
        # As often as c2 tries again: every 20 s, and 5.0.0 and newer twice a second.
        assert after <= taken.at_ms / 1000 - given_up <= after + 20


@pytest.mark.parametrize("latency_us", [0, 40_000])
def test_a_logical_queue_that_no_broker_serves_is_taken_after_a_question_to_the_name_server(latency_us: int) -> None:
    """Four queues of which two are mapped; the others have an owner, and a round trip is the least that it takes."""
    mapping = {"a": TopicQueueMappingInfo("T", "g", 4, "a", 1, {0: 0, 1: 1})}
    static = replace(route("T", a=2), topic_queue_mapping_by_broker=mapping)
    at_once = simulate("c1", at("join", "c2"), routes=[static], latency_us=latency_us)
    assert list(owners_at_the_end(at_once).values()) == [("c1",), ("c1",), ("c2",), ("c2",)]
    taken = [each.at_ms for each in takeovers(at_once, "c2")]
    assert len(taken) == 2
    assert (taken[0] < taken[1]) == (latency_us > 0), "one after the other, each after its answer"
