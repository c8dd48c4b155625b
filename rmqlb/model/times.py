"""Times as every result of rmqlb has them."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_text(at: datetime) -> str:
    """ISO 8601, with Z for UTC."""
    return at.isoformat().replace("+00:00", "Z")


def in_utc(at: datetime | None) -> datetime | None:
    """A time without a zone is UTC."""
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


def milliseconds(us: int) -> float:
    """A whole number where possible."""
    return us // 1000 if us % 1000 == 0 else us / 1000


def milliseconds_if_known(us: int | None) -> float | None:
    return None if us is None else milliseconds(us)


class Microseconds:
    """A property of a Struct: a field in milliseconds as whole microseconds."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: object, kind: object = None) -> int:
        milliseconds: float = getattr(owner, self.name)
        return round(milliseconds * 1000)
