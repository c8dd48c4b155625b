from itertools import combinations, product
from operator import attrgetter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members, minimum_moves, spread
from rmqlb.engine.plan.rebalance import Side, compare, over_places, plan_rebalance
from rmqlb.model.group import QueueState, States
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.owners import QueuesPerConsumer, Spread
from rmqlb.model.plan import ConsumerPlan, MovedRange, ObservedOwners, RebalancePlan, Summary
from tests.support.builders import queues, route, side
from tests.support.mismatches import every_case

members = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6)


def changes(plan: RebalancePlan) -> str:
    return " ".join(move.change for move in plan.moves)


def everybody(ids: str) -> Side:
    return Side(Members(tuple(ids.split()), "AVG", broadcasting=True), (route(x=2),))


def lags(number: int, step: int = 10, first: int = 0) -> States:
    return {queue: QueueState(None, step * queue.queue_id + first, 0) for queue in queues(number, "x")}


TWO = route("T", x=4), route("U", x=4)
PINNED: dict[str, Any] = {"strategy": "PIN", "hosts": frozenset("abc")}


@every_case(("before", "after", "states", "said", "figures"), [
    (side("a b", route(x=6)), side("a b c", route(x=6)), None, "same same moved same moved moved", {"moved": 3, "minimum_moves": 2, "lag_moved": None}),
    (side("a b", route(x=6), **PINNED), side("a b c", route(x=6), **PINNED), None, "same same moved same moved moved", {"moved": 3, "minimum_moves": 2}),
    (side("a a b", route(x=3)), side("a b", route(x=4)), None, "same assigned same added", {"newly_assigned": 1, "added": 1}),
    (side("a b", route(x=4)), side("a a b", route(x=3)), lags(4, first=1), "same unassigned same removed", {"lag_unassigned": 11, "lag_removed": 31}),
    (side("a b", route(x=2)), side("a b", route(x=4)), lags(2, first=5), "same moved added added", {"lag_moved": 15}),
    (everybody(""), everybody("a"), None, "assigned assigned", {"minimum_moves": 0}),
    (everybody("a"), everybody(""), None, "unassigned unassigned", {"minimum_moves": 0}),
    (side("a b", *TWO), side("a b c", *TWO), None, None, {"minimum_moves": 2}),
    (side("a b", *TWO), side("", *TWO), None, None, {"minimum_moves": None}),
    (side("a"), side("a b"), None, "", {"minimum_moves": 0, "after.consumers": 2, "after.idle": 0}),
    (side("a a", route(x=4)), side("a b", route(x=4)), None, None, {"before.queues_of_duplicate_client_ids": 2, "before.unassigned": 2, "after.queues_of_duplicate_client_ids": 0, "after.unassigned": 0}),
    (side("a", route(x=4)), side("a", route(x=4, y=2)), None, None, {"writable_queues_before": 4, "writable_queues_after": 6}),
    (side("a", route(x=1)), side("a", route(x=2)), {MessageQueue("T", "x", 0): QueueState(frozenset("a")), MessageQueue("T", "x", 1): QueueState(frozenset())}, "same added", {"observed": ObservedOwners(1, 0, 0, 0, 0)}),
])  # fmt: skip
def test_a_change_has_its_names_and_figures(
    before: Side, after: Side, states: States | None, said: str | None, figures: dict[str, Any]
) -> None:
    plan = plan_rebalance("g", before, after, states=states)
    assert said in (None, changes(plan))
    assert {name: attrgetter(name)(plan.summary) for name in figures} == figures


