"""Named and random sends as they were recorded: a change of any attempt, count, time or finding shows.

The vectors and recordings of real clients prove the rules; `sends.txt` and `recorded.json` keep what the rules make of
them together. `--update-golden` records again.
"""

import random
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest
from msgspec.structs import replace

from rmqlb import Failure, Latency, Moment, Reaction, RmqlbError, SendReport, SendScenario, simulate_send
from rmqlb.engine.send.profile import PROFILES, sdk, simulated
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.send_scenario import STATUSES, Selector
from tests.engine.send.scenarios import ERROR, READ_ONLY, REFUSED, THREE, TIMEOUT, TWO, S, sent
from tests.support.builders import route
from tests.support.mismatches import assert_recorded, assert_summaries_recorded

RECORDED = Path(__file__).with_name("recorded.json")
NUMBER = 500
CODES = {1: "SYSTEM_ERROR", 2: "SYSTEM_BUSY", 13: "MESSAGE_ILLEGAL", 16: "NO_PERMISSION", 1500: "GO_AWAY"}
VERSIONS = [".".join(map(str, profile.since)) for profile in PROFILES]
FIELDS = ("attempts", "lost_messages", "exceptions", "queues", "brokers", "totals", "failures", "timeline", "findings")


def random_route(draw: random.Random) -> TopicRouteData:
    names = [f"b{number}" for number in range(draw.randint(1, 5))]
    datas = [
        QueueData(name, draw.randint(1, 5), draw.choice((0, 1, 3, 4, 5)), perm=draw.choice((6, 6, 6, 6, 4, 2)))
        for name in sorted(names, key=lambda _: draw.random())
    ]
    brokers = (BrokerData("c", name, {0 if draw.random() < 0.95 else 1: f"{name}:1"}) for name in names)
    order = ";".join(f"{name}:2" for name in names) if draw.random() < 0.06 else None
    return TopicRouteData("T", tuple(datas), tuple(brokers), order)


def random_reaction(draw: random.Random, *, statuses: bool) -> Reaction:
    kind: Any = draw.choice(("refused", "refused", "timeout", "slow", "status", "code", "code", "read-only"))
    if kind == "refused" or (kind == "status" and not statuses):
        return Reaction("refused", "refused", 0, draw.choice((0, 1000, 5000)))
    if kind == "slow":
        return Reaction("slow", "slow", 0, draw.choice((60_000, 600_000, 2_500_000, 3_500_000)))
    if kind == "code":
        number = draw.choice(list(CODES))
        return Reaction("code", CODES[number], number)
    return Reaction(kind, draw.choice(STATUSES) if kind == "status" else kind)


def random_failure(draw: random.Random, names: list[str], *, statuses: bool) -> Failure:
    start = Moment(us=draw.choice((0, 5000, 1_000_000, 30_000_000, 31_000_000)))
    end = None if draw.random() < 0.5 else Moment(us=(start.us or 0) + draw.choice((1000, 700_000, 40_000_000)))
    if draw.random() < 0.25:
        first = draw.randint(1, 60)
        start, end = Moment(message=first), draw.choice((None, Moment(message=first + draw.randint(1, 100))))
    notices = draw.choice((None, 0, 0, 2_000_000, 120_000_000))
    return Failure(draw.choice(names), random_reaction(draw, statuses=statuses), start, end, notices)


def every_seventh_throws(queues: list[MessageQueue], key: int) -> MessageQueue | None:
    if key % 7 == 0:
        raise ValueError(key)
    return queues[key % len(queues)] if key % 5 else None


def random_scenario(draw: random.Random, route: TopicRouteData) -> SendScenario:
    names = [data.broker_name for data in route.queue_datas]
    name = "java" if draw.random() < 0.7 else draw.choice(simulated())
    java = name == "java"
    rate = draw.choice((None, None, Fraction(10), Fraction(100), Fraction(7, 3), Fraction(1000)))
    modes = ("sync", "sync", "async", "oneway") if java else ("sync", "async")
    mode: Any = draw.choice(modes) if rate is not None and name != "cpp" else "sync"
    messages = draw.choice((5, 40, 200, 700))
    selectors = (Selector("random"), Selector("machine-room"), Selector("hash", (5, -7, 99)), every_seventh_throws)
    chosen = java and mode == "sync" and draw.random() < 0.12
    latencies = (Latency("1ms", (1000,)), Latency("x", (1000, 60_000, 700_000)), Latency("y", (200,)))
    return SendScenario(
        client_version=draw.choice(VERSIONS),
        mode=mode,
        latency_fault=java and draw.random() < 0.6,
        detector=draw.random() < 0.3,
        threads=draw.choice((1, 1, 1, 2, 5)),
        messages=messages,
        rate=rate,
        duration_us=draw.choice((None, 1_000_000, 45_000_000)),
        retries=draw.choice((0, 1, 2, 2, 5)),
        timeout_ms=draw.choice((3000, 3000, 500, 100)),
        timeout_per_request_ms=draw.choice((None, None, 200)),
        retry_not_store_ok=draw.random() < 0.3,
        failures=tuple(
            random_failure(draw, names, statuses=name in ("java", "go")) for _ in range(draw.choice((0, 1, 1, 1, 2, 3)))
        ),
        latencies={names[0]: Latency("z", (300, 900_000))} if draw.random() < 0.1 else {},
        latency=draw.choice(latencies),
        exclude=frozenset(names[:1]) if draw.random() < 0.1 and len(names) > 1 else frozenset(),
        seed=draw.randint(1, 99),
        first_poll_us=draw.choice((30_000_000, None, 0, 10_000_000)),
        poll_us=draw.choice((30_000_000, 1_000_000)),
        selector=draw.choice(selectors) if chosen else None,
        sdk=name,
        proxy_mode=draw.choice(("local", "cluster")),
    )


