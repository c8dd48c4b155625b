from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Annotated

from msgspec import Struct

from rmqlb.model.group import Seen
from rmqlb.model.message_queue import QueueName, span
from rmqlb.model.result import counted
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import RouteSighting
from rmqlb.views.columns import Column, columns_from, rows_of
from rmqlb.views.report import Report, Rows, Section

_PERMS = ((4, "R"), (2, "W"), (1, "X"))


class RouteBroker(Struct, frozen=True, rename="camel"):
    """A broker of a topic, addresses and queue counts together."""

    broker_name: Annotated[str, "its name"]
    cluster: Annotated[str | None, "its cluster"]
    broker_addrs: Annotated[dict[str, str], "broker id → address; 0 is the master"]
    has_master: Annotated[bool, "the route has an address of a master"]
    perm: Annotated[int | None, "bits: 4 read, 2 write, 1 inherit; null when the route has no queues of the broker"]
    perm_text: Annotated[str | None, "the same as text, such as RW-"]
    read_queue_nums: Annotated[int | None, "queues that consumers can read"]
    write_queue_nums: Annotated[int | None, "queues that producers can write"]
    zone_name: Annotated[str | None, "zone of the broker, if it has one"]
    enable_acting_master: Annotated[bool | None, "true if a slave may act as master"]


class TopicRoute(Struct, frozen=True, rename="camel"):
    """The route of a topic and what clients make of it."""

    topic: Annotated[str, "its name"]
    order_topic_conf: Annotated[str | None, "order configuration of the topic, if it has one"]
    is_static: Annotated[bool, "it is a static (logical) topic"]
    seen: Annotated[Seen, "where and when"]
    brokers: Annotated[tuple[RouteBroker, ...], "by name"]
    writable_queues: Annotated[tuple[QueueName, ...], "queues that producers choose from, in their order"]
    readable_queues: Annotated[tuple[QueueName, ...], "queues that consumers allocate, in their order"]


class ShownRoutes(Struct, frozen=True):
    """The routes of one or several topics."""

    topics: Annotated[tuple[TopicRoute, ...], "topic by topic"]


def _topic(sighting: RouteSighting) -> TopicRoute:
    route = sighting.route
    writable, readable = (
        tuple(QueueName(queue.broker_name, queue.queue_id) for queue in queues)
        for queues in (route.publish_queues(), route.subscribe_queues())
    )
    order, brokers = route.order_topic_conf, tuple(_brokers(route))
    return TopicRoute(route.topic, order, route.is_static, sighting.seen, brokers, writable, readable)


def _brokers(route: TopicRouteData) -> Iterator[RouteBroker]:
    counts = {data.broker_name: data for data in route.queue_datas}
    brokers = route.brokers_by_name()
    for name in sorted({*counts, *brokers}):
        data, broker = counts.get(name), brokers.get(name)
        of_both = {key: getattr(data, key, None) for key in ("perm", "read_queue_nums", "write_queue_nums")}
        of_both |= {key: getattr(broker, key, None) for key in ("cluster", "zone_name", "enable_acting_master")}
        yield RouteBroker(
            broker_name=name,
            broker_addrs={str(i): addr for i, addr in sorted(broker.broker_addrs.items())} if broker else {},
            has_master=bool(broker and broker.has_master),
            perm_text=None if data is None else perm_text(data.perm),
            **of_both,
        )


def route_report(sightings: Sequence[RouteSighting]) -> Report:
    topics = tuple(map(_topic, sightings))
    topic = Column("topic", "topic", quiet=True)
    with_slaves = any(_slaves(broker) != "none" for route in topics for broker in route.brokers)
    columns = columns_from(
        "brokerName=broker cluster/2 permText=perm readQueueNums=readable:number writeQueueNums=writable:number master "
        "slaves/1",
        hidden=() if with_slaves else ("slaves",),
        master=lambda broker: broker.broker_addrs.get("0") or "none",
        slaves=_slaves,
    )
    listed = tuple((route.topic, *row) for route in topics for row in rows_of(columns, route.brokers))
    brokers = Section("brokers", "brokers", (topic, *columns), listed, heads=2)
    rows = Rows(("topic",), [({}, route) for route in topics])
    tables = (brokers, _queue_lists(topics))
    facts, grave = _verdict(topics)
    return Report("rmqlb/route", ShownRoutes(topics), facts, tables, rows=rows, grave=grave)


def _queue_lists(topics: Sequence[TopicRoute]) -> Section:
    columns = (Column("topic", "topic", quiet=True), *columns_from("list places brokerName=broker queueIds=queues"))
    lists = (
        (route.topic, name, found)
        for route in topics
        for name, found in (("writable", route.writable_queues), ("readable", route.readable_queues))
    )
    rows = tuple((topic, name, *run) for topic, name, found in lists for run in _runs(found))
    return Section("queues", "queues in the clients' order", columns, rows, audience="scripts")


def _verdict(topics: Sequence[TopicRoute]) -> tuple[tuple[str, ...], str]:
    lists = {
        "readable": [(route.topic, route.readable_queues) for route in topics],
        "writable": [(route.topic, route.writable_queues) for route in topics],
    }
    readable, writable = (sum(len(queues) for _, queues in found) for found in lists.values())
    brokers = {(broker.broker_name, broker.has_master) for route in topics for broker in route.brokers}
    lost = sorted(name for name, has_master in brokers if not has_master)
    more = f"; without a master: {', '.join(lost)}" if lost else ", each with a master" if brokers else ""
    number = counted(len({name for name, _ in brokers}), "broker")
    counts = f"{readable} readable and {writable} writable queues on {number}{more}"
    empty = {kind: [topic for topic, queues in found if not queues] for kind, found in lists.items()}
    grave = "error" if any(empty.values()) else "warning" if lost else "inOrder"
    if len(topics) > 1:
        missing = (f"  no {kind} queue: {', '.join(names)}" for kind, names in empty.items() if names)
        return (f"{counted(len(topics), 'topic')}: {counts}", *missing), grave
    kind = "static " if topics[0].is_static else "order " if topics[0].order_topic_conf else ""
    return (f"{kind}topic {topics[0].topic}: {counts}",), grave


def _slaves(broker: RouteBroker) -> str:
    return " ".join(f"{number}={addr}" for number, addr in broker.broker_addrs.items() if number != "0") or "none"


def perm_text(perm: int) -> str:
    """The permission in mqadmin's form (`PermName.perm2String`).

    >>> perm_text(6), perm_text(4), perm_text(0)
    ('RW-', 'R--', '---')
    """
    return "".join(letter if perm & bit == bit else "-" for bit, letter in _PERMS)


def _runs(queues: Iterable[QueueName]) -> Iterator[tuple[str, str, str]]:
    for _, run in groupby(enumerate(queues), lambda found: (found[1].broker_name, found[1].queue_id - found[0])):
        places, found = zip(*run, strict=True)
        ids = range(found[0].queue_id, found[-1].queue_id + 1)
        yield span(range(places[0], places[-1] + 1)), found[0].broker_name, span(ids)
