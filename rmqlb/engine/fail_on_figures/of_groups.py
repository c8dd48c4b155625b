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


def try_on_groups(condition: Condition, lines: Sequence[GroupLine]) -> TriedCondition:
    """Whether the condition is there in the groups; what is certain decides, and only then what is not known."""
    if condition.subject is not None:
        return condition.try_on(_figure(_OF_ONE[condition.name], _one(condition, lines)))
    if condition.name in _GROUPS:
        number = sum(line.status == _GROUPS[condition.name] for line in lines)
        return condition.try_on(number, len(lines))
    figures = [_figure(_TOTALS[condition.name], line) for line in lines if _applies(condition.name, line)]
    known = [figure for figure in figures if figure is not None]
    certain = condition.try_on(max(known, default=None) if condition.name == "imbalance" else sum(known))
    if len(known) == len(figures) or _is_certain(condition, certain):
        return certain
    return condition.try_on(None)


def _figure(figure: _Figure, line: GroupLine) -> float | None:
    """A group without a visible consumer, of which nothing is known of owners, adds nothing to their figures."""
    value = figure(line)
    return 0 if value is None and line.consumers == 0 and figure in _OF_OWNERS else value


def _is_certain(condition: Condition, least: TriedCondition) -> bool:
    """What is not known can only add to the figure, and changes nothing."""
    return condition.compare not in (operator.eq, operator.ne) and least.met == condition.compare(
        math.inf, condition.limit
    )


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
