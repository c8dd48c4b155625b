from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import astuple, replace

from rmqlb import DataError, QueueData, TopicRouteData, UsageError
from rmqlb.engine.assignment.assign import Members, minimum_moves, spread
from rmqlb.engine.plan.changes import Edits, NewBroker, QueueCount, change_members, change_routes, describe
from rmqlb.engine.plan.rebalance import Side, compare, over_places, plan_rebalance
from rmqlb.model.group import QueueState, States
from rmqlb.model.owners import QueuesPerConsumer
from rmqlb.model.plan import MovedRange
from rmqlb.model.route import BrokerData, TopicQueueMappingInfo
from tests.support.builders import queues, route, side
from tests.support.mismatches import assert_recorded

members = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6)


def everybody(ids: str) -> Side:
    return Side(Members(tuple(ids.split()), "AVG", broadcasting=True), (route(x=2),))


def lags(number: int, first: int) -> States:
    return {queue: QueueState(None, 10 * queue.queue_id + first, 0) for queue in queues(number, "x")}


def observed(*owners: str | None, lag: int = 1) -> States:
    """Each queue has twice the lag of the one before."""
    ids = (None if each is None else frozenset(each) for each in owners)
    return {q: QueueState(own, lag * 2**q.queue_id, 0) for q, own in zip(queues(len(owners), "x"), ids, strict=True)}


TWO, ONE_EACH = (route("T", x=4), route("U", x=4)), (route("T", x=1), route("U", x=1))
PINNED: dict[str, Any] = {"strategy": "PIN", "hosts": frozenset("abc")}
RING: dict[str, Any] = {"strategy": "CONSISTENT_HASH"}
PLANS: Mapping[str, tuple[Side, Side, States]] = {
    "a consumer joins": (side("a b", route(x=6)), side("a b c", route(x=6)), {}),
    "a consumer joins, pinned": (side("a b", route(x=6), **PINNED), side("a b c", route(x=6), **PINNED), {}),
    # before, a owns queues 0 to 3 and b the others; afterwards a 0 to 2, b 3 and 4, j the last two
    "a consumer joins, other owners observed": (side("b a", route(x=7)), side("b a j", route(x=7)), observed("b", "", "a", "ab", "b", "j", None)),
    "a process leaves, a queue comes": (side("a a b", route(x=3)), side("a b", route(x=4)), {}),
    "a process comes, a queue leaves": (side("a b", route(x=4)), side("a a b", route(x=3)), lags(4, 1)),
    "more queues": (side("a b", route(x=2)), side("a b", route(x=4)), lags(2, 5)),
    "more queues, one of them observed": (side("a", route(x=1)), side("a", route(x=2)), observed("a", "")),
    "more brokers": (side("a", route(x=4)), side("a", route(x=4, y=2)), {}),
    "a consumer joins, BROADCASTING": (everybody("a a b"), everybody("a a b c"), observed("ab", "")),
    "the first consumer, BROADCASTING": (everybody(""), everybody("a"), {}),
    "the last consumer leaves, BROADCASTING": (everybody("a"), everybody(""), {}),
    "two topics": (side("a b", *TWO), side("a b c", *TWO), {}),
    "all consumers leave": (side("a b", *TWO), side("", *TWO), observed("a", "a", "b", "a")),
    "a consumer of a queue each leaves": (side("a b c", *ONE_EACH), side("a b", *ONE_EACH), {}),
    "no topic": (side("a"), side("a b"), {}),
    "an ID twice becomes two": (side("a a", route(x=4)), side("a b", route(x=4)), {}),
    "an uneven plan moves less than a balanced one": (side("a b c d", route(x=16), **RING), side("a b c d e f", route(x=16), **RING), {}),
}  # fmt: skip


