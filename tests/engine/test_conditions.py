from pathlib import Path

import pytest
from msgspec.structs import replace

from rmqlb import UsageError
from rmqlb.engine.conditions import parse_condition
from rmqlb.engine.plan.rebalance import PLAN_FIGURES, over_places, plan_rebalance, try_on_plan
from rmqlb.engine.send.findings import SEND_FIGURES
from rmqlb.model.owners import QueuesPerConsumer, Spread
from rmqlb.model.plan import ObservedOwners, Summary
from tests.support.builders import route, side
from tests.support.mismatches import assert_recorded, every_case, refusal

SUMMARY = plan_rebalance("g", side("a b", route(x=4)), side("a b c d e", route(x=4))).summary


@every_case(("text", "value", "met"), [
    *(("idle > 0", 1, True), ("idle>1", 1, False), ("idle>=20%", 20, True), ("moved=3", 3, True)),
    *(("unassigned!=0", 0, False), ("newlyUnassigned>0", 0, False), ("imbalance<1.25", 1.25, False)),
    *(("min-queues-per-consumer==0", 0, True), ("lag-moved>0", None, None)),
])  # fmt: skip
def test_a_condition_looks_at_its_figure(text: str, value: float | None, met: bool | None) -> None:
    tried = try_on_plan(parse_condition(text, PLAN_FIGURES), SUMMARY)
    assert (tried.value, tried.met) == (value, met)


@every_case(("text", "value", "met"), [
    *(("moved>2", 3, True), ("moved<3", 2, True), ("moved>3", 3, False)),
    *(("moved>=50%", 50, True), ("moved>50%", 50, False)),
])  # fmt: skip
def test_a_limit_does_not_hold_that_some_order_of_unknown_ids_breaks(text: str, value: float, met: bool) -> None:
    """A joiner moves 2 or 3 of 6 queues: whichever of them breaks the limit counts."""
    for joiner in ("joiner", "b"):  # which moves 3 and 2 itself
        before, after = side("a c", route(x=6)), side(f"a c {joiner}", route(x=6))
        plan, places = over_places(plan_rebalance("g", before, after), before, after, [joiner])
        tried = try_on_plan(parse_condition(text, PLAN_FIGURES), plan.summary, places)
        assert (tried.value, tried.met) == (value, met)


EACH_OTHER = Summary(
    moved=11, minimum_moves=4, newly_assigned=12, newly_unassigned=13, added=14, removed=20, lag_moved=15,
    writable_queues_before=16, writable_queues_after=17, idle=21, unassigned=22, duplicate_owners=23, imbalance=2.5,
    before=Spread(130, 31, 32, 33, 34, QueuesPerConsumer(35, 36.0, 37), 3.5, 38),
    after=Spread(200, 21, 22, 23, 24, QueuesPerConsumer(25, 26.0, 27), 2.5, 70),
    lag_unassigned=18, lag_removed=19,
    observed=ObservedOwners(queues=50, unassigned=6, duplicate_owners=8, mismatches=9, moved=10),
)  # fmt: skip
"""Figures of which no two are alike; they are of no group."""
UNKNOWN = replace(EACH_OTHER, lag_moved=None)


def test_each_figure_of_a_plan_and_its_whole_are_as_recorded(request: pytest.FixtureRequest) -> None:
    def value(text: str) -> object:
        try:
            return try_on_plan(parse_condition(text, PLAN_FIGURES), EACH_OTHER).value
        except UsageError as error:
            return error.message

    answers = {name: [f"{value(f'{name}>=0')}, share: {value(f'{name}>=0%')}"] for name in PLAN_FIGURES.names}
    assert_recorded(Path(__file__).with_name("figures.txt"), answers, request)


def test_figures_of_a_group_without_consumers_are_unknown() -> None:
    summary = plan_rebalance("g", side("a b", route(x=4)), side("", route(x=4))).summary
    for name in ("min-queues-per-consumer", "max-queues-per-consumer", "imbalance", "excess-moves", "mismatches"):
        assert try_on_plan(parse_condition(f"{name}>=0", PLAN_FIGURES), summary).met is None
    for name in ("idle", "mismatches"):  # of no consumer, and of no queue that was seen
        tried = try_on_plan(parse_condition(f"{name}>=0%", PLAN_FIGURES), summary)
        assert (tried.value, tried.met) == (None, None)


@every_case(("text", "places", "value", "met"), [
    ("lag-moved>2", (UNKNOWN,), 3, True),
    ("lag-moved>2", (UNKNOWN, EACH_OTHER), 15, True),
    ("lag-moved>3", (UNKNOWN,), None, None),
    ("lag-moved>15", (EACH_OTHER,), 15, False),
])  # fmt: skip
def test_what_is_unknown_at_one_place_is_unknown_unless_another_meets_it(
    text: str, places: tuple[Summary, ...], value: float | None, met: bool | None
) -> None:
    tried = try_on_plan(parse_condition(text, PLAN_FIGURES), replace(EACH_OTHER, lag_moved=3), places)
    assert (tried.value, tried.met) == (value, met)


def test_what_the_last_bit_of_a_fraction_says_meets_no_condition() -> None:
    seven = parse_condition("moved>7", PLAN_FIGURES)
    assert (7 / 100 * 100 > 7, seven.try_on(7 / 100 * 100).met, seven.try_on(7.00001).met) == (True, False, True)
    assert seven.try_on(2**63 - 1).value == 2**63 - 1


@every_case("text", [
    *("", "idle", "idle>", "idle>x", ">0", "idle>-1", "idle>1e9999%", "imbalance>5%", "idel>0"),
    *("share>5%", "lost[a]>0"),  # a figure of a broker needs its name, and another takes none
])  # fmt: skip
def test_what_is_not_a_condition_is_refused(text: str) -> None:
    refusal(UsageError, parse_condition, text, SEND_FIGURES if text.startswith(("share", "lost")) else PLAN_FIGURES)
