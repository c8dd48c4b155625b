"""What a command sees at one moment."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from rmqlb.model.finding import Finding
from rmqlb.model.plan import TriedCondition
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.report import Report


class SnapshotView(Struct, frozen=True):
    """What a command sees at one moment.

    Attributes:
        report: what there is to show; it has rows.
    """

    report: Report
    snapshot: ClusterSnapshot
    findings: tuple[Finding, ...]
    tried: tuple[TriedCondition, ...] = ()


def met(tried: Iterable[TriedCondition]) -> bool:
    """One of the conditions is met."""
    return any(condition.met for condition in tried)
