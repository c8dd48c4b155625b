"""A moment as every text of rmqlb has it."""

from __future__ import annotations

from datetime import datetime


def utc_text(at: datetime) -> str:
    """ISO 8601, with Z for UTC.

    >>> from datetime import UTC
    >>> utc_text(datetime(2026, 11, 1, 12, tzinfo=UTC))
    '2026-11-01T12:00:00Z'
    """
    return at.isoformat().replace("+00:00", "Z")
