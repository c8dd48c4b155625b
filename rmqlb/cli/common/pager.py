"""Long tables on a terminal go through a pager: that of RMQLB_PAGER, else of PAGER, else less.

What it is given has no other escape sequences than rich's colours: names are made harmless before.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable

from rmqlb.model.finding import Finding

Warn = Callable[[Iterable[Finding]], None]

LESS = "less -FRX"
"""Ends when all fits on one screen, lets colours pass, and leaves the text where it is."""
_COLOUR = re.compile("\x1b\\[[0-9;]*m")


def page(text: str, write: Callable[[str], None], warn: Warn) -> None:
    """Show a text on the terminal, through the pager when it is longer than the screen.

    A pager that is closed early has shown enough. While it runs, Ctrl-C is its own.
    """
    command = _pager() if _is_long(text) else None
    if command is None or not _paged(text, command, warn):
        write(text)


def _pager() -> list[str] | None:
    """The command line of the pager, or None without one: there is none on a dumb terminal, and `cat` is none."""
    if os.environ.get("TERM", "dumb") == "dumb":
        return None
    wanted = os.environ.get("RMQLB_PAGER", os.environ.get("PAGER"))
    try:
        words = shlex.split(LESS if wanted is None else wanted)
    except ValueError:
        words = [wanted or ""]
    return None if words in ([], ["cat"]) else words


def _is_long(text: str) -> bool:
    size = shutil.get_terminal_size()
    lines = 0
    for line in text.splitlines():
        width = len(_COLOUR.sub("", line))
        lines += max(1, -(-width // max(size.columns, 1)))
        if lines >= size.lines:
            return True
    return False


def _paged(text: str, command: list[str], warn: Warn) -> bool:
    environment = {"LESS": "FRX", **os.environ}  # a bare `PAGER=less` gets the options of our own choice
    sys.stdout.flush()
    try:
        pager = subprocess.Popen(  # noqa: S603 - the user's own choice of a program
            command, stdin=subprocess.PIPE, text=True, encoding="utf-8", errors="backslashreplace", env=environment
        )
    except OSError as error:
        if "RMQLB_PAGER" in os.environ or "PAGER" in os.environ:
            warn([Finding("no-pager", f"cannot start {command[0]}: {error.strerror or error}")])
        return False
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pager.communicate(text)
    finally:
        signal.signal(signal.SIGINT, before)
    if pager.returncode not in (0, -signal.SIGINT, 128 + signal.SIGINT):
        how = f"{command[0]} ended with {pager.returncode}; --no-pager shows the result without it"
        warn([Finding("no-pager", how)])
    return True
