"""A broker that cannot be read: how long that lasts, and what it is told apart from."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.engine.rebalance.event_log import EventLog, Hold
from rmqlb.engine.rebalance.timelines import timelines
from rmqlb.model.group_scenario import SECOND_US, GroupScenario
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, TopicRouteData
from rmqlb.model.simulate_rebalance import QueueTimeline
from tests.support.builders import route
from tests.support.group_builders import us

from .groups import at, line, seconds, simulate

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


def test_a_broker_that_stays_away_leaves_queues_that_nobody_reads() -> None:
    report = simulate("c1 c2", at("broker-down", "b"))
    f = report.figures
    assert (f.queues_with_outage_at_end, f.queues_unread_at_end) == (4, 4)
    assert us(f.longest_outage_ms) == us(f.unread_ms) == report.end_us - 10 * SECOND_US


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


def test_orderly_consumers_lock_at_the_master_only() -> None:
    """A member that joins while the master is down cannot take the queues that only the slave has."""
    topic = with_slave(route(a=4, b=4), "b")
    events = at("broker-down", "b", 10), at("join", "c3", 100), at("broker-up", "b", 200)
    report = simulate("c1 c2", *events, routes=[topic], orderly=True)
    from_slave = [takeover for each in report.queues if each.queue.broker_name == "b" for takeover in each.takeovers]
    assert from_slave
    assert all(us(takeover.at_ms) > 200 * SECOND_US for takeover in from_slave)


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


def test_what_was_stored_while_the_broker_was_down_was_not_stored() -> None:
    """c1 reads until 220 and stores at 200; its timer at 250 meets a broker that is down: c2 starts 20 behind."""
    line = read(hold("c1", -5, 300, pauses=((220, None),)), hold("c2", 450), served=((220, False), (400, True)))
    assert [each.redelivered for each in line.takeovers] == [20]
