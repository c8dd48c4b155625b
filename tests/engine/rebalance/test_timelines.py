"""How much is delivered again, from who held a queue when: by hand for each kind of handover."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rmqlb.engine.rebalance.event_log import EventLog, Hold
from rmqlb.engine.rebalance.timelines import figures, timelines
from rmqlb.model.group_scenario import GroupScenario
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.simulate_rebalance import Interval, OwnerState, QueueTimeline
from tests.support.group_builders import us

QUEUE = MessageQueue("T", "a", 0)


def hold(
    client_id: str, from_us: int, to_us: int | None, *, persisted: bool = True, every_us: int = 50, reads: bool = True
) -> Hold:
    """A member that stores its offsets at 0, 50, 100, …, and reads from the moment it takes the queue."""
    made = Hold(QUEUE, client_id, from_us, lambda at: at // every_us * every_us)
    made.reads_from_us = from_us if reads else None
    made.to_us, made.persisted = to_us, persisted and to_us is not None
    return made


def read(
    *holds: Hold,
    there: tuple[tuple[int, bool], ...] = ((0, True),),
    end_us: int = 1000,
    latency_us: int = 0,
    broadcasting: bool = False,
) -> QueueTimeline:
    log = EventLog(explain=False)
    log.holds = list(holds)
    log.there[QUEUE] = list(there)
    lines = timelines(
        log, GroupScenario(latency_us=latency_us, rates={QUEUE: 1e6}, broadcasting=broadcasting), {}, end_us
    )
    assert len(lines) == 1
    return lines[0]


def test_a_handover_in_good_order_delivers_nothing_again() -> None:
    line = read(hold("c1", -500, 220), hold("c2", 230, None))
    assert [takeover.redelivered for takeover in line.takeovers] == [0]
    assert (us(line.total_gap_ms), us(line.unread_ms)) == (10, 10)


def test_a_killed_owner_leaves_what_it_had_not_stored() -> None:
    """Stored at 200, read until 220: the 20 after it come again, at a message a microsecond."""
    line = read(hold("c1", -500, 220, persisted=False), hold("c2", 230, None))
    assert [takeover.redelivered for takeover in line.takeovers] == [20]


def test_two_owners_at_once_both_deliver() -> None:
    """c2 starts at 230 from what was stored at 200; c1 goes on until 270."""
    line = read(hold("c1", -500, 270), hold("c2", 230, None))
    assert [takeover.redelivered for takeover in line.takeovers] == [70]
    assert (us(line.total_overlap_ms), us(line.longest_overlap_ms), us(line.total_gap_ms)) == (40, 40, 0)


def test_two_owners_that_stay_deliver_everything_again_until_the_end() -> None:
    line = read(hold("c1", -500, None), hold("c2", 230, None))
    assert [takeover.redelivered for takeover in line.takeovers] == [800]


def test_an_owner_that_dies_before_it_stored_anything_starts_the_next_where_it_started() -> None:
    """c2 starts at 205 from 205; it is killed at 240, before its first timer at 250."""
    line = read(hold("c1", -500, 205), hold("c2", 205, 240, persisted=False), hold("c3", 245, None))
    assert [takeover.redelivered for takeover in line.takeovers] == [0, 35]


@pytest.mark.parametrize(("taken_at", "again"), [(229, 20), (230, 0)])
def test_a_stored_offset_is_there_after_half_of_a_round_trip(taken_at: int, again: int) -> None:
    """c1 stores 220 as it gives the queue up, which arrives at 230; before, the broker knows of 200."""
    line = read(hold("c1", -500, 220), hold("c2", taken_at, None), latency_us=20)
    assert [takeover.redelivered for takeover in line.takeovers] == [again]


def test_the_first_owner_of_a_queue_delivers_nothing_again() -> None:
    line = read(hold("c1", 130, None), there=((100, True),))
    assert [(takeover.redelivered, us(takeover.unread_ms)) for takeover in line.takeovers] == [(0, 30)]
    assert [(interval.state, interval.to_us) for interval in line.intervals] == [
        ("gone", 100),
        ("unassigned", 130),
        ("one", 1000),
    ]


def test_a_pause_is_one_of_the_time_in_which_the_owner_runs() -> None:
    """It is frozen from 30 to 60 and from 90 to 120; its broker is away before, between, behind, and over an edge."""
    held = hold("c1", 0, 150)
    held.freezes = [(30, 60), (90, 120)]
    held.pauses = [(10, 20), (40, 50), (55, 65), (70, 80), (130, None)]
    turns = [(10, 20), (60, 65), (70, 80), (130, 150)]
    assert list(held.turns()) == [each for on, off in turns for each in ((on, True), (off, False))]


def test_stretches_are_counted_over_changing_owners() -> None:
    """Three owners, then two, then one: one stretch with several."""
    line = read(hold("c1", -500, 300), hold("c2", 200, 400), hold("c3", 250, None))
    assert (us(line.total_overlap_ms), us(line.longest_overlap_ms)) == (200, 200)
    log = EventLog(explain=False)
    assert figures([line], log, 0, settled=True).queues_with_overlap == 1


def test_the_figures_of_a_group_count_queues_and_add_up_or_take_the_longest() -> None:
    def line(state: OwnerState, *lengths: int, redelivered: int, unread_at_end: bool = False) -> QueueTimeline:
        """Total and longest gap, overlap and outage, and the longest time unread, in milliseconds."""
        gap, longest_gap, overlap, longest_overlap, outage, longest_outage, unread = lengths
        intervals = (Interval(0, 9, "one", ("c1",)), Interval(9, 10, state, ()))
        return QueueTimeline(
            *(QUEUE.topic, QUEUE.broker_name, QUEUE.queue_id),
            *(gap, longest_gap, overlap, longest_overlap, outage, longest_outage, unread),
            unread_at_end,
            redelivered,
            intervals,
            (),
        )

    lines = [
        line("unassigned", 50, 40, 0, 0, 0, 0, 45, redelivered=3, unread_at_end=True),
        line("duplicate-owners", 0, 0, 70, 60, 0, 0, 5, redelivered=4),
        line("duplicate-owners", 20, 15, 9, 9, 0, 0, 7, redelivered=0),
        line("outage", 0, 0, 8, 8, 120, 100, 90, redelivered=0, unread_at_end=True),
        line("one", 1, 1, 0, 0, 30, 25, 2, redelivered=0),
    ]
    found = figures(lines, EventLog(explain=False), 0, settled=True)
    assert (found.queues_with_gap, found.longest_gap_ms, found.total_gap_ms) == (3, 40, 71)
    assert (found.queues_with_overlap, found.longest_overlap_ms, found.total_overlap_ms) == (3, 60, 87)
    assert (found.queues_with_outage, found.longest_outage_ms, found.total_outage_ms) == (2, 100, 150)
    assert (found.queues_with_gap_at_end, found.queues_with_overlap_at_end, found.queues_with_outage_at_end) == (
        1,
        2,
        1,
    )
    assert (found.unread_ms, found.queues_unread_at_end, found.redelivered) == (90, 2, 7)
    assert figures(lines, EventLog(explain=False), 0, settled=True, broadcasting=True).queues_with_overlap_at_end == 0
    unknown = [*lines, replace(lines[0], redelivered=None)]
    assert figures(unknown, EventLog(explain=False), 0, settled=True).redelivered is None
    none = figures([], EventLog(explain=False), 0, settled=True)
    assert (us(none.longest_gap_ms), us(none.longest_overlap_ms), us(none.longest_outage_ms), us(none.unread_ms)) == (
        0,
        0,
        0,
        0,
    )
