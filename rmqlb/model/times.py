"""Times as every result of rmqlb has them."""

from __future__ import annotations

from datetime import datetime


def utc_text(at: datetime) -> str:
    """ISO 8601, with Z for UTC.

    >>> from datetime import UTC
    >>> utc_text(datetime(2026, 11, 1, 12, tzinfo=UTC))
    '2026-11-01T12:00:00Z'
    """
    return at.isoformat().replace("+00:00", "Z")


def milliseconds(us: int) -> float:
    """Microseconds as milliseconds, a whole number where they are.

    >>> milliseconds(2_000), milliseconds(1_500)
    (2, 1.5)
    """
    return us // 1000 if us % 1000 == 0 else us / 1000


def milliseconds_if_known(us: int | None) -> float | None:
    """The same; None stays unknown."""
    return None if us is None else milliseconds(us)


class Microseconds:
    """A property of a Struct: a field in milliseconds as whole microseconds, which count exactly."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: object, kind: object = None) -> int:
        milliseconds: float = getattr(owner, self.name)
        return round(milliseconds * 1000)
