"""A process that does nothing for a while: what brokers and the others make of it, and what it does when it goes on."""

from __future__ import annotations

from rmqlb.model.group_scenario import SECOND_US, Timers
from tests.engine.rebalance.groups import at, length, line, moments, owners_at_the_end, simulate, trials
from tests.support.mismatches import every_case

LONG = at("freeze", "c2", 10), at("unfreeze", "c2", 180)


def test_brokers_forget_it_by_its_heartbeats_and_the_others_find_out_by_themselves() -> None:
    """The last heartbeat is up to 30 s old; the first look, of one in 10 s, more than 120 s after it forgets it.

    Then each of the others finds out by its next rebalance, within 20 s. 94 s were measured. Now and then the broker's
    own close is heard first, and tells them.
    """
    forgotten, gaps = [], []
    for report in trials(60, "c1 c2 c3", *LONG, explain=True):
        heard = [when - 10 for when in moments(report, "expire") if 10 <= when < 180]
        closed = [when for when in moments(report, "notice") if 10 <= when < 180]
        assert len(heard) + len(closed) == 2
        forgotten += heard
        gaps.append(length(report, "longest_gap"))
    assert 90 <= min(forgotten) < 97
    assert 120 < max(forgotten) <= 130
    assert 60 < len(forgotten) < 115
    assert min(gaps) > 90
    assert max(gaps) <= 150.1


def test_it_drops_what_it_had_at_once_and_has_its_share_again_a_second_later() -> None:
    for report in trials(20, "c1 c2 c3", *LONG, explain=True):
        dropped = [when for when in moments(report, "drop", who="c2") if 180 <= when < 181]
        assert not dropped or 180 < dropped[0] < 180.2  # otherwise its heartbeat was there first
        assert all(180.9 < when < 182.1 for when in moments(report, "take", who="c2") if 180 <= when < 190)
        assert len(set(owners_at_the_end(report).values())) == 3
        assert owners_at_the_end(report)["b0"] == ("c2",)
        if not any("of no use" in step.text for step in report.steps or ()):
            assert length(report, "longest_overlap") < 1.2
            assert length(report, "convergence") < 173


@every_case(("version", "least"), [("5.5.0", 10), ("5.1.4", 0), ("4.9.7", 0)])
def test_a_connection_that_it_forgets_lets_a_broker_name_it_twice_for_two_minutes(version: str, least: int) -> None:
    """Clients since 5.2.0; the share of the second one is nobody's, by turns with the broker that names it once."""
    twice = 0
    for report in trials(40, "c1 c2 c3", *LONG, client_version=version, explain=True):
        ends = moments(report, "notice", "of no use")
        assert all(300 <= end < 302 for end in ends)
        assert len(ends) <= 1
        twice += len(ends)
        assert bool(ends) is (length(report, "convergence") > 200)
        assert owners_at_the_end(report)["b0"] == ("c2",)
    assert least <= twice <= 3 * least


def test_a_frozen_member_owns_nothing_and_nobody_reads_what_it_has() -> None:
    queue = line(simulate("c1 c2 c3", *LONG, trial=2), "b", 0)
    states = [(each.state, each.owners) for each in queue.intervals]
    assert states[:3] == [("one", ("c2",)), ("unassigned", ()), ("one", ("c3",))]
    assert queue.unread_ms > queue.longest_gap_ms > 90_000
    assert queue.intervals[1].from_ms == 10_000


def test_one_that_never_goes_on_leaves_the_group() -> None:
    report = simulate("c1 c2 c3", at("freeze", "c2"), trial=1)
    assert 90 < length(report, "convergence") <= 150
    assert {owner for owners in owners_at_the_end(report).values() for owner in owners} == {"c1", "c3"}


def test_orderly_members_take_its_queues_when_its_locks_have_run_out_and_it_gets_none_back_at_once() -> None:
    for report in trials(10, "c1 c2 c3", *LONG, orderly=True):
        assert length(report, "longest_gap") > 90
        assert owners_at_the_end(report)["b0"] == ("c2",)


def test_a_connection_that_nothing_goes_over_is_closed_and_that_is_told() -> None:
    """Brokers that forget later than they close connections tell the others."""
    timers = Timers(channel_expiry_us=1000 * SECOND_US)
    report = simulate("c1 c2 c3", at("freeze", "c2", 10), at("unfreeze", "c2", 300), timers=timers, explain=True)
    closed = moments(report, "notice", "the connection of c2 closed")
    assert len(closed) == 2
    assert all(100 < when < 146 for when in closed)
