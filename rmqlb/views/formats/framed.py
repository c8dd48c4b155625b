"""Tables with a line below their heads, and rows as blocks, for rich to print.

They look as rich's own `Table`, `Text` and `Padding` draw them, which `tests/views/test_framed.py` holds them to. But
those measure and draw each cell by itself, several times: a table of 20,000 rows took a quarter of a minute. Here a row
is one or a few segments, and what fits is only padded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from typing import NamedTuple

from msgspec import Struct
from rich.box import SIMPLE_HEAD, Box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

Piece = tuple[str, str]
"""A text and the name of its style, which is empty for none."""
INDENT = 4
"""By so much the second line of a block is."""
_PADDING = 1
_HEAD = "bold"


class Painted(Struct, frozen=True):
    """A cell that is not plain."""

    pieces: tuple[Piece, ...]  # its text with styles
    fill: str = ""  # the style of the blanks that fill its line

    @property
    def text(self) -> str:
        return "".join(part for part, _ in self.pieces)


Drawn = str | Painted


class Head(Struct, frozen=True):
    """A column's title, of one line or several, and the side to which its cells are set."""

    title: str
    right: bool


class FramedTable:
    """A table; `ends` are the places of the rows that are followed by an empty line."""

    def __init__(
        self, title: str, heads: Sequence[Head], rows: Sequence[Sequence[Drawn]], ends: Collection[int] = ()
    ) -> None:
        self._title = title
        self._heads = heads
        self.rows = rows
        self._ends = ends
        self._left = _PADDING
        cells = zip(*rows, strict=True) if rows else ((),) * len(heads)
        self._texts = [
            max(map(columns, (*head.title.split("\n"), *map(text_of, column))))
            for head, column in zip(heads, cells, strict=True)
        ]

    def tightened(self) -> FramedTable:
        other = copy(self)
        other._left = 0  # noqa: SLF001 - it is one of these
        return other

    def width(self) -> int:
        return sum(self._natural()) + len(self._heads) - 1

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        between = len(self._heads) - 1
        widths = _narrowed(self._natural(), max(options.max_width - between, 0))
        places = [
            _Place(left, width - left - right, right, width) if width > left + right else _Place(0, 0, 0, width)
            for width, (left, right) in zip(widths, self._gaps(), strict=True)
        ]
        box = SIMPLE_HEAD.substitute(options, safe=console.safe_box)
        paint = _Paint(console)
        if self._title:
            for line in wrapped([(self._title, _HEAD)], sum(widths) + between, console):
                yield from paint.line(_filled(line, sum(widths) + between, _HEAD))
        yield from self._head(places, box, paint)
        yield Segment(box.get_row(widths, "head", edge=False) + "\n")
        end = Segment(box.get_row(widths, "row", edge=False) + "\n")
        for at, row in enumerate(self.rows):
            is_last = at == len(self.rows) - 1
            for line in self._lines(row, places, box.foot_vertical if is_last else box.mid_vertical, console):
                yield from paint.line(line)
            if at in self._ends:
                yield end

    def _gaps(self) -> list[tuple[int, int]]:
        last = len(self._heads) - 1
        return [(self._left if at else 0, _PADDING if at < last else 0) for at in range(last + 1)]

    def _natural(self) -> list[int]:
        return [width + left + right for width, (left, right) in zip(self._texts, self._gaps(), strict=True)]

    def _head(self, places: Sequence[_Place], box: Box, paint: _Paint) -> Iterator[Segment]:
        titles = []
        for head, place in zip(self._heads, places, strict=True):
            parts = head.title.split("\n") if place.width else ()
            titles.append(
                [line for part in parts for line in _cell_lines(part, head.right, place.width, paint.console)]
            )
        height = max(1, *map(len, titles))
        for number in range(-height, 0):
            for at, (title, place) in enumerate(zip(titles, places, strict=True)):
                if at:
                    yield Segment(box.head_vertical)
                if -number > len(title):
                    yield paint.piece(" " * place.total, _HEAD if any(titles) else "")
                else:
                    text = "".join(part for part, _ in title[number])
                    yield from (
                        paint.piece(each, _HEAD) for each in (" " * place.left, text, " " * place.right) if each
                    )
            yield Segment("\n")

    def _lines(
        self, row: Sequence[Drawn], places: Sequence[_Place], vertical: str, console: Console
    ) -> Iterator[list[Piece]]:
        """A row's lines; those of a cell with fewer than another one stand at the top."""
        cells = [
            _cell_lines(cell, head.right, place.width, console) if place.width else []
            for cell, head, place in zip(row, self._heads, places, strict=True)
        ]
        for number in range(max(1, *map(len, cells))):
            line: list[Piece] = []
            for cell, place in zip(cells, places, strict=True):
                if line:
                    line.append((vertical, ""))
                if number < len(cell):
                    line += [(" " * place.left, ""), *cell[number], (" " * place.right, "")]
                else:
                    line.append((" " * place.total, ""))
            yield line


