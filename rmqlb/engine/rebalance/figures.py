"""The figures of one simulation of a group, their spread over many trials, and the conditions of `--fail-on`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rmqlb.engine.conditions import Condition, Figures
from rmqlb.engine.rebalance.event_log import EventLog
from rmqlb.errors import UsageError
from rmqlb.model.condition import TriedCondition
from rmqlb.model.plan_rollout import Rollout
from rmqlb.model.simulate_rebalance import (
    BAD_STATES,
    FigureSpread,
    FigureSpreads,
    GroupFigures,
    GroupTrials,
    QueueTimeline,
)
from rmqlb.model.snapshot import suggestion
from rmqlb.model.times import milliseconds
from rmqlb.model.unknown import sum_if_known

_FIELDS = {name.replace("_", "-"): name for name in GroupFigures.__struct_fields__ if name != "rebalances"}
GROUP_FIGURES = Figures(names=tuple(_FIELDS), of_subject=tuple(_FIELDS))
ROLLOUT_FIGURES = Figures(names=(*_FIELDS, "takes-ms", "misassigned"), of_subject=tuple(_FIELDS))
_SPREADS = ("p95", "p50", "max")
_STILL_OPEN = {
    **{f"{which}_{kind}_ms": f"queues_with_{kind}_at_end" for kind in BAD_STATES for which in ("longest", "total")},
    "unread_ms": "queues_unread_at_end",
}
"""A length of time, and the count of queues whose length is not over at the end."""


def figures(
    queues: Sequence[QueueTimeline], log: EventLog, first_us: int, *, settled: bool, broadcasting: bool = False
) -> GroupFigures:
    at_end = Counter(line.intervals[-1].state for line in queues if line.intervals)
    kinds: dict[str, float] = {}
    for kind, state in BAD_STATES.items():
        totals = [getattr(line, f"total_{kind}_ms") for line in queues]
        kinds[f"longest_{kind}_ms"] = max((getattr(line, f"longest_{kind}_ms") for line in queues), default=0)
        kinds[f"total_{kind}_ms"] = milliseconds(sum(round(total * 1000) for total in totals))
        kinds[f"queues_with_{kind}"] = sum(total > 0 for total in totals)
        kinds[f"queues_with_{kind}_at_end"] = 0 if broadcasting and kind == "overlap" else at_end[state]
    return GroupFigures(
        convergence_ms=milliseconds(max(log.last_change_us - first_us, 0)) if settled else None,
        unread_ms=max((line.unread_ms for line in queues), default=0),
        redelivered=sum_if_known(line.redelivered for line in queues),
        queues_unread_at_end=sum(line.unread_at_end for line in queues),
        taken=sum(len(line.takeovers) for line in queues),
        rebalances=log.rebalances,
        **kinds,  # type: ignore[arg-type]
    )


def summarise(found: Sequence[GroupFigures]) -> GroupTrials:
    """The spread of each figure over trials; one unknown value makes a figure unknown, except convergence."""
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

    A convergence time is infinite if one trial does not converge, other times if they are not over at the end.
    """
    name, spread, error = _FIELDS[condition.name], condition.subject or "p95", f"--fail-on {condition.text!r}"
    figures: Any = found
    if isinstance(found, GroupTrials):
        if spread not in _SPREADS:
            raise UsageError(f"{error}: what is {spread}?", hint=suggestion("spreads", spread, _SPREADS))
        figures, endless = found.figures, found.converged < found.trials
    else:
        endless = found.convergence_ms is None
        if condition.subject is not None:
            raise UsageError(f"{error}: [{spread}] is of many trials", hint="give --trials N")
    if name != "convergence_ms":
        endless = name in _STILL_OPEN and bool(_number(getattr(figures, _STILL_OPEN[name]), "max"))
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
