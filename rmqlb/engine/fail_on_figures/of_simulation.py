"""The figures of a group's simulation, and of a planned rollout, that `--fail-on` can ask about.

A group that did not converge has no convergence time: the figure counts as without end, so that `convergence-ms>2000`
is met. So does a length of time that is not over when the simulation ends: of queues without owner, with several, in an
outage or unread then.

Of many trials a figure is what 95 of 100 do not exceed; `[p50]` and `[max]` after its name ask for those. A group that
did not converge in each of them counts as not converged, and one trial with such a queue is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rmqlb.engine.fail_on_figures.conditions import Condition, Figures
from rmqlb.errors import UsageError
from rmqlb.model.condition import TriedCondition
from rmqlb.model.group_report import FigureSpread, GroupFigures, GroupReport, GroupTrials
from rmqlb.model.rollout import Rollout
from rmqlb.model.snapshot import suggestion

_FIELDS = {name.replace("_", "-"): name for name in GroupFigures.__struct_fields__ if name != "rebalances"}
_OPEN = {
    "longest-gap-ms": "queues_with_gap_at_end",
    "total-gap-ms": "queues_with_gap_at_end",
    "longest-overlap-ms": "queues_with_overlap_at_end",
    "total-overlap-ms": "queues_with_overlap_at_end",
    "longest-outage-ms": "queues_with_outage_at_end",
    "total-outage-ms": "queues_with_outage_at_end",
    "unread-ms": "queues_unread_at_end",
}
"""A length of time → the queues of which it is not over at the end."""
_OF_SPREAD: dict[str, Callable[[FigureSpread], float]] = {
    "p95": lambda spread: spread.p95,
    "p50": lambda spread: spread.p50,
    "max": lambda spread: spread.max,
}
_OF_ROLLOUT = ("takes-ms", "misassigned")
GROUP_FIGURES = Figures(names=tuple(_FIELDS), of_subject=tuple(_FIELDS))
"""In brackets stands p95, p50 or max, of many trials."""
ROLLOUT_FIGURES = Figures(names=(*_FIELDS, *_OF_ROLLOUT), of_subject=tuple(_FIELDS))
"""Those of the best choice."""


def try_on_group(condition: Condition, report: GroupReport) -> TriedCondition:
    """Whether the condition is there in one simulation; UsageError when it asks about what only many trials have."""
    if condition.subject is not None:
        raise UsageError(
            f"--fail-on {condition.text!r}: [{condition.subject}] is of many trials", hint="give --trials N"
        )
    found = report.figures
    if _is_open(condition, found.convergence_ms is not None, getattr(found, _OPEN.get(condition.name, ""), 0)):
        return _without_end(condition)
    return condition.try_on(getattr(found, _FIELDS[condition.name]))


def try_on_group_trials(condition: Condition, trials: GroupTrials) -> TriedCondition:
    """Whether it is there in what 95 of 100 trials do not exceed, or in what it names instead (raises UsageError)."""
    of = condition.subject or "p95"
    if of not in _OF_SPREAD:
        raise UsageError(f"--fail-on {condition.text!r}: what is {of}?", hint=suggestion("spreads", of, _OF_SPREAD))
    left = getattr(trials.figures, _OPEN.get(condition.name, ""), None)
    if _is_open(condition, trials.converged == trials.trials, 0 if left is None else left.max):
        return _without_end(condition)
    spread = getattr(trials.figures, _FIELDS[condition.name])
    return condition.try_on(None if spread is None else _OF_SPREAD[of](spread))


def try_on_rollout(condition: Condition, rollout: Rollout) -> TriedCondition:
    """Whether the condition is there in the best choice of a rollout (raises UsageError)."""
    if condition.name == "misassigned":
        return condition.try_on(rollout.misassigned)
    best = next(choice for choice in rollout.choices if choice.best)
    if condition.name == "takes-ms":
        return _without_end(condition) if best.takes_ms is None else condition.try_on(best.takes_ms)
    return try_on_group_trials(condition, best)


def _is_open(condition: Condition, converged: bool, left: float) -> bool:
    return not converged if condition.name == "convergence-ms" else bool(left)


def _without_end(condition: Condition) -> TriedCondition:
    """More than any number; no document can hold it, so that it stands there as unknown."""
    return TriedCondition(condition.text, None, condition.compare(math.inf, condition.limit))
