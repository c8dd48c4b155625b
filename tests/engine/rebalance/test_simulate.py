import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.engine.rebalance.simulate import GroupSimulation, simulate_group, simulate_group_trials, summarise
from rmqlb.errors import UsageError
from rmqlb.model.group import QueueState
from rmqlb.model.group_scenario import SECOND_US, TIMER_NAMES, Event, GroupScenario, Timers
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicQueueMappingInfo, TopicRouteData
from tests.engine.rebalance.groups import at, length, line, moments, owners_at_the_end, simulate, takeovers, trials
from tests.support.builders import route
from tests.support.group_builders import us
from tests.support.mismatches import every_case

VERSIONS = ("5.5.0", "5.3.1", "5.1.4", "4.9.7")
STRATEGIES = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")


Case = tuple[Members, tuple[TopicRouteData, ...], GroupScenario]


@st.composite
def groups(draw: st.DrawFn) -> Case:
    ids = [f"c{i}" for i in range(draw(st.integers(1, 5)))]
    brokers = {name: draw(st.integers(1, 4)) for name in draw(st.sampled_from(["a", "ab", "abc"]))}
    topics = tuple(route(topic, **brokers) for topic in draw(st.sampled_from([("T",), ("T", "U")])))  # type: ignore[arg-type]
    gone, events = set(), []
    for number in range(draw(st.integers(1, 4))):
        seconds = draw(st.integers(0, 60))
        kind = draw(st.sampled_from(["join", "leave", "crash", "host-loss", "route-change"]))
        present = [i for i in ids if i not in gone]
        if kind == "join" or not present:
            events.append(at("join", f"n{number}", seconds))
        elif kind == "route-change":
            events.append(at("route-change", "T", seconds, read_queues=draw(st.integers(1, 5))))
        else:
            gone.add(present[0])
            events.append(at(kind, present[0], seconds))  # type: ignore[arg-type]
    scenario = GroupScenario(
        tuple(events), client_version=draw(st.sampled_from(VERSIONS)), orderly=draw(st.booleans()),
        consume_us=draw(st.sampled_from([0, 300_000, 2_000_000])),
        latency_us=draw(st.sampled_from([0, 1000, 40_000])), seed=draw(st.integers(0, 1000)),
    )  # fmt: skip
    return Members(tuple(ids), draw(st.sampled_from(STRATEGIES))), topics, scenario


def final(members: Members, routes: Sequence[TopicRouteData], events: Sequence[Event]) -> dict[MessageQueue, object]:
    ids = Counter(members.client_ids)
    reads = None
    for event in sorted(events, key=lambda event: event.at_us):
        if event.kind == "join":
            ids[event.subject] += 1
        elif event.kind == "route-change":
            reads = event.read_queues
        else:
            ids[event.subject] -= 1
    after = replace(members, client_ids=tuple(ids.elements()))
    owners: dict[MessageQueue, object] = {}
    for topic in routes:
        datas = topic.queue_datas
        if reads is not None and topic.topic == "T":
            datas = tuple(replace(data, read_queue_nums=reads) for data in datas)
        owners |= assign(replace(topic, queue_datas=datas), after).owners
    return owners


@given(groups())
@settings(max_examples=150, deadline=None)
def test_intervals_cover_the_time_axis_and_end_as_plan_rebalance_plans(case: Case) -> None:
    report = simulate_group("g", *case)
    assert report.figures.convergence_ms is not None
    assert report.figures.taken == len(takeovers(report))
    planned = final(case[0], case[1], case[2].events)
    for each in report.queues:
        first, last = each.intervals[0], each.intervals[-1]
        assert (first.from_us, last.to_us) == (0, report.end_us)
        assert (last.owners, last.state == "gone") == (planned.get(each.queue, ()), each.queue not in planned)
        for one, next_one in pairwise(each.intervals):
            assert one.to_us == next_one.from_us
            assert (one.state, one.owners) != (next_one.state, next_one.owners)
        for interval in each.intervals:
            assert interval.from_us < interval.to_us
            expected = {0: "unassigned", 1: "one"}.get(len(interval.owners), "duplicate-owners")
            assert interval.state in (expected, "gone")
        for state, total_ms in (("unassigned", each.total_gap_ms), ("duplicate-owners", each.total_overlap_ms)):
            assert us(total_ms) == sum(i.to_us - i.from_us for i in each.intervals if i.state == state)
        for takeover in each.takeovers:
            assert 0 <= takeover.at_ms <= report.end_ms
            assert takeover.reads_from_ms is None or takeover.reads_from_ms >= takeover.at_ms
            assert takeover.redelivered_ms >= 0


