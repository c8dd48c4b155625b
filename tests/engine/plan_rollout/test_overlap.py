"""Mixed strategies at rest: each stage equals what all members allocate, and no order does better than the least."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb import DataError, MessageQueue
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.engine.plan_rollout.stages import (
    RolloutModel,
    added_overlap,
    cost_of_each,
    least_overlap,
    members_when,
    mixed_stages,
    overlaps,
    rollout_model,
    total_overlap,
)
from rmqlb.model.route import TopicRouteData
from tests.support.builders import route

AT_REST = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "CONFIG", "PIN")


@st.composite
def changes(draw: st.DrawFn, most: int = 6, *, new_ids: bool = False) -> tuple[RolloutModel, list[TopicRouteData]]:
    """A change of strategy of some members, on one or two topics; an id that is not restarted may be shared."""
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


def at_rest(rollout: RolloutModel, routes: list[TopicRouteData], changed: int, *, orderly: bool) -> tuple[int, int]:
    """Queues with several owners and with none, as each member allocates by itself."""
    names = {name for index, name in enumerate(rollout.client_ids) if changed >> index & 1}
    members = members_when(rollout, names)
    owners = [assign(each, members).owners[queue] for each in routes for queue in each.subscribe_queues()]
    return 0 if orderly else sum(len(ids) > 1 for ids in owners), sum(not ids for ids in owners)


@given(st.booleans() | st.none(), st.data())
def test_each_stage_is_what_its_members_allocate(new_ids: bool | None, data: st.DataObject) -> None:
    orderly = data.draw(st.booleans())
    rollout, routes = data.draw(changes(new_ids=bool(new_ids)))
    known = overlaps(rollout, routes, orderly=orderly)
    for changed in range(1 << len(rollout.client_ids)):
        counts = known.counts(changed)
        assert (counts.several, counts.none) == at_rest(rollout, routes, changed, orderly=orderly)


@given(changes(), st.booleans())
def test_pairs_cost_what_their_stages_count(change: tuple[RolloutModel, list[TopicRouteData]], orderly: bool) -> None:
    known = overlaps(*change, orderly=orderly)
    if known.pairs is not None:
        counted = [known.counts(changed).overlap for changed in range(1 << len(known.client_ids))]
        assert cost_of_each(known.pairs) == counted


@given(st.booleans(), st.integers(1, 3), st.data())
def test_no_order_has_less_overlap_than_the_least(orderly: bool, at_once: int, data: st.DataObject) -> None:
    rollout, routes = data.draw(changes(most=5, new_ids=data.draw(st.booleans())))
    known = overlaps(rollout, routes, orderly=orderly)
    totals = {order: total_overlap(mixed_stages(known, order, at_once)) for order in permutations(rollout.client_ids)}
    least = least_overlap(known, at_once)
    assert least is not None
    assert least.is_least
    assert least.total == totals[least.order] == min(totals.values())
    if at_once == 1:
        assert known.bound <= least.total


@given(changes(most=7))
def test_the_least_is_the_least_of_all_orders_of_seven(change: tuple[RolloutModel, list[TopicRouteData]]) -> None:
    known = overlaps(*change, orderly=False)
    if known.pairs is None:
        return
    cost_of = cost_of_each(known.pairs)
    brute = min(
        sum(cost_of[sum(1 << member for member in order[:done])] for done in range(1, len(order)))
        for order in permutations(range(len(known.client_ids)))
    )
    least = least_overlap(known, 1)
    assert least is not None
    assert least.total == brute


def circle(client_ids: str, **brokers: int) -> tuple[RolloutModel, list[TopicRouteData]]:
    return rollout_model(Members(tuple(client_ids.split()), "AVG"), None, "AVG_BY_CIRCLE", None), [
        route("T", 6, True, **brokers)
    ]


def test_two_members_that_swap_one_queue_have_one_stage_with_two_owners_and_none() -> None:
    known = overlaps(*circle("x y", a=4), orderly=False)
    stages = [mixed_stages(known, order, 1) for order in (("x", "y"), ("y", "x"))]
    assert [(s.changed, s.next_id, s.duplicate_owners, s.unassigned) for (s,) in stages] == [
        (1, "y", 1, 1),
        (1, "x", 1, 1),
    ]
    assert (known.anyway, known.bound) == (0, 2)


def test_queues_that_nobody_restarted_gains_or_loses_count_in_each_stage_but_are_not_added() -> None:
    members = Members(("a", "a", "b", "c"), "AVG", strategy_of={"b": "AVG_BY_CIRCLE"})
    rollout = rollout_model(members, ["b"], "AVG", None)
    known = overlaps(rollout, [route(a=4)], orderly=False)
    assert known.anyway == 1  # the block of a's second process, whoever b is
    rollout = rollout_model(
        Members(("a", "a", "b", "c"), "AVG", Settings(hosts=frozenset("abc"))), ["b", "c"], "PIN", None
    )
    known = overlaps(rollout, [route(a=4)], orderly=False)
    stages = mixed_stages(known, ("b", "c"), 1)
    assert (total_overlap(stages), added_overlap(known, stages)) == (1, 0)


def test_the_bound_counts_what_is_so_anyway_in_each_stage_and_each_handover_once() -> None:
    """The same owners under PIN, of which a's second process leaves a block to nobody: in both of three's stages."""
    members = Members(tuple("aabcd"), "AVG", Settings(hosts=frozenset("abcd")))
    known = overlaps(rollout_model(members, ["b", "c", "d"], "PIN", None), [route(a=5)], orderly=False)
    assert (known.anyway, known.bound) == (1, 2)
    config = {"b": [MessageQueue("T", "a", 2)], "c": [MessageQueue("T", "a", 1)]}
    swap = rollout_model(Members(("a", "b", "c"), "AVG", Settings(config=config)), ["b", "c"], "CONFIG", None)
    assert [overlaps(swap, [route(a=3)], orderly=orderly).bound for orderly in (False, True)] == [2, 0]
    unknown = overlaps(rollout_model(members, ["b"], "PIN", {"b": "x"}), [route(a=5)], orderly=False)
    assert (unknown.anyway, unknown.bound) == (0, 0)


def test_a_group_too_large_for_all_orders_is_put_in_a_good_one_and_says_so() -> None:
    ids = " ".join(f"c{i:02}" for i in range(30))
    known = overlaps(*circle(ids, a=90), orderly=False)
    least = least_overlap(known, 1)
    assert least is not None
    assert not least.is_least
    plain = total_overlap(mixed_stages(known, known.client_ids, 1))
    assert known.bound <= least.total < plain


def test_a_strategy_that_throws_for_one_member_cannot_be_planned() -> None:
    settings = Settings(inner="CONFIG", broker_zones={"a": "z"}, client_zones={"near": "z", "far": "y"})
    rollout = rollout_model(Members(("near", "far"), "AVG", settings), None, "MACHINE_ROOM_NEARBY", None)
    with pytest.raises(DataError, match="topic T: under MACHINE_ROOM_NEARBY the client of near throws"):
        overlaps(rollout, [route(a=1)], orderly=False)
