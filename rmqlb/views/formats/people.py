"""The formats for people: rich tables on a terminal, plain and markdown tables anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rmqlb.views.formats.text import clip, safe_markdown, visible
from rmqlb.views.report import CHANGE_SIGNS, RIGHT, Cell, Column, Report, Section, duration, percent

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

_STYLES = {"moved": "yellow", "assigned": "green", "unassigned": "bold red", "added": "green", "removed": "dim"}
_LONGEST = 200
_LONGEST_FACT = 1_000
"""A sentence with names in it that people still read; in a pipe nothing is cut."""
_BAR = 20
_WIDEST = 10_000
_UNKNOWN = "?"
_NOT_THERE = "-"
_NOBODY = "(nobody)"
_UNTITLED = ("change", "strip")
_LONGEST_STRIP = 160
_SHORTEST_STRIP = 30
_INDENTED = 4
"""By so much the cells below a row's name are."""


def as_plain(report: Report) -> str:
    """Tables without frames; nothing is cut or wrapped."""
    return _tabulated(report, "simple")


def as_markdown(report: Report) -> str:
    """GitHub-flavoured markdown."""
    return _tabulated(report, "github")


def print_tables(report: Report, console: Console) -> None:
    """Framed tables as wide as the terminal allows; client ids that do not fit are abbreviated to their labels.

    Args:
        report: what to show.
        console: where; it decides about width and colour.
    """
    from rich.text import Text

    for fact in report.facts:
        console.print(Text(clip(visible(fact), _LONGEST_FACT), style="bold" if fact is report.facts[0] else ""))
    for section in report.sections:
        drawn = _drawn(section, report.labels, console)
        console.print()
        console.print(_fitting(for_people(drawn), report.labels, console))
        if drawn.brief is not None:
            console.print(Text(_more(drawn)))


def _fitting(section: Section, labels: Mapping[str, str], console: Console) -> RenderableType:
    """A line if it is empty; else the first of these that is narrow enough.

    The table; the table without bars, with labels for client ids; the same with less space between its columns; a
    table for each value of its quiet column; given heads, its rows as blocks.
    """
    if not section.rows:
        from rich.text import Text

        return Text.assemble((visible(section.title), "bold"), ": none")
    table = _table(section, {})
    if not _too_wide(table, console):
        return table
    if any(column.kind == "bar" for column in section.columns):
        return _fitting(_without_bars(section), labels, console)
    for tight in (False, True):
        labelled = _table(section, labels, narrow=True, tight=tight)
        if not _too_wide(labelled, console):
            return labelled
    tables = [_table(part, labels, narrow=True, tight=True) for part in _parts(section)]
    if section.heads and (len(tables) < 2 or any(_too_wide(table, console) for table in tables)):
        return _blocks(section, labels)
    if len(tables) < 2:
        return labelled
    from rich.console import Group

    return Group(tables[0], *(each for table in tables[1:] for each in ("", table)))


def _parts(section: Section) -> list[Section]:
    """A section for each value of its quiet column, which then stands in the title."""
    if not section.columns[0].quiet:
        return []
    values = dict.fromkeys(row[0] for row in section.rows)
    return [
        for_people(replace(section, rows=tuple(row for row in section.rows if row[0] == value))) for value in values
    ]


def _drawn(section: Section, labels: Mapping[str, str], console: Console) -> Section:
    """A picture with strips as long as the terminal allows: beside the names of its rows, else below them."""
    if section.draw is None or console.width >= _WIDEST:
        return section
    most = min(console.width, _LONGEST_STRIP)
    room = most
    for _ in range(3):  # where rows are drawn together depends on the length, and so do their names
        drawn = section.draw(room)
        names = _width(_table(for_people(_without_strips(drawn)), labels), console) - 1
        if room + names <= console.width:
            break
        room = console.width - names
        if room < _SHORTEST_STRIP:
            drawn = section.draw(min(most, max(console.width - _INDENTED, 1)))
            break
    return drawn


def _without_strips(section: Section) -> Section:
    """The section with a single character in place of each strip, and no title above them."""
    strips = [column.kind == "strip" for column in section.columns]
    return replace(
        section,
        columns=tuple(replace(c, title="") if c.kind == "strip" else c for c in section.columns),
        rows=tuple(
            tuple("|" if is_strip else cell for is_strip, cell in zip(strips, row, strict=True)) for row in section.rows
        ),
    )


def _more(section: Section) -> str:
    """What is said below rows of which some are left out."""
    left = len(section.rows) - len(section.brief or ())
    return f"and {left} more: --section {section.name} shows all"


def _without_bars(section: Section) -> Section:
    keep = [index for index, column in enumerate(section.columns) if column.kind != "bar"]
    return replace(
        section,
        columns=tuple(section.columns[index] for index in keep),
        rows=tuple(tuple(row[index] for index in keep) for row in section.rows),
    )


def _too_wide(table: Table, console: Console) -> bool:
    return console.width < _WIDEST and _width(table, console) > console.width


def _width(table: Table, console: Console) -> int:
    """What the table takes when nothing is wrapped."""
    from rich.measure import Measurement

    return Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum


def _table(section: Section, labels: Mapping[str, str], *, narrow: bool = False, tight: bool = False) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(visible(section.title), style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        header_style="bold",
        show_edge=False,
        pad_edge=False,
        collapse_padding=tight,
    )
    for column in section.columns:
        title = visible(column.title)
        table.add_column(
            Text(title.replace("_", "_\n") if narrow else title),
            justify="right" if column.kind in RIGHT else "left",
            overflow="fold",
        )
    for row, following in zip_longest(section.rows, section.rows[1:]):
        cells = zip(section.columns, row, strict=True)
        table.add_row(
            *(_cell(c, cell, labels) for c, cell in cells),
            end_section=section.columns[0].quiet and following is not None and row[0] != following[0],
        )
    return table


