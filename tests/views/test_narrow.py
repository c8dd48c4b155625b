"""Tables for people on narrow terminals: nothing is cut into pieces that can stand otherwise."""

from __future__ import annotations

import pytest

from rmqlb.views.report import Column, Report, Section
from tests.cli.run import EXAMPLE
from tests.cli.terminals import OnTerminal
from tests.views.shown import on_a_terminal


def lines(columns: int, *args: str) -> list[str]:
    with OnTerminal(*args, "-s", EXAMPLE, "-q", "--no-pager", columns=columns, lines=200) as terminal:
        assert terminal.end() == 0
    return terminal.lines


def test_a_table_that_is_too_wide_has_a_part_for_each_topic() -> None:
    shown = lines(60, "show-owners", "-g", "order-svc", "--section", "queues")
    assert [line for line in shown if line.startswith("owners")] == ["owners: OrderEvents", "owners: Skewed"]
    assert sum(line.startswith("broker-") for line in shown) == 25
    wide = lines(80, "show-owners", "-g", "order-svc", "--section", "queues")
    assert [line for line in wide if line.startswith("owners")] == ["owners"]


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_the_strips_of_a_timeline_are_whole(columns: int) -> None:
    send = ("simulate-send", "-t", "OrderEvents", "--fail", "broker-b@45s-1m20s", "--rate", "10", "--for", "2m")
    shown = lines(columns, *send, "--section", "timeline")
    rows = [line.split() for line in shown if line.startswith("broker-")][-2:]
    assert [name for name, _ in rows] == ["broker-a", "broker-b"]
    assert len({len(strip) for _, strip in rows}) == 1
    assert "X" in rows[1][1]
    assert len(shown) == shown.index(next(line for line in shown if line.startswith("failed ("))) + 1


def test_a_sentence_of_long_names_is_clipped_on_a_terminal() -> None:
    section = Section("a", "a", (Column("b", "b"),), ())
    report = Report("rmqlb/x", {}, (f"group {'x' * 10_000}, 3 consumers",), (section,), {})
    shown = on_a_terminal(report, 80).replace("\n", "")
    assert "…" in shown
    assert ", 3 consumers" in shown
    assert len(shown) < 1_100


def test_on_the_narrowest_terminal_a_row_is_a_block() -> None:
    shown = lines(24, "plan-rebalance", "-g", "bill-svc", "--add", "1", "--section", "queues")
    assert shown[shown.index("broker-b  2") + 1].startswith("    before #")