def summary(number: int) -> str:
    draw = random.Random(number)
    route = random_route(draw)
    scenario = random_scenario(draw, route)
    try:
        report = simulate_send(route, scenario, trial=draw.randint(0, 3), trace=True)
    except RmqlbError as error:
        return f"{error.code}"
    whole = msgspec.json.encode([getattr(report, field) for field in FIELDS], order="sorted")
    whole = re.sub(rb"test_recorded\.py:\d+", b"", whole)  # a finding names the line in which a selector throws
    totals, attempts = report.totals, report.attempts or ()
    assert totals.messages == totals.stored + totals.lost
    assert totals.lost == sum(totals.lost_by.values())
    assert not report.timeline or totals.lost == sum(each.lost for each in report.timeline)
    for tallies in (report.queues, report.brokers):
        assert totals.attempts == sum(tally.attempts for tally in tallies) == len(attempts)
    assert totals.failed_attempts == sum(tally.failed for tally in report.queues)
    assert totals.retries == sum(attempt.attempt > 1 for attempt in attempts)
    assert [each.from_ms for each in report.timeline[1:]] == [each.to_ms for each in report.timeline[:-1]]
    return f"{totals.messages} sent, {totals.attempts} attempts, {totals.lost} lost: {crc32(whole):08x}"


def test_random_scenarios_are_as_recorded(request: pytest.FixtureRequest) -> None:
    ours = [summary(number) for number in range(NUMBER)]
    assert_summaries_recorded(RECORDED, ours, request)
    assert sum("sent" in each for each in ours) > 0.75 * NUMBER


A_SECOND: dict[str, Any] = {"rate": Fraction(1), "messages": 40}
EVERY, GONE = "abc", Failure("b", REFUSED, Moment(us=0), notices_us=0)
KEYS = {
    "gone": GONE,
    "never noticed": replace(GONE, notices_us=None),
    "back before it is noticed": replace(GONE, notices_us=5 * S, end=Moment(us=4 * S)),
    "noticed before it is back": replace(GONE, notices_us=3 * S, end=Moment(us=4 * S)),
    "gone from message 5 on": replace(GONE, start=Moment(message=5)),
    "answers with an error": Failure("b", ERROR),
    "read-only": Failure("b", READ_ONLY),
}


def sends_by_version() -> Iterator[tuple[str, SendReport]]:
    for version in VERSIONS:
        for number in (1, 2, 13, 14, 205, 1500):
            failure = Failure("a", Reaction("code", "SOME_CODE", number))
            yield f"{version}, code {number}", sent(failure, client_version=version, messages=1)
        for mode in ("sync", "async", "oneway"):
            for reaction in (REFUSED, TIMEOUT):
                fields: dict[str, Any] = {"client_version": version, "mode": mode, "messages": 2, "latency_fault": True}
                failures = (Failure(name, reaction) for name in EVERY)
                yield f"{version}, {mode}, every broker {reaction.kind}", sent(*failures, rate=Fraction(1), **fields)
    # `whichItemWorst` is a `ThreadLocalIndex`: each thread's starts at random, and other threads do not move it.
    for version, mode in product(("4.7.1", "4.9.7", "5.1.3"), ("sync", "async", "oneway")):
        fields = {"client_version": version, "mode": mode, "messages": 24, "rate": Fraction(10), "retries": 0}
        isolated = (Failure(name, REFUSED) for name in "abcd")
        report = sent(*isolated, topic=route(a=1, b=1, c=1, d=1), threads=2, latency_fault=True, **fields)
        yield f"{version}, {mode}, two threads of which each takes the better half in turn", report
        # The index belongs to the fault table; a new queue list leaves it where it is.
        isolated = (Failure(name, REFUSED, notices_us=0 if name == "d" else None) for name in "abcd")
        report = sent(*isolated, topic=route(a=1, b=1, c=1, d=1), latency_fault=True, first_poll_us=1_050_000, **fields)
        yield f"{version}, {mode}, d leaves the route", report


