"""The help pages, made ahead of time by `python -m tools.manual` from the command tree: help imports none of it.

Rules of this folder:
- A page is `COMMAND.txt`, `GROUP.COMMAND.txt` or, of the program, `rmqlb.txt`, of three parts with a form feed between
  them: what `--help` shows first, what it ends with, and what `--help-all` has instead of that.
- Whoever is asked for help in a shell waits for this module: it imports next to nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from rmqlb.cli.common.colour import has_colour
from rmqlb.version import __version__

PROGRAM = "rmqlb"
PARTS = "\f\n"
_HEADING = re.compile(r"^(\S.*)(?=\n  )", re.MULTILINE)
_FOLDER = os.path.dirname(__file__)


def page_file(path: Sequence[str]) -> str:
    """The file of a command's page; the path is its words as typed behind the program's name."""
    return f"{'.'.join(path) or PROGRAM}.txt"


def help_page(path: Sequence[str], *, everything: bool = False) -> str | None:
    """What `--help`, or `--help-all`, shows of a command; None when there is no such command."""
    if not all(re.fullmatch(r"[a-z][a-z-]*", word) for word in path) or list(path) == [PROGRAM]:
        return None
    try:
        with open(os.path.join(_FOLDER, page_file(path)), encoding="utf-8") as file:
            own, common, rest = file.read().split(PARTS)
    except FileNotFoundError:
        return None
    text = own + (rest if everything else common)
    return _HEADING.sub("\x1b[1m\\1\x1b[0m", text) if has_colour("auto") else text


def quick_answer(arguments: Sequence[str]) -> str | None:
    """What a line prints that asks for help or the version and nothing else; None of another one, which is parsed."""
    if not arguments:
        return None
    *path, last = arguments
    if not path and last in ("-V", "--version"):
        return f"{PROGRAM} {__version__}\n"
    if last in ("-h", "--help", "--help-all"):
        return help_page(path, everything=last == "--help-all")
    return None
