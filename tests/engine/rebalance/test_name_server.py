"""Which brokers a topic's route still names."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.rebalance.environment import NameServer
from rmqlb.engine.rebalance.shares import Shares
from rmqlb.model.group_scenario import SECOND_US, Event, Timers
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from tests.engine.rebalance.groups import at, simulate
from tests.support.builders import route
from tests.support.group_builders import us
from tests.support.mismatches import every_case

QUEUES = tuple(QueueData(name, 2, 2, 6) for name in ("a", "b"))
ADDRESSES = tuple(BrokerData("c", name, {0: f"{name}:10911"}) for name in ("a", "b"))


@every_case(
    ("queues", "addresses", "left", "brokers"),
    [
        (QUEUES, ADDRESSES, ["b"], ("b",)),
        (QUEUES, (), ["b"], ("b",)),
        (QUEUES, ADDRESSES[1:], ["b"], ("b",)),
        (QUEUES[1:], ADDRESSES, ["b"], ("b",)),
    ],
    ids=["in both lists", "no addresses at all", "with queues only", "with an address only"],
)
def test_a_lost_broker_leaves_a_route_that_names_it_in_either_list(
    queues: tuple[QueueData, ...], addresses: tuple[BrokerData, ...], left: list[str], brokers: tuple[str, ...]
) -> None:
    server = NameServer([TopicRouteData("T", queues, addresses)], Shares(Settings()).view_of)
    server.drop("a")
    assert [queue.broker_name for queue in server.views["T"].queues] == left * 2
    assert server.views["T"].brokers == brokers


def drops_us(events: Sequence[Event], trial: int, timers: Timers) -> list[int]:
    """When the NameServers drop a broker from their routes."""
    topic = route(a=1, b=1, c=1)
    report = simulate("c1", *events, routes=[topic], trial=trial, timers=timers, explain=True, until_us=600 * SECOND_US)
    return [us(step.at_ms) for step in report.steps or () if step.who == "NameServer"]


@pytest.mark.parametrize(
    ("events", "apart_us"),
    [
        ((at("broker-loss", "a", 10), at("broker-loss", "b", 10)), 0),
        ((at("broker-loss", "a", 10), at("broker-up", "a", 300), at("broker-loss", "a", 310)), 300 * SECOND_US),
    ],
    ids=["two brokers", "one broker twice"],
)
def test_each_lost_broker_has_registered_in_its_own_time(events: Sequence[Event], apart_us: int) -> None:
    """Each registers every 30 s by a timer of its own, and is dropped 120 s after the last time."""
    at_any_time = Timers(nameserver_scan_us=0)
    apart = set()
    for trial in range(20):
        first, second = drops_us(events, trial, at_any_time)
        assert 100 <= first / SECOND_US <= 130
        assert 100 <= (second - apart_us) / SECOND_US <= 130
        apart.add(abs(second - apart_us - first) // SECOND_US)
    assert len(apart) > 5
    assert max(apart) > 10


def test_one_scan_drops_all_that_have_expired() -> None:
    """`RouteInfoManager.scanNotActiveBroker` runs every 5 s, whenever the brokers were lost."""
    moments = set()
    for trial in range(20):
        drops = drops_us((at("broker-loss", "a", 10), at("broker-loss", "b", 11)), trial, Timers())
        (moment,) = {each % (5 * SECOND_US) for each in drops}
        moments.add(moment)
    assert len(moments) == 20
    assert max(moments) - min(moments) > 3 * SECOND_US
