"""The results of several groups as one: what was made of each, one after the other for people, in one table for CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.views.report import Cell, Column, Report, Rows, Section, labels

_GROUP = Column("group", "group")


def of_groups(parts: Sequence[tuple[str, Report]], headline: str, data: Struct) -> Report:
    """The report of several groups."""
    shown = labels(dict.fromkeys(client_id for _, report in parts for client_id in report.labels))
    kinds = {section.name: section for _, report in reversed(parts) for section in report.sections}
    facts = [fact if at == 0 else f"  {fact}" for _, report in parts for at, fact in enumerate(report.facts)]
    first = parts[0][1]
    return Report(
        schema=f"{first.schema}-of-groups",
        data=data,
        facts=(headline, *facts),
        sections=tuple(_titled(name, section, shown) for name, report in parts for section in report.sections),
        labels=shown,
        rows=_rows(parts),
        tables=tuple(_joined(parts, section) for section in kinds.values()),
        closing=tuple(f"{name}: {line}" for name, report in parts for line in report.closing),
    )


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
    found = [(name, section) for name, report in parts for section in report.sections if section.name == kind.name]
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
