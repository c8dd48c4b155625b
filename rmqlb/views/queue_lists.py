"""Tables whose rows are lists of queues: how many of them a screen has room for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

A_LINE = 28
"""Letters of a list that a terminal of 100 columns shows in a line, beside two long client IDs."""


def fitting(lists: Sequence[str], badness: Sequence[float], lines: int) -> tuple[int, ...] | None:
    """The places of the rows that fit into so many lines, the worst first; at least one, and None when all do.

    >>> fitting(["a", "b" * 50, "c"], [0, 5, 1], 3), fitting(["a", "b"], [0, 0], 2)
    ((1, 2), None)
    """
    ordered = sorted(range(len(lists)), key=lambda at: -badness[at])
    ends = list(accumulate(max(-(-len(lists[at]) // A_LINE), 1) for at in ordered))
    room = max(sum(end <= lines for end in ends), 1)
    return None if room >= len(lists) else tuple(sorted(ordered[:room]))
