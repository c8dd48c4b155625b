"""The conditions of a plan."""

from __future__ import annotations

from collections.abc import Iterable

from rmqlb.engine.fail_on_figures.conditions import Condition, declared
from rmqlb.model.condition import TriedCondition
from rmqlb.model.plan import Summary

PLAN_FIGURES = declared(Summary)


def try_on_plan(condition: Condition, summary: Summary, orders: Iterable[Summary] = ()) -> TriedCondition:
    """Whether the condition is met in a plan, or in any order of the client IDs that are not known yet.

    The answer has the largest figure among those that meet the condition, otherwise an unknown one, otherwise the
    largest.
    """
    tried = [condition.judge(each) for each in (summary, *orders)]
    met = [each for each in tried if each.met]
    unknown = [each for each in tried if each.met is None]
    return max(met or unknown or tried, key=lambda each: each.value or 0)
