"""Topic routes as a report: brokers, and the two queue lists that clients make of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import RouteSighting
from rmqlb.views.report import Cell, Column, Report, Rows, Section, utc_text

if TYPE_CHECKING:
    from rmqlb.views.shapes import route as shapes

_PERMS = ((4, "R"), (2, "W"), (1, "X"))


def route_report(sightings: Sequence[RouteSighting]) -> Report:
    """The routes of one or several topics, for people and machines."""
    routes = [sighting.route for sighting in sightings]
    topic = Column("topic", "topic", quiet=True)
    brokers = Section(
        "brokers",
        "brokers",
        (
            topic,
            Column("broker", "brokerName"),
            Column("cluster", "cluster"),
            Column("perm", "permText"),
            Column("read", "readQueueNums", "number"),
            Column("write", "writeQueueNums", "number"),
            Column("master", "master"),
            Column("slaves", "slaves"),
        ),
        tuple((route.topic, *_broker_row(broker)) for route in routes for broker in _broker_data(route)),
        heads=2,
    )
    queues = Section(
        "queues",
        "queue lists",
        (
            topic,
            Column("list", "list"),
            Column("places", "places"),
            Column("broker", "brokerName"),
            Column("queues", "queueIds"),
        ),
        tuple(
            (route.topic, name, *run)
            for route in routes
            for name, listed in (("producer", route.publish_queues()), ("consumer", route.subscribe_queues()))
            for run in _runs(listed)
        ),
    )
    facts = [_fact(route) for route in routes] if len(routes) <= 5 else [f"{len(routes)} topics"]
    topics = [_data(sighting) for sighting in sightings]
    data: shapes.RouteData = {"topics": topics}
    return Report("rmqlb/route", data, tuple(facts), (brokers, queues), {}, Rows(("topic",), topics))


def _broker_data(route: TopicRouteData) -> list[shapes.BrokerData]:
    """The brokers of a route by name, addresses and queue counts together; absent counts are None."""
    counts = {data.broker_name: data for data in route.queue_datas}
    brokers = route.brokers_by_name()
    rows: list[shapes.BrokerData] = []
    for name in sorted({*counts, *brokers}):
        data, broker = counts.get(name), brokers.get(name)
        rows.append(
            {
                "brokerName": name,
                "cluster": broker.cluster if broker else None,
                "brokerAddrs": {str(i): addr for i, addr in sorted(broker.broker_addrs.items())} if broker else {},
                "hasMaster": bool(broker and broker.has_master),
                "perm": data.perm if data else None,
                "permText": _perm_text(data.perm) if data else None,
                "readQueueNums": data.read_queue_nums if data else None,
                "writeQueueNums": data.write_queue_nums if data else None,
                "zoneName": broker.zone_name if broker else None,
                "enableActingMaster": broker.enable_acting_master if broker else None,
            }
        )
    return rows


def _fact(route: TopicRouteData) -> str:
    kind = "static topic" if route.is_static else "order topic" if route.is_order_topic else "topic"
    writes, reads = len(route.publish_queues()), len(route.subscribe_queues())
    return f"{kind} {route.topic}: producers see {writes} queues, consumers {reads}"


def _broker_row(broker: shapes.BrokerData) -> tuple[Cell, ...]:
    addrs = dict(broker["brokerAddrs"])
    master = addrs.pop("0", None)
    slaves = " ".join(f"{broker_id}={addr}" for broker_id, addr in addrs.items())
    return (
        broker["brokerName"],
        broker["cluster"],
        broker["permText"],
        broker["readQueueNums"],
        broker["writeQueueNums"],
        master or "none",
        slaves or "none",
    )


def _perm_text(perm: int) -> str:
    """`PermName.perm2String`: 6 is RW-."""
    return "".join(letter if perm & bit == bit else "-" for bit, letter in _PERMS)


def _runs(queues: Iterable[MessageQueue]) -> Iterator[tuple[str, str, str]]:
    """Neighbours of one broker with ids in a row as one line: places in the list, broker, queue ids."""
    run: list[MessageQueue] = []
    start = 0
    for place, queue in enumerate(queues):
        if run and (run[-1].broker_name, run[-1].queue_id + 1) != (queue.broker_name, queue.queue_id):
            yield _run(start, run)
            run, start = [], place
        run.append(queue)
    if run:
        yield _run(start, run)


def _run(start: int, run: list[MessageQueue]) -> tuple[str, str, str]:
    first, last = run[0].queue_id, run[-1].queue_id
    return _span(start, start + len(run) - 1), run[0].broker_name, _span(first, last)


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"


def _data(sighting: RouteSighting) -> shapes.TopicRouteData:
    route, seen = sighting.route, sighting.seen
    return {
        "topic": route.topic,
        "orderTopicConf": route.order_topic_conf,
        "isStatic": route.is_static,
        "seen": {"where": seen.where, "at": utc_text(seen.at)},
        "brokers": _broker_data(route),
        "publishQueues": [{"brokerName": q.broker_name, "queueId": q.queue_id} for q in route.publish_queues()],
        "subscribeQueues": [{"brokerName": q.broker_name, "queueId": q.queue_id} for q in route.subscribe_queues()],
    }
