from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import Failure, MessageQueue, Moment, Reaction, SendScenario, simulate_send
from rmqlb.engine.send.java_producer import is_silent
from rmqlb.engine.send.recorder import MOST_KINDS
from rmqlb.model.send_scenario import Selector
from tests.engine.send.scenarios import ERROR, READ_ONLY, REFUSED, THREE, TIMEOUT, TWO, UNSAFE, S, played, sent
from tests.support.builders import route
from tests.support.mismatches import every_case

ONE_A_SECOND: dict[str, Any] = {"messages": 100, "rate": Fraction(1)}


@every_case(("version", "number", "retried"), [
    ("5.5.0", 1, True),
    ("5.5.0", 2, True),
    ("5.5.0", 13, False),
    ("5.5.0", 1500, True),
    ("5.3.0", 2, True),
    ("5.2.0", 2, False),
    ("4.9.7", 14, True),
    ("4.9.7", 1500, False),
    ("4.7.1", 205, True),
])  # fmt: skip
def test_which_error_codes_are_retried_depends_on_the_version(version: str, number: int, retried: bool) -> None:
    report = sent(Failure("a", Reaction("code", "SOME_CODE", number)), client_version=version, messages=1)
    assert (report.totals.attempts, report.totals.stored) == ((2, 1) if retried else (1, 0))


def test_the_list_stays_when_every_broker_is_gone_and_empties_when_every_broker_is_read_only() -> None:
    everyone = [Failure(name, REFUSED, Moment(us=5 * S), notices_us=0) for name in "abc"]
    report = sent(*everyone, **ONE_A_SECOND | {"messages": 90})
    assert report.totals.lost == 85
    assert all(failure.isolated_ms is None for failure in report.failures)
    everyone = [Failure(name, READ_ONLY, Moment(us=5 * S), Moment(us=45_500_000)) for name in "abc"]
    report = sent(*everyone, **ONE_A_SECOND | {"messages": 60})
    # From the poll at 30 s; an empty list requests the route for each message.
    assert (report.totals.lost_by, report.totals.stored) == ({"no route": 16}, 44)


def test_an_order_topic_keeps_the_queues_of_a_dead_broker() -> None:
    """Without an address the attempt fails on the client's own side; only clients before 5.1.4 isolate for that."""
    failed = Failure("a", REFUSED, notices_us=0)
    given: dict[str, Any] = {"topic": replace(THREE, order_topic_conf="a:2;b:2"), "rate": Fraction(1), "messages": 40}
    assert "MQClientException" in [attempt.outcome for attempt in sent(failed, **given).attempts or ()]
    given |= {"latency_fault": True, "retries": 0}
    assert sent(failed, **given).brokers[0].isolations == 3
    assert sent(failed, client_version="5.1.3", **given).brokers[0].isolations == 1
    # The refusal isolates for ten minutes; then there is no address, which isolates for ten minutes more.
    longer = sent(failed, client_version="5.1.3", **given | {"messages": 700})
    assert longer.brokers[0].isolations == 2
    assert longer.totals.lost_by == {"RemotingConnectException": 1, "MQClientException": 1}


@every_case(("detector", "messages", "found"), [(True, 12, False), (True, 13, True), (False, 13, False)])
def test_only_the_detector_finds_a_broker_again_and_asks_every_three_seconds(
    detector: bool, messages: int, found: bool
) -> None:
    """The broker fails at 0 s, is isolated for 10 s, and fails again at 11 s: it is found at 3 s and at 12 s."""
    fields: dict[str, Any] = {"rate": Fraction(1), "latency_fault": True, "detector": detector, "retries": 1}
    run = played(route(a=1, b=1), Failure("a", ERROR), messages=messages, **fields)
    assert [course.failed for course in run.cluster.courses] == [2]
    assert run.strategy.items["a"].reachable is found