def _cell(column: Column, cell: Cell, labels: Mapping[str, str]) -> RenderableType:
    """A cell of a framed table; a bar has eighths of a character where the terminal can draw them."""
    if column.kind == "bar" and isinstance(cell, int | float):
        from rich.bar import Bar

        return Bar(1.0, 0.0, float(cell), width=_BAR)
    from rich.text import Text

    text = Text(clip(cell_text(column, cell, labels), _LONGEST), style=_style(column, cell))
    if column.kind == "strip":
        text.highlight_regex("!+", "bold red")
    return text


def _blocks(section: Section, labels: Mapping[str, str]) -> RenderableType:
    """Each row as a line that names it and, indented, its other cells with their titles."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = [Text(visible(section.title), style="bold italic")]
    for row in section.rows:
        cells = [
            (column, clip(cell_text(column, cell, labels), _LONGEST), _style(column, cell))
            for column, cell in zip(section.columns, row, strict=True)
        ]
        parts.append(Text("  ".join(shown for _, shown, _ in cells[: section.heads]), style="bold"))
        rest = [
            Text.assemble((f"{visible(column.title)} " if column.kind not in _UNTITLED else ""), (shown, style))
            for column, shown, style in cells[section.heads :]
            if shown
        ]
        parts.append(Padding(Text(", ").join(rest), (0, 0, 0, _INDENTED)))
    return Group(*parts)


def _style(column: Column, cell: Cell) -> str:
    return _STYLES.get(str(cell), "") if column.kind == "change" else ""


def for_people(section: Section) -> Section:
    """The section as people see it; seen so once more, it stays the same.

    Rows that only `--section` shows are left out, and so are columns that tell people nothing; the title names the one
    value of a quiet column.
    """
    title = section.title
    if section.brief is not None:
        section = replace(section, rows=tuple(section.rows[place] for place in section.brief), brief=None)
        title += f", {section.chosen}" if section.chosen else ""
    constant = {
        index: section.rows[0][index]
        for index, column in enumerate(section.columns)
        if column.quiet and section.rows and len({row[index] for row in section.rows}) == 1
    }
    values = [str(value) for value in constant.values() if value is not None]
    title += f": {', '.join(values)}" if values else ""
    keep = [index for index, column in enumerate(section.columns) if column.shown and index not in constant]
    return replace(
        section,
        title=title,
        columns=tuple(section.columns[index] for index in keep),
        rows=tuple(tuple(row[index] for index in keep) for row in section.rows),
        heads=sum(index in keep for index in range(section.heads)),
    )


def _tabulated(report: Report, style: str) -> str:
    from tabulate import tabulate

    is_markdown = style == "github"
    quote = safe_markdown if is_markdown else str
    parts = ["\n".join(quote(visible(fact)) for fact in report.facts)] if report.facts else []
    for whole in report.sections:
        section = for_people(whole)
        written = _markdown_cell if is_markdown else _plain_cell
        rows = [
            [written(column, cell) for column, cell in zip(section.columns, row, strict=True)] for row in section.rows
        ]
        table = tabulate(
            rows,
            headers=[quote(visible(column.title)) for column in section.columns],
            tablefmt=style,
            disable_numparse=True,
            colalign=_alignment(section.columns) if rows else None,
        )
        heading = f"**{quote(visible(section.title))}**\n" if is_markdown else visible(section.title)
        more = "" if whole.brief is None else f"\n\n{quote(_more(whole))}" if is_markdown else f"\n{_more(whole)}"
        parts.append(f"{heading}\n{table}{more}")
    return "\n\n".join(parts) + "\n"


def _plain_cell(column: Column, cell: Cell) -> str:
    return cell_text(column, cell, {})


def _markdown_cell(column: Column, cell: Cell) -> str:
    """The text taken literally; a strip as code, whose blanks stay and whose characters are of one width."""
    text = cell_text(column, cell, {})
    if column.kind == "strip":
        return "`" + text.replace("`", "'").replace("|", "\\|") + "`"
    return safe_markdown(text)


def _bar(share: float) -> str:
    """A share of the whole width; the smallest one is still seen."""
    return "#" * (max(round(share * _BAR), 1) if share > 0 else 0)


def _alignment(columns: Iterable[Column]) -> list[str]:
    return ["right" if column.kind in RIGHT else "left" for column in columns]


_DRAWN: dict[str, Callable[[float], str]] = {"ms": duration, "share": percent, "bar": _bar}


def cell_text(column: Column, cell: Cell, labels: Mapping[str, str]) -> str:
    """A cell as people read it: unknown is a question mark, no owner is said in words."""
    if cell is None:
        return {"text": "", "bar": "", "strip": "", "ms": _NOT_THERE}.get(column.kind, _UNKNOWN)
    if isinstance(cell, tuple):
        return visible(" ".join(labels.get(client_id, client_id) for client_id in cell)) or _NOBODY
    if column.kind == "label":
        return f"#{cell}"
    if isinstance(cell, int | float) and column.kind in _DRAWN:
        return _DRAWN[column.kind](cell)
    if isinstance(cell, float):
        return f"{cell:.2f}"
    if column.kind == "change":
        return f"{CHANGE_SIGNS[str(cell)]} {cell}"
    if column.kind == "clients":
        return visible(labels.get(str(cell), str(cell)))
    return visible(str(cell))
