from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from rmqlb import Failure, MessageQueue, Moment, Reaction, SendReport, SendScenario, simulate_send
from rmqlb.engine.send.sdk import sdk
from rmqlb.errors import DataError, UsageError
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from tests.support.builders import route
from tests.support.mismatches import every_case
from tests.support.vectors import vectors

AB = route(a=2, b=2)
REFUSED = Reaction("refused", "refused", cost_us=1000)
BUSY, NOT_THERE, FULL = (
    Reaction("code", name, code) for name, code in (("SYSTEM_BUSY", 2), ("TOPIC_NOT_EXIST", 17), ("INVALID", 29))
)
SECOND = 1_000_000


def sent(name: str, *failures: Failure, topic: TopicRouteData = AB, **fields: Any) -> SendReport:
    """One message per second; the first pick of the first thread is the list's first queue."""
    given: dict[str, Any] = {
        "messages": 3,
        "rate": Fraction(1),
        "start_at": 0,
        "retries": sdk(name).profile.retries,
    } | fields
    return simulate_send(topic, SendScenario(sdk=name, failures=failures, **given))


def failing(name: str = "a", reaction: Reaction = REFUSED, start: int = 0, end: int | None = None) -> Failure:
    return Failure(name, reaction, Moment(us=start * SECOND), None if end is None else Moment(us=end * SECOND))


def tried(report: SendReport) -> list[str]:
    of: dict[int, str] = {}
    for attempt in report.attempts or ():
        of[attempt.message] = of.get(attempt.message, "") + attempt.broker_name
    return list(of.values())


@every_case(("name", "brokers"), [
    # Candidates are one queue of each broker; once a has failed it is isolated.
    ("java-grpc", ["ab", "b", "b", "b", "b"]),
    ("csharp-grpc", ["ab", "b", "b", "b", "b"]),
    ("go-grpc@master", ["ab", "b", "b", "b", "b"]),
    ("cpp-grpc", ["ab", "b", "b", "b", "b"]),
    ("nodejs-grpc", ["ab", "b", "b", "b", "b"]),
    # One candidate, tried three times; the third and fourth message go to b's queues.
    ("go-grpc", ["aaa", "aaa", "b", "b", "aaa"]),
    # One attempt.
    ("rust-grpc", ["a", "a", "b", "b", "a"]),
    # Each attempt takes the next queue.
    ("python-grpc", ["aab", "b", "aab", "b", "aab"]),
    # Likewise, up to four of them.
    ("go", ["aab", "b", "aab", "b", "aab"]),
    # A retry goes on to the next queue of another broker; each queue that it looks at is a step of all messages.
    ("cpp", ["ab", "b", "ab", "b", "ab"]),
])  # fmt: skip
def test_a_broker_that_refuses_is_left_or_is_not(name: str, brokers: list[str]) -> None:
    assert tried(sent(name, failing(), messages=5)) == brokers


def test_an_isolated_broker_comes_back_with_the_first_heartbeat_that_it_answers() -> None:
    """Heartbeats come at 1 s, 11 s and 21 s; at the last one the broker is back."""
    report = sent("java-grpc", failing(end=15), messages=30)
    assert min(a.at_ms for a in report.attempts or () if (a.broker_name, a.outcome) == ("a", "SEND_OK")) == 21_000
    assert [b.isolated_ms for b in report.brokers] == [20_999, 0]


@every_case(("name", "fields", "isolated_by"), [
    ("rust-grpc", {}, None),
    ("rust-grpc", {"proxy_mode": "cluster"}, "route"),  # a Proxy by itself asks for the route, whatever the SDK does
    ("go-grpc", {}, "route"),
])  # fmt: skip
def test_rust_never_asks_for_the_route_again(name: str, fields: dict[str, Any], isolated_by: str | None) -> None:
    dropped = Failure("a", REFUSED, notices_us=0)
    report = sent(name, dropped, messages=60, first_poll_us=10 * SECOND, poll_us=10 * SECOND, **fields)
    assert report.failures[0].isolated_by == isolated_by


@every_case(("name", "at"), [
    ("java-grpc", [0, 21, 62]),
    ("csharp-grpc", [0, 21, 62]),
    ("go-grpc", [0, 21, 62]),
    ("cpp-grpc", [0, 11, 32]),
    ("nodejs-grpc", [0, 1, 2]),
    ("python-grpc", [0]),
    ("go", [0]),
])  # fmt: skip
def test_after_a_busy_answer_a_retry_waits_as_the_sdk_does(name: str, at: list[float]) -> None:
    """A Proxy says 10 ms, doubled with each attempt; Java counts from the next attempt, C++ from the last one."""
    failures = [failing(broker, BUSY) for broker in "ab"]
    report = sent(name, *failures, messages=1)
    assert [attempt.at_ms for attempt in report.attempts or ()] == at
    assert report.totals.lost_by == {"SYSTEM_BUSY": 1}


