"""Diagnoses as people see them: the sentence for each kind of answer, and any diagnosis in any format at any width."""

from __future__ import annotations

import csv
import io
import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.diagnose.diagnose import RULES, diagnosis_of_groups
from rmqlb.model.diagnosis import (
    WORDS,
    ConsumerStacks,
    Diagnosis,
    Evidence,
    Explains,
    GroupCounts,
    GroupFinding,
    Look,
    Undecided,
)
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.diagnose import diagnoses_report, diagnosis_report, sentence
from rmqlb.views.formats.machine import as_csv, as_json, as_json_lines, envelope
from rmqlb.views.formats.people import as_markdown, as_plain
from rmqlb.views.formats.text import width as columns
from rmqlb.views.report import Report
from rmqlb.views.row_changes import row_changes
from tests.support.any_value import any_of
from tests.support.mismatches import every_case
from tests.support.schemas import must_fit
from tests.views.shown import on_a_terminal

AT = "2026-11-21T02:00:10Z"
QUEUES = tuple(MessageQueue("Bills", "broker-b", number) for number in range(4))
COUNTS = GroupCounts(2, 3, 12, 4, 0, 480, 480)


def evidence(
    fact: str = "connections of x", value: str | int = 2, *, source: str = "here", at: str | None = AT
) -> Evidence:
    return Evidence(fact, value, 2, source, at)


def finding(code: str = "duplicate-client-id", **more: object) -> GroupFinding:
    values: dict[str, object] = {
        "severity": "error",
        "group": "g",
        "queues": QUEUES,
        "consumers": ("x",),
        "evidence": (evidence(),),
        "consequence": "4 queues wait.",
        "remedy": "Do this.",
        **({"explains": Explains(True, True, 0, 0)} if code == "duplicate-client-id" else {}),
        **more,
    }
    return GroupFinding(code, **values)  # type: ignore[arg-type]


def diagnosis(*findings: GroupFinding, **more: object) -> Diagnosis:
    values: dict[str, object] = {
        "outcome": "found",
        "looks": (Look("here", AT),),
        "counts": COUNTS,
        "findings": findings,
        "checked": ("mixed-strategies", "lag-growing"),
        **more,
    }
    return Diagnosis("g", **values)  # type: ignore[arg-type]


def lines(found: Diagnosis, width: int = 100) -> list[str]:
    return [line.rstrip() for line in on_a_terminal(diagnosis_report(found), width).splitlines()]


def test_every_rule_has_words() -> None:
    assert set(WORDS) == {rule.code for rule in RULES}


def test_the_first_line_says_what_is_wrong_because_of_what() -> None:
    assert sentence(diagnosis(finding())) == ("4 of 12 queues are unassigned because 2 processes share the client ID x")
    one = GroupCounts(2, 3, 12, 1, 2)
    assert sentence(diagnosis(finding(), counts=one)) == (
        "1 of 12 queues is unassigned, 2 have duplicate owners because 2 processes share the client ID x"
    )


def test_several_causes_are_all_named() -> None:
    mixed = finding(
        "mixed-strategies",
        evidence=(evidence("strategy of x", "AVG"), evidence("strategy of y", "AVG_BY_CIRCLE")),
        explains=Explains(True, False, 2, 0),
    )
    several = finding(consumers=("y",))
    assert sentence(diagnosis(finding(), several, mixed, finding("lag-growing", severity="warning"))) == (
        "4 of 12 queues are unassigned because 2 processes share each of the client IDs x, y "
        "and because its consumers run different strategies: AVG, AVG_BY_CIRCLE; also lag-growing"
    )


@every_case(
    ("code", "said"),
    [
        ("blocked-consumer", "the listeners of x, y are blocked; 4 of 12 queues wait"),
        ("lag-growing", "lag is growing in 4 of 12 queues"),
        ("pull-stopped", "x, y have stopped pulling; 4 of 12 queues wait"),
        ("broker-unreachable-from-consumer", "x, y do not reach broker-b"),
        ("no-consumer-online", "no consumer is visible"),
    ],
)
def test_what_is_no_cause_of_owners_is_said_as_it_is(code: str, said: str) -> None:
    assert sentence(diagnosis(finding(code, consumers=("x", "y")))) == said


