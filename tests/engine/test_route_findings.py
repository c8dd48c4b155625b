"""Every oddity of a route has a code, and a sound route has none."""

from __future__ import annotations

from rmqlb.engine.route_findings import route_findings, sighting_findings
from rmqlb.model.group import Seen
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.snapshot import RouteSighting
from tests.builders import route


def codes(data: TopicRouteData) -> list[str]:
    return [finding.code for finding in route_findings(data)]


def broken(queue: QueueData, *brokers: BrokerData, order: str | None = None) -> TopicRouteData:
    sound = QueueData("z", 1, 1, 6)
    return TopicRouteData("T", (queue, sound), (*brokers, BrokerData("c", "z", {0: "z:1"})), order)


def test_a_sound_route_has_no_findings() -> None:
    assert codes(route(a=4, b=4)) == []


def test_each_oddity_has_its_code() -> None:
    master, slave = BrokerData("c", "a", {0: "a:1"}), BrokerData("c", "a", {1: "a:1"})
    assert codes(broken(QueueData("a", 4, 4, 6), slave)) == ["no-master"]
    assert codes(broken(QueueData("a", 4, 4, 6))) == ["no-address"]
    assert codes(broken(QueueData("a", 4, 4, 4), master)) == ["not-writable"]
    assert codes(broken(QueueData("a", 4, 4, 2), master)) == ["not-readable"]
    assert codes(broken(QueueData("a", 2, 4, 6), master)) == ["read-below-write"]
    assert codes(broken(QueueData("a", 4, 2, 6), master)) == ["read-above-write"]
    assert codes(broken(QueueData("a", 4, 4, 6), BrokerData("other", "a", {0: "a:1"}))) == ["spans-clusters"]
    assert codes(broken(QueueData("a", 4, 4, 6), master, order="a:4")) == ["order-topic"]
    assert codes(route(a=4)) == ["one-broker"]
    assert codes(TopicRouteData("T", (), ())) == ["no-read-queues"]


def test_the_message_says_which_queues_nobody_reads() -> None:
    data = broken(QueueData("a", 2, 4, 6), BrokerData("c", "a", {0: "a:1"}))
    assert [f.message for f in route_findings(data)] == [
        "broker a of topic T has 4 write but 2 read queues: messages in queues 2..3 are read by nobody"
    ]


def test_name_servers_that_do_not_agree_are_a_finding() -> None:
    other = RouteSighting(route(a=4), Seen("NameServer y"))
    sighting = RouteSighting(route(a=4, b=4), Seen("NameServer x"), (other,))
    assert [(f.code, f.message) for f in sighting_findings(sighting)] == [
        (
            "routes-differ",
            "NameServers give different routes of topic T (NameServer x: 8 read queues, NameServer y: 4 read queues)",
        )
    ]
    assert list(sighting_findings(other)) == []


def test_routes_are_compared_as_clients_compare_them() -> None:
    one = route(a=4, b=4)
    turned = TopicRouteData("T", one.queue_datas[::-1], one.broker_datas[::-1])
    elsewhere = TopicRouteData(
        "T", one.queue_datas, tuple(BrokerData("z", b.broker_name, b.broker_addrs) for b in one.broker_datas)
    )
    assert not one.differs_from(turned)
    assert not one.differs_from(elsewhere)
    assert one.differs_from(route(a=4, b=5))
    assert one.differs_from(route(masters=False, a=4, b=4))
