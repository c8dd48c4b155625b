"""A line of `--watch` in a pipe."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from rmqlb.views.shapes.envelope import ErrorData


class ChangeLine(TypedDict):
    """What is new since the last look.

    Attributes:
        at: when it was seen, ISO-8601 in UTC.
        change: first (a row of the first look), added, changed or removed; stale when a look failed, and fresh when one
            succeeds again.
        row: the row now, as -o jsonl of the command shows it; null when there is none.
        was: the row before; null when there was none.
        error: why it is stale; null otherwise.
    """

    at: str
    change: Literal["first", "added", "changed", "removed", "stale", "fresh"]
    row: dict[str, Any] | None
    was: dict[str, Any] | None
    error: ErrorData | None
