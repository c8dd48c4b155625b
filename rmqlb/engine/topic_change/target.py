"""The routes between which a topic goes: with all queues readable, with the new writable ones, and in the end.

Consumers come to new queues before producers do, and producers leave queues before consumers do. So every change is the
same three routes, some of which may be equal: opened, switched, and the target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.plan.changes import NewBroker
from rmqlb.errors import DataError, UsageError
from rmqlb.model.java import split
from rmqlb.model.route import PERM_READ, PERM_WRITE, BrokerData, QueueData, TopicRouteData
from rmqlb.model.snapshot import suggestion
from rmqlb.model.words import counted

_NO_MASTER: Mapping[int, str] = {0: "unknown"}


class TopicRequest(Struct, frozen=True):
    """What is to become of the topic; all of it at once."""

    queues: int | None = None  # read and write queues of each broker that keeps some
    add_brokers: tuple[NewBroker, ...] = ()
    drain_brokers: tuple[str, ...] = ()
    move_to_cluster: str | None = None
    ordered: bool = True  # producers that send by key are held while the writable queues change


class Routes(Struct, frozen=True):
    """The topic's route now, and after each change."""

    now: TopicRouteData
    opened: TopicRouteData
    switched: TopicRouteData
    target: TopicRouteData


def routes_of(route: TopicRouteData, request: TopicRequest, known: Iterable[BrokerData] = ()) -> Routes:
    """The routes on the way; `known` are the cluster's other brokers (raises UsageError, DataError)."""
    if route.is_static:
        raise UsageError(
            f"topic {route.topic} is a static topic: its queues are logical and do not follow brokers",
            hint="mqadmin updateStaticTopic adds queues to it",
            code="static-topic",
        )
    target = _target(route, request, {broker.broker_name: broker for broker in known})
    old = {data.broker_name: data for data in route.queue_datas}
    opened = _with(target, (_opened(old.get(data.broker_name), data) for data in target.queue_datas), route)
    switched = _with(target, (_switched(old.get(data.broker_name), data) for data in target.queue_datas), target)
    found = Routes(now=route, opened=opened, switched=switched, target=target)
    if not target.publish_queues() or not target.subscribe_queues():
        raise UsageError(f"topic {route.topic} would have no queue left", hint="add a broker, or drain fewer")
    for data in target.queue_datas:
        if data != old.get(data.broker_name):
            _must_be_read(data, request)
    return found


def _must_be_read(data: QueueData, request: TopicRequest) -> None:
    """Refuse to give a broker write queues that consumers cannot read (raises UsageError)."""
    name, writes = data.broker_name, data.write_queue_nums
    if not data.writable or writes <= (data.read_queue_nums if data.readable else 0):
        return
    added = next((broker for broker in request.add_brokers if broker.name == name), None)
    if added is not None:
        counts = (number for number in (added.read_queue_nums, added.write_queue_nums) if number is not None)
        option = ":".join((f"--add-broker {name}", *map(str, counts)))
        hint = f"write as many read queues as write queues, or more: {name}:{writes}"
    elif request.queues is not None:
        option = f"--queues {request.queues}"
        hint = f"--add-broker {name} makes it readable too; --drain-broker {name} takes its queues away"
    else:
        option = f"--move-to-cluster {request.move_to_cluster}"
        hint = f"say how many queues each broker gets: --queues {writes}"
    of_broker = "" if added else f" of {name}"
    raise UsageError(f"{option}: producers would write queues{of_broker} that consumers cannot read", hint=hint)


def describe(request: TopicRequest) -> tuple[str, ...]:
    """What is asked for, in words.

    >>> describe(TopicRequest(queues=16, drain_brokers=("b",)))
    ('16 queues per broker', 'drain broker b')
    """
    lines = [] if request.move_to_cluster is None else [f"move to cluster {request.move_to_cluster}"]
    lines += [f"add broker {broker.name}" for broker in request.add_brokers]
    lines += [] if request.queues is None else [f"{counted(request.queues, 'queue')} per broker"]
    return (*lines, *(f"drain broker {name}" for name in request.drain_brokers))


