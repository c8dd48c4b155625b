"""A process that does nothing for a while: what brokers and the others make of it, and what it does when it goes on."""

from __future__ import annotations

import pytest

from rmqlb.engine.kernel import Clock, Process, Steps
from rmqlb.engine.rebalance.event_log import EventLog, Hold
from rmqlb.engine.rebalance.timelines import timelines
from rmqlb.errors import UsageError
from rmqlb.model.group_scenario import SECOND_US, GroupScenario, Timers
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.simulate_rebalance import RebalanceResult
from tests.support.group_builders import us
from tests.support.mismatches import every_case

from .groups import at, line, owners_at_the_end, seconds, simulate

LONG = at("freeze", "c2", 10), at("unfreeze", "c2", 180)
QUEUE = MessageQueue("T", "a", 0)


def states(report: RebalanceResult, broker_name: str, queue_id: int) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.state, each.owners) for each in line(report, broker_name, queue_id).intervals]


def said(report: RebalanceResult, what: str, from_s: float, to_s: float) -> list[tuple[str, float]]:
    return [
        (s.who, seconds(us(s.at_ms)))
        for s in report.steps or ()
        if s.what == what and from_s <= seconds(us(s.at_ms)) < to_s
    ]


def test_brokers_forget_it_by_its_heartbeats_and_the_others_find_out_by_themselves() -> None:
    """The last heartbeat is up to 30 s old; the first look, of one in 10 s, more than 120 s after it forgets it.

    Then each of the others finds out by its next rebalance, within 20 s. 94 s were measured. Now and then the broker's
    own close is heard first, and tells them.
    """
    forgotten, gaps = [], []
    for trial in range(60):
        report = simulate("c1 c2 c3", *LONG, trial=trial, explain=True)
        closed = [who for who, _ in said(report, "notice", 10, 180)]
        heard = said(report, "expire", 10, 180)
        assert sorted([*closed, *(who for who, _ in heard)]) == ["broker a", "broker b"]
        forgotten += [when - 10 for _, when in heard]
        gaps.append(seconds(us(report.figures.longest_gap_ms)))
    assert 90 <= min(forgotten) < 97
    assert 120 < max(forgotten) <= 130
    assert 60 < len(forgotten) < 115
    assert min(gaps) > 90
    assert max(gaps) <= 150.1


def test_it_drops_what_it_had_at_once_and_has_its_share_again_a_second_later() -> None:
    for trial in range(20):
        report = simulate("c1 c2 c3", *LONG, trial=trial, explain=True)
        dropped = [when for who, when in said(report, "drop", 180, 181) if who == "c2"]
        if dropped:  # else its heartbeat was there first
            assert 180 < dropped[0] < 180.2
        took = [when for who, when in said(report, "take", 180, 190) if who == "c2"]
        assert all(180.9 < when < 182.1 for when in took)
        assert len(set(owners_at_the_end(report).values())) == 3
        assert owners_at_the_end(report)["b0"] == ("c2",)
        if not any("of no use" in step.text for step in report.steps or ()):
            assert us(report.figures.longest_overlap_ms) < 1.2 * SECOND_US
            assert seconds(us(report.figures.convergence_ms)) < 173


@every_case(("version", "least"), [("5.5.0", 10), ("5.1.4", 0), ("4.9.7", 0)])
def test_a_connection_that_it_forgets_lets_a_broker_name_it_twice_for_two_minutes(version: str, least: int) -> None:
    """Clients since 5.2.0; the share of the second one is nobody's, by turns with the broker that names it once."""
    twice = 0
    for trial in range(40):
        report = simulate("c1 c2 c3", *LONG, trial=trial, client_version=version, explain=True)
        ends = [seconds(us(step.at_ms)) for step in report.steps or () if "of no use" in step.text]
        assert all(300 <= end < 302 for end in ends)
        assert len(ends) <= 1
        twice += len(ends)
        assert bool(ends) is (seconds(us(report.figures.convergence_ms)) > 200)
        assert owners_at_the_end(report)["b0"] == ("c2",)
    assert least <= twice <= 3 * least


def test_a_frozen_member_owns_nothing_and_nobody_reads_what_it_has() -> None:
    report = simulate("c1 c2 c3", *LONG, trial=2)
    assert states(report, "b", 0)[:3] == [("one", ("c2",)), ("unassigned", ()), ("one", ("c3",))]
    queue = line(report, "b", 0)
    assert us(queue.unread_ms) > us(queue.longest_gap_ms) > 90 * SECOND_US
    assert queue.intervals[1].from_us == 10 * SECOND_US


