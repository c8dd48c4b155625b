import pytest
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.rebalance.simulate import simulate_group
from rmqlb.model.group import QueueState
from rmqlb.model.group_scenario import SECOND_US, GroupScenario, Timers
from rmqlb.model.route import BrokerData, TopicQueueMappingInfo, TopicRouteData
from tests.engine.rebalance.groups import (
    again,
    at,
    hold,
    length,
    line,
    moments,
    owners_at_the_end,
    read,
    simulate,
    spans,
    takeovers,
    trials,
)
from tests.support.builders import route
from tests.support.mismatches import every_case

DOWN, UP = at("broker-down", "b", 30), at("broker-up", "b", 300)


def with_slave(topic: TopicRouteData, name: str) -> TopicRouteData:
    addresses = {0: f"{name}:10911", 1: f"{name}s:10911"}
    found = (BrokerData("c", b.broker_name, addresses) if b.broker_name == name else b for b in topic.broker_datas)
    return replace(topic, broker_datas=tuple(found))


def test_half_of_the_queues_cannot_be_read_for_as_long_as_their_broker_is_down() -> None:
    report = simulate("c1 c2 c3", DOWN, UP)
    f = report.figures
    assert (f.longest_outage_ms, f.total_outage_ms, f.queues_with_outage) == (270_000, 4 * 270_000, 4)
    assert (f.queues_with_outage_at_end, f.queues_unread_at_end) == (0, 0)
    assert f.unread_ms - 210_000 > 60_000 > f.longest_gap_ms
    for down in (line(report, "b", queue_id) for queue_id in range(4)):
        assert (down.total_outage_ms, down.longest_outage_ms) == (270_000, 270_000)
        assert "gone" not in {interval.state for interval in down.intervals}
        # from the death to the first pull of the consumer that took it afterwards
        after = [takeover for takeover in down.takeovers if takeover.at_ms > 300_000]
        assert down.unread_ms == after[0].unread_ms == min(each.reads_from_ms or 0 for each in after) - 30_000


def test_an_owner_that_keeps_its_queue_pulls_again_a_second_later_at_most() -> None:
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


def test_brokers_that_stay_away_or_lose_their_machine_are_an_outage() -> None:
    report = simulate("c1 c2", at("broker-down", "b"))
    f = report.figures
    assert (f.queues_with_outage_at_end, f.queues_unread_at_end) == (4, 4)
    assert f.longest_outage_ms == f.unread_ms == report.end_ms - 10_000
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


def test_one_that_never_goes_on_leaves_the_group_and_orderly_members_wait_for_its_locks() -> None:
    report = simulate("c1 c2 c3", at("freeze", "c2"), trial=1)
    assert 90 < length(report, "convergence") <= 150
    assert {owner for owners in owners_at_the_end(report).values() for owner in owners} == {"c1", "c3"}
    for report in trials(10, "c1 c2 c3", *LONG, orderly=True):
        assert length(report, "longest_gap") > 90
        assert owners_at_the_end(report)["b0"] == ("c2",)


def test_a_connection_that_nothing_goes_over_is_closed_and_that_is_told() -> None:
    timers = Timers(channel_expiry_us=1000 * SECOND_US)
    report = simulate("c1 c2 c3", at("freeze", "c2", 10), at("unfreeze", "c2", 300), timers=timers, explain=True)
    closed = moments(report, "notice", "the connection of c2 closed")
    assert len(closed) == 2
    assert all(100 < when < 146 for when in closed)


LOST_AND_JOINED = at("broker-loss", "b", 10), at("join", "c2", 12)
"""The NameServers name the lost broker until two minutes have passed, so that the one that joins asks it."""


@every_case("trial", range(10))
def test_a_queue_whose_offset_is_not_told_is_not_taken(trial: int) -> None:
    """c2's half is what the lost broker has: it asks queue by queue, pass after pass, and owns nothing of it."""
    report = simulate("c1", *LOST_AND_JOINED, trial=trial, explain=True, until_us=60 * SECOND_US)
    refused = [step.text for step in report.steps or () if step.who == "c2" and "no offset from" in step.text]
    texts = [f"cannot take b:{number}: no offset from broker b" for number in range(4)]
    assert refused == (texts * 4)[: len(refused)]
    assert trial or len(refused) >= 8
    assert all("c2" not in each.owners for queue in range(4) for each in line(report, "b", queue).intervals)


def test_a_lock_that_no_broker_gives_ends_the_matter_before_an_offset_is_asked_for() -> None:
    """`RebalanceImpl.updateProcessQueueTableInRebalance`: the queue is passed over."""
    for version in ("5.5.0", "5.1.4", "4.9.7"):
        report = simulate(
            "c1", *LOST_AND_JOINED, orderly=True, client_version=version, explain=True, until_us=60 * SECOND_US
        )
        assert not [step for step in report.steps or () if "no offset from" in step.text]
        assert all("c2" not in each.owners for queue in range(4) for each in line(report, "b", queue).intervals)


@every_case(("version", "lag", "after"), [("4.9.7", 3, 20), ("4.9.7", 0, 0), ("5.5.0", 3, 0)])
def test_older_clients_keep_the_lock_of_a_queue_with_cached_messages(version: str, lag: int, after: float) -> None:
    """`ProcessQueue.hasTempMessage`: `unlockDelay` gives the lock back 20 s after the queue; c2 takes a2 and a3."""
    states = {queue: QueueState(broker_offset=9, consumer_offset=9 - lag) for queue in route(a=4).subscribe_queues()}
    scenario = GroupScenario((at("join", "c2"),), orderly=True, client_version=version)
    report = simulate_group("g", Members(("c1",), "AVG"), [route(a=4)], scenario, states=states)
    for number in (2, 3):
        (given_up,) = (each.to_ms / 1000 for each in line(report, "a", number).intervals if each.owners == ("c1",))
        (taken,) = line(report, "a", number).takeovers
        # As often as c2 tries again: every 20 s, and 5.0.0 and newer twice a second.
        assert after <= taken.at_ms / 1000 - given_up <= after + 20


@pytest.mark.parametrize("latency_us", [0, 40_000])
def test_a_logical_queue_that_no_broker_serves_is_taken_after_a_question_to_the_name_server(latency_us: int) -> None:
    """Four queues of which two are mapped; the others have an owner, and a round trip is the least that it takes."""
    mapping = {"a": TopicQueueMappingInfo("T", "g", 4, "a", 1, {0: 0, 1: 1})}
    static = replace(route("T", a=2), topic_queue_mapping_by_broker=mapping)
    at_once = simulate("c1", at("join", "c2"), routes=[static], latency_us=latency_us)
    assert list(owners_at_the_end(at_once).values()) == [("c1",), ("c1",), ("c2",), ("c2",)]
    taken = [each.at_ms for each in takeovers(at_once, "c2")]
    assert len(taken) == 2
    assert (taken[0] < taken[1]) == (latency_us > 0), "one after the other, each after its answer"
