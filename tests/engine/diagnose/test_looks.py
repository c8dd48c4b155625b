"""Another look is wanted only where it would decide something, and not for ever."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from rmqlb.engine.diagnose.diagnose import MOST_LOOKS, earlier_look, wants_another, worth_stacks
from rmqlb.model.group import BROADCASTING
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.process_queue import ConsumerEvidence, ProcessQueue
from tests.engine.diagnose.running import AT, Process, evidence_of, running

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


def test_looks_are_bounded() -> None:
    assert MOST_LOOKS == 8


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
