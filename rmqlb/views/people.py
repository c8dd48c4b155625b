"""The formats for people: rich tables on a terminal, plain and markdown tables anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rmqlb.views.report import CHANGE_SIGNS, RIGHT, Cell, Column, Report, Section, duration, percent
from rmqlb.views.text import clip, visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

_STYLES = {"moved": "yellow", "assigned": "green", "unassigned": "bold red", "added": "green", "removed": "dim"}
_LONGEST = 200
_BAR = 20
_WIDEST = 10_000
_UNKNOWN = "?"
_NOT_THERE = "-"
_NOBODY = "(nobody)"


def as_plain(report: Report) -> str:
    """Tables without frames; nothing is cut or wrapped."""
    return _tabulated(report, "simple", str)


def as_markdown(report: Report) -> str:
    """GitHub-flavoured markdown."""
    return _tabulated(report, "github", lambda text: text.replace("\\", "\\\\").replace("|", "\\|"))


def print_tables(report: Report, console: Console) -> None:
    """Framed tables as wide as the terminal allows; client ids that do not fit are abbreviated to their labels.

    Args:
        report: what to show.
        console: where; it decides about width and colour.
    """
    from rich.text import Text

    for fact in report.facts:
        console.print(Text(visible(fact), style="bold" if fact is report.facts[0] else ""))
    for section in map(_for_people, report.sections):
        console.print()
        console.print(_fitting(section, report.labels, console))


def _fitting(section: Section, labels: Mapping[str, str], console: Console) -> RenderableType:
    """A line if it is empty; else the table, without bars, with labels for client ids, or, given heads, as blocks."""
    if not section.rows:
        from rich.text import Text

        return Text.assemble((visible(section.title), "bold"), ": none")
    table = _table(section, {})
    if not _too_wide(table, console):
        return table
    if any(column.kind == "bar" for column in section.columns):
        return _fitting(_without_bars(section), labels, console)
    labelled = _table(section, labels, narrow=True)
    return _blocks(section, labels) if section.heads and _too_wide(labelled, console) else labelled


def _without_bars(section: Section) -> Section:
    keep = [index for index, column in enumerate(section.columns) if column.kind != "bar"]
    return replace(
        section,
        columns=tuple(section.columns[index] for index in keep),
        rows=tuple(tuple(row[index] for index in keep) for row in section.rows),
    )


def _too_wide(table: Table, console: Console) -> bool:
    if console.width >= _WIDEST:
        return False
    from rich.measure import Measurement

    return Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum > console.width


def _table(section: Section, labels: Mapping[str, str], *, narrow: bool = False) -> Table:
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

    return Text(clip(_shown(column, cell, labels), _LONGEST), style=_style(column, cell))


def _blocks(section: Section, labels: Mapping[str, str]) -> RenderableType:
    """Each row as a line that names it and, indented, its other cells with their titles."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = [Text(visible(section.title), style="bold italic")]
    for row in section.rows:
        cells = [
            (column, clip(_shown(column, cell, labels), _LONGEST), _style(column, cell))
            for column, cell in zip(section.columns, row, strict=True)
        ]
        parts.append(Text("  ".join(shown for _, shown, _ in cells[: section.heads]), style="bold"))
        rest = [
            Text.assemble((f"{visible(column.title)} " if column.kind != "change" else ""), (shown, style))
            for column, shown, style in cells[section.heads :]
            if shown
        ]
        parts.append(Padding(Text(", ").join(rest), (0, 0, 0, 4)))
    return Group(*parts)


def _style(column: Column, cell: Cell) -> str:
    return _STYLES.get(str(cell), "") if column.kind == "change" else ""


def _for_people(section: Section) -> Section:
    """The section without columns that tell people nothing; the title names the one value of a quiet column."""
    constant = {
        index: section.rows[0][index]
        for index, column in enumerate(section.columns)
        if column.quiet and section.rows and len({row[index] for row in section.rows}) == 1
    }
    values = [str(value) for value in constant.values() if value is not None]
    title = f"{section.title}: {', '.join(values)}" if values else section.title
    keep = [index for index, column in enumerate(section.columns) if column.shown and index not in constant]
    return replace(
        section,
        title=title,
        columns=tuple(section.columns[index] for index in keep),
        rows=tuple(tuple(row[index] for index in keep) for row in section.rows),
        heads=sum(index in keep for index in range(section.heads)),
    )


def _tabulated(report: Report, style: str, escape: object) -> str:
    from tabulate import tabulate

    quote = escape if callable(escape) else str
    parts = ["\n".join(quote(visible(fact)) for fact in report.facts)] if report.facts else []
    for section in map(_for_people, report.sections):
        rows = [
            [quote(_shown(column, cell, {})) for column, cell in zip(section.columns, row, strict=True)]
            for row in section.rows
        ]
        table = tabulate(
            rows,
            headers=[quote(visible(column.title)) for column in section.columns],
            tablefmt=style,
            disable_numparse=True,
            colalign=_alignment(section.columns) if rows else None,
        )
        heading = f"**{quote(visible(section.title))}**\n" if style == "github" else visible(section.title)
        parts.append(f"{heading}\n{table}")
    return "\n\n".join(parts) + "\n"


def _bar(share: float) -> str:
    """A share of the whole width; the smallest one is still seen."""
    return "#" * (max(round(share * _BAR), 1) if share > 0 else 0)


_DRAWN: dict[str, Callable[[float], str]] = {"ms": duration, "share": percent, "bar": _bar}


def _alignment(columns: Iterable[Column]) -> list[str]:
    return ["right" if column.kind in RIGHT else "left" for column in columns]


def _shown(column: Column, cell: Cell, labels: Mapping[str, str]) -> str:
    """A cell as people read it: unknown is a question mark, no owner is said in words."""
    if cell is None:
        return {"text": "", "bar": "", "ms": _NOT_THERE}.get(column.kind, _UNKNOWN)
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
