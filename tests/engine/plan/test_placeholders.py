from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.plan.rebalance import Side, compare, over_places, plan_rebalance
from rmqlb.model.group import QueueState
from rmqlb.model.plan import MovedRange
from tests.support.builders import queues, route, side


def moved_range(ids: str, joiners: str, number: int, strategy: str = "AVG", after: str = "") -> MovedRange | None:
    old = side(ids, route(x=number), strategy=strategy)
    new = side(" ".join((ids, *joiners)), route(x=number), strategy=after or strategy)
    return over_places(plan_rebalance(None, old, new), old, new, joiners)[0].summary.moved_range


def moved(ids: str, after: str, number: int, strategy: str) -> int:
    sides = (side(some, route(x=number), strategy=strategy) for some in (ids, after))
    return plan_rebalance(None, *sides).summary.moved


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 12), st.sampled_from(["AVG", "AVG_BY_CIRCLE"]))
def test_the_range_is_that_of_all_real_places(members: int, joiners: int, number: int, strategy: str) -> None:
    """Several joiners need not sort side by side: two machines that come are rarely neighbours."""
    letters = "abcdefg"[: members + joiners]
    places = [
        moved(" ".join(letter for letter in letters if letter not in new), " ".join(letters), number, strategy)
        for new in combinations(letters, joiners)
    ]
    found = moved_range(" ".join(letters[:members]), "xyz"[:joiners], number, strategy)
    assert found == MovedRange(min(places), max(places))


def test_each_place_has_the_lag_that_moves_there() -> None:
    """Of the first three queues, a's, and the others, c's, a joiner takes the first two, the middle or the last two."""
    states = {queue: QueueState(None, 2**queue.queue_id, 0) for queue in queues(6, "x")}
    before, after = side("a c", route(x=6)), side("a c j", route(x=6))
    _, places = over_places(plan_rebalance(None, before, after, states=states), before, after, ["j"], states)
    assert [(each.moved, each.lag_moved) for each in places] == [(3, 1 + 2 + 8), (2, 4 + 8), (3, 4 + 16 + 32)]


def test_there_is_no_range_where_ids_themselves_decide_and_one_place_for_ids_that_are_known() -> None:
    assert moved_range("a", "j", 4, "CONSISTENT_HASH") is None
    assert moved_range("a", "j", 4, "AVG", "CONSISTENT_HASH") is None
    assert moved_range("a b", "", 4) == MovedRange(0, 0)


def test_of_many_ways_to_sort_some_are_tried_and_that_is_told() -> None:
    """Among 66 members three joiners have 52,394 places, and among 19 four have 8,855: too many for 23 queues."""
    large = moved_range(" ".join(f"c{index:04d}" for index in range(400)), "z", 400)
    assert large is not None
    assert (large.fewest <= large.most, large.complete) == (True, False)
    assert moved_range(" ".join(f"c{index:02d}" for index in range(66)), "xyz", 1) == MovedRange(0, 1, complete=False)
    ids = [f"m{index:02d}" for index in range(19)]
    together = [
        moved(" ".join(ids), " ".join((*ids, *(f"{place}{letter}" for letter in "wxyz"))), 23, "AVG")
        for place in ("a", *ids)
    ]
    assert moved_range(" ".join(ids), "wxyz", 23) == MovedRange(min(together), max(together), complete=False)


def test_each_strategy_that_is_compared_has_a_range_of_its_own() -> None:
    """Six queues: a joiner moves 4 under AVG_BY_CIRCLE wherever it sorts, 2 or 3 under AVG or when a runs that."""
    for strategy_of, own in (({}, MovedRange(4, 4)), ({"a": "AVG"}, MovedRange(2, 3))):
        before = Side(Members(("a", "c"), "AVG_BY_CIRCLE", strategy_of=strategy_of), (route(x=6),))
        after = replace(before, members=replace(before.members, client_ids=("a", "c", "j")))
        plan = compare(plan_rebalance(None, before, after), before, after, ["AVG", "CONSISTENT_HASH"], "j")
        plan, _ = over_places(plan, before, after, ["j"])
        assert [each.summary.moved_range for each in plan.comparison] == [own, MovedRange(2, 3), None]
        assert plan.summary.moved_range == own
