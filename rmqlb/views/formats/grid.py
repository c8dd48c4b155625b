"""Tables without frames: columns of even width, for pipes and for markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.views.formats.text import width

_ROOM = 2
"""Blanks that a title has beside it at least."""


def plain_table(titles: Sequence[str], rows: Sequence[Sequence[str]], rights: Sequence[bool]) -> str:
    """Columns two blanks apart below a line of dashes; `rights` are those whose cells stand to the right."""
    widths, lines = _columns(titles, rows, rights)
    dashes = "  ".join("-" * wide for wide in widths)
    head, *others = ("  ".join(line).rstrip() for line in lines)
    return "\n".join((head, dashes, *others))


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]], rights: Sequence[bool]) -> str:
    """A table of GitHub-flavoured markdown."""
    widths, lines = _columns(titles, rows, rights)
    dashes = f"|{'|'.join('-' * (wide + 2) for wide in widths)}|"
    head, *others = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join((head, dashes, *others))


def _columns(
    titles: Sequence[str], rows: Sequence[Sequence[str]], rights: Sequence[bool]
) -> tuple[list[int], list[list[str]]]:
    """How wide each column is, and all lines with their cells at that width."""
    cells = [list(titles), *([cell.strip() for cell in row] for row in rows)]
    sizes = [list(map(width, line)) for line in cells]
    widths = [max(column[0] + _ROOM, *column[1:], 0) for column in zip(*sizes, strict=True)]
    padded = [
        [
            " " * (wide - size) + cell if right and rows else cell + " " * (wide - size)
            for cell, size, wide, right in zip(line, its_sizes, widths, rights, strict=True)
        ]
        for line, its_sizes in zip(cells, sizes, strict=True)
    ]
    return widths, padded
