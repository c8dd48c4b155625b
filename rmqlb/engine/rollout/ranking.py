"""Which way to restart a group is the best of those that were tried.

Rule of this file: a choice hurts as much as the time that its queues have a gap or an overlap, summed over
the queues: the 95th percentiles of both, added.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from rmqlb.model.rollout import RolloutChoice

AS_GOOD = 1.1
"""What is no more than so many times the least is as good: trials tell no finer."""


def ranked(choices: Sequence[RolloutChoice]) -> list[RolloutChoice]:
    """The choices, each tried as often, at least one: the best first and marked.

    The best choice settles in the most trials; of those it is the quickest among the ones that hurt no more than a
    tenth above the least, and if others are as quick within a tenth, the one of them that hurts least. The others
    follow by how much they hurt, then by the longest window, then by the time they take.
    """
    by_hurt = sorted(choices, key=_rank)
    least = by_hurt[0]
    as_good = [
        choice
        for choice in by_hurt
        if _not_converged(choice) == _not_converged(least) and hurt_ms(choice) <= AS_GOOD * hurt_ms(least)
    ]
    quickest = min(_takes(choice) for choice in as_good)
    best = next(choice for choice in as_good if _takes(choice) <= AS_GOOD * quickest)
    others = [choice for choice in by_hurt if choice is not best]
    return [replace(best, best=True), *others]


def hurt_ms(choice: RolloutChoice) -> float:
    """Queue-time in gaps and in overlaps: the 95th percentiles of both, added."""
    found = choice.figures
    return round(found.total_gap_ms.p95 + found.total_overlap_ms.p95, 3)


def _rank(choice: RolloutChoice) -> tuple[int, float, float, float]:
    longest = max(choice.figures.longest_gap_ms.p95, choice.figures.longest_overlap_ms.p95)
    return _not_converged(choice), hurt_ms(choice), longest, _takes(choice)


def _not_converged(choice: RolloutChoice) -> int:
    return choice.trials - choice.converged


def _takes(choice: RolloutChoice) -> float:
    return float("inf") if choice.takes_ms is None else choice.takes_ms
