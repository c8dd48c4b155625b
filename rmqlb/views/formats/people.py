"""The formats for people: rich tables on a terminal, plain and markdown tables anywhere else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rmqlb.views.formats.grid import markdown_table, plain_table
from rmqlb.views.formats.lead import LONGEST_FACT, markdown_lead, print_lead
from rmqlb.views.formats.palette import owner_styles
from rmqlb.views.formats.signs import SIGNS, STYLES
from rmqlb.views.formats.text import clip, safe_markdown, visible
from rmqlb.views.report import CHANGE_SIGNS, RIGHT, Cell, Column, Report, Section, duration, percent

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from rmqlb.views.formats.framed import Drawn, FramedTable

_STYLES = {"moved": "yellow", "assigned": "green", "unassigned": "bold red", "added": "green", "removed": "dim"}
_STYLES_OF = {"change": _STYLES, "sign": STYLES}
_LONGEST = 200
"""A sentence with names in it that people still read; in a pipe nothing is cut."""
_BAR = 20
_BAR_STYLE = "default on default"
_EIGHTHS = " ▏▎▍▌▋▊▉"
_WIDEST = 10_000
_NARROW = 40  # columns of a terminal; narrower ones leave cells of some tables no room
_GAP = 3  # blanks between two columns
_LEAST_PROSE = 26  # columns that a sentence takes before others are left out
_UNKNOWN = "?"
_NOT_THERE = "-"
_UNASSIGNED = "(unassigned)"
_CLIENTS = ("clients", "owners")
_UNTITLED = ("change", "strip")
_LONGEST_STRIP = 160
_SHORTEST_STRIP = 30


def print_tables(report: Report, console: Console) -> None:
    """Framed tables as wide as the terminal allows; client ids that do not fit are abbreviated to their labels."""
    from rich.text import Text
    from rich.theme import Theme

    console.push_theme(Theme(owner_styles(console.color_system)))
    print_lead(report, console)
    for section in report.sections:
        if section.blocks is not None:
            from rmqlb.views.formats.blocks import print_blocks

            print_blocks(section, console)
            continue
        drawn = _drawn(section, report.labels, console)
        console.print()
        console.print(_fitting(with_heads(for_people(drawn), console), report.labels, console))
        if drawn.brief is not None:
            console.print(Text(_more(drawn)))
    if report.closing:
        console.print()
    for line in report.closing:
        console.print(Text(clip(visible(line), LONGEST_FACT), style="dim"))
    if report.more:
        console.print(Text(f"\n{clip(visible(report.more), LONGEST_FACT)}"))


def with_heads(section: Section, console: Console) -> Section:
    """Let a narrow terminal show any table as blocks, where its columns would otherwise be blank."""
    if section.heads or console.width >= _NARROW:
        return section
    marks = sum(column.kind in ("sign", "change") for column in section.columns[:1])
    return replace(section, heads=min(marks + 1, len(section.columns)))


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
    if any(column.fold for column in section.columns):
        return _without_some(section, console)
    if len({column.kind == "bar" for column in section.columns}) == 2:  # there are bars, and not only bars
        return _fitting(
            _only(section, [at for at, column in enumerate(section.columns) if column.kind != "bar"]), labels, console
        )
    labelled = _table(section, labels, narrow=True, known=table.rows)
    tight = labelled.tightened()
    for each in (labelled, tight):
        if not _too_wide(each, console):
            return each
    tables: list[FramedTable] = []
    for part in _parts(section):
        tables.append(_table(part, labels, narrow=True).tightened())
        if section.heads and _too_wide(tables[-1], console):
            return _blocks(section, labelled)
    if len(tables) < 2:
        return _blocks(section, labelled) if section.heads else tight
    from rmqlb.views.formats.framed import Tables

    return Tables(tables)


def _parts(section: Section) -> list[Section]:
    if not section.columns[0].quiet:
        return []
    rows: dict[Cell, list[tuple[Cell, ...]]] = {}
    for row in section.rows:
        rows.setdefault(row[0], []).append(row)
    scales = Counter(row[0] for row in section.rows[: section.scales])
    return [for_people(replace(section, rows=tuple(some), scales=scales[value])) for value, some in rows.items()]


def _drawn(section: Section, labels: Mapping[str, str], console: Console) -> Section:
    """A picture with strips as long as the terminal allows: beside the names of its rows, else below them."""
    from rmqlb.views.formats.framed import INDENT

    if section.draw is None or console.width >= _WIDEST:
        return section
    most = min(console.width, _LONGEST_STRIP)
    room = most
    for _ in range(3):  # where rows are drawn together depends on the length, and so do their names
        drawn = section.draw(room)
        names = _table(for_people(_without_strips(drawn)), labels).width() - 1
        if room + names <= console.width:
            break
        room = console.width - names
        if room < _SHORTEST_STRIP:
            drawn = section.draw(min(most, max(console.width - INDENT, 1)))
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
    left = len(section.rows) - len(section.brief or ())
    return f"and {left} more: --section {section.name} shows all"


def _without_some(section: Section, console: Console) -> RenderableType:
    """The table without some columns; as blocks, given heads, when even that is too wide."""
    folded, is_narrow = _folded(section, console)
    table = _table(folded, {})
    if is_narrow and section.heads:
        return _blocks(folded, table)
    left_out = [visible(column.title) for column in section.columns if column not in folded.columns]
    if not section.names_left_out or not left_out:
        return table
    from rich.console import Group
    from rich.text import Text

    return Group(table, Text(f"no room for {', '.join(left_out)}"))


def _folded(section: Section, console: Console) -> tuple[Section, bool]:
    """The section without the columns for which there is no room beside the others and some of each sentence.

    Whether even the others have none is told too.
    """
    from rmqlb.views.formats.framed import columns, text_of

    widths = [
        max(columns(text_of(cell)) for cell in (visible(column.title), *cells))
        for column, cells in zip(section.columns, zip(*_table(section, {}).rows, strict=True), strict=True)
    ]
    needed = [
        _GAP + (min(width, _LEAST_PROSE) if column.kind == "prose" else width)
        for column, width in zip(section.columns, widths, strict=True)
    ]
    left = set(range(len(needed)))
    foldable = sorted((place for place in left if section.columns[place].fold), key=lambda at: section.columns[at].fold)
    while (wide := sum(needed[place] for place in left) > console.width + _GAP) and foldable:
        left.remove(foldable.pop())
    return _only(section, sorted(left)), wide


def _only(section: Section, keep: Sequence[int]) -> Section:
    """The section with the columns at these places."""
    return replace(
        section,
        columns=tuple(section.columns[index] for index in keep),
        rows=tuple(tuple(row[index] for index in keep) for row in section.rows),
    )


def _too_wide(table: FramedTable, console: Console) -> bool:
    return console.width < _WIDEST and table.width() > console.width


def _table(
    section: Section,
    labels: Mapping[str, str],
    *,
    narrow: bool = False,
    known: Sequence[Sequence[Drawn]] | None = None,
) -> FramedTable:
    """All rows of a section in one table.

    Args:
        narrow: titles may be broken.
        known: the same cells without labels, where they were drawn before.
    """
    from rmqlb.views.formats.framed import FramedTable, Head

    rows = section.rows
    titles = [visible(column.title) for column in section.columns]
    bare = [replace(column, styles={}) for column in section.columns] if section.scales else ()
    return FramedTable(
        title=visible(section.title),
        heads=[
            Head(title.replace("_", "_\n") if narrow else title, column.kind in RIGHT)
            for title, column in zip(titles, section.columns, strict=True)
        ],
        rows=[_cells(bare if at < section.scales else section.columns, row, labels) for at, row in enumerate(rows)]
        if known is None
        else [_cells(section.columns, row, labels, drawn) for row, drawn in zip(rows, known, strict=True)],
        ends={at for at in range(len(rows) - 1) if rows[at][0] != rows[at + 1][0]} if section.columns[0].quiet else (),
    )


def _cells(
    columns: Sequence[Column], row: Sequence[Cell], labels: Mapping[str, str], known: Sequence[Drawn] | None = None
) -> list[Drawn]:
    if known is None:
        return [_cell(column, cell, labels) for column, cell in zip(columns, row, strict=True)]
    return [
        _cell(column, cell, labels) if column.kind in _CLIENTS or isinstance(cell, tuple) else drawn
        for column, cell, drawn in zip(columns, row, known, strict=True)
    ]


def _cell(column: Column, cell: Cell, labels: Mapping[str, str]) -> Drawn:
    """A cell of a framed table; a bar has eighths of a character, which the terminal can draw."""
    from rmqlb.views.formats.framed import Painted

    if column.kind == "bar" and isinstance(cell, int | float):
        return Painted(((_blocks_of(cell), _BAR_STYLE),))
    text = clip(cell_text(column, cell, labels), _LONGEST)
    if style := _style(column, cell):
        return Painted(((text, style),), style)
    if column.styles:
        runs = groupby(text, key=lambda character: column.styles.get(character, ""))
        return Painted(tuple(("".join(run), style) for style, run in runs))
    return text


def _style(column: Column, cell: Cell) -> str:
    if column.kind == "owners":
        return STYLES["error"] if isinstance(cell, tuple) and len(cell) != 1 else ""
    return _STYLES_OF.get(column.kind, {}).get(str(cell), "")


def _blocks_of(share: float) -> str:
    """A share of the whole width in blocks, the last of them as wide as it takes."""
    whole, eighths = divmod(int(_BAR * 8 * min(max(share, 0), 1)), 8)
    return ("█" * whole + _EIGHTHS[eighths] * (eighths > 0)).ljust(_BAR)


def _blocks(section: Section, table: FramedTable) -> RenderableType:
    """Each row as a line that names it and, indented, its other cells with their titles."""
    from rich.console import Group
    from rich.text import Text

    from rmqlb.views.formats.framed import Blocks, text_of

    titles = [f"{visible(column.title)} " if column.kind not in _UNTITLED else "" for column in section.columns]
    names = ["  ".join(map(text_of, row[: section.heads])) for row in table.rows]
    rest = [
        [(title, cell) for title, cell in list(zip(titles, row, strict=True))[section.heads :] if text_of(cell)]
        for row in table.rows
    ]
    return Group(Text(visible(section.title), style="bold italic"), Blocks(names, rest))


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
    if all(index in constant or not column.shown for index, column in enumerate(section.columns)):
        constant = {}  # a table without a column would show nothing
    values = [str(value) for value in constant.values() if value is not None]
    title += f": {', '.join(values)}" if values else ""
    keep = [index for index, column in enumerate(section.columns) if column.shown and index not in constant]
    heads = sum(index in keep for index in range(section.heads))
    return replace(_only(section, keep), title=title, heads=heads)


def as_markdown(report: Report) -> str:
    """GitHub-flavoured markdown."""
    return as_plain(report, is_markdown=True)


def as_plain(report: Report, *, is_markdown: bool = False) -> str:
    """Tables without frames; nothing is cut or wrapped."""
    quote = safe_markdown if is_markdown else str
    if is_markdown:
        parts = [*markdown_lead(report)]
    else:
        parts = ["\n".join(visible(fact) for fact in report.facts)] if report.facts else []
    written, drawn = (_markdown_cell, markdown_table) if is_markdown else (cell_text, plain_table)
    for whole in report.sections:
        if whole.blocks is not None:
            from rmqlb.views.formats.blocks import markdown_blocks, plain_blocks

            parts += filter(None, [markdown_blocks(whole) if is_markdown else plain_blocks(whole)])
            continue
        section = for_people(whole)
        rows = [
            [written(column, cell, {}) for column, cell in zip(section.columns, row, strict=True)]
            for row in section.rows
        ]
        titles = [quote(visible(column.title)) for column in section.columns]
        table = drawn(titles, rows, [column.kind in RIGHT for column in section.columns])
        heading = f"**{quote(visible(section.title))}**\n" if is_markdown else visible(section.title)
        more = "" if whole.brief is None else f"\n\n{quote(_more(whole))}" if is_markdown else f"\n{_more(whole)}"
        parts.append(f"{heading}\n{table}{more}")
    if report.closing:
        parts.append("\n".join(quote(visible(line)) for line in report.closing))
    if report.more:
        parts.append(quote(visible(report.more)))
    return "\n\n".join(parts) + "\n"


def _markdown_cell(column: Column, cell: Cell, labels: Mapping[str, str]) -> str:
    """The text taken literally; a strip as code, whose blanks stay and whose characters are of one width."""
    text = cell_text(column, cell, labels)
    if column.kind == "strip":
        return "`" + text.replace("`", "'").replace("|", "\\|") + "`"
    return safe_markdown(text)


def _bar(share: float) -> str:
    """A share of the whole width; the smallest one is still seen."""
    return "#" * (max(round(share * _BAR), 1) if share > 0 else 0)


_DRAWN: dict[str, Callable[[float], str]] = {"ms": duration, "share": percent, "bar": _bar}


def cell_text(column: Column, cell: Cell, labels: Mapping[str, str]) -> str:
    """A cell as people read it: unknown is a question mark, no owner is said in words."""
    if cell is None:
        return {"text": "", "prose": "", "sign": "", "bar": "", "strip": "", "ms": _NOT_THERE}.get(
            column.kind, _UNKNOWN
        )
    if isinstance(cell, tuple):
        return visible(" ".join(labels.get(client_id, client_id) for client_id in cell)) or _UNASSIGNED
    if column.kind == "label":
        return f"#{cell}"
    if isinstance(cell, int | float) and column.kind in _DRAWN:
        return _DRAWN[column.kind](cell)
    if isinstance(cell, float):
        return f"{cell:.2f}"
    if column.kind in ("change", "sign"):
        return f"{CHANGE_SIGNS[str(cell)]} {cell}" if column.kind == "change" else SIGNS[str(cell)]
    if column.kind in _CLIENTS:
        return visible(labels.get(str(cell), str(cell)))
    return visible(str(cell))
