from msgspec.structs import replace

from fuzz.command_lines.__main__ import try_case
from fuzz.command_lines.alone import ALONE
from fuzz.command_lines.lines import NOT_RUN, covered_options, make_case
from fuzz.command_lines.running import Ran
from fuzz.command_lines.sums import SUMS
from tests.hardening import walk
from tests.support.mismatches import every_case


def test_no_command_and_no_option_is_left_out() -> None:
    options = [*covered_options()]
    without = {(typed, option.names, option.metavar) for typed, option, known in options if not known}
    assert not without, "give it a line in fuzz/command_lines/values.py"
    assert {typed.split()[1] for typed, _, _ in options} == {*walk.commands()} - NOT_RUN
    assert set(walk.commands()) == {*walk.READING, *walk.ON_TWO_SNAPSHOTS, *walk.WITHOUT_A_SNAPSHOT}, (
        "give it a line in tests/hardening/walk.py"
    )


@every_case("number", range(12))
def test_a_few_cases_hold(number: int) -> None:
    found, lines = try_case(make_case(1, number))
    assert [(each.case.words, each.check, each.said) for each in found] == []
    assert lines


FAULTS = {
    "nothing_escapes": ("json", Ran("", "", 1, "Traceback of a bug")),
    "exit_code_is_documented": ("json", Ran("", "error: x [usage]\n", 1)),
    "error_is_one_line_of_its_class": ("table", Ran("", "error: x [no-such-code]\n", 2)),
    "stderr_is_talk": ("json", Ran("{}", "hello\n", 0)),
    "stdout_is_the_format": ("json", Ran("{", "", 0)),
    "json_fits_its_schema": ("json", Ran('{"schema": "rmqlb/plan"}', "", 0)),
    "text_is_harmless": ("json", Ran('"\x1b[2J"', "", 0)),
    "tables_are_as_wide_as_the_terminal": ("table", Ran("x" * 41, "", 0)),
    "cells_are_no_formulas": ("csv", Ran("a\n=1+x\n", "", 0)),
    "tables_of_a_row_have_its_columns": ("csv", Ran("a,b\nc\n", "", 0)),
}


def test_each_check_notices_its_fault() -> None:
    case = replace(make_case(1, 0), command="plan-rebalance", columns=40)
    checks = {check.__name__: check for check in ALONE}
    for name, (form, ran) in FAULTS.items():
        assert [*checks[name](replace(case, pieces=(("--output", form),)), ran)], name
    totals = dict.fromkeys(("deadLettered", "left", "received", "receives", "emptyReceives", "failedReceives"), 0)
    data = {"totals": totals | {"acknowledged": 1, "messages": 2}, "brokers": [], "queueWaits": [], "quantiles": []}
    assert [*SUMS["simulate-receive"](data)] == ["1 messages have ended, of 2"]
