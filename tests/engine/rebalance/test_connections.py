from collections.abc import Sequence
from math import exp
from statistics import NormalDist, fmean
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.kernel import Draws, Steps
from rmqlb.engine.rebalance.consumer import Client
from rmqlb.engine.rebalance.environment import GroupEnvironment, NameServer, Shares
from rmqlb.model.group import ConsumerType
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario, Timers
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from tests.engine.rebalance.groups import at, moments, simulate, trials
from tests.support.builders import route
from tests.support.mismatches import every_case

LATENCY_US = 1000
LATER_US = 10 * SECOND_US


def environment(topic: TopicRouteData, **scenario: object) -> GroupEnvironment:
    members, settings = Members((), "AVG"), GroupScenario(**scenario)  # type: ignore[arg-type]
    shares = Shares(members)
    return GroupEnvironment((topic,), members, settings, shares=shares, lagging=frozenset(), trial=0, explain=False)


def lone_client(latency_us: int = LATENCY_US, kind: ConsumerType = "push") -> tuple[GroupEnvironment, Client]:
    env = environment(route(a=4), latency_us=latency_us, consumer_type=kind)
    client = Client("c1", number=0, strategy="AVG", topics=("T",), env=env, created_us=0)
    view = env.name_server.views["T"]
    client.connections.learn(view)
    client.views["T"] = view
    client.connections.have_stood()
    return env, client


def run_until(env: GroupEnvironment, end_us: int) -> None:
    while env.clock.do_next(end_us):
        pass


@every_case(("connected", "loss", "arrives", "after_us"), [
    (True, None, True, 0),
    (False, None, True, Timers().connect_us),
    (True, "its process", False, 0),
    (False, "its process", False, 0),
    (True, "its machine", False, Timers().rpc_timeout_us),
    (False, "its machine", False, Timers().rpc_timeout_us),
])  # fmt: skip
def test_requests_need_time_to_connect_or_fail(connected: bool, loss: str | None, arrives: bool, after_us: int) -> None:
    env, client = lone_client(latency_us=0)
    broker = next(iter(client.connections.addresses))
    if not connected:
        client.connections.connected.clear()
    if loss is not None:
        broker.stop(silent=loss == "its machine")
    found: list[tuple[bool, int]] = []

    def request() -> Steps:
        found.append(((yield from client.connections.request(broker)), env.clock.now))

    env.clock.start(request())
    run_until(env, LATER_US)
    assert found == [(arrives, after_us)]
    assert (broker in client.connections.connected) == (connected or arrives)


@every_case(("kind", "beats"), [("push", True), ("pull", False), ("lite-pull", False)])
def test_a_push_consumer_whose_queues_have_changed_sends_a_heartbeat(kind: ConsumerType, beats: bool) -> None:
    """`RebalancePushImpl.messageQueueChanged`; not when the next rebalance changes nothing."""
    env, client = lone_client(kind=kind)
    broker = next(iter(client.connections.addresses))
    broker.beat(client, at_us=0)

    def rebalance() -> Steps:
        yield from client.queues.rebalance_by_topic("T")

    for begin_us in (5 * SECOND_US, 7 * SECOND_US):
        env.clock.start(rebalance(), begin_us)
    run_until(env, LATER_US)
    assert len(client.queues.working()) == 4
    last_us = broker.last_beat_us(client) or 0
    assert 5 * SECOND_US * beats <= last_us <= 6 * SECOND_US * beats


def test_a_greeting_is_a_heartbeat_and_one_rebalance_when_it_has_been_answered() -> None:
    env, client = lone_client()
    found: list[int] = []
    broker = next(iter(client.connections.addresses))
    env.clock.start(client.connections.greet(broker, lambda: found.append(env.clock.now)))
    run_until(env, LATER_US)
    (moment,) = found
    assert 0 < moment < LATER_US
    assert broker.members is not None
    assert broker.members.client_ids == ("c1",)


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


class Fixed(Draws):
    def __init__(self, number: int) -> None:
        super().__init__(0)
        self.number = number

    def below(self, bound: int) -> int:
        assert bound == 64 * 256
        return self.number


