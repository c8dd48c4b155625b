"""The plan: what it says of each queue, consumer and figure, and that it holds together."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.assignment.balance import minimum_moves, spread
from rmqlb.engine.plan.rebalance import Side, compare, plan_rebalance
from rmqlb.model.evenness import QueuesPerConsumer, Spread
from rmqlb.model.group import QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.plan import (
    ConsumerPlan,
    MovedRange,
    ObservedOwners,
    RebalancePlan,
    Summary,
)
from tests.support.builders import queues, route, side

members = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6)


def changes(plan: RebalancePlan) -> str:
    return " ".join(move.change for move in plan.moves)


@pytest.mark.parametrize("strategy", ["AVG", "PIN"])  # names that sort before BROADCASTING and behind it
def test_a_joiner_under_avg_moves_the_blocks_behind_it(strategy: str) -> None:
    before, after = (side(ids, route(x=6), strategy=strategy, hosts=frozenset("abc")) for ids in ("a b", "a b c"))
    plan = plan_rebalance("g", before, after)
    assert changes(plan) == "same same moved same moved moved"
    assert plan.summary.moved == 3
    assert plan.summary.minimum_moves == 2


@given(members, members, st.integers(0, 20))
def test_the_minimum_is_never_above_the_moves(before: list[str], after: list[str], number: int) -> None:
    sides = (side(" ".join(ids), route(x=number), strategy="CONSISTENT_HASH") for ids in (before, after))
    summary = plan_rebalance("g", *sides).summary
    assert summary.minimum_moves is not None
    assert summary.minimum_moves <= summary.moved


def test_an_uneven_plan_that_moves_less_than_a_balanced_one_has_its_own_moves_as_the_minimum() -> None:
    ids = "a b c d e f"
    sides = (side(some, route(x=16), strategy="CONSISTENT_HASH") for some in (ids[:-2], ids))
    plan = plan_rebalance("g", *sides)
    owners = {MessageQueue("T", "x", move.queue_id): move.owners_before for move in plan.moves}
    assert minimum_moves(owners, owners, ids.split()) == 3
    assert (plan.summary.moved, plan.summary.minimum_moves) == (1, 1)


def test_each_kind_of_change_has_a_name() -> None:
    grown = plan_rebalance(None, side("a a b", route(x=3)), side("a b", route(x=4)))
    assert changes(grown) == "same assigned same added"
    shrunk = plan_rebalance(None, side("a b", route(x=4)), side("a a b", route(x=3)))
    assert changes(shrunk) == "same unassigned same removed"


def observed(**owners: str) -> dict[MessageQueue, QueueState]:
    """Queues of broker x by number, `x0="a b"`, whose lags are 1, 2, 4, …: each sum of them is another."""
    seen = {int(name[1:]): frozenset(ids.split()) for name, ids in owners.items()}
    return {queue: QueueState(seen.get(queue.queue_id), 2**queue.queue_id, 0) for queue in queues(7, "x")}


def test_a_plan_has_each_of_its_figures() -> None:
    """Before, a owns queues 0 to 3 and b the others; afterwards a 0 to 2, b 3 and 4, j the last two."""
    states = observed(x0="b", x1="", x2="a", x3="a b", x4="b", x5="j")
    plan = plan_rebalance(
        "g", side("b a", route(x=7)), side("b a j", route(x=7)), states=states, changes=["add j"], placeholders=["j"]
    )
    assert plan.consumers == (
        ConsumerPlan("a", 4, 3, 0, 1, 0, 8, 0, 0, 1, 1, queues_observed=2),
        ConsumerPlan("b", 3, 2, 1, 2, 8, 96, 1, 1, 1, 1, queues_observed=3),
        ConsumerPlan("j", 0, 2, 2, 0, 96, 0, None, 2, 0, 1, placeholder=True, queues_observed=1),
    )
    assert plan.summary == Summary(
        moved=3,
        minimum_moves=2,
        newly_assigned=0,
        newly_unassigned=0,
        added=0,
        removed=0,
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
        lag_unassigned=0,
        lag_removed=0,
        observed=ObservedOwners(queues=6, unassigned=1, duplicate_owners=1, mismatches=4, moved=2),
    )
    assert plan.changes == ("add j",)
    assert (plan.sorted_consumers_before, plan.sorted_consumers_after) == (("a", "b"), ("a", "b", "j"))
    seen = [("b",), (), ("a",), ("a", "b"), ("b",), ("j",), None]
    assert [(move.owners_observed, move.lag) for move in plan.moves] == [
        (owners, 2**number) for number, owners in enumerate(seen)
    ]


def test_owners_seen_of_a_queue_that_is_only_there_afterwards_do_not_count() -> None:
    plan = plan_rebalance("g", side("a", route(x=1)), side("a", route(x=2)), states=observed(x0="a", x1=""))
    assert plan.summary.observed == ObservedOwners(queues=1, unassigned=0, duplicate_owners=0, mismatches=0, moved=0)


def everybody(ids: str) -> Side:
    """A broadcasting group's members on two queues."""
    return Side(Members(tuple(ids.split()), "AVG", broadcasting=True), (route(x=2),))


