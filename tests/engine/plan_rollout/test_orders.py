from collections.abc import Sequence
from itertools import pairwise, permutations

from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine.plan_rollout.orders import PairCosts, cost_of_each, inserted_order, least_order, order_cost
from tests.support.mismatches import every_case


@st.composite
def pair_costs(draw: st.DrawFn, most: int = 7) -> PairCosts:
    consumers = draw(st.integers(1, most))
    numbers = st.integers(-9, 9)
    pair = [[0] * consumers for _ in range(consumers)]
    for first in range(consumers):
        for second in range(first):
            pair[first][second] = pair[second][first] = draw(numbers)
    return PairCosts(draw(numbers), [draw(numbers) for _ in range(consumers)], pair)


def total(cost_of: Sequence[int], order: Sequence[int], at_once: int = 1) -> int:
    return sum(cost_of[sum(1 << m for m in order[:done])] for done in range(at_once, len(order), at_once))


@given(pair_costs())
def test_a_stage_costs_what_its_consumers_and_their_pairs_cost(costs: PairCosts) -> None:
    cost_of = cost_of_each(costs)
    for stage, cost in enumerate(cost_of):
        there = [consumer for consumer in range(len(costs.single)) if stage >> consumer & 1]
        pairs = sum(costs.pair[a][b] for a in there for b in there if a < b)
        assert cost == costs.constant + sum(costs.single[consumer] for consumer in there) + pairs
    order = list(reversed(range(len(costs.single))))
    assert order_cost(order, costs) == total(cost_of, order)


@given(pair_costs(), st.integers(1, 4))
def test_the_least_order_costs_no_more_than_any_other(costs: PairCosts, at_once: int) -> None:
    cost_of = cost_of_each(costs)
    order = least_order(cost_of, at_once)
    assert sorted(order) == list(range(len(costs.single)))
    others = permutations(range(len(costs.single)))
    assert total(cost_of, order, at_once) == min(total(cost_of, other, at_once) for other in others)


@given(pair_costs(most=9))
def test_no_consumer_of_an_inserted_order_gains_by_another_place(costs: PairCosts) -> None:
    order = inserted_order(costs)
    assert sorted(order) == list(range(len(costs.single)))
    for consumer in order:
        others = [other for other in order if other != consumer]
        for place in range(len(order)):
            assert order_cost(order, costs) <= order_cost([*others[:place], consumer, *others[place:]], costs)


@every_case("consumers", [1, 2, 5, 19, 40])
def test_a_chain_is_put_in_its_order(consumers: int) -> None:
    """Each consumer swaps a queue with the next of a shuffled chain: one bad queue a stage is the least."""
    chain = sorted(range(consumers), key=lambda consumer: consumer * 7 % 41)
    pair, single = [[0] * consumers for _ in range(consumers)], [0] * consumers
    for first, second in pairwise(chain):
        pair[first][second] = pair[second][first] = -2
        single[first] += 1
        single[second] += 1
    costs = PairCosts(0, single, pair)
    assert order_cost(inserted_order(costs), costs) == consumers - 1
