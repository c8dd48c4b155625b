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

from rmqlb import MessageQueue, UsageError
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.engine.plan.changes import Changes, NewBroker, QueueCount, change_members, change_route
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.rebalance.reported_clients import client_version
from rmqlb.engine.rebalance.simulate import (
    GroupSimulation,
    change_events,
    convergence,
    simulate_group,
    simulate_group_trials,
    summarise,
)
from rmqlb.model.group import Connection, ConsumerGroup, MemberView, QueueState
from rmqlb.model.group_scenario import SECOND_US, TIMER_NAMES, Event, GroupScenario, Timers
from rmqlb.model.route import TopicQueueMappingInfo, TopicRouteData
from tests.engine.rebalance.groups import at, length, line, moments, owners_at_the_end, simulate, takeovers, trials
from tests.support.builders import HERE, route, side
from tests.support.group_builders import us
from tests.support.mismatches import every_case
from tests.support.rebalance_comparison import TOLERANCE_US, alone, compared, disagreements, quantile
from tests.support.recorded_groups import saved

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
    times = {"consume_us": [0, 300_000, 2_000_000], "latency_us": [0, 1000, 40_000], "seed": range(1001)}
    more: dict[str, Any] = {name: draw(st.sampled_from(values)) for name, values in times.items()}
    version, orderly = draw(st.sampled_from(VERSIONS)), draw(st.booleans())
    scenario = GroupScenario(tuple(events), client_version=version, orderly=orderly, **more)
    return Members(tuple(ids), draw(st.sampled_from(STRATEGIES))), topics, scenario


def final(members: Members, routes: Sequence[TopicRouteData], events: Sequence[Event]) -> dict[MessageQueue, object]:
    ids, reads = Counter(members.client_ids), None
    for event in sorted(events, key=lambda event: event.at_us):
        if event.kind == "route-change":
            reads = event.read_queues
        else:
            ids[event.subject] += 1 if event.kind == "join" else -1
    after = replace(members, client_ids=tuple(ids.elements()))
    if reads is not None:
        datas = tuple(replace(data, read_queue_nums=reads) for data in routes[0].queue_datas)
        routes = replace(routes[0], queue_datas=datas), *routes[1:]
    return {queue: owners for topic in routes for queue, owners in assign(topic, after).owners.items()}


@given(groups())
@settings(max_examples=150, deadline=None)
def test_intervals_cover_the_time_axis_and_end_as_plan_rebalance_plans(case: Case) -> None:
    report = simulate_group("g", *case)
    assert report.figures.convergence_ms is not None
    assert report.figures.taken == len(takeovers(report))
    planned = final(case[0], case[1], case[2].events)
    for each in report.queues:
        first, last = each.intervals[0], each.intervals[-1]
        assert last.from_us < last.to_us
        assert (first.from_us, last.to_us) == (0, report.end_us)
        assert (last.owners, last.state == "gone") == (planned.get(each.queue, ()), each.queue not in planned)
        for one, next_one in pairwise(each.intervals):
            assert one.to_us == next_one.from_us
            assert (one.state, one.owners) != (next_one.state, next_one.owners)
            assert one.from_us < one.to_us
        for interval in each.intervals:
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
    others = [
        replace(each, queue_datas=shuffled(each.queue_datas), broker_datas=shuffled(each.broker_datas))
        for each in shuffled(topics)
    ]
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
    with pytest.raises(UsageError, match=f"timer {timer} is 999 us: the smallest interval is 1 ms") as raised:
        simulate("c1 c2", at("join", "c3"), timers=shorter, **more)
    assert raised.value.code == "too-many-steps"
    assert simulate("c1 c2", at("join", "c3"), timers=shortest, until_us=20_000, **more).end_us == 20_000


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
    state = QueueState(broker_offset=120, consumer_offset=50, min_offset=20, timestamp_offset=70)
    states = dict.fromkeys(route(a=4).subscribe_queues(), state)
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
    joins = at("join", "c2", 10), at("join", "c3", 12)
    more: dict[str, Any] = {"broadcasting": True, "orderly": True}
    report = simulate("c1", *joins, client_version=version, **more)
    first, second = sorted(takeover.at_ms / 1000 for takeover in line(report, "a", 0).takeovers)
    assert 10 <= first < 13
    assert 60 <= second - first < 81
    assert {len(owners) for owners in owners_at_the_end(report).values()} == {3}


