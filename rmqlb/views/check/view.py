"""A `CheckReport` as a report: what is violated first, then what is waived or cannot be told, then rule by rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from rmqlb.model.checking import CheckReport
from rmqlb.model.policy import GROUP, TOPIC
from rmqlb.model.words import counted
from rmqlb.views.check.result import (
    CheckResult,
    JudgedLimit,
    RuleCounts,
    WaivedLimit,
    WaiverResult,
    allowed_text,
    amount_text,
    check_result,
)
from rmqlb.views.report import Cell, Column, Report, Section, rows_of

_WHERE = (
    Column("severity", "severity", quiet=True),
    Column("rule", "rule"),
    Column("about", "about"),
    Column("name", "name"),
    Column("limit", "limit"),
)
_WHY = Column("why", "why")
_VALUE = (
    Column("is", "valueText", of=lambda one: one.unit and amount_text(one.unit, one.value)),
    Column("allowed", "allowed", of=lambda one: one.unit and allowed_text(one.unit, one.bound)),
    Column("value", "value", "number", shown=False),
    Column("bound", "bound", "number", shown=False),
)


def check_report(report: CheckReport) -> Report:
    """The check for people and machines."""
    result = check_result(report)
    sections = (
        _judgements("violations", result.violations, _VALUE),
        _unless_empty(_waived(result.waived)),
        _unless_empty(_judgements("incomplete", result.incomplete, ())),
        replace(_judgements("not-applicable", result.not_applicable, ()), named_only=True),
        _rules(result.rules),
        _unless_empty(_waivers(result.waivers)),
        _summary(result),
    )
    return Report("rmqlb/check", result, _facts(result), sections)


def _facts(result: CheckResult) -> tuple[str, ...]:
    s = result.summary
    return (
        f"policy {result.policy} on {result.today}: {result.outcome}",
        (
            f"{counted(s.rules, 'rule')}, {counted(s.limits, 'limit')} judged: {s.holds} hold, "
            f"{s.violated} violated, {s.waived} waived, {s.incomplete} incomplete, {s.not_applicable} not applicable"
        ),
    )


def _unless_empty(section: Section) -> Section:
    """An empty table is there for those who name it, whatever the count, and shown to nobody else."""
    return replace(section, named_only=not section.rows)


def _judgements(name: str, judged: Iterable[JudgedLimit], more: tuple[Column, ...]) -> Section:
    columns = (*_WHERE, *more, _WHY)
    return Section(name, name.replace("-", " "), columns, rows_of(columns, judged), heads=5)


def _waived(waived: Iterable[WaivedLimit]) -> Section:
    until = Column("until", "until", of=lambda one: str(one.until))
    columns = (*_WHERE, *_VALUE, _WHY, until, Column("reason", "reason"))
    return Section("waived", "waived", columns, rows_of(columns, waived), heads=5)


def _rules(rules: Iterable[RuleCounts]) -> Section:
    columns = (
        Column("rule", "rule"),
        Column("severity", "severity"),
        Column("about", "about"),
        Column("names", "names", "number"),
        Column("limits", "limits", "number"),
        Column("hold", "holds", "number"),
        Column("violated", "violated", "number"),
        Column("waived", "waived", "number"),
        Column("incomplete", "incomplete", "number"),
        Column("n/a", "notApplicable", "number"),
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
    s = result.summary
    rows: tuple[tuple[Cell, ...], ...] = (
        ("outcome", result.outcome),
        ("rules", s.rules),
        ("limits", s.limits),
        ("holds", s.holds),
        ("violated", s.violated),
        ("waived", s.waived),
        ("incomplete", s.incomplete),
        ("not applicable", s.not_applicable),
    )
    return Section("summary", "summary", (Column("", "figure"), Column("value", "value", "number")), rows)
