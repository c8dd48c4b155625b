"""The fuzzer of whole command lines: nothing is left out of it, it notices what is wrong, and a few of its cases hold."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from fuzz.command_lines.alone import ALONE
from fuzz.command_lines.figures import FIGURES, figure_places
from fuzz.command_lines.lines import ASIDE, Case, covered_options, make_case
from fuzz.command_lines.running import Ran
from fuzz.command_lines.trying import try_afresh
from rmqlb.cli.exit_codes import ExitCode
from tests.cli.run import EXAMPLE, run
from tests.support.mismatches import every_case

from . import walk


def test_every_option_of_every_command_has_values() -> None:
    without = {(typed, option.names, option.metavar) for typed, option, known in covered_options() if not known}
    assert not without, "give it a line in fuzz/command_lines/options.py"


def test_no_command_is_left_out() -> None:
    assert {typed.split()[1] for typed, _, _ in covered_options()} == {*walk.commands()} - ASIDE


LINES: dict[str, tuple[str, ...]] = {
    "show-groups": (),
    "plan-rebalance": ("-g", "order-svc", "--add", "1"),
    "simulate-rebalance": ("-g", "order-svc", "--event", "join 1@5s"),
    "plan-rollout": ("-g", "order-svc", "--pause", "30s", "--trials", "2"),
    "simulate-send": ("-t", "OrderEvents", "--fail", "broker-b", "--messages", "50"),
    "simulate-receive": ("-t", "OrderEvents", "--messages", "20", "--target-wait", "1s"),
    "select-queue": ("-t", "OrderEvents", "--key", "a", "--key", "b", "--write-queues", "16"),
    "size-group": ("-g", "order-svc", "--consumers", "2..9"),
    "sweep-failures": (),
    "show-owners": ("-g", "order-svc"),
}


def data_of(command: str) -> Any:
    ran = run(command, "-s", EXAMPLE, *LINES[command], "-o", "json", "-q")
    assert ran.code == ExitCode.OK
    return json.loads(ran.stdout)["data"]


@every_case("command", FIGURES)
def test_every_figure_is_held_against_the_json(command: str) -> None:
    """One that has another name there needs a line in fuzz/command_lines/figures.py."""
    found = {name.partition("[")[0] for name, _ in figure_places(command, data_of(command))}
    assert found == {*FIGURES[command].names, *FIGURES[command].of_subject}


@every_case("number", range(12))
def test_a_few_cases_hold(number: int) -> None:
    found, lines = try_afresh(make_case(1, number))
    assert [(each.case.words, each.check, each.said) for each in found] == []
    assert lines


# -- what is wrong is noticed -----------------------------------------------------------------------------------------

CASE = replace(make_case(1, 0), command="plan-rebalance", pieces=(("--output", "json"),), columns=40)


def said(ran: Ran, case: Case = CASE) -> set[str]:
    """The checks that find something."""
    return {check.__name__ for check in ALONE if list(check(case, ran))}
