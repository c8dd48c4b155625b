from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, ProxyView, Seen
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread
from tests.engine.check.clusters import AVG_CLASS, cluster, members
from tests.support.builders import HERE, route

CIRCLE = "AllocateMessageQueueAveragelyByCircle"
HASH = "AllocateMessageQueueConsistentHash"
GRPC = "host@1@0@abc"


def with_reports(group: ConsumerGroup, **changes: Any) -> ConsumerGroup:
    return replace(group, reports={i: replace(report, **changes) for i, report in group.reports.items()})


def by_broker(owners: str | None, strategy: str = AVG_CLASS, modes: Mapping[str, tuple[str, ...]] | None = None) -> Any:
    """Consumers x and y that let brokers assign their queues; `modes` None: brokers did not report request modes."""
    return replace(
        with_reports(members("x y", owners=owners, strategy=strategy), client_rebalance=False), request_modes=modes
    )


def two_routes(snapshot: ClusterSnapshot, number: int) -> ClusterSnapshot:
    other = RouteSighting(route(a=number), HERE)
    return replace(snapshot, routes={"T": replace(snapshot.routes["T"], others=(other,))})


def of_several_sdks() -> ConsumerGroup:
    found = members("x y", owners="x x y y")
    languages = (Connection("x", "1.1.1.1:1", "JAVA", "V5_5_0"), Connection("y", "1.1.1.2:1", "GO", "V4_9_0"))
    return replace(found, views=(MemberView(languages, Seen("broker 0")),))


PARTLY = "the owners of one queue are unknown, those of the others contradict the prediction"
ODD: dict[str, ClusterSnapshot] = {
    "healthy": cluster(members("x y", owners="x x y y")),
    "nothing observed": cluster(members("x y")),
    "partly observed, as predicted": cluster(members("x y", owners="x ? y y")),
    PARTLY: cluster(members("x y", owners="- - x+y ?")),
    "partly observed, no strategy": cluster(members("x y", owners="- - x+y ?", strategy=None)),
    "unassigned": cluster(members("x y", owners="x x - -", lag={2: 7})),
    "duplicate owners": cluster(members("x y", owners="x+y x y y")),
    "duplicate client ID": cluster(members("x x", owners="x x - -")),
    "duplicate client ID, nothing observed": cluster(members("x x y")),
    "mixed strategies": cluster(replace(members("x y", owners="x x+y y -"), reports={"x": MemberReport("x", None, AVG_CLASS), "y": MemberReport("y", None, CIRCLE)})),
    "mixed subscriptions": cluster(members("x y", topics="T U", owners="x x y y", subscribed={"x": "T", "y": "U"}), routes=(route(a=4), route("U", a=4))),
    "mixed SDKs": cluster(of_several_sdks()),
    "split view": cluster(members("x y", "x", owners="x x y y")),
    "broker-assigned AVG": cluster(by_broker("x x y y", AVG_CLASS, {})),
    "broker-assigned AVG, nothing observed": cluster(by_broker(None, AVG_CLASS, {})),
    "broker-assigned AVG_BY_CIRCLE": cluster(by_broker("x y x y", CIRCLE, {})),
    "broker-assigned CONSISTENT_HASH": cluster(by_broker(None, HASH, {})),
    "broker-assigned CONSISTENT_HASH, observed": cluster(by_broker("x x y y", HASH, {})),
    "broker-assigned CONSISTENT_HASH, partly observed": cluster(by_broker("x ? - y", HASH, {})),
    "broker-assigned CONSISTENT_HASH, and POP": cluster(replace(by_broker(None, HASH, {"T": ("POP",)}), topics=("T", "U")), routes=(route(a=4), route("U", a=4))),
    "broker-assigned or POP": cluster(by_broker("- - - -")),
    "broker-assigned or POP, nothing observed": cluster(by_broker(None)),
    "broker-assigned or POP, queues held": cluster(by_broker("x x y y")),
    "POP by mode": cluster(by_broker("- - - -", AVG_CLASS, {"T": ("POP",)})),
    "POP": cluster(members("x y", consume_type="CONSUME_POP")),
    "gRPC": cluster(members(GRPC, strategy=None)),
    "gRPC among others": cluster(members(f"x {GRPC}", owners="x x - -")),
    "behind a Proxy": cluster(replace(members("", strategy=None), polling_num=3)),
    "gRPC at a Proxy": cluster(replace(members("", strategy=None), proxies=(ProxyView((Connection(GRPC),), HERE, "p:8080"),))),
    "NameServers differ": two_routes(cluster(members("x y", owners="x x y y")), 6),
    "NameServers differ, nothing observed": two_routes(cluster(members("x y")), 6),
    "NameServers differ in write queues": two_routes(cluster(members("x y", owners="x x y y")), 4),
    "unreadable topic": cluster(members("x y", lag={0: 5}), routes=(route(perm=2, a=4),)),
    "unreadable and readable topic": cluster(members("x y", topics="T U", lag={0: 5}), routes=(route(perm=2, a=4), route("U", a=4))),
    "BROADCASTING": cluster(members("x y", message_model="BROADCASTING", owners="x+y x+y x+y x+y", lag={0: 9})),
    "nobody online": cluster(members("", strategy=None, lag={0: 5})),
    "nobody online, no Proxy": cluster(replace(members("", strategy=None, lag={0: 5}), proxies=(ProxyView((), HERE, "p:8080"),))),
    "broker that did not list its consumers": cluster(members("x y", owners="x x y y"), unread=(Unread("members", "g", "timed out", "broker-b"),)),
    "group that could not be read": cluster(unread=(Unread("group", "g", "timed out"),)),
    "topic without a route": cluster(members("x y", topics="T U", owners="x x y y")),
    "topics unknown": cluster(members("x y", topics=None)),
    "no topic": cluster(members("x y", topics="%RETRY%g")),
    "retry topic": cluster(members("x y", topics="T %RETRY%g", owners="x x y y"), routes=(route(a=4), route("%RETRY%g", a=1))),
    "pulls": cluster(members("x y", consume_type="CONSUME_ACTIVELY")),
    "pulls, observed": cluster(members("x y", consume_type="CONSUME_ACTIVELY", owners="x x y -")),
    "unknown strategy class": cluster(members("x y", strategy="OurOwn", owners="x y y y")),
    "strategy with settings": cluster(members("x y", strategy="AllocateMessageQueueByMachineRoom")),
    "more consumers than queues": cluster(members("a b c d e f", owners="a b c d")),
    "consumers unknown": cluster(replace(members("x"), views=None, reports={})),
    "frozen consumer": cluster(replace(members("x y", owners="? ? y y"), reports={"y": MemberReport("y", None, AVG_CLASS)}), unread=(Unread("member", "g", "timed out", "x", no_answer=True),)),
    "stale owners": cluster(members("x", owners="x x z z")),
}  # fmt: skip