def test_one_that_never_goes_on_leaves_the_group() -> None:
    report = simulate("c1 c2 c3", at("freeze", "c2"), trial=1)
    assert us(report.figures.convergence_ms) is not None
    assert 90 < seconds(us(report.figures.convergence_ms)) <= 150
    assert {owner for owners in owners_at_the_end(report).values() for owner in owners} == {"c1", "c3"}


def test_orderly_members_take_its_queues_when_its_locks_have_run_out_and_it_gets_none_back_at_once() -> None:
    for trial in range(10):
        report = simulate("c1 c2 c3", *LONG, trial=trial, orderly=True)
        assert seconds(us(report.figures.longest_gap_ms)) > 90
        assert owners_at_the_end(report)["b0"] == ("c2",)


def test_a_connection_that_nothing_goes_over_is_closed_and_that_is_told() -> None:
    """Brokers that forget later than they close connections tell the others."""
    timers = Timers(channel_expiry_us=1000 * SECOND_US)
    report = simulate("c1 c2 c3", at("freeze", "c2", 10), at("unfreeze", "c2", 300), timers=timers, explain=True)
    closed = [s for s in report.steps or () if s.what == "notice" and "the connection of c2 closed" in s.text]
    assert len(closed) == 2
    assert all(100 < seconds(us(step.at_ms)) < 146 for step in closed)


@every_case(
    ("events", "complaint"),
    [
        ([at("freeze", "c9")], "freeze c9: it is not in the group then"),
        ([at("freeze", "c1"), at("freeze", "c1", 20)], "freeze c1: it is frozen then, and does nothing"),
        ([at("freeze", "c1"), at("leave", "c1", 20)], "leave c1: it is frozen then, and does nothing"),
        ([at("freeze", "c1"), at("pull-stall", "c1", 20)], "pull-stall c1: it is frozen then"),
        ([at("unfreeze", "c1", 20)], "unfreeze c1: it is not frozen then"),
        ([at("freeze", "c1"), at("crash", "c1", 20), at("unfreeze", "c1", 30)], "unfreeze c1: it is no longer in"),
        (
            [at("freeze", "c1"), at("crash", "c1", 20), at("join", "c1", 25), at("unfreeze", "c1", 30)],
            "it is not frozen",
        ),
    ],
)
def test_what_a_frozen_process_cannot_do_is_refused(events: list[object], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        simulate("c1 c2", *events)  # type: ignore[arg-type]


# -- what is delivered again, by hand -----------------------------------------------------------------------------------


def hold(client_id: str, from_us: int, to_us: int | None, *freezes: tuple[int, int | None]) -> Hold:
    """It stores its offsets every 50."""
    made = Hold(QUEUE, client_id, from_us, lambda moment: moment // 50 * 50)
    made.reads_from_us, made.to_us, made.persisted = from_us, to_us, to_us is not None
    made.freezes = list(freezes)
    return made


def again(*holds: Hold) -> list[int | None]:
    log = EventLog(explain=False)
    log.holds = list(holds)
    log.there[QUEUE] = [(0, True)]
    (found,) = timelines(log, GroupScenario(latency_us=0, rates={QUEUE: 1e6}), {}, 1000)
    return [takeover.redelivered for takeover in found.takeovers]


def test_what_it_stores_when_it_gives_the_queue_up_is_old() -> None:
    """c1 sets the offset back from 400 to 120; c2 is killed before it stores again: c3 starts at 120."""
    killed = hold("c2", 300, 420)
    killed.persisted = False
    assert again(hold("c1", -5, 410, (120, 400)), killed, hold("c3", 430, None))[1] == 420 - 120


# -- processes ----------------------------------------------------------------------------------------------------------


def ticking(clock: Clock, seen: list[int]) -> Steps:
    while True:
        seen.append(clock.now)
        yield 10


@pytest.mark.parametrize(("frozen", "thawed", "expected"), [(25, 63, [0, 10, 20, 63, 73]), (25, 28, [0, 10, 20, 30])])
def test_what_was_due_meanwhile_is_done_once_at_the_end(frozen: int, thawed: int, expected: list[int]) -> None:
    clock = Clock()
    seen: list[int] = []
    process: Process = clock.start(ticking(clock, seen))
    clock.call(frozen, process.freeze)
    clock.call(thawed, process.unfreeze)
    while clock.do_next(expected[-1]):
        pass
    assert seen == expected
