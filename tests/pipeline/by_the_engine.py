"""A group's owners as the engine has them, from a cluster's snapshot: what the pipeline's rows are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.assignment.assign import Members, assign, runnable
from rmqlb.engine.assignment.consumers import group_sdks, must_be_listed, rebalanced_members
from rmqlb.errors import DataError
from rmqlb.model.group import RETRY_PREFIX, ConsumerGroup
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.sources.dump import DumpSource

Owners = dict[MessageQueue, set[str]]


def last_snapshots(paths: Iterable[Path]) -> dict[str, ClusterSnapshot]:
    """Cluster → its last night's snapshot, of files `cluster=NAME/date=DAY/…`."""
    last = {}
    for path in sorted(paths, key=lambda path: path.parts[-3:]):
        last[path.parts[-3].removeprefix("cluster=")] = DumpSource(str(path)).fetch(Wanted())
    return last


def owners(snapshots: Mapping[str, ClusterSnapshot]) -> Iterator[tuple[tuple[str, str, str], Owners]]:
    """(cluster, group, strategy) and who owns what, of every group that rebalances."""
    for cluster, snapshot in snapshots.items():
        for name, (group, members, routes) in planned(snapshot).items():
            for strategy in WITHOUT_SETTINGS:
                under = told(group, members, strategy)
                if runnable((strategy,), under):
                    dealt = [assign(route, under) for route in routes]
                    yield (
                        (cluster, name, strategy),
                        {queue: set(owners) for one in dealt for queue, owners in one.owners.items()},
                    )


def planned(snapshot: ClusterSnapshot) -> dict[str, tuple[ConsumerGroup, tuple[str, ...], list[Any]]]:
    """Group → itself, its members and its routes, of the groups that rebalance and have a topic with a route."""
    found = {}
    for name, group in snapshot.groups.items():
        try:
            members = rebalanced_members(group)
            must_be_listed(group)
        except DataError:
            continue
        topics = [topic for topic in group.topics or () if not topic.startswith(RETRY_PREFIX)]
        routes = [snapshot.routes[topic].route for topic in topics if topic in snapshot.routes]
        if routes:
            found[name] = (group, members, routes)
    return found


def told(group: ConsumerGroup, members: tuple[str, ...], strategy: str) -> Members:
    """The members, each with its own client library."""
    sdks = group_sdks(group, members)
    return Members(members, strategy, subscribed=subscribed(group), sdk=sdks.usual, sdk_of=sdks.sdk_of)


def subscribed(group: ConsumerGroup) -> dict[str, frozenset[str]]:
    return {i: report.topics for i, report in group.reports.items() if report.topics is not None}
