import csv
import io
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.plan.rebalance import Side, over_places, plan_rebalance
from rmqlb.model.group import QueueState, States
from rmqlb.model.plan import Convergence, ObservedOwners, RebalancePlan, Rollout, RolloutChoice
from rmqlb.model.result import Finding
from rmqlb.views.formats.machine import as_csv
from rmqlb.views.plan_rebalance import facts, headline, plan_report
from rmqlb.views.plan_rollout import rollout_report
from rmqlb.views.report import Report
from tests.support.builders import queues, route, side
from tests.support.group_builders import choice, trials
from tests.support.mismatches import every_case
from tests.views.shown import on_a_terminal


def seen(*owners: str, lag: int = 0) -> States:
    """The queues of broker x, with the owners of each in one text, and so many messages to read."""
    return {
        queue: QueueState(frozenset(ids.split()), broker_offset=lag, consumer_offset=0)
        for queue, ids in zip(queues(len(owners), "x"), owners, strict=True)
    }


SAME = side("a b", route(x=4))
NOBODY = Side(Members((), "AVG"), (route(x=4),))
DEAF = Side(Members(("a", "b"), "AVG", subscribed={"b": frozenset({"U"})}), (route(x=4),))
MIXED = Side(Members(("a", "b"), "AVG", strategy_of={"b": "AVG_BY_CIRCLE"}), (route(x=4),))
HASHED = [side(ids, route(x=6), strategy="CONSISTENT_HASH") for ids in ("a c", "a c j")]


@every_case(("before", "after", "states", "joiners", "grave", "line"), [
    (side("a b c", route(x=4)), NOBODY, None, (), "error", "3 → 0 consumers: all 4 queues become unassigned"),
    (side("a b c", route(x=4)), NOBODY, seen(*"aabc", lag=301), (), "error", "3 → 0 consumers: all 4 queues become unassigned, 1,204 messages left waiting"),
    (side("a", route(x=1)), replace(NOBODY, routes=(route(x=1),)), None, (), "error", "1 → 0 consumers: 1 of 1 queue becomes unassigned"),
    (side("a", route(x=4)), DEAF, None, (), "error", "1 → 2 consumers: 2 of 4 queues become unassigned; no queue moves"),
    (DEAF, DEAF, None, (), "error", "2 consumers: 2 of 4 queues are unassigned (2 before the change); no queue moves"),
    (side("a b", route(x=4)), MIXED, None, (), "error", "2 consumers: 1 of 4 queues becomes unassigned; 1 of 4 queues has duplicate owners; 1 of 4 queues moves"),
    (side("a b", route(x=4)), side("a a b", route(x=4)), None, (), "error", "2 consumers: 1 of 4 queues becomes unassigned; 2 of 4 queues are read by several processes of one client ID; no queue moves"),
    (side("a", route(x=4)), side("a", route(x=3)), None, (), "", "1 consumer: 1 of 4 queues is removed; no queue moves"),
    (side("a", route(x=4)), side("a", route(x=3)), seen(*"aaaa", lag=1), (), "warning", "1 consumer: 1 of 4 queues is removed with 1 unread message; no queue moves"),
    (side("a c", route(x=6)), side("a c joiner", route(x=6)), None, ("joiner",), "", "2 → 3 consumers: 2 to 3 of 6 queues move, depending on how the new client IDs sort"),
    (side("a c", route(x=6)), side("a c joiner", route(x=6)), None, (), "", "2 → 3 consumers: 3 of 6 queues move"),
    (*HASHED, None, ("j",), "", "2 → 3 consumers: 3 of 6 queues move with placeholder client IDs; real IDs may change the count"),
    (SAME, SAME, None, (), "inOrder", "2 consumers: no queue moves"),
    (SAME, SAME, seen(*"aaaa"), (), "warning", "2 consumers: no queue moves; observed owners of 2 of 4 queues differ from the prediction before the change"),
])  # fmt: skip
def test_the_worst_is_first_and_colours_the_verdict(
    before: Side, after: Side, states: States | None, joiners: tuple[str, ...], grave: str, line: str
) -> None:
    plan, _ = over_places(plan_rebalance("g", before, after, states=states), before, after, joiners)
    report = plan_report(plan)
    assert report.facts[0] == headline(plan) == f"g, {line}"
    assert report.grave == grave


def test_observed_owners_that_differ_from_the_prediction_are_counted_and_shown() -> None:
    """The cluster reports two queues without owner, where the plan predicts none."""
    plan = plan_rebalance("g", SAME, SAME, states=seen("a", "", "", "a b"))
    report = plan_report(plan)
    assert report.facts[0] == (
        "g, 2 consumers: no queue moves; observed owners of 3 of 4 queues differ from the prediction before the "
        "change, 2 unassigned and 1 with duplicate owners"
    )
    assert plan.summary.observed == ObservedOwners(queues=4, unassigned=2, duplicate_owners=1, mismatches=3, moved=1)
    assert titles(report)[3:7] == ["predicted before", "predicted after", "change", "observed owner"]
    rows = {row[0]: row[1:] for section in report.sections if section.name == "summary" for row in section.rows}
    names = ("unassigned queues", "consumers", "queues with duplicate owners")
    assert [rows[name] for name in names] == [(0, 0, 2), (2, 2, ""), (0, 0, 1)]
    found = [(c.client_id, c.queues_before, c.queues_observed) for c in plan.consumers]
    assert found == [("a", 2, 2), ("b", 2, 1)]
    for owners in (seen(*"aabb"), None):  # as predicted, or not observed
        report = plan_report(plan_rebalance("g", SAME, SAME, states=owners))
        assert (report.facts[0], "observed owner" in titles(report)) == ("g, 2 consumers: no queue moves", False)


