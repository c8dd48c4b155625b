"""The figures of a group's simulation, and of a planned rollout, that `--fail-on` can ask about.

A group that did not settle has no settling time: the figure counts as without end, so that `settled-ms>2000` is met. So
does a length of time that is not over when the simulation ends: of queues without owner, with several, in an outage or
unread then.

Of many trials a figure is what 95 of 100 do not exceed; `[median]` and `[worst]` after its name ask for those. A group
that did not settle in each of them counts as not settled, and one trial with such a queue is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rmqlb.engine.fail_on_figures.conditions import Condition, Figures
from rmqlb.errors import UsageError
from rmqlb.model.group_report import FigureSpread, GroupReport, GroupTrials
from rmqlb.model.plan import TriedCondition
from rmqlb.model.rollout import Rollout
from rmqlb.model.snapshot import suggestion

_FIELDS = {
    "settled-ms": "settled_us",
    "longest-none-ms": "longest_none_us",
    "none-ms": "none_us",
    "longest-several-ms": "longest_several_us",
    "several-ms": "several_us",
    "longest-outage-ms": "longest_outage_us",
    "total-outage-ms": "total_outage_us",
    "unread-ms": "unread_us",
    "again": "again",
    "queues-none": "queues_none",
    "queues-several": "queues_several",
    "queues-outage": "queues_outage",
    "queues-none-at-end": "queues_none_at_end",
    "queues-several-at-end": "queues_several_at_end",
    "queues-outage-at-end": "queues_outage_at_end",
    "queues-unread-at-end": "queues_unread_at_end",
    "taken": "taken",
}
_OPEN = {
    "longest-none-ms": "queues_none_at_end",
    "none-ms": "queues_none_at_end",
    "longest-several-ms": "queues_several_at_end",
    "several-ms": "queues_several_at_end",
    "longest-outage-ms": "queues_outage_at_end",
    "total-outage-ms": "queues_outage_at_end",
    "unread-ms": "queues_unread_at_end",
}
"""A length of time → the queues of which it is not over at the end."""
_OF_SPREAD: dict[str, Callable[[FigureSpread], float]] = {
    "p95": lambda spread: spread.p95,
    "median": lambda spread: spread.median,
    "worst": lambda spread: spread.worst,
}
_OF_ROLLOUT = ("takes-ms", "overlap")
GROUP_FIGURES = Figures(names=tuple(_FIELDS), of_subject=tuple(_FIELDS))
"""In brackets stands p95, median or worst, of many trials."""
ROLLOUT_FIGURES = Figures(names=(*_FIELDS, *_OF_ROLLOUT), of_subject=tuple(_FIELDS))
"""Those of the best choice."""


def try_on_group(condition: Condition, report: GroupReport) -> TriedCondition:
    """Whether the condition is there in one simulation.

    Raises:
        UsageError: it asks about what only many trials have.
    """
    if condition.subject is not None:
        raise UsageError(
            f"--fail-on {condition.text!r}: [{condition.subject}] is of many trials", hint="give --trials N"
        )
    found = report.figures
    value = getattr(found, _FIELDS[condition.name])
    if condition.name in _OPEN and getattr(found, _OPEN[condition.name]):
        return _without_end(condition)
    return _tried(condition, value, settled=found.settled_us is not None)


def try_on_group_trials(condition: Condition, trials: GroupTrials) -> TriedCondition:
    """Whether the condition is there in what 95 of 100 trials do not exceed, or in what it names instead.

    Raises:
        UsageError: it names something else.
    """
    of = condition.subject or "p95"
    if of not in _OF_SPREAD:
        raise UsageError(f"--fail-on {condition.text!r}: what is {of}?", hint=suggestion("spreads", of, _OF_SPREAD))
    if condition.name in _OPEN:
        left = trials.spreads.get(_OPEN[condition.name])
        if left is not None and left.worst:
            return _without_end(condition)
    spread = trials.spreads.get(_FIELDS[condition.name])
    value = None if spread is None else _OF_SPREAD[of](spread)
    return _tried(condition, value, settled=trials.settled == trials.trials)


def try_on_rollout(condition: Condition, rollout: Rollout) -> TriedCondition:
    """Whether the condition is there in the best choice of a rollout.

    Raises:
        UsageError: it names something that trials do not have.
    """
    if condition.name == "overlap":
        return condition.try_on(rollout.overlap)
    best = next(choice for choice in rollout.choices if choice.best)
    if condition.name == "takes-ms":
        return _without_end(condition) if best.takes_us is None else condition.try_on(best.takes_us / 1000)
    return try_on_group_trials(condition, best.trials)


def _tried(condition: Condition, value: float | None, *, settled: bool) -> TriedCondition:
    if condition.name == "settled-ms" and not settled:
        return _without_end(condition)
    if value is not None and condition.name.endswith("-ms"):
        value /= 1000
    return condition.try_on(value)


def _without_end(condition: Condition) -> TriedCondition:
    """More than any number; no document can hold it, so that it stands there as unknown."""
    return TriedCondition(condition.text, None, condition.compare(math.inf, condition.limit))
