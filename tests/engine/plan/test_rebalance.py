from itertools import combinations, product
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import DataError, MessageQueue, TopicRouteData, UsageError
from rmqlb.engine.assignment.assign import Members, minimum_moves, spread
from rmqlb.engine.plan.changes import (
    Changes,
    NewBroker,
    QueueCount,
    change_members,
    change_route,
    change_routes,
    describe,
)
from rmqlb.engine.plan.rebalance import Side, compare, over_places, plan_rebalance
from rmqlb.model.group import QueueState, States
from rmqlb.model.owners import QueuesPerConsumer, Spread
from rmqlb.model.plan import ConsumerPlan, MovedRange, ObservedOwners, RebalancePlan
from rmqlb.model.route import BrokerData, TopicQueueMappingInfo
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
    seen = [("b",), (), ("a",), ("a", "b"), ("b",), ("j",), None]
    owners = (None if ids is None else frozenset(ids) for ids in seen)
    states = {queue: QueueState(ids, 2**queue.queue_id, 0) for queue, ids in zip(queues(7, "x"), owners, strict=True)}
    before, after = side("b a", route(x=7)), side("b a j", route(x=7))
    plan = plan_rebalance("g", before, after, states=states, changes=["add j"], placeholders=["j"])
    assert plan.consumers == (
        ConsumerPlan("a", 4, 3, 0, 1, 0, 8, 0, 0, 1, 1, queues_observed=2),
        ConsumerPlan("b", 3, 2, 1, 2, 8, 96, 1, 1, 1, 1, queues_observed=3),
        ConsumerPlan("j", 0, 2, 2, 0, 96, 0, None, 2, 0, 1, placeholder=True, queues_observed=1),
    )
    found = plan.summary
    assert (found.moved, found.minimum_moves, found.moved_range) == (3, 2, MovedRange(3, 3))
    assert (found.lag_moved, found.lag_unassigned, found.lag_removed) == (8 + 32 + 64, 0, 0)
    assert (found.newly_assigned, found.newly_unassigned, found.added, found.removed) == (0, 0, 0, 0)
    assert (found.writable_queues_before, found.writable_queues_after) == (7, 7)
    assert found.before == Spread(7, 0, 0, 0, 0, QueuesPerConsumer(3, 3.5, 4), 8 / 7, 2)
    assert found.after == Spread(7, 0, 0, 0, 0, QueuesPerConsumer(2, 7 / 3, 3), 9 / 7, 3)
    assert (found.idle, found.unassigned, found.duplicate_owners, found.imbalance) == (0, 0, 0, 9 / 7)
    assert found.observed == ObservedOwners(queues=6, unassigned=1, duplicate_owners=1, mismatches=4, moved=2)
    assert plan.changes == ("add j",)
    assert (plan.sorted_consumers_before, plan.sorted_consumers_after) == (("a", "b"), ("a", "b", "j"))
    assert [(move.owners_observed, move.lag) for move in plan.moves] == [(ids, 2**n) for n, ids in enumerate(seen)]


def test_in_a_broadcasting_group_no_queue_moves_and_no_owner_is_one_too_many() -> None:
    states = dict(zip(queues(2, "x"), (QueueState(frozenset(ids), 0, 0) for ids in ("ab", "")), strict=True))
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


NAMED = Changes(add=("z", 1), remove=("a",), replace=(("b", "y"),))
Z = (QueueCount(1, "z"),)
ON_BROKERS = [Changes(remove_brokers=("z",)), Changes(remove_masters=("z",)), Changes(add_brokers=(NewBroker("a", 1),))]
ON_BROKERS += [Changes(read_queues=Z), Changes(write_queues=Z)]


@every_case(("members", "changes", "after"), [
    ("c b a", NAMED, "c placeholder-01 y z"),
    ("a", Changes(add_brokers=(NewBroker("x"),), remove_brokers=("y",)), "a"),
    ("9 10 8 7", Changes(remove=(1,)), "10 7 8"),
    ("b a", Changes(remove=(2,)), ""),
    ("d c b a", Changes(remove=(1, "a", 1)), "b"),
    ("a a", Changes(remove=("a",)), "a"),
    ("a b a", Changes(remove=("a", "a")), "b"),
    ("c a b", Changes(scale_to=4), "a b c placeholder-01"),
    ("c a b", Changes(scale_to=3), "a b c"),
    ("c a b", Changes(scale_to=1), "a"),
    ("c a b", Changes(scale_to=0), ""),
    ("a a b", Changes(scale_to=2), "a a"),
    ("c a b", replace(NAMED, add=("z",), scale_to=4), "c placeholder-01 y z"),
    ("c a b", replace(NAMED, add=("z",), scale_to=1), "c"),
    ("placeholder-01", Changes(add=(2,)), "placeholder-01 placeholder-02 placeholder-03"),
])  # fmt: skip
def test_members_are_replaced_removed_added_and_scaled(members: str, changes: Changes, after: str) -> None:
    assert change_members(members.split(), changes) == tuple(after.split())


TWICE = "the changes contradict each other"
SCALED = "--scale-to sets the final number of consumers, but a count in --add or --remove changes it"


