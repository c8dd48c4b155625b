from pathlib import Path

import pytest
from msgspec.structs import replace

from rmqlb.engine.source_findings import route_findings, sighting_findings
from rmqlb.model.group import Seen
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import RouteSighting
from tests.support.builders import route
from tests.support.mismatches import assert_recorded

MASTER, SLAVE = BrokerData("c", "a", {0: "a:1"}), BrokerData("c", "a", {1: "a:1"})
MAPPING = {"a": TopicQueueMappingInfo("T", "__global__", 4, "a", 1, {0: 0})}


def broken(
    read: int, write: int, perm: int = 6, *brokers: BrokerData, order: str | None = None, static: bool = False
) -> TopicRouteData:
    queues = (QueueData("a", read, write, perm), QueueData("z", 1, 1, 6))
    found = TopicRouteData("T", queues, (*brokers, BrokerData("c", "z", {0: "z:1"})), order)
    return replace(found, topic_queue_mapping_by_broker=MAPPING) if static else found


ROUTES = {
    "two brokers": route(a=4, b=4),
    "one broker": route(a=4),
    "no queue": TopicRouteData("T", (), ()),
    "no master": broken(4, 4, 6, SLAVE),
    "no address": broken(4, 4),
    "not writable": broken(4, 4, 4, MASTER),
    "not readable": broken(4, 4, 2, MASTER),
    "two clusters": broken(4, 4, 6, BrokerData("other", "a", {0: "a:1"})),
    **{f"{read} to read, {write} to write": broken(read, write, 6, MASTER) for read, write in ((2, 4), (3, 4), (4, 2), (1, 0))},
    # Producers take the queues of an order topic from its config, and skip no broker without a master.
    **{f"order topic, {read} to read, {write} to write, config {conf}": broken(read, write, 6, MASTER, order=conf) for read, write, conf in (
        (4, 4, "a:4;z:1"), (4, 8, "a:4;z:1"), (4, 8, "a:6;z:1"), (4, 4, "a:4;z:1;y:2;x:0"),
        (4, 4, "a:9;z:1"),  # the broker refuses sends to the queues from 4 on
    )},
    "order topic, not writable": broken(4, 4, 4, MASTER, order="a:4;z:1"),
    "order topic, not writable, without a": broken(4, 4, 4, MASTER, order="z:1"),
    "order topic, no master": broken(4, 4, 6, SLAVE, order="a:4;z:1"),
    # The mapping of a static topic decides, whatever the brokers' counts and permissions are.
    "static topic, no master": broken(4, 4, 6, SLAVE, static=True),
    "static topic, no permission": broken(2, 4, 0, MASTER, static=True),
}  # fmt: skip


def test_findings_of_odd_routes_are_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {
        name: ["findings:", *(f"{each.code}: {each.message}" for each in route_findings(data))]
        for name, data in ROUTES.items()
    }
    assert_recorded(Path(__file__).with_name("routes.txt"), answers, request)


def test_name_servers_that_do_not_agree_are_a_finding() -> None:
    other = RouteSighting(route(a=4), Seen("NameServer y"))
    sighting = RouteSighting(route(a=4, b=4), Seen("NameServer x"), (other,))
    views = "NameServer x: 8 readable queues, NameServer y: 4 readable queues"
    assert [(f.code, f.message) for f in sighting_findings(sighting)] == [
        ("routes-differ", f"NameServers have different routes of topic T ({views})")
    ]
    assert list(sighting_findings(other)) == []


def test_routes_are_compared_as_clients_compare_them() -> None:
    one = route(a=4, b=4)
    elsewhere = tuple(BrokerData("z", b.broker_name, b.broker_addrs) for b in one.broker_datas)
    same = (replace(one, queue_datas=one.queue_datas[::-1], broker_datas=one.broker_datas[::-1]),)
    for other in (*same, replace(one, broker_datas=elsewhere)):
        assert not one.differs_from(other)
    assert one.differs_from(route(a=4, b=5))
    assert one.differs_from(route(masters=False, a=4, b=4))