def test_messages_take_as_long_as_a_log_normal_curve_tells() -> None:
    """The curve with σ 1, in 64 straight pieces, whose mean is half the latency; the two ends are where they make it so.

    A piece lies above the curve that it cuts off, so that all is a little lower than 256 e^-½.
    """
    thousandth = 1000  # of 1/256 of half the latency
    env, _ = lone_client(latency_us=512 * thousandth)
    ways = [env.one_way(Fixed(number)) for number in range(64 * 256)]
    last = ways[-1] + (ways[-1] - ways[-2])
    assert fmean(ways) + (last - ways[0]) / 2 / len(ways) == pytest.approx(256 * thousandth, rel=1e-4)
    quantile = NormalDist().inv_cdf
    for node in range(1, 64):
        assert ways[node << 8] / thousandth == pytest.approx(154.1 * exp(quantile((node + 0.15) / 64.3)), abs=0.51)
    for node in range(63):
        low, high = ways[node << 8], ways[(node + 1) << 8]
        between = [low + (high - low) * part // 4 for part in range(4)]
        assert [ways[(node << 8) + 64 * part] for part in range(4)] == between


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


QUEUES = tuple(QueueData(name, 2, 2, 6) for name in ("a", "b"))
ADDRESSES = tuple(BrokerData("c", name, {0: f"{name}:10911"}) for name in ("a", "b"))


@every_case(
    ("queues", "addresses"),
    [(QUEUES, ADDRESSES), (QUEUES, ()), (QUEUES, ADDRESSES[1:]), (QUEUES[1:], ADDRESSES)],
    ids=["in both lists", "no addresses at all", "with queues only", "with an address only"],
)
def test_a_lost_broker_leaves_both_lists_of_a_route(
    queues: tuple[QueueData, ...], addresses: tuple[BrokerData, ...]
) -> None:
    server = NameServer([TopicRouteData("T", queues, addresses)], Shares(Members((), "AVG")).view_of)
    server.drop("a", {0})
    assert [queue.broker_name for queue in server.views["T"].queues] == ["b", "b"]
    assert server.views["T"].brokers == ("b",)


def drops_us(events: Sequence[Event], trial: int, timers: Timers) -> list[int]:
    more: dict[str, Any] = {"routes": [route(a=1, b=1, c=1)], "timers": timers, "until_us": 600 * SECOND_US}
    report = simulate("c1", *events, trial=trial, explain=True, **more)
    return [round(when * SECOND_US) for when in moments(report, "route", who="NameServer")]


@pytest.mark.parametrize(("events", "apart_us"), [
    ((at("broker-loss", "a", 10), at("broker-loss", "b", 10)), 0),
    ((at("broker-loss", "a", 10), at("broker-up", "a", 300), at("broker-loss", "a", 310)), 300 * SECOND_US),
], ids=["two brokers", "one broker twice"])  # fmt: skip
def test_each_lost_broker_has_registered_in_its_own_time(events: Sequence[Event], apart_us: int) -> None:
    """Each registers every 30 s by a timer of its own, and is dropped 120 s after the last time."""
    apart = set()
    for trial in range(20):
        first, second = drops_us(events, trial, Timers(nameserver_scan_us=0))
        assert 100 <= first / SECOND_US <= 130
        assert 100 <= (second - apart_us) / SECOND_US <= 130
        apart.add(abs(second - apart_us - first) // SECOND_US)
    assert len(apart) > 5
    assert max(apart) > 10


def test_one_scan_drops_all_that_have_expired() -> None:
    """`RouteInfoManager.scanNotActiveBroker` runs every 5 s, whenever the brokers were lost."""
    phases = set()
    for trial in range(20):
        drops = drops_us((at("broker-loss", "a", 10), at("broker-loss", "b", 11)), trial, Timers())
        (phase,) = {each % (5 * SECOND_US) for each in drops}
        phases.add(phase)
    assert len(phases) == 20
    assert max(phases) - min(phases) > 3 * SECOND_US
