"""How many queues a joiner moves, over all the places where its id may sort."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine.placement import moves_by_place
from rmqlb.engine.rebalance import plan_rebalance
from tests.builders import route, side


def test_a_joiner_at_either_end_of_two_members_is_not_a_joiner_between_them() -> None:
    before, after = side("a c", route(x=6)), side("a c joiner", route(x=6))
    assert moves_by_place(before, after, ["joiner"]) == (2, 3)


@given(st.integers(1, 5), st.integers(1, 12), st.sampled_from(["AVG", "AVG_BY_CIRCLE"]))
def test_the_range_holds_every_real_place(members: int, queues: int, strategy: str) -> None:
    ids = [chr(ord("b") + 2 * i) for i in range(members)]
    before = side(" ".join(ids), route(x=queues), strategy=strategy)
    moved = [
        plan_rebalance(None, before, side(" ".join([*ids, chr(ord("a") + 2 * i)]), route(x=queues), strategy=strategy))
        for i in range(members + 1)
    ]
    found = moves_by_place(before, side(" ".join([*ids, "joiner"]), route(x=queues), strategy=strategy), ["joiner"])
    assert found == (min(p.summary.moved for p in moved), max(p.summary.moved for p in moved))


def test_where_ids_themselves_decide_there_is_no_range() -> None:
    before, after = (
        side("a", route(x=4), strategy="CONSISTENT_HASH"),
        side("a j", route(x=4), strategy="CONSISTENT_HASH"),
    )
    assert moves_by_place(before, after, ["j"]) is None
