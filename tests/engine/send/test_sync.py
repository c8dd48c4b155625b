"""SYNC sends: retries, the deadline over all attempts, what the fault strategy learns, and when the route helps."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import (
    Failure,
    Moment,
    Reaction,
    SendReport,
    SendScenario,
    UsageError,
    simulate_send,
    simulate_trials,
)
from rmqlb.engine.send.scenarios import constant
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.send_scenario import Latency, Selector
from tests.engine.send.scenarios import ERROR, REFUSED, TIMEOUT, TWO
from tests.support.builders import route
from tests.support.mismatches import every_case

FREE = Reaction("refused", "refused")
THREE = route(a=2, b=2, c=2)


def code(number: int, name: str = "SOME_CODE") -> Reaction:
    return Reaction("code", name, number)


def sent(*failures: Failure, topic: TopicRouteData = THREE, **settings: Any) -> SendReport:
    """Messages from the first queue on, unless the settings say otherwise."""
    given: dict[str, Any] = {"start_at": 0, "messages": 6, "failures": failures}
    return simulate_send(topic, SendScenario(**given | settings))


def picks(report: SendReport) -> list[str]:
    """`1:a0!` for a failed first attempt at queue 0 of a."""
    return [
        f"{a.attempt}:{a.broker_name}{a.queue_id}{'' if a.outcome == 'SEND_OK' else '!'}" for a in report.attempts or ()
    ]


@every_case(
    ("version", "number", "retried"),
    [
        ("5.5.0", 1, True),
        ("5.5.0", 2, True),
        ("5.5.0", 13, False),
        ("5.5.0", 1500, True),
        ("5.3.0", 2, True),
        ("5.2.0", 2, False),
        ("4.9.7", 2, False),
        ("4.9.7", 14, True),
        ("4.9.7", 1500, False),
        ("4.7.1", 205, True),
    ],
)
def test_which_error_codes_are_retried_depends_on_the_version(version: str, number: int, retried: bool) -> None:
    report = sent(Failure("a", code(number)), client_version=version, messages=1)
    assert (report.totals.attempts, report.totals.stored) == ((2, 1) if retried else (1, 0))


def test_a_timeout_uses_up_the_deadline_and_is_not_retried() -> None:
    report = sent(Failure("a", TIMEOUT), messages=1, overshoot_us=1000)
    assert picks(report) == ["1:a0!"]
    assert report.totals.lost_by == {"call timeout": 1}
    assert report.totals.longest_send_ms == 3001
    # The second pick comes before the deadline's check.
    assert [tally.picks for tally in report.queues] == [1, 0, 1, 0, 0, 0]
    assert "timeouts-not-retried" in [finding.code for finding in report.findings]


def test_the_name_server_drops_a_broker_and_the_next_poll_tells() -> None:
    settings: dict[str, Any] = {"rate": Fraction(1), "messages": 100}
    at_once = sent(Failure("a", REFUSED, Moment(us=31_000_000), notices_us=0), **settings)
    assert (at_once.failures[0].isolated_ms, at_once.failures[0].isolated_by) == (60_000, "route")
    later = sent(Failure("a", REFUSED, Moment(us=31_000_000), notices_us=40_000_000), **settings)
    assert later.failures[0].isolated_ms == 90_000
    never = sent(Failure("a", REFUSED, Moment(us=31_000_000), notices_us=None), **settings)
    assert never.failures[0].isolated_ms is None
    sooner = sent(
        Failure("a", REFUSED, Moment(us=31_000_000), notices_us=0),
        first_poll_us=2_000_000,
        poll_us=5_000_000,
        **settings,
    )
    assert sooner.failures[0].isolated_ms == 32_000


def test_when_every_broker_is_gone_the_client_keeps_its_list() -> None:
    everyone = [Failure(name, REFUSED, Moment(us=5_000_000), notices_us=0) for name in "abc"]
    report = sent(*everyone, rate=Fraction(1), messages=90)
    assert report.totals.lost == 85
    assert all(failure.isolated_ms is None for failure in report.failures)


def test_when_every_broker_is_read_only_there_is_no_route() -> None:
    everyone = [
        Failure(name, Reaction("read-only", "read-only"), Moment(us=5_000_000), Moment(us=45_500_000)) for name in "abc"
    ]
    report = sent(*everyone, rate=Fraction(1), messages=60)
    assert report.totals.lost_by == {"no route": 16}  # from the poll at 30 s; an empty list asks for each message
    assert report.totals.stored == 44


def test_an_order_topic_keeps_the_queues_of_a_dead_broker() -> None:
    """Without an address the attempt fails on the client's own side; only clients before 5.1.4 isolate for that."""
    ordered = replace(THREE, order_topic_conf="a:2;b:2")
    failed = Failure("a", REFUSED, notices_us=0)
    settings: dict[str, Any] = {"topic": ordered, "rate": Fraction(1), "messages": 40}
    outcomes = [attempt.outcome for attempt in sent(failed, **settings).attempts or ()]
    assert outcomes.count("MQClientException") > 0
    new = sent(failed, latency_fault=True, retries=0, **settings)
    old = sent(failed, latency_fault=True, retries=0, client_version="5.1.3", **settings)
    assert (new.brokers[0].isolations, old.brokers[0].isolations) == (3, 1)
    # The refusal isolates for ten minutes; then there is no address, which isolates for ten minutes more.
    longer = sent(failed, latency_fault=True, retries=0, client_version="5.1.3", **settings | {"messages": 700})
    assert longer.brokers[0].isolations == 2
    assert longer.totals.lost_by == {"RemotingConnectException": 1, "MQClientException": 1}


