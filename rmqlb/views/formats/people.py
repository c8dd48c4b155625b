"""The formats for people: rich's tables on a terminal, tabulate's plain and Markdown tables anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rmqlb.views.formats.lead import LONGEST_FACT, markdown_lead, print_lead
from rmqlb.views.formats.palette import owner_styles
from rmqlb.views.formats.signs import SIGNS, STYLES
from rmqlb.views.formats.text import clip, safe_markdown, visible, width
from rmqlb.views.report import CHANGE_SIGNS, RIGHT, Cell, Column, Report, Section, duration, percent

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

_STYLES_OF = {
    "change": {"moved": "yellow", "assigned": "green", "unassigned": "bold red", "added": "green", "removed": "dim"},
    "sign": STYLES,
}
_LONGEST = 200
"""A sentence with names in it that people still read; in a pipe nothing is cut."""
_BAR = 20
_EIGHTHS = " ▏▎▍▌▋▊▉"
_INDENT = 4  # of a block's second line
_WIDEST = 10_000  # a terminal that is wider is a pipe, where everything fits
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
        drawn = _drawn(section, console)
        console.print()
        console.print(_fitting(_with_heads(for_people(drawn), console), report.labels, console))
        if drawn.brief is not None:
            console.print(Text(_more(drawn)))
    if report.closing:
        console.print()
    for line in report.closing:
        console.print(Text(clip(visible(line), LONGEST_FACT), style="dim"))
    if report.more:
        console.print(Text(f"\n{clip(visible(report.more), LONGEST_FACT)}"))


def _with_heads(section: Section, console: Console) -> Section:
    """Let a narrow terminal show any table as blocks, where its columns would otherwise be blank."""
    if section.heads or console.width >= _NARROW:
        return section
    marks = sum(column.kind in ("sign", "change") for column in section.columns[:1])
    return replace(section, heads=min(marks + 1, len(section.columns)))


def _fitting(section: Section, labels: Mapping[str, str], console: Console) -> RenderableType:
    """A line if it is empty; else the first of these that is narrow enough.

    The table; the table without bars, with labels for client ids; given heads, its rows as blocks.
    """
    from rich.text import Text

    if not section.rows:
        return Text.assemble((visible(section.title), "bold"), ": none")
    if _fits(section, {}, console):
        return _table(section, {})
    if any(column.fold for column in section.columns):
        return _without_some(section, console)
    if len({column.kind == "bar" for column in section.columns}) == 2:  # there are bars, and not only bars
        others = [at for at, column in enumerate(section.columns) if column.kind != "bar"]
        return _fitting(_only(section, others), labels, console)
    if _fits(section, labels, console):
        return _table(section, labels)
    return _blocks(section, labels) if section.heads else _table(section, labels)


def _drawn(section: Section, console: Console) -> Section:
    """A picture with strips as long as the terminal allows: beside the names of its rows, else below them."""
    if section.draw is None or console.width >= _WIDEST:
        return section
    most = min(console.width, _LONGEST_STRIP)
    room = most
    for _ in range(3):  # where rows are drawn together depends on the length, and so do their names
        drawn = section.draw(room)
        shown = for_people(drawn)
        names = [_column_width(shown, at, {}) for at, column in enumerate(shown.columns) if column.kind != "strip"]
        beside = sum(names) + _GAP * len(names)
        if room + beside <= console.width:
            break
        room = console.width - beside
        if room < _SHORTEST_STRIP:
            return section.draw(min(most, max(console.width - _INDENT, 1)))
    return drawn


def _more(section: Section) -> str:
    left = len(section.rows) - len(section.brief or ())
    return f"and {left} more: --section {section.name} shows all"


def _without_some(section: Section, console: Console) -> RenderableType:
    """The table without the columns that have no room next to the others and some of each sentence.

    Given heads, its rows as blocks when even that is too wide.
    """
    from rich.console import Group
    from rich.text import Text

    widths = [_column_width(section, at, {}) for at in range(len(section.columns))]
    needed = [
        _GAP + (min(each, _LEAST_PROSE) if column.kind == "prose" else each)
        for column, each in zip(section.columns, widths, strict=True)
    ]
    left = set(range(len(needed)))
    foldable = sorted((place for place in left if section.columns[place].fold), key=lambda at: section.columns[at].fold)
    while (is_wide := sum(needed[place] for place in left) > console.width + _GAP) and foldable:
        left.remove(foldable.pop())
    folded = _only(section, sorted(left))
    if is_wide and section.heads:
        return _blocks(folded, {})
    left_out = [visible(column.title) for column in section.columns if column not in folded.columns]
    if not section.names_left_out or not left_out:
        return _table(folded, {})
    return Group(_table(folded, {}), Text(f"no room for {', '.join(left_out)}"))


def _only(section: Section, keep: Sequence[int]) -> Section:
    return replace(
        section,
        columns=tuple(section.columns[index] for index in keep),
        rows=tuple(tuple(row[index] for index in keep) for row in section.rows),
    )


def _fits(section: Section, labels: Mapping[str, str], console: Console) -> bool:
    if console.width >= _WIDEST:
        return True
    widths = (_column_width(section, at, labels) for at in range(len(section.columns)))
    return sum(widths) + (len(section.columns) - 1) * _GAP <= console.width


def _column_width(section: Section, at: int, labels: Mapping[str, str]) -> int:
    column = section.columns[at]
    cells = (width(_text(column, row[at], labels)) for row in section.rows)
    return max(width(visible(column.title)), *cells)


def _table(section: Section, labels: Mapping[str, str]) -> Table:
    """All rows of a section in one table; `labels` are what stands for client IDs."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(visible(section.title), style="bold") if section.title else None,
        title_justify="left",
        box=SIMPLE_HEAD,
        header_style="bold",
        show_edge=False,
        pad_edge=False,
    )
    for column in section.columns:
        title = Text(visible(column.title))
        table.add_column(title, justify="right" if column.kind in RIGHT else "left", overflow="fold")
    is_parted = section.columns[0].quiet
    for at, row in enumerate(section.rows):
        cells = (
            _cell(*each, labels, is_styled=at >= section.scales) for each in zip(section.columns, row, strict=True)
        )
        following = section.rows[at + 1][0] if at + 1 < len(section.rows) else row[0]
        table.add_row(*cells, end_section=is_parted and following != row[0])
    return table


