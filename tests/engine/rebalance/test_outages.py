"""A broker that cannot be read: how long that lasts, and what it is told apart from."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.rebalance.event_log import EventLog, Hold
from rmqlb.engine.rebalance.simulate import simulate_group_trials
from rmqlb.engine.rebalance.timelines import figures, timelines
from rmqlb.model.group_scenario import SECOND_US, GroupScenario
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, TopicRouteData
from rmqlb.model.simulate_rebalance import FigureSpreads, GroupFigures, QueueTimeline
from tests.support.builders import route
from tests.support.group_builders import us

from .groups import at, line, owners_at_the_end, seconds, simulate

QUEUE = MessageQueue("T", "a", 0)
LONG = at("broker-down", "b", 30), at("broker-up", "b", 300)


def with_slave(topic: TopicRouteData, name: str) -> TopicRouteData:
    """A slave, number 1, beside that broker's master."""
    addresses = {0: f"{name}:10911", 1: f"{name}s:10911"}
    brokers = (
        BrokerData("c", each.broker_name, addresses) if each.broker_name == name else each
        for each in topic.broker_datas
    )
    return replace(topic, broker_datas=tuple(brokers))


def test_half_of_the_queues_cannot_be_read_for_as_long_as_their_broker_is_down() -> None:
    report = simulate("c1 c2 c3", *LONG)
    f = report.figures
    assert (us(f.longest_outage_ms), us(f.total_outage_ms), f.queues_with_outage) == (
        270 * SECOND_US,
        4 * 270 * SECOND_US,
        4,
    )
    assert (f.queues_with_outage_at_end, f.queues_unread_at_end) == (0, 0)
    assert us(f.unread_ms) > 270 * SECOND_US
    assert us(f.longest_gap_ms) < 60 * SECOND_US
    for queue_id in range(4):
        down, up = line(report, "b", queue_id), line(report, "a", queue_id)
        assert (us(down.total_outage_ms), us(down.longest_outage_ms), us(up.total_outage_ms)) == (
            270 * SECOND_US,
            270 * SECOND_US,
            0,
        )
        assert "gone" not in {interval.state for interval in down.intervals}
        # From the death to the first pull of whoever took it afterwards.
        after = [takeover for takeover in down.takeovers if us(takeover.at_ms) > 300 * SECOND_US]
        reads_from_us = min(us(takeover.reads_from_ms) or 0 for takeover in after)
        assert us(down.unread_ms) == us(after[0].unread_ms) == reads_from_us - 30 * SECOND_US


def test_an_owner_that_keeps_its_queue_pulls_again_a_second_later_at_most() -> None:
    """Nothing is taken over, and yet messages have waited."""
    waits = set()
    for trial in range(20):
        report = simulate(
            "c1 c2", at("broker-down", "a", 10), at("broker-up", "a", 10.5), routes=[route(a=2, b=2)], trial=trial
        )
        kept = [each for each in (line(report, "a", 0), line(report, "a", 1)) if not each.takeovers]
        for each in kept:
            states = [(interval.state, interval.owners) for interval in each.intervals]
            assert states == [("one", ("c1",)), ("outage", ("c1",)), ("one", ("c1",))]
            assert 0.5 < seconds(us(each.unread_ms)) < 1.6
            assert us(each.unread_ms) == us(each.total_outage_ms) == us(each.longest_outage_ms)
            waits.add(us(each.unread_ms))
        assert us(report.figures.unread_ms) >= max((us(each.unread_ms) for each in kept), default=0)
    assert len(waits) > 10


def test_a_broker_that_is_back_answers_pulls_of_its_own_queues_only() -> None:
    down = [at("broker-down", name, 10) for name in "ab"]
    report = simulate("c1", *down, at("broker-up", "a", 10.5), at("broker-up", "b", 11.9))
    assert {0.5 < seconds(us(line(report, "a", each).unread_ms)) < 1.9 for each in range(4)} == {True}
    assert {seconds(us(line(report, "b", each).unread_ms)) > 1.9 for each in range(4)} == {True}


def test_a_broker_that_goes_twice_in_a_moment_is_pulled_again_by_whichever_retry_arrives_first() -> None:
    blinks = [
        each for second in (10, 10.2) for each in (at("broker-down", "a", second), at("broker-up", "a", second + 0.1))
    ]
    for trial in range(5):
        report = simulate("c1", *blinks, trial=trial, explain=True, until_us=20 * SECOND_US)
        (again,) = [step for step in report.steps if step.what == "pull" and "again" in step.text]
        assert again.text == "pulls a:0, a:1, a:2, a:3 again"
        assert us(line(report, "a", 0).unread_ms) == us(again.at_ms) - 10 * SECOND_US


