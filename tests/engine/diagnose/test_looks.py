from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.diagnose import diagnose as engine
from rmqlb.engine.diagnose.diagnose import diagnose, earlier_look, wants_another, with_stacks, worth_stacks
from rmqlb.engine.diagnose.evidence import AnotherLookNeeded, clock_of
from rmqlb.engine.group import Group, assumption
from rmqlb.engine.group_findings import group_findings
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import ConsumerStacks, Diagnosis, Look
from rmqlb.model.group import BROADCASTING
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.process_queue import ConsumerEvidence, ProcessQueue
from rmqlb.model.snapshot import ClusterSnapshot
from tests.engine.diagnose.cases import HEALTHY
from tests.engine.diagnose.consuming import earlier, watched
from tests.engine.diagnose.running import AT, Process, changed, evidence_of, running
from tests.engine.diagnose.watched_faults import PAIR, WATCHED_FAULTS, Looks
from tests.support.mismatches import every_case


def over(*looks: ClusterSnapshot) -> Diagnosis:
    return diagnose(engine.evidence_of(looks, "g", Settings()))


def test_each_look_says_where_and_when() -> None:
    then = AT - timedelta(seconds=10)
    seen = replace(HEALTHY.groups["g"].seen, where="yesterday.json", at=then)
    assert over(changed(replace(HEALTHY, taken_at=then), seen=seen), HEALTHY).looks == (
        Look("yesterday.json", "2026-11-21T01:59:50Z"),
        Look(HEALTHY.groups["g"].seen.where, "2026-11-21T02:00:00Z"),
    )
    assert len(over(replace(HEALTHY, groups={}), HEALTHY).looks) == 1


def test_a_look_has_the_time_of_its_snapshot_unless_it_has_its_own() -> None:
    own = datetime(2026, 11, 21, 3, tzinfo=UTC)
    for at, expected in ((None, AT), (own, own)):
        seen = replace(HEALTHY.groups["g"].seen, at=at)
        assert earlier_look(changed(HEALTHY, seen=seen), "g").seen.at == expected


def test_stack_traces_stand_in_the_diagnosis() -> None:
    assert over(HEALTHY).stacks is None
    asked = with_stacks(HEALTHY, "g", {"y": ("at T.take",), "gone": ()})
    assert over(asked).stacks == (ConsumerStacks("y", ("at T.take",)),)


def test_looks_are_wanted_until_growth_and_stall_show() -> None:
    def wanted(looks: Looks) -> list[bool]:
        return [wants_another(evidence_of(look, earlier=earlier(looks[: n + 1]))) for n, look in enumerate(looks)]

    assert wanted(watched(PAIR)) == [True, False, False]
    assert wanted(WATCHED_FAULTS["lag-growing"]) == wanted(WATCHED_FAULTS["lag-stalled"]) == [True, True, False]
    assert wanted((changed(HEALTHY, message_model=BROADCASTING),)) == [False]


def test_stacks_are_worth_asking_of_consumers_with_messages_and_none_consumed_for_a_minute() -> None:
    def worth(cached: int, age_ms: int) -> tuple[str, ...]:
        queue = ProcessQueue(MessageQueue("T", "a", 0), cached=cached, last_consume=1_000_000 - age_ms)
        own = ConsumerEvidence(read_at=1_000_000, queues=(queue,))
        group = HEALTHY.groups["g"]
        reports = {**group.reports, "x": replace(group.reports["x"], evidence=own)}
        return worth_stacks(evidence_of(changed(HEALTHY, reports=reports)))

    assert (worth(1, 60_001), worth(1, 60_000), worth(1, 500_000), worth(0, 60_001)) == (("x",), (), ("x",), ())
    assert worth_stacks(evidence_of(HEALTHY)) == ()


def test_a_start_in_the_future_is_remarked() -> None:
    late = running(Process("x", age_s=-3600), Process("y"))
    group = Group(late, "g", Settings(), assumption(late, "g"))
    (its,) = (each for each in group_findings(group, ()) if each.code == "clock-ahead")
    assert (its.severity, its.consumers) == ("info", ("x",))
    assert its.message == "group g: x started in the future, by a clock that is ahead of this computer's"
    undated = changed(replace(late, taken_at=AT + timedelta(hours=2)), seen=replace(late.groups["g"].seen, at=None))
    assert "clock-ahead" not in {each.code for each in group_findings(Group(undated, "g"), ())}


