"""Terminals of 0 to 40 columns: every command ends, and a table keeps its figures."""

from __future__ import annotations

import re
import shlex

from tests.support.mismatches import every_case

from .run import EXAMPLE, run
from .terminals import OnTerminal

WIDTHS = (1, 3, 8, 20, 40)
LINES = """
    show-groups -s examples/cluster.json
    show-consumers -s examples/cluster.json -g order-svc
    show-route -s examples/cluster.json -t OrderEvents
    show-owners -s examples/cluster.json -g order-svc
    diagnose -s examples/cluster.json -g order-svc
    diff examples/cluster.json examples/cluster-later.json
    plan-rebalance -s examples/cluster.json -g order-svc --add 1
    plan-topic -s examples/cluster.json -t OrderEvents --queues 16
    simulate-rebalance -s examples/cluster.json -g order-svc --event 'crash #1@30s'
    plan-rollout -s examples/cluster.json -g order-svc --pause 30s
    size-group -s examples/cluster.json -g order-svc
    sweep-failures -s examples/cluster.json -g bill-svc
    simulate-send -s examples/cluster.json -t OrderEvents --messages 100
    select-queue -s examples/cluster.json -t OrderEvents --key a
    simulate-receive -s examples/cluster.json -t OrderEvents --for 10s
    record --replay examples/recording.json
    check -s examples/cluster.json --policy examples/policy.yaml
    context list
    config show
    schema show-groups
    explain unassigned-queues
"""
COMMANDS = [shlex.split(line) for line in LINES.strip().splitlines()]


@every_case("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_a_command_ends_at_every_narrow_width(arguments: list[str]) -> None:
    for width in WIDTHS:
        ran = run(*arguments, "-o", "table", env={"COLUMNS": str(width)})
        assert (ran.code, bool(ran.stdout)) == (3 if arguments[0] == "check" else 0, True), (width, ran.stderr)


def test_a_table_keeps_every_group_and_figure_where_columns_have_no_room() -> None:
    for width in WIDTHS:
        text = run(*COMMANDS[0], "-o", "table", env={"COLUMNS": str(width)}).stdout
        assert re.search(r"audit-svc\s.*5.*16.*bill-svc\s.*4.*9.*order-svc\s.*3.*25", text, re.DOTALL), (width, text)


def test_columns_of_0_count_as_not_set() -> None:
    arguments = ("show-groups", "-s", EXAMPLE, "-o", "table")
    shown = {columns: run(*arguments, env={"COLUMNS": columns}).stdout for columns in ("0", "", "-5", "wide", "1000")}
    assert "order-svc" in shown["0"]
    assert len(set(shown.values())) == 1
    with OnTerminal(*arguments, "--no-pager", env={"COLUMNS": "0"}) as terminal:
        assert terminal.end() == 0
    assert any(re.search(r"✓ +order-svc +2 +3 +25 ", line) for line in terminal.lines)