def test_tallies_add_up() -> None:
    report = sent(
        Failure("a", TIMEOUT, Moment(us=500_000), Moment(us=9_000_000)),
        Failure("c", code(1), Moment(message=40), Moment(message=70)),
        rate=Fraction(50),
        messages=800,
        latency_fault=True,
    )
    attempts, totals = report.attempts or (), report.totals
    assert totals.messages == totals.stored + totals.lost == 800
    assert len(attempts) == totals.attempts == sum(tally.attempts for tally in report.queues)
    assert totals.attempts == sum(tally.attempts for tally in report.brokers)
    without_time = sum(attempt.took_ms == 0.1 for attempt in attempts)
    assert totals.failed_attempts == sum(tally.failed for tally in report.queues)
    assert totals.failed_attempts == sum(failure.failed for failure in report.failures) + without_time
    assert totals.retries == sum(attempt.attempt > 1 for attempt in attempts)
    assert totals.lost == sum(totals.lost_by.values()) == sum(each.lost for each in report.timeline)
    sliced = Counter[str]()
    for each in report.timeline:
        sliced.update({b.broker_name: b.attempts for b in each.brokers})
    assert sliced == Counter(attempt.broker_name for attempt in attempts)
    assert [each.from_ms for each in report.timeline[1:]] == [each.to_ms for each in report.timeline[:-1]]


def test_what_befalls_a_static_topics_brokers_is_not_simulated() -> None:
    """Its queues bear the name of a logical broker: without a word nothing would ever fail."""
    info = TopicQueueMappingInfo("T", "__global__", 4, "a", 1, {0: 0})
    static = replace(route("T", a=2, b=2), topic_queue_mapping_by_broker={"a": info})
    refused = Failure("a", Reaction("refused", "refused", cost_us=1000))
    assert sent(topic=static).totals.stored == 6
    for settings in (
        {"failures": (refused,)},
        {"latencies": {"a": constant(1000, "1ms")}},
        {"exclude": frozenset("a")},
    ):
        with pytest.raises(UsageError, match="static topic"):
            sent(topic=static, **settings)
    with pytest.raises(UsageError, match="static topic"):
        simulate_trials(static, SendScenario(messages=6, failures=(refused,)), 2)
    ordinary = replace(static, order_topic_conf="")  # then a producer looks at the brokers' own queues
    assert sent(refused, topic=ordinary).totals.failed_attempts > 0


ENDLESS: dict[str, Any] = {"messages": None, "duration_us": 1}
NOTHING = Latency("0", (0,))


def failing(*arguments: Any, **given: Any) -> dict[str, Any]:
    return {"failures": (Failure("a", *arguments, **given),)}


