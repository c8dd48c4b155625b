"""The first line of a plan: the worst of the change stands there, and it agrees with every figure below it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.plan.rebalance import Side, over_places, plan_rebalance
from rmqlb.model.group import States
from rmqlb.model.plan import MovedRange, ObservedOwners
from rmqlb.views.plan_rebalance import headline, plan_report
from tests.support.builders import route, side
from tests.support.states import seen


def line(before: Side, after: Side, *placeholders: str, states: States | None = None) -> str:
    plan, _ = over_places(plan_rebalance("g", before, after, states=states), before, after, placeholders)
    assert plan_report(plan).facts[0] == headline(plan)
    return headline(plan).removeprefix("g, ")


NOBODY = Side(Members((), "AVG"), (route(x=4),))


def test_a_group_that_loses_all_its_consumers_says_so_first() -> None:
    assert line(side("a b c", route(x=4)), NOBODY) == "3 → 0 consumers: all 4 queues become unassigned"
    left = line(side("a b c", route(x=4)), NOBODY, states=seen(*"aabc", lag=301))
    assert left == "3 → 0 consumers: all 4 queues become unassigned, 1,204 messages left waiting"
    assert line(side("a", route(x=1)), replace(NOBODY, routes=(route(x=1),))) == (
        "1 → 0 consumers: 1 of 1 queue becomes unassigned"
    )


def test_queues_that_no_member_subscribes_to_are_unassigned_though_consumers_are_left() -> None:
    deaf = Side(Members(("a", "b"), "AVG", subscribed={"b": frozenset({"U"})}), (route(x=4),))
    assert line(side("a", route(x=4)), deaf) == ("1 → 2 consumers: 2 of 4 queues become unassigned; no queue moves")
    assert line(deaf, deaf) == "2 consumers: 2 of 4 queues are unassigned (2 before the change); no queue moves"


def test_duplicate_owners_and_processes_of_one_id_stand_before_the_moves() -> None:
    mixed = Side(Members(("a", "b"), "AVG", strategy_of={"b": "AVG_BY_CIRCLE"}), (route(x=4),))
    assert line(side("a b", route(x=4)), mixed).startswith(
        "2 consumers: 1 of 4 queues becomes unassigned; 1 of 4 queues has duplicate owners; "
    )
    shared = line(side("a b", route(x=4)), side("a a b", route(x=4)))
    assert "2 of 4 queues are read by several processes of one client ID" in shared


def test_removed_queues_are_told_with_what_is_left_in_them() -> None:
    before, after = side("a", route(x=4)), side("a", route(x=3))
    assert line(before, after) == "1 consumer: 1 of 4 queues is removed; no queue moves"
    states = seen(*"aaaa", lag=1)
    assert line(before, after, states=states) == (
        "1 consumer: 1 of 4 queues is removed with 1 unread message; no queue moves"
    )


def test_the_moves_over_unknown_ids_are_a_range_and_the_summary_has_the_same() -> None:
    before, after = side("a c", route(x=6)), side("a c joiner", route(x=6))
    assert line(before, after, "joiner") == (
        "2 → 3 consumers: 2 to 3 of 6 queues move, depending on how the new client IDs sort"
    )
    plan, _ = over_places(plan_rebalance("g", before, after), before, after, ["joiner"])
    assert plan.summary.moved_range == MovedRange(fewest=2, most=3, complete=True)
    assert line(before, after) in ("2 → 3 consumers: 2 of 6 queues move", "2 → 3 consumers: 3 of 6 queues move")


def test_where_ids_themselves_decide_the_number_is_called_one_of_many() -> None:
    before, after = (side(ids, route(x=6), strategy="CONSISTENT_HASH") for ids in ("a c", "a c j"))
    assert line(before, after, "j").endswith(" of 6 queues move with placeholder client IDs, which other IDs change")


def test_observed_owners_that_are_not_the_predicted_ones_are_told_and_shown() -> None:
    """The cluster reports two queues without owner: a plan said that none is unassigned."""
    states = seen("a", "", "", "a b")
    same = side("a b", route(x=4))
    plan = plan_rebalance("g", same, same, states=states)
    report = plan_report(plan)
    assert report.facts[0] == (
        "g, 2 consumers: no queue moves; observed owners of 3 of 4 queues differ from the prediction before the "
        "change, 2 unassigned and 1 with duplicate owners"
    )
    assert plan.summary.observed == ObservedOwners(queues=4, unassigned=2, duplicate_owners=1, mismatches=3, moved=1)
    titles = [column.title for column in report.table.columns if column.shown]
    assert titles[3:7] == ["predicted before", "predicted after", "change", "observed owner"]
    (summary,) = (section for section in report.sections if section.name == "summary")
    rows = {row[0]: row[1:] for row in summary.rows}
    assert rows["unassigned queues"] == (0, 0, 2)
    assert rows["consumers"] == (2, 2, "")
    assert rows["queues with duplicate owners"] == (0, 0, 1)
    found = {c.client_id: (c.queues_before, c.queues_observed) for c in plan.consumers}
    assert found == {"a": (2, 2), "b": (2, 1)}


@pytest.mark.parametrize("owners", ["aabb", None])
def test_owners_as_predicted_and_owners_that_nobody_saw_add_nothing(owners: str | None) -> None:
    same = side("a b", route(x=4))
    plan = plan_rebalance("g", same, same, states=seen(*owners) if owners else None)
    report = plan_report(plan)
    assert report.facts[0] == "g, 2 consumers: no queue moves"
    assert (plan.summary.observed is None) == (owners is None)
    assert "observed owner" not in [column.title for column in report.table.columns if column.shown]
