"""The metrics of show-owners: each queue's owners and lag, and what each strategy would make of the group."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.model.owners import OwnersOfGroups, OwnersReport
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.metrics import catalogue as of
from rmqlb.views.metrics.catalogue import Sample
from rmqlb.views.metrics.clusters import cluster_of_topics, clusters_of_brokers


def of_owners(report: OwnersReport, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    """Of one group."""
    clusters = clusters_of_brokers(snapshot, report.topics)
    for queue in report.queues:
        labels = {
            "cluster": clusters.get((queue.topic, queue.broker_name)),
            "topic": queue.topic,
            "group": report.group,
            "broker": queue.broker_name,
            "queue": str(queue.queue_id),
        }
        owners = queue.owners_observed
        yield Sample(of.QUEUE_OWNERS, None if owners is None else len(owners), labels)
        yield Sample(of.QUEUE_LAG, queue.lag, labels)
    cluster = cluster_of_topics(snapshot, report.topics)
    for each in report.strategies:
        under = {"cluster": cluster, "group": report.group, "strategy": each.strategy}
        yield Sample(of.UNDER_UNASSIGNED, each.unassigned, under)
        yield Sample(of.UNDER_DUPLICATE, each.duplicate_owners, under)
        yield Sample(of.UNDER_IDLE, each.idle, under)
        yield Sample(of.UNDER_IMBALANCE, each.imbalance, under)
        yield Sample(of.UNDER_MISMATCHES, each.mismatches, under)


def of_owners_of_groups(report: OwnersOfGroups, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    """Of each of several groups."""
    for each in report.groups:
        yield from of_owners(each, snapshot)
