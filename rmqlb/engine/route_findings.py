"""What is odd about a topic's route, in an operator's words."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.model.finding import Finding
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.snapshot import RouteSighting


def sighting_findings(sighting: RouteSighting) -> Iterator[Finding]:
    """A warning when NameServers do not agree: clients that ask different ones share the queues differently."""
    if sighting.others:
        views = ", ".join(
            f"{one.seen.where}: {len(one.route.subscribe_queues())} read queues" for one in (sighting, *sighting.others)
        )
        yield Finding("routes-differ", f"NameServers give different routes of topic {sighting.route.topic} ({views})")


def route_findings(route: TopicRouteData) -> Iterator[Finding]:
    """Warnings about one topic's route, the gravest first."""
    topic = route.topic
    if not route.subscribe_queues():
        yield Finding("no-read-queues", f"topic {topic} has no readable queue: consumers get nothing")
    for data in route.queue_datas:
        name = f"broker {data.broker_name} of topic {topic}"
        yield from _master(name, route.broker(data.broker_name))
        yield from _queues(name, data)
    if len({data.broker_name for data in route.queue_datas}) == 1:
        yield Finding("one-broker", f"topic {topic} is on one broker only, {route.queue_datas[0].broker_name}")
    clusters = sorted({broker.cluster for broker in route.broker_datas if broker.cluster})
    if len(clusters) > 1:
        yield Finding("spans-clusters", f"topic {topic} spans the clusters {', '.join(clusters)}")
    if route.is_order_topic:
        yield Finding(
            "order-topic",
            f"topic {topic} has an order config: producers take their queues from it, whatever brokers say",
        )


def _master(name: str, broker: BrokerData | None) -> Iterator[Finding]:
    if broker is None:
        yield Finding("no-address", f"{name} has queues but no address: producers skip it, consumers wait for it")
    elif not broker.has_master:
        yield Finding("no-master", f"{name} has no master: producers skip it, consumers still own its queues")


def _queues(name: str, data: QueueData) -> Iterator[Finding]:
    reads, writes = data.read_queue_nums, data.write_queue_nums
    if not data.readable:
        yield Finding("not-readable", f"{name} is not readable: consumers do not see its queues")
    if not data.writable:
        yield Finding("not-writable", f"{name} is not writable: producers do not see its queues")
    if reads < writes:
        yield Finding(
            "read-below-write",
            f"{name} has {writes} write but {reads} read queues: messages in queues {reads}..{writes - 1} "
            "are read by nobody",
        )
    elif reads > writes:
        yield Finding(
            "read-above-write",
            f"{name} has {reads} read but {writes} write queues: queues {writes}..{reads - 1} get no new messages",
        )
