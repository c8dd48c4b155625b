"""Terminals of 0 to 40 columns, with progress: every command ends, and a table keeps its figures."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest

from tests.support.mismatches import first_by_default

from .run import EXAMPLE, ROOT, command, environment
from .terminals import OnTerminal
from .test_command_tree import SINGLE

WIDTHS = (0, 1, 2, 3, 5, 8, 13, 20, 40)
LINES = """
    show-groups -s examples/cluster.json
    show-consumers -s examples/cluster.json -g order-svc
    fetch-routes -s examples/cluster.json
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
_STYLES = re.compile(r"\x1b\[[0-9;]*m")


def on_terminals(arguments: list[str]) -> dict[int, tuple[int, str]]:
    """Run the command on a terminal of each width; exit codes and texts."""
    program = [sys.executable, "-m", "tests.cli.narrow_terminals", json.dumps(WIDTHS), *arguments]
    env = environment({"TERM": "xterm", "RMQLB_PAGER": "cat", "PYTHONPATH": str(ROOT)})
    env.pop("COLUMNS", None)
    done = subprocess.run(program, cwd=ROOT, env=env, capture_output=True, check=True)
    return {int(width): (code, _STYLES.sub("", text)) for width, (code, text) in json.loads(done.stdout).items()}


@pytest.mark.parametrize("arguments", first_by_default(COMMANDS), ids=lambda arguments: arguments[0])
def test_a_command_ends_on_every_narrow_terminal(arguments: list[str]) -> None:
    codes = {width: code for width, (code, _) in on_terminals(arguments).items()}
    assert codes == dict.fromkeys(WIDTHS, 3 if arguments[0] == "check" else 0)


def test_the_commands_here_are_all_that_need_no_spark_and_no_live_cluster() -> None:
    others = {command.typed.removeprefix("rmqlb ").split()[0] for command in SINGLE} - {"pipeline", "completion"}
    assert others - {line[0] for line in COMMANDS} == set()


def test_a_table_keeps_every_group_and_figure_where_columns_have_no_room() -> None:
    for width, (_, text) in on_terminals(COMMANDS[0]).items():
        assert re.search(r"audit-svc\s.*5.*16.*bill-svc\s.*4.*9.*order-svc\s.*3.*25", text, re.DOTALL), (width, text)


def test_columns_of_0_count_as_not_set() -> None:
    arguments = ("show-groups", "-s", EXAMPLE, "-o", "table")
    shown = {
        columns: subprocess.run(
            command(*arguments), cwd=ROOT, env=environment({"COLUMNS": columns}), capture_output=True, check=True
        ).stdout
        for columns in ("0", "", "-5", "wide", "1000")
    }
    assert b"order-svc" in shown["0"]
    assert len(set(shown.values())) == 1
    with OnTerminal(*arguments, "--no-pager", env={"COLUMNS": "0"}) as terminal:
        assert terminal.end() == 0
    assert any(re.search(r"✓ +order-svc +2 +3 +25 ", line) for line in terminal.lines)
