"""The metrics of show-groups: each group's line, and how many groups are how."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.model.groups import STATUSES, GroupLine, Overview
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.metrics import catalogue as of
from rmqlb.views.metrics.catalogue import Sample, one_of
from rmqlb.views.metrics.clusters import cluster_of_topics


def of_groups(overview: Overview, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    """Of the groups that are shown; their number by status is that of all."""
    s = overview.summary
    numbers = (s.with_errors, s.with_warnings, s.unknown, s.offline, s.in_order)
    for status, number in zip(STATUSES, numbers, strict=True):
        yield Sample(of.GROUPS, number, {"status": status})
    for line in overview.groups:
        yield from _of_line(line, cluster_of_topics(snapshot, line.topics))


def _of_line(line: GroupLine, cluster: str | None) -> Iterator[Sample]:
    labels = {"cluster": cluster, "group": line.group}
    yield from one_of(of.GROUP_STATUS, STATUSES, line.status, **labels)
    for metric, value in (
        (of.CONSUMERS, line.consumers),
        (of.PROCESSES, line.processes),
        (of.QUEUES, line.queues),
        (of.GROUP_LAG, line.lag),
        (of.GROUP_LAG_AT_LEAST, line.lag_at_least),
        (of.UNASSIGNED, line.unassigned),
        (of.DUPLICATE_OWNERS, line.duplicate_owners),
        (of.IDLE, line.idle),
        (of.DUPLICATE_IDS, line.duplicate_client_ids),
        (of.MISMATCHES, line.mismatches),
        (of.IMBALANCE, line.imbalance),
    ):
        yield Sample(metric, value, labels)
