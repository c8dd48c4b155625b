"""A `CheckReport` as a report: what is violated first, then what is waived or cannot be told, then rule by rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rmqlb.model.checking import INCOMPLETE, NOT_APPLICABLE, VIOLATED, CheckReport, Judgement, WaiverUse
from rmqlb.model.policy import GROUP, Bound, Rule, Waiver
from rmqlb.model.words import counted
from rmqlb.views.check.words import bound_text, value_text
from rmqlb.views.report import Cell, Column, Report, Section

if TYPE_CHECKING:
    from rmqlb.views.shapes.check import CheckData, JudgementData, RuleData, WaivedData, WaiverData

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
_RULE_COUNTS = ("limits", "holds", "violated", "waived", "incomplete", "notApplicable")


def check_report(report: CheckReport) -> Report:
    """The check for people and machines."""
    sections = (
        _judgements("violations", report.of(VIOLATED), _VALUE),
        _unless_empty(_waived(report)),
        _unless_empty(_judgements("incomplete", report.of(INCOMPLETE), ())),
        replace(_judgements("not-applicable", report.of(NOT_APPLICABLE), ()), named_only=True),
        _rules(report),
        _unless_empty(_waivers(report.waivers)),
        _summary(report),
    )
    return Report("rmqlb/check", _data(report), _facts(report), sections, {})


def _facts(report: CheckReport) -> tuple[str, ...]:
    counts = _counts(report.judgements)
    number = len(report.policy.rules)
    return (
        f"policy {report.policy.where} on {report.today}: {report.outcome}",
        (
            f"{counted(number, 'rule')}, {counted(counts['limits'], 'limit')} judged: {counts['holds']} hold, "
            f"{counts['violated']} violated, {counts['waived']} waived, {counts['incomplete']} incomplete, "
            f"{counts['notApplicable']} not applicable"
        ),
    )


def _where(one: Judgement) -> tuple[Cell, ...]:
    return (one.rule.severity, one.rule.name, one.rule.about, one.subject, one.limit.name if one.limit else None)


def _value(one: Judgement) -> tuple[Cell, ...]:
    if one.limit is None:
        return (None, None, None, None)
    return (value_text(one.limit, one.value), bound_text(one.limit), one.value, one.limit.bound)


def _unless_empty(section: Section) -> Section:
    """An empty table is there for those who name it, whatever the count, and shown to nobody else."""
    return replace(section, named_only=not section.rows)


def _judgements(name: str, judgements: Iterable[Judgement], more: tuple[Column, ...]) -> Section:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (*_where(one), *(_value(one) if more else ()), one.why or None) for one in judgements
    )
    return Section(name, name.replace("-", " "), (*_WHERE, *more, _WHY), rows, heads=5)


def _waived(report: CheckReport) -> Section:
    columns = (*_WHERE, *_VALUE, _WHY, Column("until", "until"), Column("reason", "reason"))
    rows = tuple(
        (*_where(one), *_value(one), one.why or None, str(one.waiver.until), one.waiver.reason)
        for one in report.waived
        if one.waiver is not None
    )
    return Section("waived", "waived", columns, rows, heads=5)


def _counts(judgements: Iterable[Judgement]) -> Counter[str]:
    """How many limits came to what; a rule that found nothing to check counts as incomplete, not as a limit."""
    counts: Counter[str] = Counter()
    for one in judgements:
        counts["limits"] += one.limit is not None
        counts["waived" if one.waiver is not None else one.verdict] += 1
    return counts


def _rule_counts(report: CheckReport) -> list[tuple[Rule, Counter[str], int]]:
    return [
        (rule, _counts(own), len({one.subject for one in own if one.subject is not None}))
        for rule, own in report.by_rule
    ]


def _rules(report: CheckReport) -> Section:
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
        (rule.name, rule.severity, rule.about, names, *(counts[key] for key in _RULE_COUNTS))
        for rule, counts, names in _rule_counts(report)
    )
    return Section("rules", "rules", columns, rows, heads=1)


def _waivers(uses: Iterable[WaiverUse]) -> Section:
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
            use.waiver.rule,
            GROUP if use.waiver.group else "topic" if use.waiver.topic else None,
            use.waiver.group or use.waiver.topic,
            use.waiver.limit,
            str(use.waiver.until),
            use.state,
            use.waived,
            use.waiver.reason,
        )
        for use in uses
    )
    return Section("waivers", "waivers", columns, rows, heads=4)


def _summary(report: CheckReport) -> Section:
    counts = _counts(report.judgements)
    rows: list[tuple[Cell, ...]] = [("outcome", report.outcome), ("rules", len(report.policy.rules))]
    rows += [(key if key != "notApplicable" else "not applicable", counts[key]) for key in _RULE_COUNTS]
    return Section("summary", "summary", (Column("", "figure"), Column("value", "value", "number")), tuple(rows))


def _judgement_data(one: Judgement) -> JudgementData:
    return {
        "rule": one.rule.name,
        "severity": one.rule.severity,
        "about": one.rule.about,
        "name": one.subject,
        "limit": one.limit.name if one.limit else None,
        "verdict": one.verdict,
        "value": _plain(one.value),
        "bound": _plain(one.limit.bound) if one.limit else None,
        "unit": one.limit.kind.unit if one.limit else None,
        "basis": one.basis,
        "why": one.why or None,
    }


def _waived_data(one: Judgement, waiver: Waiver) -> WaivedData:
    return {**_judgement_data(one), "until": str(waiver.until), "reason": waiver.reason}


def _plain(value: Bound | None) -> float | list[str] | None:
    return list(value) if isinstance(value, tuple) else value


def _rule_data(rule: Rule, own: Counter[str], names: int) -> RuleData:
    return {
        "rule": rule.name,
        "severity": rule.severity,
        "about": rule.about,
        "names": names,
        "limits": own["limits"],
        "holds": own["holds"],
        "violated": own["violated"],
        "waived": own["waived"],
        "incomplete": own["incomplete"],
        "notApplicable": own["notApplicable"],
    }


def _waiver_data(use: WaiverUse) -> WaiverData:
    return {
        "rule": use.waiver.rule,
        "group": use.waiver.group,
        "topic": use.waiver.topic,
        "limit": use.waiver.limit,
        "until": str(use.waiver.until),
        "reason": use.waiver.reason,
        "state": use.state,
        "waived": use.waived,
    }


def _data(report: CheckReport) -> CheckData:
    counts = _counts(report.judgements)
    return {
        "policy": report.policy.where,
        "today": str(report.today),
        "failFrom": report.fail_from,
        "outcome": report.outcome,
        "violations": [_judgement_data(one) for one in report.of(VIOLATED)],
        "waived": [_waived_data(one, one.waiver) for one in report.waived if one.waiver is not None],
        "incomplete": [_judgement_data(one) for one in report.of(INCOMPLETE)],
        "notApplicable": [_judgement_data(one) for one in report.of(NOT_APPLICABLE)],
        "rules": [_rule_data(rule, own, names) for rule, own, names in _rule_counts(report)],
        "waivers": [_waiver_data(use) for use in report.waivers],
        "summary": {
            "rules": len(report.policy.rules),
            "limits": counts["limits"],
            "holds": counts["holds"],
            "violated": counts["violated"],
            "waived": counts["waived"],
            "incomplete": counts["incomplete"],
            "notApplicable": counts["notApplicable"],
        },
    }
