"""What 500 random scenarios came to when they were recorded: a change of any attempt, count or time shows.

The vectors and recordings of real clients prove the rules; this file keeps what the rules make of them together.
`--update-golden` records anew.
"""

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest

from rmqlb import Failure, Latency, Moment, Reaction, RmqlbError, SendScenario, simulate_send
from rmqlb.engine.send.profile import PROFILES
from rmqlb.engine.send.sdk import simulated
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.send_scenario import STATUSES, Selector

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
    sdk = "java" if draw.random() < 0.7 else draw.choice(simulated())
    java = sdk == "java"
    rate = draw.choice((None, None, Fraction(10), Fraction(100), Fraction(7, 3), Fraction(1000)))
    modes = ("sync", "sync", "async", "oneway") if java else ("sync", "async")
    mode: Any = draw.choice(modes) if rate is not None and sdk != "cpp" else "sync"
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
            random_failure(draw, names, statuses=sdk in ("java", "go")) for _ in range(draw.choice((0, 1, 1, 1, 2, 3)))
        ),
        latencies={names[0]: Latency("z", (300, 900_000))} if draw.random() < 0.1 else {},
        latency=draw.choice(latencies),
        exclude=frozenset(names[:1]) if draw.random() < 0.1 and len(names) > 1 else frozenset(),
        seed=draw.randint(1, 99),
        first_poll_us=draw.choice((30_000_000, None, 0, 10_000_000)),
        poll_us=draw.choice((30_000_000, 1_000_000)),
        selector=draw.choice(selectors) if chosen else None,
        sdk=sdk,
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
    if request.config.getoption("--update-golden"):
        RECORDED.write_text(json.dumps(ours, indent=0) + "\n")
    recorded = json.loads(RECORDED.read_text())
    differing = [
        f"{number}: {ours[number]}, not {recorded[number]}"
        for number in range(NUMBER)
        if ours[number] != recorded[number]
    ]
    assert differing == []
    assert sum("sent" in each for each in ours) > 0.75 * NUMBER