Q, R = MessageQueue("T", "a", 0), MessageQueue("T", "a", 1)
AHEAD = "the clock of x is at least 1 s ahead of this computer's"
BEHIND = "whether the clock of x is behind this computer's is unknown"


def report(read_at: int | None, *queues: ProcessQueue) -> ConsumerEvidence:
    return ConsumerEvidence(read_at, queues)


ONE = (report(1_000_000, ProcessQueue(Q, last_pull=999_000, last_consume=990_000)),)
IN_THE_FUTURE = (report(1_000_000, ProcessQueue(Q, last_lock=1_001_001, last_consume=1_000_500)),)
A_LITTLE = (report(1_000_000, ProcessQueue(Q, last_lock=1_001_000, last_consume=1_000_500)),)
FIVE_MINUTES_BEHIND = (
    report(1_000_000, ProcessQueue(Q, last_pull=695_000, last_consume=600_000)),
    report(1_010_000, ProcessQueue(Q, last_pull=706_000, last_consume=600_000)),
)


@every_case(("looks", "time", "ms", "expected"), [
    # 9 s lie between its own times; 10 s by our clock, unless its clock is behind.
    *((ONE, 990_000, ms, old) for ms, old in ((8_999, True), (10_000, False), (9_000, BEHIND), (9_999, BEHIND))),
    (IN_THE_FUTURE, 1_000_500, 10_000, AHEAD),
    (IN_THE_FUTURE, 1_000_500, 500, True),
    (A_LITTLE, 1_000_500, 10_000, False),
    # The pull was between the looks, less the 5 s that the first report may have been on its way.
    (FIVE_MINUTES_BEHIND, 600_000, 105_999, True),
    (FIVE_MINUTES_BEHIND, 600_000, 106_000, BEHIND),
    (FIVE_MINUTES_BEHIND, 600_000, 121_000, False),
    (FIVE_MINUTES_BEHIND, 706_000, 15_000, False),
])  # fmt: skip
def test_whether_a_time_is_older(looks: tuple[ConsumerEvidence, ...], time: int, ms: int, expected: bool | str) -> None:
    answer: bool | str
    try:
        answer = clock_of("x", looks).is_older(time, ms)
    except DataError as error:
        answer = error.message
        assert isinstance(error, AnotherLookNeeded) == (expected == BEHIND)
    assert answer == expected


def test_the_age_of_a_time_and_the_bounds_of_a_clock() -> None:
    assert [clock_of("x", ONE).age(990_000), clock_of("x", FIVE_MINUTES_BEHIND).age(600_000)] == [10_000, 121_000]
    assert [clock_of("x", IN_THE_FUTURE).age(time) for time in (1_001_001, 1_000_500)] == [0, 501]
    # A queue that was taken between looks has new times.
    before = report(1_000_000, ProcessQueue(Q, last_pull=700_000))
    taken = report(1_010_000, ProcessQueue(Q, last_pull=700_000), ProcessQueue(R, last_pull=703_000))
    assert clock_of("x", [before, taken]).most == 703_000 - 1_000_000 + 5_000
    untimed = report(1_000_000, ProcessQueue(Q, last_pull=700_000), ProcessQueue(R))
    assert clock_of("x", [untimed, taken]).most is None
    unread = ConsumerEvidence(1_005_000, None)
    assert clock_of("x", [report(1_000_000, ProcessQueue(Q, last_pull=999_000)), unread]).read_at == 1_000_000


def test_a_clock_that_was_changed_and_one_without_times_prove_nothing() -> None:
    """Set back by an hour: a pull after the first look has an earlier time than one before."""
    times = ((10_000_000, 9_999_000), (10_010_000, 6_409_000))
    with pytest.raises(DataError, match="was changed between the looks"):
        clock_of("x", [report(read_at, ProcessQueue(Q, last_pull=pull)) for read_at, pull in times])
    for looks in ([], [report(None, ProcessQueue(Q, last_pull=1))], [report(5, ProcessQueue(Q, last_pull=0))]):
        with pytest.raises(DataError, match="x reports no time"):
            clock_of("x", looks)