@every_case(("reaction", "attempts"), [(NOT_THERE, 4), (BUSY, 1), (FULL, 1)])
def test_go_retries_four_codes(reaction: Reaction, attempts: int) -> None:
    report = sent("go", *(failing(broker, reaction) for broker in "ab"), messages=1)
    assert (report.totals.attempts, report.totals.lost_by) == (attempts, {reaction.name: 1})


def sends() -> Iterator[Any]:
    """Those questions whose queues are a route's: broker by broker, from 0 on."""
    for vector in vectors("producers"):
        counts: dict[str, int] = {}
        for broker, _ in vector["queues"]:
            counts[broker] = counts.get(broker, 0) + 1
        listed = [[broker, number] for broker, count in counts.items() for number in range(count)]
        if vector["kind"] == "send" and vector["queues"] == listed:
            yield vector, counts


def test_the_attempts_of_go_are_those_of_its_own_loop() -> None:
    questions = list(sends())
    assert len(questions) > 200
    for vector, counts in questions:
        # A route lists its brokers in any order; Java's list, in which a start is given, is sorted.
        topic = TopicRouteData(
            "T",
            tuple(QueueData(broker, count, count, 6) for broker, count in counts.items()),
            tuple(BrokerData("c", broker, {0: f"192.0.2.1:{10911 + place}"}) for place, broker in enumerate(counts)),
        )
        listed = [MessageQueue("T", broker, number) for broker, number in vector["queues"]]
        first = listed[(vector["start"] + 1) % len(listed)]
        failures = tuple(
            Failure(broker, REFUSED, Moment(message=number), Moment(message=number + 1))
            for number, (_, brokers) in enumerate(vector["steps"], start=1)
            for broker in brokers
            if broker in counts
        )
        wraps = vector["start"] + 4 * len(vector["steps"]) >= 2**32
        if wraps and 2**32 % len(listed):
            continue
        start = topic.publish_queues().index(first)
        report = sent("go", *failures, topic=topic, messages=len(vector["steps"]), start_at=start)
        attempts: dict[int, list[int]] = {}
        for attempt in report.attempts or ():
            place = listed.index(MessageQueue("T", attempt.broker_name, attempt.queue_id))
            attempts.setdefault(attempt.message, []).append(place)
        assert list(attempts.values()) == vector["expected"]["go@2.1.2"], vector


def test_slaves_are_not_simulated_where_an_sdk_sends_to_them() -> None:
    slaves = tuple(BrokerData("c", name, {0: "192.0.2.1:1", 1: "192.0.2.2:1"}) for name in "ab")
    topic = TopicRouteData("T", AB.queue_datas, slaves)
    with pytest.raises(DataError, match="producers of rust-grpc send to slaves too, as a has"):
        sent("rust-grpc", topic=topic)
    assert sent("java-grpc", topic=topic).totals.stored == 3
    assert sent("rust-grpc", topic=topic, proxy_mode="cluster").totals.stored == 3


@every_case(("fields", "problem"), [
    ({"sdk": "goo"}, "goo: not an SDK"),
    ({"sdk": "proxy"}, "sends of proxy are not simulated"),
    ({"sdk": "cpp", "mode": "async", "rate": Fraction(1)}, "mode async is simulated for Java's producers"),
    ({"sdk": "cpp", "failures": (failing(reaction=Reaction("status", "FLUSH_DISK_TIMEOUT", 10)),)}, "store statuses"),
    ({"sdk": "java-grpc", "mode": "oneway", "rate": Fraction(1)}, "mode oneway is simulated for Java's producers"),
    ({"sdk": "go", "latency_fault": True}, "latency fault is simulated for Java's producers"),
    ({"sdk": "java@4.9.7"}, "Java's producers are sdk java, their version is client_version"),
    ({"sdk": "php"}, "Java's producers are sdk java, their version is client_version"),
    ({"sdk": "go", "selector": lambda queues, _: queues[0]}, "a selector is simulated for Java's producers"),
    ({"sdk": "java-grpc", "failures": (failing(reaction=Reaction("status", "FLUSH_DISK_TIMEOUT", 10)),)}, "store statuses"),
    ({"proxy_mode": "both"}, "proxy_mode is 'both'"),
])  # fmt: skip
def test_what_is_not_simulated_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        simulate_send(AB, SendScenario(**fields))
    assert problem in caught.value.message
