"""The diagnoses of several groups as one report: a line each, the worst first, and the findings of the worst."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from rmqlb.model.diagnosis import Diagnosis, DiagnosisOfGroups, DiagnosisSummary
from rmqlb.model.words import counted
from rmqlb.views.diagnosis.verdict import sentence, status
from rmqlb.views.diagnosis.view import diagnosis_report, findings_section, lag_text
from rmqlb.views.of_groups import of_groups
from rmqlb.views.report import Cell, Column, Report, Section, first_places, rows_of

_MOST_FINDINGS = 6


def diagnoses_report(whole: DiagnosisOfGroups) -> Report:
    """The report for people and machines."""
    parts = [(each.group, diagnosis_report(each, with_name=True)) for each in whole.groups]
    report = of_groups(
        parts,
        (_headline(whole.summary),),
        whole,
        _groups(whole.groups),
        order=[(at,) for at in range(len(parts))],
        beside=[_findings(whole.groups)],
    )
    worst = whole.groups[0].group
    return replace(
        report, grave=_worst(whole.summary), more=f"-g {worst} shows all of a group; --all shows all of each"
    )


def _headline(s: DiagnosisSummary) -> str:
    return f"{counted(s.groups, 'group')}: {', '.join(_counts(s))}"


def _counts(s: DiagnosisSummary) -> Iterator[str]:
    if s.with_errors:
        yield f"{s.with_errors} with {'an error' if s.with_errors == 1 else 'errors'}"
    if s.with_warnings:
        yield f"{s.with_warnings} with {'a warning' if s.with_warnings == 1 else 'warnings'}"
    if s.unknown:
        yield f"{s.unknown} unknown"
    if s.in_order or not s.groups:
        yield f"{'all ' if s.in_order == s.groups > 1 else ''}{s.in_order} in order"


def _worst(s: DiagnosisSummary) -> str:
    if s.with_errors or s.with_warnings:
        return "error" if s.with_errors else "warning"
    return "" if s.unknown else "inOrder"


def _groups(groups: Sequence[Diagnosis]) -> Section:
    columns = (
        Column("", "status", "sign", of=status),
        Column("group", "group"),
        Column("outcome", "outcome", shown=False),
        Column("consumers", "consumers", "number", fold=4, of=lambda each: each.counts.consumers),
        Column("queues", "queues", "number", fold=3, of=lambda each: each.counts.queues),
        Column("unassigned", "unassigned", "number", fold=1, of=lambda each: each.counts.unassigned),
        Column("duplicate owners", "duplicateOwners", "number", fold=2, of=lambda each: each.counts.duplicate_owners),
        Column("lag", "lagText", "number", fold=5, of=_lag),
        Column("lag", "lag", "number", shown=False, of=lambda each: each.counts.lag),
        Column("at least", "lagAtLeast", "number", shown=False, of=lambda each: each.counts.lag_at_least),
        Column("findings", "findings", of=_codes, shown=False),
        Column("unknown", "unknown", "number", of=lambda each: len(each.unknown), shown=False),
        Column("diagnosis", "diagnosis", "prose", of=_in_brief),
    )
    rows = rows_of(columns, groups)
    figures = ("unassigned", "duplicateOwners")
    shown = (
        replace(column, shown=column.shown and (column.key not in figures or any(cells)))
        for column, cells in zip(columns, zip(*rows, strict=True), strict=True)
    )
    return Section("groups", "groups", tuple(shown) if rows else columns, rows)


def _in_brief(each: Diagnosis) -> Cell:
    return sentence(each, brief=True)


def _lag(each: Diagnosis) -> Cell:
    return lag_text(each.counts)


def _codes(each: Diagnosis) -> Cell:
    return " ".join(dict.fromkeys(finding.code for finding in each.findings))


def _findings(groups: Sequence[Diagnosis]) -> Section:
    """All groups' findings, the worst groups' first."""
    sections = [findings_section(each, with_name=True) for each in groups]
    rows = tuple(row for section in sections for row in section.rows)
    blocks = tuple(block for section in sections for block in section.blocks or ())
    first = sections[0]
    return replace(first, rows=rows, blocks=blocks, brief=first_places(len(rows), _MOST_FINDINGS), audience="screen")