def test_a_static_topics_queues_are_locked_at_the_brokers_that_serve_them() -> None:
    """`RebalanceImpl.lock` asks the broker that `getBrokerNameFromMessageQueue` names, not the logical one."""
    numbers = {"a": {0: 0, 1: 1}, "b": {2: 0, 3: 1}}
    mapping = {name: TopicQueueMappingInfo("T", "__global__", 4, name, 1, ids) for name, ids in numbers.items()}
    static = replace(route("T", a=2, b=2), topic_queue_mapping_by_broker=mapping)
    for report in trials(4, "c1 c2", at("join", "c3"), at("leave", "c1", 80), routes=[static], orderly=True):
        assert list(owners_at_the_end(report).values()) == [("c2",), ("c2",), ("c3",), ("c3",)]
        assert length(report, "longest_gap") < 30
        assert report.figures.convergence_ms is not None


@every_case(("version", "least", "most"), [("4.9.8", 150, 999), ("5.0.0", 0, 81), ("5.1.4", 0, 81)])
def test_a_lock_of_a_queue_that_is_given_up_is_renewed_until_4_9_8_only(version: str, least: int, most: int) -> None:
    """`RebalanceImpl.buildProcessQueueTableByBrokerName` passes over dropped queues from 5.0.0 on.

    Before, a listener keeps it as long as it likes; since, it lives for 60 s, and who waits looks again 20 s later.
    """
    more = {"orderly": True, "consume_us": 300 * SECOND_US, "client_version": version}
    reports = trials(4, "c1 c2", at("join", "c3"), **more)
    assert least < max(each.at_ms / 1000 - 10 for report in reports for each in takeovers(report)) < most


def test_a_member_that_does_not_subscribe_takes_a_share_that_nobody_reads() -> None:
    members = Members(("c1", "c2"), "AVG", subscribed={"c2": frozenset({"U"})})
    topics = route("T", a=4), route("U", a=4)
    report = simulate_group("g", members, topics, GroupScenario((at("join", "c3"),)))
    end = {(each.queue.topic, each.queue.queue_id): each.intervals[-1].owners for each in report.queues}
    assert end["T", 2] == ()
    assert end["U", 2] == ("c2",)


NEW, MIDDLE, OLD = "5.5.0", "5.1.4", "4.9.7"
NOBODY_IS_TOLD = Timers(notify_batch_us=10**12)
NO_IDLE = Timers(socket_idle_us=10**12)
EARLY_IDLE = Timers(socket_idle_us=60 * SECOND_US, pull_hold_us=1)
AT_ONCE = Timers(start_us=0, connect_us=0, close_us=0)
CRASH, JOIN, LEAVE, LOST = at("crash", "c2"), at("join", "c4"), at("leave", "c2"), at("host-loss", "c2")
BATCHED = Timers(notify_batch_us=15 * SECOND_US, rebalance_wait_us=3600 * SECOND_US)
BUSY = {"orderly": True, "consume_us": 800_000}
BLOCKED = {"orderly": True, "consume_us": 3600 * SECOND_US}
WIDER = at("route-change", "T", read_queues=6, write_queues=6)


