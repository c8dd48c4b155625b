"""What several results have."""

from __future__ import annotations

from typing import TypedDict


class ConditionData(TypedDict):
    """A `--fail-on` condition.

    Attributes:
        condition: as typed.
        value: the figure that it looked at; null when it is unknown, or without end.
        met: it is met; null when the figure is unknown.
    """

    condition: str
    value: float | None
    met: bool | None
