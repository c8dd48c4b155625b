"""Orders of changes with the least cost, computed on numbers only, by the cost of each stage or step.

Consumers are numbered, and a stage is the bit mask of the changed consumers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, combinations
from math import comb

from msgspec import Struct

_ROUNDS, _STEPS = 30, 3_000_000


class PairCosts(Struct, frozen=True):
    """The costs of stages in which each queue concerns at most two consumers."""

    constant: int  # of every stage
    single: Sequence[int]  # consumer → added when it has changed
    pair: Sequence[Sequence[int]]  # consumer → consumer → added when both have; symmetric


def cost_of_each(costs: PairCosts) -> list[int]:
    """The cost of every stage, by its bit mask.

    >>> cost_of_each(PairCosts(0, (1, 1), ((0, -2), (-2, 0))))  # two consumers that swap one queue
    [0, 1, 1, 0]
    """
    stages = [costs.constant]
    for consumer, alone in enumerate(costs.single):
        gains = [alone]
        for other in range(consumer):
            both = costs.pair[consumer][other]
            gains += [gain + both for gain in gains]
        stages += [cost + gain for cost, gain in zip(stages, gains, strict=True)]
    return stages


def least_order(cost_of: Sequence[int], at_once: int = 1) -> list[int]:
    """The order whose stages between the first change and the last cost least in total.

    `cost_of` has every stage by its bit mask. Among equal orders, consumers stay in order from the last on.

    >>> least_order([0, 3, 1, 2, 5, 6, 2, 0])
    [1, 0, 2]
    """
    full, least = len(cost_of) - 1, [0] * len(cost_of)
    for stage in range(1, full):
        rest, bit = stage & (stage - 1), stage & -stage
        smallest = least[stage ^ bit]
        while rest:
            bit = rest & -rest
            if least[stage ^ bit] < smallest:  # noqa: PLR1730 (this loop is the search; min doubles it)
                smallest = least[stage ^ bit]
            rest ^= bit
        rests = stage.bit_count() % at_once == 0
        least[stage] = smallest + cost_of[stage] if rests else smallest
    order, stage = [], full
    while stage:
        bits = [1 << consumer for consumer in reversed(range(stage.bit_length())) if stage >> consumer & 1]
        last = min(bits, key=lambda bit: least[stage ^ bit])
        order.append(last.bit_length() - 1)
        stage ^= last
    return order[::-1]


def steps_of(number: int, at_once: int) -> int:
    """The steps that `cheapest_steps` compares, two for each stage."""
    left = ((done, number - done) for done in range(0, number, at_once))
    return sum(comb(number, done) * (1 + comb(rest, min(at_once, rest))) for done, rest in left)


def cheapest_steps(number: int, at_once: int, cost_of: Callable[[int, int], int]) -> tuple[list[int], int]:
    """The order whose steps cost least in total, and the cost; `cost_of` gets the changed and the absent."""
    best: dict[int, tuple[int, list[int]]] = {0: (0, [])}
    for done in range(0, number, at_once):
        longer: dict[int, tuple[int, list[int]]] = {}
        for changed, (cost, order) in best.items():
            left = [consumer for consumer in range(number) if not changed >> consumer & 1]
            for group in combinations(left, min(at_once, number - done)):
                away = sum(1 << consumer for consumer in group)
                total = cost + cost_of(changed, away)
                if changed | away not in longer or total < longer[changed | away][0]:
                    longer[changed | away] = total, [*order, *group]
        best = longer
    ((cost, order),) = best.values()
    return order, cost


def inserted_order(costs: PairCosts) -> list[int]:
    """A good order for many consumers: the better of two starts, improved until no move of one consumer helps."""
    starts = list(range(len(costs.single))), _greedy(costs)
    return min((_improved(start, costs) for start in starts), key=lambda order: order_cost(order, costs))


def order_cost(order: Sequence[int], costs: PairCosts) -> int:
    """The total cost of the stages between the first change and the last, one change at a time."""
    gains = _gains(order, costs)
    stages = list(accumulate((gains[consumer] for consumer in order), initial=costs.constant))
    return sum(stages[1:-1])


def _gains(order: Sequence[int], costs: PairCosts) -> list[int]:
    """Consumer → the cost that its change adds to the stage before it."""
    gains = list(costs.single)
    for place, consumer in enumerate(order):
        row = costs.pair[consumer]
        gains[consumer] += sum(row[other] for other in order[:place])
    return gains


def _greedy(costs: PairCosts) -> list[int]:
    gains, left, order = list(costs.single), list(range(len(costs.single))), []
    while left:
        best = min(left, key=lambda consumer: gains[consumer])
        left.remove(best)
        order.append(best)
        for consumer in left:
            gains[consumer] += costs.pair[consumer][best]
    return order


def _improved(order: list[int], costs: PairCosts) -> list[int]:
    """Put each consumer in turn where it costs least, for at most 30 rounds (fewer beyond some 300 consumers)."""
    gains = _gains(order, costs)
    for _ in range(max(2, min(_ROUNDS, _STEPS // len(order) ** 2))):
        if not sum(_put_best(consumer, order, gains, costs) for consumer in range(len(order))):
            break
    return order


def _put_best(consumer: int, order: list[int], gains: list[int], costs: PairCosts) -> bool:
    """Move the consumer to its cheapest place, if cheaper than now.

    A change one place later costs what the other adds without the consumer, less what the consumer adds.
    """
    row, was = costs.pair[consumer], order.index(consumer)
    order.pop(was)
    own, totals = costs.single[consumer], [0]
    for place, other in enumerate(order):
        totals.append(totals[-1] + gains[other] - (row[other] if place >= was else 0) - own)
        own += row[other]
    best = min(totals)
    place = was if totals[was] == best else totals.index(best)
    order.insert(place, consumer)
    for other in order[place + 1 : was + 1]:
        gains[other] += row[other]
    for other in order[was:place]:
        gains[other] -= row[other]
    gains[consumer] = costs.single[consumer] + sum(row[other] for other in order[:place])
    return place != was
