"""Named and random simulations of groups as they were recorded: a change of any owner, time, figure or step shows.

Recordings of real clients and closed forms prove the rules (`test_simulate.py`); `groups.txt` and `recorded.json` keep
what the rules make of them together. `--update-golden` records again.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest
from msgspec.structs import replace

from rmqlb import Event, GroupScenario, Members, MessageQueue, RebalanceResult, Timers, TopicRouteData, simulate_group
from rmqlb.engine.assignment.assign import assign
from rmqlb.engine.plan.changes import Edits, QueueCount, change_route
from rmqlb.engine.rebalance.simulate import GroupSimulation
from rmqlb.model.group import QueueState, States
from rmqlb.model.group_scenario import CONSUME_FROM, SECOND_US
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo
from rmqlb.model.simulate_rebalance import BAD_STATES
from tests.engine.rebalance.groups import at, simulate
from tests.support.builders import route
from tests.support.group_builders import us
from tests.support.mismatches import assert_recorded, assert_summaries_recorded, every_case

RECORDED = Path(__file__).with_name("recorded.json")
NUMBER = 400
VERSIONS = ("5.5.0", "5.3.1", "5.2.0", "5.1.4", "4.9.7")
KINDS = ("push", "pull", "lite-pull")
SDKS = ("java", "go", "cpp")
Case = tuple[Members, Sequence[TopicRouteData], GroupScenario, States, int]  # with the trial
JOIN, LEAVE = at("join", "c3"), at("leave", "c1")


def random_route(draw: random.Random, topic: str, brokers: dict[str, int], *, calm: bool) -> TopicRouteData:
    datas = tuple(QueueData(name, number, number + draw.choice((0, 0, 1)), 6) for name, number in brokers.items())
    slaves = {name: {1: f"{name}:2"} if draw.random() < 0.2 else {} for name in brokers}
    found = TopicRouteData(
        topic, datas, tuple(BrokerData("c", each, {0: f"{each}:1", **slaves[each]}) for each in brokers)
    )
    return static(found, 2) if topic == "U" and not calm and draw.random() < 0.3 else found


def static(topic: TopicRouteData, number: int) -> TopicRouteData:
    """The topic as a static one of four logical queues, of which broker a serves so many."""
    mapping = TopicQueueMappingInfo(topic.topic, "g", 4, "a", 1, {queue: queue for queue in range(number)})
    return replace(topic, topic_queue_mapping_by_broker={"a": mapping})


def random_events(
    draw: random.Random, client_ids: Sequence[str], brokers: Sequence[str], *, calm: bool
) -> Iterator[Event]:
    present, down, us = sorted(set(client_ids)), list[str](), 0
    for number in range(draw.randint(0, 5)):
        us += draw.choice((0, 1, 500_000, 3 * SECOND_US, 17_123_456, 60 * SECOND_US))
        up = [name for name in brokers if name not in down]
        kinds = ["join", "route-change", *["leave", "crash", "host-loss"] * bool(present)]
        if not calm:
            kinds += [
                "broker-up",
                *["broker-down", "broker-loss"] * bool(up),
                *["freeze", "pull-stall"] * bool(present),
            ]
        match kind := draw.choice(kinds):
            case "join":
                yield Event(kind, us, f"n{number}", strategy=None if calm else draw.choice((None, "AVG_BY_CIRCLE")))
            case "leave" | "crash" | "host-loss" | "freeze" | "pull-stall":
                yield Event(kind, us, client_id := present.pop(0))
                if kind == "freeze" and draw.random() < 0.7:
                    yield Event("unfreeze", us + draw.choice((20, 130, 200)) * SECOND_US, client_id)
            case "broker-down" | "broker-loss":
                down.append(draw.choice(up))
                for_good = kind == "broker-down" and draw.random() < 0.2
                yield Event(kind, us, down[-1], with_slaves=draw.random() < 0.3, for_good=for_good)
            case "broker-up":
                is_new = not down or draw.random() < 0.2
                queues: dict[str, Any] = {"read_queues": draw.randint(1, 3), "write_queues": 2} if is_new else {}
                yield Event("broker-up", us, f"new{number}" if is_new else down.pop(0), **queues)
            case _:
                broker = draw.choice((None, "a"))
                yield Event("route-change", us, "T", broker_name=broker, read_queues=draw.randint(1, 6))


def random_case(number: int) -> Case:
    """Each third case is calm: push consumers in Java that know each topic, and brokers that never fail."""
    draw, calm = random.Random(number), not number % 3
    ids = [f"c{number}" for number in range(draw.randint(1, 5))]
    brokers = {name: draw.randint(1, 4) for name in "abc"[: draw.randint(1, 3)]}
    routes = [random_route(draw, topic, brokers, calm=calm) for topic in ("T", "U")[: draw.randint(1, 2)]]
    queues = [queue for each in routes for queue in each.subscribe_queues()]
    kind: Any = "push" if calm else draw.choice(["push"] * 5 + ["pull", "lite-pull", "assign"])
    odd = {"notify_batch_us": 15, "rebalance_wait_us": 5, "nameserver_scan_us": 0, "socket_idle_us": 60}
    known = draw.choice((0, 1, 1))
    scenario = GroupScenario(
        tuple(random_events(draw, ids, list(brokers), calm=calm)),
        client_version=draw.choice(VERSIONS),
        orderly=kind == "push" and draw.random() < 0.4,
        broadcasting=not calm and draw.random() < 0.15,
        timers=Timers(**{name: seconds * SECOND_US for name, seconds in odd.items() if draw.random() < 0.1}),
        latency_us=draw.choice((0, 1000, 40_000)),
        consume_us=draw.choice((0, 1000, 250_000, 3 * SECOND_US)),
        rates={queue: float(draw.choice((0, 1, 50))) for queue in queues if draw.random() < known},
        consume_from=draw.choice(CONSUME_FROM[:3]),
        until_us=None if calm else draw.choice((None, None, 200 * SECOND_US)),
        all_new=draw.random() < 0.2,
        seed=draw.randint(1, 50),
        consumer_type=kind,
    )
    members = Members(
        tuple(ids if calm else ids + ids[: draw.random() < 0.1]),
        draw.choice(("AVG", "AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")),
        sdk_of={client_id: draw.choice(SDKS) for client_id in ids} if not calm and draw.random() < 0.3 else {},
        subscribed={ids[-1]: frozenset("U")} if not calm and draw.random() < 0.1 else {},
    )
    states = {
        queue: QueueState(broker_offset=100, consumer_offset=draw.choice((0, 40, 100, -1)), min_offset=draw.choice((None, 50)))
        for queue in queues
        if draw.random() < 0.6
    }  # fmt: skip
    return members, routes, scenario, states, draw.randint(0, 5)


def simulated(case: Case, *, explain: bool = True) -> RebalanceResult:
    members, routes, scenario, states, trial = case
    return simulate_group("g", members, routes, scenario, states=states, trial=trial, explain=explain)


def summary(number: int) -> str:
    report = simulated(random_case(number))
    f, queues = report.figures, report.queues
    assert f.taken == sum(len(line.takeovers) for line in queues)
    for line in queues:
        assert (line.intervals[0].from_us, line.intervals[-1].to_us) == (0, report.end_us)
        for one, then in pairwise(line.intervals):
            assert one.from_us < one.to_us == then.from_us < then.to_us
            assert (one.state, one.owners) != (then.state, then.owners)
        for each in line.intervals:
            expected = {0: "unassigned", 1: "one"}.get(len(each.owners), "duplicate-owners")
            assert each.state in (expected, "gone", "outage")
        for kind, state in BAD_STATES.items():
            total = sum(each.to_us - each.from_us for each in line.intervals if each.state == state)
            assert us(getattr(line, f"total_{kind}_ms")) == total * (kind != "overlap" or not report.broadcasting)
        for taken in line.takeovers:
            assert 0 <= taken.at_ms <= min(taken.reads_from_ms or report.end_ms, report.end_ms)
            assert taken.redelivered_ms >= 0
    whole = msgspec.json.encode(report, order="sorted")
    return f"{f.taken} taken, {f.rebalances} rebalances, {len(report.steps or ())} steps: {crc32(whole):08x}"


def test_random_groups_are_as_recorded(request: pytest.FixtureRequest) -> None:
    assert_summaries_recorded(RECORDED, [summary(number) for number in range(NUMBER)], request)


def final_owners(
    members: Members, routes: Sequence[TopicRouteData], events: Sequence[Event]
) -> dict[MessageQueue, object]:
    ids = Counter(members.client_ids)
    for event in sorted(events, key=lambda event: event.at_us):
        if event.kind == "route-change":
            change = Edits(read_queues=(QueueCount(event.read_queues or 0, event.broker_name),))
            routes = [change_route(each, change) if each.topic == event.subject else each for each in routes]
        else:
            ids[event.subject] += 1 if event.kind == "join" else -1
    after = replace(members, client_ids=tuple(ids.elements()))
    return {queue: owners for topic in routes for queue, owners in assign(topic, after).owners.items()}


def test_calm_groups_end_as_plan_rebalance_plans_and_orderly_consumers_never_share() -> None:
    """Since 5.2.0. Before, a delayed unlock may free a lock that its client has taken anew in the meantime."""
    for number in range(0, NUMBER, 3):
        case = random_case(number)
        report, planned = simulated(case), final_owners(case[0], case[1], case[2].events)
        assert report.figures.convergence_ms is not None
        for line in report.queues:
            owners = line.intervals[-1].owners, line.intervals[-1].state == "gone"
            assert owners == (planned.get(line.queue, ()), line.queue not in planned), number
        orderly = replace(case[2], orderly=True, client_version="5.2.0")
        assert simulated((*case[:2], orderly, *case[3:])).figures.total_overlap_ms == 0


@every_case("number", range(60))
def test_equal_input_gives_equal_reports(number: int) -> None:
    members, routes, scenario, states, trial = case = random_case(number)
    dice, first = random.Random(number), simulated(case, explain=False)

    def shuffled(items: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(dice.sample(items, len(items)))

    again = GroupSimulation("g", members, routes, scenario, states=states)
    again.run(trial + 1)
    assert again.run(trial) == first
    others = [
        replace(each, queue_datas=shuffled(each.queue_datas), broker_datas=shuffled(each.broker_datas))
        for each in shuffled(routes)
    ]
    explained = simulated((members, others, scenario, states, trial))
    assert explained.steps is not None
    assert replace(explained, steps=None) == first


LOST_AND_JOINED = at("broker-loss", "b"), at("join", "c3", 12)
"""The NameServers name the lost broker until two minutes have passed, so that the consumer that joins queries it."""
RETURNS = at("broker-down", "b"), at("broker-up", "b", 10.5)
FROZEN = at("freeze", "c2"), at("unfreeze", "c2", 180)
MINUTE: dict[str, Any] = {"until_us": 60 * SECOND_US}


def kinds_of_consumers() -> Iterator[tuple[str, RebalanceResult]]:
    for kind in KINDS:
        yield f"{kind}, another joins", simulate("c1 c2", JOIN, consumer_type=kind, explain=True)
        more: dict[str, Any] = {"consumer_type": kind, "until_us": 300 * SECOND_US}
        # `updateProcessQueueTableInRebalance` looks at the last pull of a push consumer.
        yield f"{kind}, pulls stall", simulate("c1 c2", at("pull-stall", "c1"), **more)
        # A DefaultMQPullConsumer takes a queue without a request for its offset.
        yield (
            f"{kind}, one joins that cannot query offsets",
            simulate("c1", *LOST_AND_JOINED, consumer_type=kind, **MINUTE),
        )
    yield "one assigns itself queues", simulate("c1 c2 c3", at("leave", "c3"), consumer_types={"c2": "assign"})
    for sdk in SDKS:
        yield f"{sdk}, another joins", simulate("c1 c2", JOIN, sdk=sdk, explain=True)
        yield f"{sdk}, one leaves", simulate("c1 c2", LEAVE, sdk=sdk, explain=True)
        yield f"{sdk}, queues are added", simulate("c1", at("route-change", "T", read_queues=8), sdk=sdk)
        yield f"{sdk}, orderly, another joins", simulate("c1 c2", JOIN, sdk=sdk, orderly=True, explain=True)
        yield f"{sdk}, a broker forgets the group", simulate("c1", *RETURNS, sdk=sdk, trial=1)
    yield "go, and one in Java joins", simulate("c1 c2", JOIN, sdk="go", sdk_of={"c3": "java"}, orderly=True)


def brokers_and_locks() -> Iterator[tuple[str, RebalanceResult]]:
    for version in VERSIONS:
        more: dict[str, Any] = {"client_version": version, "orderly": True}
        # Since 5.2.0 a client sends a heartbeat on a new connection (`onChannelActive`).
        yield f"{version}, a broker returns", simulate("c1 c2", *RETURNS, client_version=version, explain=True)
        yield (
            f"{version}, orderly, one joins while a broker is lost",
            simulate("c1", *LOST_AND_JOINED, **more, **MINUTE),
        )
        yield f"{version}, orderly, the listener is busy", simulate("c1 c2", JOIN, consume_us=300 * SECOND_US, **more)
        # Until 5.3.1 a queue is taken with a lock that nobody renews or gives back.
        yield f"{version}, orderly and broadcasting", simulate("c1", JOIN, broadcasting=True, **more)
        yield f"{version}, one continues after a freeze", simulate("c1 c2 c3", *FROZEN, client_version=version, trial=3)
    two, four = route(a=4, b=4), route(a=4)
    datas = (
        replace(each, broker_addrs={**each.broker_addrs, 1: f"{each.broker_name}s:1"}) for each in two.broker_datas
    )
    slaves = [replace(two, broker_datas=tuple(datas))]
    down, up = at("broker-down", "b", 30), at("broker-up", "b", 300)
    yield "a broker is down for a while", simulate("c1 c2 c3", down, up, explain=True)
    yield "only a master is down", simulate("c1 c2", down, routes=slaves)
    # A queue is locked at the master only.
    yield (
        "orderly, one joins while a master is down",
        simulate("c1 c2", down, at("join", "c3", 100), up, routes=slaves, orderly=True),
    )
    timers = Timers(socket_idle_us=60 * SECOND_US, pull_hold_us=1, channel_expiry_us=10**12)
    # A master hears the pulls of an owner, a slave its heartbeats.
    yield "a host is lost", simulate("c1 c2", at("host-loss", "c2"), routes=slaves, timers=timers, explain=True)
    lost_twice = at("broker-loss", "a"), at("broker-up", "a", 300), at("broker-loss", "a", 310)
    yield "a broker is lost twice", simulate("c1", *lost_twice, until_us=600 * SECOND_US, explain=True)
    yield "orderly, a frozen consumer returns", simulate("c1 c2 c3", *FROZEN, orderly=True, explain=True)
    yield "a frozen consumer never returns", simulate("c1 c2 c3", FROZEN[0], trial=1)
    for number, what in ((4, "is served"), (2, "is half served")):
        topics = [static(four, number)]
        yield f"a static topic {what}", simulate("c1 c2", JOIN, at("leave", "c1", 80), routes=topics, orderly=True)
    yield "broadcasting", simulate("c1 c2", JOIN, broadcasting=True, explain=True)


def lines_of(report: RebalanceResult) -> Iterator[str]:
    f = report.figures
    lengths = ", ".join(f"{name} {getattr(f, f'longest_{name}_ms')}" for name in ("gap", "overlap", "outage"))
    yield f"converged after {f.convergence_ms} ms; {lengths}, unread {f.unread_ms}; {f.taken} taken, {f.rebalances} rebalances"
    for line in report.queues:
        spans = (" ".join((str(each.from_ms), each.state, *each.owners)) for each in line.intervals)
        yield f"  {line.broker_name}{line.queue_id}: {', '.join(spans)}"
        yield from (f"    {each.client_id} at {each.at_ms}, reads at {each.reads_from_ms}" for each in line.takeovers)
    yield from (f"  {step.at_ms} {step.who}: {step.text}" for step in (report.steps or ())[:40])


def test_named_groups_are_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {name: lines_of(report) for name, report in (*kinds_of_consumers(), *brokers_and_locks())}
    assert_recorded(RECORDED.with_name("groups.txt"), answers, request)
