"""What a client does over its connections: the heartbeat that greets a broker, and who hears of a lost host when."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from statistics import NormalDist, fmean

import pytest
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.kernel import Draws, Steps
from rmqlb.engine.rebalance.broker import Broker
from rmqlb.engine.rebalance.consumer import Client
from rmqlb.engine.rebalance.environment import GroupEnvironment
from rmqlb.engine.rebalance.shares import Shares
from rmqlb.model.group import ConsumerType
from rmqlb.model.group_scenario import SECOND_US, GroupScenario, Timers
from rmqlb.model.route import BrokerData, TopicRouteData
from tests.engine.rebalance.groups import at, seconds, simulate
from tests.support.builders import route
from tests.support.group_builders import us
from tests.support.mismatches import every_case

LATENCY_US = 1000
LATER_US = 10 * SECOND_US


def lone_client(latency_us: int = LATENCY_US, kind: ConsumerType = "push") -> tuple[GroupEnvironment, Client]:
    """A client that knows one broker and is connected to it, in an environment where nothing else happens."""
    routes = (route(a=4),)
    scenario = GroupScenario(latency_us=latency_us, consumer_type=kind)
    env = GroupEnvironment(routes, scenario, shares=Shares(Settings()), lagging=frozenset(), trial=0, explain=False)
    client = Client("c1", number=0, strategy="AVG", topics=("T",), env=env, created_us=0)
    view = env.name_server.views["T"]
    client.connections.learn(view)
    client.views["T"] = view
    client.connections.have_stood()
    return env, client


def names(broker: Broker) -> tuple[str, ...] | None:
    return None if broker.members is None else broker.members.client_ids


def run_until(env: GroupEnvironment, end_us: int) -> None:
    while env.clock.do_next(end_us):
        pass


def greeted(env: GroupEnvironment, client: Client, meanwhile: Callable[[], None] = lambda: None) -> list[int]:
    """When the rebalance that a greeting asks for comes; something may happen while the heartbeat is on its way."""
    moments: list[int] = []
    broker = next(iter(client.connections.addresses))
    env.clock.start(client.connections.greet(broker, lambda: moments.append(env.clock.now)))
    env.clock.call(1, meanwhile)
    run_until(env, LATER_US)
    return moments


@every_case(
    ("connected", "loss", "arrives", "after_us"),
    [
        (True, None, True, 0),
        (False, None, True, Timers().connect_us),
        (True, "its process", False, 0),
        (False, "its process", False, 0),
        (True, "its machine", False, Timers().rpc_timeout_us),
        (False, "its machine", False, Timers().rpc_timeout_us),
    ],
)
def test_a_request_takes_longer_on_a_new_connection_and_fails_late_where_a_machine_is_lost(
    connected: bool, loss: str | None, arrives: bool, after_us: int
) -> None:
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
    assert 5 * SECOND_US * beats <= broker.last_beat_us(client) <= 6 * SECOND_US * beats


def test_a_greeting_is_a_heartbeat_and_one_rebalance_when_it_has_been_answered() -> None:
    env, client = lone_client()
    (moment,) = greeted(env, client)
    assert 0 < moment < LATER_US
    assert names(next(iter(client.connections.addresses))) == ("c1",)


# -- a lost host: the broker closes a connection that nothing has gone over for too long --------------------------------

IDLE_S = 60
WITH_SLAVE = TopicRouteData(
    "T", route(a=2).queue_datas, (BrokerData("c", "a", {0: "192.0.2.1:10911", 1: "192.0.2.2:10911"}),)
)
QUIET = Timers(socket_idle_us=IDLE_S * SECOND_US, pull_hold_us=1, channel_expiry_us=10**12)


def last_traffic(client_ids: str, lost: str, **scenario: object) -> dict[str, list[float]]:
    """Broker → when it had last heard the lost host, in seconds before its loss, over many simulations."""
    heard: dict[str, list[float]] = {"broker a": [], "broker a:1": []}
    for trial in range(60):
        report = simulate(
            client_ids,
            at("host-loss", lost),
            routes=[WITH_SLAVE],
            timers=replace(QUIET, **scenario),
            latency_us=0,
            until_us=120 * SECOND_US,
            trial=trial,
            explain=True,
        )
        for step in report.steps or ():
            if step.what == "notice" and f"connection of {lost} closed" in step.text:
                heard[step.who].append(10 + IDLE_S - seconds(us(step.at_ms)))
    assert [len(each) for each in heard.values()] == [60, 60]
    return heard


def test_a_master_hears_the_pulls_of_an_owner_and_a_slave_its_heartbeats_only() -> None:
    heard = last_traffic("c1 c2", "c2")
    assert set(heard["broker a"]) == {0.0}
    assert 0 <= min(heard["broker a:1"]) < 3
    assert 27 < max(heard["broker a:1"]) <= 30


def test_a_late_unlock_frees_the_lock_of_nobody_else() -> None:
    """`RebalanceLockManager.unlockBatch` removes an entry of the very client only, whichever of the ids sorts first."""
    world, _ = lone_client()
    (broker,) = world.brokers()
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
    """A stream that draws one number only."""

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
    world, _ = lone_client(latency_us=512 * thousandth)
    ways = [world.one_way(Fixed(number)) for number in range(64 * 256)]
    last = ways[-1] + (ways[-1] - ways[-2])
    assert fmean(ways) + (last - ways[0]) / 2 / len(ways) == pytest.approx(256 * thousandth, rel=1e-4)
    at = NormalDist().inv_cdf
    for node in range(1, 64):
        assert ways[node << 8] / thousandth == pytest.approx(154.1 * exp(at((node + 0.15) / 64.3)), abs=0.51)
    for node in range(63):
        low, high = ways[node << 8], ways[(node + 1) << 8]
        assert [ways[(node << 8) + 64 * part] for part in range(4)] == [
            low + (high - low) * part // 4 for part in range(4)
        ]


@every_case(("version", "at_once"), [("5.5.0", True), ("5.2.0", True), ("5.1.4", False), ("4.9.8", False)])
def test_since_5_2_a_broker_that_is_back_hears_a_client_as_soon_as_it_connects(version: str, at_once: bool) -> None:
    """By `onChannelActive`, when c2, who owns all of b, pulls again within a second; before, by the heartbeat every 30 s."""
    soon = 0
    for trial in range(20):
        events = at("broker-down", "b", 10), at("broker-up", "b", 10.5)
        report = simulate("c1 c2", *events, client_version=version, trial=trial, explain=True)
        heard = (
            min(seconds(us(step.at_ms)) for step in report.steps or () if "hears c2 for the first time" in step.text)
            - 10.5
        )
        assert 0 < heard < 31
        soon += heard < 1.6
    assert soon == 20 if at_once else soon < 5


@every_case(("known", "asked"), [((0, 1, 2), {0}), ((0, 2), {0}), ((1, 2), {1, 2}), ((2,), {2}), ((), set())])
def test_a_brokers_master_is_asked_for_the_members_and_any_slave_without_one(
    known: tuple[int, ...], asked: set[int]
) -> None:
    """`BrokerData.selectBrokerAddr`: the master whenever its address is known, otherwise an address at random."""
    addresses = {number: f"a{number}:10911" for number in range(3)}
    topic = replace(route(a=4), broker_datas=(BrokerData("c", "a", addresses),))
    env = GroupEnvironment(
        (topic,), GroupScenario(), shares=Shares(Settings()), lagging=frozenset(), trial=0, explain=False
    )
    draws = env.draws(0)
    brokers = [env.any_of("a", known, draws) for _ in range(40)]
    assert {each.broker_id for each in brokers if each is not None} == asked
    assert (None in brokers) is (not known)
