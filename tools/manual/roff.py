r"""A page of the manual, in the man(7) macros.

Rule of this file: text goes in as text. What roff would read as a request, an escape or a hyphen that may be typeset as
another character is escaped here, and nowhere else; only `bold` and `italic` give text that is marked already.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from rmqlb.version import VERSION_DATE, __version__

_ESCAPES = {
    "\\": "\\e",
    "-": "\\-",
    "'": "\\(aq",
    "`": "\\(ga",
    "^": "\\(ha",
    "~": "\\(ti",
    '"': "\\(dq",
    "…": "...",
    "→": "\\(->",
    "×": "\\(mu",
    "±": "\\(+-",
    "−": "\\-",
    "–": "\\-",
}
_LONGEST_LINE = 78


class Marked(str):
    """Text in which everything is escaped."""

    __slots__ = ()


def escaped(text: str) -> Marked:
    r"""The text as roff that prints it.

    >>> escaped(r".it's a \n")
    '.it\\(aqs a \\en'
    """
    if isinstance(text, Marked):
        return text
    result = "".join(_ESCAPES.get(char, char) for char in text)
    if not (result.isascii() and result.isprintable()):
        raise ValueError(f"no roff for a character of {text!r}")
    return Marked(result)


def bold(text: str) -> Marked:
    """The text in bold."""
    return Marked(f"\\fB{escaped(text)}\\fR")


def italic(text: str) -> Marked:
    """The text in italics: what stands for something else."""
    return Marked(f"\\fI{escaped(text)}\\fR")


def coded(text: str) -> Marked:
    r"""Prose in which backquotes stand around what is typed.

    >>> print(coded("run `x`"))
    run \fBx\fR
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escaped(text)
    return Marked("".join(bold(part) if place % 2 else escaped(part) for place, part in enumerate(parts)))


class Page:
    """A page under construction.

    Args:
        name: as in `man NAME`.
        section: 1, 5 or 7.
        summary: what whatis(1) shows, without a full stop.
    """

    def __init__(self, name: str, section: int, summary: str) -> None:
        self.name = name
        self.section = section
        self._lines = [
            '.\\" Written by python -m tools.manual from the code: change that instead.',
            f'.TH {escaped(name.upper())} {section} "{VERSION_DATE}" "rmqlb {__version__}" "rmqlb manual"',
            ".nh",  # an option's name broken at its hyphen is another option
            ".ad l",
            ".SH NAME",
            *_filled(Marked(f"{escaped(name)} \\- {escaped(summary)}")),
        ]

    @property
    def path(self) -> str:
        """Where it belongs below `man/`."""
        return f"man{self.section}/{self.name}.{self.section}"

    def heading(self, text: str) -> None:
        """A section."""
        self._lines.append(f'.SH "{escaped(text.upper())}"')

    def subheading(self, text: str) -> None:
        """A section of a section."""
        self._lines.append(f'.SS "{escaped(text)}"')

    def paragraph(self, text: str) -> None:
        """Filled text."""
        if not self._lines[-1].startswith((".SH", ".SS")):
            self._lines.append(".PP")
        self._lines += _filled(text)

    def item(self, term: str, *texts: str) -> None:
        """A term, and below it, indented, what it means."""
        self._lines += [".TP", _at_line_start(escaped(term))]
        for place, text in enumerate(texts):
            self._lines += [".IP"] if place else []
            self._lines += _filled(text)

    def verbatim(self, lines: Iterable[str]) -> None:
        """Lines that stay as they are."""
        if not self._lines[-1].startswith((".SH", ".SS")):
            self._lines.append(".PP")
        self._lines += [".RS 4", ".EX", *(_at_line_start(escaped(line)) or "\\&" for line in lines), ".EE", ".RE"]

    def see_also(self, pages: Sequence[tuple[str, int]]) -> None:
        """Other pages."""
        self.heading("See also")
        others = sorted((section, name) for name, section in pages if name != self.name)
        for place, (section, name) in enumerate(others):
            comma = "," if place < len(others) - 1 else ""
            self._lines.append(f".BR {escaped(name)} ({section}){comma}")

    def text(self) -> str:
        """The page."""
        return "\n".join(self._lines) + "\n"


def _filled(text: str) -> list[str]:
    """Lines of a length that a reader of the file likes; roff fills them again."""
    marked = text if isinstance(text, Marked) else coded(text)
    lines = textwrap.wrap(marked, _LONGEST_LINE, break_long_words=False, break_on_hyphens=False)
    return [_at_line_start(line) for line in lines] or ["\\&"]


def _at_line_start(text: str) -> str:
    """A dot or an apostrophe there would be a request."""
    return f"\\&{text}" if text.startswith((".", "'")) else text