def test_a_broker_that_stays_away_leaves_queues_that_nobody_reads() -> None:
    report = simulate("c1 c2", at("broker-down", "b"))
    f = report.figures
    assert (f.queues_with_outage_at_end, f.queues_unread_at_end) == (4, 4)
    assert us(f.longest_outage_ms) == us(f.unread_ms) == report.end_us - 10 * SECOND_US


def test_queues_without_an_owner_at_the_end_are_not_read_either() -> None:
    report = simulate("c1 c2", at("crash", "c1"), at("crash", "c2"))
    f = report.figures
    assert (f.queues_with_outage, f.queues_with_outage_at_end, f.queues_unread_at_end) == (0, 0, 8)
    assert us(f.unread_ms) == report.end_us - 10 * SECOND_US


def test_a_new_broker_is_no_outage_before_it_is_there() -> None:
    report = simulate("c1 c2", at("broker-up", "c"))
    assert us(report.figures.longest_outage_ms) == 0
    assert line(report, "c", 0).intervals[0].state == "gone"


def test_queues_that_a_route_no_longer_has_are_no_outage() -> None:
    report = simulate("c1 c2", at("route-change", "T", broker_name="b", read_queues=2))
    assert us(report.figures.longest_outage_ms) == 0
    assert line(report, "b", 3).intervals[-1].state == "gone"
    assert report.figures.queues_unread_at_end == 0


def test_a_queue_that_comes_while_its_broker_is_down_begins_with_an_outage() -> None:
    events = at("broker-down", "b", 10), at("route-change", "T", 20, read_queues=5), at("broker-up", "b", 60)
    grown = line(simulate("c1 c2", *events), "b", 4)
    assert [interval.state for interval in grown.intervals][:2] == ["gone", "outage"]
    assert us(grown.total_outage_ms) == 40 * SECOND_US


def test_a_broker_whose_machine_is_lost_is_an_outage_from_the_loss_on() -> None:
    report = simulate("c1 c2", at("broker-loss", "b", 30), at("broker-up", "b", 40))
    assert 10 <= seconds(us(line(report, "b", 0).total_outage_ms)) < 12


def test_consumers_read_from_a_slave_when_they_have_learnt_that_the_master_is_gone() -> None:
    """A route poll later at the most, and a second for the next pull; nobody changes its queues."""
    longest = []
    for trial in range(20):
        report = simulate("c1 c2", LONG[0], routes=[with_slave(route(a=4, b=4), "b")], trial=trial)
        assert not any(each.takeovers for each in report.queues)
        assert {interval.state for each in report.queues for interval in each.intervals} == {"one", "outage"}
        assert report.figures.queues_unread_at_end == 0
        longest.append(seconds(us(report.figures.longest_outage_ms)))
    assert max(longest) <= 31.5
    assert max(longest) - min(longest) > 10


def test_a_slave_can_be_down_too() -> None:
    report = simulate(
        "c1 c2", at("broker-down", "b", 30, with_slaves=True), LONG[1], routes=[with_slave(route(a=4, b=4), "b")]
    )
    assert us(report.figures.longest_outage_ms) == 270 * SECOND_US
    assert set(owners_at_the_end(report).values()) == {("c1",), ("c2",)}


def test_orderly_consumers_lock_at_the_master_only() -> None:
    """A member that joins while the master is down cannot take the queues that only the slave has."""
    topic = with_slave(route(a=4, b=4), "b")
    events = at("broker-down", "b", 10), at("join", "c3", 100), at("broker-up", "b", 200)
    report = simulate("c1 c2", *events, routes=[topic], orderly=True)
    from_slave = [takeover for each in report.queues if each.queue.broker_name == "b" for takeover in each.takeovers]
    assert from_slave
    assert all(us(takeover.at_ms) > 200 * SECOND_US for takeover in from_slave)


def test_orderly_consumers_do_not_read_from_a_slave_either() -> None:
    """Without the master's lock nothing of it would be consumed: the outage lasts until the master is back."""
    for trial in range(5):
        topic = with_slave(route(a=4, b=4), "b")
        report = simulate("c1 c2", *LONG, routes=[topic], orderly=True, trial=trial)
        assert min(us(line(report, "b", number).total_outage_ms) for number in range(4)) >= 270 * SECOND_US


def test_a_broker_that_is_removed_for_good_takes_its_queues_along() -> None:
    report = simulate("c1 c2", at("broker-down", "b", 10, for_good=True))
    assert us(report.figures.longest_outage_ms) == 0
    assert line(report, "b", 0).intervals[-1].state == "gone"


