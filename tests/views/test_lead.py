"""What every screen begins with: the verdict as grave as the worst finding, and the findings, the worst first."""

from __future__ import annotations

import io
import re

from rich.console import Console

from rmqlb.model.finding import Finding
from rmqlb.views.formats.people import as_markdown, as_plain, print_tables
from rmqlb.views.report import Column, Report, Section
from tests.support.mismatches import every_case
from tests.views.shown import on_a_terminal

LONG = "a sentence that goes on and on about what was found, why it matters and what to do about it in the end"
FINDINGS = (
    Finding("info", "good to know", severity="info"),
    Finding("placeholder-ids", LONG, severity="info"),
    Finding("idle-consumers", "c2 is idle"),
    Finding("unassigned-queues", LONG, severity="error"),
)
REPORT = Report("rmqlb/test", {}, ("orders: 1 of 4 queues unassigned", "  strategy AVG"), ())


def section(name: str, *, named_only: bool = False, audience: str = "all", row: str = "") -> Section:
    columns = (Column("letter", "letter"),)
    return Section(name, name, columns, ((row or name,),), named_only=named_only, audience=audience)  # type: ignore[arg-type]


def in_colour(report: Report) -> str:
    console = Console(file=io.StringIO(), width=100, color_system="standard", force_terminal=True, highlight=False)
    with console.capture() as capture:
        print_tables(report, console)
    return capture.get()


SCREENS = {
    58: """\
orders: 1 of 4 queues unassigned
  strategy AVG

✗ unassigned-queues
  a sentence that goes on and on about what was found, why
  it matters and what to do about it in the end
! idle-consumers
  c2 is idle
i good to know
i placeholder-ids
  a sentence that goes on and on about what was found, why
  it matters and what to do about it in the end
""",
    80: """\
orders: 1 of 4 queues unassigned
  strategy AVG

✗ unassigned-queues  a sentence that goes on and on about what was found, why it
                     matters and what to do about it in the end
! idle-consumers     c2 is idle
i good to know
i placeholder-ids    a sentence that goes on and on about what was found, why it
                     matters and what to do about it in the end
""",
    130: """\
orders: 1 of 4 queues unassigned
  strategy AVG

✗ unassigned-queues  a sentence that goes on and on about what was found, why it matters and what to do about it in the end
! idle-consumers     c2 is idle
i good to know
i placeholder-ids    a sentence that goes on and on about what was found, why it matters and what to do about it in the end
""",
}


@every_case("width", SCREENS)
def test_findings_follow_the_facts_the_worst_first_with_sign_and_code(width: int) -> None:
    text = on_a_terminal(REPORT.told(FINDINGS), width)
    assert "".join(f"{line.rstrip()}\n" for line in text.splitlines()) == SCREENS[width]


@every_case(("findings", "code"), [(FINDINGS, "1;31"), (FINDINGS[:3], "33"), (FINDINGS[:2], "1"), ((), "1")])
def test_the_first_line_is_as_grave_as_the_worst_finding(findings: tuple[Finding, ...], code: str) -> None:
    assert in_colour(REPORT.told(findings)).startswith(f"\x1b[{code}morders: 1 of 4 queues unassigned\x1b[0m\n")


@every_case("width", range(20, 40))
def test_a_number_stays_with_its_unit(width: int) -> None:
    text = on_a_terminal(Report("rmqlb/test", {}, ("it converges in about 1.1 s, at most 56 ms later",), ()), width)
    assert " ".join(text.split()) == "it converges in about 1.1 s, at most 56 ms later"
    assert not re.search(r"(?m)\d$", text)


def test_many_findings_are_counted_and_all_of_them_shown_on_request() -> None:
    many = [Finding("idle-consumers", f"c{number} is idle") for number in range(20)]
    text = on_a_terminal(REPORT.told(many), 80)
    assert ("c7 is idle" in text, "c8 is idle" in text, "and 12 more: --all shows all" in text) == (True, False, True)
    assert "and 12 more: \\-\\-all" not in as_markdown(REPORT.told(many))
    whole = as_markdown(REPORT.only((), screen=True, everything=True).told(many))
    assert ("c19 is idle" in whole, "more" in whole) == (True, False)


def test_information_of_one_kind_is_said_once() -> None:
    alike = [Finding("placeholder-ids", f"g{number}: they sort last", severity="info") for number in range(3)]
    other = Finding("x", "other", severity="info")
    text = on_a_terminal(REPORT.told([*FINDINGS, *alike, other]), 200)
    assert f"{LONG} (and 3 more: --all shows all)\n" in text
    assert ("g0:" in text, "other" in text) == (False, True)
    whole = on_a_terminal(REPORT.only((), screen=True, everything=True).told(alike), 200)
    assert whole.count("they sort last") == 3
    faults = [Finding("y", f"g{number}") for number in range(3)]
    assert on_a_terminal(REPORT.told(faults), 200).count("! y") == 3


def test_a_screen_says_which_tables_it_leaves_out() -> None:
    sections = (section("a"), section("b", named_only=True), section("c", audience="scripts"))
    shown = Report("rmqlb/test", {}, (), (*sections, section("d", audience="screen"))).only((), screen=True)
    assert ([each.name for each in shown.sections], shown.more) == (["a", "d"], "--all shows more: b, c")
    whole = Report("rmqlb/test", {}, (), sections).only((), screen=True, everything=True)
    assert ([each.name for each in whole.sections], whole.more) == (["a", "b", "c"], "")


def test_a_table_for_screens_and_one_for_scripts_may_have_one_name() -> None:
    both = Report(
        "rmqlb/test", {}, (), (section("x", audience="screen", row="1"), section("x", audience="scripts", row="2"))
    )
    for names in ((), ("x",)):
        assert [each.rows[0][0] for each in both.only(names, screen=True).sections] == ["1"]
        assert [each.rows[0][0] for each in both.only(names).sections] == ["2"]
    assert [each.rows[0][0] for each in both.only((), screen=True, everything=True).sections] == ["1"]
    assert "2" in as_plain(both.only(()))
