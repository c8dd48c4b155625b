"""The figures of a group's size that `--fail-on` can ask about."""

from __future__ import annotations

from rmqlb.engine.conditions import Condition, Figures
from rmqlb.model.condition import TriedCondition
from rmqlb.model.size_group import GroupSize

_UNSATISFIED = "unsatisfied"
SIZE_FIGURES = Figures((_UNSATISFIED, "consumers", "queues-per-broker", "imbalance", "idle"), flags=(_UNSATISFIED,))
"""Of the answer; `imbalance` and `idle` of what comes nearest where there is none."""


def try_on_size(condition: Condition, size: GroupSize) -> TriedCondition:
    """Whether the condition is there; unknown what there is only in an answer."""
    if condition.name == _UNSATISFIED:
        return condition.try_on(int(size.consumers is None))
    if condition.name == "consumers":
        return condition.try_on(size.consumers)
    if condition.name == "queues-per-broker":
        return condition.try_on(None if size.consumers is None else size.queues_per_broker)
    return condition.try_on(size.best.idle if condition.name == "idle" else size.best.imbalance)
