"""The queues that a producer picks from, by SDK: of one route each SDK makes a list of its own.

Rules of this file: what a NameServer answers comes in, in its order; what a gRPC SDK gets of it is what a Proxy makes
of it (`RouteActivity.queryRoute`, 5.5.0).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from rmqlb.engine.arguments import require
from rmqlb.engine.send.sdks.profile import SdkProfile
from rmqlb.engine.send.sdks.profile import sdk as chosen_sdk
from rmqlb.errors import DataError
from rmqlb.model.message_queue import MessageQueue, sort_queues
from rmqlb.model.route import MASTER_ID, QueueData, TopicRouteData

MOST_GO_BROKERS = 12
"""client-go sorts queue data by a comparison that contradicts itself. Up to this number of brokers it reverses
them, and as it does so twice before the first message, they stand as they came. Beyond that the order depends on the Go
version."""


def publish_queues(route: TopicRouteData, sdk: str = "java") -> list[MessageQueue]:
    """The queues that a producer of an SDK picks from, in its order: what hash selectors and round robin index into.

    Args:
        route: the topic's.
        sdk: `java`, `go`, `java-grpc`, `go-grpc@5.1.4` …; `proxy` is what a Proxy stores message groups in.

    Raises:
        UsageError: the SDK is not known, or `route` is no route.
        DataError: the list cannot be known, or the route contradicts itself.
    """
    require(route, TopicRouteData, "route")
    require(sdk, str, "sdk")
    return publish_list(route, chosen_sdk(sdk).profile)


def publish_list(route: TopicRouteData, profile: SdkProfile) -> list[MessageQueue]:
    """The list that round robin and hash selectors of an SDK index into.

    Raises:
        DataError: the list cannot be known, or the route contradicts itself.
    """
    if profile.name == "java":
        return route.publish_queues()
    _no_static_topic(route, profile)
    match profile.name:
        case "go":
            return _go(route)
        case "cpp":
            return _cpp(route)
        case "proxy":
            return stored_list(route)
        case _:
            return [entry.queue for entry in broker_list(route, profile)]


class Entry(Struct, frozen=True):
    """A queue in the list of a gRPC SDK."""

    queue: MessageQueue
    takes: bool  # what it stands for is a master


def broker_list(route: TopicRouteData, profile: SdkProfile) -> list[Entry]:
    """The list of a gRPC SDK, in which some keep what cannot be sent to (raises DataError)."""
    _no_static_topic(route, profile)
    return [
        Entry(queue, broker_id == MASTER_ID)
        for queue, broker_id, writable in _of_proxy(route)
        if _kept(profile, queue, broker_id, writable=writable)
    ]


def stored_list(route: TopicRouteData, broker_name: str | None = None) -> list[MessageQueue]:
    """The queues that a Proxy stores in, in its order; with a name those of a Proxy in that broker (local mode).

    Mirrors `MessageQueueSelector.buildWrite` and `LocalTopicRouteService` (5.5.0).
    """
    if broker_name is not None:
        of_broker = (data for data in route.queue_datas if data.broker_name == broker_name and data.writable)
        return _queues(route, next(of_broker, QueueData(broker_name)))
    return sort_queues(set(route.publish_queues()))


def _no_static_topic(route: TopicRouteData, profile: SdkProfile) -> None:
    if route.is_static:
        raise DataError(
            f"topic {route.topic} is a static topic: what producers of {profile.name} make of it is not known",
            hint="its logical queues are those of Java's producers",
        )


def _go(route: TopicRouteData) -> list[MessageQueue]:
    """`routeData2PublishInfo` (client-go 2.1.2), which reads neither order configs nor static topics."""
    if len(route.queue_datas) > MOST_GO_BROKERS:
        raise DataError(
            f"topic {route.topic}: the order of a Go producer's queues is not known beyond {MOST_GO_BROKERS} brokers",
            hint="it depends on the Go version that the producer was built with",
        )
    return [queue for data in route.queue_datas if _writable(route, data) for queue in _queues(route, data)]


def _cpp(route: TopicRouteData) -> list[MessageQueue]:
    """`topicRouteData2TopicPublishInfo` (rocketmq-client-cpp 2.2.0): brokers by the bytes of their names."""
    if route.order_topic_conf:
        return route.publish_queues()
    datas = sorted(route.queue_datas, key=lambda data: data.broker_name.encode(errors="surrogatepass"))
    return [queue for data in datas if _writable(route, data) for queue in _queues(route, data)]


def _writable(route: TopicRouteData, data: QueueData) -> bool:
    broker = route.broker(data.broker_name)
    return data.writable and broker is not None and bool(broker.broker_addrs.get(MASTER_ID))


def _of_proxy(route: TopicRouteData) -> Iterator[tuple[MessageQueue, int, bool]]:
    """Queue, broker id and whether it can be written, as a Proxy lists them.

    Of each broker address in turn: queues that are for reading only, then those for writing only, then the others,
    all numbered through, whatever their numbers on the broker are.
    """
    brokers = route.brokers_by_name()
    for data in route.queue_datas:
        broker = brokers.get(data.broker_name)
        if broker is None:
            return
        for broker_id in sorted(broker.broker_addrs):
            for number, writable in enumerate(_blocks(data)):
                yield MessageQueue(route.topic, data.broker_name, number), broker_id, writable


def _blocks(data: QueueData) -> list[bool]:
    read, write = max(data.read_queue_nums, 0), max(data.write_queue_nums, 0)
    if data.readable and data.writable:
        both = min(read, write)
        return [False] * (read - both) + [True] * (write - both) + [True] * both
    if data.writable:
        return [True] * write
    return [False] * (read if data.readable else max(1, read, write))


def _kept(profile: SdkProfile, queue: MessageQueue, broker_id: int, *, writable: bool) -> bool:
    if profile.name in ("go-grpc", "rust-grpc"):
        return True
    if profile.name == "nodejs-grpc":
        return queue.queue_id == MASTER_ID and writable
    return broker_id == MASTER_ID and writable


def _queues(route: TopicRouteData, data: QueueData) -> list[MessageQueue]:
    return [MessageQueue(route.topic, data.broker_name, number) for number in range(data.write_queue_nums)]