def test_in_order_is_said_only_where_every_rule_has_looked() -> None:
    fine = diagnosis(outcome="inOrder", not_applicable=(Undecided("lock-lost", "it is not orderly"),))
    assert sentence(fine) == "in order: 2 rules checked, 1 does not apply"
    idle = finding("more-consumers-than-queues", severity="info", queues=())
    assert sentence(diagnosis(idle, outcome="inOrder")) == (
        "in order: 2 rules checked; more consumers than queues, x is idle"
    )
    undecided = (Undecided("lock-lost", "no locks"), Undecided("flow-control", "no limits"), Undecided("a", "no locks"))
    assert sentence(diagnosis(outcome="unknown", unknown=undecided)) == (
        "no problem found, but 3 of 5 rules could not be decided: no locks (and 1 more reason)"
    )


def test_a_finding_is_a_block_from_its_evidence_to_what_is_then_the_case() -> None:
    shown = lines(diagnosis(finding()), 80)
    begin = shown.index("✗ duplicate-client-id" + "cause of all that is observed".rjust(80 - 21))
    assert shown[begin + 1 : begin + 6] == [
        "  evidence     connections of x: 2 (threshold 2)",
        "  queues       4 of 12 queues: Bills broker-b 0-3",
        "  consequence  4 queues wait.",
        "  remedy       Do this.",
        "  afterwards   12 of 12 queues have one owner (predicted)",
    ]
    assert "checked  one strategy · lag is not growing" in shown
    assert "unknown  nothing" in shown


def test_what_a_cause_leaves_over_is_predicted_too() -> None:
    def after(explains: Explains) -> list[str]:
        return [
            line for line in lines(diagnosis(finding(explains=explains))) if "afterwards" in line or "cause" in line
        ]

    assert after(Explains(True, False, 1, 2))[-1].strip() == (
        "afterwards   still 1 queue unassigned, 2 queues with duplicate owners (predicted)"
    )
    assert after(Explains(True, False))[-1].strip() == "afterwards   brokers still list different consumers"
    assert not any("afterwards" in line for line in after(Explains(False)))


def test_predictions_with_and_without_a_cause_are_held_against_the_owners() -> None:
    def held(*findings: GroupFinding) -> list[str]:
        text = lines(diagnosis(*findings), width=120)
        return [line.removeprefix("  evidence").strip() for line in text if "the owners of" in line]

    sure = Explains(True, True, 0, 0, 8, 5)
    one = finding(explains=sure)
    assert held(one) == ["explains the owners of 8 of 12 queues (5 of 12 without it)"]
    mixed = finding("mixed-strategies", explains=Explains(True, False, 1, 0, 8))
    assert held(one, mixed) == [
        "all causes explain the owners of 8 of 12 queues (5 of 12 without it)",
        "all causes explain the owners of 8 of 12 queues",
    ]
    assert held(finding(explains=Explains(None, True))) == held(finding(severity="info", explains=sure)) == []


def test_whether_a_cause_explains_all_is_said_at_its_side() -> None:
    def beside(*findings: GroupFinding) -> str:
        return next(line for line in lines(diagnosis(*findings)) if line.startswith("✗")).split("  ")[-1].strip()

    assert beside(finding()) == "cause of all that is observed"
    mixed = finding("mixed-strategies", explains=Explains(True, False, 1, 0))
    assert beside(finding(), mixed) == "one of 2 causes of all that is observed"
    assert beside(finding(explains=Explains(False))) == "does not explain all that is observed"
    assert beside(finding(explains=Explains(None))) == "✗ duplicate-client-id"


def test_long_lists_are_bounded_and_all_shows_them() -> None:
    found = diagnosis(
        finding(
            "blocked-consumer",
            evidence=tuple(evidence(f"fact {n}") for n in range(9)),
            consumers=("x",),
        ),
        *(finding("lock-lost", consumers=(f"c{n}",)) for n in range(9)),
        unknown=tuple(Undecided(f"rule-{n}", f"reason {n}", "ask") for n in range(8)),
        stacks=(ConsumerStacks("x", ("Thread_1\n" + "\n".join(f"at f{n}" for n in range(30)),)),),
    )
    shown = "\n".join(lines(found))
    assert "and 5 more: --all shows all" in shown
    assert "and 19 more: --all shows all" in shown
    assert "and 3 more: --all shows all" in shown
    assert "and 2 more: --section findings shows all" in shown
    assert "to know more  ask" in shown
    whole = as_plain(diagnosis_report(found).only((), screen=True, everything=True))
    assert "fact 8" in whole
    assert "at f29" in whole
    assert "reason 7" in whole
    assert "more: --" not in whole.replace("; --all lists", "")