@given(groups(), st.integers(0, 5), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_equal_input_gives_equal_reports(case: Case, trial: int, dice: Random) -> None:
    def shuffled(items: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(dice.sample(items, len(items)))

    first = simulate_group("g", *case, trial=trial)
    again = GroupSimulation("g", *case)
    again.run(trial + 1)
    assert again.run(trial) == first
    members, topics, scenario = case
    datas = (("queue_datas", shuffled), ("broker_datas", shuffled))
    others = [replace(each, **{name: order(getattr(each, name)) for name, order in datas}) for each in shuffled(topics)]
    explained = simulate_group("g", members, others, scenario, trial=trial, explain=True)
    assert explained.steps
    assert replace(explained, steps=None) == first


@given(groups())
@settings(max_examples=60, deadline=None)
def test_orderly_consumers_never_share_a_queue_before_a_lock_expires(case: Case) -> None:
    """Since 5.2.0. Before, a delayed unlock may free a lock that its client has taken anew in the meantime."""
    members, topics, scenario = case
    report = simulate_group("g", members, topics, replace(scenario, orderly=True, client_version="5.2.0"))
    assert report.figures.total_overlap_ms == 0


def test_trials_are_the_simulations_of_their_numbers() -> None:
    case = Members(("c1", "c2", "c3"), "AVG"), (route(a=4, b=4),), GroupScenario((at("join", "c4"),))
    found = simulate_group_trials("g", *case, 20)
    single = [simulate_group("g", *case, trial=trial).figures for trial in range(20)]
    assert found == summarise(single)
    spread = found.figures.longest_gap_ms
    assert single[spread.max_trial].longest_gap_ms == spread.max
    assert sorted(each.longest_gap_ms for each in single)[9] == spread.p50
    assert found.converged == 20


@every_case(("scenario", "complaint"), [
    *((GroupScenario(timers=Timers(**{field: -1})), f"timers.{field} is -1: a number from ") for field in TIMER_NAMES.values()),
    (GroupScenario(timers=Timers(broker_scan_us=0)), "timers.broker_scan_us is 0: a number from 1 "),
    (GroupScenario(timers=Timers(heartbeat_us=0)), "timers.heartbeat_us is 0: a number from 1 "),
    (GroupScenario(latency_us=-1), "latency_us is -1: a number from 0"),
    (GroupScenario(rates={MessageQueue("T", "a", 0): math.inf}), "is inf: a number is needed"),
    (GroupScenario(rates={MessageQueue("T", "a", 0): math.nan}), "is nan: a number is needed"),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_times_and_rates_that_make_no_sense_are_refused(scenario: GroupScenario, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        simulate_group("g", Members(("c1",), "AVG"), (route(a=4),), scenario)


@every_case(("timer", "more"), [
    ("rebalance-wait", {"client_version": "5.1.0", "latency_us": 0}),
    ("rebalance-wait", {"client_version": "4.9.7", "broadcasting": True}),
    ("rebalance-min", {"latency_us": 0, "orderly": True}),
    ("route-poll", {}),
    ("heartbeat", {}),
    ("lock-renewal", {"orderly": True}),
    ("broker-scan", {}),
    ("notify-batch", {}),
])  # fmt: skip
def test_what_would_go_on_without_time_passing_is_refused(timer: str, more: dict[str, Any]) -> None:
    shorter, shortest = (Timers(**{TIMER_NAMES[timer]: length}) for length in (999, 1000))
    with pytest.raises(UsageError, match=f"timer {timer} is 999 us: what happens again and again is 1 ms") as raised:
        simulate("c1 c2", at("join", "c3"), timers=shorter, **more)
    assert raised.value.code == "too-many-steps"
    assert simulate("c1 c2", at("join", "c3"), timers=shortest, until_us=20_000, **more).end_us == 20_000


def test_a_new_broker_whose_members_are_not_there_yet_misleads_the_first_that_asks_it() -> None:
    """The first member to send it a heartbeat may be told that it is alone, and takes every queue."""
    planned = assign(route(a=4, b=4, c=4), Members(("c1", "c2", "c3"), "AVG")).owners
    alone = 0
    for report in trials(60, "c1 c2 c3", at("broker-up", "c"), explain=True):
        alone += bool(moments(report, "take", "broker c names 1 consumer"))
        assert owners_at_the_end(report) == {f"{each.broker_name}{each.queue_id}": ids for each, ids in planned.items()}
    assert 5 < alone < 40


def test_broadcasting_consumers_own_everything_and_nobody_is_told_of_them() -> None:
    """`ConsumerManager.registerConsumer` of brokers from 5.3.1 on."""
    report = simulate("c1 c2", at("join", "c3"), broadcasting=True, explain=True)
    assert set(owners_at_the_end(report).values()) == {("c1", "c2", "c3")}
    f = report.figures
    assert (f.total_overlap_ms, f.queues_with_overlap, f.redelivered) == (0, 0, 0)
    text = "hears c3 for the first time: tells no consumer of a BROADCASTING group"
    assert {step.text for step in report.steps or () if step.what == "notice"} == {text}
    assert not moments(report, "wake")


@every_case(("consume_from", "rule", "offset"), [
    ("CONSUME_FROM_LAST_OFFSET", "end", 120),
    ("CONSUME_FROM_FIRST_OFFSET", "beginning", 20),  # the broker sends it to the first message that is still there
    ("CONSUME_FROM_TIMESTAMP", "timestamp", 70),
])  # fmt: skip
def test_a_new_broadcasting_member_starts_by_consume_from_alone(consume_from: str, rule: str, offset: int) -> None:
    """`LocalFileOffsetStore.readOffset` answers −1 without a file; an offset of the group at a broker plays no part."""
    states = {
        queue: QueueState(broker_offset=120, consumer_offset=50, min_offset=20, timestamp_offset=70)
        for queue in route(a=4).subscribe_queues()
    }
    events = (at("join", "c2"), at("leave", "c1", 20), at("join", "c1", 40), at("broker-up", "b", 60, read_queues=1))
    scenario = GroupScenario(events, broadcasting=True, consume_from=consume_from, until_us=200 * SECOND_US)
    report = simulate_group("g", Members(("c1",), "AVG"), (route(a=4),), scenario, states=states)
    new, back = line(report, "a", 0).takeovers
    assert (new.client_id, new.start_rule, new.start_offset) == ("c2", rule, offset)
    assert new.start_reason.startswith(f"it has no offset of its own, and {consume_from}")
    assert (back.client_id, back.start_rule, back.start_offset) == ("c1", "stored", None)
    fresh = line(report, "b", 0).takeovers
    assert {(each.start_rule, each.start_offset) for each in fresh} == {(rule, 0)}
    assert {each.client_id for each in fresh} == {"c1", "c2"}


@every_case("version", ["4.9.7", "5.1.4", "5.3.1"])
def test_orderly_broadcasting_members_of_old_clients_wait_for_each_others_locks(version: str) -> None:
    """Seen with running members of 4.9.7 and 5.1.4: a lock lives for 60 s, and then one of those that wait gets it."""
    report = simulate(
        "c1", at("join", "c2", 10), at("join", "c3", 12), broadcasting=True, orderly=True, client_version=version
    )
    first, second = sorted(takeover.at_ms / 1000 for takeover in line(report, "a", 0).takeovers)
    assert 10 <= first < 13
    assert 60 <= second - first < 81
    assert {len(owners) for owners in owners_at_the_end(report).values()} == {3}


def test_a_static_topics_queues_are_locked_at_the_brokers_that_serve_them() -> None:
    """`RebalanceImpl.lock` asks the broker that `getBrokerNameFromMessageQueue` names, not the logical one."""
    static = replace(
        route("T", a=2, b=2),
        topic_queue_mapping_by_broker={
            "a": TopicQueueMappingInfo("T", "__global__", 4, "a", 1, {0: 0, 1: 1}),
            "b": TopicQueueMappingInfo("T", "__global__", 4, "b", 1, {2: 0, 3: 1}),
        },
    )
    for report in trials(4, "c1 c2", at("join", "c3"), at("leave", "c1", 80), routes=[static], orderly=True):
        assert list(owners_at_the_end(report).values()) == [("c2",), ("c2",), ("c3",), ("c3",)]
        assert length(report, "longest_gap") < 30
        assert report.figures.convergence_ms is not None


def test_a_lock_of_a_queue_that_is_given_up_is_renewed_until_4_9_8_only() -> None:
    """`RebalanceImpl.buildProcessQueueTableByBrokerName` passes over dropped queues from 5.0.0 on."""

    def last_takeover(version: str) -> float:
        more = {"orderly": True, "consume_us": 300 * SECOND_US, "client_version": version}
        reports = trials(4, "c1 c2", at("join", "c3"), **more)
        return max(each.at_ms / 1000 - 10 for report in reports for each in takeovers(report))

    assert last_takeover("4.9.8") > 150, "as long as the listener holds on"
    assert last_takeover("5.0.0") < 81, "a lock lives for 60 s, and who waits looks again 20 s later"
    assert last_takeover("5.1.4") < 81


def test_a_member_that_does_not_subscribe_takes_a_share_that_nobody_reads() -> None:
    members = Members(("c1", "c2"), "AVG", subscribed={"c2": frozenset({"U"})})
    topics = route("T", a=4), route("U", a=4)
    report = simulate_group("g", members, topics, GroupScenario((at("join", "c3"),)))
    end = {(each.queue.topic, each.queue.queue_id): each.intervals[-1].owners for each in report.queues}
    assert end["T", 2] == ()
    assert end["U", 2] == ("c2",)


def test_notices_in_batches_come_later() -> None:
    batched = Timers(notify_batch_us=15 * SECOND_US, rebalance_wait_us=3600 * SECOND_US)
    reports = trials(20, "c1 c2 c3", at("crash", "c2"), timers=batched)
    assert 1.1 < max(length(each, "convergence") for each in reports) <= 16.1
