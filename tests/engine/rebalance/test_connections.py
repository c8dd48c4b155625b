from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.kernel import Steps
from rmqlb.engine.rebalance.consumer import Client
from rmqlb.engine.rebalance.environment import GroupEnvironment
from rmqlb.engine.rebalance.shares import Shares
from rmqlb.model.group import ConsumerType
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario, Timers
from rmqlb.model.route import BrokerData, TopicRouteData
from tests.engine.rebalance.groups import at, moments, simulate, trials
from tests.support.builders import route
from tests.support.mismatches import every_case


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