# What happens, how often it is simulated, the figure, and its bounds in seconds; then some trials must be below and
# above two others.
@every_case(("event", "scenario", "number", "figure", "least", "most", "spread"), [
    # before 5.2 a killed process leaves no gap but the way of the messages
    (CRASH, {"client_version": MIDDLE, "timers": AT_ONCE}, 25, "convergence", 0, 0, None),
    (CRASH, {"client_version": OLD, "timers": AT_ONCE}, 25, "longest_gap", 0, 0, None),
    # since 5.2 what is missing to a second: most consumers last ran more than a second ago, a few did not
    (CRASH, {"timers": AT_ONCE}, 200, "longest_gap", 0, 1, (0, 0.0001)),
    # a join that nobody is told of takes at most one loop
    *((JOIN, {"client_version": v, "timers": NOBODY_IS_TOLD}, 100, "convergence", 0, 20, (20, 15)) for v in (NEW, MIDDLE, OLD)),
    *((JOIN, {"client_version": v, "timers": NOBODY_IS_TOLD}, 20, "longest_overlap", 0, 20, None) for v in (NEW, MIDDLE, OLD)),
    # heartbeat up to 30 s old, expiry 120 s, scan every 10 s, loop every 20 s
    (LOST, {"timers": NO_IDLE}, 150, "longest_gap", 90, 150, (105, 135)),
    (LOST, {"timers": NO_IDLE}, 20, "longest_overlap", 0, 0, None),
    # a socket that is found idle first is told to the group
    (LOST, {"timers": EARLY_IDLE}, 25, "longest_gap", 30, 62, None),
    # the lock was renewed at most 20 s before, and lives 60 s; then the retry of each version decides
    (CRASH, {"client_version": NEW, "orderly": True}, 40, "longest_gap", 40, 61, None),
    (CRASH, {"client_version": MIDDLE, "orderly": True}, 40, "longest_gap", 40, 60.5, None),
    (CRASH, {"client_version": OLD, "orderly": True}, 40, "longest_gap", 40, 80, None),
    # a clean end of an orderly consumer unlocks first
    *((LEAVE, {"client_version": v, "orderly": True}, 25, "longest_gap", 0, 1, None) for v in (NEW, MIDDLE, OLD)),
    # the delayed unlock of 20 s, and then up to one loop of 20 s
    (JOIN, {"client_version": OLD, **BUSY}, 40, "longest_gap", 20, 42, None),
    # since 5.2 a busy listener is overruled when the lock is twenty seconds old
    (JOIN, BLOCKED, 40, "longest_gap", 18, 45, None),
    # new queues are seen after a route poll and a loop
    (WIDER, {}, 60, "convergence", 0, 50, None),
    # a broker that ends leaves the route at once; for a silent one: registration up to 30 s old, expiry 120 s, scan
    # every 5 s, poll, loop, and 3 s a try
    (at("broker-down", "a"), {}, 40, "convergence", 0, 50, None),
    (at("broker-loss", "a"), {}, 40, "convergence", 90, 125 + 30 + 20 + 2 * 3, None),
    # notices that brokers send in batches come as much later
    (CRASH, {"timers": BATCHED}, 20, "convergence", 0, 16.1, (16.1, 1.1)),
    # lost pulls are found after two minutes and a loop
    (at("pull-stall", "c2"), {}, 25, "unread", 120.5, 140.5, None),
    (at("pull-stall", "c2"), {}, 10, "longest_gap", 0, 0, None),
])  # fmt: skip
def test_arithmetic_says_how_long_it_takes(
    event: Event, scenario: dict[str, Any], number: int, figure: str, least: float, most: float, spread: Any
) -> None:
    found = [length(report, figure) for report in trials(number, "c1 c2 c3", event, latency_us=0, **scenario)]
    assert least <= min(found)
    assert max(found) <= most
    if spread is not None:
        assert min(found) <= spread[0]
        assert max(found) >= spread[1]


