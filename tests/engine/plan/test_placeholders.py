"""How many queues joiners move, over all the places where their ids may sort."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.plan.rebalance import Side, compare, over_places, plan_rebalance
from rmqlb.model.group import QueueState
from rmqlb.model.plan import MovedRange, RebalancePlan, Summary
from tests.support.builders import queues, route, side


def placed(before: Side, after: Side, *placeholders: str) -> tuple[RebalancePlan, tuple[Summary, ...]]:
    return over_places(plan_rebalance(None, before, after), before, after, placeholders)


def moved_range(before: Side, after: Side, *placeholders: str) -> MovedRange | None:
    plan, _ = placed(before, after, *placeholders)
    return plan.summary.moved_range


def test_a_joiner_at_either_end_of_two_members_is_not_a_joiner_between_them() -> None:
    assert moved_range(side("a c", route(x=6)), side("a c joiner", route(x=6)), "joiner") == MovedRange(2, 3)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 12), st.sampled_from(["AVG", "AVG_BY_CIRCLE"]))
def test_the_range_is_that_of_all_real_places(members: int, joiners: int, queues: int, strategy: str) -> None:
    """Several joiners need not sort side by side: two machines that come are rarely neighbours."""
    letters = [chr(ord("a") + i) for i in range(members + joiners)]
    moved = []
    for new in combinations(letters, joiners):
        old = " ".join(letter for letter in letters if letter not in new)
        before = side(old, route(x=queues), strategy=strategy)
        moved.append(plan_rebalance(None, before, side(" ".join(letters), route(x=queues), strategy=strategy)))
    ids, placeholders = letters[:members], [f"zz{i}" for i in range(joiners)]
    before = side(" ".join(ids), route(x=queues), strategy=strategy)
    found = moved_range(
        before, side(" ".join([*ids, *placeholders]), route(x=queues), strategy=strategy), *placeholders
    )
    assert found == MovedRange(min(p.summary.moved for p in moved), max(p.summary.moved for p in moved))


def test_each_place_has_the_lag_that_moves_there() -> None:
    """Of the first three queues, a's, and the others, c's, a joiner takes the first two, the middle or the last two."""
    states = {queue: QueueState(None, 2**queue.queue_id, 0) for queue in queues(6, "x")}
    before, after = side("a c", route(x=6)), side("a c j", route(x=6))
    _, places = over_places(plan_rebalance(None, before, after, states=states), before, after, ["j"], states)
    moved = [(each.moved, each.lag_moved) for each in places]
    assert moved == [(3, 1 + 2 + 8), (2, 4 + 8), (3, 4 + 16 + 32)]


def test_where_ids_themselves_decide_there_is_no_range() -> None:
    for before, after in (("CONSISTENT_HASH", "CONSISTENT_HASH"), ("AVG", "CONSISTENT_HASH")):
        first, then = side("a", route(x=4), strategy=before), side("a j", route(x=4), strategy=after)
        assert moved_range(first, then, "j") is None


def test_ids_that_are_known_have_one_place() -> None:
    plan, places = placed(side("a", route(x=4)), side("a b", route(x=4)))
    assert (plan.summary.moved_range, places) == (MovedRange(2, 2), ())


def test_of_a_large_group_some_places_are_tried_and_that_is_told() -> None:
    ids = " ".join(f"c{index:04d}" for index in range(400))
    found = moved_range(side(ids, route(x=400)), side(f"{ids} z", route(x=400)), "z")
    assert found is not None
    assert (found.fewest <= found.most, found.complete) == (True, False)


def test_all_ways_to_sort_some_joiners_are_tried_up_to_a_bound() -> None:
    """Among 66 members three joiners have 52,394 places, which are too many even with one queue."""
    ids, new = [f"c{index:02d}" for index in range(66)], ["x", "y", "z"]
    found = moved_range(side(" ".join(ids), route(x=1)), side(" ".join([*ids, *new]), route(x=1)), *new)
    assert found == MovedRange(0, 1, complete=False)


def test_of_many_ways_to_sort_those_are_tried_that_keep_joiners_together() -> None:
    """Among 19 members four joiners have 8,855 places: too many for 23 queues, of which 6 move at the fewest."""
    ids, new = [f"m{index:02d}" for index in range(19)], "wxyz"
    before = side(" ".join(ids), route(x=23))
    moved = [
        plan_rebalance(None, before, side(" ".join([*ids, *(f"{place}{letter}" for letter in new)]), route(x=23)))
        for place in ["a", *ids]
    ]
    found = moved_range(before, side(" ".join([*ids, *new]), route(x=23)), *new)
    assert found == MovedRange(min(p.summary.moved for p in moved), max(p.summary.moved for p in moved), complete=False)


def test_each_strategy_that_is_compared_has_a_range_of_its_own() -> None:
    before, after = side("a c", route(x=6)), side("a c j", route(x=6))
    plan = compare(plan_rebalance(None, before, after), before, after, ["AVG_BY_CIRCLE", "CONSISTENT_HASH"], "j")
    plan, _ = over_places(plan, before, after, ["j"])
    ranges = [each.summary.moved_range for each in plan.comparison]
    assert ranges[0] == MovedRange(2, 3)
    assert ranges[1] is not None
    assert ranges[2] is None


def test_a_comparison_under_the_plans_own_strategy_keeps_those_that_members_run_instead() -> None:
    """Six queues: a joiner moves 4 under AVG_BY_CIRCLE wherever it sorts, 2 or 3 under AVG or when a runs that."""
    for strategy_of, own in (({}, MovedRange(4, 4)), ({"a": "AVG"}, MovedRange(2, 3))):
        before = Side(Members(("a", "c"), "AVG_BY_CIRCLE", strategy_of=strategy_of), (route(x=6),))
        after = replace(before, members=replace(before.members, client_ids=("a", "c", "j")))
        plan = compare(plan_rebalance(None, before, after), before, after, ["AVG"], "j")
        plan, _ = over_places(plan, before, after, ["j"])
        assert [each.summary.moved_range for each in plan.comparison] == [own, MovedRange(2, 3)]
        assert plan.summary.moved_range == own
