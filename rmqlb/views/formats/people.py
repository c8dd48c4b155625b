"""The formats for people: rich's tables on a terminal, tabulate's plain and Markdown tables elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rmqlb.views.columns import CHANGE_SIGNS, RIGHT, Cell, Column, painted
from rmqlb.views.formats import blocks
from rmqlb.views.formats.palette import SIGNS, STYLES, owner_styles
from rmqlb.views.formats.text import clip, cut_to_width, safe_markdown, visible, width
from rmqlb.views.numbers import duration, moment, number, percent
from rmqlb.views.report import Report, Section

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

_STYLES_OF = {
    "change": {"moved": "yellow", "assigned": "green", "unassigned": "bold red", "added": "green", "removed": "dim"},
    "sign": STYLES,
}
_LONGEST = 200
"""Characters of a cell that people still read; only terminals cut cells."""
_BAR = 20
_EIGHTHS = " ▏▎▍▌▋▊▉"
_INDENT = 4  # of a row's second line
_PIPE = 10_000  # a wider terminal is a pipe, where a picture has its own length
_NARROW = 40  # columns of a terminal; in fewer columns, some tables have no room for cells
_GAP = 3  # blanks between two columns
_LEAST_PROSE = 26  # columns of a sentence before other columns are omitted
_LEAST_CUT = {"name": 20, "headline": 24}  # kind of a column → the columns that a cut text has at least
_LONGEST_STRIP, _SHORTEST_STRIP = 160, 30
_NO_LABELS: Mapping[str, str] = {}


def print_tables(report: Report, console: Console) -> None:
    """Print a report as wide as the terminal allows; client IDs that do not fit are abbreviated to their labels."""
    from rich.text import Text
    from rich.theme import Theme

    console.push_theme(Theme(owner_styles(console.color_system)))
    blocks.print_lead(report, console)
    for section in report.sections:
        if section.blocks is not None:
            blocks.print_blocks(section, console)
            continue
        drawn = _drawn(section, console)
        console.print()
        console.print(_fitting(_with_heads(for_people(drawn), console), report.labels, console))
        if drawn.more:
            console.print(Text(drawn.more))
    if report.closing:
        console.print()
    for line in report.closing:
        blocks.print_wrapped(("", ""), blocks.short(line), console, "dim")
    if report.more:
        console.print(Text(f"\n{blocks.short(report.more)}"))


def _drawn(section: Section, console: Console) -> Section:
    """A picture with strips as long as the terminal allows: next to the names of its rows, or below them."""
    if section.draw is None or console.width >= _PIPE:
        return section
    drawn = section.draw(room := min(console.width, _LONGEST_STRIP))
    for _ in range(2):  # the length decides which rows are drawn together, and so their names
        shown = for_people(drawn)
        widths = zip(shown.columns, _widths(shown, _NO_LABELS), strict=True)
        names = sum(each + _GAP for column, each in widths if column.kind != "strip")
        if console.width - names < _SHORTEST_STRIP:
            return section.draw(min(_LONGEST_STRIP, max(console.width - _INDENT, 1)))
        drawn = section.draw(min(room, console.width - names))
    return drawn


def _with_heads(section: Section, console: Console) -> Section:
    """Show a table as blocks on a narrow terminal, where its columns would otherwise be blank."""
    if section.heads or console.width >= _NARROW:
        return section
    marks = sum(column.kind in ("sign", "change") for column in section.columns[:1])
    return replace(section, heads=min(marks + 1, len(section.columns)))


def _fitting(section: Section, labels: Mapping[str, str], console: Console) -> RenderableType:
    """The section as a table, without folding columns or with abbreviated IDs if necessary, otherwise as blocks."""
    from rich.console import Group
    from rich.text import Text

    if not section.rows:
        return Text.assemble((visible(section.title), "bold"), ": none")
    if _fits(section, _NO_LABELS, console):
        return _table(section, _NO_LABELS)
    if not any(map(_folding, section.columns)):
        is_wide = not _fits(section, labels, console)
        return _blocks(section, labels) if is_wide and section.heads else _table(section, labels)
    needed = [
        _GAP + (min(each, _LEAST_PROSE) if column.kind == "prose" else each)
        for column, each in zip(section.columns, _widths(section, _NO_LABELS), strict=True)
    ]
    left = set(range(len(needed)))
    folding = sorted((at for at in left if _folding(section.columns[at])), key=lambda at: _folding(section.columns[at]))
    while (is_wide := sum(needed[at] for at in left) > console.width + _GAP) and folding:
        left.remove(folding.pop())
    folded = _cut(_only(section, sorted(left)), console)
    if is_wide and section.heads:
        return _blocks(folded, _NO_LABELS)
    left_out = ", ".join(visible(column.title) for column in section.columns if column not in folded.columns)
    note = [Text(f"no room for {left_out}")] if section.names_left_out and left_out else []
    return Group(_table(folded, _NO_LABELS), *note)


def _cut(section: Section, console: Console) -> Section:
    """Cut names in the middle, then headlines at their end, until the table fits."""
    widths = _widths(section, _NO_LABELS)
    excess = sum(widths) + (len(widths) - 1) * _GAP - console.width
    if excess <= 0 or any(column.kind == "prose" for column in section.columns):
        return section
    rows = [list(row) for row in section.rows]
    for kind, least in _LEAST_CUT.items():
        for at, column in enumerate(section.columns):
            room = max(least, widths[at] - max(excess, 0))
            if column.kind != kind or room >= widths[at]:
                continue
            excess -= widths[at] - room
            for row in rows:
                text = cell_text(column, row[at])
                if width(text) > room:
                    row[at] = clip(text, room) if kind == "name" else f"{cut_to_width(text, room - 1)}…"
    return replace(section, rows=tuple(map(tuple, rows)))


def _folding(column: Column) -> int:
    """The priority for omission, the largest first; 0 is never. A bar repeats a figure."""
    return 9 if column.kind == "bar" else column.fold


def _only(section: Section, keep: Sequence[int]) -> Section:
    columns = tuple(section.columns[at] for at in keep)
    return replace(section, columns=columns, rows=tuple(tuple(row[at] for at in keep) for row in section.rows))


def _fits(section: Section, labels: Mapping[str, str], console: Console) -> bool:
    return sum(_widths(section, labels)) + (len(section.columns) - 1) * _GAP <= console.width


def _widths(section: Section, labels: Mapping[str, str]) -> list[int]:
    return [
        max([width(visible(column.title)), *(width(_text(column, row[at], labels)) for row in section.rows)])
        for at, column in enumerate(section.columns)
    ]


def _table(section: Section, labels: Mapping[str, str]) -> Table:
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
        cells = (_cell(*each, labels) for each in zip(section.columns, row, strict=True))
        following = section.rows[at + 1][0] if at + 1 < len(section.rows) else row[0]
        table.add_row(*cells, end_section=is_parted and following != row[0])
    return table


def _blocks(section: Section, labels: Mapping[str, str]) -> RenderableType:
    """Each row as a line with its heads and, indented, its other cells with their titles."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    titles = ["" if each.kind in ("change", "strip") else f"{visible(each.title)} " for each in section.columns]
    lines: list[RenderableType] = [Text(visible(section.title), style="bold italic")]
    for row in section.rows:
        cells = [_cell(*each, labels) for each in zip(section.columns, row, strict=True)]
        lines.append(Text("  ".join(cell.plain for cell in cells[: section.heads]), style="bold"))
        named = [*zip(titles, cells, strict=True)][section.heads :]
        rest = Text(", ").join(Text.assemble(title, cell) for title, cell in named if cell.plain)
        lines.append(Padding(rest, (0, 0, 0, _INDENT)))
    return Group(*lines)


