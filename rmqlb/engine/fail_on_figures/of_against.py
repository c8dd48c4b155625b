"""The figure of `--against`: how much has changed since an earlier result."""

from __future__ import annotations

from rmqlb.engine.fail_on_figures.conditions import Condition
from rmqlb.errors import UsageError
from rmqlb.model.condition import TriedCondition
from rmqlb.model.made_from import Against

CHANGED_SINCE = "changed-since"


def try_on_against(condition: Condition, against: Against | None) -> TriedCondition | None:
    """Whether the condition is there; None when it asks about another figure (raises UsageError)."""
    if condition.name != CHANGED_SINCE:
        return None
    if against is None:
        raise UsageError(f"--fail-on {condition.text!r}: since which result?", hint="name it with --against FILE")
    return condition.try_on(against.changes)
