"""The help of a command, taken apart: a summary, paragraphs, examples and exit codes.

Rule of this file: the form of the docstrings is what is written here, and a test holds every command to it. The first
paragraph is the summary; `Examples:` opens indented commands; `Exit codes:` lists what the command ends with; a line
that ends in a colon above indented lines opens a list.
"""

from __future__ import annotations

import re

from msgspec import Struct

_EXIT_CODE = re.compile(r"(\d+) ([^,\d][^\d]*?)(?:,\s*(?=\d)|\.?$)", re.DOTALL)


class Listing(Struct, frozen=True):
    """Lines that stand below a heading, each by itself."""

    heading: str
    lines: tuple[str, ...]


class HelpText(Struct, frozen=True):
    """A command's help."""

    summary: str  # one sentence
    details: tuple[str | Listing, ...] = ()  # what follows it, paragraph by paragraph
    examples: tuple[str, ...] = ()  # command lines
    exit_codes: tuple[tuple[int, str], ...] = ()  # code → what it says


def parse_help(text: str) -> HelpText:
    r"""A command's help, taken apart.

    >>> parse_help("Say it.\n\nExamples:\n  rmqlb say\n  --loud\n\nExit codes: 0 done, 2 usage.").examples
    ('rmqlb say --loud',)
    """
    first, *others = [block for block in re.split(r"\n[ \t]*\n", text.strip()) if block.strip()]
    details: list[str | Listing] = []
    examples: list[str] = []
    exit_codes: tuple[tuple[int, str], ...] = ()
    in_examples = False
    for block in others:
        lines = block.split("\n")
        in_examples = lines[0] == "Examples:" or (in_examples and lines[0].startswith("  "))
        if in_examples:
            examples.append(_joined(lines[1:] if lines[0] == "Examples:" else lines))
        elif lines[0].startswith("Exit codes:"):
            exit_codes = _exit_codes(_joined(lines).removeprefix("Exit codes: "))
        else:
            details.append(_block(lines))
    return HelpText(_joined(first.split("\n")), tuple(details), tuple(examples), exit_codes)


def _block(lines: list[str]) -> str | Listing:
    if lines[0].endswith(":") and len(lines) > 1 and all(line.startswith("  ") for line in lines[1:]):
        return Listing(lines[0], tuple(line.strip() for line in lines[1:]))
    return _joined(lines)


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)


def _exit_codes(text: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(code), " ".join(meaning.split())) for code, meaning in _EXIT_CODE.findall(text))