def test_broadcasting_members_wait_for_a_broker_as_others_do() -> None:
    report = simulate("c1 c2", at("broker-down", "b", 30), at("broker-up", "b", 31), broadcasting=True)
    assert 1 <= seconds(us(report.figures.longest_outage_ms)) < 3
    assert us(report.figures.unread_ms) >= us(report.figures.longest_outage_ms)


def test_trials_have_the_same_figures() -> None:
    scenario = GroupScenario(LONG)
    trials = simulate_group_trials("g", Members(("c1", "c2"), "AVG"), [route(a=4, b=4)], scenario, 5)
    assert FigureSpreads.__struct_fields__ == GroupFigures.__struct_fields__
    assert trials.figures.longest_outage_ms.p50 == 270_000


def read(
    *holds: Hold, served: tuple[tuple[int, bool], ...] = (), there: tuple[tuple[int, bool], ...] = ((0, True),)
) -> QueueTimeline:
    log = EventLog(explain=False)
    log.holds = list(holds)
    log.there[QUEUE] = list(there)
    log.served[QUEUE] = list(served)
    return timelines(log, GroupScenario(latency_us=0, rates={QUEUE: 1e6}), {}, 1000)[0]


def hold(
    client_id: str, from_us: int, to_us: int | None = None, *, pauses: tuple[tuple[int, int | None], ...] = ()
) -> Hold:
    made = Hold(QUEUE, client_id, from_us, lambda moment: moment // 50 * 50)
    made.reads_from_us = from_us
    made.to_us = to_us
    for begin, end in pauses:
        made.pause(begin)
        if end is not None:
            made.resume(end)
    made.persisted = to_us is not None and not made.is_paused
    return made


def test_an_outage_lasts_until_a_pull_arrives_again() -> None:
    line = read(hold("c1", -5, pauses=((200, 420),)), served=((200, False), (400, True)))
    assert [(each.state, each.from_us, each.to_us) for each in line.intervals] == [
        ("one", 0, 200),
        ("outage", 200, 420),
        ("one", 420, 1000),
    ]
    assert (us(line.total_outage_ms), us(line.longest_outage_ms), us(line.unread_ms), us(line.total_gap_ms)) == (
        220,
        220,
        220,
        0,
    )
    assert not line.unread_at_end


def test_after_an_outage_a_queue_that_nobody_holds_is_without_owner() -> None:
    line = read(hold("c1", -5, 300, pauses=((200, None),)), hold("c2", 450), served=((200, False), (400, True)))
    assert [each.state for each in line.intervals] == ["one", "outage", "outage", "unassigned", "one"]
    assert (us(line.total_outage_ms), us(line.total_gap_ms), us(line.unread_ms)) == (200, 50, 250)
    assert [us(each.unread_ms) for each in line.takeovers] == [250]


def test_one_that_reads_is_enough() -> None:
    """The second owner has learnt of the slave already."""
    line = read(hold("c1", -5, pauses=((200, 420),)), hold("c2", 150, 600), served=())
    assert us(line.total_outage_ms) == 0
    assert us(line.unread_ms) == 0


def test_what_was_stored_while_the_broker_was_down_was_not_stored() -> None:
    """c1 reads until 220 and stores at 200; its timer at 250 meets a broker that is down: c2 starts 20 behind."""
    line = read(hold("c1", -5, 300, pauses=((220, None),)), hold("c2", 450), served=((220, False), (400, True)))
    assert [each.redelivered for each in line.takeovers] == [20]


def test_what_breaks_off_after_a_queue_is_given_up_adds_nothing() -> None:
    """c1 stopped reading at 200 and gave it up at 300; that its broker and its process stood still later is not it."""
    one = hold("c1", -5, 300, pauses=((350, 380),))
    one.stalled_us = 200
    one.freeze(400)
    assert list(one.reads(1000)) == [(-5, 200)]
    assert list(one.owned()) == [(-5, 300)]


def test_a_queue_that_is_removed_ends_its_wait() -> None:
    line = read(hold("c1", -5, 300), there=((0, True), (500, False)))
    assert (us(line.total_gap_ms), us(line.unread_ms), line.unread_at_end) == (200, 0, False)


@pytest.mark.parametrize("settled", [True, False])
def test_the_figures_are_sums_and_maxima(settled: bool) -> None:
    one = read(hold("c1", -5, pauses=((200, 420),)), served=((200, False), (400, True)))
    other = read(hold("c1", -5, pauses=((700, None),)), served=((700, False),))
    f = figures([one, other], EventLog(explain=False), 0, settled=settled)
    assert (us(f.longest_outage_ms), us(f.total_outage_ms)) == (300, 520)
    assert (f.queues_with_outage, f.queues_with_outage_at_end, f.queues_unread_at_end) == (2, 1, 1)
