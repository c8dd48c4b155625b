"""The figures of a group's simulation: their spread over many trials, and the conditions of `--fail-on`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rmqlb.engine.conditions import Condition, Figures
from rmqlb.errors import UsageError
from rmqlb.model.condition import TriedCondition
from rmqlb.model.plan_rollout import Rollout
from rmqlb.model.simulate_rebalance import FigureSpread, FigureSpreads, GroupFigures, GroupTrials
from rmqlb.model.snapshot import suggestion

_FIELDS = {name.replace("_", "-"): name for name in GroupFigures.__struct_fields__ if name != "rebalances"}
GROUP_FIGURES = Figures(names=tuple(_FIELDS), of_subject=tuple(_FIELDS))
ROLLOUT_FIGURES = Figures(names=(*_FIELDS, "takes-ms", "misassigned"), of_subject=tuple(_FIELDS))
"""The figures of the best choice."""
_SPREADS = ("p95", "p50", "max")


def summarise(found: Sequence[GroupFigures]) -> GroupTrials:
    """The spread of each figure over trials; except for convergence, one unknown value makes it unknown."""
    spreads: dict[str, Any] = {}
    for name in GroupFigures.__struct_fields__:
        values = [(getattr(each, name), trial) for trial, each in enumerate(found)]
        known = [(value, trial) for value, trial in values if value is not None]
        is_known = len(known) == len(values) or name == "convergence_ms"
        spreads[name] = _spread(known) if known and is_known else None
    converged = sum(1 for each in found if each.convergence_ms is not None)
    return GroupTrials(len(found), converged, FigureSpreads(**spreads))


def _spread(values: Sequence[tuple[float, int]]) -> FigureSpread:
    """Quantiles by nearest rank: the smallest value that so many of 100 do not exceed."""
    ordered = sorted(value for value, _ in values)
    p50, p95 = (ordered[-(-len(ordered) * percent // 100) - 1] for percent in (50, 95))
    return FigureSpread(p50, p95, ordered[-1], next(trial for value, trial in values if value == ordered[-1]))


def try_on_group(condition: Condition, found: GroupFigures | GroupTrials) -> TriedCondition:
    """Try a condition on one simulation, or on the p95 or the named spread of many trials (raises UsageError).

    A group that does not converge, in one trial of many, has an infinite convergence time. A length of time is infinite
    too while a queue's gap, overlap, outage or wait is not over at the end.
    """
    name, spread, error = _FIELDS[condition.name], condition.subject or "p95", f"--fail-on {condition.text!r}"
    figures: Any = found
    if isinstance(found, GroupTrials):
        if spread not in _SPREADS:
            raise UsageError(f"{error}: what is {spread}?", hint=suggestion("spreads", spread, _SPREADS))
        figures, has_converged = found.figures, found.converged == found.trials
    else:
        has_converged = found.convergence_ms is not None
        if condition.subject is not None:
            raise UsageError(f"{error}: [{spread}] is of many trials", hint="give --trials N")
    length, _, kind = name.removesuffix("_ms").partition("_")
    if name == "convergence_ms":
        endless = not has_converged
    elif name == "unread_ms":
        endless = bool(_number(figures.queues_unread_at_end, "max"))
    else:
        still_open = (
            _number(getattr(figures, f"queues_with_{kind}_at_end"), "max") if length in ("longest", "total") else 0
        )
        endless = bool(still_open)
    return _endless(condition) if endless else condition.try_on(_number(getattr(figures, name), spread))


def try_on_rollout(condition: Condition, rollout: Rollout) -> TriedCondition:
    if condition.name == "misassigned":
        return condition.try_on(rollout.misassigned)
    best = next(choice for choice in rollout.choices if choice.best)
    if condition.name == "takes-ms":
        return _endless(condition) if best.takes_ms is None else condition.try_on(best.takes_ms)
    return try_on_group(condition, best)


def _number(figure: FigureSpread | float | None, spread: str) -> float | None:
    return getattr(figure, spread) if isinstance(figure, FigureSpread) else figure


def _endless(condition: Condition) -> TriedCondition:
    """More than any number; JSON has no infinity, so the value is null."""
    return TriedCondition(condition.text, None, condition.compare(math.inf, condition.limit))