def test_a_plan_has_each_of_its_figures() -> None:
    """Before, a owns queues 0 to 3 and b the others; afterwards a 0 to 2, b 3 and 4, j the last two."""
    owners = ["b", "", "a", "a b", "b", "j", None]
    states = {
        queue: QueueState(None if ids is None else frozenset(ids.split()), 2**queue.queue_id, 0)
        for queue, ids in zip(queues(7, "x"), owners, strict=True)
    }
    plan = plan_rebalance(
        "g", side("b a", route(x=7)), side("b a j", route(x=7)), states=states, changes=["add j"], placeholders=["j"]
    )
    assert plan.consumers == (
        ConsumerPlan("a", 4, 3, 0, 1, 0, 8, 0, 0, 1, 1, queues_observed=2),
        ConsumerPlan("b", 3, 2, 1, 2, 8, 96, 1, 1, 1, 1, queues_observed=3),
        ConsumerPlan("j", 0, 2, 2, 0, 96, 0, None, 2, 0, 1, placeholder=True, queues_observed=1),
    )
    nothing = {"newly_assigned": 0, "newly_unassigned": 0, "added": 0, "removed": 0, "lag_unassigned": 0}
    assert plan.summary == Summary(
        **nothing,
        moved=3,
        minimum_moves=2,
        lag_moved=8 + 32 + 64,
        writable_queues_before=7,
        writable_queues_after=7,
        idle=0,
        unassigned=0,
        duplicate_owners=0,
        imbalance=9 / 7,
        before=Spread(7, 0, 0, 0, 0, QueuesPerConsumer(3, 3.5, 4), 8 / 7, 2),
        after=Spread(7, 0, 0, 0, 0, QueuesPerConsumer(2, 7 / 3, 3), 9 / 7, 3),
        moved_range=MovedRange(3, 3),
        lag_removed=0,
        observed=ObservedOwners(queues=6, unassigned=1, duplicate_owners=1, mismatches=4, moved=2),
    )
    assert plan.changes == ("add j",)
    assert (plan.sorted_consumers_before, plan.sorted_consumers_after) == (("a", "b"), ("a", "b", "j"))
    seen = [("b",), (), ("a",), ("a", "b"), ("b",), ("j",), None]
    assert [(move.owners_observed, move.lag) for move in plan.moves] == [
        (ids, 2**number) for number, ids in enumerate(seen)
    ]


def test_in_a_broadcasting_group_no_queue_moves_and_no_owner_is_one_too_many() -> None:
    states = {
        queue: QueueState(frozenset(ids.split()), 0, 0) for queue, ids in zip(queues(2, "x"), ("a b", ""), strict=True)
    }
    plan = plan_rebalance("g", everybody("a a b"), everybody("a a b c"), states=states)
    s = plan.summary
    assert changes(plan) == "same same"
    assert (s.moved, s.minimum_moves, s.imbalance, s.idle, s.unassigned) == (0, 0, 1, 0, 0)
    assert s.before == Spread(2, 0, 0, 0, 0, QueuesPerConsumer(2, 2.0, 2), 1.0, 2)
    assert s.after == Spread(2, 0, 0, 0, 0, QueuesPerConsumer(2, 2.0, 2), 1.0, 3)
    assert s.observed == ObservedOwners(queues=2, unassigned=1, duplicate_owners=0, mismatches=1, moved=0)


def test_an_uneven_plan_that_moves_less_than_a_balanced_one_has_its_own_moves_as_the_minimum() -> None:
    ids = "a b c d e f"
    sides = (side(some, route(x=16), strategy="CONSISTENT_HASH") for some in (ids[:-2], ids))
    plan = plan_rebalance("g", *sides)
    owners = {MessageQueue("T", "x", move.queue_id): move.owners_before for move in plan.moves}
    assert minimum_moves(owners, owners, ids.split()) == 3
    assert (plan.summary.moved, plan.summary.minimum_moves) == (1, 1)


def test_topics_are_allocated_separately_and_only_a_consumer_that_stays_is_idle() -> None:
    routes = route("T", x=1), route("U", x=1)
    plan = plan_rebalance("g", side("a b c", *routes), side("a b", *routes))
    idle = "consumer 1 of 2 (counted from 0), and only 1 queues"
    found = [(c.client_id, c.queues_after, c.idle_reason) for c in plan.consumers]
    assert found == [("a", 2, None), ("b", 0, idle), ("c", 0, None)]


