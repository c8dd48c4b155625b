"""Texts from the data, and numbers in sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rmqlb.views.formats.text import clip, fit_for_xml


def shown(text: str, longest: int) -> str:
    r"""A text with nothing in it that steers a reader's eye or that XML refuses, its two ends when it is long.

    >>> shown("a\x1b[31m\u202e\uffff", 48), shown("abcdefghij", 7)
    ('a\\x1b[31m\\u202e\\uffff', 'abcd…ij')
    """
    return clip(fit_for_xml(text), longest)


def number_of(number: int, noun: str) -> str:
    """A number and what is counted.

    >>> number_of(0, "group"), number_of(1, "group"), number_of(1200, "group")
    ('no group', '1 group', '1,200 groups')
    """
    return f"{'no' if number == 0 else f'{number:,}'} {noun if number in (0, 1) else f'{noun}s'}"


def capitalize_first(sentence: str) -> str:
    """The sentence with its first letter as it begins one; `str.capitalize` would change the other letters."""
    return sentence[:1].upper() + sentence[1:]


def labels_of(rows: Sequence[Any], field: str) -> list[str]:
    """What a bar of each row is called: a field of it, and its cluster when there are several.

    >>> from rmqlb.pipeline.report.subject_history import Flapping
    >>> labels_of([Flapping("east", "a", 1, 1, 1, 1, 1.0), Flapping("west", "a", 1, 1, 1, 1, 1.0)], "group")
    ['a · east', 'a · west']
    """
    names = [getattr(row, field) for row in rows]
    if len({getattr(row, "cluster", None) for row in rows}) < 2:
        return names
    return [f"{name} · {row.cluster}" for name, row in zip(names, rows, strict=True)]


def value_of(row: Any, of: str | Callable[[Any], Any]) -> Any:
    """A field of a row, or what is made of the row."""
    return getattr(row, of) if isinstance(of, str) else of(row)


def share_of(part: float | None, whole: float | None) -> float | None:
    """A part of a whole as a fraction; None when it is not known, or of nothing."""
    return part / whole if part is not None and whole else None


def camel_case(words: str) -> str:
    """Words as a key of JSON.

    >>> camel_case("quarantined documents")
    'quarantinedDocuments'
    """
    head, *rest = words.split()
    return head + "".join(map(str.capitalize, rest))
