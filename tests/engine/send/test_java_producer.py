from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import Failure, MessageQueue, Moment, MQFaultStrategy, Reaction, SendScenario, UsageError, simulate_send
from rmqlb.engine.send.java_producer import is_silent
from rmqlb.engine.send.recorder import MOST_KINDS
from rmqlb.engine.send.simulate import producer_of
from rmqlb.model.send_scenario import Selector
from rmqlb.model.simulate_send import MessageException
from tests.engine.send.scenarios import ERROR, READ_ONLY, REFUSED, THREE, TIMEOUT, TWO, UNSAFE, S, played, sent
from tests.support.builders import route
from tests.support.mismatches import every_case

OLD, NEW = "http://rocketmq.apache.org/docs/faq/", "https://rocketmq.apache.org/docs/bestPractice/06FAQ"
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


def test_a_timeout_uses_up_the_deadline_and_is_not_retried() -> None:
    report = sent(Failure("a", TIMEOUT), messages=1, overshoot_us=1000)
    assert report.totals.lost_by == {"call timeout": 1}
    assert (report.totals.attempts, report.totals.longest_send_ms) == (1, 3001)
    # The second pick comes before the deadline's check.
    assert [tally.picks for tally in report.queues] == [1, 0, 1, 0, 0, 0]
    assert "timeouts-not-retried" in [finding.code for finding in report.findings]


@every_case(
    ("notices_s", "polls", "dropped_ms"),
    [(0, (30, 30), 60_000), (40, (30, 30), 90_000), (None, (30, 30), None), (0, (2, 5), 32_000)],
)
def test_the_poll_after_a_drop_shows_it(notices_s: int | None, polls: tuple[int, int], dropped_ms: int | None) -> None:
    failure = Failure("a", REFUSED, Moment(us=31 * S), notices_us=None if notices_s is None else notices_s * S)
    report = sent(failure, first_poll_us=polls[0] * S, poll_us=polls[1] * S, **ONE_A_SECOND)
    assert report.failures[0].isolated_ms == dropped_ms
    assert report.failures[0].isolated_by == (None if dropped_ms is None else "route")


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


@pytest.mark.parametrize("detector", [False, True])
def test_only_the_detector_finds_a_broker_again(detector: bool) -> None:
    failing = Failure("a", ERROR, end=Moment(us=500_000))
    run = played(TWO, failing, messages=8, rate=Fraction(1), latency_fault=True, detector=detector)
    assert run.strategy.items["a"].reachable is detector


@pytest.mark.parametrize(("messages", "found"), [(12, False), (13, True)])
def test_the_detector_asks_every_three_seconds(messages: int, found: bool) -> None:
    """The broker fails at 0 s, is isolated for 10 s, and fails again at 11 s: it is found at 3 s and at 12 s."""
    fields: dict[str, Any] = {"rate": Fraction(1), "latency_fault": True, "detector": True, "retries": 1}
    run = played(route(a=1, b=1), Failure("a", ERROR), messages=messages, **fields)
    assert [course.failed for course in run.cluster.courses] == [2]
    assert run.strategy.items["a"].reachable is found


@every_case(("reaction", "expected"), [
    (None, False),
    (REFUSED, True),
    (TIMEOUT, True),
    (Reaction("slow", "slow", 0, 200_000), False),
    (Reaction("slow", "slow", 0, 200_001), True),
    (Reaction("code", "SYSTEM_BUSY", 2, 300_000), False),
    (UNSAFE, False),
    (READ_ONLY, False),
], ids=str)  # fmt: skip
def test_the_detector_waits_200_ms_for_an_answer(reaction: Reaction | None, expected: bool) -> None:
    assert is_silent(reaction) == expected


def test_a_measured_latency_is_a_java_long() -> None:
    strategy = MQFaultStrategy(True, clock=lambda: 0)
    for latency in (2**63 - 1, -(2**63)):
        strategy.update_fault_item("a", latency)
    for latency in (2**63, -(2**63) - 1):
        with pytest.raises(UsageError, match="current_latency"):
            strategy.update_fault_item("a", latency)


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


def test_a_new_queue_list_leaves_the_index_among_isolated_brokers_as_it_is() -> None:
    """It belongs to the fault table, which lives as long as the producer; the round robin belongs to the list."""
    run = producer_of(TWO, SendScenario("4.9.7", messages=1))
    thread = run.threads[0]
    run.adopt_route(thread)
    worst, index = thread.worst.send_which_queue, thread.info.send_which_queue
    run.cluster.version += 1
    run.adopt_route(thread)
    assert thread.worst.send_which_queue == worst != 0
    assert thread.info.send_which_queue != index


def one(reaction: Reaction, mode: str, **fields: Any) -> Any:
    given: dict[str, Any] = {"messages": 1, "start_at": 3, "rate": Fraction(1), "mode": mode}
    return sent(Failure("a", reaction), topic=route(a=4, b=2, c=2), **given | fields)