def test_in_a_broadcasting_group_no_queue_moves_and_no_owner_is_one_too_many() -> None:
    states = observed(x0="a b", x1="")
    plan = plan_rebalance("g", everybody("a a b"), everybody("a a b c"), states=states)
    assert changes(plan) == "same same"
    assert plan.summary == Summary(
        moved=0,
        minimum_moves=0,
        newly_assigned=0,
        newly_unassigned=0,
        added=0,
        removed=0,
        lag_moved=0,
        writable_queues_before=2,
        writable_queues_after=2,
        idle=0,
        unassigned=0,
        duplicate_owners=0,
        imbalance=1.0,
        before=Spread(2, 0, 0, 0, 0, QueuesPerConsumer(2, 2.0, 2), 1.0, 2),
        after=Spread(2, 0, 0, 0, 0, QueuesPerConsumer(2, 2.0, 2), 1.0, 3),
        moved_range=MovedRange(0, 0),
        lag_unassigned=0,
        lag_removed=0,
        observed=ObservedOwners(queues=2, unassigned=1, duplicate_owners=0, mismatches=1, moved=0),
    )


def test_in_a_broadcasting_group_queues_get_a_first_consumer_and_lose_the_last() -> None:
    first = plan_rebalance("g", everybody(""), everybody("a"))
    assert (changes(first), first.summary.minimum_moves) == ("assigned assigned", 0)
    last = plan_rebalance("g", everybody("a"), everybody(""))
    assert (changes(last), last.summary.minimum_moves) == ("unassigned unassigned", 0)


def test_the_fewest_moves_are_those_of_each_topic_together() -> None:
    """Of four queues c takes one at the least, whatever it has of other topics already."""
    routes = route("T", x=4), route("U", x=4)
    plan = plan_rebalance("g", side("a b", *routes), side("a b c", *routes))
    assert plan.summary.minimum_moves == 2
    nobody = plan_rebalance("g", side("a b", *routes), side("", *routes))
    assert nobody.summary.minimum_moves is None


def test_a_plan_of_no_topic_counts_its_consumers_and_none_is_idle() -> None:
    plan = plan_rebalance("g", side("a"), side("a b"))
    assert (plan.consumers, plan.topics, plan.summary.minimum_moves, plan.summary.after.consumers) == ((), (), 0, 2)
    assert plan.summary.after.idle == 0


def test_consumers_gain_and_lose_queues_with_their_lag() -> None:
    states = {queue: QueueState(None, 10 * queue.queue_id, 0) for queue in queues(6, "x")}
    plan = plan_rebalance("g", side("a b", route(x=6)), side("a b c", route(x=6)), states=states)
    gains = [(c.client_id, c.gained, c.lag_gained, c.lost, c.lag_lost) for c in plan.consumers]
    assert gains == [("a", 0, 0, 1, 20), ("b", 1, 20, 2, 90), ("c", 2, 90, 0, 0)]
    assert plan.summary.lag_moved == 20 + 40 + 50


def test_what_waits_in_removed_and_in_unassigned_queues_is_counted_apart() -> None:
    states = {queue: QueueState(None, 10 * queue.queue_id + 1, 0) for queue in queues(4, "x")}
    plan = plan_rebalance(None, side("a b", route(x=4)), side("a a b", route(x=3)), states=states)
    assert changes(plan) == "same unassigned same removed"
    assert (plan.summary.lag_unassigned, plan.summary.lag_removed) == (11, 31)


