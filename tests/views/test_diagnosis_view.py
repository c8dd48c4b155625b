import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.diagnose.diagnose import diagnosis_of_groups
from rmqlb.model.diagnosis import (
    CODES,
    ConsumerStacks,
    DiagnosedSample,
    Diagnosis,
    Evidence,
    Explains,
    GroupCounts,
    GroupFinding,
    Undecided,
)
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.diagnose import diagnoses_report, diagnosis_report
from rmqlb.views.explanations import rule_words
from rmqlb.views.formats.machine import as_csv, as_json, as_json_lines, envelope
from rmqlb.views.formats.people import as_plain
from rmqlb.views.formats.text import width as columns
from rmqlb.views.row_changes import row_changes
from tests.support.any_value import any_of
from tests.support.schemas import must_fit
from tests.views.shown import on_a_terminal

ANSWERS = Path(__file__).parent / "diagnoses.txt"
AT = "2026-11-21T02:00:10Z"
QUEUES = tuple(MessageQueue("Bills", "broker-b", number) for number in range(4))
COUNTS = GroupCounts(2, 3, 12, 4, 0, 0, 480, 480)


def evidence(
    fact: str = "connections of x", value: str | int = 2, *, source: str = "here", at: str | None = AT
) -> Evidence:
    return Evidence(fact, value, 2, source, at)


def finding(code: str = "duplicate-client-id", **more: Any) -> GroupFinding:
    what = {"severity": "error", "group": "g", "queues": QUEUES, "consumers": ("x",), "evidence": (evidence(),)}
    said = {"consequence": "4 queues wait.", "remedy": "Do this."}
    cause = {"explains": Explains(True, True, 0, 0)} if code == "duplicate-client-id" else {}
    return GroupFinding(code, **{**what, **said, **cause, **more})


def diagnosis(*findings: GroupFinding, **more: Any) -> Diagnosis:
    values = {"outcome": "found", "samples": (DiagnosedSample("here", AT),), "counts": COUNTS, "findings": findings}
    return Diagnosis("g", **{**values, "checked": ("mixed-strategies", "lag-growing"), **more})


def mixed(explains: Explains) -> GroupFinding:
    values = (("x", "AVG"), ("y", "AVG_BY_CIRCLE"))
    facts = tuple(evidence(f"strategy of {own}", name) for own, name in values)
    return finding("mixed-strategies", evidence=facts, explains=explains)


SURE = Explains(True, True, 0, 0, 8, 5)
GROWING = finding("lag-growing", severity="warning")
UNDECIDED = (Undecided("lock-lost", "no locks"), Undecided("flow-control", "no limits"), Undecided("a", "no locks"))
BEFORE, OTHER = DiagnosedSample("here", "2026-11-21T01:59:00Z"), DiagnosedSample("there", None)
NOT_ORDERLY = (Undecided("lock-lost", "it is not orderly"),)
IDLE = finding("more-consumers-than-queues", severity="info", queues=())
SHOWN = {
    "a cause": diagnosis(finding()),
    "a cause that the prediction bears out": diagnosis(finding(explains=SURE)),
    "two causes, and lag": diagnosis(finding(), finding(consumers=("y",)), mixed(Explains(True, False, 2, 0)), GROWING),
    "two causes by prediction": diagnosis(finding(explains=SURE), mixed(Explains(True, False, 1, 2, 8))),
    "a cause beside differing lists": diagnosis(finding(explains=Explains(True, False))),
    "a cause that does not explain all": diagnosis(finding(explains=Explains(False))),
    "a cause without observed owners": diagnosis(finding(explains=Explains(None, True))),
    "a cause that may pass": diagnosis(finding(severity="info", explains=SURE)),
    "one queue unassigned, two with two owners": diagnosis(finding(), counts=GroupCounts(2, 3, 12, 1, 2)),
    **{
        code: diagnosis(finding(code, consumers=("x", "y")), counts=replace(COUNTS, unassigned=0))
        for code in (
            *("blocked-consumer", "lag-growing", "pull-stopped", "broker-unreachable-from-consumer"),
            *("no-consumer-online", "hot-queue", "consume-failing", "dropped-but-consuming", "unassigned-queues"),
        )
    },
    "owners unknown": diagnosis(finding("unassigned-queues"), counts=replace(COUNTS, owners_unknown=2)),
    "in order": diagnosis(outcome="inOrder", not_applicable=NOT_ORDERLY),
    "in order, one idle": diagnosis(IDLE, outcome="inOrder"),
    "undecided": diagnosis(outcome="unknown", unknown=UNDECIDED),
    "two samples": diagnosis(samples=(BEFORE, DiagnosedSample("here", AT)), counts=replace(COUNTS, lag=None, lag_at_least=1500)),
    "two samples at two places": diagnosis(samples=(BEFORE, OTHER), counts=replace(COUNTS, lag=None, lag_at_least=None)),
    "one look at an unknown time": diagnosis(samples=(OTHER,), counts=GroupCounts()),
    "no look": diagnosis(finding(), samples=()),
    "evidence of two places": diagnosis(finding(evidence=(evidence(), evidence("of y", "text", source="there", at="?")))),
}  # fmt: skip


