"""A broker that cannot be read: how long that lasts, and what it is told apart from."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.model.route import BrokerData, TopicRouteData
from tests.engine.rebalance.groups import again, at, hold, length, line, read, simulate, spans, takeovers, trials
from tests.support.builders import route

DOWN, UP = at("broker-down", "b", 30), at("broker-up", "b", 300)


def with_slave(topic: TopicRouteData, name: str) -> TopicRouteData:
    """A slave, number 1, next to that broker's master."""
    addresses = {0: f"{name}:10911", 1: f"{name}s:10911"}
    found = (BrokerData("c", b.broker_name, addresses) if b.broker_name == name else b for b in topic.broker_datas)
    return replace(topic, broker_datas=tuple(found))


def test_half_of_the_queues_cannot_be_read_for_as_long_as_their_broker_is_down() -> None:
    report = simulate("c1 c2 c3", DOWN, UP)
    f = report.figures
    assert (f.longest_outage_ms, f.total_outage_ms, f.queues_with_outage) == (270_000, 4 * 270_000, 4)
    assert (f.queues_with_outage_at_end, f.queues_unread_at_end) == (0, 0)
    assert f.unread_ms > 270_000
    assert f.longest_gap_ms < 60_000
    for queue_id in range(4):
        down, up = line(report, "b", queue_id), line(report, "a", queue_id)
        assert (down.total_outage_ms, down.longest_outage_ms, up.total_outage_ms) == (270_000, 270_000, 0)
        assert "gone" not in {interval.state for interval in down.intervals}
        # from the death to the first pull of the consumer that took it afterwards
        after = [takeover for takeover in down.takeovers if takeover.at_ms > 300_000]
        reads_from_ms = min(takeover.reads_from_ms or 0 for takeover in after)
        assert down.unread_ms == after[0].unread_ms == reads_from_ms - 30_000


def test_an_owner_that_keeps_its_queue_pulls_again_a_second_later_at_most() -> None:
    """Nothing is taken over, and yet messages have waited."""
    waits = set()
    events = at("broker-down", "a", 10), at("broker-up", "a", 10.5)
    for report in trials(20, "c1 c2", *events, routes=[route(a=2, b=2)]):
        kept = [each for each in (line(report, "a", 0), line(report, "a", 1)) if not each.takeovers]
        for each in kept:
            states = [(interval.state, interval.owners) for interval in each.intervals]
            assert states == [("one", ("c1",)), ("outage", ("c1",)), ("one", ("c1",))]
            assert 500 < each.unread_ms < 1600
            assert each.unread_ms == each.total_outage_ms == each.longest_outage_ms
            waits.add(each.unread_ms)
        assert report.figures.unread_ms >= max((each.unread_ms for each in kept), default=0)
    assert len(waits) > 10


def test_a_broker_that_stays_away_leaves_queues_that_nobody_reads() -> None:
    report = simulate("c1 c2", at("broker-down", "b"))
    f = report.figures
    assert (f.queues_with_outage_at_end, f.queues_unread_at_end) == (4, 4)
    assert f.longest_outage_ms == f.unread_ms == report.end_ms - 10_000


def test_a_broker_whose_machine_is_lost_is_an_outage_from_the_loss_on() -> None:
    report = simulate("c1 c2", at("broker-loss", "b", 30), at("broker-up", "b", 40))
    assert 10_000 <= line(report, "b", 0).total_outage_ms < 12_000


def test_consumers_read_from_a_slave_when_they_have_learnt_that_the_master_is_gone() -> None:
    """A route poll later at the most, and a second for the next pull; nobody changes its queues."""
    longest = []
    for report in trials(20, "c1 c2", DOWN, routes=[with_slave(route(a=4, b=4), "b")]):
        assert not takeovers(report)
        assert {interval.state for each in report.queues for interval in each.intervals} == {"one", "outage"}
        assert report.figures.queues_unread_at_end == 0
        longest.append(length(report, "longest_outage"))
    assert max(longest) <= 31.5
    assert max(longest) - min(longest) > 10


def test_orderly_consumers_lock_at_the_master_only() -> None:
    """A consumer that joins while the master is down cannot take the queues that only the slave has."""
    events = at("broker-down", "b", 10), at("join", "c3", 100), at("broker-up", "b", 200)
    report = simulate("c1 c2", *events, routes=[with_slave(route(a=4, b=4), "b")], orderly=True)
    from_slave = [takeover.at_ms for takeover in takeovers(report) if takeover.broker_name == "b"]
    assert from_slave
    assert min(from_slave) > 200_000


def test_an_outage_lasts_until_a_pull_arrives_again() -> None:
    found = read(hold("c1", -5, pauses=[(200, 420)]), served=((200, False), (400, True)))
    assert spans(found) == [("one", 0, 200), ("outage", 200, 420), ("one", 420, 1000)]
    assert (found.total_outage_ms, found.longest_outage_ms, found.unread_ms) == (0.22, 0.22, 0.22)
    assert (found.total_gap_ms, found.unread_at_end) == (0, False)


def test_what_was_stored_while_the_broker_was_down_was_not_stored() -> None:
    """c1 reads until 220 and stores at 200; its timer at 250 meets a broker that is down: c2 starts 20 behind."""
    held = hold("c1", -5, 300, pauses=[(220, None)]), hold("c2", 450)
    assert again(read(*held, served=((220, False), (400, True)))) == [20]