def test_lag_that_is_not_known_for_all_queues_is_unknown() -> None:
    states = {MessageQueue("T", "x", 2): QueueState(None, 5, 1)}
    plan = plan_rebalance("g", side("a b", route(x=6)), side("a b c", route(x=6)), states=states)
    assert plan.summary.lag_moved is None


def test_a_queue_that_is_new_adds_no_lag_to_what_is_known_of_the_others() -> None:
    states = {queue: QueueState(None, 10 * queue.queue_id + 5, 0) for queue in queues(2, "x")}
    plan = plan_rebalance("g", side("a b", route(x=2)), side("a b", route(x=4)), states=states)
    assert changes(plan) == "same moved added added"
    assert [(c.client_id, c.gained, c.lag_gained, c.lag_lost) for c in plan.consumers] == [
        ("a", 1, 15, 0),
        ("b", 2, 0, 15),
    ]


def test_topics_are_dealt_out_one_by_one_so_that_first_ids_get_more() -> None:
    plan = plan_rebalance(
        "g", side("a b", route("T", x=1), route("U", x=1)), side("a b", route("T", x=1), route("U", x=1))
    )
    assert [(c.client_id, c.queues_after) for c in plan.consumers] == [("a", 2), ("b", 0)]
    assert plan.consumers[1].idle_reason == "consumer 1 of 2 (counted from 0), and only 1 queues"


def test_a_consumer_that_goes_is_not_idle() -> None:
    plan = plan_rebalance("g", side("a b c", route(x=1)), side("a b", route(x=1)))
    assert [(c.client_id, c.queues_after, c.idle_reason is None) for c in plan.consumers] == [
        ("a", 1, True),
        ("b", 0, False),
        ("c", 0, True),
    ]


def test_a_shared_id_counts_its_processes_and_the_queues_that_each_of_them_reads() -> None:
    plan = plan_rebalance("g", side("a a", route(x=4)), side("a b", route(x=4)))
    assert (plan.summary.before.queues_of_duplicate_client_ids, plan.summary.before.unassigned) == (2, 2)
    assert (plan.summary.after.queues_of_duplicate_client_ids, plan.summary.after.unassigned) == (0, 0)
    assert plan.consumers[0].processes_before == 2


def test_comparing_strategies_keeps_the_plans_own_first() -> None:
    before, after = (
        side("a b", route(x=4), strategy="AVG_BY_CIRCLE"),
        side("a b c", route(x=4), strategy="AVG_BY_CIRCLE"),
    )
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


def test_without_members_no_plan_is_even() -> None:
    assert minimum_moves(dict.fromkeys(queues(2), ("a",)), queues(2), []) is None


def test_the_judge_counts_idle_and_unassigned_and_duplicate_owners() -> None:
    q = queues(4)
    measured = spread({q[0]: ("a", "b"), q[1]: (), q[2]: ("a",), q[3]: ("b", "a")}, ("a", "b", "c", "c"))
    assert (measured.idle, measured.unassigned, measured.duplicate_owners) == (1, 1, 2)
    assert measured.queues_of_duplicate_client_ids == 0
    assert (measured.queues_per_consumer, measured.imbalance) == (QueuesPerConsumer(min=0, mean=5 / 3, max=3), 1.8)


def test_an_owner_that_is_no_member_any_more_shares_its_id_with_nobody() -> None:
    owned = {queue: (owner,) for queue, owner in zip(queues(3), ("gone", "a", "b"), strict=True)}
    assert spread(owned, ("a", "b", "b")).queues_of_duplicate_client_ids == 1


def test_the_plan_counts_the_queues_that_producers_see_on_both_sides() -> None:
    summary = plan_rebalance(None, side("a", route(x=4)), side("a", route(x=4, y=2))).summary
    assert (summary.writable_queues_before, summary.writable_queues_after) == (4, 6)


def test_most_over_mean_is_the_number_that_one_would_write() -> None:
    ids = tuple("abcdefg")
    owners = {queue: (ids[place % 7],) for place, queue in enumerate(queues(15))}
    assert spread(owners, ids).imbalance == 1.4
    owners = dict.fromkeys(queues(1), ("a",))
    assert spread(owners, ids[:1]).imbalance == 1.0


def test_the_spread_of_nothing_is_unknown_not_zero() -> None:
    measured = spread({}, ())
    assert (measured.queues_per_consumer, measured.imbalance) == (None, None)
