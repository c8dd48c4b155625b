"""Styled text in lines, broken where rich breaks it, without its objects: most texts fit and need none of that.

Rule of this file: texts are of one line, and nothing in them is invisible (`text.visible` has seen to it).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len, chop_cells, set_cell_size

Piece = tuple[str, str]
"""A text and the name of its style, which is empty for none."""
_WORD = re.compile(r"\s*\S+\s*")


def columns(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return len(text) if text.isascii() else cell_len(text)


def fits(text: str, width: int) -> bool:
    """The text is no longer than so many columns."""
    return len(text) <= width and (text.isascii() or cell_len(text) <= width)


def wrapped(pieces: Sequence[Piece], width: int, *, strip: bool = False) -> list[list[Piece]]:
    """The pieces as lines of so many columns at the most, as `rich.text.Text.wrap` folds them.

    Args:
        width: at least 1.
        strip: no blanks at the end of a line; else those only that do not fit there.
    """
    text = "".join(part for part, _ in pieces)
    ends = [*_breaks(text, width), len(text)] if not fits(text, width) else [len(text)]
    lines = []
    start = 0
    for end in ends:
        line = text[start:end]
        bare = line.rstrip()
        line = bare if strip else line[: max(len(bare), min(len(line), width))]
        lines.append(_styled(pieces, start, line if columns(line) <= width else set_cell_size(line, width)))
        start = end
    return lines


def _breaks(text: str, width: int) -> list[int]:
    """Where the lines after the first begin: before a word that does not fit, and inside one that fits into no line."""
    found = []
    used = 0
    for match in _WORD.finditer(text):
        word, start = match[0], match.start()
        needed = columns(word.rstrip())
        if needed > width:
            for line in chop_cells(word, width):
                if start:
                    found.append(start)
                start += len(line)
                used = columns(line)
        elif needed > width - used and used and start:
            found.append(start)
            used = columns(word)
        elif needed <= width - used:
            used += columns(word)
    return found


def _styled(pieces: Sequence[Piece], start: int, line: str) -> list[Piece]:
    """The line with the styles that the pieces have from there on."""
    if len(pieces) == 1:
        return [(line, pieces[0][1])]
    found = []
    at = 0
    for part, style in pieces:
        begin, end = max(at - start, 0), min(at + len(part) - start, len(line))
        if begin < end:
            found.append((line[begin:end], style))
        at += len(part)
    return found