@every_case(("version", "converged"), [(NEW, 1.0), (MIDDLE, 0.0), (OLD, 0.0)])
def test_a_joiner_takes_its_queues_at_once_or_a_second_after_it_was_made(version: str, converged: float) -> None:
    more = {"routes": [route(a=8)], "client_version": version, "latency_us": 0, "timers": AT_ONCE}
    for report in trials(25, "c1 c2 c3", JOIN, **more):
        took = takeovers(report, "c4")
        assert {each.at_ms for each in took} == {10_000 + converged * 1000}
        assert {(each.reads_from_ms or 0) - each.at_ms for each in took} == {0 if version == OLD else 500}


def test_the_offset_that_is_stored_is_at_most_one_interval_old() -> None:
    reports = trials(100, "c1 c2", CRASH, latency_us=0)
    ages = [each.redelivered_ms for report in reports for each in takeovers(report)]
    assert 0 <= min(ages) < 1000
    assert 4000 < max(ages) <= 5000


@every_case("consume_us", [0, 250_000])
def test_an_owner_that_gives_a_queue_up_stores_its_offset_but_not_what_its_listener_has(consume_us: int) -> None:
    for report in trials(10, "c1 c2", LEAVE, latency_us=0, consume_us=consume_us):
        assert {each.redelivered_ms for each in takeovers(report)} == {consume_us / 1000}


GROUP = side("a b c", route(x=8, y=8))


def after(before: Side, changes: Changes) -> Side:
    members = change_members(before.members.client_ids, changes)
    return side(" ".join(members), *(change_route(each, changes) for each in before.routes))


def test_a_change_is_events_of_one_moment_those_who_go_first() -> None:
    changes = Changes(
        add=("d", 1), remove=("b",), replace=(("a", "z"),), remove_brokers=("y",),
        add_brokers=(NewBroker("v"), NewBroker("w", 4)), read_queues=(QueueCount(9, "x"),),
        write_queues=(QueueCount(3),),
    )  # fmt: skip
    events = list(change_events(GROUP, after(GROUP, changes), changes))
    found = [" ".join(map(str, (e.kind, e.subject, e.read_queues, e.write_queues))) for e in events]
    assert found == [
        *("leave a None None", "leave b None None", "join d None None", "join placeholder-01 None None"),
        *("join z None None", "broker-down y None None", "broker-up v None None", "broker-up w 4 4"),
        "route-change T 9 None",
    ]
    assert {event.at_us for event in events} == {0}


@every_case(("before", "gap", "overlap"), [(side("a a b", route(x=6)), None, None), (side("a b", route(x=0)), 0, 0)])
def test_a_window_without_end_is_not_called_a_window(before: Side, gap: int | None, overlap: int | None) -> None:
    changes = Changes(add=("d",))
    other = after(before, changes)
    plan, consume_from = plan_rebalance("g", before, other), "CONSUME_FROM_LAST_OFFSET"
    found = convergence(plan, before, other, changes, GroupScenario(consume_from=consume_from), {})
    assert found is not None
    assert (found.longest_gap_ms, found.longest_overlap_ms) == (gap, overlap)


def reporting(*versions: str | None, language: str | None = "JAVA") -> ConsumerGroup:
    connections = tuple(Connection(f"c{n}", version=each, language=language) for n, each in enumerate(versions))
    return ConsumerGroup("g", HERE, views=(MemberView(connections, HERE),))


@every_case(("group", "given", "version", "codes"), [
    (None, None, "5.5.0", []),
    (None, "4.9", "4.9", []),
    (reporting(), None, "5.5.0", []),
    (reporting(None, "HIGHER_VERSION"), None, "5.5.0", []),
    (reporting("V4_9_7", "V4_9_7"), None, "4.9.7", []),
    (reporting("V4_9_7"), "5.2.0", "5.2.0", []),
    (reporting("V5_5_0", "V4_9_7"), None, "4.9.7", ["mixed-versions"]),
    (reporting("V5_5_0", "V5_5_0", "V5_1_4"), None, "5.5.0", ["mixed-versions"]),
    (reporting("V5_3_0", "V5_2_0"), None, "5.2.0", []),
    (reporting("V4_6_0", language="CPP"), None, "5.5.0", []),
])  # fmt: skip
def test_the_version_of_a_group(group: ConsumerGroup | None, given: str | None, version: str, codes: list[str]) -> None:
    found, findings = client_version(group, given)
    assert (found, [finding.code for finding in findings]) == (version, codes)


