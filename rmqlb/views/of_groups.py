"""The results of several groups as one: on a screen a line each, worst first, and everything with `--all`.

Scripts read one group after the other: all tables of each group in plain, one table for all groups in CSV.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.model.diagnosis import DiagnosisSummary
from rmqlb.model.groups import OverviewSummary
from rmqlb.views.columns import Cell, Column
from rmqlb.views.report import Report, Rows, Section, first_places

_GROUP = Column("group", "group")
_GRAVE = ("error", "warning", "lagging", "unknown", "offline", "info", "", "inOrder")
_MOST_GROUPS = 20


def of_groups(
    parts: Sequence[tuple[str, Report]],
    facts: Sequence[str],
    data: Struct,
    groups: Section,
    *,
    order: Sequence[tuple[float, ...]] | None = None,
    beside: Sequence[Section] = (),
) -> Report:
    """The report of several groups.

    `groups` has a line each, in the order of `parts`; `order` sorts the worst group first, by default by the severity
    of its report; `beside` are tables below `groups`.
    """
    kinds = {section.name: section for _, report in reversed(parts) for section in _tables(report)}
    details = [line for _, report in parts for line in (*report.facts, *(f"  {line}" for line in report.closing))]
    graves = [report.grave for _, report in parts]
    first = parts[0][1]
    return Report(
        schema=f"{first.schema}-of-groups",
        data=data,
        facts=tuple(facts),
        details=tuple(details),
        sections=(_worst_first(groups, order or [(rank(grave),) for grave in graves]), *beside, *_each(parts)),
        rows=_rows(parts),
        tables=(*(_joined(parts, section) for section in kinds.values()), groups, *beside),
        grave=min(graves, key=rank),
        more="--all shows the tables of every group, -g GROUP those of one group",
    )


def statuses(summary: DiagnosisSummary | OverviewSummary, unknown: str = "unknown") -> Iterator[str]:
    """The number of groups of each status, worst first; `unknown` is the word for those without an answer."""
    if summary.with_errors:
        yield f"{summary.with_errors} broken"
    if number := summary.with_warnings:
        yield f"{number} with {'a warning' if number == 1 else 'warnings'}"
    if summary.lagging:
        yield f"{summary.lagging} lagging"
    if summary.unknown:
        yield f"{summary.unknown} {unknown}"
    if number := getattr(summary, "offline", 0):
        yield f"{number} with no visible consumer"
    if summary.in_order:
        yield f"{'all ' if summary.in_order == summary.groups > 1 else ''}{summary.in_order} in order"


def rank(grave: str) -> int:
    return _GRAVE.index(grave)


def _worst_first(groups: Section, order: Sequence[tuple[float, ...]]) -> Section:
    rows = tuple(groups.rows[at] for at in sorted(range(len(order)), key=order.__getitem__))
    return replace(groups, rows=rows, brief=first_places(len(rows), _MOST_GROUPS))


def _each(parts: Sequence[tuple[str, Report]]) -> Iterator[Section]:
    for name, report in parts:
        for section in report.sections:
            titled = replace(section, title=f"{name}: {section.title}" if section.title else "")
            on_screen = section.audience == "screen"
            yield replace(titled, named_only=True) if on_screen else replace(titled, audience="scripts")


def _tables(report: Report) -> tuple[Section, ...]:
    tables = report.sections if report.tables is None else report.tables
    names = {section.name for section in tables if section.audience != "screen"}
    return tuple(each for each in (*tables, *report.sections) if each.audience != "screen" or each.name not in names)


def _joined(parts: Sequence[tuple[str, Report]], kind: Section) -> Section:
    tables = [(name, {each.name: each for each in _tables(report)}.get(kind.name)) for name, report in parts]
    cells = [(name, _by_key(table)) for name, table in tables if table is not None]
    columns = tuple(column for column in kind.columns if all(column.key in own for _, own in cells))
    rows = ((name, *row) for name, own in cells for row in zip(*(own[column.key] for column in columns), strict=True))
    return replace(kind, columns=(_GROUP, *columns), rows=tuple(rows), heads=0, brief=None)


def _by_key(table: Section) -> dict[str, list[Cell]]:
    return {column.key: [row[at] for row in table.rows] for at, column in enumerate(table.columns)}


def _rows(parts: Sequence[tuple[str, Report]]) -> Rows | None:
    known = [(name, report.rows) for name, report in parts if report.rows is not None]
    items = [({"group": group, **names}, item) for group, rows in known for names, item in rows.items]
    return Rows(("group", *known[0][1].keys), items, known[0][1].unwatched) if known else None
