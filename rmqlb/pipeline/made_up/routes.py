"""A topic's route on a night: what the brokers that are up register."""

from __future__ import annotations

from random import Random

import msgspec

from rmqlb.model.group import RETRY_PREFIX
from rmqlb.model.route import PERM_READ, PERM_WRITE, BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.pipeline.made_up.draw import ORDER, SHRINKING, STATIC, FleetBroker, FleetCluster, FleetTopic

_SCOPE = "__global__"
_EPOCH = 1_790_000_000_000
_READ_WRITE = PERM_READ | PERM_WRITE
_OUTAGE = 0.02


class BrokerState(msgspec.Struct, frozen=True):
    """Which brokers are missing on a night, by number: wholly, or only their master."""

    down: frozenset[int] = frozenset()
    headless: frozenset[int] = frozenset()


def broker_states(random: Random, cluster: FleetCluster, days: int) -> list[BrokerState]:
    """Which brokers are missing each night: none on the first; later one is for sure if there are three nights or more.

    Without any faults in the cluster no broker dies. One broker is always up.
    """
    count = len(cluster.brokers)
    ill = any(group.fault for group in cluster.groups)
    unlucky = random.randrange(count)
    states = []
    for night in range(days):
        gone = {i for i in range(1, count) if night and ill and random.random() < _OUTAGE}
        if ill and count > 1 and days > 2 and days // 3 <= night <= days // 2:
            gone.add(unlucky)
        if len(gone) == count:
            gone.discard(0)
        headless = {i for i in gone if cluster.brokers[i].has_slave and night % 2}
        lasting = {i for i, broker in enumerate(cluster.brokers) if not broker.has_master}
        states.append(BrokerState(frozenset(gone - headless), frozenset((headless | lasting) - (gone - headless))))
    return states


def route(cluster: FleetCluster, topic: FleetTopic, state: BrokerState) -> TopicRouteData | None:
    """What a NameServer answers, or None when no broker has the topic."""
    up = [(broker, count) for broker, count in topic.queues if broker not in state.down]
    if not up:
        return None
    brokers = [(cluster.brokers[number], count) for number, count in up]
    return TopicRouteData(
        topic.name,
        tuple(_queue_data(broker, count, topic) for broker, count in brokers),
        tuple(broker_data(cluster, number, state) for number, _ in up),
        _order_conf(cluster, topic) if topic.kind == ORDER else None,
        _mapping(topic, brokers) if topic.kind == STATIC else None,
    )


def retry_route(cluster: FleetCluster, group: str, state: BrokerState) -> TopicRouteData:
    """The route of the group's `%RETRY%` topic: one queue on each broker."""
    up = [number for number in range(len(cluster.brokers)) if number not in state.down]
    return TopicRouteData(
        f"{RETRY_PREFIX}{group}",
        tuple(QueueData(cluster.brokers[number].name, 1, 1, _READ_WRITE) for number in up),
        tuple(broker_data(cluster, number, state) for number in up),
    )


def broker_data(cluster: FleetCluster, number: int, state: BrokerState) -> BrokerData:
    """Where a broker that is up can be reached."""
    broker = cluster.brokers[number]
    addrs = {} if number in state.headless else {0: f"{broker.ip}:10911"}
    if broker.has_slave:
        addrs[1] = f"{broker.ip.rpartition('.')[0]}.2:10911"
    return BrokerData(cluster.name, broker.name, addrs)


def _queue_data(broker: FleetBroker, count: int, topic: FleetTopic) -> QueueData:
    write = max(count // 2, 1) if topic.kind == SHRINKING else count
    return QueueData(broker.name, count, write, PERM_READ if broker.read_only else _READ_WRITE)


def _order_conf(cluster: FleetCluster, topic: FleetTopic) -> str:
    """Of all brokers, those that are down too: that is what it is for."""
    return ";".join(f"{cluster.brokers[number].name}:{count}" for number, count in topic.queues)


def _mapping(topic: FleetTopic, brokers: list[tuple[FleetBroker, int]]) -> dict[str, TopicQueueMappingInfo]:
    """Logical queues, dealt to all brokers of the topic in blocks; only those that are up tell theirs."""
    mapping: dict[str, TopicQueueMappingInfo] = {}
    first = 0
    for broker, count in brokers:
        ids = {first + i: i for i in range(count)}
        mapping[broker.name] = TopicQueueMappingInfo(topic.name, _SCOPE, topic.size, broker.name, _EPOCH, ids)
        first += count
    return mapping
