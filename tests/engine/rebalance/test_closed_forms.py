"""Without latency only the clocks are left: the simulation must agree with arithmetic exactly."""

from typing import Any

from rmqlb.engine.plan.changes import Changes, NewBroker, QueueCount, change_members, change_route
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.rebalance.reported_clients import client_version
from rmqlb.engine.rebalance.simulate import change_events, convergence
from rmqlb.model.group import Connection, ConsumerGroup, MemberView
from rmqlb.model.group_scenario import SECOND_US, Event, Timers
from tests.engine.rebalance.groups import at, length, takeovers, trials
from tests.support.builders import HERE, route, side
from tests.support.mismatches import every_case

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
    (CRASH, {"orderly": True}, 20, "longest_overlap", 0, 0, None),
    # a clean end of an orderly consumer unlocks first
    *((LEAVE, {"client_version": v, "orderly": True}, 25, "longest_gap", 0, 1, None) for v in (NEW, MIDDLE, OLD)),
    # the delayed unlock of 20 s, and then up to one loop of 20 s
    (JOIN, {"client_version": OLD, **BUSY}, 40, "longest_gap", 20, 42, None),
    # since 5.2 a busy listener is overruled when the lock is twenty seconds old
    (JOIN, BLOCKED, 40, "longest_gap", 18, 45, None),
    (JOIN, BLOCKED, 40, "longest_overlap", 0, 0, None),
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
    assert [(event.kind, event.subject, event.read_queues, event.write_queues) for event in events] == [
        *(("leave", name, None, None) for name in ("a", "b")),
        *(("join", name, None, None) for name in ("d", "placeholder-01", "z")),
        ("broker-down", "y", None, None),
        ("broker-up", "v", None, None),
        ("broker-up", "w", 4, 4),
        ("route-change", "T", 9, None),
    ]
    assert {event.at_us for event in events} == {0}


@every_case(("before", "gap", "overlap"), [(side("a a b", route(x=6)), None, None), (side("a b", route(x=0)), 0, 0)])
def test_a_window_without_end_is_not_called_a_window(before: Side, gap: int | None, overlap: int | None) -> None:
    changes = Changes(add=("d",))
    other = after(before, changes)
    plan, consume_from = plan_rebalance("g", before, other), "CONSUME_FROM_LAST_OFFSET"
    found = convergence(plan, before, other, changes, states={}, client_version="5.5.0", consume_from=consume_from)
    assert found is not None
    assert (found.longest_gap_ms, found.longest_overlap_ms) == (gap, overlap)


def reporting(*versions: str | None, language: str | None = "JAVA") -> ConsumerGroup:
    connections = tuple(
        Connection(f"c{number}", version=version, language=language) for number, version in enumerate(versions)
    )
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
def test_the_version_given_or_reported(
    group: ConsumerGroup | None, given: str | None, version: str, codes: list[str]
) -> None:
    found, findings = client_version(group, given)
    assert (found, [finding.code for finding in findings]) == (version, codes)
