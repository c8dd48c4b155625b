"""A mere restart at rest: how often queues change owners, and the order in which they do so least."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.plan_rollout.plan import Moves, fewest_moves
from rmqlb.engine.plan_rollout.stages import RolloutModel, rollout_model
from rmqlb.model.route import TopicRouteData
from tests.support.builders import route


def moves_of(rollout: RolloutModel, routes: Sequence[TopicRouteData], order: Sequence[str], at_once: int) -> int:
    """How often queues change owners in all when the members restart in this order."""
    moves = Moves(rollout, routes)
    batches = [order[start : start + at_once] for start in range(0, len(order), at_once)]
    return sum(moves.of(frozenset(order[: index * at_once]), frozenset(batch)) for index, batch in enumerate(batches))


@given(st.integers(1, 5), st.integers(1, 3), st.integers(0, 9), st.data())
def test_no_order_moves_fewer_queues(members: int, at_once: int, queues: int, data: st.DataObject) -> None:
    ids = tuple("abcde"[:members])
    becomes = {i: f"{data.draw(st.sampled_from('ace'))}{i}" for i in ids if data.draw(st.booleans())}
    strategy = data.draw(st.sampled_from(["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"]))
    rollout, routes = rollout_model(Members(ids, strategy), None, None, becomes), [route(a=queues)]
    found = fewest_moves(rollout, routes, at_once)
    assert found is not None
    order, moves = found
    assert moves == moves_of(rollout, routes, order, at_once)
    assert moves == min(moves_of(rollout, routes, other, at_once) for other in permutations(ids))


def test_a_member_that_is_away_moves_its_queues_and_those_behind_it_there_and_back() -> None:
    rollout = rollout_model(Members(("a", "b"), "AVG"), None, None, None)
    assert moves_of(rollout, [route(a=4)], ["a", "b"], 1) == 2 * 2 + 2 * 2
    assert moves_of(rollout, [route(a=4)], ["a", "b"], 2) == 2 * 4


def test_without_new_ids_every_order_moves_as_many() -> None:
    rollout = rollout_model(Members(("a", "b", "c"), "AVG"), None, None, None)
    assert len({moves_of(rollout, [route(a=7)], order, 1) for order in permutations("abc")}) == 1
    found = fewest_moves(rollout, [route(a=7)], 1)
    assert found is not None
    assert found[0] == ("a", "b", "c")  # of equal orders the one that the ids have


def test_members_whose_new_ids_stand_elsewhere_make_the_order_matter() -> None:
    rollout, routes = rollout_model(Members(("a", "b", "c"), "AVG"), None, None, {"a": "x"}), [route(a=6)]
    moves = {order: moves_of(rollout, routes, order, 1) for order in permutations("abc")}
    assert len(set(moves.values())) > 1
    found = fewest_moves(rollout, routes, 1)
    assert found is not None
    assert found[1] == min(moves.values())
