"""Every oddity of a route has a code, and a sound route has none."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.engine.route_findings import route_findings, sighting_findings
from rmqlb.model.group import Seen
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import RouteSighting
from tests.support.builders import route
from tests.support.mismatches import every_case


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
    assert codes(broken(QueueData("a", 4, 4, 6), master, order="a:4;z:1")) == ["order-topic"]
    assert codes(route(a=4)) == ["one-broker"]
    assert codes(TopicRouteData("T", (), ())) == ["no-read-queues"]


def test_the_message_says_which_queues_nobody_reads() -> None:
    data = broken(QueueData("a", 2, 4, 6), BrokerData("c", "a", {0: "a:1"}))
    assert [f.message for f in route_findings(data)] == [
        "broker a of topic T has 4 writable but 2 readable queues: messages in queues 2-3 are read by no consumer"
    ]


def told(data: TopicRouteData) -> list[str]:
    return [f.message.removeprefix("broker a of topic T ") for f in route_findings(data)]


def test_a_single_queue_is_no_span() -> None:
    master = BrokerData("c", "a", {0: "a:1"})
    assert told(broken(QueueData("a", 3, 4, 6), master)) == [
        "has 4 writable but 3 readable queues: messages in queue 3 are read by no consumer"
    ]
    assert told(broken(QueueData("a", 1, 0, 6), master)) == [
        "has 1 readable but 0 writable queues: queue 0 gets no new messages"
    ]


ORDER = "topic T has an order config: producers take their queues from it, whatever brokers say"


@every_case(
    ("data", "order", "expected"),
    [
        (QueueData("a", 4, 4, 4), "a:4;z:1", ["is not writable: sends to it fail", ORDER]),
        (QueueData("a", 4, 8, 6), "a:4;z:1", [ORDER]),
        (
            QueueData("a", 4, 8, 6),
            "a:6;z:1",
            [
                "has 6 queues in the order config but 4 readable queues: messages in queues 4-5 are read by no consumer",
                ORDER,
            ],
        ),
        (QueueData("a", 4, 4, 6), "a:9;z:1", [ORDER]),  # the broker refuses sends to the queues from 4 on
        (
            QueueData("a", 4, 4, 4),
            "z:1",
            ["has 4 readable queues but 0 in the order config: queues 0-3 get no new messages", ORDER],
        ),
        (
            QueueData("a", 4, 4, 6),
            "a:4;z:1;y:2;x:0",
            [f"{ORDER}; sends to y, which the route does not have, fail"],
        ),
    ],
)
def test_of_an_order_topic_the_config_says_what_producers_see(data: QueueData, order: str, expected: list[str]) -> None:
    """`publish_queues` does not look at masters or permissions then, so no warning says that producers do."""
    assert told(broken(data, BrokerData("c", "a", {0: "a:1"}), order=order)) == expected


def test_producers_of_an_order_or_a_static_topic_do_not_skip_a_broker_without_master() -> None:
    queue, slave = QueueData("a", 4, 4, 6), BrokerData("c", "a", {1: "a:1"})
    assert told(broken(queue, slave)) == ["has no master: producers skip it, consumers still own its queues"]
    fails = "sends to it fail, consumers still own its queues"
    assert told(broken(queue, slave, order="a:4;z:1")) == [f"has no master: {fails}", ORDER]
    mapping = {"a": TopicQueueMappingInfo("T", "__global__", 4, "a", 1, {0: 0})}
    assert told(replace(broken(queue, slave), topic_queue_mapping_by_broker=mapping)) == [f"has no master: {fails}"]


def test_of_a_static_topic_the_brokers_counts_say_nothing_and_permissions_hide_nothing() -> None:
    mapping = {"a": TopicQueueMappingInfo("T", "__global__", 4, "a", 1, {0: 0})}
    data = broken(QueueData("a", 2, 4, 0), BrokerData("c", "a", {0: "a:1"}))
    data = replace(data, topic_queue_mapping_by_broker=mapping)
    assert len(data.publish_queues()) == len(data.subscribe_queues()) == 4
    assert told(data) == [
        "is not readable: consumers own its queues and are refused",
        "is not writable: sends to it fail",
    ]


def test_name_servers_that_do_not_agree_are_a_finding() -> None:
    other = RouteSighting(route(a=4), Seen("NameServer y"))
    sighting = RouteSighting(route(a=4, b=4), Seen("NameServer x"), (other,))
    assert [(f.code, f.message) for f in sighting_findings(sighting)] == [
        (
            "routes-differ",
            "NameServers give different routes of topic T (NameServer x: 8 readable queues, NameServer y: 4 readable queues)",
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
