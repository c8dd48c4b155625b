"""A command's look at one group, or at each of several: one reading of the source, one result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from rmqlb.cli.common.options import GroupOptions
from rmqlb.cli.common.terminal import SnapshotView
from rmqlb.errors import RmqlbError
from rmqlb.model.finding import Finding
from rmqlb.views.report import Report

Parts = Sequence[tuple[str, Report]]
"""Group → its report."""


def look_at_each(
    each: Sequence[GroupOptions], look: Callable[[GroupOptions], SnapshotView], joined: Callable[[Parts], Report]
) -> SnapshotView:
    """What there is to see of the groups; of one as if there were no others; of several an error names it."""
    if len(each) == 1:
        return look(each[0])
    looks = [(one.group or "", _named(look, one)) for one in each]
    tried = tuple(
        replace(condition, text=f"{condition.text} in group {name}") for name, seen in looks for condition in seen.tried
    )
    report = joined([(name, seen.report) for name, seen in looks])
    return SnapshotView(report, looks[0][1].snapshot, tuple(_findings(looks)), tried)


def _named(look: Callable[[GroupOptions], SnapshotView], one: GroupOptions) -> SnapshotView:
    try:
        return look(one)
    except RmqlbError as error:
        if one.group is not None and one.group != error.group:
            error.message = f"group {one.group}: {error.message}"
        raise


def _findings(looks: Sequence[tuple[str, SnapshotView]]) -> Iterator[Finding]:
    """Each once: what is true of all groups as it stands, what is true of some with the name of the group."""
    times = Counter(finding for _, seen in looks for finding in set(seen.findings))
    told: set[Finding] = set()
    for name, seen in looks:
        for finding in seen.findings:
            is_named = times[finding] == len(looks) or name == finding.group
            of_group = finding if is_named else replace(finding, message=f"group {name}: {finding.message}")
            if of_group not in told:
                told.add(of_group)
                yield of_group