def lines_of(before: Side, after: Side, states: States) -> Iterator[str]:
    plan = plan_rebalance("g", before, after, states=states, changes=["add j"], placeholders=["j"])
    sorted_ids = " ".join(plan.sorted_consumers_before), " ".join(plan.sorted_consumers_after)
    yield f"{plan.strategy} to {plan.strategy_after} by {plan.changes}, {sorted_ids}"
    yield from map(shown, (plan.summary, *plan.consumers, *plan.moves))


def shown(value: Struct) -> str:
    """The values that are known."""
    fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
    known = ((name, astuple(each) if isinstance(each, Struct) else each) for name, each in fields if each is not None)
    return " ".join(f"{name}={each}" for name, each in known)


def test_named_plans_are_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {name: lines_of(*case) for name, case in PLANS.items()}
    assert_recorded(Path(__file__).with_name("plans.txt"), answers, request)


STRATEGIES = st.sampled_from(["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])


@given(members, members, st.integers(1, 9), st.integers(1, 9), STRATEGIES)
def test_applying_the_moves_to_the_owners_before_gives_the_owners_after(
    old: list[str], new: list[str], before_queues: int, after_queues: int, strategy: str
) -> None:
    before = side(" ".join(old), route(x=before_queues), strategy=strategy)
    after = side(" ".join(new), route(x=after_queues), strategy=strategy)
    plan, settled = plan_rebalance("g", before, after), plan_rebalance("g", after, after)
    owners = {m.queue_id: m.owners_before for m in plan.moves if m.change not in ("added", "removed")}
    owners |= {m.queue_id: m.owners_after for m in plan.moves if m.change not in ("same", "removed")}
    assert owners == {m.queue_id: m.owners_after for m in settled.moves}
    assert all(m.change == "same" for m in settled.moves)
    for consumer in plan.consumers:
        assert consumer.queues_after - consumer.queues_before == consumer.gained - consumer.lost
    assert plan.summary.minimum_moves is not None
    assert plan.summary.minimum_moves <= plan.summary.moved


OWNED = st.lists(st.sampled_from("abc"), min_size=1, max_size=5)


@given(OWNED, st.sets(st.sampled_from("abcd"), min_size=1, max_size=3))
def test_least_moves_is_the_least_over_all_even_plans(owned: list[str], ids: set[str]) -> None:
    all_queues = queues(len(owned))
    before = {queue: (owner,) for queue, owner in zip(all_queues, owned, strict=True)}
    plans = product(sorted(ids), repeat=len(owned))
    even = [each for each in plans if max(map(each.count, ids)) - min(map(each.count, ids)) <= 1]
    fewest = min(sum(old != new for old, new in zip(owned, plan, strict=True)) for plan in even)
    assert minimum_moves(before, all_queues, ids) == fewest


def test_the_judge_measures_an_assignment_and_its_minimum_moves() -> None:
    q = queues(4)
    measured = spread({q[0]: ("a", "b"), q[1]: (), q[2]: ("a",), q[3]: ("b", "a")}, ("a", "b", "c", "c"))
    assert (measured.idle, measured.unassigned, measured.duplicate_owners) == (1, 1, 2)
    assert measured.queues_of_duplicate_client_ids == 0
    assert (measured.queues_per_consumer, measured.imbalance) == (QueuesPerConsumer(min=0, mean=5 / 3, max=3), 1.8)
    left = dict(zip(queues(3), [("gone",), ("a",), ("b",)], strict=True))
    assert spread(left, ("a", "b", "b")).queues_of_duplicate_client_ids == 1
    ids = tuple("abcdefg")
    assert spread({queue: (ids[place % 7],) for place, queue in enumerate(queues(15))}, ids).imbalance == 1.4
    assert spread({}, ()).queues_per_consumer is spread({}, ()).imbalance is None
    q = queues(4)
    assert minimum_moves({q[0]: ("a", "b"), q[1]: (), q[2]: ("b",)}, q, ["a", "b"]) == 1
    assert minimum_moves({q[0]: ("gone",), q[1]: ("a",)}, q, ["a", "b"]) == 1


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
    new_ids = combinations(letters, joiners)
    olds = (" ".join(letter for letter in letters if letter not in new) for new in new_ids)
    places = [moved(old, " ".join(letters), number, strategy) for old in olds]
    found = moved_range(" ".join(letters[:members]), "xyz"[:joiners], number, strategy)
    assert found == MovedRange(min(places), max(places))


def test_each_place_has_its_lag_and_there_is_no_range_where_ids_themselves_decide() -> None:
    """Of the first three queues, a's, and the others, c's, a joiner takes the first two, the middle or the last two."""
    states = {queue: QueueState(None, 2**queue.queue_id, 0) for queue in queues(6, "x")}
    before, after = side("a c", route(x=6)), side("a c j", route(x=6))
    _, places = over_places(plan_rebalance(None, before, after, states=states), before, after, ["j"], states)
    assert [(each.moved, each.lag_moved) for each in places] == [(3, 1 + 2 + 8), (2, 4 + 8), (3, 4 + 16 + 32)]
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
    joined = ([*ids, *(f"{place}{letter}" for letter in "wxyz")] for place in ("a", *ids))
    together = [moved(" ".join(ids), " ".join(each), 23, "AVG") for each in joined]
    assert moved_range(" ".join(ids), "wxyz", 23) == MovedRange(min(together), max(together), complete=False)


def test_strategies_are_compared_after_the_plans_own_each_with_a_range_of_its_own() -> None:
    """Six queues: a joiner moves 4 under AVG_BY_CIRCLE wherever it sorts, 2 or 3 under AVG or when a runs that."""
    for strategy_of, own in (({}, MovedRange(4, 4)), ({"a": "AVG"}, MovedRange(2, 3))):
        before = Side(Members(("a", "c"), "AVG_BY_CIRCLE", strategy_of=strategy_of), (route(x=6),))
        after = replace(before, members=replace(before.members, client_ids=("a", "c", "j")))
        plan = compare(plan_rebalance(None, before, after), before, after, ["AVG", "CONSISTENT_HASH"], "j")
        plan, _ = over_places(plan, before, after, ["j"])
        assert [each.summary.moved_range for each in plan.comparison] == [own, MovedRange(2, 3), None]
        assert plan.summary.moved_range == own
    before, after = (side(ids, route(x=4), strategy="AVG_BY_CIRCLE") for ids in ("a b", "a b c"))
    plan = compare(plan_rebalance("g", before, after), before, after, ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
    assert [c.strategy for c in plan.comparison] == ["AVG_BY_CIRCLE", "AVG", "CONSISTENT_HASH"]
    assert plan.comparison[0].summary is plan.summary


NAMED = Edits(add=("z", 1), remove=("a",), replace=(("b", "y"),))
OF_MEMBERS: Sequence[tuple[str, Edits]] = [
    ("c b a", NAMED),
    ("9 10 8 7", Edits(remove=(1,))),
    ("b a", Edits(remove=(2,))),
    ("d c b a", Edits(remove=(1, "a", 1))),
    ("a a", Edits(remove=("a",))),
    ("a b a", Edits(remove=("a", "a"))),
    *(("c a b", Edits(scale_to=number)) for number in (4, 3, 1, 0)),
    ("a a b", Edits(scale_to=2)),
    *(("c a b", replace(NAMED, add=("z",), scale_to=number)) for number in (4, 1)),
    ("placeholder-01", Edits(add=(2,))),
    # the other changes contradict each other, or the group
    ("a b", Edits(add=("a",))),
    ("a b", Edits(remove=("x",))),
    ("a b", Edits(replace=(("x", "y"),))),
    ("a b", Edits(replace=(("a", "b"),))),
    ("a b", Edits(remove=(3,))),
    ("a b", Edits(add=("c",), remove=("c",))),
    ("a b", Edits(add=(1,), scale_to=3)),
    ("a b", Edits(remove=(1,), scale_to=0)),
    ("a b", Edits(add=("c", "c"), remove=("a",), replace=(("b", "d"),))),
    ("a b", Edits(replace=(("a", "c"),), remove=("a",))),
    ("a b", Edits(add_brokers=(NewBroker("x"),), remove_brokers=("x",))),
    ("a b", Edits(add_brokers=(NewBroker("x"), NewBroker("y")), remove_brokers=("z", "y"))),
    ("a b", Edits(add=("x", 2), to_strategy="AVG")),
]
MAPPING = {"a": TopicQueueMappingInfo("S", None, 1, "a", 1, {0: 0})}
STATIC = replace(route("S", a=1), topic_queue_mapping_by_broker=MAPPING)
SLAVE = replace(route(a=4, b=2), broker_datas=(BrokerData("c", "a", {0: "m:1", 1: "s:1"}), *route(b=2).broker_datas))
FOUR, FOUR_TWO, BOTH = [route(a=4)], [route(a=4, b=2)], [route("T", a=4, b=4), route("U", a=2), STATIC]
ADDED = NewBroker("d"), NewBroker("e", 2, 1), NewBroker("f", 3), NewBroker("g", None, 0)
Z = (QueueCount(1, "z"),)
UNFIT = (
    *(Edits(remove_brokers=("z",)), Edits(remove_masters=("z",)), Edits(add_brokers=(NewBroker("a", 1),))),
    *(Edits(read_queues=Z), Edits(write_queues=Z)),
)
OF_ROUTES: Sequence[tuple[list[TopicRouteData], Edits]] = [
    ([route(c=8, a=4, b=4)], Edits(add_brokers=ADDED)),
    (FOUR_TWO, Edits(remove_brokers=("a",))),
    *((routes, Edits(remove_masters=("a",))) for routes in (FOUR_TWO, [SLAVE], [route(masters=False, a=4)])),
    ([route(a=4, b=4)], Edits(read_queues=(QueueCount(6, "a"),), write_queues=(QueueCount(1),))),
    # a group's topics need not be on the same brokers: one made automatically is on one
    *((BOTH, Edits(remove_brokers=(name,))) for name in "ab"),
    *(([route(topic, a=1, b=1) for topic in topics], Edits(remove_brokers=("a", "c"))) for topics in ("T", "ABCDEFGH", "ABCDEFGHI")),
    *((routes, changes) for routes in (FOUR, [STATIC]) for changes in UNFIT),
    ([route()], Edits(add_brokers=(NewBroker("a"),))),
    ([TopicRouteData("T", (QueueData("a", 4, 2, 6),), ())], Edits(add_brokers=(NewBroker("b"),))),
    ([STATIC], Edits(add=(1,))),
]  # fmt: skip


def in_words(route: TopicRouteData) -> str:
    queues = (f"{data.broker_name} {data.read_queue_nums}/{data.write_queue_nums}" for data in route.queue_datas)
    brokers = ", ".join(f"{each.broker_name} {[*each.broker_addrs]}" for each in route.broker_datas)
    sides = len(route.subscribe_queues()), len(route.publish_queues())
    return f"{route.topic} {', '.join(queues)}, reads and writes {sides}, at {brokers}"


def outcome(change: Callable[[Edits], Iterable[str | TopicRouteData]], changes: Edits) -> list[str]:
    try:
        return [each if isinstance(each, str) else in_words(each) for each in change(changes)] or ["nobody"]
    except (DataError, UsageError) as error:
        return [f"{error.code}: {error.message} [{error.hint}]"]


def test_changes_in_words_and_what_they_change_are_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {}
    for ids, changes in OF_MEMBERS:
        answers[f"{ids}: {'; '.join(describe(changes))}"] = outcome(partial(change_members, ids.split()), changes)
    for routes, changes in OF_ROUTES:
        name = f"{'; '.join(map(in_words, routes))}: {'; '.join(describe(changes))}"
        answers[name] = outcome(partial(change_routes, routes), changes)
    assert_recorded(Path(__file__).with_name("changes.txt"), answers, request)