NAMES = ("5.5.0-stale-after-crash", "5.5.0-stale-after-leave", "5.5.0-orderly", "5.5.0-new-broker", "4.9.7")
LITE_PULL = "5.5.0-lite-pull"
FREEZES = ("5.5.0-freeze", "5.5.0-freeze-quiet", "5.5.0-freeze-short", "4.9.7-freeze")
TRIALS = 200
FEW = 100
"""Where measured times are to lie within those of the trials: the fewer, the narrower."""


@every_case("name", [*NAMES, *FREEZES, LITE_PULL])
def test_what_java_clients_went_through_is_what_the_simulation_foretells(name: str) -> None:
    recording = saved(name)
    comparisons = compared(recording, FEW)
    assert sum(len(each.changing) for each in comparisons) >= 20
    assert disagreements(comparisons) == []


@every_case(("name", "changed"), [
    ("5.5.0-stale-after-crash", {"version": "5.1.4"}),
    ("5.5.0-stale-after-leave", {"version": "4.9.7"}),
    ("5.5.0-orderly", {"orderly": False}),
    ("5.5.0-new-broker", {"version": "5.1.4"}),
    ("4.9.7", {"version": "5.5.0"}),
    ("5.5.0-freeze", {"version": "5.1.4"}),
    ("5.5.0-freeze-quiet", {"version": "4.9.7"}),
    ("4.9.7-freeze", {"version": "5.5.0"}),
    (LITE_PULL, {"lite_pull": False, "starts_us": (20_000,)}),
])  # fmt: skip
def test_other_rules_foretell_something_else(name: str, changed: dict[str, object]) -> None:
    recording = saved(name)
    told_otherwise = replace(recording, lived=replace(recording.lived, **changed))
    assert disagreements(compared(told_otherwise, FEW))


@every_case("name", NAMES)
def test_the_first_pull_comes_as_long_after_the_take_as_in_the_recording(name: str) -> None:
    recording = saved(name)
    lived = recording.lived
    orderly = lived.orderly
    scenario = GroupScenario(recording.events, client_version=lived.version, orderly=orderly, until_us=lived.end_us)
    report = simulate_group(lived.group, Members((), "AVG"), [lived.route, lived.retry_route], scenario)
    taken = [each for queue in report.queues if queue.queue.topic == lived.topic for each in queue.takeovers]
    foretold = sorted(us(each.reads_from_ms) - us(each.at_ms) for each in taken if each.reads_from_ms is not None)
    measured = sorted(recording.first_pulls_us)
    assert len(measured) >= 20
    assert foretold[0] - 50_000 < quantile(measured, 50) < foretold[-1] + 50_000
    assert foretold[0] - TOLERANCE_US < measured[0] <= measured[-1] < foretold[-1] + TOLERANCE_US


def test_a_member_that_asks_the_new_broker_first_is_told_that_it_is_alone() -> None:
    new_broker = compared(saved("5.5.0-new-broker"), TRIALS)[-1]
    assert (new_broker.event.kind, new_broker.event.subject) == ("broker-up", "broker-b")
    assert alone(new_broker.measured) == ["127.0.0.1@c1"]
    took_all = [alone(trial) for trial in new_broker.foretold]
    assert 0.35 * TRIALS < took_all.count(["127.0.0.1@c1"]) < 0.65 * TRIALS
    assert took_all.count([]) + took_all.count(["127.0.0.1@c1"]) == TRIALS
