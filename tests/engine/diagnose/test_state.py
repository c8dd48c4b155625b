"""What a diagnosis says besides its findings: looks, numbers, stack traces."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.diagnose import diagnose as engine
from rmqlb.engine.diagnose.diagnose import (
    diagnose,
    earlier_look,
    wants_another,
    with_stacks,
    worth_stacks,
)
from rmqlb.model.diagnosis import ConsumerStacks, Diagnosis, GroupCounts, Look
from rmqlb.model.group import BROADCASTING
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.process_queue import ConsumerEvidence, ProcessQueue
from rmqlb.model.snapshot import ClusterSnapshot, Unread
from tests.engine.diagnose.running import AT, Process, changed, diagnosed, evidence_of, running


def over(*looks: ClusterSnapshot) -> Diagnosis:
    return diagnose(engine.evidence_of(looks, "g", Settings()))


def test_the_numbers_of_a_group_are_those_of_the_last_look() -> None:
    twice = running(Process("x"), Process("x"), Process("y"))
    # x, x, y by AVG over 8 queues: 3, 3, 2; both processes read the first three, and 10 messages wait in each other one.
    assert diagnosed(twice).counts == GroupCounts(
        consumers=2, processes=3, queues=8, unassigned=3, duplicate_owners=0, owners_unknown=0, lag=30, lag_at_least=30
    )
    assert over(running(Process("x")), twice).counts == diagnosed(twice).counts


def test_what_is_not_known_is_not_counted() -> None:
    snapshot = running(Process("x"), Process("y"))
    unseen = {
        queue: replace(state, owners=None, broker_offset=None) for queue, state in snapshot.groups["g"].queues.items()
    }
    assert diagnosed(changed(snapshot, queues=unseen)).counts == GroupCounts(consumers=2, processes=2, queues=8)
    first = min(snapshot.groups["g"].queues)
    some = {
        q: replace(state, broker_offset=None) if q == first else replace(state, consumer_offset=990)
        for q, state in snapshot.groups["g"].queues.items()
    }
    counts = diagnosed(changed(snapshot, queues=some)).counts
    assert (counts.lag, counts.lag_at_least) == (None, 70)
    assert diagnosed(changed(snapshot, message_model=BROADCASTING)).counts.duplicate_owners is None
    silent = replace(changed(snapshot, views=()), unread=(Unread("members", "g", "timed out", "b"),))
    assert diagnosed(silent).counts.consumers is None
    unread = replace(snapshot, groups={}, unread=(Unread("group", "g", "timed out"),))
    found = diagnosed(unread)
    assert (found.outcome, found.counts, found.looks) == ("unknown", GroupCounts(), ())
    assert "the group could not be read: timed out" in {each.reason for each in found.unknown}


def test_each_look_says_where_and_when() -> None:
    now = running(Process("x"))
    before = replace(now, taken_at=AT - timedelta(seconds=10), kind="dump")
    seen = replace(before.groups["g"].seen, where="yesterday.json", at=before.taken_at)
    assert over(changed(before, seen=seen), replace(now, groups=now.groups)).looks == (
        Look("yesterday.json", "2026-11-21T01:59:50Z"),
        Look(now.groups["g"].seen.where, "2026-11-21T02:00:00Z"),
    )
    assert len(over(replace(now, groups={}), now).looks) == 1


def test_stack_traces_stand_in_the_diagnosis() -> None:
    look = running(Process("x"), Process("y"))
    assert over(look).stacks is None
    told = with_stacks(look, "g", {"y": ("at T.take",), "gone": ()})
    assert over(told).stacks == (ConsumerStacks("y", ("at T.take",)),)


# -- looks

HEALTHY = running(Process("x"), Process("y"))


def test_a_look_has_the_time_of_its_snapshot_unless_it_has_its_own() -> None:
    group = HEALTHY.groups["g"]
    bare = replace(HEALTHY, groups={"g": replace(group, seen=replace(group.seen, at=None))})
    assert earlier_look(bare, "g").seen.at == AT
    own = datetime(2026, 11, 21, 3, tzinfo=UTC)
    seen = replace(HEALTHY, groups={"g": replace(group, seen=replace(group.seen, at=own))})
    assert earlier_look(seen, "g").seen.at == own


def test_one_look_shows_no_trend() -> None:
    assert wants_another(evidence_of(HEALTHY))
    look = HEALTHY.groups["g"]
    assert not wants_another(evidence_of(HEALTHY, earlier=(look,)))


def test_what_another_look_would_not_decide_wants_none() -> None:
    group = replace(HEALTHY.groups["g"], message_model=BROADCASTING)
    assert not wants_another(evidence_of(replace(HEALTHY, groups={"g": group})))


def test_stacks_are_worth_asking_of_consumers_with_messages_and_none_consumed_for_a_minute() -> None:
    group = HEALTHY.groups["g"]

    def worth(cached: int, age_ms: int) -> tuple[str, ...]:
        queue = ProcessQueue(MessageQueue("T", "a", 0), cached=cached, last_consume=1_000_000 - age_ms)
        own = ConsumerEvidence(read_at=1_000_000, queues=(queue,))
        reports = {**group.reports, "x": replace(group.reports["x"], evidence=own)}
        return worth_stacks(evidence_of(replace(HEALTHY, groups={"g": replace(group, reports=reports)})))

    assert worth(1, 60_001) == ("x",)
    assert worth(1, 60_000) == ()
    assert worth(1, 500_000) == ("x",)
    assert worth(0, 60_001) == ()
    assert worth_stacks(evidence_of(HEALTHY)) == ()