def java_sends() -> Iterator[tuple[str, SendReport]]:
    yield "a timeout uses up the deadline", sent(Failure("a", TIMEOUT), messages=1, overshoot_us=1000)
    slow = Reaction("slow", "slow", 0, 2_001_000)  # an async answer counts until the table is scanned
    for reaction in (replace(slow, cost_us=2_000_000), slow):
        fields: dict[str, Any] = {"mode": "async", "timeout_ms": 300, "messages": 1, "rate": Fraction(1)}
        yield f"async, an answer after {reaction.cost_us / 1000} ms", sent(Failure("a", reaction), **fields)
    for notices_s, polls in ((0, (30, 30)), (40, (30, 30)), (None, (30, 30)), (0, (2, 5))):
        failure = Failure("a", REFUSED, Moment(us=31 * S), notices_us=None if notices_s is None else notices_s * S)
        fields = {"first_poll_us": polls[0] * S, "poll_us": polls[1] * S, "messages": 100, "rate": Fraction(1)}
        yield f"noticed after {notices_s} s, polls at {polls} s", sent(failure, **fields)
    down = [Failure(name, REFUSED, Moment(us=5 * S), notices_us=0) for name in EVERY]
    yield "the list stays when every broker is gone", sent(*down, **A_SECOND)
    # From the poll at 30 s; an empty list requests the route for each message.
    read_only = [Failure(name, READ_ONLY, Moment(us=5 * S), Moment(us=45_500_000)) for name in EVERY]
    yield "the list empties when every broker is read-only", sent(*read_only, **A_SECOND | {"messages": 60})
    # Without an address the attempt fails on the client's own side; only clients before 5.1.4 isolate for that.
    fields = {"topic": replace(THREE, order_topic_conf="a:2;b:2"), "retries": 0, "latency_fault": True, **A_SECOND}
    yield "an order topic keeps the queues of a dead broker", sent(Failure("a", REFUSED, notices_us=0), **fields)
    for messages in (40, 700):  # the refusal isolates for ten minutes, and no address for ten minutes more
        fields |= {"client_version": "5.1.3", "messages": messages}
        yield f"the same in 5.1.3, {messages} messages", sent(Failure("a", REFUSED, notices_us=0), **fields)
    for name, failure in KEYS.items():
        fields = {"messages": 10, "selector": Selector("hash", (3,)), "start_at": None}
        yield f"keys, b is {name}", sent(failure, topic=TWO, **fields)
    yield "keys of an order topic", sent(GONE, topic=replace(TWO, order_topic_conf="a:2;b:2"), **fields)
    for selector in ("random", "machine-room"):
        yield f"selector {selector}", sent(messages=2, selector=Selector(selector))


def sdk_sends() -> Iterator[tuple[str, SendReport]]:
    for name in simulated():
        given: dict[str, Any] = {"sdk": name, "retries": sdk(name).profile.retries, "topic": TWO, "rate": Fraction(1)}
        yield f"{name}, a refuses", sent(Failure("a", REFUSED), **given, messages=5)
        # Heartbeats come at 1 s, 11 s and 21 s; at the last one the broker is back.
        yield f"{name}, a refuses for 15 s", sent(Failure("a", REFUSED, end=Moment(us=15 * S)), **given, messages=30)
        # A Proxy says 10 ms, doubled with each attempt; Java counts from the next attempt, C++ from the last one.
        for reaction in (
            Reaction("code", "SYSTEM_BUSY", 2),
            Reaction("code", "TOPIC_NOT_EXIST", 17),
            Reaction("code", "INVALID", 29),
        ):
            yield f"{name}, {reaction.name}", sent(*(Failure(broker, reaction) for broker in "ab"), **given, messages=1)
        given |= {"messages": 60, "first_poll_us": 10 * S, "poll_us": 10 * S}
        for proxy_mode in ("local", "cluster"):  # a Proxy by itself asks for the route, whatever the SDK does
            yield (
                f"{name}, a is gone, {proxy_mode}",
                sent(Failure("a", REFUSED, notices_us=0), **given, proxy_mode=proxy_mode),
            )


def lines_of(report: SendReport) -> Iterator[str]:
    totals, attempts = report.totals, dict[str, list[str]]()
    lost = ", ".join(f"{number} by {reason}" for reason, number in totals.lost_by.items())
    yield f"{totals.messages} messages, {totals.attempts} attempts, at most {totals.longest_send_ms} ms, lost: {lost or 0}"
    for a in (report.attempts or ())[:24]:
        attempts.setdefault(f"{a.message} of {a.thread}", []).append(
            f"{a.broker_name}{a.queue_id} {a.outcome} {a.at_ms}+{a.took_ms}"
        )
    yield from (f"  {message}: {', '.join(each)}" for message, each in attempts.items())
    for kind in report.exceptions:
        yield f"  {kind.exception_class} {kind.response_code} {kind.cause}: {(kind.text or '').partition(chr(10))[0]}"
    for b in report.brokers:
        if b.isolated_ms:
            yield f"  {b.broker_name} isolated {b.isolations} times, {b.isolated_ms} ms"
    for failure in report.failures:
        if failure.isolated_by:
            yield f"  {failure.broker_name} isolated by {failure.isolated_by} at {failure.isolated_ms}, used {failure.used_again_ms}"
    yield from (f"  {finding.code}: {finding.message}" for finding in report.findings)


def test_named_sends_are_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {name: lines_of(report) for name, report in (*sends_by_version(), *java_sends(), *sdk_sends())}
    assert_recorded(RECORDED.with_name("sends.txt"), answers, request)
