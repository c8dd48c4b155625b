"""A time is old when the consumer's own times or the looks prove it, and recent when ours says so and nothing against it."""

from __future__ import annotations

import pytest

from rmqlb.engine.diagnose.evidence import AnotherLookNeeded
from rmqlb.engine.diagnose.reports import clock_of
from rmqlb.errors import DataError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.process_queue import ConsumerEvidence, ProcessQueue

Q, R = MessageQueue("T", "a", 0), MessageQueue("T", "a", 1)


def report(read_at: int | None, *queues: ProcessQueue) -> ConsumerEvidence:
    return ConsumerEvidence(read_at, queues)


def test_one_report_proves_an_age_by_its_own_latest_time() -> None:
    clock = clock_of("x", [report(1_000_000, ProcessQueue(Q, last_pull=999_000, last_consume=990_000))])
    assert (clock.read_at, clock.least, clock.most) == (1_000_000, -1_000, None)
    assert clock.age(990_000) == 10_000
    # 9 s lie between its own times; 10 s by our clock, unless its clock is behind.
    assert clock.is_older(990_000, 8_999)
    assert not clock.is_older(990_000, 10_000)
    for ms in (9_000, 9_999):
        with pytest.raises(AnotherLookNeeded, match="whether the clock of x is behind"):
            clock.is_older(990_000, ms)


def test_a_time_in_the_future_shows_that_the_clocks_differ() -> None:
    ahead = clock_of("x", [report(1_000_000, ProcessQueue(Q, last_lock=1_001_001, last_consume=1_000_500))])
    with pytest.raises(DataError, match="the clock of x is at least 1 s ahead of this computer's") as error:
        ahead.is_older(1_000_500, 10_000)
    assert not isinstance(error.value, AnotherLookNeeded)
    assert ahead.is_older(1_000_500, 500)
    assert ahead.age(1_001_001) == 0
    assert ahead.age(1_000_500) == 501
    little = clock_of("x", [report(1_000_000, ProcessQueue(Q, last_lock=1_001_000, last_consume=1_000_500))])
    assert not little.is_older(1_000_500, 10_000)


def test_a_time_that_moved_between_looks_bounds_the_clock() -> None:
    """Its clock is 5 minutes behind."""
    looks = [
        report(1_000_000, ProcessQueue(Q, last_pull=695_000, last_consume=600_000)),
        report(1_010_000, ProcessQueue(Q, last_pull=706_000, last_consume=600_000)),
    ]
    clock = clock_of("x", looks)
    # The pull was between the looks, less the 5 s that the first report may have been on its way.
    assert (clock.least, clock.most) == (706_000 - 1_010_000, 706_000 - 1_000_000 + 5_000)
    assert clock.is_older(600_000, 105_999)
    assert not clock.is_older(600_000, 121_000)
    assert not clock.is_older(706_000, 15_000)
    with pytest.raises(AnotherLookNeeded):
        clock.is_older(600_000, 106_000)
    assert clock.age(600_000) == 121_000


def test_a_queue_that_was_taken_between_looks_has_new_times() -> None:
    before = report(1_000_000, ProcessQueue(Q, last_pull=700_000))
    taken = report(1_010_000, ProcessQueue(Q, last_pull=700_000), ProcessQueue(R, last_pull=703_000))
    assert clock_of("x", [before, taken]).most == 703_000 - 1_000_000 + 5_000
    untimed = report(1_000_000, ProcessQueue(Q, last_pull=700_000), ProcessQueue(R))
    assert clock_of("x", [untimed, taken]).most is None


def test_a_clock_that_was_changed_between_looks_proves_nothing() -> None:
    """Set back by an hour: a pull after the first look has an earlier time than one before."""
    looks = [
        report(10_000_000, ProcessQueue(Q, last_pull=9_999_000)),
        report(10_010_000, ProcessQueue(Q, last_pull=6_409_000)),
    ]
    with pytest.raises(DataError, match="was changed between the looks"):
        clock_of("x", looks)


def test_a_report_without_a_time_says_nothing_of_the_clock() -> None:
    for looks in ([], [report(None, ProcessQueue(Q, last_pull=1))], [report(5, ProcessQueue(Q, last_pull=0))]):
        with pytest.raises(DataError, match="x reports no time"):
            clock_of("x", looks)
    unread = ConsumerEvidence(1_005_000, None)
    known = report(1_000_000, ProcessQueue(Q, last_pull=999_000))
    assert clock_of("x", [known, unread]).read_at == 1_000_000
