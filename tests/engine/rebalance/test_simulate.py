import math
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import MessageQueue, UsageError
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.kernel import nearest_rank
from rmqlb.engine.plan.changes import Edits, NewBroker, QueueCount, change_members, change_route
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.rebalance.profile import client_version, consumer_types
from rmqlb.engine.rebalance.simulate import change_events, convergence, simulate_group, simulate_group_trials, summarise
from rmqlb.model.group import Connection, ConsumerGroup, ConsumerType, MemberReport, MemberView, QueueState
from rmqlb.model.group_scenario import SECOND_US, TIMER_NAMES, Event, GroupScenario, Timers
from rmqlb.model.route import BrokerData
from tests.engine.rebalance.groups import at, length, line, simulate, takeovers, trials
from tests.support.builders import HERE, route, side
from tests.support.group_builders import us
from tests.support.mismatches import every_case
from tests.support.rebalance_comparison import TOLERANCE_US, alone, compared, disagreements
from tests.support.recorded_groups import saved


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
    (GroupScenario(rates={MessageQueue("T", "a", 0): -1.0}), "-1.0 messages per second is not a possible rate"),
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


def test_a_member_that_does_not_subscribe_takes_a_share_that_nobody_reads() -> None:
    members = Members(("c1", "c2"), "AVG", subscribed={"c2": frozenset({"U"})})
    topics = route("T", a=4), route("U", a=4)
    report = simulate_group("g", members, topics, GroupScenario((at("join", "c3"),)))
    end = {(each.queue.topic, each.queue.queue_id): each.intervals[-1].owners for each in report.queues}
    assert end["T", 2] == ()
    assert end["U", 2] == ("c2",)


@pytest.mark.parametrize("scenario", [{"consumer_type": "pull"}, {"consumer_types": {"c1": "lite-pull"}}])
def test_only_push_consumers_are_orderly(scenario: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="only push consumers have an orderly listener"):
        simulate("c1 c2", at("join", "c3"), orderly=True, **scenario)


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


NEW, MIDDLE, OLD = "5.5.0", "5.1.4", "4.9.7"
NOBODY_IS_TOLD = Timers(notify_batch_us=10**12)
NO_IDLE = Timers(socket_idle_us=10**12)
EARLY_IDLE = Timers(socket_idle_us=60 * SECOND_US, pull_hold_us=1)
AT_ONCE = Timers(start_us=0, connect_us=0, close_us=0)
CRASH, JOIN, LEAVE, LOST = at("crash", "c2"), at("join", "c4"), at("leave", "c2"), at("host-loss", "c2")
FROZEN = at("freeze", "c2"), at("unfreeze", "c2", 180)
DOWN, UP = at("broker-down", "b", 30), at("broker-up", "b", 300)
BATCHED = Timers(notify_batch_us=15 * SECOND_US, rebalance_wait_us=3600 * SECOND_US)
BUSY = {"orderly": True, "consume_us": 800_000}
BLOCKED = {"orderly": True, "consume_us": 3600 * SECOND_US}
KEPT = {"orderly": True, "consume_us": 300 * SECOND_US}
WIDER = at("route-change", "T", read_queues=6, write_queues=6)
TWO = route(a=4, b=4)
SLAVES = replace(TWO, broker_datas=tuple(BrokerData("c", each, {0: f"{each}:1", 1: f"{each}:2"}) for each in "ab"))


