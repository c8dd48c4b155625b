"""Who is told how far some work is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Progress = Callable[[str, int, int], None]
"""Told about the work: what is being done, how many parts are done, of how many."""


class Done(NamedTuple):
    """How many files, groups, … (`unit`) are done `of` so many; None where only these are known."""

    unit: str
    done: int | None
    of: int


def no_progress(what: str, done: int, total: int) -> None:
    """A `Progress` for those who do not watch."""
