"""A condition that a user asks to be told about, tried on a result."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct, field


class TriedCondition(Struct, frozen=True):
    """A `--fail-on` condition."""

    text: Annotated[str, "as typed"] = field(name="condition")
    value: Annotated[float | None, "the figure that it looked at; null when it is unknown, or without end"]
    met: Annotated[bool | None, "it is met; null when the figure is unknown"]