def titles(report: Report) -> list[str]:
    return [column.title for column in report.table.columns if column.shown]


def plan(before: Side, after: Side, **more: Any) -> RebalancePlan:
    return plan_rebalance("orders", before, after, **more)


SIZES = ((2, 3), (3, 2), (8, 9), (11, 12), (30, 31), (12, 0))


@every_case(("strategy", "counts", "brokers"), product(WITHOUT_SETTINGS, SIZES, (1, 3, 12)))
def test_96_queues_fit_a_screen_of_40_lines(strategy: str, counts: tuple[int, int], brokers: int) -> None:
    queues: Any = {f"broker-{letter}": 96 // brokers for letter in "abcdefghijkl"[:brokers]}
    ids = [" ".join(f"10.0.{at}.1@4711#182736455{at:04d}" for at in range(number)) for number in counts]
    before, after = (side(each, route("Orders", **queues), strategy=strategy) for each in ids)
    closing = ("fingerprint 59e89df853a075da: 2 topics, 3 consumers, AVG, read at 2026-11-21T02:02:07Z",)
    text = "placeholder client IDs sort last, behind IP addresses: the tables show 40 moves"
    report = replace(plan_report(plan(before, after)), closing=closing).only((), screen=True)
    report = report.with_findings([Finding("placeholder-ids", text), Finding("x", text)])
    lines = on_a_terminal(report, 100).splitlines()
    assert len(lines) <= 40, "\n".join(lines)
    assert max(map(len, lines)) <= 100


@given(
    strategy=st.sampled_from(WITHOUT_SETTINGS),
    counts=st.tuples(st.integers(0, 6), st.integers(0, 6)),
    queue_counts=st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
@settings(max_examples=60, deadline=None)
def test_screen_tables_equal_the_data(strategy: str, counts: tuple[int, int], queue_counts: tuple[int, int]) -> None:
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


ALL = Convergence(5, 5, 1054.321, 1062, 1001, 56, 0)
GAP = "longest gap 1.0 s · longest overlap 56 ms"


@every_case(("found", "line"), [
    (ALL, f"converges in about 1.1 s (max 1.1 s over 5 simulations) · {GAP}"),
    (replace(ALL, max_convergence_ms=None), f"converges in about 1.1 s (not in each of 5 simulations) · {GAP}"),
    (Convergence(5, 0, None, None, None, None, 0), "does not converge in any of 5 simulations"),
])  # fmt: skip
def test_a_plan_says_in_how_many_simulations_it_converges(found: Convergence, line: str) -> None:
    assert facts(replace(plan(SAME, SAME), convergence=found))[2] == f"  {line}"


def test_a_consumer_has_its_notes() -> None:
    made = plan(side("a b", route(x=1)), side("a a c", route(x=1)), placeholders=["c"])
    (consumers,) = (section for section in plan_report(made).sections if section.name == "consumers")
    at = [column.key for column in consumers.columns].index("note")
    idle = "placeholder, new, idle: consumer 2 of 3 (counted from 0), and only 1 queues"
    assert [row[at] for row in consumers.rows] == ["1 → 2 processes", "gone", idle]


TRIED = trials(
    20, longest_gap_ms=(1000, 2000, 3000), total_gap_ms=(4000, 5000, 6000), longest_overlap_ms=(0, 1000, 1000),
    total_overlap_ms=(0, 1000, 2000), redelivered=(1, 2, 9),
)  # fmt: skip
BEST = choice(TRIED, "abc", best=True)


def rollout(*choices: RolloutChoice) -> Rollout:
    return Rollout("g", "AVG", "AVG", ("a", "b", "c"), choices, (), 0, misassigned_is_minimum=True)


def test_the_first_line_is_the_best_way_and_its_cost() -> None:
    shown = rollout_report(rollout(BEST, choice(TRIED, "cba", "reversed")))
    assert shown.facts == (
        "g, restart of 3 consumers: longest gap 3.0 s; longest overlap 1.0 s",
        "  recommended: order sorted, one at a time, every 30 s, each away 15 s · converged after 1m30s, in 95% of 20 trials",
        "  longest gap 2.0 s in 95% of trials · at most 9 messages redelivered in any trial",
    )
    assert (shown.grave, shown.closing) == ("warning", ("2 ways tried, 20 trials each",))


def test_choices_have_their_figures_and_one_that_does_not_converge_says_so() -> None:
    shown = rollout_report(rollout(choice(trials(20, 18), "abc", best=True, takes_ms=None)))
    assert shown.facts[0].startswith("g, restart of 3 consumers: does not always converge")
    assert shown.facts[1].endswith(" · 18 of 20 trials converged")
    assert shown.grave == "error"
    table = rollout_report(rollout(BEST, choice(trials(20, 3), takes_ms=None))).only(("choices",)).table
    first, second = csv.DictReader(io.StringIO(as_csv(table), newline=""))
    assert " ".join(first.values()) == "sorted 1 30000 15000 90000 2000 3000 5000 1000 1000 1000 9 20 20 best"
    assert (second["takesMs"], second["redeliveredMax"], second["converged"]) == ("", "", "3")
