"""All groups in a line each, the worst first, and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.group import resolve_all
from rmqlb.engine.overview.group_line import group_line
from rmqlb.model.groups import STATUSES, GroupLine, Overview, OverviewSummary
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.snapshot import ClusterSnapshot, Unread, UnreadKind

_OF_GROUP: tuple[UnreadKind, ...] = ("group", "members", "member", "link", "offsets", "stored-offsets")


def overview(
    snapshot: ClusterSnapshot,
    names: Iterable[str],
    settings: Settings,
    *,
    progress: Progress = no_progress,
) -> Overview:
    """The groups of these names.

    Args:
        settings: what the consumers' strategy objects were constructed with.
    """
    unread, listed = unread_of_groups(snapshot), list(names)
    lines = []
    for done, group in enumerate(resolve_all(snapshot, listed, settings)):
        progress("groups", done, len(listed))
        lines.append(group_line(group, unread.get(group.name or "", ())))
    lines.sort(key=_badness)
    return Overview(tuple(lines), _summary(lines))


def unread_of_groups(snapshot: ClusterSnapshot) -> dict[str, list[Unread]]:
    """Group → the parts of it that could not be read."""
    found: dict[str, list[Unread]] = {}
    for part in snapshot.unread:
        if part.kind in _OF_GROUP:
            found.setdefault(part.name, []).append(part)
    return found


def unread_of_no_group(snapshot: ClusterSnapshot, lines: Sequence[GroupLine]) -> tuple[Unread, ...]:
    """The parts that could not be read and that no line has a finding of, such as a broker's list of groups."""
    topics = {topic for line in lines for topic in line.topics or ()}
    others = [part for part in snapshot.unread if part.kind not in _OF_GROUP]
    return tuple(part for part in others if part.kind != "route" or part.name not in topics)


def _badness(line: GroupLine) -> tuple[int, int, int, str]:
    bad = (line.unassigned or 0) + (line.duplicate_owners or 0)
    return STATUSES.index(line.status), -(line.lag_at_least or 0), -bad, line.group


def _summary(lines: Sequence[GroupLine]) -> OverviewSummary:
    of = Counter(line.status for line in lines)
    return OverviewSummary(
        groups=len(lines),
        with_errors=of["error"],
        with_warnings=of["warning"],
        unknown=of["unknown"],
        offline=of["offline"],
        in_order=of["inOrder"],
        queues=sum(line.queues or 0 for line in lines),
        lag=sum(line.lag_at_least or 0 for line in lines),
        unassigned=sum(line.unassigned or 0 for line in lines if line.status != "offline"),
        duplicate_owners=sum(line.duplicate_owners or 0 for line in lines),
        idle=sum(line.idle or 0 for line in lines),
        duplicate_client_ids=sum(line.duplicate_client_ids or 0 for line in lines),
        mismatches=sum(line.mismatches or 0 for line in lines),
    )