def test_what_people_see_of_a_diagnosis(request: pytest.FixtureRequest) -> None:
    shown = "\n".join(f"== {name}\n{on_a_terminal(diagnosis_report(found), 100)}" for name, found in SHOWN.items())
    if request.config.getoption("--update-golden"):
        ANSWERS.write_text(shown, encoding="utf-8")
    assert shown == ANSWERS.read_text(encoding="utf-8")


def test_every_rule_has_words() -> None:
    assert set(rule_words()) == {*CODES}


def test_long_lists_are_bounded_and_all_shows_them() -> None:
    found = diagnosis(
        finding("blocked-consumer", evidence=tuple(evidence(f"fact {n}") for n in range(9)), consumers=("x",)),
        *(finding("lock-lost", consumers=(f"c{n}",)) for n in range(9)),
        unknown=tuple(Undecided(f"rule-{n}", f"reason {n}", "ask") for n in range(8)),
        stacks=(ConsumerStacks("x", ("Thread_1\n" + "\n".join(f"at f{n}" for n in range(30)),)),),
    )
    shown = on_a_terminal(diagnosis_report(found), 100)
    for lines in ("5 more: --all", "19 more: --all", "2 more: --section findings"):
        assert f"and {lines} shows all" in shown
    assert "8 checks need other evidence" in shown
    whole = as_plain(diagnosis_report(found).only((), screen=True, everything=True))
    assert {text in whole for text in ("fact 8", "at f29", "reason 7")} == {True}
    assert "more: --" not in whole.replace("; --all lists", "")


def test_the_worst_group_stands_first_and_its_findings_below() -> None:
    groups = {
        "fine": diagnosis(outcome="inOrder"), "dark": diagnosis(outcome="unknown", unknown=(Undecided("a", "why"),)),
        "warned": diagnosis(finding(group="warned", severity="warning")), "bad": diagnosis(finding(group="bad")),
        "worse": diagnosis(finding(group="worse"), counts=replace(COUNTS, unassigned=5)),
    }  # fmt: skip
    whole = diagnosis_of_groups([replace(each, group=name) for name, each in groups.items()])
    assert [each.group for each in whole.groups] == ["worse", "bad", "warned", "dark", "fine"]
    shown = on_a_terminal(diagnoses_report(whole), 100)
    assert shown.startswith("5 groups: 2 broken, 1 with a warning, 1 with no problem found, 1 in order\n")
    assert re.findall(r"^[✗!] (\w+): duplicate-client-id", shown, re.MULTILINE) == ["worse", "bad", "warned"]
    assert diagnoses_report(diagnosis_of_groups([groups["fine"]])).facts == ("1 group: 1 in order",)


def test_a_watch_sees_findings_come_and_go_but_not_their_figures_change() -> None:
    other = replace(finding(), evidence=(evidence(value=3),), consequence="5 queues wait.")
    first = diagnosis_report(diagnosis(finding(), unknown=(Undecided("lock-lost", "why"),))).rows
    second = diagnosis_report(diagnosis(other, finding("lock-lost"))).rows
    assert first is not None
    assert second is not None
    rows = [(each.change, each.row or each.was or {}) for each in row_changes("", first, second)]
    seen = [(change, row["code"], row["list"]) for change, row in rows]
    assert seen == [("added", "lock-lost", "findings"), ("removed", "lock-lost", "unknown")]


def consistent(found: Diagnosis) -> Diagnosis:
    looks = tuple(replace(look, at=AT if look.at else None) for look in found.samples)
    is_found = any(each.severity != "info" for each in found.findings)
    outcome = "found" if is_found else "unknown" if found.unknown else "inOrder"
    return replace(found, samples=looks, outcome=outcome)


@settings(max_examples=60, deadline=None)
@given(st.lists(any_of(Diagnosis).map(consistent), min_size=1, max_size=3), st.integers(1, 140))
def test_any_diagnosis_is_shown_in_every_format_at_any_width(found: list[Diagnosis], width: int) -> None:
    for report in (diagnosis_report(found[0]), diagnoses_report(diagnosis_of_groups(found))):
        shown = on_a_terminal(report, width)
        if width > 20:
            assert max(map(columns, shown.splitlines())) <= width
        assert on_a_terminal(report.only((), screen=True, everything=True), width)
        must_fit(json.loads(as_json(envelope(report, "diagnose", ClusterSnapshot("dump", "x"), ()))))
        assert as_plain(report)
        assert as_plain(is_markdown=True, report=report)
        assert report.rows is not None
        assert len(as_json_lines(report.rows).splitlines()) == len(report.rows.items)
        for section in report.sections:
            rows = list(csv.reader(io.StringIO(as_csv(section))))
            assert len(rows) == len(section.rows) + 1
