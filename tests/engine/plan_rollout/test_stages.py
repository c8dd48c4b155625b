from collections.abc import Mapping, Sequence
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb import DataError, MessageQueue
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.engine.plan_rollout.stages import (
    PairCosts,
    RolloutModel,
    cost_of_each,
    fewest_moves,
    inserted_order,
    least_order,
    least_overlap,
    order_cost,
    overlaps,
    rollout_model,
    total_overlap,
)
from rmqlb.model.route import TopicRouteData
from tests.support.builders import route
from tests.support.mismatches import every_case

AT_REST = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "CONFIG", "PIN")
Owners = Mapping[MessageQueue, tuple[str, ...]]
Change = tuple[RolloutModel, list[TopicRouteData]]


@st.composite
def changes(draw: st.DrawFn, most: int = 6, *, new_ids: bool = False) -> Change:
    """A change of strategy of some consumers, on one or two topics; an ID that is not restarted may be shared."""
    ids = draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=most, unique=True))
    routes = [
        route(topic, a=draw(st.integers(0, 9)), b=draw(st.integers(0, 4)))
        for topic in draw(st.sampled_from(["T", "TU"]))
    ]
    queues = [queue for each in routes for queue in each.subscribe_queues()]
    config = {i: [queue for queue in queues if draw(st.integers(0, 2)) == 0] for i in ids}
    hosts = frozenset(i for i in ids if draw(st.booleans())) | {ids[0]}
    before, after = draw(st.lists(st.sampled_from(AT_REST), min_size=2, max_size=2, unique=True))
    restarted = [i for i in ids if draw(st.integers(0, 4))] or ids
    shared = [i for i in ids if i not in restarted and draw(st.booleans())]
    subscribed = {i: {"T"} for i in ids if not draw(st.integers(0, 5))}
    members = Members((*ids, *shared), before, Settings(config=config, hosts=hosts), subscribed=subscribed)
    becomes = {i: f"{draw(st.sampled_from('ax'))}{i}" for i in restarted if draw(st.booleans())} if new_ids else {}
    return rollout_model(members, restarted, after, becomes), routes


def owners_at(rollout: RolloutModel, routes: Sequence[TopicRouteData], changed: int, away: int = 0) -> Owners:
    members = rollout.members_when(changed, away)
    return {
        queue: owners
        for each in routes
        for queue, owners in assign(each, members).owners.items()
        if queue in each.subscribe_queues()
    }


@given(st.booleans() | st.none(), st.data())
def test_each_stage_is_what_its_consumers_allocate(new_ids: bool | None, data: st.DataObject) -> None:
    orderly = data.draw(st.booleans())
    rollout, routes = data.draw(changes(new_ids=bool(new_ids)))
    known = overlaps(rollout, routes, orderly=orderly)
    stages = range(1 << len(rollout.client_ids))
    for changed in stages:
        owners = owners_at(rollout, routes, changed).values()
        several = 0 if orderly else sum(len(ids) > 1 for ids in owners)
        assert known.counts(changed) == (several, sum(not ids for ids in owners))
    if known.pairs is not None:
        assert cost_of_each(known.pairs) == [sum(known.counts(changed)) for changed in stages]


@given(st.booleans(), st.integers(1, 3), st.data())
def test_no_order_has_less_overlap_than_the_least(orderly: bool, at_once: int, data: st.DataObject) -> None:
    rollout, routes = data.draw(changes(most=5, new_ids=data.draw(st.booleans())))
    known = overlaps(rollout, routes, orderly=orderly)
    totals = {order: total_overlap(known.stages(order, at_once)) for order in permutations(rollout.client_ids)}
    least = least_overlap(known, at_once)
    assert least is not None
    assert least.is_least
    assert least.total == totals[least.order] == min(totals.values())
    if at_once == 1:
        assert known.bound <= least.total


def circle(client_ids: str, **brokers: int) -> Change:
    members = Members(tuple(client_ids.split()), "AVG")
    return rollout_model(members, None, "AVG_BY_CIRCLE", {}), [route("T", 6, True, **brokers)]


def test_two_consumers_that_swap_one_queue_have_one_stage_with_two_owners_and_none() -> None:
    known = overlaps(*circle("x y", a=4), orderly=False)
    stages = [known.stages(order, 1) for order in (("x", "y"), ("y", "x"))]
    found = [(s.changed, s.next_id, s.duplicate_owners, s.unassigned) for (s,) in stages]
    assert found == [(1, "y", 1, 1), (1, "x", 1, 1)]
    assert (known.anyway, known.bound) == (0, 2)


