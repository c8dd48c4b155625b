"""The figures of an overview that `--fail-on` can ask about: of all groups looked at, or of the one in brackets."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

from rmqlb.engine.fail_on_figures.conditions import Condition, Figures
from rmqlb.errors import UsageError
from rmqlb.model.condition import TriedCondition
from rmqlb.model.group import BROADCASTING
from rmqlb.model.groups import GroupLine, Status
from rmqlb.model.snapshot import suggestion

_Figure = Callable[[GroupLine], float | None]
_GROUPS: dict[str, Status] = {
    "groups-with-errors": "error",
    "groups-with-warnings": "warning",
    "groups-unknown": "unknown",
    "groups-offline": "offline",
}
_TOTALS: dict[str, _Figure] = {
    "unassigned": lambda line: 0 if line.status == "offline" else line.unassigned,
    "duplicate-owners": lambda line: line.duplicate_owners,
    "idle": lambda line: line.idle,
    "mismatches": lambda line: line.mismatches,
    "duplicate-client-ids": lambda line: line.duplicate_client_ids,
    "lag": lambda line: line.lag,
    "imbalance": lambda line: 0 if line.basis and line.imbalance is None else line.imbalance,
}
_OF_OWNERS = tuple(_TOTALS[name] for name in ("unassigned", "duplicate-owners", "idle", "mismatches", "imbalance"))
_OF_ONE: dict[str, _Figure] = {
    **_TOTALS,
    "consumers": lambda line: line.consumers,
    "processes": lambda line: line.processes,
    "queues": lambda line: line.queues,
}
GROUPS_FIGURES = Figures((*_GROUPS, *_TOTALS), of_subject=tuple(_OF_ONE), shares=tuple(_GROUPS))
"""Percentages are of groups; `imbalance` is the largest, the others are sums."""


_COUNTED = ("unassigned", "duplicate-owners")
"""Counts of queues that are lower bounds where some owners are unknown."""


def try_on_groups(condition: Condition, lines: Sequence[GroupLine]) -> TriedCondition:
    """Whether the condition is met in the groups; what is certain decides, and only then what is unknown."""
    if condition.name in _GROUPS and condition.subject is None:
        number = sum(line.status == _GROUPS[condition.name] for line in lines)
        return condition.try_on(number, len(lines))
    its = [_one(condition, lines)] if condition.subject is not None else lines
    bounds = [_bounds(condition.name, line) for line in its if condition.subject or _applies(condition.name, line)]
    lows, highs = [low for low, _ in bounds], [high for _, high in bounds]
    total = (lambda each: max(each, default=None)) if condition.name == "imbalance" else sum
    least, most = condition.try_on(total(lows)), condition.try_on(total(highs))
    if least.value == most.value:
        return least
    is_exact = condition.compare in (operator.eq, operator.ne)
    return condition.try_on(None) if is_exact or least.met != most.met else least


def _bounds(name: str, line: GroupLine) -> tuple[float, float]:
    """The least and the most that the figure of a group can be."""
    figure = _OF_ONE[name]
    value = figure(line)
    if value is None and line.consumers == 0 and figure in _OF_OWNERS:
        return 0, 0  # of a group without a visible consumer nothing is known of owners, and nothing is added
    if name in _COUNTED and line.owners_unknown and line.status != "offline":
        return value or 0, (value or 0) + line.owners_unknown
    return (0, math.inf) if value is None else (value, value)


def _one(condition: Condition, lines: Sequence[GroupLine]) -> GroupLine:
    for line in lines:
        if line.group == condition.subject:
            return line
    raise UsageError(
        f"--fail-on {condition.text!r}: group {condition.subject} is not looked at",
        hint=suggestion("groups", condition.subject or "", [line.group for line in lines]),
    )


def _applies(name: str, line: GroupLine) -> bool:
    if name == "duplicate-client-ids":
        return True
    if line.message_model == BROADCASTING:
        return name == "idle"
    return name == "lag" or line.shares_queues is not False  # queues that nobody owns add nothing