def _cell(column: Column, cell: Cell, labels: Mapping[str, str]) -> Text:
    from rich.text import Text

    text = _text(column, cell, labels)
    if parts := list(painted(cell, text)):
        return Text.assemble(*parts)
    if column.kind == "owners":
        return Text(text, style=STYLES["error"] if isinstance(cell, tuple) and len(cell) != 1 else "")
    return Text(text, style=_STYLES_OF.get(column.kind, {}).get(str(cell), ""))


def _text(column: Column, cell: Cell, labels: Mapping[str, str]) -> str:
    """A cell of a table; a bar has eighths of a character, which the terminal can draw."""
    if column.kind == "bar" and isinstance(cell, int | float):
        whole, eighths = divmod(int(_BAR * 8 * min(max(cell, 0), 1)), 8)
        return ("█" * whole + _EIGHTHS[eighths] * (eighths > 0)).ljust(_BAR)
    return clip(cell_text(column, cell, labels), _LONGEST)


def for_people(section: Section) -> Section:
    """The section for people; applied twice, the result is the same.

    Rows that only `--section` shows are omitted, and so are columns without information; the title has the only value
    of a quiet column.
    """
    title, columns = section.title, list(enumerate(section.columns))
    hidden = {at for at, one in columns if not one.shown or (one.spare and not any(row[at] for row in section.rows))}
    if section.brief is not None:
        section = replace(section, rows=tuple(section.rows[place] for place in section.brief), brief=None)
        title += f", {section.chosen}" if section.chosen else ""
    constant = {
        at: section.rows[0][at]
        for at, column in columns
        if column.quiet and section.rows and len({row[at] for row in section.rows}) == 1
    }
    if len(hidden | constant.keys()) == len(columns):
        constant = {}  # otherwise the table would have no column
    values = [str(value) for value in constant.values() if value is not None]
    title += f": {', '.join(values)}" if values else ""
    keep = [at for at, _ in columns if at not in hidden and at not in constant]
    heads = sum(at in keep for at in range(section.heads))
    return replace(_only(section, keep), title=title, heads=heads)


