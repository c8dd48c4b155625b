"""When one look at a group is too few, and whose stack traces are worth asking for."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.engine.diagnose.evidence import AnotherLookNeeded, GroupEvidence
from rmqlb.engine.diagnose.reports import BLOCKED_MS
from rmqlb.engine.diagnose.rule import Case
from rmqlb.engine.diagnose.rules import RULES
from rmqlb.model.group import ConsumerGroup, MemberReport
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.snapshot import ClusterSnapshot

MOST_LOOKS = 8
"""After so many looks, a minute and more at 10 s, what is still undecided stays so."""


def earlier_look(snapshot: ClusterSnapshot, name: str) -> ConsumerGroup:
    """The group as the snapshot has it, with when that was (raises DataError when the snapshot lacks it)."""
    group = snapshot.group(name)
    if group.seen.at is not None:
        return group
    return replace(group, seen=replace(group.seen, at=snapshot.taken_at))


def wants_another(evidence: GroupEvidence) -> bool:
    """A later look at the group would decide what is undecided yet."""
    if len(evidence.earlier) + 1 >= MOST_LOOKS:
        return False
    case = Case(evidence, RULES)
    return any(isinstance(case.answer(rule.code).why, AnotherLookNeeded) for rule in RULES)


def worth_stacks(evidence: GroupEvidence) -> tuple[str, ...]:
    """The consumers whose listeners seem to be blocked by this look, as clients sort them (raises DataError)."""
    group = evidence.group
    return tuple(sort_client_ids(i for i in evidence.processes if i in group.reports and _waits(group.reports[i])))


def _waits(report: MemberReport) -> bool:
    """It has messages of some queue, and has consumed none of that queue for a minute."""
    evidence = report.evidence
    if evidence is None or evidence.read_at is None:
        return False
    ages = (evidence.read_at - q.last_consume for q in evidence.queues or () if q.cached and q.last_consume is not None)
    return any(age > BLOCKED_MS for age in ages)
