"""One group over several looks at its cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.check.group_facts import gaps
from rmqlb.engine.diagnose.evidence import GroupEvidence
from rmqlb.engine.diagnose.looks import earlier_look
from rmqlb.engine.overview.groups import facts_of
from rmqlb.model.diagnosis import Diagnosis
from rmqlb.model.process_queue import ConsumerEvidence
from rmqlb.model.snapshot import ClusterSnapshot

_OF_STACKS = ("blocked-consumer",)


def evidence_of(looks: Sequence[ClusterSnapshot], name: str, settings: Settings) -> GroupEvidence:
    """What the looks show of a group; the last one is diagnosed.

    Args:
        looks: the oldest first; those without the group say nothing of it.
        settings: what the consumers' strategy objects were constructed with.
    """
    now = looks[-1]
    earlier = tuple(earlier_look(look, name) for look in looks[:-1] if name in look.groups)
    return GroupEvidence(facts_of(now, gaps(now), name, settings), earlier)


def ask_for_stacks(diagnosis: Diagnosis) -> tuple[str, ...]:
    """The consumers whose stack traces would show what they wait for."""
    blocked = [each for each in diagnosis.findings if each.code in _OF_STACKS]
    return tuple(dict.fromkeys(client_id for each in blocked for client_id in each.consumers))


def with_stacks(look: ClusterSnapshot, name: str, stacks: Mapping[str, tuple[str, ...]]) -> ClusterSnapshot:
    """The look with stack traces in the reports of a group's consumers."""
    group = look.groups[name]
    reports = {
        client_id: replace(report, evidence=replace(report.evidence or ConsumerEvidence(), stacks=stacks[client_id]))
        if client_id in stacks
        else report
        for client_id, report in group.reports.items()
    }
    return replace(look, groups={**look.groups, name: replace(group, reports=reports)})
