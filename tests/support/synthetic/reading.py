"""A generated fleet read back by rmqlb's own source and planned by its own engine."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.assignment.consumers import group_sdks, rebalanced_members
from rmqlb.engine.assignment.detect import detect_strategy
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.model.group import ConsumerGroup
from rmqlb.model.plan import Move
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Wanted
from rmqlb.sources.dump import DumpSource

WHOLE = Wanted(everything=Everything(system=True))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def read(path: Path) -> ClusterSnapshot:
    return DumpSource(str(path)).fetch(WHOLE)


def good(folder: Path) -> list[ClusterSnapshot]:
    return [read(path) for path in sorted(folder.rglob("snapshot.json*"))]


def moves_of(snapshot: ClusterSnapshot, group: ConsumerGroup) -> list[Move]:
    """The group as it is planned from what is seen of it: every queue with its predicted and its observed owners."""
    routes = [snapshot.route(topic) for topic in group.topics or () if topic in snapshot.routes]
    subscribed = {i: report.topics for i, report in group.reports.items() if report.topics is not None}
    ids = rebalanced_members(group)
    sdks = group_sdks(group, ids)
    members = Members(ids, "AVG", subscribed=subscribed, sdk=sdks.usual, sdk_of=sdks.sdk_of)
    found = detect_strategy(None, group, routes, members)
    members = replace(members, strategy=found.strategy, strategy_of=found.strategy_of)
    plan = plan_rebalance(group.group, Side(members, tuple(routes)), Side(members, tuple(routes)), states=group.queues)
    return plan.moves
