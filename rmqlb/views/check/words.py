"""A judgement of `check` in words, the same in every format."""

from __future__ import annotations

from rmqlb.model.checking import INCOMPLETE, NOT_APPLICABLE, Judgement
from rmqlb.model.policy import Bound, Unit, Waiver

_WORDS: dict[Unit, tuple[str, str]] = {
    "least": ("at least", "min"),
    "names": ("only", "only"),
    "noneOf": ("none of", "none of"),
}
"""What a bound is called in a sentence and in a cell, where it is not the most."""


def sentence(one: Judgement) -> str:
    """What a judgement says, in a line; names stand in it as they are: whoever shows it makes them visible."""
    if one.limit is None:
        return f"rule {one.rule.name}: {one.why}"
    what = f"{one.rule.about} {one.subject}: {one.limit.name}"
    if one.verdict == INCOMPLETE:
        return f"{what} could not be judged: {one.why}"
    if one.verdict == NOT_APPLICABLE:
        return f"{what} does not apply: {one.why}"
    why = f" ({one.why})" if one.why else ""
    unit = one.limit.kind.unit
    return f"{what} is {amount_text(unit, one.value)}, allowed is {allowed_text(unit, one.limit.bound)}{why}"


def amount_text(unit: Unit, value: Bound | None) -> str:
    """What was measured, in its unit."""
    if value is None:
        return "?"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    if unit == "share":
        return f"{100 * value:.4g}%"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def allowed_text(unit: Unit, bound: Bound) -> str:
    """What a limit allows, in a sentence."""
    return f"{_WORDS.get(unit, ('at most', 'max'))[0]} {amount_text(unit, bound)}"


def bound_text(unit: Unit, bound: Bound) -> str:
    """The same in a cell."""
    return f"{_WORDS.get(unit, ('at most', 'max'))[1]} {amount_text(unit, bound)}"


def waiver_text(waiver: Waiver) -> str:
    """Until when a waiver counts, and why it is there."""
    return f"waived until {waiver.until}: {waiver.reason}"
