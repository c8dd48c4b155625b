"""All groups in a line each, the worst first."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from rmqlb.model.groups import GroupLine, Overview, OverviewSummary
from rmqlb.model.words import counted
from rmqlb.views.overview.words import lag_text, strategies_text, worst_text
from rmqlb.views.report import Cell, Column, Report, Rows, Section, rows_of


def groups_report(overview: Overview) -> Report:
    """The report for people and machines."""
    lines = overview.groups
    sections = (_groups(lines), _findings(lines))
    rows = Rows(("group",), [({}, line) for line in lines], unwatched=("evidence",))
    facts = (_headline(overview),)
    grave = _worst(overview.summary)
    return Report("rmqlb/groups", overview, facts, sections, {}, rows, grave=grave, more=_more(lines))


def _headline(overview: Overview) -> str:
    s = overview.summary
    shown = len(overview.groups)
    left = f"; {shown} shown" if shown < s.groups else ""
    return f"{counted(s.groups, 'group')}: {', '.join(_counts(s)) or 'nothing to show'}{left}"


def _counts(s: OverviewSummary) -> Iterator[str]:
    if s.with_errors:
        yield f"{s.with_errors} with {'an error' if s.with_errors == 1 else 'errors'}"
    if s.with_warnings:
        yield f"{s.with_warnings} with {'a warning' if s.with_warnings == 1 else 'warnings'}"
    if s.unknown:
        yield f"{s.unknown} unknown"
    if s.offline:
        yield f"{s.offline} with no visible consumer"
    if s.in_order:
        yield f"{'all ' if s.in_order == s.groups > 1 else ''}{s.in_order} in order"


def _worst(s: OverviewSummary) -> str:
    if s.with_errors:
        return "error"
    if s.with_warnings:
        return "warning"
    return "inOrder" if s.in_order and s.in_order + s.offline == s.groups else ""


def _more(lines: tuple[GroupLine, ...]) -> str:
    if not lines:
        return ""
    if lines[0].status not in ("error", "warning"):
        return "rmqlb show-consumers -g GROUP shows a group's consumers"
    return f"rmqlb diagnose -g {lines[0].group} says why; rmqlb explain CODE says what a finding means"


def _figure(title: str, key: str, lines: tuple[GroupLine, ...], fold: int) -> Column:
    """A figure that people see where it is known and not 0."""
    column = Column(title, key, "number", fold=fold)
    return replace(column, shown=any(cell for (cell,) in rows_of((column,), lines)))


def _groups(lines: tuple[GroupLine, ...]) -> Section:
    differ = any(line.processes != line.consumers for line in lines)
    columns = (
        Column("", "status", "sign"),
        Column("group", "group"),
        Column("topics", "topicCount", "number", fold=9, of=_topics),
        Column("consumers", "consumers", "number"),
        Column("processes", "processes", "number", shown=differ, fold=2),
        Column("queues", "queues", "number"),
        Column("lag", "lagText", "number", of=lag_text),
        Column("lag", "lag", "number", shown=False),
        Column("at least", "lagAtLeast", "number", shown=False),
        _figure("unassigned", "unassigned", lines, 4),
        _figure("duplicate owners", "duplicateOwners", lines, 5),
        _figure("idle", "idle", lines, 8),
        _figure("duplicate IDs", "duplicateClientIds", lines, 6),
        _figure("mismatches", "mismatches", lines, 7),
        Column("strategy", "strategies", fold=1, of=strategies_text),
        Column("imbalance", "imbalance", "number", fold=3),
        Column("basis", "basis", shown=False),
        Column("worst finding", "worstFinding", "prose", shown=any(line.findings for line in lines), of=_worst_finding),
    )
    return Section("groups", "groups", columns, rows_of(columns, lines))


def _topics(line: GroupLine) -> Cell:
    return None if line.topics is None else len(line.topics)


def _worst_finding(line: GroupLine) -> Cell:
    return worst_text(line, line.findings)


def _findings(lines: tuple[GroupLine, ...]) -> Section:
    """All that was found, for those who ask for it."""
    columns = (
        Column("", "severity", "sign"),
        Column("group", "group"),
        Column("finding", "code"),
        Column("what", "message", "prose"),
    )
    rows = tuple((one.severity, line.group, one.code, one.message) for line in lines for one in line.findings)
    return Section("findings", "findings", columns, rows, named_only=True)
