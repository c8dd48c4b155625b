"""The fuzzer of whole command lines: nothing is left out of it, it notices what is wrong, and a few of its cases hold."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from fuzz.command_lines.alone import ALONE
from fuzz.command_lines.figures import FIGURES, figure_places
from fuzz.command_lines.lines import ASIDE, Case, covered_options, make_case
from fuzz.command_lines.running import Ran
from fuzz.command_lines.sums import SUMS
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


def test_equal_numbers_are_equal_cases() -> None:
    assert [make_case(5, number) for number in range(20)] == [make_case(5, number) for number in range(20)]
    assert len({make_case(5, number).words for number in range(50)}) > 45


@every_case("number", range(12))
def test_a_few_cases_hold(number: int) -> None:
    found, lines = try_afresh(make_case(1, number))
    assert [(each.case.words, each.check, each.said) for each in found] == []
    assert lines


# -- what is wrong is noticed -----------------------------------------------------------------------------------------

CASE = replace(make_case(1, 0), command="plan-rebalance", pieces=(("--output", "json"),), columns=40)
RIGHT = run("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "--remove", "1", "-o", "json")


def said(ran: Ran, case: Case = CASE) -> set[str]:
    """The checks that find something."""
    return {check.__name__ for check in ALONE if list(check(case, ran))}


def shown_as(form: str) -> Case:
    return replace(CASE, pieces=(("--output", form),))


def test_what_is_right_passes() -> None:
    assert said(Ran(RIGHT.stdout, RIGHT.stderr, 0)) == set()


@every_case(
    ("ran", "form", "check"),
    [
        (Ran("", "", 1, "Traceback …"), "json", "nothing_escapes"),
        (Ran("", "Traceback (most recent call last)\n", 0), "json", "nothing_escapes"),
        (Ran("", "error: unexpected [unexpected]\n", 1), "plain", "exit_code_is_documented"),
        (Ran("", "", 77), "plain", "exit_code_is_documented"),
        (Ran("", "oh no\n", 2), "plain", "error_is_one_line_of_its_class"),
        (Ran("", "error: no [which-group]\n", 4), "plain", "error_is_one_line_of_its_class"),
        (Ran("", "error: no [no-such-code]\n", 2), "plain", "error_is_one_line_of_its_class"),
        (Ran("", "error: no [which-group]\n", 2), "json", "error_is_one_line_of_its_class"),
        (Ran("half", "error: no [which-group]\n", 2), "plain", "error_is_one_line_of_its_class"),
        (Ran("", "Segmentation\n", 0), "plain", "stderr_is_talk"),
        (Ran("{", "", 0), "json", "stdout_is_the_format"),
        (Ran('"a', "", 0), "csv", "stdout_is_the_format"),
        (Ran(RIGHT.stdout.replace('"moved"', '"removed"'), "", 0), "json", "json_fits_its_schema"),
        (Ran("a\x1b[31m", "", 0), "plain", "text_is_harmless"),
        (Ran("a\n=1+1\n", "", 0), "csv", "cells_are_no_formulas"),
        (Ran("x" * 41, "", 0), "table", "tables_are_as_wide_as_the_terminal"),
        (Ran("a,b\n1\n", "", 0), "csv", "tables_of_a_row_have_its_columns"),
    ],
)
def test_what_is_wrong_is_noticed(ran: Ran, form: str, check: str) -> None:
    found = {each.__name__ for each in ALONE[:5] if list(each(shown_as(form), ran))}
    if check not in found:
        found |= said(ran, shown_as(form))
    assert check in found


@every_case(
    ("command", "part", "names"),
    [
        ("plan-rebalance", "summary", ("moved", "newlyAssigned", "added")),
        ("simulate-rebalance", "figures", ("taken", "totalGapMs", "longestGapMs", "queuesWithGap")),
        ("simulate-send", "totals", ("attempts", "lost", "stored", "failedAttempts")),
        ("simulate-receive", "totals", ("messages", "received", "acknowledged", "left", "receives", "emptyReceives")),
        ("select-queue", "sdks", ("queuesUsed", "mostKeys", "moved")),
        ("select-queue", "pairs", ("differ",)),
        ("size-group", "replicaCounts", ("min", "max")),
        ("size-group", "curve", ("consumers",)),
        ("show-owners", "strategies", ("unassigned", "idle", "queues", "duplicateOwners")),
    ],
)
def test_a_figure_that_does_not_add_up_is_noticed(command: str, part: str, names: tuple[str, ...]) -> None:
    data = data_of(command)
    assert list(SUMS[command](data)) == []
    for name in names:
        wrong = json.loads(json.dumps(data))
        (wrong[part] if isinstance(wrong[part], dict) else wrong[part][0])[name] += 1
        assert list(SUMS[command](wrong)), name
