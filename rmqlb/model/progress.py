"""Progress of some work."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]  # the work, the number of parts done, of all


def no_progress(what: str, done: int, total: int) -> None:
    """A `Progress` for those who do not watch."""