# What happens, how often it is simulated, the figure, and its bounds in seconds; then some trials must be below and
# above two others.
@every_case(("events", "scenario", "number", "figure", "least", "most", "spread"), [
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
    # `RebalanceImpl.buildProcessQueueTableByBrokerName` passes over dropped queues from 5.0.0 on: before, a listener
    # keeps its lock as long as it likes
    (JOIN, {"client_version": "4.9.8", **KEPT}, 4, "longest_gap", 140, 999, None),
    *((JOIN, {"client_version": v, **KEPT}, 4, "longest_gap", 0, 61, None) for v in ("5.0.0", MIDDLE)),
    # brokers forget a frozen consumer as a lost host; then each of the others needs a loop
    (FROZEN, {}, 60, "longest_gap", 90, 150.1, (105, 135)),
    (FROZEN, {"orderly": True}, 10, "longest_gap", 90, 150.1, None),
    # it has its share again at once, except that a client since 5.2 may forget a connection: then a broker names it
    # twice for two minutes
    *((FROZEN, {"client_version": v}, 40, "convergence", 170, 170.1, None) for v in (MIDDLE, OLD)),
    (FROZEN, {}, 40, "convergence", 170, 170 + 122, (171, 290)),
    # Go and C++ rebalance and pull at once when a consumer joins, and see new queues after a poll and an interval
    *((JOIN, {"sdk": sdk}, 20, "convergence", 0, 0.2, None) for sdk in ("go", "cpp")),
    *((WIDER, {"sdk": sdk}, 40, "convergence", 0, 30 + s + 0.1, (30, 25 + s / 2)) for sdk, s in (("go", 20), ("cpp", 10))),
    # a Go consumer does not unlock: the broker frees a lock 60 s after its last renewal, and a loop comes after it
    (JOIN, {"sdk": "go", "orderly": True}, 40, "longest_gap", 40, 85, None),
    # consumers read from a slave after a route poll and a second; the queues keep their owners
    (DOWN, {"routes": [SLAVES]}, 20, "longest_outage", 0, 31.5, (15, 25)),
    (DOWN, {"routes": [SLAVES]}, 20, "convergence", 0, 0, None),
    ((DOWN, UP), {}, 5, "longest_outage", 270, 270, None),
])  # fmt: skip
def test_arithmetic_says_how_long_it_takes(
    events: Any, scenario: dict[str, Any], number: int, figure: str, least: float, most: float, spread: Any
) -> None:
    happens = (events,) if isinstance(events, Event) else events
    found = [length(report, figure) for report in trials(number, "c1 c2 c3", *happens, latency_us=0, **scenario)]
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


def after(before: Side, changes: Edits) -> Side:
    members = change_members(before.members.client_ids, changes)
    return side(" ".join(members), *(change_route(each, changes) for each in before.routes))


def test_a_change_is_events_of_one_moment_those_who_go_first() -> None:
    changes = Edits(
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
    changes = Edits(add=("d",))
    other = after(before, changes)
    found = convergence(plan_rebalance("g", before, other), before, other, changes, GroupScenario(), {})
    assert found is not None
    assert (found.longest_gap_ms, found.longest_overlap_ms) == (gap, overlap)


def reporting(*versions: str | None, language: str | None = "JAVA") -> ConsumerGroup:
    connections = tuple(Connection(f"c{n}", version=each, language=language) for n, each in enumerate(versions))
    return ConsumerGroup("g", HERE, views=(MemberView(connections, HERE),))


def consuming(consume_type: str | None, **reported: ConsumerType | None) -> ConsumerGroup:
    reports = {client_id: MemberReport(client_id, consumer_type=kind) for client_id, kind in reported.items()}
    return replace(reporting(None, None), consume_type=consume_type, reports=reports)


def test_a_member_says_which_consumer_it_is_and_brokers_only_that_it_pulls() -> None:
    for silent in (None, consuming(None), consuming("CONSUME_PASSIVELY")):
        assert consumer_types(silent) == ("push", {}, ())
    usual, types, findings = consumer_types(consuming("CONSUME_ACTIVELY", c0="pull"))
    assert (usual, types) == ("lite-pull", {"c0": "pull"})
    assert [(each.code, each.message.split()[0]) for each in findings] == [("consumer-type-unknown", "c1")]
    _, types, findings = consumer_types(consuming("CONSUME_ACTIVELY", c0="pull", c1="assign"))
    assert ([each.code for each in findings], types) == (["assigns-itself"], {"c0": "pull", "c1": "assign"})


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
FEW = 60
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
    assert disagreements(compared(told_otherwise, FEW // 4))


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
    assert foretold[0] - 50_000 < nearest_rank(measured, 50) < foretold[-1] + 50_000
    assert foretold[0] - TOLERANCE_US < measured[0] <= measured[-1] < foretold[-1] + TOLERANCE_US


def test_a_member_that_asks_the_new_broker_first_is_told_that_it_is_alone() -> None:
    new_broker = compared(saved("5.5.0-new-broker"), TRIALS)[-1]
    assert (new_broker.event.kind, new_broker.event.subject) == ("broker-up", "broker-b")
    assert alone(new_broker.measured) == ["127.0.0.1@c1"]
    took_all = [alone(trial) for trial in new_broker.foretold]
    assert 0.35 * TRIALS < took_all.count(["127.0.0.1@c1"]) < 0.65 * TRIALS
    assert took_all.count([]) + took_all.count(["127.0.0.1@c1"]) == TRIALS
