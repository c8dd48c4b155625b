"""What a diagnosis says of the group besides its findings: when it was read, its numbers, and stack traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rmqlb.engine.diagnose.evidence import GroupEvidence
from rmqlb.errors import RmqlbError
from rmqlb.model.diagnosis import ConsumerStacks, GroupCounts, Look
from rmqlb.model.group import BROADCASTING, RETRY_PREFIX, ConsumerGroup
from rmqlb.model.message_queue import sort_client_ids
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
    owned = None
    if evidence.facts.apart is None and group.message_model != BROADCASTING and queues:
        owned = [evidence.observed[queue] for queue in queues if queue in evidence.observed] or None
    states = group.without_foreign_offsets.queues
    lags = {q: state.lag for q, state in states.items() if not q.topic.startswith(RETRY_PREFIX)}
    known = [lag for lag in lags.values() if lag is not None]
    all_known = queues is not None and all(lags.get(queue) is not None for queue in queues)
    return GroupCounts(
        consumers=None if listed is None else len(set(listed)),
        processes=None if listed is None else len(listed),
        queues=None if queues is None else len(queues),
        unassigned=None if owned is None else sum(not its for its in owned),
        duplicate_owners=None if owned is None else sum(len(its) > 1 for its in owned),
        lag=sum(known) if all_known else None,
        lag_at_least=sum(known) if known else None,
    )


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
