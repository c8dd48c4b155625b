"""Where arithmetic tells how long it takes, the simulation must say the same.

With no latency at all nothing is left but the clocks, so that the lengths are exact.
"""

from __future__ import annotations

from itertools import product

import pytest

from rmqlb.model.group_scenario import SECOND_US, Timers
from tests.engine.rebalance.groups import at, line, seconds, simulate
from tests.support.builders import route
from tests.support.group_builders import us
from tests.support.mismatches import every_case

TRIALS = range(25)
NEW, MIDDLE, OLD = "5.5.0", "5.1.4", "4.9.7"
NOBODY_IS_TOLD = Timers(notify_batch_us=10**12)
NO_IDLE = Timers(socket_idle_us=10**12)
AT_ONCE = Timers(start_us=0, connect_us=0, close_us=0)


@pytest.mark.parametrize("version", [MIDDLE, OLD])
def test_before_5_2_a_killed_process_leaves_no_gap_but_the_way_of_the_messages(version: str) -> None:
    for trial in TRIALS:
        report = simulate(
            "c1 c2 c3", at("crash", "c2"), client_version=version, latency_us=0, timers=AT_ONCE, trial=trial
        )
        figures = report.figures
        assert (us(figures.convergence_ms), us(figures.longest_gap_ms)) == (0, 0)


def test_since_5_2_a_killed_process_leaves_a_gap_of_what_is_missing_to_a_second() -> None:
    gaps = set()
    for trial in range(200):
        report = simulate("c1 c2 c3", at("crash", "c2"), latency_us=0, timers=AT_ONCE, trial=trial)
        assert us(report.figures.longest_gap_ms) < SECOND_US
        gaps.add(us(report.figures.longest_gap_ms) > 0)
    assert gaps == {False, True}, "most members last ran more than a second ago, a few did not"


def test_a_survivor_that_asks_a_broker_which_has_not_yet_found_the_connection_closed_waits_a_second() -> None:
    """What recordings of Java clients show: the brokers are some milliseconds apart, and one is asked at once."""
    settled = [
        seconds(
            us(
                simulate(
                    "c1 c2 c3", at("crash", "c2"), timers=Timers(close_us=close_us), trial=trial
                ).figures.convergence_ms
            )
        )
        for close_us in (0, 20_000)
        for trial in range(100)
    ]
    at_once, apart = settled[:100], settled[100:]
    assert sum(each > 0.9 for each in at_once) < sum(each > 0.9 for each in apart)
    assert {each > 0.9 for each in apart} == {False, True}
    assert max(apart) < 1.1


@every_case(("version", "settled"), [(NEW, 1.0), (MIDDLE, 0.0), (OLD, 0.0)])
def test_a_joiner_takes_its_queues_at_once_or_a_second_after_it_was_made(version: str, settled: float) -> None:
    for trial in TRIALS:
        report = simulate(
            "c1 c2 c3",
            at("join", "c4"),
            routes=[route(a=8)],
            client_version=version,
            latency_us=0,
            timers=AT_ONCE,
            trial=trial,
        )
        took = [each for queue in report.queues for each in queue.takeovers if each.client_id == "c4"]
        assert {seconds(us(each.at_ms)) for each in took} == {10 + settled}
        first_pull = 0.0 if version == OLD else 0.5
        assert {seconds(us(each.reads_from_ms)) for each in took} == {10 + settled + first_pull}


@every_case("version", [NEW, MIDDLE, OLD])
def test_a_join_that_nobody_is_told_of_takes_at_most_one_loop(version: str) -> None:
    longest = 0.0
    for trial in range(100):
        report = simulate(
            "c1 c2 c3", at("join", "c4"), client_version=version, latency_us=0, timers=NOBODY_IS_TOLD, trial=trial
        )
        settled = seconds(us(report.figures.convergence_ms))
        assert settled <= 20
        assert seconds(us(report.figures.longest_overlap_ms)) <= 20
        longest = max(longest, settled)
    assert longest > 15


def test_a_lost_host_is_found_by_the_scan_and_then_by_each_loop() -> None:
    """Heartbeat up to 30 s old, expiry 120 s, scan every 10 s, loop every 20 s: 90 s to 150 s."""
    found = []
    for trial in range(150):
        report = simulate("c1 c2 c3", at("host-loss", "c2"), latency_us=0, timers=NO_IDLE, trial=trial)
        assert us(report.figures.longest_overlap_ms) == 0
        found.append(seconds(us(report.figures.longest_gap_ms)))
    assert 90 <= min(found) < 105
    assert 135 < max(found) <= 150


def test_a_lost_host_whose_socket_is_found_idle_first_is_told_to_the_group() -> None:
    early = Timers(socket_idle_us=60 * SECOND_US, pull_hold_us=1)
    for trial in TRIALS:
        report = simulate("c1 c2 c3", at("host-loss", "c2"), latency_us=0, timers=early, trial=trial)
        assert 30 <= seconds(us(report.figures.longest_gap_ms)) <= 62


