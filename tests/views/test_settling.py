"""The line of a plan that tells how long the change takes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rmqlb.engine.plan.rebalance import plan_rebalance
from rmqlb.model.plan import Settling
from rmqlb.views.plan.data import plan_data
from rmqlb.views.plan.settling import settling_facts
from tests.support.builders import route, side

ALL = Settling(
    trials=5,
    settled=5,
    settled_us=1_054_321,
    worst_settled_us=1_062_000,
    longest_none_us=1_001_000,
    longest_several_us=56_000,
    unread_us=0,
)
SOME = replace(ALL, settled=3, worst_settled_us=None)
NONE = replace(ALL, settled=0, settled_us=None, worst_settled_us=None, longest_none_us=None, longest_several_us=None)


@pytest.mark.parametrize(
    ("found", "words", "milliseconds"),
    [
        (ALL, ("1.054s", "1.062s in the worst", "1.001s without owner", "56ms with two"), (1054.321, 1062.0)),
        (SOME, ("1.054s", "not in each of 5", "1.001s without owner"), (1054.321, None)),
        (NONE, ("not settled after the change in any of 5 simulations",), (None, None)),
    ],
    ids=["in each", "in some", "in none"],
)
def test_a_plan_says_in_how_many_simulations_it_settles(
    found: Settling, words: tuple[str, ...], milliseconds: tuple[float | None, float | None]
) -> None:
    group = side("a b", route(x=4))
    plan = replace(plan_rebalance("g", group, group), settling=found)
    (fact,) = settling_facts(plan)
    assert all(each in fact for each in words), fact
    assert ("not settled" in fact) == (found.settled == 0)
    assert ("without owner" in fact) == (found.longest_none_us is not None)
    data = plan_data(plan, ())["settling"]
    assert data is not None
    assert (data["settledMs"], data["worstSettledMs"]) == milliseconds
