"""The output of plan-rebalance: the worst of a change comes first, and agrees with every figure."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.plan.rebalance import Side, over_places, plan_rebalance
from rmqlb.model.finding import Finding
from rmqlb.model.group import States
from rmqlb.model.plan import Convergence, MovedRange, ObservedOwners, RebalancePlan
from rmqlb.model.route import TopicRouteData
from rmqlb.views.plan_rebalance import facts, headline, plan_report
from tests.cli.run import EXAMPLE, run
from tests.support.builders import route, side
from tests.support.mismatches import every_case
from tests.support.states import seen
from tests.views.shown import on_a_terminal


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


BROKERS = [f"broker-{letter}" for letter in "abcdefghijkl"]


def plan(before: Side, after: Side, **more: object) -> RebalancePlan:
    return plan_rebalance("orders", before, after, **more)  # type: ignore[arg-type]


def names(number: int) -> str:
    return " ".join(f"10.0.{at}.1@4711#182736455{at:04d}" for at in range(number))


def wide_route(brokers: int, per_broker: int) -> TopicRouteData:
    counts: dict[str, Any] = {name.replace("-", "_"): per_broker for name in BROKERS[:brokers]}
    return route("Orders", **counts)


def table(text: str, title: str) -> list[list[str]]:
    """The rows of a table of a screen, cell by cell."""
    lines = text.split(f"\n{title}", 1)[1].splitlines()[3:]
    rows = []
    for line in lines:
        if not line.strip():
            break
        rows.append(re.split(r"\s{2,}", line.strip()))
    return rows


def test_96_queues_fit_a_screen_of_40_lines() -> None:
    """With findings, and whichever strategy: what cannot be shown in so many lines is counted."""
    closing = ("fingerprint 59e89df853a075da: 2 topics, 3 consumers, AVG, read at 2026-11-21T02:02:07Z",)
    finding = Finding(
        "placeholder-ids", "placeholder client IDs sort last, behind IP addresses: the tables show 40 moves"
    )
    for strategy in WITHOUT_SETTINGS:
        for before, after in ((2, 3), (3, 2), (8, 9), (11, 12), (30, 31), (12, 0)):
            for brokers in (1, 3, 12):
                routes = (wide_route(brokers, 96 // brokers),)
                sides = (side(names(number), *routes, strategy=strategy) for number in (before, after))
                report = replace(plan_report(plan(*sides)), closing=closing).only((), screen=True)
                report = report.told([finding, replace(finding, code="x")])
                lines = on_a_terminal(report, 100).splitlines()
                assert len(lines) <= 40, (strategy, before, after, brokers, "\n".join(lines))
                assert max(map(len, lines)) <= 100


@given(
    strategy=st.sampled_from(WITHOUT_SETTINGS),
    counts=st.tuples(st.integers(0, 6), st.integers(0, 6)),
    queue_counts=st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
@settings(max_examples=60, deadline=None)
def test_the_tables_of_a_screen_add_up_to_the_data(
    strategy: str, counts: tuple[int, int], queue_counts: tuple[int, int]
) -> None:
    sides = [
        Side(Members(tuple(f"c{at}" for at in range(number)), strategy), (route("T", a=queues_), route("U", b=queues_)))
        for number, queues_ in zip(counts, queue_counts, strict=True)
    ]
    made = plan(*sides)
    report = plan_report(made).only((), screen=True, everything=True)
    by_name = {section.name: section for section in report.sections}
    changed = [move for move in made.moves if move.change != "same"]
    assert ("moves" in by_name) == bool(changed)
    if changed:
        keys = [column.key for column in by_name["moves"].columns]
        rows = [dict(zip(keys, row, strict=True)) for row in by_name["moves"].rows]
        assert sum(row["queues"] for row in rows) == len(changed)  # type: ignore[misc]
        bad = sum(row["queues"] for row in rows if row["severity"])  # type: ignore[misc]
        assert bad == sum(len(move.owners_after) != 1 for move in changed if move.change != "removed")
    consumers = by_name["consumers"].rows
    assert len(consumers) == len(made.consumers)
    for row, consumer in zip(consumers, made.consumers, strict=True):
        before, after, gained, lost = (int(str(cell)) for cell in row[2:6])
        assert (before, after) == (consumer.queues_before, consumer.queues_after)
        assert before - lost + gained == after


def test_ranges_of_queues_are_joined_by_where_they_go() -> None:
    text = run("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "--add", "1", "-o", "table").stdout
    assert table(text, "12 queues that change") == [
        ["192.0.2.2@inst0", "192.0.2.2@inst1", "2", "OrderEvents broker-a 4-5"],
        ["192.0.2.2@inst1", "192.0.2.2@inst2", "4", "OrderEvents broker-b 0-2; Skewed broker-a 5"],
        ["192.0.2.2@inst2", "placeholder-01", "6", "OrderEvents broker-b 4-7; Skewed broker-b 1-2"],
    ]
    assert text.splitlines()[-1].startswith("13 queues keep their owner; --all lists every queue, ")


def test_what_leaves_queues_unassigned_or_with_duplicate_owners_comes_first_in_red() -> None:
    made = plan(
        side("a b c", route(x=6)), Side(Members(("a", "b"), "AVG", strategy_of={"b": "AVG_BY_CIRCLE"}), (route(x=6),))
    )
    report = plan_report(made).only((), screen=True)
    assert report.grave == "error"
    assert report.facts[0].startswith("orders, 3 → 2 consumers: ")
    rows = table(on_a_terminal(report, 100), f"{sum(m.change != 'same' for m in made.moves)} queues that change")
    assert [row[0][0] for row in rows[:2]] == ["✗", "✗"]
    flat = " ".join(" ".join(row) for row in rows)
    assert "(unassigned)" in flat
    assert "a b" in flat


@every_case(
    ("before", "after", "grave"),
    [
        (side("a b", route(x=4)), side("a", route(x=4)), ""),
        (side("a b", route(x=4)), side("a b", route(x=4)), "inOrder"),
        (side("a b", route(x=4)), side("", route(x=4)), "error"),
        (side("a b", route(x=4)), side("a a b", route(x=4)), "error"),
    ],
)
def test_the_verdict_is_as_grave_as_what_is_left(before: Side, after: Side, grave: str) -> None:
    assert plan_report(plan(before, after)).grave == grave


def test_observed_owners_that_are_not_the_predicted_ones_are_a_warning() -> None:
    same = side("a b", route(x=2))
    assert plan_report(plan(same, same, states=seen("a", "a"))).grave == "warning"
    removed = plan(side("a", route(x=2)), side("a", route(x=1)), states=seen("a", "a", lag=3))
    assert plan_report(removed).grave == "warning"


def test_all_and_explain_show_every_queue() -> None:
    line = ("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "--add", "1", "-o", "table")
    for option in (("--all",), ("--section", "queues"), ("--explain",)):
        text = run(*line, *option).stdout
        assert len(re.findall("(?m)^(OrderEvents|Skewed) +broker-[ab] +[0-9] ", text)) == 25, option
    assert "\nsummary" in run(*line, "--all").stdout
    assert "\nsummary" not in run(*line).stdout


ALL = Convergence(
    trials=5,
    converged=5,
    convergence_ms=1054.321,
    max_convergence_ms=1062,
    longest_gap_ms=1001,
    longest_overlap_ms=56,
    unread_ms=0,
)
SOME = replace(ALL, converged=3, max_convergence_ms=None)
NONE = replace(
    ALL, converged=0, convergence_ms=None, max_convergence_ms=None, longest_gap_ms=None, longest_overlap_ms=None
)


@every_case(
    ("found", "line"),
    [
        (ALL, "converges in about 1.1 s (max 1.1 s over 5 simulations) · longest gap 1.0 s · longest overlap 56 ms"),
        (SOME, "converges in about 1.1 s (not in each of 5 simulations) · longest gap 1.0 s · longest overlap 56 ms"),
        (NONE, "does not converge in any of 5 simulations"),
    ],
    ids=["in each", "in some", "in none"],
)
def test_a_plan_says_in_how_many_simulations_it_converges(found: Convergence, line: str) -> None:
    group = side("a b", route(x=4))
    plan = replace(plan_rebalance("g", group, group), convergence=found)
    assert facts(plan)[2] == f"  {line}"