@every_case(
    ("settings", "complaint"),
    [
        ({"messages": None}, "how many messages"),
        ({"threads": 0}, "threads is 0: a number from 1 to 1000 is needed"),
        ({"rate": Fraction(0)}, "a rate of 0"),
        ({"rate": Fraction(10**7) + 1}, "a rate of 10000001/1 messages per second: more than 0 and at most 1000"),
        ({"rate": Fraction(10**24 + 1, 10**24)}, "the rate is finer than any clock"),
        ({"rate": Fraction(1, 10**24 + 1)}, "the rate is finer than any clock"),
        ({"poll_us": 0}, "poll_us is 0: a number from 1"),
        ({"latency": Latency("none", ())}, r"latency\.table .*: a length from 1 is needed"),
        ({"latencies": {"a": Latency("-1", (-1,))}}, r"latencies\['a'\]\.table\[0\] is -1: a number from 0"),
        (failing(Reaction("slow", "slow", cost_us=-1)), r"failures\[0\]\.reaction\.cost_us is -1"),
        (failing(code(0)), r"failures\[0\]\.reaction\.code is 0"),
        (failing(REFUSED, Moment(us=1, message=1)), r"failures\[0\]\.start is a time or"),
        (failing(REFUSED, end=Moment(us=1, message=1)), r"failures\[0\]\.end is a time"),
        (failing(REFUSED, Moment(message=2), Moment(message=2)), r"failures\[0\] ends before it starts"),
        (ENDLESS | {"latency": NOTHING}, "have no end within a duration"),
        (ENDLESS | {"latencies": {"a": NOTHING}}, "have no end within a duration"),
        (ENDLESS | failing(FREE), "have no end within a duration"),
        ({"mode": "async", "rate": Fraction(1), "selector": Selector("hash")}, "for SYNC sends, not for ASYNC"),
        ({"mode": "async"}, "mode async needs a rate: its threads wait for nothing"),
        ({"selector": Selector("hash", queue=MessageQueue("T", "a", 0))}, "kind queue needs a queue, and no oth"),
        ({"start_at": 1}, "start_at is 1: the producer's list has 1 queues, 0 to 0"),
        ({"latency_max": (5, 5, 6), "not_available_duration": (1, 2)}, "3 thresholds of latency and 2 isolations"),
        ({"latency_max": (5, 6), "not_available_duration": (2, 1)}, "2, 1: thresholds and isolations must rise"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        simulate_send(route(a=1), SendScenario(**settings))


@every_case(
    "settings",
    [
        {"rate": Fraction(10**7)},
        {"rate": Fraction(10**24 - 1, 10**24)},
        {"start_at": 0},
        {"latency_max": (5, 5), "not_available_duration": (1, 1)},
        failing(code(1)),
        failing(REFUSED, Moment(us=1), Moment(us=2)),
        failing(REFUSED, Moment(us=9), Moment(message=2)),
        {"latency": NOTHING, "duration_us": 1},
        ENDLESS | {"latency": NOTHING, "rate": Fraction(1)},
        ENDLESS | {"latency": Latency("0 or 1", (0, 1))},
        ENDLESS | failing(ERROR),
    ],
)
def test_the_last_that_makes_sense_is_simulated(settings: dict[str, Any]) -> None:
    assert simulate_send(route(a=1), SendScenario(**{"messages": 2} | settings)).totals.messages >= 1


@pytest.mark.parametrize("latency_fault", [False, True])
def test_a_simulation_that_is_given_more_time_goes_on_to_its_end(latency_fault: bool) -> None:
    """Two messages a second for 2 s and a half: five, the last at 2 s; the isolation of the dead broker goes on."""
    fields: dict[str, Any] = {"messages": None, "duration_us": 2_500_000, "rate": Fraction(2), "retries": 0}
    report = sent(Failure("a", REFUSED), topic=route(a=1, b=1), latency_fault=latency_fault, **fields)
    assert (report.totals.messages, report.totals.lasted_ms) == (5, 2001)
    assert report.timeline[-1].to_ms == 2500
    assert report.brokers[0].isolated_ms == (2499 if latency_fault else 0)
    ended = sent(Failure("a", REFUSED), topic=route(a=1, b=1), latency_fault=latency_fault, **fields | {"messages": 5})
    assert ended.timeline[-1].to_ms == 2001


@pytest.mark.parametrize(("messages", "kept"), [(1000, True), (1001, False)])
def test_attempts_and_lost_messages_are_kept_of_a_thousand_messages_at_most(messages: int, kept: bool) -> None:
    report = simulate_send(TWO, SendScenario(messages=messages))
    assert ((report.attempts is not None), (report.lost_messages is not None)) == (kept, kept)
