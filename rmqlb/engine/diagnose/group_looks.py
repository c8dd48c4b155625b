"""One group over several looks at its cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.diagnose.evidence import GroupEvidence
from rmqlb.engine.diagnose.looks import earlier_look
from rmqlb.engine.group import Group, assumption, gaps
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Diagnosis, DiagnosisOfGroups, DiagnosisSummary
from rmqlb.model.finding import ERROR, INFO, WARNING
from rmqlb.model.process_queue import ConsumerEvidence
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.times import utc_text

_GROUPS_HINT = "name a snapshot that has the group"
_STATUSES = (ERROR, WARNING, "unknown", "inOrder")


def evidence_of(looks: Sequence[ClusterSnapshot], name: str, settings: Settings) -> GroupEvidence:
    """What the looks show of a group; the last one is diagnosed.

    Args:
        looks: the oldest first; those without the group say nothing of it.
        settings: what the consumers' strategy objects were constructed with.
    """
    now = looks[-1]
    earlier = tuple(earlier_look(look, name) for look in looks[:-1] if name in look.groups)
    return GroupEvidence(Group(now, name, settings, assumption(now, name), gaps(now)), earlier)


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


def must_be_earlier(
    earlier: Sequence[tuple[str, ClusterSnapshot]], now: ClusterSnapshot, names: Collection[str]
) -> tuple[ClusterSnapshot, ...]:
    """The earlier looks in the order of their times.

    Args:
        earlier: each with how it is named where it is said what is wrong with it.
        names: the groups that are diagnosed.

    Raises:
        DataError: one is of another cluster, has none of the groups, or was not taken before.
    """
    times: list[tuple[datetime, ClusterSnapshot]] = []
    at = _taken_at(now, names)
    for which, look in earlier:
        others = _brokers(look)
        if others and _brokers(now) and not others & _brokers(now):
            raise DataError(
                f"{which} is of another cluster: it has broker {min(others)}, {now.endpoint} has {min(_brokers(now))}",
                code="not-earlier",
            )
        if not any(name in look.groups for name in names):
            raise DataError(
                f"{which} does not have group {next(iter(names))}", hint=_GROUPS_HINT, code="group-not-found"
            )
        then = _taken_at(look, names)
        if then is None or at is None:
            where = which if then is None else now.endpoint
            raise DataError(
                f"{where} does not say when it was taken, so which look is earlier is unknown", code="not-earlier"
            )
        if then >= at:
            raise DataError(
                f"{which} is not earlier: it was taken at {utc_text(then)}, {now.endpoint} at {utc_text(at)}",
                hint="-s names the last snapshot, --earlier those before it",
                code="not-earlier",
            )
        times.append((then, look))
    return tuple(look for _, look in sorted(times, key=lambda each: each[0]))


def _brokers(look: ClusterSnapshot) -> set[str]:
    return {broker.broker_name for sighting in look.routes.values() for broker in sighting.route.broker_datas}


def _taken_at(look: ClusterSnapshot, names: Iterable[str]) -> datetime | None:
    """When it was taken; its first group says it where the whole does not."""
    seen = [look.groups[name].seen.at for name in names if name in look.groups]
    return look.taken_at or next((at for at in seen if at is not None), None)


def of_several(diagnoses: Iterable[Diagnosis]) -> DiagnosisOfGroups:
    """The diagnoses of several groups, the worst first, and what they come to."""
    groups = tuple(sorted(diagnoses, key=_badness))
    of = Counter(_STATUSES[_status(each)] for each in groups)
    return DiagnosisOfGroups(
        groups,
        DiagnosisSummary(len(groups), *(of[status] for status in _STATUSES)),
    )


def _status(found: Diagnosis) -> int:
    return _STATUSES.index(found.severity or INFO if found.outcome == "found" else found.outcome)


def _badness(found: Diagnosis) -> tuple[int, int, int, str]:
    """The gravest first; of equals that with the most queues without exactly one owner, then with the most lag."""
    bad = (found.counts.unassigned or 0) + (found.counts.duplicate_owners or 0)
    return _status(found), -bad, -(found.counts.lag_at_least or 0), found.group
