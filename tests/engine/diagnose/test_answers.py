from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from zlib import crc32

import pytest
from msgspec.structs import replace

from rmqlb import DataError, MessageQueue
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.diagnose import diagnose as engine
from rmqlb.engine.diagnose.case import CHECKS
from rmqlb.engine.diagnose.diagnose import diagnose, earlier_sample, wants_another, with_stacks, worth_stacks
from rmqlb.engine.diagnose.evidence import clock_of
from rmqlb.engine.drain import drains_of
from rmqlb.engine.group import Group, group_of
from rmqlb.engine.group_findings import group_findings
from rmqlb.model.diagnosis import (
    ConsumerStacks,
    DiagnosedSample,
    Diagnosis,
    Explains,
    GroupCounts,
    GroupFinding,
    Undecided,
)
from rmqlb.model.group import BROADCASTING
from rmqlb.model.message_queue import grouped, queue_ranges
from rmqlb.model.process_queue import ConsumerEvidence, ProcessQueue
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.diagnose import sentence
from tests.engine.diagnose.cases import (
    FAULTS,
    HEALTHY,
    PAIR,
    PAUSED,
    WATCHED_FAULTS,
    WATCHED_PAIRS,
    Looks,
    cases,
    ill_looks,
    of,
)
from tests.engine.diagnose.running import (
    AT,
    Process,
    case_of,
    changed,
    diagnosed,
    earlier,
    grave,
    of_looks,
    running,
    watched,
)
from tests.support.mismatches import assert_recorded, every_case


def over(*looks: ClusterSnapshot) -> Diagnosis:
    return diagnose(engine.case_of(looks, "g", Settings()))


def test_each_look_says_where_and_when() -> None:
    then = AT - timedelta(seconds=10)
    seen = replace(HEALTHY.groups["g"].seen, where="yesterday.json", at=then)
    assert over(changed(replace(HEALTHY, taken_at=then), seen=seen), HEALTHY).samples == (
        DiagnosedSample("yesterday.json", "2026-11-21T01:59:50Z"),
        DiagnosedSample(HEALTHY.groups["g"].seen.where, "2026-11-21T02:00:00Z"),
    )
    assert len(over(replace(HEALTHY, groups={}), HEALTHY).samples) == 1


def test_a_look_has_a_time_and_stack_traces_stand_in_the_diagnosis() -> None:
    own = datetime(2026, 11, 21, 3, tzinfo=UTC)
    for at, expected in ((None, AT), (own, own)):
        seen = replace(HEALTHY.groups["g"].seen, at=at)
        assert earlier_sample(changed(HEALTHY, seen=seen), "g").seen.at == expected
    assert over(HEALTHY).stacks is None
    asked = with_stacks(HEALTHY, "g", {"y": ("at T.take",), "gone": ()})
    assert over(asked).stacks == (ConsumerStacks("y", ("at T.take",)),)


def test_looks_are_wanted_until_growth_and_stall_show() -> None:
    def wanted(looks: Looks) -> list[bool]:
        return [wants_another(case_of(look, earlier=earlier(looks[: n + 1]))) for n, look in enumerate(looks)]

    assert wanted(watched(PAIR)) == [True, False, False]
    assert wanted(WATCHED_FAULTS["lag-growing"]) == wanted(WATCHED_FAULTS["lag-stalled"]) == [True, True, False]
    assert wanted((changed(HEALTHY, message_model=BROADCASTING),)) == [False]
    assert wanted(watched(PAIR, of("x", PAUSED), looks=range(-8, 0))) == [True] * 7 + [False]


def test_stacks_are_worth_asking_of_consumers_with_messages_and_none_consumed_for_a_minute() -> None:
    def worth(cached: int, age_ms: int) -> tuple[str, ...]:
        queue = ProcessQueue(MessageQueue("T", "a", 0), cached=cached, last_consume=1_000_000 - age_ms)
        own = ConsumerEvidence(read_at=1_000_000, queues=(queue,))
        group = HEALTHY.groups["g"]
        reports = {**group.reports, "x": replace(group.reports["x"], evidence=own)}
        return worth_stacks(case_of(changed(HEALTHY, reports=reports)))

    assert (worth(1, 60_001), worth(1, 60_000), worth(1, 500_000), worth(0, 60_001)) == (("x",), (), ("x",), ())
    assert worth_stacks(case_of(HEALTHY)) == ()


def test_a_start_in_the_future_is_remarked() -> None:
    late = running(Process("x", age_s=-3600), Process("y"))
    group = group_of(late, "g")
    (its,) = (each for each in group_findings(group, ()) if each.code == "clock-ahead")
    assert (its.severity, its.consumers) == ("info", ("x",))
    assert its.message == "group g: x report a start time in the future: clock ahead of this computer's"
    for h, is_ahead in ((0, True), (2, False)):
        look = changed(replace(late, taken_at=AT + timedelta(hours=h)), seen=replace(late.groups["g"].seen, at=None))
        assert ("clock-ahead" in {each.code for each in group_findings(Group(look, "g"), ())}) is is_ahead


