import io
import re

from msgspec.structs import replace
from rich.console import Console

from rmqlb.model.result import Finding
from rmqlb.views.columns import Column
from rmqlb.views.formats.people import as_plain, print_tables
from rmqlb.views.report import Block, Part, Report, Section
from tests.cli.run import EXAMPLE, run
from tests.support.mismatches import every_case
from tests.views.shown import on_a_terminal

LETTERS = (Column("letter", "letter"),)


def report(*sections: Section, facts: tuple[str, ...] = (), labels: dict[str, str] | None = None) -> Report:
    return Report("rmqlb/test", {}, facts, sections, labels or {})


LONG = "a sentence that goes on and on about what was found, why it matters and what to do about it in the end"
FINDINGS = (
    Finding("info", "good to know", severity="info"), Finding("placeholder-ids", LONG, severity="info"),
    Finding("idle-consumers", "c2 is idle"), Finding("unassigned-queues", LONG, severity="error"),
)  # fmt: skip
VERDICT = report(facts=("orders: 1 of 4 queues unassigned", "  strategy AVG"))
SCREEN = """\
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
"""


def test_findings_follow_the_facts_the_worst_first_with_sign_and_code() -> None:
    lines = on_a_terminal(VERDICT.with_findings(FINDINGS), 58).splitlines()
    assert "".join(f"{line.rstrip()}\n" for line in lines) == SCREEN


@every_case(("findings", "code"), [(FINDINGS, "1;31"), (FINDINGS[:3], "33"), (FINDINGS[:2], "1"), ((), "1")])
def test_the_first_line_is_as_grave_as_the_worst_finding(findings: tuple[Finding, ...], code: str) -> None:
    console = Console(file=io.StringIO(), width=100, color_system="standard", force_terminal=True, highlight=False)
    with console.capture() as capture:
        print_tables(VERDICT.with_findings(findings), console)
    assert capture.get().startswith(f"\x1b[{code}morders: 1 of 4 queues unassigned\x1b[0m\n")


@every_case("width", range(20, 40))
def test_a_number_stays_with_its_unit(width: int) -> None:
    text = on_a_terminal(report(facts=("it converges in about 1.1 s, at most 56 ms later",)), width)
    assert " ".join(text.split()) == "it converges in about 1.1 s, at most 56 ms later"
    assert not re.search(r"(?m)\d$", text)


def test_a_fact_of_long_names_is_clipped_on_a_terminal() -> None:
    shown = on_a_terminal(report(facts=(f"group {'x' * 10_000}, 3 consumers",)), 80).replace("\n", "")
    assert ("…" in shown, ", 3 consumers" in shown, len(shown) < 1_100) == (True, True, True)


def test_many_findings_and_information_of_one_kind_are_counted_and_shown_on_request() -> None:
    many = [Finding("idle-consumers", f"c{number} is idle") for number in range(20)]
    everything = VERDICT.only((), screen=True, everything=True)
    text, whole = (
        on_a_terminal(VERDICT.with_findings(many), 80),
        as_plain(is_markdown=True, report=everything.with_findings(many)),
    )
    assert ("c7 is idle" in text, "c8 is idle" in text, "and 12 more: --all shows all" in text) == (True, False, True)
    assert ("c19 is idle" in whole, "more" in whole) == (True, False)
    assert "and 12 more: \\-\\-all" not in as_plain(is_markdown=True, report=VERDICT.with_findings(many))
    alike = [Finding("placeholder-ids", f"g{number}: they sort last", severity="info") for number in range(3)]
    text = on_a_terminal(VERDICT.with_findings([*FINDINGS, *alike, Finding("x", "other", severity="info")]), 200)
    assert f"{LONG} (and 3 more: --all shows all)\n" in text
    assert ("g0:" in text, "other" in text) == (False, True)
    assert on_a_terminal(everything.with_findings(alike), 200).count("they sort last") == 3
    faults = [Finding("y", f"g{number}") for number in range(3)]
    assert on_a_terminal(VERDICT.with_findings(faults), 200).count("! y") == 3


def section(name: str, *, named_only: bool = False, audience: str = "all", row: str = "") -> Section:
    return Section(name, name, LETTERS, ((row or name,),), named_only=named_only, audience=audience)  # type: ignore[arg-type]


def test_a_screen_names_the_tables_that_it_leaves_out() -> None:
    sections = (section("a"), section("b", named_only=True), section("c", audience="scripts"))
    shown = report(*sections, section("d", audience="screen")).only((), screen=True)
    assert ([each.name for each in shown.sections], shown.more) == (["a", "d"], "--all shows more: b, c")
    whole = report(*sections).only((), screen=True, everything=True)
    assert ([each.name for each in whole.sections], whole.more) == (["a", "b", "c"], "")


