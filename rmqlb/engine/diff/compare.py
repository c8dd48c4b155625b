"""Two snapshots compared: topic by topic, group by group, and in numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.diff.findings import group_findings
from rmqlb.engine.diff.groups import group_diff
from rmqlb.engine.diff.sides import group_side
from rmqlb.engine.diff.topics import topic_diff
from rmqlb.engine.group import Gaps, Given, Group, gaps
from rmqlb.model.diff import DiffSummary, GroupDiff, NotCompared, SnapshotDiff, SnapshotSide, TopicDiff
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.snapshot import ClusterSnapshot, Everything
from rmqlb.model.times import utc_text


def compare_snapshots(
    before: ClusterSnapshot,
    after: ClusterSnapshot,
    wanted: Everything | None = None,
    *,
    settings: Settings | None = None,
    progress: Progress = no_progress,
) -> SnapshotDiff:
    """What differs between two snapshots of a cluster, and which change gave each queue its new owner.

    Args:
        wanted: which topics and groups to compare; None is all but RocketMQ's own.
        settings: what the consumers' strategy objects were constructed with; None is RocketMQ's defaults.
    """
    wanted = wanted or Everything()
    missing = gaps(before), gaps(after)
    not_compared: list[NotCompared] = []
    own = () if wanted.system else (before.own_topics | after.own_topics) - {*wanted.topics}
    names = {name for name in {*before.routes, *after.routes} if wanted.takes_topic(name) and name not in own}
    topics = sorted(_comparable("topic", names, (before.routes, after.routes), missing, not_compared))
    named = {name for name in {*before.groups, *after.groups} if wanted.takes_group(name)}
    groups = sorted(_comparable("group", named, (before.groups, after.groups), missing, not_compared))
    topic_diffs = tuple(_topics(topics, before, after))
    found = []
    for done, name in enumerate(groups):
        progress("groups", done, len(groups))
        facts = [
            _facts(snapshot, gap, name, settings or Settings())
            for snapshot, gap in zip((before, after), missing, strict=True)
        ]
        first, then = (None if each is None else group_side(each) for each in facts)
        differs = group_diff(name, first, then)
        if facts[0] is not None and facts[1] is not None:
            differs = replace(differs, findings=tuple(group_findings(differs, before, facts[1])))
        found.append(differs)
    summary = _summary(len(topics), found, topic_diffs)
    group_diffs = tuple(each for each in found if each.differs)
    return SnapshotDiff(_of(before), _of(after), summary, group_diffs, topic_diffs, tuple(not_compared))


def _of(snapshot: ClusterSnapshot) -> SnapshotSide:
    at = snapshot.taken_at
    return SnapshotSide(snapshot.kind, snapshot.endpoint, None if at is None else utc_text(at), snapshot.context)


def _comparable(
    kind: str,
    names: Iterable[str],
    known: tuple[Mapping[str, object], Mapping[str, object]],
    missing: tuple[Gaps, Gaps],
    not_compared: list[NotCompared],
) -> Iterator[str]:
    """The names that both snapshots could read; the others, with the reason, are listed as not compared."""
    for name in sorted(names):
        reason = None
        for there, gap in zip(known, missing, strict=True):
            if name not in there:
                reason = gap.topics.get(name) if kind == "topic" else gap.groups.get(name, gap.unlisted)
        if reason is None:
            yield name
        else:
            not_compared.append(NotCompared("topic" if kind == "topic" else "group", name, reason))


def _facts(snapshot: ClusterSnapshot, missing: Gaps, name: str, settings: Settings) -> Group | None:
    return Group(snapshot, name, settings, Given(), missing) if name in snapshot.groups else None


def _topics(names: Iterable[str], before: ClusterSnapshot, after: ClusterSnapshot) -> Iterator[TopicDiff]:
    subscribers: dict[str, set[str]] = {}
    for group in (*before.groups.values(), *after.groups.values()):
        for topic in group.topics or ():
            subscribers.setdefault(topic, set()).add(group.group)
    for name in names:
        was, becomes = (s.routes[name].route if name in s.routes else None for s in (before, after))
        found = topic_diff(was, becomes, sorted(subscribers.get(name, ())))
        if found is not None:
            yield found


def _summary(topics: int, groups: Sequence[GroupDiff], routes: Sequence[TopicDiff]) -> DiffSummary:
    changed = [group for group in groups if group.change != "same"]
    growths = [group.lag_growth for group in groups if group.lag_growth is not None]
    return DiffSummary(
        groups=len(groups),
        groups_changed=len(changed),
        groups_added=sum(group.change == "added" for group in changed),
        groups_removed=sum(group.change == "removed" for group in changed),
        topics=topics,
        topics_changed=len(routes),
        consumers_joined=sum(len(group.joined) for group in changed),
        consumers_left=sum(len(group.left) for group in changed),
        strategies_changed=sum(group.strategy_changed for group in changed),
        moved=sum(group.count("moved") for group in changed),
        newly_assigned=sum(group.count("assigned") for group in changed),
        newly_unassigned=sum(group.count("unassigned") for group in changed),
        newly_duplicate_owners=sum(queue.got_duplicate_owners for group in changed for queue in group.queues),
        queues_added=sum(group.count("added") for group in changed),
        queues_removed=sum(group.count("removed") for group in changed),
        pending=_explained(changed, {"pending"}),
        unexplained=_explained(changed, {"unexplained"}),
        lag_growth=sum(max(growth, 0) for growth in growths) if growths else None,
        offsets_back=sum(group.offsets_back for group in groups),
    )


def _explained(changed: Iterable[GroupDiff], hows: Set[str]) -> int:
    return sum(queue.how in hows for group in changed for queue in group.queues)
