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
    LimitCounts,
    RuleCounts,
    WaivedLimit,
    WaiverResult,
    check_result,
)
from rmqlb.views.check.words import allowed_text, amount_text
from rmqlb.views.report import Cell, Column, Report, Section

_WHERE = (
    Column("severity", "severity", quiet=True),
    Column("rule", "rule"),
    Column("about", "about"),
    Column("name", "name"),
    Column("limit", "limit"),
)
_WHY = Column("why", "why")
_VALUE = (
    Column("is", "valueText"),
    Column("allowed", "allowed"),
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
    return Report("rmqlb/check", result, _facts(result), sections, {})


def _facts(result: CheckResult) -> tuple[str, ...]:
    s = result.summary
    return (
        f"policy {result.policy} on {result.today}: {result.outcome}",
        (
            f"{counted(s.rules, 'rule')}, {counted(s.limits, 'limit')} judged: {s.holds} hold, "
            f"{s.violated} violated, {s.waived} waived, {s.incomplete} incomplete, {s.not_applicable} not applicable"
        ),
    )


def _where(one: JudgedLimit) -> tuple[Cell, ...]:
    return (one.severity, one.rule, one.about, one.name, one.limit)


def _value(one: JudgedLimit) -> tuple[Cell, ...]:
    if one.unit is None or one.bound is None:
        return (None, None, None, None)
    return (amount_text(one.unit, one.value), allowed_text(one.unit, one.bound), one.value, one.bound)


def _unless_empty(section: Section) -> Section:
    """An empty table is there for those who name it, whatever the count, and shown to nobody else."""
    return replace(section, named_only=not section.rows)


def _judgements(name: str, judged: Iterable[JudgedLimit], more: tuple[Column, ...]) -> Section:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (*_where(one), *(_value(one) if more else ()), one.why) for one in judged
    )
    return Section(name, name.replace("-", " "), (*_WHERE, *more, _WHY), rows, heads=5)


def _waived(waived: Iterable[WaivedLimit]) -> Section:
    columns = (*_WHERE, *_VALUE, _WHY, Column("until", "until"), Column("reason", "reason"))
    rows = tuple((*_where(one), *_value(one), one.why, str(one.until), one.reason) for one in waived)
    return Section("waived", "waived", columns, rows, heads=5)


def _numbers(counts: LimitCounts) -> tuple[int, ...]:
    return (counts.limits, counts.holds, counts.violated, counts.waived, counts.incomplete, counts.not_applicable)


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
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (each.rule, each.severity, each.about, each.names, *_numbers(each)) for each in rules
    )
    return Section("rules", "rules", columns, rows, heads=1)


def _waivers(uses: Sequence[WaiverResult]) -> Section:
    columns = (
        Column("rule", "rule"),
        Column("about", "about"),
        Column("name", "name"),
        Column("limit", "limit"),
        Column("until", "until"),
        Column("state", "state"),
        Column("waived", "waived", "number"),
        Column("reason", "reason"),
    )
    rows = tuple(
        (
            use.rule,
            GROUP if use.group else TOPIC if use.topic else None,
            use.group or use.topic,
            use.limit,
            str(use.until),
            use.state,
            use.waived,
            use.reason,
        )
        for use in uses
    )
    return Section("waivers", "waivers", columns, rows, heads=4)


def _summary(result: CheckResult) -> Section:
    names = ("limits", "holds", "violated", "waived", "incomplete", "not applicable")
    rows: list[tuple[Cell, ...]] = [("outcome", result.outcome), ("rules", result.summary.rules)]
    rows += zip(names, _numbers(result.summary), strict=True)
    return Section("summary", "summary", (Column("", "figure"), Column("value", "value", "number")), tuple(rows))
