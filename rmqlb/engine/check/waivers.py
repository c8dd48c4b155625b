"""Waivers: what is let pass today, and which of them let nothing pass any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date

from msgspec.structs import replace

from rmqlb.model.checking import INCOMPLETE, VIOLATED, Judgement, WaiverState, WaiverUse
from rmqlb.model.finding import Finding
from rmqlb.model.policy import Waiver


def waive(
    judgements: Sequence[Judgement], waivers: Sequence[Waiver], today: date
) -> tuple[tuple[Judgement, ...], tuple[WaiverUse, ...]]:
    """The judgements with the first waiver in force that lets each pass, and what became of every waiver.

    What cannot be told is waived like a violation: both are known and accepted until the waiver's last day.
    """
    waived = tuple(replace(one, waiver=_first(one, waivers, today)) for one in judgements)
    uses = Counter(waivers.index(one.waiver) for one in waived if one.waiver is not None)
    return waived, tuple(
        WaiverUse(waiver, _state(waiver, uses[index], today), uses[index]) for index, waiver in enumerate(waivers)
    )


def waiver_findings(uses: Sequence[WaiverUse]) -> Iterator[Finding]:
    """A finding for each waiver that has expired or lets nothing pass."""
    for use in uses:
        waiver = use.waiver
        if use.state == "expired":
            yield Finding("expired-waiver", f"the waiver for {target(waiver)} expired after {waiver.until}")
        elif use.state == "unused":
            yield Finding("unused-waiver", f"the waiver for {target(waiver)} lets nothing pass: it can go")


def target(waiver: Waiver) -> str:
    """What a waiver is about, in words."""
    parts = (("rule", waiver.rule), ("limit", waiver.limit), ("group", waiver.group), ("topic", waiver.topic))
    return ", ".join(f"{what} {name}" for what, name in parts if name is not None)


def _first(one: Judgement, waivers: Sequence[Waiver], today: date) -> Waiver | None:
    if one.verdict not in (VIOLATED, INCOMPLETE):
        return None
    limit = None if one.limit is None else one.limit.name
    for waiver in waivers:
        if waiver.until >= today and waiver.fits(one.rule.name, one.rule.about, one.subject, limit):
            return waiver
    return None


def _state(waiver: Waiver, uses: int, today: date) -> WaiverState:
    if waiver.until < today:
        return "expired"
    return "used" if uses else "unused"
