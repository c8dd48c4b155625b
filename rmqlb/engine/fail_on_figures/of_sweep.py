"""The figures of a sweep that `--fail-on` can ask about: the worst of all cases, of all groups or of the one named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rmqlb.engine.conditions import Condition, Figures
from rmqlb.errors import UsageError
from rmqlb.model.condition import TriedCondition
from rmqlb.model.snapshot import suggestion
from rmqlb.model.sweep_failures import FailureSweep, GroupWorst, Worst

_CASES: dict[str, Callable[[FailureSweep], float]] = {
    "counterexamples": lambda sweep: len(sweep.counterexamples),
    "broken-cases": lambda sweep: sweep.cases.broken,
    "broken-singles": lambda sweep: sweep.cases.broken_singles,
    "broken-already": lambda sweep: len(sweep.broken_already),
    "unwritable-topics": lambda sweep: sum(each.unwritable > 0 for each in sweep.topics),
}
_WHOLES: dict[str, Callable[[FailureSweep], float]] = {
    "broken-cases": lambda sweep: sweep.cases.all,
    "broken-singles": lambda sweep: sweep.cases.singles,
    "unwritable-topics": lambda sweep: len(sweep.topics),
}
_GROUPS: dict[str, Callable[[GroupWorst], Worst | None]] = {
    "unassigned": lambda group: group.unassigned,
    "imbalance": lambda group: group.imbalance,
    "idle": lambda group: group.idle,
    "moved": lambda group: group.moved,
    "lag-moved": lambda group: group.lag_moved,
    "without-lock": lambda group: group.without_lock,
}
_OF_ALL = ("unassigned", "moved")
"""Figures of groups of which a percentage is of the group's queues."""
SWEEP_FIGURES = Figures((*_CASES, *_GROUPS), of_subject=tuple(_GROUPS), shares=(*_WHOLES, *_OF_ALL))


def try_on_sweep(condition: Condition, sweep: FailureSweep) -> TriedCondition:
    """Whether the condition is there in the worst case."""
    if condition.name in _CASES:
        whole = _WHOLES[condition.name](sweep) if condition.percent else None
        return condition.try_on(_CASES[condition.name](sweep), whole)
    groups = [each for each in sweep.groups if condition.subject in (None, each.group)]
    if condition.subject is not None and not groups:
        raise UsageError(
            f"--fail-on {condition.text!r}: {condition.subject} is not among the groups looked at",
            hint=suggestion("groups", condition.subject, [each.group for each in sweep.groups]),
        )
    return _worst(condition, [(_GROUPS[condition.name](each), each.queues) for each in groups])


def _worst(condition: Condition, figures: Sequence[tuple[Worst | None, float]]) -> TriedCondition:
    tried = [condition.try_on(worst.value, whole) for worst, whole in figures if worst is not None]
    met = [each for each in tried if each.met]
    if met:
        return max(met, key=lambda each: each.value or 0)
    if len(tried) < len(figures):
        return condition.try_on(None)
    return max(tried, key=lambda each: each.value or 0, default=condition.try_on(0, 1))
