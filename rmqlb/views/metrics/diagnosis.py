"""The metrics of diagnose: what each diagnosis comes to; its findings are counted as those of all commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from rmqlb.model.diagnosis import Diagnosis, DiagnosisOfGroups, Outcome
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.metrics import catalogue as of
from rmqlb.views.metrics.catalogue import Sample, one_of
from rmqlb.views.metrics.clusters import cluster_of_group


def of_diagnosis(found: Diagnosis, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    """Of one group."""
    labels = {"cluster": cluster_of_group(snapshot, found.group), "group": found.group}
    yield from one_of(of.DIAGNOSIS_OUTCOME, get_args(Outcome), found.outcome, **labels)
    yield Sample(of.UNDECIDED_RULES, len(found.unknown), labels)


def of_diagnoses(whole: DiagnosisOfGroups, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    """Of several groups."""
    return (sample for found in whole.groups for sample in of_diagnosis(found, snapshot))
