"""Figures some of whose parts are not known: None is unknown, and unknown is never 0."""

from __future__ import annotations

from collections.abc import Iterable


def sum_if_known(numbers: Iterable[int | None]) -> int | None:
    """The sum; None when a part of it is unknown.

    >>> sum_if_known([1, 2]), sum_if_known([]), sum_if_known([1, None])
    (3, 0, None)
    """
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total