def test_a_table_for_screens_and_one_for_scripts_may_have_one_name() -> None:
    both = report(section("x", audience="screen", row="1"), section("x", audience="scripts", row="2"))
    for names in ((), ("x",)):
        assert [each.rows[0][0] for each in both.only(names, screen=True).sections] == ["1"]
        assert [each.rows[0][0] for each in both.only(names).sections] == ["2"]
    assert [each.rows[0][0] for each in both.only((), screen=True, everything=True).sections] == ["1"]
    assert "2" in as_plain(both.only(()))


SHORT = Section("letters", "letters", LETTERS, (("x",), ("y",), ("z",)), brief=(0, 2))


def test_people_see_brief_rows_and_how_to_see_the_rest() -> None:
    for text in (
        as_plain(report(SHORT)),
        as_plain(is_markdown=True, report=report(SHORT)),
        on_a_terminal(report(SHORT), 60),
    ):
        assert "y" not in text.replace("--section letters", "").replace("any", "")
        assert text.rstrip().endswith("and 1 more: --section letters shows all")
    named = as_plain(report(SHORT).only(("letters",)))
    assert ("y" in named, "more" in named) == (True, False)


def picture(length: int) -> Section:
    above = (Column("name", "name"), Column("", "strip", "strip"))
    rows = (("above", "=" * length), ("the one below", "-" * length))
    return Section("picture", "picture", above, rows, heads=1, brief=(1,), draw=picture)


def test_a_picture_takes_the_width_that_its_names_leave_and_is_no_table_of_csv() -> None:
    text = on_a_terminal(report(picture(5)).only(("picture",)), 80)
    assert len(max(text.splitlines(), key=len)) == 80
    assert "=" * 64 in text
    assert "-----" in as_plain(report(picture(5)))
    assert f" {'-' * 5}\n" in on_a_terminal(report(picture(5)), 100_000)
    assert report(picture(5), SHORT).table is SHORT
    assert report(picture(5)).table.name == "picture"


def test_a_picture_without_rows_is_none_and_on_the_narrowest_terminal_a_row_is_a_block() -> None:
    empty = replace(picture(5), rows=(), brief=None, draw=lambda _: replace(picture(5), rows=(), brief=None))
    assert on_a_terminal(report(empty), 20).strip() == "picture: none"
    line = ("plan-rebalance", "-s", EXAMPLE, "-g", "bill-svc", "--add", "1", "--section", "queues", "-o", "table", "-q")
    shown = [row.rstrip() for row in run(*line, env={"COLUMNS": "24"}).stdout.splitlines()]
    assert shown[shown.index("broker-b  2") + 1].startswith("    before #")


CLIENT_ID = "192.0.2.1@1-with-a-long-name"
COLUMNS = (Column("topic", "topic", quiet=True), Column("row", "row", "number"), Column("before", "before", "clients"))
ROWS = tuple((f"topic-{row // 20}", 1000 + row, (CLIENT_ID,)) for row in range(60))
BRIEF = Section("windows", "windows", COLUMNS, ROWS, heads=2, brief=(3, 19, 20, 25, 41, 42, 59), chosen="the worst")


@every_case("width", range(20, 133))
def test_each_brief_row_is_shown_once_and_no_other(width: int) -> None:
    text = on_a_terminal(report(BRIEF, labels={CLIENT_ID: "#0"}), width)
    assert max(map(len, text.splitlines())) <= width
    words = text.replace("1,0", "10").split()
    shown = [int(word) - 1000 for word in words if word in map(str, range(1000, 1060))]
    assert shown == [*(BRIEF.brief or ())]
    assert " ".join(words).count("windows, the worst") == words.count("windows,") > 0
    assert "and 53 more" in " ".join(words)


def test_a_table_of_one_value_or_of_bars_only_keeps_a_column() -> None:
    one = Section("one", "one", (Column("topic", "topic", quiet=True),), (("Orders",),))
    bars = Section("bars", "bars", (Column("share", "share", "bar"),), ((0.5,),))
    shown = on_a_terminal(report(one, bars), 40)
    assert [word for word in shown.split() if "─" not in word] == ["one", "topic", "Orders", "bars", "share", "█" * 10]


def test_a_command_stays_one_line_for_a_shell() -> None:
    command = " ".join(["rmqlb plan-rebalance"] * 9)
    block = Block((Part("run", ((command, ""),) * 2, 1, is_command=True),), heading="a heading")
    lines = on_a_terminal(report(Section("x", "", (), (), blocks=(block,))), 30).splitlines()
    assert [line for line in lines if len(line) > 30] == [f"    {command}"]  # the note on the other one is folded


def test_what_stands_at_the_right_of_a_wide_line_is_near_it() -> None:
    block = Block((Part("why", (("a text", "its evidence"),)),), heading="a heading", beside="the group")
    shown = on_a_terminal(report(Section("x", "", (), (), blocks=(block,))), 200).splitlines()
    assert [len(line) for line in shown if line.strip()] == [120, 120]
