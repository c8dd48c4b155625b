"""The results of several groups as one: on a screen a line each, the worst first; all of each for those who ask.

What a script reads has a group after the other: all tables of each in plain, those of a kind as one in CSV.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.views.report import Cell, Column, Report, Rows, Section, first_places, labels

_GROUP = Column("group", "group")
_GRAVE = ("error", "warning", "", "inOrder")
_MOST_GROUPS = 20


def of_groups(parts: Sequence[tuple[str, Report]], headline: str, data: Struct, groups: Section) -> Report:
    """The report of several groups.

    Args:
        headline: what becomes of all of them.
        groups: a line each, in the order of `parts`.
    """
    shown = labels(dict.fromkeys(client_id for _, report in parts for client_id in report.labels))
    kinds = {section.name: section for _, report in reversed(parts) for section in _tables(report)}
    details = [line for _, report in parts for line in (*report.facts, *(f"  {line}" for line in report.closing))]
    grave = min((report.grave for _, report in parts), key=_GRAVE.index)
    first = parts[0][1]
    return Report(
        schema=f"{first.schema}-of-groups",
        data=data,
        facts=(headline,),
        details=tuple(details),
        sections=(_worst_first(groups, [report.grave for _, report in parts]), *_each(parts, shown)),
        labels=shown,
        rows=_rows(parts),
        tables=(*(_joined(parts, section) for section in kinds.values()), groups),
        grave=grave,
        more="--all shows every group's tables, -g GROUP those of one",
    )


def _worst_first(groups: Section, graves: Sequence[str]) -> Section:
    ordered = sorted(range(len(graves)), key=lambda at: _GRAVE.index(graves[at]))
    rows = tuple(groups.rows[at] for at in ordered)
    return replace(groups, rows=rows, brief=first_places(len(rows), _MOST_GROUPS))


def _each(parts: Sequence[tuple[str, Report]], shown: Mapping[str, str]) -> Iterator[Section]:
    """The groups' own tables, none of which a screen shows by itself."""
    for name, report in parts:
        for section in report.sections:
            titled = _titled(name, section, shown)
            yield (
                replace(titled, named_only=True)
                if section.audience == "screen"
                else replace(titled, audience="scripts")
            )


def _tables(report: Report) -> tuple[Section, ...]:
    """A table of each name, that for scripts where there are two."""
    tables = report.sections if report.tables is None else report.tables
    names = {section.name for section in tables if section.audience != "screen"}
    return tuple(each for each in (*tables, *report.sections) if each.audience != "screen" or each.name not in names)


def _titled(group: str, section: Section, shown: Mapping[str, str]) -> Section:
    titled = replace(section, title=f"{group}: {section.title}")
    kinds = {column.kind: place for place, column in enumerate(section.columns)}
    ids = [place for place, column in enumerate(section.columns) if column.key == "clientId"]
    if "label" not in kinds or not ids:
        return titled
    at, client = kinds["label"], ids[0]

    def relabelled(row: tuple[Cell, ...]) -> tuple[Cell, ...]:
        return (*row[:at], int(shown[str(row[client])].removeprefix("#")), *row[at + 1 :])

    return replace(titled, rows=tuple(relabelled(row) for row in section.rows))


def _joined(parts: Sequence[tuple[str, Report]], kind: Section) -> Section:
    """The sections of one name, a group after the other; columns that only some have are left out."""
    found = [
        (name, section)
        for name, report in parts
        for section in {each.name: each for each in _tables(report)}.values()
        if section.name == kind.name
    ]
    keys = [column.key for column in kind.columns if all(column.key in _keys(section) for _, section in found)]
    columns = tuple(column for column in kind.columns if column.key in keys)
    rows: list[tuple[Cell, ...]] = []
    for name, section in found:
        places = [_keys(section).index(key) for key in keys]
        rows += [(name, *(row[place] for place in places)) for row in section.rows]
    return replace(kind, columns=(_GROUP, *columns), rows=tuple(rows), heads=0, brief=None)


def _keys(section: Section) -> list[str]:
    return [column.key for column in section.columns]


def _rows(parts: Sequence[tuple[str, Report]]) -> Rows | None:
    rows = [(name, report.rows) for name, report in parts if report.rows is not None]
    if not rows:
        return None
    items = [({"group": group, **names}, item) for group, its in rows for names, item in its.items]
    return Rows(("group", *rows[0][1].keys), items)
