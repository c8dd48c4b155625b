"""The figures of two snapshots compared that `--fail-on` can ask about."""

from __future__ import annotations

from collections.abc import Callable

from rmqlb.engine.fail_on_figures.conditions import Condition, Figures
from rmqlb.model.condition import TriedCondition
from rmqlb.model.diff import DiffSummary

_VALUES: dict[str, Callable[[DiffSummary], float | None]] = {
    "groups-changed": lambda s: s.groups_changed,
    "groups-added": lambda s: s.groups_added,
    "groups-removed": lambda s: s.groups_removed,
    "topics-changed": lambda s: s.topics_changed,
    "consumers-joined": lambda s: s.consumers_joined,
    "consumers-left": lambda s: s.consumers_left,
    "strategies-changed": lambda s: s.strategies_changed,
    "moved": lambda s: s.moved,
    "newly-assigned": lambda s: s.newly_assigned,
    "newly-unassigned": lambda s: s.newly_unassigned,
    "newly-duplicate-owners": lambda s: s.newly_duplicate_owners,
    "queues-added": lambda s: s.queues_added,
    "queues-removed": lambda s: s.queues_removed,
    "pending": lambda s: s.pending,
    "unexplained": lambda s: s.unexplained,
    "lag-growth": lambda s: s.lag_growth,
    "offsets-back": lambda s: s.offsets_back,
}
_WHOLES: dict[str, Callable[[DiffSummary], float | None]] = {
    "groups-changed": lambda s: s.groups,
    "topics-changed": lambda s: s.topics,
}
DIFF_FIGURES = Figures(tuple(_VALUES), shares=tuple(_WHOLES))


def try_on_diff(condition: Condition, summary: DiffSummary) -> TriedCondition:
    """Whether the condition is met."""
    whole = _WHOLES[condition.name](summary) if condition.percent else None
    return condition.try_on(_VALUES[condition.name](summary), whole)
