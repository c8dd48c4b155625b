"""`--fail-on`: what can be asked, and what the answer is."""

from __future__ import annotations

import pytest

from rmqlb import UsageError
from rmqlb.engine.fail_on_figures.conditions import parse_condition
from rmqlb.engine.fail_on_figures.of_plan import PLAN_FIGURES, try_on_plan
from rmqlb.engine.fail_on_figures.of_sends import SEND_FIGURES
from rmqlb.engine.plan.placeholders import over_places
from rmqlb.engine.plan.rebalance import plan_rebalance
from rmqlb.model.group import QueueState
from tests.support.builders import queues, route, side

SUMMARY = plan_rebalance("g", side("a b", route(x=4)), side("a b c d e", route(x=4))).summary


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [
        ("idle>0", 1, True),
        ("idle > 1", 1, False),
        ("idle>=20%", 20, True),
        ("moved>50%", 75, True),
        ("moved=3", 3, True),
        ("unassigned!=0", 0, False),
        ("newlyUnassigned>0", 0, False),
        ("duplicateOwners>0", 0, False),
        ("imbalance<1.25", 1.25, False),
        ("min-queues-per-consumer==0", 0, True),
        ("excess-moves>0", 1, True),
        ("lag-moved>0", None, None),
    ],
)
def test_a_condition_looks_at_its_figure(text: str, value: float | None, met: bool | None) -> None:
    tried = try_on_plan(parse_condition(text, PLAN_FIGURES), SUMMARY)
    assert (tried.value, tried.met) == (value, met)


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [
        ("moved>2", 3, True),
        ("moved<3", 2, True),
        ("moved>3", 3, False),
        ("moved>=50%", 50, True),
        ("moved>50%", 50, False),
    ],
)
def test_a_limit_does_not_hold_that_some_order_of_unknown_ids_breaks(text: str, value: float, met: bool) -> None:
    """A joiner moves 2 or 3 of 6 queues: whichever of them breaks the limit counts."""
    for joiner in ("joiner", "b"):  # which moves 3 and 2 itself
        before, after = side("a c", route(x=6)), side(f"a c {joiner}", route(x=6))
        plan, places = over_places(plan_rebalance("g", before, after), before, after, [joiner])
        tried = try_on_plan(parse_condition(text, PLAN_FIGURES), plan.summary, places)
        assert (tried.value, tried.met) == (value, met)


OBSERVED = [("a", "a b"), ("a", ""), ("b", "a"), ("b", "b")]
"""Predicted and observed owners of four queues."""


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [
        ("mismatches>0", 3, True),
        ("mismatches>75%", 75, False),
        ("observed-unassigned>0", 1, True),
        ("observed-duplicate-owners>0", 1, True),
        ("unassigned>0", 0, False),
    ],
)
def test_what_was_observed_has_figures_of_its_own(text: str, value: float, met: bool) -> None:
    states = {
        queue: QueueState(frozenset(seen.split())) for queue, (_, seen) in zip(queues(4, "x"), OBSERVED, strict=True)
    }
    same = side("a b", route(x=4))
    condition = parse_condition(text, PLAN_FIGURES)
    tried = try_on_plan(condition, plan_rebalance("g", same, same, states=states).summary)
    assert (tried.value, tried.met) == (value, met)
    unseen = try_on_plan(condition, plan_rebalance("g", same, same).summary)
    assert unseen.met is (False if condition.name == "unassigned" else None)


def test_what_the_last_bit_of_a_fraction_says_meets_no_condition() -> None:
    seven = parse_condition("moved>7", PLAN_FIGURES)
    assert (7 / 100 * 100 > 7, seven.try_on(7 / 100 * 100).met, seven.try_on(7.00001).met) == (True, False, True)
    assert seven.try_on(2**63 - 1).value == 2**63 - 1


@pytest.mark.parametrize(
    "text", ["", "idle", "idle>", "idle>x", ">0", "idle>-1", "idle>1e9999%", "imbalance>5%", "idel>0"]
)
def test_what_is_not_a_condition_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_condition(text, PLAN_FIGURES)


def test_a_figure_of_a_broker_needs_its_name_and_another_takes_none() -> None:
    with pytest.raises(UsageError, match=r"share of what\?"):
        parse_condition("share>5%", SEND_FIGURES)
    with pytest.raises(UsageError, match="lost is not told apart by name"):
        parse_condition("lost[a]>0", SEND_FIGURES)
    assert parse_condition("share[a]>5%", SEND_FIGURES).subject == "a"


def test_every_figure_can_be_asked_for() -> None:
    names = PLAN_FIGURES.names
    assert all(try_on_plan(parse_condition(f"{name}>=0", PLAN_FIGURES), SUMMARY).text for name in names)
