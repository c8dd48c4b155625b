"""What a diagnosis says of the group besides its findings: when it was read, its numbers, and stack traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from rmqlb.engine.diagnose.evidence import GroupEvidence
from rmqlb.errors import RmqlbError
from rmqlb.model.diagnosis import ConsumerStacks, GroupCounts, Look
from rmqlb.model.group import RETRY_PREFIX, ConsumerGroup
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.times import utc_text

Known = TypeVar("Known")


def looks_of(evidence: GroupEvidence) -> tuple[Look, ...]:
    """When the group was read, the oldest look first."""
    groups = [*evidence.earlier, *filter(None, [_known(lambda: evidence.group)])]
    return tuple(_look(group, evidence.facts.snapshot) for group in groups)


def counts_of(evidence: GroupEvidence) -> GroupCounts:
    """The group in numbers."""
    group = _known(lambda: evidence.group)
    if group is None:
        return GroupCounts()
    listed = evidence.facts.listed
    queues = _known(lambda: evidence.queues)
    faults = _known(lambda: evidence.facts.faults) if evidence.facts.shares and evidence.observed else None
    unknown = None if queues is None else sum(queue not in evidence.observed for queue in queues)
    states = group.without_foreign_offsets.queues
    lags = {q: state.lag for q, state in states.items() if not q.topic.startswith(RETRY_PREFIX)}
    known = [lag for lag in lags.values() if lag is not None]
    all_known = queues is not None and all(lags.get(queue) is not None for queue in queues)
    return GroupCounts(
        consumers=None if listed is None else len(set(listed)),
        processes=None if listed is None else len(listed),
        queues=None if queues is None else len(queues),
        unassigned=None if faults is None else _certain(faults.unassigned, unknown),
        duplicate_owners=None if faults is None else _certain(faults.duplicate_owners, unknown),
        owners_unknown=None if faults is None else unknown,
        lag=sum(known) if all_known else None,
        lag_at_least=sum(known) if known else None,
    )


def _certain(queues: Sequence[MessageQueue], unknown: int | None) -> int | None:
    """How many queues are certain; None where there is none, and more may be among the unknown ones."""
    return len(queues) or (0 if unknown == 0 else None)


def stacks_of(evidence: GroupEvidence) -> tuple[ConsumerStacks, ...] | None:
    """The stack traces that consumers gave; None when none was asked for them."""
    group = _known(lambda: evidence.group)
    told = {
        client_id: report.evidence.stacks
        for client_id, report in (group.reports if group is not None else {}).items()
        if report.evidence is not None and report.evidence.stacks is not None
    }
    return tuple(ConsumerStacks(client_id, told[client_id] or ()) for client_id in sort_client_ids(told)) or None


def _look(group: ConsumerGroup, snapshot: ClusterSnapshot) -> Look:
    at = group.seen.at or snapshot.taken_at
    return Look(group.seen.where, None if at is None else utc_text(at))


def _known(ask: Callable[[], Known]) -> Known | None:
    try:
        return ask()
    except RmqlbError:
        return None