def _target(route: TopicRouteData, request: TopicRequest, known: Mapping[str, BrokerData]) -> TopicRouteData:
    brokers = route.brokers_by_name()
    drained = _drained(route, request, brokers)
    reads, writes = _usual(route)
    datas = {data.broker_name: data for data in route.queue_datas}
    for broker in (*request.add_brokers, *_of_cluster(request, {**known, **brokers})):
        if broker.name in drained:
            raise UsageError(f"broker {broker.name} is added and drained: the changes contradict each other")
        here = datas.get(broker.name)
        first = here if here is not None and here.read_queue_nums > 0 else QueueData(broker.name, reads, writes)
        read = first.read_queue_nums if broker.read_queue_nums is None else broker.read_queue_nums
        write = (
            (broker.read_queue_nums or first.write_queue_nums)
            if broker.write_queue_nums is None
            else broker.write_queue_nums
        )
        datas[broker.name] = replace(
            first, read_queue_nums=read, write_queue_nums=write, perm=first.perm | PERM_READ | PERM_WRITE
        )
        brokers.setdefault(broker.name, known.get(broker.name) or BrokerData("", broker.name, _NO_MASTER))
    datas = {name: _becomes(data, request.queues, name in drained) for name, data in datas.items()}
    return replace(
        route,
        queue_datas=tuple(datas.values()),
        broker_datas=tuple(brokers.values()),
        order_topic_conf=_order_conf(route, datas),
    )


def _drained(route: TopicRouteData, request: TopicRequest, brokers: Mapping[str, BrokerData]) -> set[str]:
    """The brokers that lose their queues (raises UsageError)."""
    names = [data.broker_name for data in route.queue_datas]
    for name in request.drain_brokers:
        if name not in names:
            raise UsageError(
                f"--drain-broker {name}: topic {route.topic} has no such broker",
                hint=suggestion("brokers", name, names),
                code="unknown-broker",
            )
    if request.move_to_cluster is None:
        return set(request.drain_brokers)
    there = {name for name, broker in brokers.items() if broker.cluster == request.move_to_cluster}
    return {*request.drain_brokers, *(name for name in names if name not in there)}


def _of_cluster(request: TopicRequest, brokers: Mapping[str, BrokerData]) -> list[NewBroker]:
    """The brokers of the cluster to which the topic moves (raises DataError)."""
    if request.move_to_cluster is None:
        return []
    there = [name for name, broker in brokers.items() if broker.cluster == request.move_to_cluster]
    if not there:
        raise DataError(
            f"--move-to-cluster {request.move_to_cluster}: no broker of that cluster is in the source",
            hint=suggestion("clusters", request.move_to_cluster, {broker.cluster for broker in brokers.values()}),
            code="unknown-cluster",
        )
    return [NewBroker(name) for name in there if name not in request.drain_brokers]


def _usual(route: TopicRouteData) -> tuple[int, int]:
    """As many read and write queues as most of the topic's brokers have."""
    counts = Counter(
        (data.read_queue_nums, data.write_queue_nums) for data in route.queue_datas if data.read_queue_nums > 0
    )
    return counts.most_common(1)[0][0] if counts else (0, 0)


def _becomes(data: QueueData, queues: int | None, drained: bool) -> QueueData:
    if drained:
        return replace(data, read_queue_nums=0, write_queue_nums=0, perm=data.perm & ~PERM_WRITE)
    if queues is None or max(data.read_queue_nums, data.write_queue_nums) <= 0:
        return data
    return replace(data, read_queue_nums=queues, write_queue_nums=queues)


def _opened(old: QueueData | None, new: QueueData) -> QueueData:
    """What will be readable is so; what producers write is as before."""
    if old is None:
        return replace(new, perm=new.perm & ~PERM_WRITE)
    if not new.readable or new.read_queue_nums <= 0:
        return old
    return replace(old, read_queue_nums=_most_read(old, new), perm=old.perm | PERM_READ)


def _switched(old: QueueData | None, new: QueueData) -> QueueData:
    """Producers have their final queues; what was readable still is."""
    if old is None:
        return new
    if not new.writable:
        opened = _opened(old, new)
        return replace(opened, perm=opened.perm & ~PERM_WRITE)
    return replace(new, read_queue_nums=_most_read(old, new), perm=new.perm | (old.perm & PERM_READ))


def _most_read(old: QueueData, new: QueueData) -> int:
    return max(old.read_queue_nums if old.readable else 0, new.read_queue_nums)


def _with(target: TopicRouteData, datas: Iterable[QueueData], conf: TopicRouteData) -> TopicRouteData:
    return replace(target, queue_datas=tuple(datas), order_topic_conf=conf.order_topic_conf)


def _order_conf(route: TopicRouteData, datas: Mapping[str, QueueData]) -> str | None:
    """The order configuration in the end, brokers that stay in their places; only of a topic that has one."""
    if not route.order_topic_conf:
        return route.order_topic_conf
    route.publish_queues()  # one that clients cannot read is told as such
    listed = dict.fromkeys(split(part, ":")[0] for part in split(route.order_topic_conf, ";"))
    names = dict.fromkeys((*listed, *datas))
    return ";".join(
        f"{name}:{datas[name].write_queue_nums}"
        for name in names
        if name in datas and datas[name].writable and datas[name].write_queue_nums > 0
    )