@every_case(("changes", "problem"), [
    (Changes(add=("a",)), "--add a: it is already in the group"),
    (Changes(remove=("x",)), "--remove x: it is not in the group"),
    (Changes(replace=(("x", "y"),)), "--replace x: it is not in the group"),
    (Changes(replace=(("a", "b"),)), "--replace a=b: b is already in the group"),
    (Changes(remove=(3,)), "--remove 3: the group has only 2 consumers"),
    (Changes(add=("c",), remove=("c",)), f"c is named twice, in --add and --remove: {TWICE}"),
    (Changes(add=(1,), scale_to=3), SCALED),
    (Changes(remove=(1,), scale_to=0), SCALED),
    (Changes(add=("c", "c"), remove=("a",), replace=(("b", "d"),)), f"c is named twice, in --add: {TWICE}"),
    (Changes(replace=(("a", "c"),), remove=("a",)), f"a is named twice, in --remove and --replace: {TWICE}"),
    (Changes(add_brokers=(NewBroker("x"),), remove_brokers=("x",)), f"broker x is added or removed twice: {TWICE}"),
    (Changes(add_brokers=(NewBroker("x"), NewBroker("y")), remove_brokers=("z", "y")), f"broker y is added or removed twice: {TWICE}"),
])  # fmt: skip
def test_changes_that_make_no_sense_are_refused(changes: Changes, problem: str) -> None:
    with pytest.raises((DataError, UsageError)) as raised:
        change_members(["a", "b"], changes)
    assert raised.value.message == problem


def test_a_lost_broker_is_lost_to_the_topics_that_it_has() -> None:
    """A group's topics need not be on the same brokers: one made automatically is on one, a static one on none."""
    one, other = route("T", a=4, b=4), route("U", a=2)
    mapping = {"a": TopicQueueMappingInfo("S", None, 1, "a", 1, {})}
    static = replace(route("S", a=1), topic_queue_mapping_by_broker=mapping)
    after = change_routes([one, other, static], Changes(remove_brokers=("b",)))
    assert after == (route("T", a=4), other, static)
    with pytest.raises(UsageError, match="topic S is a static topic"):
        change_routes([one, static], Changes(remove_brokers=("a",)))
    eight = "A B C D E F G H"
    cut = "topics A, B, C, D, E, F, G, H, … have"
    for topics, named in (("T", "topic T has"), (eight, cut.replace(", …", "")), (f"{eight} I", cut)):
        with pytest.raises((DataError, UsageError)) as raised:
            change_routes([route(topic, a=1, b=1) for topic in topics.split()], Changes(remove_brokers=("a", "c")))
        assert raised.value.message == f"--remove-broker c: {named} no such broker"
        assert raised.value.hint == "known brokers: a, b"


@every_case(("before", "changes", "after"), [
    ({"c": 8, "a": 4, "b": 4}, Changes(add_brokers=(NewBroker("d"), NewBroker("e", 2, 1), NewBroker("f", 3), NewBroker("g", None, 0))), {"c": (8, 8), "a": (4, 4), "b": (4, 4), "d": (4, 4), "e": (2, 1), "f": (3, 3), "g": (4, 0)}),
    ({"a": 4, "b": 2}, Changes(remove_brokers=("a",)), {"b": (2, 2)}),
    ({"a": 4, "b": 2}, Changes(remove_masters=("a",)), {"b": (2, 2)}),
    ({"a": 4, "b": 4}, Changes(read_queues=(QueueCount(6, "a"),), write_queues=(QueueCount(1),)), {"a": (6, 1), "b": (4, 1)}),
])  # fmt: skip
def test_brokers_and_counts_change(before: dict[str, int], changes: Changes, after: dict[str, tuple[int, int]]) -> None:
    changed = change_route(route(**before), changes)  # type: ignore[arg-type]
    assert {each.broker_name: (each.read_queue_nums, each.write_queue_nums) for each in changed.queue_datas} == after
    written = {(name, number) for name, (_, writes) in after.items() for number in range(writes)}
    assert {(q.broker_name, q.queue_id) for q in changed.publish_queues()} == written


def test_without_its_master_a_broker_is_read_and_not_written() -> None:
    addresses = BrokerData("c", "a", {0: "m:1", 1: "s:1"}), *route(b=2).broker_datas
    slaves = replace(route(a=4, b=2), broker_datas=addresses)
    left = change_route(slaves, Changes(remove_masters=("a",)))
    assert left.broker_datas[0].broker_addrs == {1: "s:1"}
    assert left.publish_queues() == [MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)]
    assert left.subscribe_queues() == slaves.subscribe_queues()


STATIC = TopicRouteData("T", (), (), None, {"a": TopicQueueMappingInfo("T", "__global__", 4, "a", 1, {0: 0})})


def test_a_broker_must_fit_the_route_and_a_static_topic_does_not_follow_brokers() -> None:
    for changes in ON_BROKERS:
        with pytest.raises((DataError, UsageError)):
            change_route(route(a=4), changes)
        with pytest.raises(UsageError, match="static topic"):
            change_route(STATIC, changes)
    assert change_route(STATIC, Changes(add=(1,))) is STATIC
    with pytest.raises(DataError, match="broker a of topic T has no master"):
        change_route(route(masters=False, a=4), Changes(remove_masters=("a",)))
    with pytest.raises(UsageError, match="no other broker"):
        change_route(route(), Changes(add_brokers=(NewBroker("a"),)))


def test_a_change_reads_as_words() -> None:
    changes = Changes(
        add=("x", 2), remove=(1,), replace=(("a", "b"),), to_strategy="AVG", add_brokers=(NewBroker("n"),),
        remove_brokers=("o",), remove_masters=("m",), read_queues=(QueueCount(4),),
        write_queues=(QueueCount(2, "n"),), scale_to=1,
    )  # fmt: skip
    assert "; ".join(describe(changes)) == (
        "a is replaced by b; remove the last consumer; add x; add 2 placeholder consumers; scale to 1 consumer; "
        "remove broker o; remove the master of broker m; add broker n; 4 read queues on every broker; "
        "2 write queues on n; to strategy AVG"
    )