def as_plain(report: Report, *, is_markdown: bool = False) -> str:
    quote = safe_markdown if is_markdown else str
    parts = [*blocks.markdown_lead(report)] if is_markdown else [*filter(None, ["\n".join(map(visible, report.facts))])]
    for whole in report.sections:
        if whole.blocks is not None:
            parts += filter(None, [blocks.text_blocks(whole, is_markdown=is_markdown)])
            continue
        section = for_people(whole)
        if not section.rows:
            parts.append(f"{quote(visible(section.title))}: none")
            continue
        write = _markdown_cell if is_markdown else cell_text
        rows = [[write(*each) for each in zip(section.columns, row, strict=True)] for row in section.rows]
        titles = [quote(visible(column.title)) for column in section.columns]
        rights = [column.kind in RIGHT for column in section.columns]
        table = drawn_table(titles, rows, rights, "github" if is_markdown else "simple")
        heading = f"**{quote(visible(section.title))}**\n" if is_markdown else visible(section.title)
        more = ("\n\n" if is_markdown else "\n") + quote(whole.more) if whole.more else ""
        parts.append(f"{heading}\n{table}{more}")
    closing = "\n".join(quote(visible(line)) for line in report.closing)
    parts += filter(None, (closing, quote(visible(report.more))))
    return "\n\n".join(parts) + "\n"


def drawn_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], rights: Sequence[bool], form: str = "simple"
) -> str:
    from tabulate import tabulate

    align = ["right" if right else "left" for right in rights] if rows else None
    return tabulate(rows, headers=titles, tablefmt=form, disable_numparse=True, colalign=align)


def _markdown_cell(column: Column, cell: Cell) -> str:
    """The text taken literally; a strip is code, whose blanks stay and whose characters have one width."""
    text = cell_text(column, cell)
    if column.kind == "strip":
        return "`" + text.replace("`", "'").replace("|", "\\|") + "`"
    return safe_markdown(text)


def _bar(share: float) -> str:
    return "#" * (max(round(share * _BAR), 1) if share > 0 else 0)


_OF_NOTHING = {"text": "", "name": "", "prose": "", "headline": "", "sign": "", "bar": "", "strip": "", "ms": "-"}
"""Kind of a column → the text of an unknown cell, if not a question mark."""
_OF_NUMBER: dict[str, Callable[[float], str]] = {"ms": duration, "share": percent, "bar": _bar}
_MOMENTS = ("atms", "fromms", "toms", "beganms", "endedms")
"""Ends of keys of points in time, which people read to the millisecond."""
_OF_WORD: dict[str, Callable[[str], str]] = {
    "label": "#{}".format,
    "change": lambda change: f"{CHANGE_SIGNS[change]} {change}",
    "sign": SIGNS.__getitem__,
}


def cell_text(column: Column, cell: Cell, labels: Mapping[str, str] = _NO_LABELS) -> str:
    """The text of a cell: a question mark for unknown, words for no owner."""
    if cell is None:
        return _OF_NOTHING.get(column.kind, "?")
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, tuple):
        return visible(" ".join(labels.get(client_id, client_id) for client_id in cell)) or "(unassigned)"
    if isinstance(cell, int | float) and column.kind in _OF_NUMBER:
        is_moment = column.kind == "ms" and column.key.lower().endswith(_MOMENTS)
        return moment(cell) if is_moment else _OF_NUMBER[column.kind](cell)
    if column.kind in _OF_WORD:
        return _OF_WORD[column.kind](str(cell))
    if column.kind in ("clients", "owners"):
        return visible(labels.get(str(cell), str(cell)))
    if isinstance(cell, float) and not column.key.endswith("PerSecond"):
        return f"{cell:,.2f}"
    return visible(cell) if isinstance(cell, str) else number(cell)
