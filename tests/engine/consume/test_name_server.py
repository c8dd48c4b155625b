"""Which brokers a topic's route still names."""

from __future__ import annotations

import pytest

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.consume.name_server import NameServer
from rmqlb.engine.consume.shares import Shares
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData

QUEUES = tuple(QueueData(name, 2, 2, 6) for name in ("a", "b"))
ADDRESSES = tuple(BrokerData("c", name, {0: f"{name}:10911"}) for name in ("a", "b"))


@pytest.mark.parametrize(
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


def test_a_broker_lost_by_all_topics_is_known_to_none() -> None:
    server = NameServer([TopicRouteData("T", QUEUES, ADDRESSES)], Shares(Settings()).view_of)
    server.drop("a")
    server.drop("b")
    assert (server.views, server.broker_names) == ({}, [])
