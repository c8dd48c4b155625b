"""Which way to restart a group is the best of those that were tried.

Rule of this file: a choice hurts as much as the time that its queues are without owner or with several, summed over
the queues: the 95th percentiles of both, added.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from rmqlb.model.rollout import RolloutChoice

AS_GOOD = 1.1
"""What is no more than so many times the least is as good: trials tell no finer."""


def ranked(choices: Sequence[RolloutChoice]) -> list[RolloutChoice]:
    """The choices, each tried as often, at least one: the best first and marked."""
    by_hurt = sorted(choices, key=_rank)
    least = by_hurt[0]
    as_good = [
        choice
        for choice in by_hurt
        if _unsettled(choice) == _unsettled(least) and hurt_us(choice) <= AS_GOOD * hurt_us(least)
    ]
    quickest = min(_takes(choice) for choice in as_good)
    best = next(choice for choice in as_good if _takes(choice) <= AS_GOOD * quickest)
    others = [choice for choice in by_hurt if choice is not best]
    return [replace(best, best=True), *others]


def hurt_us(choice: RolloutChoice) -> float:
    """Queue-time without owner or with several: the 95th percentiles of both, added."""
    spreads = choice.trials.spreads
    return spreads["none_us"].p95 + spreads["several_us"].p95


def _rank(choice: RolloutChoice) -> tuple[int, float, float, float]:
    spreads = choice.trials.spreads
    longest = max(spreads["longest_none_us"].p95, spreads["longest_several_us"].p95)
    return _unsettled(choice), hurt_us(choice), longest, _takes(choice)


def _unsettled(choice: RolloutChoice) -> int:
    return choice.trials.trials - choice.trials.settled


def _takes(choice: RolloutChoice) -> float:
    return float("inf") if choice.takes_us is None else choice.takes_us