Q, R = MessageQueue("T", "a", 0), MessageQueue("T", "a", 1)


def report(read_at: int | None, *queues: ProcessQueue) -> ConsumerEvidence:
    return ConsumerEvidence(read_at, queues)


PULLED = report(1_000_000, ProcessQueue(Q, last_pull=700_000))
TAKEN = report(1_010_000, ProcessQueue(Q, last_pull=700_000), ProcessQueue(R, last_pull=703_000))
CLOCKS = {
    # 9 s lie between its own times; 10 s by our clock, unless its clock is behind.
    "one look": ((report(1_000_000, ProcessQueue(Q, last_pull=999_000, last_consume=990_000)),), (990_000,)),
    "ahead": ((report(1_000_000, ProcessQueue(Q, last_lock=1_001_001, last_consume=1_000_500)),), (1_001_001, 1_000_500)),
    "a little ahead": ((report(1_000_000, ProcessQueue(Q, last_lock=1_001_000, last_consume=1_000_500)),), (1_000_500,)),
    # The pull was between the samples, less the 5 s that the first report may have been on its way.
    "five minutes behind": ((report(1_000_000, ProcessQueue(Q, last_pull=695_000, last_consume=600_000)), report(1_010_000, ProcessQueue(Q, last_pull=706_000, last_consume=600_000))), (600_000, 706_000)),
    "a queue that was taken between looks has new times": ((PULLED, TAKEN), ()),
    "a queue without times": ((report(1_000_000, ProcessQueue(Q, last_pull=700_000), ProcessQueue(R)), TAKEN), ()),
    "process queues unread": ((report(1_000_000, ProcessQueue(Q, last_pull=999_000)), ConsumerEvidence(1_005_000, None)), ()),
    # Set back by an hour: a pull after the first look has an earlier time than one before.
    "set back": ((report(10_000_000, ProcessQueue(Q, last_pull=9_999_000)), report(10_010_000, ProcessQueue(Q, last_pull=6_409_000))), ()),
    "no report": ((), ()),
    "no time of the report": ((report(None, ProcessQueue(Q, last_pull=1)),), ()),
    "no time of a pull": ((report(5, ProcessQueue(Q, last_pull=0)),), ()),
}  # fmt: skip


def clock_lines(looks: Sequence[ConsumerEvidence], times: Sequence[int]) -> Iterator[str]:
    try:
        clock = clock_of("x", looks)
    except DataError as error:
        yield error.message
        return
    yield f"read at {clock.read_at}, at most {clock.most} ms ahead"
    for time in times:
        yield f"{time} is {clock.age(time)} ms old"
        for ms in (500, 8_999, 9_000, 9_999, 10_000, 15_000, 105_999, 106_000, 120_999, 121_000):
            try:
                yield f"  older than {ms} ms: {clock.is_older(time, ms)}"
            except DataError as error:
                yield f"  older than {ms} ms: {type(error).__name__}: {error.message}"


def test_what_clocks_prove_is_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {name: clock_lines(*case) for name, case in CLOCKS.items()}
    assert_recorded(Path(__file__).with_name("clocks.txt"), answers, request)


MOST_FACTS = 10
CODES = {code: {code} for code in (*FAULTS, *WATCHED_FAULTS)}
CODES |= {name: codes for name, (_, codes) in WATCHED_PAIRS.items()}


@cache
def diagnoses() -> dict[str, Diagnosis]:
    return {name: of_looks(looks) for name, looks in cases().items()}


def test_each_answer_is_the_recorded_one(request: pytest.FixtureRequest) -> None:
    answers = {name: lines_of(found) for name, found in diagnoses().items()} | {"random": random_answers()}
    assert_recorded(Path(__file__).with_name("answers.txt"), answers, request)


def random_answers() -> Iterator[str]:
    for looks in (ill_looks(Random(f"ill {number}")) for number in range(400)):
        found, drains = of_looks(looks), drains_of(case_of(looks[-1], earlier=earlier(looks)))
        yield f"{crc32(repr([*lines_of(found), drains]).encode()):08x} {sentence(found)}; {drains.group.drains} drains"


def lines_of(found: Diagnosis) -> Iterator[str]:
    """The headline, the counts, the findings, and the other rules by their answers; rules in order are the rest.

    Reasons that every snapshot without evidence has are left out.
    """
    yield f"{found.outcome}: {sentence(found)}"
    yield "counts " + " ".join(str(getattr(found.counts, name)) for name in GroupCounts.__struct_fields__)
    for each in found.findings:
        yield from _finding(each)
    for causes, codes in grouped((one.causes, one.code) for one in found.consequences).items():
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
    for (reason, remedy), codes in grouped(((each.reason, each.remedy), each.code) for each in undecided).items():
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
    assert sorted(code for codes in (*lists, *undecided) for code in codes) == sorted(CHECKS)
    for finding in found.findings:
        assert len(finding.evidence) <= MOST_FACTS
        for fact in finding.evidence:
            if isinstance(fact.value, int) and isinstance(fact.threshold, int) and finding.code != "broker-gone":
                assert fact.value >= fact.threshold > 0, fact