@every_case(("version", "retry"), [(NEW, 1.0), (MIDDLE, 0.5), (OLD, 20.0)])
def test_the_lock_of_a_killed_client_holds_its_queues_back_for_up_to_a_minute(version: str, retry: float) -> None:
    """The lock was renewed at most 20 s before, and lives 60 s; then the retry of each version decides."""
    for trial in range(40):
        report = simulate(
            "c1 c2 c3", at("crash", "c2"), client_version=version, orderly=True, latency_us=0, trial=trial
        )
        assert 40 <= seconds(us(report.figures.longest_gap_ms)) <= 60 + retry
        assert us(report.figures.longest_overlap_ms) == 0


def test_a_clean_end_of_an_orderly_consumer_unlocks_first() -> None:
    for version, trial in product([NEW, MIDDLE, OLD], TRIALS):
        report = simulate(
            "c1 c2 c3", at("leave", "c2"), client_version=version, orderly=True, latency_us=0, trial=trial
        )
        assert seconds(us(report.figures.longest_gap_ms)) < 1


def test_a_busy_listener_of_4_9_keeps_the_lock_for_the_unlock_delay() -> None:
    """The delayed unlock of 20 s, and then up to one loop of 20 s."""
    found = []
    for trial in range(40):
        report = simulate(
            "c1 c2 c3",
            at("join", "c4"),
            client_version=OLD,
            orderly=True,
            consume_us=800_000,
            latency_us=0,
            trial=trial,
        )
        found.append(seconds(us(report.figures.longest_gap_ms)))
    assert all(20 <= gap <= 42 for gap in found)


def test_a_busy_listener_of_5_2_is_overruled_when_the_lock_is_twenty_seconds_old() -> None:
    for trial in range(40):
        report = simulate(
            "c1 c2 c3", at("join", "c4"), orderly=True, consume_us=3600 * SECOND_US, latency_us=0, trial=trial
        )
        assert 18 <= seconds(us(report.figures.longest_gap_ms)) <= 45
        assert us(report.figures.longest_overlap_ms) == 0


def test_new_queues_are_seen_after_a_route_poll_and_a_loop() -> None:
    change = at("route-change", "T", read_queues=6, write_queues=6)
    for trial in range(60):
        report = simulate("c1 c2 c3", change, latency_us=0, trial=trial)
        new = line(report, "a", 5)
        assert [interval.state for interval in new.intervals][:2] == ["gone", "unassigned"]
        assert seconds(new.intervals[1].from_us) == 10
        assert seconds(us(report.figures.convergence_ms)) <= 50


def test_a_broker_that_ends_leaves_the_route_at_once_and_one_that_falls_silent_by_the_nameservers_scan() -> None:
    """Registration up to 30 s old, expiry 120 s, scan every 5 s; then poll and loop; a lost broker costs 3 s a try."""
    for trial in range(40):
        down = simulate("c1 c2 c3", at("broker-down", "a"), latency_us=0, trial=trial)
        lost = simulate("c1 c2 c3", at("broker-loss", "a"), latency_us=0, trial=trial)
        assert seconds(us(down.figures.convergence_ms)) <= 50
        assert 90 <= seconds(us(lost.figures.convergence_ms)) <= 125 + 30 + 20 + 2 * 3


def test_the_offset_that_is_stored_is_at_most_one_interval_old() -> None:
    ages = []
    for trial in range(100):
        report = simulate("c1 c2", at("crash", "c2"), latency_us=0, trial=trial)
        ages += [us(each.redelivered_ms) for queue in report.queues for each in queue.takeovers]
    assert 0 <= min(ages) < SECOND_US
    assert 4 * SECOND_US < max(ages) <= 5 * SECOND_US


def test_an_owner_that_gives_a_queue_up_stores_its_offset_first() -> None:
    for trial in TRIALS:
        report = simulate("c1 c2", at("leave", "c2"), latency_us=0, trial=trial)
        assert {us(each.redelivered_ms) for queue in report.queues for each in queue.takeovers} == {0}


def test_what_the_listener_has_in_hand_comes_again() -> None:
    report = simulate("c1 c2", at("leave", "c2"), latency_us=0, consume_us=250_000)
    assert {us(each.redelivered_ms) for queue in report.queues for each in queue.takeovers} == {250_000}


def test_pull_requests_that_are_lost_are_found_after_two_minutes_and_a_loop() -> None:
    for trial in TRIALS:
        report = simulate("c1 c2", at("pull-stall", "c2"), latency_us=0, trial=trial)
        assert 120.5 <= seconds(us(report.figures.unread_ms)) <= 140.5
        assert us(report.figures.longest_gap_ms) == 0
