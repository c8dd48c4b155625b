"""Something worth telling that is not an error: a warning with a code that scripts can match."""

from __future__ import annotations

from msgspec import Struct


class Finding(Struct, frozen=True):
    """Something worth telling that is not an error.

    Attributes:
        code: stable, for scripts; `rmqlb explain CODE` says what it means.
        message: one line for people, naming what it is about.
        group: the consumer group that the message names; null when it names none.
    """

    code: str
    message: str
    group: str | None = None