class Tables(Struct, frozen=True):
    """Several tables, with an empty line between two of them."""

    tables: Sequence[FramedTable]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for at, table in enumerate(self.tables):
            if at:
                yield Segment("\n")
            yield from table.__rich_console__(console, options)


class Blocks(Struct, frozen=True):
    """Rows with their name in a line, and the rest below it."""

    names: Sequence[str]  # of each row
    rest: Sequence[Sequence[tuple[str, Drawn]]]  # of each its other cells, with what stands before them

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        paint = _Paint(console)
        room = options.max_width - INDENT
        for name, cells in zip(self.names, self.rest, strict=True):
            for line in wrapped([(name, _HEAD)], options.max_width, console):
                yield from paint.line(line)
            pieces: list[Piece] = []
            plain = ""
            for title, cell in cells:
                plain += f", {title}" if plain or pieces else title
                if isinstance(cell, str):
                    plain += cell
                else:
                    pieces += [(plain, ""), (cell.text, cell.fill)]
                    plain = ""
            pieces.append((plain, ""))
            for line in wrapped(pieces, room, console) if room > 0 else ():
                yield from paint.line([(" " * INDENT, ""), *_filled(line, room)])


class _Place(NamedTuple):
    """Where a column's cells stand: blanks, the text, blanks; a column without room for a text is blank."""

    left: int
    width: int
    right: int
    total: int


class _Paint:
    """Pieces as segments; what has no style is one segment as far as it goes."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._styles: dict[str, Style] = {}

    def piece(self, text: str, style: str) -> Segment:
        if style not in self._styles:
            self._styles[style] = self.console.get_style(style)
        return Segment(text, self._styles[style])

    def line(self, pieces: Iterable[Piece]) -> Iterator[Segment]:
        joined = last = ""
        for text, style in pieces:
            if style != last and text:
                if joined:
                    yield self.piece(joined, last) if last else Segment(joined)
                joined, last = "", style
            joined += text
        if last:
            yield self.piece(joined, last)
            joined = ""
        yield Segment(joined + "\n")


def text_of(cell: Drawn) -> str:
    """A cell without its styles."""
    return cell if isinstance(cell, str) else cell.text


def _cell_lines(cell: Drawn, right: bool, width: int, console: Console) -> list[list[Piece]]:
    pieces, fill = ([(cell, "")], "") if isinstance(cell, str) else (list(cell.pieces), cell.fill)
    lines = wrapped(pieces, width, console, strip=right)
    return [_filled(line, width, fill, right=right) for line in lines]


def columns(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return len(text) if text.isascii() else cell_len(text)


def wrapped(pieces: list[Piece], width: int, console: Console, *, strip: bool = False) -> list[list[Piece]]:
    """The pieces as lines of so many columns at the most, at least 1; most texts fit, and need none of rich's objects.

    Args:
        strip: no blanks at the end of a line; else those only that do not fit there.
    """
    text = "".join(part for part, _ in pieces)
    if columns(text) <= width and not (strip and text[-1:].isspace()):
        return [pieces]
    whole = Text(text) if len(pieces) == 1 else Text.assemble(*pieces)
    lines = whole.wrap(console, width, overflow="fold")
    for line in lines:
        if strip:
            line.rstrip()
    if len(pieces) == 1:
        return [[(line.plain, pieces[0][1])] for line in lines]
    return [[(part.text, str(part.style or "")) for part in line.render(console)] for line in lines]


def _filled(line: list[Piece], width: int, fill: str = "", *, right: bool = False) -> list[Piece]:
    blanks = (" " * (width - sum(columns(text) for text, _ in line)), fill)
    return [blanks, *line] if right else [*line, blanks]


def _narrowed(natural: Sequence[int], room: int) -> list[int]:
    """The columns' widths when all of them have so much room: the widest ones are made narrower, as rich does it."""
    widths = [min(width, room) or 1 for width in natural]
    if sum(widths) <= room:
        return widths
    while (excess := sum(widths) - room) > 0:
        widest = max(widths)
        next_widest = max((width for width in widths if width != widest), default=0)
        if not widest:
            break
        most = min(excess, widest - next_widest)
        widths = _reduced(widths, [most if width == widest else 0 for width in widths], excess)
    return [min(width, most) for width, most in zip(widths, natural, strict=True)]


def _reduced(widths: Sequence[int], most: Sequence[int], excess: int) -> list[int]:
    """Each width less its even share of the excess, and no less than it may lose."""
    shares = sum(map(bool, most))
    found = []
    for width, limit in zip(widths, most, strict=True):
        lost = 0
        if limit:
            lost = min(limit, round(excess / shares))
            excess -= lost
            shares -= 1
        found.append(width - lost)
    return found