def test_comparing_strategies_keeps_the_plans_own_first() -> None:
    before, after = (side(ids, route(x=4), strategy="AVG_BY_CIRCLE") for ids in ("a b", "a b c"))
    plan = compare(plan_rebalance("g", before, after), before, after, ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
    assert [c.strategy for c in plan.comparison] == ["AVG_BY_CIRCLE", "AVG", "CONSISTENT_HASH"]
    assert plan.comparison[0].summary is plan.summary


@given(
    members, members, st.integers(1, 9), st.integers(1, 9), st.sampled_from(["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
)
def test_applying_the_moves_to_the_owners_before_gives_the_owners_after(
    old: list[str], new: list[str], before_queues: int, after_queues: int, strategy: str
) -> None:
    before = side(" ".join(old), route(x=before_queues), strategy=strategy)
    after = side(" ".join(new), route(x=after_queues), strategy=strategy)
    plan = plan_rebalance("g", before, after)
    owners = {m.queue_id: m.owners_before for m in plan.moves if m.change != "added"}
    for move in plan.moves:
        if move.change != "same":
            owners.pop(move.queue_id, None)
            if move.change != "removed":
                owners[move.queue_id] = move.owners_after
    settled = plan_rebalance("g", after, after)
    assert owners == {m.queue_id: m.owners_after for m in settled.moves}
    assert all(m.change == "same" for m in settled.moves)
    for consumer in plan.consumers:
        assert consumer.queues_after - consumer.queues_before == consumer.gained - consumer.lost
    assert plan.summary.minimum_moves is not None
    assert plan.summary.minimum_moves <= plan.summary.moved


@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=5), st.sets(st.sampled_from("abcd"), min_size=1, max_size=3)
)
def test_least_moves_is_the_least_over_all_even_plans(owned: list[str], ids: set[str]) -> None:
    all_queues = queues(len(owned))
    before = {queue: (owner,) for queue, owner in zip(all_queues, owned, strict=True)}
    even = [
        plan
        for plan in product(sorted(ids), repeat=len(owned))
        if max(map(plan.count, ids)) - min(map(plan.count, ids)) <= 1
    ]
    fewest = min(sum(old != new for old, new in zip(owned, plan, strict=True)) for plan in even)
    assert minimum_moves(before, all_queues, ids) == fewest


def test_a_queue_with_duplicate_owners_moves_and_one_without_owner_or_without_a_past_does_not() -> None:
    q = queues(4)
    assert minimum_moves({q[0]: ("a", "b"), q[1]: (), q[2]: ("b",)}, q, ["a", "b"]) == 1
    assert minimum_moves({q[0]: ("gone",), q[1]: ("a",)}, q, ["a", "b"]) == 1
    assert minimum_moves(dict.fromkeys(queues(2), ("a",)), queues(2), []) is None


def test_the_judge_measures_an_assignment() -> None:
    q = queues(4)
    measured = spread({q[0]: ("a", "b"), q[1]: (), q[2]: ("a",), q[3]: ("b", "a")}, ("a", "b", "c", "c"))
    assert (measured.idle, measured.unassigned, measured.duplicate_owners) == (1, 1, 2)
    assert measured.queues_of_duplicate_client_ids == 0
    assert (measured.queues_per_consumer, measured.imbalance) == (QueuesPerConsumer(min=0, mean=5 / 3, max=3), 1.8)
    left = {queue: (owner,) for queue, owner in zip(queues(3), ("gone", "a", "b"), strict=True)}
    assert spread(left, ("a", "b", "b")).queues_of_duplicate_client_ids == 1
    ids = tuple("abcdefg")
    assert spread({queue: (ids[place % 7],) for place, queue in enumerate(queues(15))}, ids).imbalance == 1.4
    assert spread(dict.fromkeys(queues(1), ("a",)), ids[:1]).imbalance == 1.0
    nothing = spread({}, ())
    assert (nothing.queues_per_consumer, nothing.imbalance) == (None, None)


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
