"""Orders of changes: what a stage costs, and the order that costs least."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine.plan_rollout.stages import (
    PairCosts,
    cost_of_each,
    improved_order,
    inserted_order,
    least_order,
    order_cost,
)
from tests.support.mismatches import every_case


@st.composite
def pair_costs(draw: st.DrawFn, most: int = 7) -> PairCosts:
    members = draw(st.integers(1, most))
    numbers = st.integers(-9, 9)
    pair = [[0] * members for _ in range(members)]
    for first in range(members):
        for second in range(first):
            pair[first][second] = pair[second][first] = draw(numbers)
    return PairCosts(draw(numbers), [draw(numbers) for _ in range(members)], pair)


def total(cost_of: Sequence[int], order: Sequence[int], at_once: int = 1) -> int:
    return sum(cost_of[sum(1 << m for m in order[:done])] for done in range(at_once, len(order), at_once))


@given(pair_costs())
def test_a_stage_costs_what_its_members_and_their_pairs_cost(costs: PairCosts) -> None:
    for stage, cost in enumerate(cost_of_each(costs)):
        there = [member for member in range(len(costs.single)) if stage >> member & 1]
        pairs = sum(costs.pair[a][b] for a in there for b in there if a < b)
        assert cost == costs.constant + sum(costs.single[member] for member in there) + pairs


@given(pair_costs(), st.integers(1, 4))
def test_the_least_order_costs_no_more_than_any_other(costs: PairCosts, at_once: int) -> None:
    cost_of = cost_of_each(costs)
    order = least_order(cost_of, at_once)
    assert sorted(order) == list(range(len(costs.single)))
    assert total(cost_of, order, at_once) == min(
        total(cost_of, other, at_once) for other in permutations(range(len(costs.single)))
    )


@given(pair_costs())
def test_the_cost_of_an_order_is_the_sum_of_its_stages(costs: PairCosts) -> None:
    order = list(reversed(range(len(costs.single))))
    assert order_cost(order, costs) == total(cost_of_each(costs), order)


@given(pair_costs(most=9))
def test_no_member_of_an_inserted_order_gains_by_another_place(costs: PairCosts) -> None:
    gains_by_no_move(inserted_order(costs), costs)


@given(pair_costs(most=9), st.randoms(use_true_random=False))
def test_members_are_put_where_they_cost_least_one_after_the_other(costs: PairCosts, shuffled: Random) -> None:
    start = list(range(len(costs.single)))
    shuffled.shuffle(start)
    assert improved_order(start, costs) == improved_slowly(start, costs)


def drawn_costs(drawn: Random) -> PairCosts:
    """Costs in which hardly any two are alike."""
    members = drawn.randint(3, 7)
    pair = [[0] * members for _ in range(members)]
    for first in range(members):
        for second in range(first):
            pair[first][second] = pair[second][first] = drawn.randint(-99, 99)
    return PairCosts(0, [drawn.randint(-99, 99) for _ in range(members)], pair)


def next_adds_least(costs: PairCosts) -> list[int]:
    order: list[int] = []
    while len(order) < len(costs.single):
        added = {
            member: alone + sum(costs.pair[member][other] for other in order)
            for member, alone in enumerate(costs.single)
            if member not in order
        }
        order.append(min(added, key=lambda member: added[member]))
    return order


def test_the_cheaper_end_of_two_starts_is_taken() -> None:
    """The members in their order, and always the one next that adds least."""
    drawn = Random(7)
    for _ in range(300):
        costs = drawn_costs(drawn)
        starts = (list(range(len(costs.single))), next_adds_least(costs))
        ends = [improved_slowly(start, costs) for start in starts]
        assert [improved_order(start, costs) for start in starts] == ends
        assert inserted_order(costs) == min(ends, key=lambda order: order_cost(order, costs))


def improved_slowly(order: list[int], costs: PairCosts) -> list[int]:
    """The same by the cost of whole orders; of equal places the one it has, else the first."""
    while True:
        before = order
        for member in range(len(order)):
            others = [other for other in order if other != member]
            places = [[*others[:place], member, *others[place:]] for place in range(len(order))]
            order = min([order, *places], key=lambda each: order_cost(each, costs))
        if order == before:
            return order


def test_a_round_that_moves_every_member_to_a_later_place_is_not_the_last() -> None:
    """The first round ends at [0, 2, 3, 1], which costs one more than the least of all orders."""
    pair = [[0, 3, -3, 0], [3, 0, 0, -2], [-3, 0, 0, 2], [0, -2, 2, 0]]
    costs = PairCosts(0, [0, 2, -1, -1], pair)
    found = improved_order([3, 0, 1, 2], costs)
    assert order_cost(found, costs) == min(order_cost(order, costs) for order in permutations(range(4))) == -8


def test_a_round_that_moves_members_to_earlier_places_only_is_not_the_last() -> None:
    """The first round ends at [2, 0, 1], whose stages cost −1 and 0; those of [2, 1, 0] cost −1 each."""
    costs = PairCosts(0, [1, 1, -1], [[0, -3, 0], [-3, 0, -1], [0, -1, 0]])
    assert improved_order([0, 1, 2], costs) == [2, 1, 0]
    assert [order_cost(order, costs) for order in ([2, 0, 1], [2, 1, 0])] == [-1, -2]


def gains_by_no_move(order: Sequence[int], costs: PairCosts) -> None:
    assert sorted(order) == list(range(len(costs.single)))
    cost = order_cost(order, costs)
    for member in order:
        others = [other for other in order if other != member]
        for place in range(len(order)):
            assert cost <= order_cost([*others[:place], member, *others[place:]], costs)


@every_case("members", [1, 2, 5, 19, 40])
def test_a_chain_is_put_in_its_order(members: int) -> None:
    """Each member swaps a queue with the next of a shuffled chain: one bad queue a stage is the least."""
    chain = sorted(range(members), key=lambda member: member * 7 % 41)
    pair = [[0] * members for _ in range(members)]
    single = [0] * members
    for first, second in pairwise(chain):
        pair[first][second] = pair[second][first] = -2
        single[first] += 1
        single[second] += 1
    costs = PairCosts(0, single, pair)
    assert order_cost(inserted_order(costs), costs) == members - 1


def test_members_that_have_nothing_to_do_with_one_another_keep_their_order() -> None:
    assert least_order([0] * 16) == [0, 1, 2, 3]
    assert inserted_order(PairCosts(0, [0] * 4, [[0] * 4] * 4)) == [0, 1, 2, 3]
