"""The figures of two snapshots compared that `--fail-on` can ask about."""

from __future__ import annotations

from rmqlb.engine.fail_on_figures.conditions import Condition, Figures
from rmqlb.model.condition import TriedCondition
from rmqlb.model.diff import DiffSummary

_NAMES = (
    *("groups-changed", "groups-added", "groups-removed", "topics-changed"),
    *("consumers-joined", "consumers-left", "strategies-changed"),
    *("moved", "newly-assigned", "newly-unassigned", "newly-duplicate-owners", "queues-added", "queues-removed"),
    *("pending", "unexplained", "lag-growth", "offsets-back"),
)
"""Fields of `DiffSummary`."""
_WHOLES = {"groups-changed": "groups", "topics-changed": "topics"}
DIFF_FIGURES = Figures(_NAMES, shares=tuple(_WHOLES))


def try_on_diff(condition: Condition, summary: DiffSummary) -> TriedCondition:
    """Whether the condition is met."""
    whole = getattr(summary, _WHOLES[condition.name]) if condition.percent else None
    return condition.try_on(getattr(summary, condition.name.replace("-", "_")), whole)
