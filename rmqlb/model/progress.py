"""Who is told how far some work is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Told about the work: what is being done, how many parts are done, of how many."""


def no_progress(what: str, done: int, total: int) -> None:
    """A `Progress` for those who do not watch."""
