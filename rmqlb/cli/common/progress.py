"""What is being done, on stderr: one line that is rewritten on a terminal, and vanishes.

A line must fit the terminal, for a carriage return takes back no line above it.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Literal, Self

from rmqlb.views.formats.text import cut_to_width, visible, width

_USUAL_WIDTH = 80


class Progress:
    """Shows on stderr what is done, how far, and the time left: in a line (live), or in a line per stage."""

    def __init__(self, manner: Literal["live", "stages", "silent"], verb: str = "reading") -> None:
        self._verb = verb
        self._manner = manner
        self._stage = ""
        self._began = 0.0
        self._shown = 0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show that the next of `total` parts is under way; 0 is an unknown total."""
        if self._manner == "silent":
            return
        now = time.monotonic()
        if what != self._stage:
            self._stage, self._began = what, now
            if self._manner == "stages":
                sys.stderr.write(visible(f"{self._verb} {what}{f': {total}' if total else ''}") + "\n")
        if self._manner == "live":
            count = f": {min(done + 1, total)} of {total}" if total else f": {done + 1}" if done else ""
            left = (now - self._began) / done * (total - done) if done and total else 0.0
            end = f"{count}, about {left:.0f} s left" if left >= 1 else count
            room = _room()
            name = cut_to_width(visible(f"{self._verb} {what}"), room - len(end))
            self._write(cut_to_width(f"{name}{end}", room))

    def clear(self) -> None:
        if self._shown:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def _write(self, line: str) -> None:
        now = width(line)
        sys.stderr.write("\r" + line + " " * (self._shown - now))
        sys.stderr.flush()
        self._shown = now


def _room() -> int:
    """How wide a line may be: the cursor stays on it."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return (columns or _USUAL_WIDTH) - 1
