"""A condition that a user asks to be told about, tried on a result."""

from __future__ import annotations

from msgspec import Struct, field


class TriedCondition(Struct, frozen=True):
    """A `--fail-on` condition.

    Attributes:
        text: as typed.
        value: the figure that it looked at; null when it is unknown, or without end.
        met: it is met; null when the figure is unknown.
    """

    text: str = field(name="condition")
    value: float | None
    met: bool | None