def test_the_worst_group_stands_first_and_its_findings_below() -> None:
    groups = [
        replace(diagnosis(outcome="inOrder"), group="fine"),
        replace(diagnosis(outcome="unknown", unknown=(Undecided("a", "why"),)), group="dark"),
        replace(diagnosis(finding(group="warned", severity="warning")), group="warned"),
        replace(diagnosis(finding(group="bad")), group="bad"),
        replace(diagnosis(finding(group="worse"), counts=replace(COUNTS, unassigned=5)), group="worse"),
    ]
    whole = diagnosis_of_groups(groups)
    assert [each.group for each in whole.groups] == ["worse", "bad", "warned", "dark", "fine"]
    shown = on_a_terminal(diagnoses_report(whole), 100)
    assert shown.startswith("5 groups: 2 with errors, 1 with a warning, 1 unknown, 1 in order\n")
    assert re.findall(r"^[✗!] (\w+): duplicate-client-id", shown, re.MULTILINE) == ["worse", "bad", "warned"]
    assert diagnoses_report(diagnosis_of_groups(groups[:1])).facts == ("1 group: 1 in order",)


def test_a_watch_sees_findings_come_and_go_but_not_their_figures_change() -> None:
    first = diagnosis_report(diagnosis(finding(), unknown=(Undecided("lock-lost", "why"),))).rows
    other = replace(finding(), evidence=(evidence(value=3),), consequence="5 queues wait.")
    second = diagnosis_report(diagnosis(other, finding("lock-lost"))).rows
    assert first is not None
    assert second is not None
    seen = [
        (c.change, (c.row or c.was or {})["code"], (c.row or c.was or {})["list"])
        for c in row_changes("", first, second)
    ]
    assert seen == [("added", "lock-lost", "findings"), ("removed", "lock-lost", "unknown")]


def _json(report: Report) -> str:
    return as_json(envelope(report, "diagnose", ClusterSnapshot("dump", "x"), ()))


def consistent(found: Diagnosis) -> Diagnosis:
    """With the outcome that its lists have, and times that are times."""
    looks = tuple(replace(look, at=AT if look.at else None) for look in found.looks)
    is_found = any(each.severity != "info" for each in found.findings)
    outcome = "found" if is_found else "unknown" if found.unknown else "inOrder"
    return replace(found, looks=looks, outcome=outcome)


@settings(max_examples=60, deadline=None)
@given(st.lists(any_of(Diagnosis).map(consistent), min_size=1, max_size=3), st.integers(1, 140))
def test_any_diagnosis_is_shown_in_every_format_at_any_width(found: list[Diagnosis], width: int) -> None:
    for report in (diagnosis_report(found[0]), diagnoses_report(diagnosis_of_groups(found))):
        shown = on_a_terminal(report, width)
        if width > 20:
            assert max(map(columns, shown.splitlines())) <= width
        assert on_a_terminal(report.only((), screen=True, everything=True), width)
        must_fit(json.loads(_json(report)))
        assert as_plain(report)
        assert as_markdown(report)
        assert report.rows is not None
        assert len(as_json_lines(report.rows).splitlines()) == len(report.rows.items)
        for section in report.sections:
            rows = list(csv.reader(io.StringIO(as_csv(section))))
            assert len(rows) == len(section.rows) + 1


def test_looks_are_said_with_their_number_span_and_places() -> None:
    def said(*looks: Look) -> str:
        return diagnosis_report(diagnosis(looks=looks)).facts[-1].strip()

    before, other = Look("here", "2026-11-21T01:59:00Z"), Look("there", None)
    assert said(Look("here", AT)) == f"read at {AT} from here"
    assert said(before, Look("here", AT)) == f"2 samples over 1m10s, the last at {AT}, from here"
    assert said(before, other) == "2 samples, the last at an unknown time, from here, there"
    assert said(other) == "read at an unknown time from there"
    assert diagnosis_report(diagnosis(looks=())).facts[-1].startswith("  2 consumers (3 processes)")


@every_case(("lag", "at_least", "said"), [(7, 7, "lag 7"), (None, 1500, "lag 1,500+"), (None, None, "12 queues")])
def test_lag_that_is_known_in_part_is_at_least_so_much(lag: int | None, at_least: int | None, said: str) -> None:
    counts = replace(COUNTS, lag=lag, lag_at_least=at_least)
    assert diagnosis_report(diagnosis(counts=counts)).facts[1].endswith(said)
