from msgspec.structs import replace

from rmqlb.engine.source_findings import route_findings, sighting_findings
from rmqlb.model.group import Seen
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import RouteSighting
from tests.support.builders import route
from tests.support.mismatches import every_case

MASTER, SLAVE = BrokerData("c", "a", {0: "a:1"}), BrokerData("c", "a", {1: "a:1"})
ORDER = "order-topic: topic T has an order config: producers take their queues from it, whatever brokers say"
UNREAD = "messages in queues 4-5 are read by no consumer"
MAPPING = {"a": TopicQueueMappingInfo("T", "__global__", 4, "a", 1, {0: 0})}


def broken(
    read: int, write: int, perm: int = 6, *brokers: BrokerData, order: str | None = None, static: bool = False
) -> TopicRouteData:
    queues = (QueueData("a", read, write, perm), QueueData("z", 1, 1, 6))
    found = TopicRouteData("T", queues, (*brokers, BrokerData("c", "z", {0: "z:1"})), order)
    return replace(found, topic_queue_mapping_by_broker=MAPPING) if static else found


@every_case(("data", "expected"), [
    (route(a=4, b=4), []),
    (route(a=4), ["one-broker: topic T is on one broker only, a"]),
    (TopicRouteData("T", (), ()), ["no-read-queues: topic T has no readable queue: consumers get nothing"]),
    (broken(4, 4, 6, SLAVE), ["no-master: has no master: producers skip it, consumers still own its queues"]),
    (broken(4, 4), ["no-address: has queues but no address: producers skip it, consumers wait for it"]),
    (broken(4, 4, 4, MASTER), ["not-writable: is not writable: producers do not see its queues"]),
    (broken(4, 4, 2, MASTER), ["not-readable: is not readable: consumers do not see its queues"]),
    (broken(4, 4, 6, BrokerData("other", "a", {0: "a:1"})), ["spans-clusters: topic T spans the clusters c, other"]),
    *(
        (broken(read, write, 6, MASTER), [f"{code}: has {has}"])
        for read, write, code, has in (
            (2, 4, "read-below-write", "4 writable but 2 readable queues: messages in queues 2-3 are read by no consumer"),
            (3, 4, "read-below-write", "4 writable but 3 readable queues: messages in queue 3 are read by no consumer"),
            (4, 2, "read-above-write", "4 readable but 2 writable queues: queues 2-3 get no new messages"),
            (1, 0, "read-above-write", "1 readable but 0 writable queues: queue 0 gets no new messages"),
        )
    ),
    # Producers take the queues of an order topic from its config, and skip no broker without a master.
    (broken(4, 4, 6, MASTER, order="a:4;z:1"), [ORDER]),
    (broken(4, 8, 6, MASTER, order="a:4;z:1"), [ORDER]),
    (broken(4, 4, 6, MASTER, order="a:9;z:1"), [ORDER]),  # the broker refuses sends to the queues from 4 on
    (broken(4, 4, 4, MASTER, order="a:4;z:1"), ["not-writable: is not writable: sends to it fail", ORDER]),
    (
        broken(4, 8, 6, MASTER, order="a:6;z:1"),
        [f"read-below-write: has 6 queues in the order config but 4 readable queues: {UNREAD}", ORDER],
    ),
    (
        broken(4, 4, 4, MASTER, order="z:1"),
        ["read-above-write: has 4 readable queues but 0 in the order config: queues 0-3 get no new messages", ORDER],
    ),
    (broken(4, 4, 6, MASTER, order="a:4;z:1;y:2;x:0"), [f"{ORDER}; sends to y, which the route does not have, fail"]),
    (broken(4, 4, 6, SLAVE, order="a:4;z:1"), ["no-master: has no master: sends to it fail, consumers still own its queues", ORDER]),
    # The mapping of a static topic decides, whatever the brokers' counts and permissions are.
    (broken(4, 4, 6, SLAVE, static=True), ["no-master: has no master: sends to it fail, consumers still own its queues"]),
    (
        broken(2, 4, 0, MASTER, static=True),
        ["not-readable: is not readable: consumers own its queues and are refused", "not-writable: is not writable: sends to it fail"],
    ),
])  # fmt: skip
def test_each_oddity_has_its_code_and_says_what_comes_of_it(data: TopicRouteData, expected: list[str]) -> None:
    found = [f"{each.code}: {each.message.removeprefix('broker a of topic T ')}" for each in route_findings(data)]
    assert found == expected


def test_name_servers_that_do_not_agree_are_a_finding() -> None:
    other = RouteSighting(route(a=4), Seen("NameServer y"))
    sighting = RouteSighting(route(a=4, b=4), Seen("NameServer x"), (other,))
    views = "NameServer x: 8 readable queues, NameServer y: 4 readable queues"
    assert [(f.code, f.message) for f in sighting_findings(sighting)] == [
        ("routes-differ", f"NameServers give different routes of topic T ({views})")
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
