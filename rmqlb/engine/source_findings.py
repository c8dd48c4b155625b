"""Findings on a topic's route, on the source of a snapshot, and on the unread parts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from rmqlb.model.message_queue import grouped
from rmqlb.model.result import Finding, counted, info
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread


def sighting_findings(sighting: RouteSighting) -> Iterator[Finding]:
    """A finding when NameServers disagree: clients of different ones share the queues differently."""
    if sighting.others:
        views = ", ".join(
            f"{one.seen.where}: {counted(len(one.route.subscribe_queues()), 'readable queue')}"
            for one in (sighting, *sighting.others)
        )
        yield Finding("routes-differ", f"NameServers have different routes of topic {sighting.route.topic} ({views})")


def unreadable_findings(route: TopicRouteData) -> Iterator[Finding]:
    if not route.subscribe_queues():
        yield Finding("no-read-queues", f"topic {route.topic} has no readable queue: consumers get nothing")


def one_broker_findings(route: TopicRouteData) -> Iterator[Finding]:
    if len({data.broker_name for data in route.queue_datas}) == 1:
        yield Finding("one-broker", f"topic {route.topic} is on one broker only, {route.queue_datas[0].broker_name}")


def route_findings(route: TopicRouteData) -> Iterator[Finding]:
    """Findings on one topic's route, the gravest first (raises DataError for a malformed order config)."""
    topic = route.topic
    yield from unreadable_findings(route)
    brokers, ordered = route.brokers_by_name(), None  # broker name → number of its queues in the order config
    if route.is_order_topic:
        ordered = Counter(queue.broker_name for queue in route.publish_queues())
    for data in route.queue_datas:
        name = f"broker {data.broker_name} of topic {topic}"
        # Whether producers send even to a broker that takes no messages: an order config and the mapping of a static
        # topic stay whatever brokers report. None without queues for producers there.
        sent_to = route.is_static if ordered is None else bool(ordered[data.broker_name]) or None
        yield from _master(name, brokers.get(data.broker_name), sent_to)
        yield from _permissions(name, data, sent_to, is_static=route.is_static)
        if not route.is_static:
            yield from _queues(name, data, None if ordered is None else ordered[data.broker_name])
    yield from one_broker_findings(route)
    clusters = sorted({broker.cluster for broker in route.broker_datas if broker.cluster})
    if len(clusters) > 1:
        yield Finding("spans-clusters", f"topic {topic} spans the clusters {', '.join(clusters)}")
    if ordered is not None:
        gone = sorted(ordered.keys() - {data.broker_name for data in route.queue_datas})
        lost = f"; sends to {', '.join(gone)}, which the route does not have, fail" if gone else ""
        text = f"topic {topic} has an order config: producers take their queues from it, whatever brokers report{lost}"
        yield Finding("order-topic", text)


def _master(name: str, broker: BrokerData | None, sent_to: bool | None) -> Iterator[Finding]:
    effect = {True: "sends to it fail, ", False: "producers skip it, ", None: ""}[sent_to]
    if broker is None:
        yield Finding("no-address", f"{name} has queues but no address: {effect}consumers wait for it")
    elif not broker.has_master:
        yield Finding("no-master", f"{name} has no master: {effect}consumers still own its queues")


def _permissions(name: str, data: QueueData, sent_to: bool | None, *, is_static: bool) -> Iterator[Finding]:
    if not data.readable:
        effect = "consumers own its queues, but cannot read them" if is_static else "consumers leave out its queues"
        yield Finding("not-readable", f"{name} is not readable: {effect}")
    if not data.writable and sent_to is not None:
        effect = "sends to it fail" if sent_to else "producers leave out its queues"
        yield Finding("not-writable", f"{name} is not writable: {effect}")


def _queues(name: str, data: QueueData, ordered: int | None) -> Iterator[Finding]:
    """Queues that only one side uses; brokers refuse sends to a queue they lack, whatever an order config says."""
    reads, writes = data.read_queue_nums, data.write_queue_nums
    below, above = f"{writes} writable but {reads} readable queues", f"{reads} readable but {writes} writable queues"
    if ordered is not None:
        writes = min(ordered, max(reads, writes))
        below = f"{writes} queues in the order config but {reads} readable queues"
        above = f"{reads} readable queues but {writes} in the order config"
    if reads < writes:
        unread = _span(reads, writes)
        yield Finding("read-below-write", f"{name} has {below}: no consumer reads messages in {unread}")
    elif reads > writes:
        gets = "gets" if writes + 1 == reads else "get"
        yield Finding("read-above-write", f"{name} has {above}: {_span(writes, reads)} {gets} no new messages")


def _span(first: int, end: int) -> str:
    return f"queue {first}" if first + 1 == end else f"queues {first}-{end - 1}"


def source_findings(snapshot: ClusterSnapshot, concerns: Callable[[Unread], bool] = lambda _: True) -> list[Finding]:
    return [*map(info, snapshot.notes), *unread_findings(filter(concerns, snapshot.unread))]


def unread_findings(parts: Iterable[Unread]) -> list[Finding]:
    """One finding for all unread parts of a kind."""
    names = ((part, part.name if part.detail is not None or part.kind == "other" else "") for part in parts)
    kinds = grouped(((part.kind, name), part) for part, name in names)
    findings = []
    for (kind, _), (first, *more) in kinds.items():
        others = f" and {len(more)} more" if more else ""
        ids = tuple(part.detail or "" for part in (first, *more)) if kind == "member" else ()
        findings.append(Finding("unread", f"not read: {first.what}{others}: {first.reason}", consumers=ids))
    return findings


def no_route_findings(group: str, topics: Iterable[str], snapshot: ClusterSnapshot) -> list[Finding]:
    why = f"whose route is not in {snapshot.endpoint}"
    lost = [topic for topic in topics if topic not in snapshot.routes]
    return [Finding("no-route", f"group {group} subscribes to {topic}, {why}", group) for topic in lost]
