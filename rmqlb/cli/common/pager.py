"""Long tables on a terminal go through a pager: that of RMQLB_PAGER, else of PAGER, else less.

What it is given has no other escape sequences than rich's colours: names are made harmless before.
"""

from __future__ import annotations

import os
import pydoc
import re
import shutil
from collections.abc import Callable

_COLOUR = re.compile("\x1b\\[[0-9;]*m")


def page(text: str, write: Callable[[str], None]) -> None:
    """Show a text on the terminal, through the pager when it is longer than the screen.

    `cat`, an empty name, a program that is not there and a dumb terminal mean no pager.
    """
    command = os.environ.get("RMQLB_PAGER", os.environ.get("PAGER", "less"))
    program = command.split(maxsplit=1)[:1] or ["cat"]
    wanted = program != ["cat"] and shutil.which(program[0]) and os.environ.get("TERM", "dumb") != "dumb"
    if wanted and _is_long(text):
        os.environ.setdefault("LESS", "FRX")  # ends when all fits, lets colours pass, leaves the text where it is
        pydoc.pipepager(text, command)
    else:
        write(text)


def _is_long(text: str) -> bool:
    size = shutil.get_terminal_size()
    width = max(size.columns, 1)
    lines = sum(max(1, -(-len(_COLOUR.sub("", line)) // width)) for line in text.splitlines())
    return lines >= size.lines