@every_case("version", ["4.9.7", "5.2.0", "5.5.0"])
def test_before_5_3_an_async_timeout_isolates_healthy_brokers(version: str) -> None:
    """Retries without any time left fail before anything is sent, and count against the broker they chose."""
    seeds = [
        [
            min(b.isolations, 1)
            for b in one(TIMEOUT, "async", client_version=version, latency_fault=True, seed=s).brokers
        ]
        for s in range(20)
    ]
    if version == "5.5.0":
        assert seeds == [[1, 0, 0]] * 20
    else:  # the first retry goes to another broker, the second perhaps back
        assert [1, 1, 1] in seeds
        assert all(seed[0] == 1 and sum(seed) >= 2 for seed in seeds)


def test_a_oneway_message_to_a_dead_broker_is_lost_unnoticed_since_5_3() -> None:
    assert one(REFUSED, "oneway").totals.lost_by == {"lost unnoticed": 1}
    assert one(REFUSED, "oneway", client_version="5.2.0").totals.lost_by == {"RemotingConnectException": 1}


@pytest.mark.parametrize(("took_ms", "outcome"), [(2000, "SEND_OK"), (2001, "RemotingTimeoutException")])
def test_an_async_answer_counts_until_the_table_is_scanned(took_ms: int, outcome: str) -> None:
    report = one(Reaction("slow", "slow", 0, took_ms * 1000), "async", timeout_ms=300)
    assert [attempt.outcome for attempt in report.attempts] == [outcome]


def exception_of(reaction: Reaction | None, brokers: str = "a", **fields: Any) -> MessageException:
    failures = () if reaction is None else tuple(Failure(name, reaction) for name in brokers)
    queues: dict[str, Any] = dict.fromkeys(brokers, 2)
    report = sent(*failures, topic=route(**queues), **{"messages": 1} | fields)
    (lost,) = report.lost_messages or ()
    (tally,) = report.exceptions
    assert (tally.messages, tally.first_message, report.totals.lost_by) == (1, lost.message, {lost.reason: 1})
    assert lost.exception is not None
    return lost.exception


@every_case(("version", "url"), [("4.7.1", OLD), ("5.0.0", OLD), ("5.1.0", NEW), ("5.5.0", NEW)])
def test_after_the_last_attempt_the_exception_names_the_brokers_tried(version: str, url: str) -> None:
    found = exception_of(REFUSED, "ab", client_version=version)
    first, link = (found.text or "").split("\n")
    assert first.startswith("Send [3] times, still failed, cost [3]ms, Topic: T, BrokersSent: [a, b, a")
    assert link == f"See {url} for further details."
    expected = ("MQClientException", 10001, "RemotingConnectException")
    assert (found.exception_class, found.response_code, found.cause) == expected


def test_a_selector_that_finds_nothing_and_one_whose_broker_is_gone() -> None:
    text = f"select message queue return null.\nFor more information, please visit the url, {NEW}"
    assert exception_of(None, selector=Selector("machine-room")) == MessageException("MQClientException", text, -1)
    hashed: dict[str, Any] = {"selector": Selector("hash", (0,))}
    refused = MessageException("RemotingConnectException", "connect to a:10911 failed")
    assert exception_of(REFUSED, **hashed) == refused
    assert exception_of(TIMEOUT, **hashed) == MessageException("RemotingTimeoutException")


@every_case(("version", "attempts", "expected"), [
    ("4.7.1", 1, ("MQClientException", 10001, "RemotingConnectException", "Send [1] times, still failed")),
    ("4.9.2", 1, ("MQClientException", 10001, "RemotingConnectException", "Send [1] times, still failed")),
    ("4.9.3", 3, ("RemotingConnectException", None, None, "connect to ")),
    ("5.2.0", 3, ("RemotingConnectException", None, None, "connect to ")),
    ("5.3.0", 3, ("MQClientException", -1, "RemotingConnectException", "unknown reason\n")),
])  # fmt: skip
def test_a_refused_async_send_is_retried_since_4_9_3(version: str, attempts: int, expected: tuple[Any, ...]) -> None:
    """Before, `sendMessageAsync` let the exception pass, and `sendDefaultImpl` has one attempt for ASYNC."""
    failures = (Failure("a", REFUSED), Failure("b", REFUSED))
    scenario = SendScenario(version, "async", messages=1, rate=Fraction(1), failures=failures, latency_fault=True)
    report = simulate_send(route(a=1, b=1), scenario)
    found = report.exceptions[0]
    assert report.totals.attempts == attempts
    assert (found.exception_class, found.response_code, found.cause) == expected[:3]
    assert (found.text or "").startswith(expected[3])
    if attempts == 1:  # no hand-over that would speak well of it follows
        assert [b.isolations for b in report.brokers if b.attempts] == [1]
        assert [b.isolated_ms for b in report.brokers] == [0.0, 0.0]


@every_case(("version", "cause"), [("4.8.0", None), ("5.1.4", None), ("5.2.0", "RemotingTimeoutException")])
def test_an_async_timeout_tells_its_budget_and_since_5_2_its_cost(version: str, cause: str | None) -> None:
    fields: dict[str, Any] = {"mode": "async", "rate": Fraction(1), "retries": 0, "timeout_ms": 300}
    found = exception_of(TIMEOUT, client_version=version, **fields)
    first = (found.text or "").partition("\n")[0]
    assert first.startswith("wait response timeout, cost=") if cause else first == "wait response timeout 300ms"
    assert (found.exception_class, found.cause) == ("MQClientException", cause)


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
