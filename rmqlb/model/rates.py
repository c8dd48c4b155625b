"""Where the rates of messages come from."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct


class RateSource(Struct, frozen=True, rename="camel"):
    """Where the rates come from; a rate that was given wins over an observed one."""

    given: Annotated[tuple[str, ...], "as typed: messages per second of each topic, or of one as TOPIC=R"]
    over_ms: Annotated[float | None, "time between the two samples that give the other rates; null without samples"]
