"""What is odd about two snapshots, or about what became of a group between them."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.engine.assignment.detect import DEFAULT
from rmqlb.model.diff import GroupDiff, SnapshotDiff
from rmqlb.model.finding import Finding
from rmqlb.model.words import counted

_MOST_GROUPS = 5
"""Of which a finding names its groups one by one."""


def diff_findings(diff: SnapshotDiff) -> Iterator[Finding]:
    """The findings."""
    before, after = diff.before, diff.after
    swapped = before.taken_at is not None and after.taken_at is not None and before.taken_at > after.taken_at
    if swapped:
        yield Finding(
            "snapshots-swapped", f"{before.endpoint} was taken after {after.endpoint}: swap them to look forward"
        )
    s = diff.summary
    whole = s.groups and s.groups_added + s.groups_removed == s.groups
    if whole and s.topics == sum(topic.change != "changed" for topic in diff.topics):
        yield Finding(
            "nothing-in-common", "no group and no topic is in both snapshots: they seem to be of different clusters"
        )
    yield from _not_compared(diff)
    yield from _of_groups(diff, "unexplained")
    yield from _of_groups(diff, "pending")
    for group in diff.groups:
        if group.strategy_assumed:
            text = f"{DEFAULT}, the client's default, is assumed of group {group.group}: no snapshot shows its strategy"
            yield Finding("assumed-strategy", text, group.group)
        if group.offsets_back and not swapped:
            text = f"the offsets of {counted(group.offsets_back, 'queue')} of group {group.group} went back"
            yield Finding("offset-rewound", f"{text}: messages from there on are redelivered", group.group)


def _not_compared(diff: SnapshotDiff) -> Iterator[Finding]:
    for kind in ("topic", "group"):
        those = [each for each in diff.not_compared if each.kind == kind]
        if those:
            more = f" and {len(those) - 1} more" if len(those) > 1 else ""
            yield Finding("not-compared", f"not compared: {kind} {those[0].name}{more}: {those[0].reason}")


def _of_groups(diff: SnapshotDiff, how: str) -> Iterator[Finding]:
    concerned = [group for group in diff.groups if any(queue.how == how for queue in group.queues)]
    for group in concerned[:_MOST_GROUPS]:
        number = sum(queue.how == how for queue in group.queues)
        yield _unexplained(group, number) if how == "unexplained" else _pending(group, number)


def _unexplained(group: GroupDiff, number: int) -> Finding:
    why = f": owners could not be predicted: {group.not_predicted}" if group.not_predicted else ""
    text = f"no change explains the owners of {counted(number, 'queue')} of group {group.group}{why}"
    return Finding("unexplained-owners", text, group.group)


def _pending(group: GroupDiff, number: int) -> Finding:
    are = "is" if number == 1 else "are"
    text = f"{counted(number, 'queue')} of group {group.group} {are} not yet with the predicted owners: not converged"
    return Finding("not-moved-yet", text, group.group)
