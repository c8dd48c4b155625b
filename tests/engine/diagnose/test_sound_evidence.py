"""Evidence proves what is said: each figure reaches its threshold, few lines are enough, and no advice is given twice."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.diagnose.diagnose import with_stacks
from rmqlb.engine.group import Group, assumption
from rmqlb.engine.group_findings import group_findings
from rmqlb.model.diagnosis import Diagnosis
from tests.engine.diagnose.consuming import Doing, Reporting, of_looks, stored, watched
from tests.engine.diagnose.running import AT, Process, running
from tests.engine.diagnose.watched_faults import (
    BLOCKED,
    HANGS_IN_ORDER,
    HEAD,
    ORDERLY,
    PAIR,
    SLOW,
    UNPULLED,
    WATCHED_FAULTS,
    WATCHED_PAIRS,
    Looks,
    of,
    stops_at,
)
from tests.support.builders import route
from tests.support.mismatches import every_case

MOST_FACTS = 10
ALL: dict[str, Looks] = {**WATCHED_FAULTS, **{name: looks for name, (looks, _) in WATCHED_PAIRS.items()}}


def unproven(found: Diagnosis) -> list[str]:
    """Facts whose value is below the threshold, or whose threshold means nothing."""
    return [
        f"{finding.code}: {each.fact}: {each.value} (threshold {each.threshold})"
        for finding in found.findings
        for each in finding.evidence
        if isinstance(each.value, int)
        and isinstance(each.threshold, int)
        and (each.value < each.threshold or each.threshold == 0)
    ]


@every_case("name", ALL)
def test_each_figure_reaches_its_threshold(name: str) -> None:
    found = of_looks(ALL[name])
    assert unproven(found) == []
    assert all(len(finding.evidence) <= MOST_FACTS for finding in found.findings)


def test_old_messages_prove_a_blocked_listener_where_the_looks_are_too_short() -> None:
    """The looks cover 20 s of the minute that is needed where no usual duration is known."""
    does = Doing(
        done=stops_at(-90, stored), consumed_at=stops_at(-90, Doing().consumed_at), pulled=stops_at(-15, stored)
    )
    looks = watched(PAIR, of("x", does), {"x": Reporting(call_ms=7000.0, pulled_per_s=1.0)})
    found = of_looks(looks)
    assert [each.code for each in found.findings] == ["blocked-consumer"]
    assert unproven(found) == []
    facts = {each.fact: (each.value, each.threshold) for each in found.findings[0].evidence}
    assert facts["messages of T that x had 10 s before, more than it pulls in a minute"] == (3000, 61)


def test_a_listener_that_takes_no_time_is_no_measure() -> None:
    says = {"x": Reporting(call_ms=704.0, consumed_per_s=16.0), "y": Reporting(call_ms=0.0)}
    (its,) = of_looks(watched(PAIR, of("x", SLOW), says)).findings
    assert (its.code, its.evidence[0].value, its.evidence[0].threshold) == ("slow-consumer", 704, 2)
    quick = {"x": Reporting(call_ms=1.9, consumed_per_s=16.0), "y": Reporting(call_ms=0.0)}
    assert [each.code for each in of_looks(watched(PAIR, of("x", SLOW), quick)).findings] == ["lag-growing"]


@every_case("does", [HEAD, UNPULLED, BLOCKED])
def test_many_queues_of_many_consumers_need_few_facts(does: Doing) -> None:
    eight = running(*(Process(f"c{number}") for number in range(8)), routes=(route(a=12, b=12),))
    doing = {(i, queue): does for queue, state in eight.groups["g"].queues.items() for i in state.owners or ()}
    (its,) = of_looks(watched(eight, doing)).findings
    assert (len(its.consumers), len(its.queues)) == (8, 24)
    assert len(its.evidence) <= MOST_FACTS


def test_stack_traces_that_are_there_are_not_asked_for() -> None:
    for does, code in ((BLOCKED, "blocked-consumer"), (HEAD, "head-blocked")):
        looks = watched(PAIR, of("x", does))
        for given, told in (((), "(--stacks)"), (("at T.take",), "stack traces of x")):
            last = with_stacks(looks[-1], "g", {"x": given}) if given else looks[-1]
            (its,) = of_looks((*looks[:-1], last)).findings
            assert its.code == code
            assert told in its.remedy
            assert ("--stacks" in its.remedy) == (not given)


def test_no_message_after_the_first_is_consumed_in_order() -> None:
    # A call of 20 s is longer than usual, and shorter than a minute.
    looks = watched(PAIR, of("x", HANGS_IN_ORDER, 1), {i: replace(ORDERLY[i], call_ms=20.0) for i in "xy"})
    (its,) = (each for each in of_looks(looks).findings if each.code == "head-blocked")
    assert "later messages wait for that one" in its.consequence
    assert "consumed after it" not in its.consequence


def test_a_start_in_the_future_is_remarked() -> None:
    late = running(Process("x", age_s=-3600), Process("y"))
    group = Group(late, "g", Settings(), assumption(late, "g"))
    (its,) = (each for each in group_findings(group, ()) if each.code == "clock-ahead")
    assert (its.severity, its.consumers) == ("info", ("x",))
    assert its.message == "group g: x started in the future, by a clock that is ahead of this computer's"
    soon = replace(late, taken_at=AT + timedelta(hours=2))
    moved = replace(soon, groups={"g": replace(late.groups["g"], seen=replace(late.groups["g"].seen, at=None))})
    assert "clock-ahead" not in {each.code for each in group_findings(Group(moved, "g"), ())}
