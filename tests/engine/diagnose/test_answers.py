"""What a diagnosis says of each case: `pytest tests/engine/diagnose/test_answers.py --update-golden` rewrites it."""

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from rmqlb.engine.diagnose.diagnose import RULES
from rmqlb.model.diagnosis import Diagnosis, Explains, GroupCounts, GroupFinding, Undecided
from rmqlb.model.message_queue import queue_ranges
from rmqlb.views.diagnose import sentence
from tests.engine.diagnose.cases import FAULTS, HEALTHY, WATCHED_FAULTS, WATCHED_PAIRS, cases
from tests.engine.diagnose.running import diagnosed, grave, of_looks
from tests.support.mismatches import assert_recorded, every_case

MOST_FACTS = 10
CODES = {code: {code} for code in (*FAULTS, *WATCHED_FAULTS)}
CODES |= {name: codes for name, (_, codes) in WATCHED_PAIRS.items()}


@cache
def diagnoses() -> dict[str, Diagnosis]:
    return {name: of_looks(looks) for name, looks in cases().items()}


def test_each_answer_is_the_recorded_one(request: pytest.FixtureRequest) -> None:
    answers = {name: lines_of(found) for name, found in diagnoses().items()}
    assert_recorded(Path(__file__).with_name("answers.txt"), answers, request)


def lines_of(found: Diagnosis) -> Iterator[str]:
    """The headline, the counts, the findings, and the other rules by their answers; rules in order are the rest.

    Reasons that every snapshot without evidence has are left out.
    """
    yield f"{found.outcome}: {sentence(found)}"
    yield "counts " + " ".join(str(getattr(found.counts, name)) for name in GroupCounts.__struct_fields__)
    for each in found.findings:
        yield from _finding(each)
    because: dict[tuple[str, ...], list[str]] = {}
    for one in found.consequences:
        because.setdefault(one.causes, []).append(one.code)
    for causes, codes in because.items():
        yield f"because of {', '.join(causes)}: {', '.join(codes)}"
    usual = {(each.code, each.reason) for each in diagnosed(HEALTHY).unknown}
    yield from _by_reason("unknown", [each for each in found.unknown if (each.code, each.reason) not in usual])
    yield from _by_reason("not applicable", found.not_applicable)


def _finding(each: GroupFinding) -> Iterator[str]:
    queues = queue_ranges(each.queues, most=9) if each.queues else f"topic {each.topic}"
    yield f"{each.severity} {each.code} | {queues} | {', '.join(each.consumers)}"
    for fact in each.evidence:
        threshold = "" if fact.threshold is None else f" (threshold {fact.threshold})"
        yield f"  {fact.fact}: {fact.value}{threshold} [{fact.source} {(fact.at or '')[11:]}]"
    yield f"  > {each.consequence}"
    yield f"  > {each.remedy}"
    if each.explains is not None:
        yield "  explains " + " ".join(str(getattr(each.explains, name)) for name in Explains.__struct_fields__)


def _by_reason(answer: str, undecided: Iterable[Undecided]) -> Iterator[str]:
    reasons: dict[tuple[str, str | None], list[str]] = {}
    for each in undecided:
        reasons.setdefault((each.reason, each.remedy), []).append(each.code)
    for (reason, remedy), codes in reasons.items():
        yield f"{answer}: {', '.join(codes)}: {reason}" + (f" [{remedy}]" if remedy else "")


@every_case("name", CODES)
def test_a_fault_is_named_and_no_other(name: str) -> None:
    found = diagnoses()[name]
    assert (set(grave(found)), found.outcome) == (CODES[name], "found")
    causes = [each.explains for each in found.findings if each.explains is not None]
    assert all(each.reproduces and each.fixes_all == (len(CODES[name]) == 1) for each in causes)
    if name in FAULTS:
        assert found.findings[0].severity == "error"


@every_case("name", cases())
def test_each_rule_answers_once_and_each_figure_reaches_its_threshold(name: str) -> None:
    found = diagnoses()[name]
    lists = ({f.code for f in found.findings}, {c.code for c in found.consequences}, set(found.checked))
    undecided = ({u.code for u in found.unknown} - lists[0], {u.code for u in found.not_applicable} - lists[0])
    assert sorted(code for codes in (*lists, *undecided) for code in codes) == sorted(rule.code for rule in RULES)
    for finding in found.findings:
        assert len(finding.evidence) <= MOST_FACTS
        for fact in finding.evidence:
            if isinstance(fact.value, int) and isinstance(fact.threshold, int) and finding.code != "broker-gone":
                assert fact.value >= fact.threshold > 0, fact
