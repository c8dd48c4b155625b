"""Tables whose rows are lists of queues, on a screen: how many of them it has room for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from textwrap import wrap

from rmqlb.model.finding import ERROR, Severity
from rmqlb.views.report import Cell, Column, attribute_of

_SCREEN = 100
_LEAST = 18
_UNASSIGNED = ("(unassigned)",)
_COLUMN = 13
"""Columns of a number and of the blanks around it and the client IDs."""


def lag_column(title: str, key: str, items: Sequence[object], fold: int) -> Column:
    """Messages not yet read, with their thousands apart; seen where there are any."""
    field = attribute_of(key)

    def text(item: object) -> Cell:
        lag = getattr(item, field)
        return None if lag is None else f"{lag:,}"

    return Column(title, key, "number", shown=any(getattr(item, field) for item in items), fold=fold, of=text)


def severity_of(owners: Sequence[str], *, broadcasting: bool) -> Severity | None:
    """How grave the owners of a queue are: an error where there is none, or several of which one has to be."""
    return ERROR if not owners or (len(owners) > 1 and not broadcasting) else None


def place_of(owners: Iterable[str], places: Mapping[str, int]) -> tuple[int, ...]:
    """Where a queue with these owners stands among others, in the order of consumers; what is none stands last."""
    return tuple(places.get(owner, len(places)) for owner in owners)


def fitting(
    lists: Sequence[str],
    badness: Sequence[float],
    lines: int,
    *,
    beside: Sequence[Iterable[Sequence[str]]],
    more: int = 4,
) -> tuple[int, ...] | None:
    """The places of the rows that fit into so many lines of 100 columns, the worst first; None when all do.

    At least one fits, and none is left out where the line that counts it would be as long.

    Args:
        beside: columns of owners.
        more: what further columns take.

    >>> fitting(["a", "b" * 140, "c", "d"], [0, 5, 1, 0], 3, beside=[["xyz"] * 4])
    (1, 2)
    >>> fitting(["a", "b", "c"], [0, 0, 0], 2, beside=[])
    """
    owners = sum(max(len(" ".join(each)) for each in (*column, _UNASSIGNED)) for column in beside)
    room = max(_SCREEN - _COLUMN - more - owners, _LEAST)
    ordered = sorted(range(len(lists)), key=lambda at: -badness[at])
    ends = list(accumulate(max(len(wrap(lists[at], room)), 1) for at in ordered))
    fit = max(sum(end <= lines for end in ends), 1)
    return None if not ends or ends[-1] <= lines + 1 else tuple(sorted(ordered[:fit]))
