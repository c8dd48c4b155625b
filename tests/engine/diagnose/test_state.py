"""What a diagnosis says besides its findings: looks, numbers, stack traces."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.diagnose.diagnose import diagnose, evidence_of, with_stacks
from rmqlb.model.diagnosis import ConsumerStacks, Diagnosis, GroupCounts, Look
from rmqlb.model.group import BROADCASTING
from rmqlb.model.snapshot import ClusterSnapshot, Unread
from tests.engine.diagnose.running import AT, Process, diagnosed, running


def over(*looks: ClusterSnapshot) -> Diagnosis:
    return diagnose(evidence_of(looks, "g", Settings()))


def changed(snapshot: ClusterSnapshot, **of_group: object) -> ClusterSnapshot:
    return replace(snapshot, groups={"g": replace(snapshot.groups["g"], **of_group)})


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
