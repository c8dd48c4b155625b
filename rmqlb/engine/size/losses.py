"""Which consumers are lost at once: of strategies that look at IDs each loss counts, of the others only how many."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

from rmqlb.engine.randomness import Draws, stream_key

MOST_LOSSES = 200
"""Of one size and one number of lost consumers that are looked at."""
_THREAD = 20


def counted(consumers: int, number: int) -> bool:
    """Every loss of so many consumers can be looked at."""
    return comb(consumers, number) <= MOST_LOSSES


def losses(consumers: int, number: int, seed: int) -> Iterator[tuple[int, ...]]:
    """Which of the consumers, by place, are lost together: every choice, or of too many some, drawn.

    >>> list(losses(3, 2, seed=1))
    [(0, 1), (0, 2), (1, 2)]
    """
    if counted(consumers, number):
        yield from combinations(range(consumers), number)
        return
    draws = Draws(stream_key(seed, consumers, _THREAD))
    for _ in range(MOST_LOSSES):
        taken: set[int] = set()
        while len(taken) < number:
            taken.add(draws.below(consumers))
        yield tuple(sorted(taken))
