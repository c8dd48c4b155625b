"""The output of check: failed limits first, then waived and incomplete ones, then the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from rmqlb.model.check_result import (
    INCOMPLETE,
    NOT_APPLICABLE,
    CheckResult,
    JudgedLimit,
    RuleCounts,
    WaivedLimit,
    WaiverResult,
)
from rmqlb.model.policy import GROUP, TOPIC, Bound, Unit
from rmqlb.model.words import counted
from rmqlb.views.report import Audience, Column, Report, Section, attribute_of, numbers, rows_of

_WORDS: dict[Unit, tuple[str, str]] = {
    "least": ("at least", "min"),
    "names": ("only", "only"),
    "noneOf": ("none of", "none of"),
}
"""What a bound is called in a sentence and in a cell, where it is not the most."""


def sentence(one: JudgedLimit) -> str:
    """A limit in a line; names stand in it as they are, and its caller makes them visible."""
    if one.limit is None or one.unit is None or one.bound is None:
        return f"rule {one.rule}: {one.why}"
    what = f"{one.about} {one.name}: {one.limit}"
    if one.verdict == INCOMPLETE:
        return f"{what} could not be judged: {one.why}"
    if one.verdict == NOT_APPLICABLE:
        return f"{what} does not apply: {one.why}"
    why = f" ({one.why})" if one.why else ""
    return f"{what} is {amount_text(one.unit, one.value)}, allowed is {allowed_text(one.unit, one.bound)}{why}"


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


def waiver_text(waived: WaivedLimit) -> str:
    """Until when a waiver counts, and why it is there."""
    return f"waived until {waived.until}: {waived.reason}"


_WHERE = (
    Column("rule", "rule", fold=1),
    Column("about", "about", quiet=True),
    Column("name", "name"),
    Column("limit", "limit"),
)
_DIAGNOSED = (
    *("unassigned", "duplicateOwners", "duplicateClientIds", "lag"),
    *("mixedStrategies", "mixedSubscriptions", "splitViews"),
)
"""Limits of groups of which a diagnosis finds the cause."""
_SIGN = Column("", "severity", "sign")
_SEVERITY = Column("severity", "severity", quiet=True)
_WHY = Column("why", "why", "prose")
_VALUE = (
    Column("is", "valueText", of=lambda one: one.unit and amount_text(one.unit, one.value)),
    Column("allowed", "allowed", of=lambda one: one.unit and bound_text(one.unit, one.bound)),
    Column("value", "value", "number", shown=False),
    Column("bound", "bound", "number", shown=False),
)


def check_report(result: CheckResult) -> Report:
    """The check for people and machines."""
    sections = (
        _unless_empty(_judgements("failed", result.failed, _SIGN, *_VALUE), "scripts"),
        _unless_empty(_waived(result.waived)),
        _incomplete(result),
        replace(_judgements("not-applicable", result.not_applicable, _SEVERITY), named_only=True),
        replace(_rules(result.rules), audience="scripts"),
        replace(_unless_empty(_waivers(result.waivers)), audience="scripts"),
        replace(_summary(result), audience="scripts"),
    )
    closing = tuple(_why(result))
    return Report("rmqlb/check", result, tuple(_facts(result)), sections, grave=_grave(result), closing=closing)


def _why(result: CheckResult) -> Iterator[str]:
    """Which command says why the first group is as it is that failed a limit of which there is more to say."""
    for one in result.failed:
        if one.about == GROUP and one.name is not None and one.limit in _DIAGNOSED:
            yield f"rmqlb diagnose -g {one.name} says why"
            return


def _facts(result: CheckResult) -> Iterator[str]:
    s = result.summary
    yield _verdict(result)
    parts = (
        (s.passed, "passed"),
        (s.waived, "waived"),
        (s.incomplete if s.failed else 0, "could not be judged"),
        (s.not_applicable, "not applicable"),
    )
    counts = ", ".join(f"{number} {what}" for number, what in parts if number)
    yield f"  {counts}{'; ' if counts else ''}{counted(s.rules, 'rule')} of {result.policy} on {result.today}"


def _verdict(result: CheckResult) -> str:
    s = result.summary
    limits = counted(s.limits, "limit")
    if s.failed:
        decides = "" if result.outcome == "failed" else f", none of severity {result.fail_from}"
        return f"{s.failed} of {limits} failed{decides}: {_first(result.failed, _short)}"
    if result.outcome == "incomplete":
        return f"{counted(s.incomplete, 'limit')} could not be judged: {_first(result.incomplete, _unknown)}"
    if s.passed == s.limits:
        return f"all {limits} passed"
    unknown = f", {s.incomplete} could not be judged" if s.incomplete else ""
    return f"none of {limits} failed{unknown}"


def _first(judged: Sequence[JudgedLimit], said: Callable[[JudgedLimit], str]) -> str:
    more = f", and {len(judged) - 1} more" if len(judged) > 1 else ""
    return f"{said(judged[0])}{more}"


def _short(one: JudgedLimit) -> str:
    if one.unit is None or one.bound is None:
        return _unknown(one)
    amount, bound = amount_text(one.unit, one.value), bound_text(one.unit, one.bound)
    return f"{one.about} {one.name}: {one.limit} is {amount} ({bound})"


def _unknown(one: JudgedLimit) -> str:
    return f"rule {one.rule}: {one.why}" if one.name is None else f"{one.about} {one.name}: {one.limit}: {one.why}"


def _grave(result: CheckResult) -> str:
    """The severity of the worst that failed; what could not be judged, and decides, is a warning."""
    if result.failed:
        return result.failed[0].severity
    if result.incomplete:
        return "warning" if result.outcome == "incomplete" else ""
    return "inOrder"


def _unless_empty(section: Section, to: Audience | None = None) -> Section:
    """An empty table is there for those who ask for it, and shown to no others, or to `to` alone."""
    if section.rows:
        return section
    return replace(section, named_only=True) if to is None else replace(section, audience=to)


def _judgements(name: str, judged: Iterable[JudgedLimit], severity: Column, *more: Column) -> Section:
    columns = (severity, *_WHERE, *more, _WHY)
    return Section(name, name.replace("-", " "), columns, rows_of(columns, judged), heads=5)


def _incomplete(result: CheckResult) -> Section:
    section = _unless_empty(_judgements("incomplete", result.incomplete, _SEVERITY))
    return section if result.outcome == "incomplete" else replace(section, audience="scripts")


def _waived(waived: Iterable[WaivedLimit]) -> Section:
    value = (replace(column, fold=2) if column.key == "allowed" else column for column in _VALUE)
    until = Column("until", "until", of=lambda one: str(one.until))
    columns = (_SEVERITY, *_WHERE, *value, replace(_WHY, fold=3), until, Column("reason", "reason", "prose"))
    return Section("waived", "waived", columns, rows_of(columns, waived), heads=5)


def _rules(rules: Iterable[RuleCounts]) -> Section:
    columns = (
        Column("rule", "rule"),
        Column("severity", "severity"),
        Column("about", "about"),
        *numbers("names limits passed failed waived incomplete notApplicable"),
    )
    return Section("rules", "rules", columns, rows_of(columns, rules), heads=1)


def _waivers(uses: Sequence[WaiverResult]) -> Section:
    columns = (
        Column("rule", "rule"),
        Column("about", "about", of=lambda use: GROUP if use.group else TOPIC if use.topic else None),
        Column("name", "name", of=lambda use: use.group or use.topic),
        Column("limit", "limit"),
        Column("until", "until", of=lambda use: str(use.until)),
        Column("state", "state"),
        Column("waived", "waived", "number"),
        Column("reason", "reason"),
    )
    return Section("waivers", "waivers", columns, rows_of(columns, uses), heads=4)


def _summary(result: CheckResult) -> Section:
    counts = numbers("rules limits passed failed waived incomplete notApplicable")
    rows = tuple((column.title, getattr(result.summary, attribute_of(column.key))) for column in counts)
    columns = (Column("", "figure"), Column("value", "value", "number"))
    return Section("summary", "summary", columns, (("outcome", result.outcome), *rows))
