"""A topic's route on a night: what the brokers that are up register."""

from __future__ import annotations

from random import Random

import msgspec

from rmqlb.model.group import RETRY_PREFIX
from rmqlb.model.route import PERM_READ, PERM_WRITE, BrokerData, QueueData, TopicRouteData
from rmqlb.pipeline.synthetic.draw import FleetCluster, FleetTopic

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
        states.append(BrokerState(frozenset(gone - headless), frozenset(headless)))
    return states


def route(cluster: FleetCluster, topic: FleetTopic, state: BrokerState) -> TopicRouteData | None:
    """What a NameServer answers, or None when no broker has the topic."""
    up = [(broker, count) for broker, count in topic.queues if broker not in state.down]
    return _route(cluster, topic.name, up, state) if up else None


def retry_route(cluster: FleetCluster, group: str, state: BrokerState) -> TopicRouteData:
    """The route of the group's `%RETRY%` topic: one queue on each broker."""
    up = [(number, 1) for number in range(len(cluster.brokers)) if number not in state.down]
    return _route(cluster, f"{RETRY_PREFIX}{group}", up, state)


def _route(cluster: FleetCluster, topic: str, up: list[tuple[int, int]], state: BrokerState) -> TopicRouteData:
    return TopicRouteData(
        topic,
        tuple(QueueData(cluster.brokers[number].name, count, count, PERM_READ | PERM_WRITE) for number, count in up),
        tuple(broker_data(cluster, number, state) for number, _ in up),
    )


def broker_data(cluster: FleetCluster, number: int, state: BrokerState) -> BrokerData:
    """Where a broker that is up can be reached."""
    broker = cluster.brokers[number]
    addrs = {} if number in state.headless else {0: f"{broker.ip}:10911"}
    if broker.has_slave:
        addrs[1] = f"{broker.ip.rpartition('.')[0]}.2:10911"
    return BrokerData(cluster.name, broker.name, addrs)
