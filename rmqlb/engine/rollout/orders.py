"""In which order members change, so that what their stages cost is least."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct

_ROUNDS = 30
_STEPS = 3_000_000


class PairCosts(Struct, frozen=True):
    """What each stage costs, when no more than two members at a time have to do with one another."""

    constant: int  # in every stage
    single: Sequence[int]  # member → in addition when it has changed
    pair: Sequence[Sequence[int]]  # member → member → in addition when both have; symmetric


def cost_of_each(costs: PairCosts) -> list[int]:
    """What every stage costs, by its bit mask.

    >>> cost_of_each(PairCosts(0, (1, 1), ((0, -2), (-2, 0))))  # two members that swap one queue
    [0, 1, 1, 0]
    """
    stages = [costs.constant]
    for member, alone in enumerate(costs.single):
        gains = [alone]
        for other in range(member):
            both = costs.pair[member][other]
            gains += [gain + both for gain in gains]
        stages += [cost + gain for cost, gain in zip(stages, gains, strict=True)]
    return stages


def least_order(cost_of: Sequence[int], at_once: int = 1) -> list[int]:
    """The order whose stages between the first change and the last cost least in all, found among all orders.

    `cost_of` has every stage by its bit mask. Of equal orders the one that keeps members in order from the last on.

    >>> least_order([0, 3, 1, 2, 5, 6, 2, 0])
    [1, 0, 2]
    """
    full = len(cost_of) - 1
    least = [0] * len(cost_of)
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
    order = []
    stage = full
    while stage:
        bits = [1 << member for member in reversed(range(stage.bit_length())) if stage >> member & 1]
        last = min(bits, key=lambda bit: least[stage ^ bit])
        order.append(last.bit_length() - 1)
        stage ^= last
    return order[::-1]


def inserted_order(costs: PairCosts) -> list[int]:
    """A good order, which need not be the best: members are put where they cost least until no one gains by it.

    For more members than all orders can be searched for. Two starts, the better end.
    """
    ends = [improved_order(start, costs) for start in (list(range(len(costs.single))), _greedy(costs))]
    return min(ends, key=lambda order: order_cost(order, costs))


def improved_order(start: Sequence[int], costs: PairCosts) -> list[int]:
    """The order after each member in turn was put where it costs least, until no one gains by it (or for 30 rounds).

    Of more than some 300 members there are fewer rounds, so that it takes a second or so.
    """
    order = list(start)
    gains = _gains(order, costs)
    rounds = max(2, min(_ROUNDS, _STEPS // len(order) ** 2))
    for _ in range(rounds):
        if not sum(_put_best(member, order, gains, costs) for member in range(len(order))):
            break
    return order


def order_cost(order: Sequence[int], costs: PairCosts) -> int:
    """What the stages between the first change and the last cost in all, one change at a time."""
    gains = _gains(order, costs)
    stages = list(accumulate((gains[member] for member in order), initial=costs.constant))
    return sum(stages[1:-1])


def _gains(order: Sequence[int], costs: PairCosts) -> list[int]:
    """Member → what its change adds to the stage before it."""
    gains = [0] * len(order)
    for place, member in enumerate(order):
        row = costs.pair[member]
        gains[member] = costs.single[member] + sum(row[other] for other in order[:place])
    return gains


def _greedy(costs: PairCosts) -> list[int]:
    gains = list(costs.single)
    left = list(range(len(gains)))
    order = []
    while left:
        best = min(left, key=lambda member: gains[member])
        left.remove(best)
        order.append(best)
        for member in left:
            gains[member] += costs.pair[member][best]
    return order


def _put_best(member: int, order: list[int], gains: list[int], costs: PairCosts) -> bool:
    """Move the member to where it costs least, if that is less than now.

    To let it change one place later costs what the other adds without it, less what it adds itself.
    """
    row, was = costs.pair[member], order.index(member)
    order.pop(was)
    own, cost = costs.single[member], 0
    totals = [0]
    for place, other in enumerate(order):
        cost += gains[other] - (row[other] if place >= was else 0) - own
        own += row[other]
        totals.append(cost)
    best = min(totals)
    place = was if totals[was] == best else totals.index(best)
    order.insert(place, member)
    for other in order[place + 1 : was + 1]:
        gains[other] += row[other]
    for other in order[was:place]:
        gains[other] -= row[other]
    gains[member] = costs.single[member] + sum(row[other] for other in order[:place])
    return place != was