def test_the_detector_waits_200_ms_for_an_answer() -> None:
    silent = (REFUSED, TIMEOUT, Reaction("slow", "slow", 0, 200_001))
    answering = (
        None,
        UNSAFE,
        READ_ONLY,
        Reaction("slow", "slow", 0, 200_000),
        Reaction("code", "SYSTEM_BUSY", 2, 300_000),
    )
    assert [[is_silent(each) for each in some] for some in (silent, answering)] == [[True] * 3, [False] * 5]


def places_by_thread(version: str, seed: int) -> tuple[list[int], list[int]]:
    """Where the brokers that each of two threads picks stand among four isolated ones, the first to be free first."""
    failures = tuple(Failure(name, REFUSED) for name in "abcd")
    fields: dict[str, Any] = {"threads": 2, "messages": 24, "rate": Fraction(10), "latency_fault": True, "retries": 0}
    report = simulate_send(route(a=1, b=1, c=1, d=1), SendScenario(version, failures=failures, seed=seed, **fields))
    freed: dict[str, float] = {}
    places: tuple[list[int], list[int]] = [], []
    for attempt in report.attempts or ():
        if len(freed) == 4:
            places[attempt.thread - 1].append(sorted("abcd", key=freed.__getitem__).index(attempt.broker_name))
        freed[attempt.broker_name] = attempt.at_ms
    return places


@every_case("version", ["4.7.1", "4.8.0", "4.9.3", "4.9.7", "4.9.8", "5.1.0", "5.1.3"])
def test_each_thread_takes_the_better_half_in_turn_by_an_index_of_its_own(version: str) -> None:
    """`whichItemWorst` is a `ThreadLocalIndex`: each thread's starts at random, and other threads do not move it."""
    starts = set()
    for seed in range(20):
        found = places_by_thread(version, seed)
        for places in found:
            assert len(places) == 10
            assert places == [(places[0] + turn) % 2 for turn in range(10)]
        starts.add((found[0][0], found[1][0]))
    assert starts == {(0, 0), (0, 1), (1, 0), (1, 1)}


CLIENT, CONNECT = "MQClientException", "RemotingConnectException"


@every_case(("mode", "reaction", "version", "attempts", "expected", "text"), [
    *(("sync", REFUSED, version, 3, (CLIENT, 10001, CONNECT), "Send [3] times, still failed, cost [3]ms, Topic: T, BrokersSent: [a, ") for version in ("4.7.1", "5.5.0")),
    # Before 4.9.3 `sendMessageAsync` let the exception pass, and `sendDefaultImpl` has one attempt for ASYNC.
    *(("async", REFUSED, version, 1, (CLIENT, 10001, CONNECT), "Send [1] times, still failed") for version in ("4.7.1", "4.9.2")),
    *(("async", REFUSED, version, 3, (CONNECT, None, None), "connect to ") for version in ("4.9.3", "5.2.0")),
    ("async", REFUSED, "5.3.0", 3, (CLIENT, -1, CONNECT), "unknown reason\n"),
    ("async", TIMEOUT, "5.1.4", 1, (CLIENT, -1, None), "wait response timeout 3000ms\n"),
    ("async", TIMEOUT, "5.2.0", 1, (CLIENT, -1, "RemotingTimeoutException"), "wait response timeout, cost="),
    ("oneway", REFUSED, "5.2.0", 1, (CLIENT, 10001, CONNECT), "Send [1] times, still failed"),
    ("oneway", REFUSED, "5.3.0", 1, None, "lost unnoticed"),
])  # fmt: skip
def test_what_a_failed_send_ends_with_depends_on_the_version(
    mode: Any, reaction: Reaction, version: str, attempts: int, expected: tuple[Any, ...] | None, text: str
) -> None:
    fields: dict[str, Any] = {"mode": mode, "rate": Fraction(1), "retries": 0 if reaction is TIMEOUT else 2}
    report = sent(*(Failure(name, reaction) for name in "ab"), topic=TWO, messages=1, client_version=version, **fields)
    assert report.totals.attempts == attempts
    if expected is None:
        assert report.totals.lost_by == {text: 1}
    else:
        (found,) = report.exceptions
        assert (found.exception_class, found.response_code, found.cause) == expected
        assert (found.text or "").startswith(text)