def test_queues_that_nobody_restarted_gains_or_loses_count_in_each_stage_but_are_not_added() -> None:
    """The block of a's second process has no owner, whatever the others run: in both of three's stages."""
    members = Members(tuple("aabc"), "AVG", strategy_of={"b": "AVG_BY_CIRCLE"})
    assert overlaps(rollout_model(members, ["b"], "AVG", {}), [route(a=4)], orderly=False).anyway == 1
    members = Members(tuple("aabc"), "AVG", Settings(hosts=frozenset("abc")))
    known = overlaps(rollout_model(members, ["b", "c"], "PIN", {}), [route(a=4)], orderly=False)
    stages = known.stages(("b", "c"), 1)
    assert (total_overlap(stages), known.added(stages)) == (1, 0)
    members = Members(tuple("aabcd"), "AVG", Settings(hosts=frozenset("abcd")))
    known = overlaps(rollout_model(members, ["b", "c", "d"], "PIN", {}), [route(a=5)], orderly=False)
    assert (known.anyway, known.bound) == (1, 2)
    unknown = overlaps(rollout_model(members, ["b"], "PIN", {"b": "x"}), [route(a=5)], orderly=False)
    assert (unknown.anyway, unknown.bound) == (0, 0)


def test_the_bound_counts_each_handover_once() -> None:
    config = {"b": [MessageQueue("T", "a", 2)], "c": [MessageQueue("T", "a", 1)]}
    swap = rollout_model(Members(("a", "b", "c"), "AVG", Settings(config=config)), ["b", "c"], "CONFIG", {})
    assert [overlaps(swap, [route(a=3)], orderly=orderly).bound for orderly in (False, True)] == [2, 0]


def test_a_group_too_large_for_all_orders_is_put_in_a_good_one_and_says_so() -> None:
    known = overlaps(*circle(" ".join(f"c{i:02}" for i in range(30)), a=90), orderly=False)
    least = least_overlap(known, 1)
    assert least is not None
    assert not least.is_least
    assert known.bound <= least.total < total_overlap(known.stages(known.client_ids, 1))


def test_a_strategy_that_throws_for_one_consumer_cannot_be_planned() -> None:
    settings = Settings(inner="CONFIG", broker_zones={"a": "z"}, client_zones={"near": "z", "far": "y"})
    rollout = rollout_model(Members(("near", "far"), "AVG", settings), None, "MACHINE_ROOM_NEARBY", {})
    with pytest.raises(DataError, match="topic T: under MACHINE_ROOM_NEARBY the client of near throws"):
        overlaps(rollout, [route(a=1)], orderly=False)


def restart(client_ids: str, strategy: str = "AVG", **becomes: str) -> RolloutModel:
    return rollout_model(Members(tuple(client_ids.split()), strategy), None, None, becomes)


def moves_of(rollout: RolloutModel, queues: int, order: Sequence[str], at_once: int = 1) -> int:
    topic, moves, changed = [route(a=queues)], 0, 0
    bit = {client_id: 1 << index for index, client_id in enumerate(rollout.client_ids)}
    for start in range(0, len(order), at_once):
        away = sum(bit[client_id] for client_id in order[start : start + at_once])
        without = owners_at(rollout, topic, changed, away)
        for end in (owners_at(rollout, topic, changed), owners_at(rollout, topic, changed | away)):
            moves += sum(end[queue] != without[queue] for queue in end)
        changed |= away
    return moves


def test_a_consumer_that_comes_back_with_another_id_keeps_its_own_settings() -> None:
    members = Members(
        *(("a", "b"), "AVG"),
        strategy_of={"a": "AVG_BY_CIRCLE"},
        subscribed={"a": {"T"}},
        sdk_of={"a": "go"},
        by_broker_of={"a": True},
    )
    after = rollout_model(members, None, None, {"a": "x"}).members
    assert (after.runs("x"), after.is_answered("x", "CONFIG")) == (members.runs("a"), False)
    assert (after.subscribed["x"], after.runs("b")) == ({"T"}, members.runs("b"))


@given(st.integers(1, 5), st.integers(1, 3), st.integers(0, 9), st.data())
def test_no_order_moves_fewer_queues(consumers: int, at_once: int, queues: int, data: st.DataObject) -> None:
    ids = "abcde"[:consumers]
    becomes = {i: f"{data.draw(st.sampled_from('ace'))}{i}" for i in ids if data.draw(st.booleans())}
    rollout = restart(" ".join(ids), data.draw(st.sampled_from(["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])), **becomes)
    found = fewest_moves(rollout, [route(a=queues)], at_once)
    assert found is not None
    order, moves = found
    assert moves == moves_of(rollout, queues, order, at_once)
    assert moves == min(moves_of(rollout, queues, other, at_once) for other in permutations(ids))


def test_ids_that_change_and_consumers_that_are_away_together_make_the_order_matter() -> None:
    """A consumer that is away moves its queues and those behind them there and back."""
    assert moves_of(restart("a b"), 4, ["a", "b"]) == 2 * 2 + 2 * 2
    assert moves_of(restart("a b"), 4, ["a", "b"], 2) == 2 * 4
    same, other = restart("a b c"), restart("a b c", a="x")
    assert len({moves_of(same, 7, order) for order in permutations("abc")}) == 1
    assert fewest_moves(same, [route(a=7)], 1) == (("a", "b", "c"), moves_of(same, 7, "abc"))
    moves = {moves_of(other, 6, order) for order in permutations("abc")}
    found = fewest_moves(other, [route(a=6)], 1)
    assert found is not None
    assert found[1] == min(moves) < max(moves)


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