def _cell(column: Column, cell: Cell, labels: Mapping[str, str], *, is_styled: bool) -> Text:
    from rich.text import Text

    text = _text(column, cell, labels)
    if not is_styled or not column.styles:
        return Text(text, style=_style(column, cell))
    runs = groupby(text, key=lambda character: column.styles.get(character, ""))
    return Text.assemble(*(("".join(run), style) for style, run in runs))


def _text(column: Column, cell: Cell, labels: Mapping[str, str]) -> str:
    """A cell of a table; a bar has eighths of a character, which the terminal can draw."""
    if column.kind == "bar" and isinstance(cell, int | float):
        whole, eighths = divmod(int(_BAR * 8 * min(max(cell, 0), 1)), 8)
        return ("█" * whole + _EIGHTHS[eighths] * (eighths > 0)).ljust(_BAR)
    return clip(cell_text(column, cell, labels), _LONGEST)


def _style(column: Column, cell: Cell) -> str:
    if column.kind == "owners":
        return STYLES["error"] if isinstance(cell, tuple) and len(cell) != 1 else ""
    return _STYLES_OF.get(column.kind, {}).get(str(cell), "")


def _blocks(section: Section, labels: Mapping[str, str]) -> RenderableType:
    """Each row as a line that names it and, indented, its other cells with their titles."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    titles = [f"{visible(column.title)} " if column.kind not in _UNTITLED else "" for column in section.columns]
    lines: list[RenderableType] = [Text(visible(section.title), style="bold italic")]
    for row in section.rows:
        cells = [_cell(*each, labels, is_styled=True) for each in zip(section.columns, row, strict=True)]
        lines.append(Text("  ".join(cell.plain for cell in cells[: section.heads]), style="bold"))
        rest = [
            Text.assemble(title, cell)
            for title, cell in list(zip(titles, cells, strict=True))[section.heads :]
            if cell.plain
        ]
        lines.append(Padding(Text(", ").join(rest), (0, 0, 0, _INDENT)))
    return Group(*lines)


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
    return as_plain(report, is_markdown=True)


def as_plain(report: Report, *, is_markdown: bool = False) -> str:
    quote = safe_markdown if is_markdown else str
    if is_markdown:
        parts = [*markdown_lead(report)]
    else:
        parts = ["\n".join(visible(fact) for fact in report.facts)] if report.facts else []
    written, form = (_markdown_cell, "github") if is_markdown else (cell_text, "simple")
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
        table = drawn_table(titles, rows, [column.kind in RIGHT for column in section.columns], form)
        heading = f"**{quote(visible(section.title))}**\n" if is_markdown else visible(section.title)
        more = "" if whole.brief is None else f"\n\n{quote(_more(whole))}" if is_markdown else f"\n{_more(whole)}"
        parts.append(f"{heading}\n{table}{more}")
    if report.closing:
        parts.append("\n".join(quote(visible(line)) for line in report.closing))
    if report.more:
        parts.append(quote(visible(report.more)))
    return "\n\n".join(parts) + "\n"


def drawn_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], rights: Sequence[bool], form: str = "simple"
) -> str:
    """A table as tabulate draws it; `rights` are the columns whose cells are set to the right."""
    from tabulate import tabulate

    align = ["right" if right else "left" for right in rights] if rows else None
    return tabulate(rows, headers=titles, tablefmt=form, disable_numparse=True, colalign=align)


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
