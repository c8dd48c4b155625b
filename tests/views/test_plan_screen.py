"""A plan on a screen: the verdict first, then the smallest tables that show it; with `--all` all of it."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.model.finding import Finding
from rmqlb.model.plan import RebalancePlan
from rmqlb.model.route import TopicRouteData
from rmqlb.views.formats.people import as_plain
from rmqlb.views.plan_rebalance import plan_report
from tests.cli.run import EXAMPLE, run
from tests.support.builders import route, side
from tests.support.mismatches import every_case
from tests.support.states import seen
from tests.views.shown import on_a_terminal

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
        before, after = map(int, str(row[3]).split("→"))
        lost, gained = (sum(map(int, re.findall(rf"\{sign}\d+", str(row[4])))) for sign in "-+")
        assert (before, after) == (consumer.queues_before, consumer.queues_after)
        assert (-lost, gained) == (consumer.lost, consumer.gained)
        assert before + lost + gained == after


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


def test_scripts_have_all_queues_and_every_row_as_before() -> None:
    made = plan(side(names(12), route(x=96)), side(names(13), route(x=96)))
    text = as_plain(plan_report(made).only(()))
    assert len(re.findall("(?m)^x +[0-9]+ ", text)) == 96
    assert "more" not in text
    assert [each.name for each in plan_report(made).only(()).sections] == ["queues", "consumers", "summary"]


def test_all_and_explain_show_every_queue() -> None:
    line = ("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "--add", "1", "-o", "table")
    for option in (("--all",), ("--section", "queues"), ("--explain",)):
        text = run(*line, *option).stdout
        assert len(re.findall("(?m)^(OrderEvents|Skewed) +broker-[ab] +[0-9] ", text)) == 25, option
    assert "\nsummary" in run(*line, "--all").stdout
    assert "\nsummary" not in run(*line).stdout


def test_who_reports_the_strategy_is_said_and_in_the_data() -> None:
    line = ("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "--add", "1")
    assert "  strategy AVG, reported by 1 of 3 consumers · change: add 1 placeholder consumer\n" in run(*line).stdout
    data = json.loads(run(*line, "-o", "json").stdout)["data"]
    assert (data["strategyOrigin"], data["strategiesReported"]) == ("reported", {"AVG": 1})
    mixed = run(*shlex.split("plan-rebalance -s examples/four-groups.yaml -g mix-svc --add 1")).stdout
    assert "  strategies AVG (1), AVG_BY_CIRCLE (1), reported by all 2 consumers · change" in mixed


def test_one_queue_is_one_queue() -> None:
    made = plan(side("a b", route(x=1)), side("b", route(x=1)))
    report = plan_report(made).only((), screen=True)
    assert "1 queue that changes" in on_a_terminal(report, 80)
    assert report.more.startswith("--all lists")
    kept = plan(side("a b", route(x=2)), side("a c", route(x=2)))
    assert plan_report(kept).more.startswith("1 queue keeps its owner; ")