@pytest.mark.parametrize(("took_ms", "outcome"), [(2000, "SEND_OK"), (2001, "RemotingTimeoutException")])
def test_an_async_answer_counts_until_the_table_is_scanned(took_ms: int, outcome: str) -> None:
    slow = Failure("a", Reaction("slow", "slow", 0, took_ms * 1000))
    report = sent(slow, topic=TWO, messages=1, mode="async", rate=Fraction(1), timeout_ms=300)
    assert [attempt.outcome for attempt in report.attempts or ()] == [outcome]


def test_exceptions_of_more_kinds_than_anyone_reads_are_counted_together() -> None:
    names = [f"b{number}" for number in range(12)]
    failures = tuple(Failure(name, Reaction("code", "X", 1)) for name in names)
    scenario = SendScenario(messages=2000, latency_fault=True, failures=failures)
    brokers: dict[str, Any] = dict.fromkeys(names, 1)
    report = simulate_send(route(**brokers), scenario, trace=True)
    kinds = Counter(lost.brokers_sent for lost in report.lost_messages or ())
    assert len(kinds) > MOST_KINDS
    assert len(report.exceptions) == MOST_KINDS + 1
    assert [tally.brokers_sent for tally in report.exceptions].count(None) == 1
    assert sum(tally.messages for tally in report.exceptions) == report.totals.lost
    assert all(kinds[tally.brokers_sent] == tally.messages for tally in report.exceptions if tally.brokers_sent)


GONE = Failure("b", REFUSED, Moment(us=0), notices_us=0)


@every_case(("failure", "order_topic", "remaps"), [
    (GONE, False, True),
    (GONE, True, False),
    (replace(GONE, notices_us=None), False, False),
    (replace(GONE, notices_us=5 * S, end=Moment(us=4 * S)), False, False),
    (replace(GONE, notices_us=3 * S, end=Moment(us=4 * S)), False, True),
    (replace(GONE, start=Moment(message=5)), False, True),
    (Failure("b", ERROR), False, False),
    (Failure("b", READ_ONLY), False, True),
])  # fmt: skip
def test_keys_go_elsewhere_where_the_list_can_change(failure: Failure, order_topic: bool, remaps: bool) -> None:
    topic = replace(TWO, order_topic_conf="a:2;b:2" if order_topic else None)
    report = sent(failure, topic=topic, messages=10, selector=Selector("hash", (3,)), start_at=None)
    codes = {finding.code for finding in report.findings}
    assert ("hash-remaps" in codes, "order-topic" in codes) == (remaps, order_topic)


def test_a_selector_gets_each_key_in_turn_and_a_list_of_its_own() -> None:
    calls: list[tuple[int, object]] = []

    def chosen(listed: list[MessageQueue], key: object) -> MessageQueue:
        calls.append((len(listed), key))
        return listed.pop()

    report = sent(topic=TWO, messages=4, selector=Selector("function", function=chosen, keys=("x", "y", "z")))
    assert calls == [(4, "x"), (4, "y"), (4, "z"), (4, "x")]
    assert [tally.stored for tally in report.queues] == [0, 0, 0, 4]
    sent(topic=TWO, messages=2, selector=Selector("function", function=chosen))
    assert calls[4:] == [(4, 1), (4, 2)]


def test_the_first_exception_of_a_selector_is_a_finding() -> None:
    def chosen(_: list[MessageQueue], key: object) -> MessageQueue:
        raise ValueError(f"no {key}")

    report = sent(topic=TWO, messages=2, selector=chosen)
    assert report.totals.lost_by == {"select message queue threw exception": 2}
    (text,) = (finding.message for finding in report.findings if finding.code == "selector-throws")
    assert "throws for 2 of 2 messages" in text
    assert "no 1" in text
