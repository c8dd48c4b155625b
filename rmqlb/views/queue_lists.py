"""Tables whose rows are lists of queues, on a screen: how many of them it has room for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

_SCREEN = 100
_LEAST = 24
_GAPS = 22
"""Columns of a sign, two numbers and the blanks between them all."""


def lag_text(lag: int | None) -> str | None:
    """Messages not yet read, as a screen shows them.

    >>> lag_text(1500), lag_text(None)
    ('1,500', None)
    """
    return None if lag is None else f"{lag:,}"


def fitting(
    lists: Sequence[str], badness: Sequence[float], lines: int, *, beside: Iterable[Sequence[str]]
) -> tuple[int, ...] | None:
    """The places of the rows that fit into so many lines of 100 columns, the worst first; None when all do.

    At least one fits.

    Args:
        beside: the client IDs of each row.

    >>> fitting(["a", "b" * 140, "c"], [0, 5, 1], 3, beside=["x", "y", "z"])
    (1, 2)
    >>> fitting(["a", "b"], [0, 0], 2, beside=["x", "y"])
    """
    a_line = max(_SCREEN - _GAPS - max((len(" ".join(ids)) for ids in beside), default=0), _LEAST)
    ordered = sorted(range(len(lists)), key=lambda at: -badness[at])
    ends = list(accumulate(max(-(-len(lists[at]) // a_line), 1) for at in ordered))
    room = max(sum(end <= lines for end in ends), 1)
    return None if room >= len(lists) else tuple(sorted(ordered[:room]))
