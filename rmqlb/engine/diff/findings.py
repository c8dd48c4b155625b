"""What is odd about two snapshots, or about what became of a group between them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from rmqlb.engine.assignment.detect import DEFAULT
from rmqlb.engine.diagnose.diagnose import earlier_look, findings_of
from rmqlb.engine.diagnose.evidence import GroupEvidence
from rmqlb.engine.group import Group
from rmqlb.model.diagnosis import Evidence, GroupFinding, group_finding
from rmqlb.model.diff import GroupDiff, How, SnapshotDiff
from rmqlb.model.finding import WARNING, Finding, Severity
from rmqlb.model.group import RETRY_PREFIX, ConsumerGroup, QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot
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
    found = [finding for group in diff.groups for finding in group.findings]
    for code in ("unexplained-owners", "not-moved-yet"):
        yield from [each.brief for each in found if each.code == code][:_MOST_GROUPS]
    for group in diff.groups:
        for each in group.findings:
            if each.code == "offset-rewound":
                yield _rewound(group, each.severity)
            elif each.code == "assumed-strategy":
                yield each.brief


def _not_compared(diff: SnapshotDiff) -> Iterator[Finding]:
    for kind in ("topic", "group"):
        those = [each for each in diff.not_compared if each.kind == kind]
        if those:
            more = f" and {len(those) - 1} more" if len(those) > 1 else ""
            yield Finding("not-compared", f"not compared: {kind} {those[0].name}{more}: {those[0].reason}")


def group_findings(group: GroupDiff, before: ClusterSnapshot, facts: Group) -> Iterator[GroupFinding]:
    """What is odd about what became of a group of both snapshots.

    Args:
        facts: of the second snapshot.
    """
    unexplained, pending = _queues(group, "unexplained"), _queues(group, "pending")
    then = GroupEvidence(facts)
    if unexplained:
        why = f": owners could not be predicted: {group.not_predicted}" if group.not_predicted else ""
        text = f"no change explains the owners of {counted(len(unexplained), 'queue')} of group {group.group}{why}"
        seen = then.seen("queues whose owners no change explains", len(unexplained), threshold=1)
        yield _of_queues(Finding("unexplained-owners", text, group.group), unexplained, seen)
    if pending:
        number, are = counted(len(pending), "queue"), "is" if len(pending) == 1 else "are"
        text = f"{number} of group {group.group} {are} not yet with the predicted owners: not converged"
        seen = then.seen("queues not yet with the predicted owners", len(pending), threshold=1)
        yield _of_queues(Finding("not-moved-yet", text, group.group), pending, seen)
    if group.strategy_assumed:
        text = f"{DEFAULT}, the client's default, is assumed of group {group.group}: no snapshot shows its strategy"
        yield group_finding(Finding("assumed-strategy", text, group.group), group.group)
    if group.offsets_back and not _is_swapped(before, facts.snapshot):
        look = earlier_look(before, group.group)
        found = findings_of("offset-rewound", GroupEvidence(facts, (_comparable(look, facts.group),)))
        # Where the rule says that it comes of something else, or cannot decide, it is the case all the same.
        yield from found or (group_finding(_rewound(group, WARNING), group.group),)


def _is_swapped(before: ClusterSnapshot, after: ClusterSnapshot) -> bool:
    return before.taken_at is not None and after.taken_at is not None and before.taken_at > after.taken_at


def _comparable(look: ConsumerGroup, then: ConsumerGroup) -> ConsumerGroup:
    """The look with the queues whose offsets are known in both snapshots, retry topics left out."""
    return replace(
        look,
        queues={
            queue: state
            for queue, state in look.queues.items()
            if not queue.topic.startswith(RETRY_PREFIX) and _is_stored(state) and _is_stored(then.queues.get(queue))
        },
    )


def _is_stored(state: QueueState | None) -> bool:
    return state is not None and state.consumer_offset is not None and state.consumer_offset >= 0


def _queues(group: GroupDiff, how: How) -> tuple[MessageQueue, ...]:
    return tuple(MessageQueue(q.topic, q.broker_name, q.queue_id) for q in group.queues if q.how == how)


def _of_queues(finding: Finding, queues: tuple[MessageQueue, ...], seen: Evidence) -> GroupFinding:
    return replace(
        group_finding(finding, finding.group or ""),
        queues=queues,
        evidence=(seen,),
        consequence=f"Owners of {counted(len(queues), 'queue')} are not as predicted.",
        remedy="Compare with another snapshot a minute later.",
    )


def _rewound(group: GroupDiff, severity: Severity) -> Finding:
    text = f"the offsets of {counted(group.offsets_back, 'queue')} of group {group.group} went back"
    return Finding("offset-rewound", f"{text}: messages from there on are redelivered", group.group, severity)
