"""Which cluster a queue, a topic or a group is in, as far as its routes say it."""

from __future__ import annotations

from collections.abc import Iterable

from rmqlb.model.snapshot import ClusterSnapshot


def cluster_of_topics(snapshot: ClusterSnapshot, topics: Iterable[str] | None) -> str | None:
    """The one cluster of all brokers of these topics; None when there are several, or a route is unknown."""
    if topics is None:
        return None
    found: set[str] = set()
    for topic in topics:
        if topic not in snapshot.routes:
            return None
        found.update(broker.cluster for broker in snapshot.routes[topic].route.broker_datas)
    return found.pop() if len(found) == 1 else None


def cluster_of_group(snapshot: ClusterSnapshot, group: str | None) -> str | None:
    """The one cluster of all topics that the group reads; None when there are several, or it is not known."""
    if group is None or group not in snapshot.groups:
        return None
    return cluster_of_topics(snapshot, snapshot.groups[group].own_topics)


def clusters_of_brokers(snapshot: ClusterSnapshot, topics: Iterable[str]) -> dict[tuple[str, str], str]:
    """(topic, broker) → the broker's cluster, of the topics whose routes are known."""
    return {
        (topic, broker.broker_name): broker.cluster
        for topic in topics
        if topic in snapshot.routes
        for broker in snapshot.routes[topic].route.broker_datas
    }
