"""Judgements in words, the same in every format."""

from __future__ import annotations

from rmqlb.model.checking import INCOMPLETE, NOT_APPLICABLE, Judgement
from rmqlb.model.policy import Bound, Limit, Waiver

_MOST, _LEAST, _ONLY = "at most", "at least", "only"


def sentence(one: Judgement) -> str:
    """What a judgement says, in a line.

    Names stand in it as they are: whoever shows it makes them visible.
    """
    if one.limit is None:
        return f"rule {one.rule.name}: {one.why}"
    what = f"{one.rule.about} {one.subject}: {one.limit.name}"
    if one.verdict == INCOMPLETE:
        return f"{what} cannot be told: {one.why}"
    if one.verdict == NOT_APPLICABLE:
        return f"{what} does not apply: {one.why}"
    why = f" ({one.why})" if one.why else ""
    return f"{what} is {value_text(one.limit, one.value)}, allowed is {bound_text(one.limit)}{why}"


def value_text(limit: Limit, value: Bound | None) -> str:
    """What was measured, in the limit's unit."""
    if value is None:
        return "?"
    if isinstance(value, tuple):
        return ", ".join(value)
    if limit.kind.unit == "share":
        return f"{100 * value:.4g}%"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def bound_text(limit: Limit) -> str:
    """What the limit allows."""
    unit = limit.kind.unit
    return f"{_LEAST if unit == 'least' else _ONLY if unit == 'names' else _MOST} {value_text(limit, limit.bound)}"


def waiver_text(waiver: Waiver) -> str:
    """Until when a waiver counts, and why it is there."""
    return f"waived until {waiver.until}: {waiver.reason}"
