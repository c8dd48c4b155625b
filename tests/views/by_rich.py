"""Sections drawn by rich's own `Table`, `Text` and `Padding`: what `rmqlb/views/formats/framed.py` must look like."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rich import box
from rich.bar import Bar
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rmqlb.views.formats.people import cell_text, for_people
from rmqlb.views.formats.signs import STYLES as SEVERITY_STYLES
from rmqlb.views.formats.text import clip, visible
from rmqlb.views.report import RIGHT, Cell, Column, Section

STYLES = {"moved": "yellow", "assigned": "green", "unassigned": "bold red", "added": "green", "removed": "dim"}


def table(section: Section, labels: Mapping[str, str], *, narrow: bool, tight: bool) -> Table:
    """All of a section in one table."""
    drawn = Table(
        title=Text(visible(section.title), style="bold"), title_justify="left", box=box.SIMPLE_HEAD,
        header_style="bold", show_edge=False, pad_edge=False, collapse_padding=tight,
    )  # fmt: skip
    for column in section.columns:
        title = visible(column.title)
        drawn.add_column(
            Text(title.replace("_", "_\n") if narrow else title),
            justify="right" if column.kind in RIGHT else "left",
            overflow="fold",
        )
    for at, row in enumerate(section.rows):
        ends = section.columns[0].quiet and at + 1 < len(section.rows) and section.rows[at + 1][0] != row[0]
        cells = (cell(*each, labels, at >= section.scales) for each in zip(section.columns, row, strict=True))
        drawn.add_row(*cells, end_section=ends)
    return drawn


def cell(column: Column, value: Cell, labels: Mapping[str, str], styled: bool) -> RenderableType:
    """A cell of a table, its characters with the column's styles."""
    if column.kind == "bar" and isinstance(value, int | float):
        return Bar(1.0, 0.0, float(value), width=20)
    text = Text(clip(cell_text(column, value, labels), 200), style=style(column, value))
    for sign, how in column.styles.items() if styled else ():
        text.highlight_regex(f"{re.escape(sign)}+", how)
    return text


def style(column: Column, value: Cell) -> str:
    """What shows a change, how grave something is, or that a queue has not one owner."""
    if column.kind == "owners" and isinstance(value, tuple):
        return "" if len(value) == 1 else SEVERITY_STYLES["error"]
    return {"change": STYLES, "sign": SEVERITY_STYLES}.get(column.kind, {}).get(str(value), "")


def blocks(section: Section, labels: Mapping[str, str]) -> RenderableType:
    """Each row as a line that names it and, indented, its other cells."""
    parts: list[RenderableType] = [Text(visible(section.title), style="bold italic")]
    for row in section.rows:
        cells = [
            (column, clip(cell_text(column, value, labels), 200), style(column, value))
            for column, value in zip(section.columns, row, strict=True)
        ]
        parts.append(Text("  ".join(shown for _, shown, _ in cells[: section.heads]), style="bold"))
        rest = [
            Text.assemble(f"{visible(column.title)} " if column.kind not in ("change", "strip") else "", (shown, how))
            for column, shown, how in cells[section.heads :]
            if shown
        ]
        parts.append(Padding(Text(", ").join(rest), (0, 0, 0, 4)))
    return Group(*parts)


def width(drawn: Table, console: Console) -> int:
    """What a table takes when nothing is wrapped."""
    return Measurement.get(console, console.options.update(max_width=100_000), drawn).maximum


def parts(section: Section) -> list[Section]:
    """A section for each value of its quiet column."""
    if not section.columns[0].quiet:
        return []
    values = dict.fromkeys(row[0] for row in section.rows)
    return [
        for_people(
            Section(
                section.name, section.title, section.columns, tuple(row for row in section.rows if row[0] == value),
                heads=section.heads,
                scales=sum(row[0] == value for row in section.rows[: section.scales]),
            )
        )
        for value in values
    ]  # fmt: skip


def fitting(section: Section, labels: Mapping[str, str], console: Console) -> RenderableType:
    """The first that is narrow enough: the table, without bars, with labels, tight, in parts, as blocks."""
    whole = table(section, {}, narrow=False, tight=False)
    if width(whole, console) <= console.width:
        return whole
    keep = [at for at, column in enumerate(section.columns) if column.kind != "bar"]
    if 0 < len(keep) < len(section.columns):
        columns = tuple(section.columns[at] for at in keep)
        rows = tuple(tuple(row[at] for at in keep) for row in section.rows)
        bare = Section(section.name, section.title, columns, rows, heads=section.heads, scales=section.scales)
        return fitting(bare, labels, console)
    for tight in (False, True):
        labelled = table(section, labels, narrow=True, tight=tight)
        if width(labelled, console) <= console.width:
            return labelled
    tables = [table(part, labels, narrow=True, tight=True) for part in parts(section)]
    if section.heads and (len(tables) < 2 or any(width(each, console) > console.width for each in tables)):
        return blocks(section, labels)
    return labelled if len(tables) < 2 else Group(tables[0], *(each for one in tables[1:] for each in ("", one)))
