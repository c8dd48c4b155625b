"""Numbers and lists in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def number_of(number: int, noun: str) -> str:
    """A number and what is counted.

    >>> number_of(0, "group"), number_of(1, "group"), number_of(1200, "group")
    ('no group', '1 group', '1,200 groups')
    """
    return f"{'no' if number == 0 else f'{number:,}'} {noun if number in (0, 1) else f'{noun}s'}"


def capitalize_first(sentence: str) -> str:
    """A sentence with its first letter as it begins one.

    >>> capitalize_first("no group")
    'No group'
    """
    return sentence[:1].upper() + sentence[1:]


def labels_of(rows: Sequence[Any], field: str) -> list[str]:
    """What a bar of each row is called: a field of it, and its cluster when there are several.

    >>> from rmqlb.pipeline.report.values import Flapping
    >>> labels_of([Flapping("east", "a", 1, 1, 1, 1, 1.0), Flapping("west", "a", 1, 1, 1, 1, 1.0)], "group")
    ['a · east', 'a · west']
    """
    names = [getattr(row, field) for row in rows]
    if len({row.cluster for row in rows}) < 2:
        return names
    return [f"{name} · {row.cluster}" for name, row in zip(names, rows, strict=True)]


def total_of(values: Iterable[float | None]) -> float:
    """The sum of what is known."""
    return sum(value for value in values if value is not None)


def share_of(part: float | None, whole: float | None) -> float | None:
    """A part of a whole as a fraction; None when it is not known, or of nothing."""
    return part / whole if part is not None and whole else None
