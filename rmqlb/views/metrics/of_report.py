"""The metrics of a result: its own, when its cluster was looked at, and how many findings of each code there are.

A command whose result is to have metrics has a line in `_OF`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rmqlb.model.diagnosis import Diagnosis, DiagnosisOfGroups
from rmqlb.model.finding import Finding
from rmqlb.model.groups import GroupLine, Overview
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.metrics.catalogue import FINDINGS, SNAPSHOT_TIME, Sample
from rmqlb.views.metrics.check import of_check
from rmqlb.views.metrics.clusters import cluster_of_group
from rmqlb.views.metrics.diagnosis import of_diagnoses, of_diagnosis
from rmqlb.views.metrics.groups import of_groups
from rmqlb.views.metrics.owners import of_owners, of_owners_of_groups
from rmqlb.views.pipeline_view import of_pipeline
from rmqlb.views.report import Report

_OF: Mapping[str, Callable[[Any, ClusterSnapshot], Iterator[Sample]]] = {
    "rmqlb/groups": of_groups,
    "rmqlb/owners": of_owners,
    "rmqlb/owners-of-groups": of_owners_of_groups,
    "rmqlb/check": of_check,
    "rmqlb/diagnosis": of_diagnosis,
    "rmqlb/diagnosis-of-groups": of_diagnoses,
    "rmqlb/pipeline": of_pipeline,
}
"""Schema → the metrics of the result's Struct."""


def metrics_of(
    report: Report, command: str, snapshot: ClusterSnapshot, findings: Iterable[Finding]
) -> Iterator[Sample]:
    """The samples of a result.

    Args:
        command: stands in what several commands write, so that a folder may hold a file of each.
        findings: those that stand beside the result's data.
    """
    if snapshot.taken_at is not None:
        yield Sample(SNAPSHOT_TIME, snapshot.taken_at.timestamp(), {"command": command})
    yield from _OF[report.schema](report.data, snapshot)
    told = [(finding.group, finding) for finding in findings]
    data = report.data
    lists = data.groups if isinstance(data, (Overview, DiagnosisOfGroups)) else [data]
    told += [(own.group, one.brief) for own in lists if isinstance(own, (GroupLine, Diagnosis)) for one in own.findings]
    yield from _findings(told, command, snapshot)


def _findings(told: Iterable[tuple[str | None, Finding]], command: str, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    numbers = Counter((group, finding.code, finding.severity) for group, finding in told)
    for (group, code, severity), number in numbers.items():
        cluster = cluster_of_group(snapshot, group)
        labels = {"cluster": cluster, "group": group, "code": code, "severity": severity, "command": command}
        yield Sample(FINDINGS, number, labels)
