from collections import Counter
from fractions import Fraction
from math import exp
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import DataError, Failure, MessageQueue, Moment, Reaction, SendScenario, UsageError, simulate_send
from rmqlb.engine.conditions import parse_condition
from rmqlb.engine.send.cluster import Cluster
from rmqlb.engine.send.findings import SEND_FIGURES, try_on
from rmqlb.engine.send.java_producer import JavaProducer, is_silent
from rmqlb.engine.send.producer import pick
from rmqlb.engine.send.profile import PROFILES, profile_of
from rmqlb.engine.send.recorder import MOST_KINDS, Recorder
from rmqlb.engine.send.scenarios import failures_of, lognormal, long_enough, producers_of
from rmqlb.engine.send.simulate import producer_of
from rmqlb.model.group_scenario import Event, EventKind
from rmqlb.model.route import TopicQueueMappingInfo
from rmqlb.model.send_scenario import HOST_LOSS_US, Latency, Selector
from rmqlb.model.simulate_send import BrokerTally
from tests.engine.send.scenarios import ERROR, READ_ONLY, REFUSED, SLOW, TIMEOUT, TWO, UNSAFE, S, sent
from tests.support.builders import route
from tests.support.mismatches import assert_recorded, every_case, refusal

NOTHING = Latency("0", (0,))
ENDLESS: dict[str, Any] = {"messages": None, "duration_us": 1}


@every_case(("name", "versions"), [
    ("5.3.3 and newer", "5.5.0 6.0.0"),
    ("5.3.2", "5.3.2"),
    ("5.1.4", "V5_1_4 5.1.4_SNAPSHOT"),
    ("5.1.1 to 5.1.3", "5.1.3-SNAPSHOT"),
    ("5.0.0", "5.0"),
    ("4.9.8", "4.9.10"),
    ("4.9.4 to 4.9.7", "4.9.7"),
    ("4.7.1 and older", "4.3.0"),
])  # fmt: skip
def test_a_version_has_the_rules_of_its_stretch(name: str, versions: str) -> None:
    assert {profile_of(version).name for version in versions.split()} == {name}


def test_stretches_begin_with_the_version_that_they_name() -> None:
    assert [profile.since for profile in PROFILES] == sorted((p.since for p in PROFILES), reverse=True)
    for profile in PROFILES:
        since = ".".join(map(str, profile.since))
        assert profile_of(since) is profile
        assert profile is PROFILES[-1] or since == profile.name.split()[0]


def failing(*arguments: Any, **given: Any) -> dict[str, Any]:
    return {"failures": (Failure("a", *arguments, **given),)}


@every_case(("settings", "complaint"), [
    ({"messages": None}, "how many messages"),
    ({"threads": 0}, "threads is 0: a number from 1 to 1000 is needed"),
    ({"rate": Fraction(0)}, "a rate of 0"),
    ({"rate": Fraction(10**7) + 1}, "a rate of 10000001/1 messages per second: must be above 0 and at most 1000"),
    ({"rate": Fraction(10**24 + 1, 10**24)}, "the rate is finer than any clock"),
    ({"rate": Fraction(1, 10**24 + 1)}, "the rate is finer than any clock"),
    ({"poll_us": 0}, "poll_us is 0: a number from 1"),
    ({"latency": Latency("none", ())}, "latency.table is of type tuple: a length from 1 is needed"),
    ({"latencies": {"a": Latency("-1", (-1,))}}, "latencies['a'].table[0] is -1: a number from 0"),
    (failing(Reaction("slow", "slow", cost_us=-1)), "failures[0].reaction.cost_us is -1"),
    (failing(replace(ERROR, code=0)), "failures[0].reaction.code is 0"),
    (failing(REFUSED, Moment(us=1, message=1)), "failures[0].start is either a time or"),
    (failing(REFUSED, end=Moment(us=1, message=1)), "failures[0].end is either a time"),
    (failing(REFUSED, Moment(message=2), Moment(message=2)), "failures[0] ends before it starts"),
    (ENDLESS | {"latency": NOTHING}, "a duration never ends"),
    (ENDLESS | {"latencies": {"a": NOTHING}}, "a duration never ends"),
    (ENDLESS | failing(replace(REFUSED, cost_us=0)), "a duration never ends"),
    ({"mode": "async", "rate": Fraction(1), "selector": Selector("hash")}, "for SYNC sends, not for ASYNC"),
    ({"mode": "async"}, "mode async needs a rate, because its threads do not wait for answers"),
    ({"selector": Selector("hash", queue=MessageQueue("T", "a", 0))}, "kind queue takes a queue, and it"),
    ({"start_at": 1}, "start_at is 1: the producer's list has 1 queues, 0 to 0"),
    ({"latency_max": (5, 5, 6), "not_available_duration": (1, 2)}, "3 latency thresholds and 2 isolation times"),
    ({"latency_max": (5, 6), "not_available_duration": (2, 1)}, "2, 1: latency thresholds and isolation times must increase"),
    ({"sdk": "goo"}, "goo: not an SDK"),
    ({"sdk": "proxy"}, "sends of proxy are not simulated"),
    ({"sdk": "cpp", "mode": "async", "rate": Fraction(1)}, "mode async is not simulated for cpp"),
    *(({"sdk": name, "failures": (Failure("a", UNSAFE),)}, "store statuses") for name in ("cpp", "java-grpc")),
    ({"sdk": "java-grpc", "mode": "oneway", "rate": Fraction(1)}, "mode oneway is not simulated for java-grpc"),
    ({"sdk": "go", "latency_fault": True}, "latency fault is not simulated for go"),
    ({"sdk": "java@4.9.7"}, "for Java producers, use sdk java and set client_version"),
    ({"sdk": "php"}, "for Java producers, use sdk java and set client_version"),
    ({"sdk": "go", "selector": lambda queues, _: queues[0]}, "a selector is not simulated for go"),
    ({"proxy_mode": "both"}, "proxy_mode is 'both'"),
])  # fmt: skip
def test_numbers_that_make_no_sense_are_refused(settings: dict[str, Any], complaint: str) -> None:
    assert complaint in refusal(UsageError, simulate_send, route(a=1), SendScenario(**settings)).message


@every_case("settings", [
    {"rate": Fraction(10**7)},
    {"rate": Fraction(10**24 - 1, 10**24)},
    {"start_at": 0},
    {"latency_max": (5, 5), "not_available_duration": (1, 1)},
    failing(ERROR),
    failing(REFUSED, Moment(us=1), Moment(us=2)),
    failing(REFUSED, Moment(us=9), Moment(message=2)),
    {"latency": NOTHING, "duration_us": 1},
    ENDLESS | {"latency": NOTHING, "rate": Fraction(1)},
    ENDLESS | {"latency": Latency("0 or 1", (0, 1))},
    ENDLESS | failing(ERROR),
])  # fmt: skip
def test_the_last_that_makes_sense_is_simulated(settings: dict[str, Any]) -> None:
    assert simulate_send(route(a=1), SendScenario(**{"messages": 2} | settings)).totals.messages >= 1


@every_case("settings", [failing(REFUSED), {"latencies": {"a": NOTHING}}, {"exclude": frozenset("a")}])
def test_sends_to_single_brokers_of_a_static_topic_are_not_simulated(settings: dict[str, Any]) -> None:
    """Its queues bear the name of a logical broker: without a word nothing would ever fail."""
    info = TopicQueueMappingInfo("T", "__global__", 4, "a", 1, {0: 0})
    static = replace(TWO, topic_queue_mapping_by_broker={"a": info})
    assert "static topic" in refusal(UsageError, sent, topic=static, **settings).message
    assert sent(topic=static).totals.stored == 6
    ordinary = replace(static, order_topic_conf="")  # then a producer looks at the brokers' own queues
    assert sent(Failure("a", REFUSED), topic=ordinary).totals.failed_attempts > 0


def test_a_lognormal_latencys_table_is_refined_at_its_end() -> None:
    """65,536 equal cells, the last of them cut into as many again; ln(latency / median) is normal."""
    latency, normal = lognormal(1_000_000, 1.0, "x"), NormalDist()
    assert (len(latency.table), len(latency.tail)) == (65_536, 65_536)
    for values, place, probability in (
        (latency.table, 0, 0.5 / 65_536),
        (latency.table, 65_535, 1 - 0.5 / 65_536),
        (latency.tail, 0, 1 - 65_535.5 / 65_536**2),
        (latency.tail, 65_535, 1 - 0.5 / 65_536**2),
    ):
        assert values[place] == pytest.approx(1_000_000 * exp(normal.inv_cdf(probability)), rel=1e-6, abs=0.5)
    assert pick(latency, (65_534 << 48) + (0xFFFF << 32) + 0xFFFFFFFF) == latency.table[65_534]
    assert pick(latency, (65_535 << 48) + (1 << 31)) == latency.tail[32_768]
    assert lognormal(5000, 10, "x").table
    assert "latency x: sigma is not between 0 and 10" in refusal(UsageError, lognormal, 5000, -0.1, "x").message


@pytest.mark.parametrize(("messages", "kept"), [(1000, True), (1001, False)])
def test_attempts_and_lost_messages_are_kept_of_a_thousand_messages_at_most(messages: int, kept: bool) -> None:
    report = simulate_send(TWO, SendScenario(messages=messages))
    assert ((report.attempts is not None), (report.lost_messages is not None)) == (kept, kept)


def test_a_timeline_has_at_most_120_slices() -> None:
    scenario, topic = SendScenario(messages=600), route(a=1, b=1)
    cluster = Cluster(topic, scenario, profile_of(scenario.client_version), 1, 0)
    line = Recorder(topic, scenario, cluster, 1)  # a slice takes 10 ms, a tick is a microsecond
    for _ in range(119):
        line.end_slice(line.next_slice)
    assert (line.next_slice, len(line.slices(1_200_000))) == (1_200_000, 120)
    line.end_slice(line.next_slice)
    assert (line.next_slice, len(line.slices(1_210_000))) == (1_220_000, 61)


TALLIES = (BrokerTally("a", 1, 60, 55, 5, 45, 0.25, 3, 12.5), BrokerTally("b", 1, 240, 195, 25, 135, 0.75, 4, 13.5))


def test_each_figure_of_sends_and_its_whole_are_as_recorded(request: pytest.FixtureRequest) -> None:
    totals = replace(
        sent(topic=TWO).totals, messages=200, lost=20, attempts=250, failed_attempts=30, longest_send_ms=8.5
    )
    report = replace(sent(topic=TWO), totals=totals, brokers=TALLIES)

    def value(text: str) -> object:
        try:
            return try_on(parse_condition(text, SEND_FIGURES), report).value
        except UsageError as error:
            return error.message

    names = (*SEND_FIGURES.names, *(f"{name}[a]" for name in SEND_FIGURES.of_subject))
    answers = {name: [f"{value(f'{name}>=0')}, share: {value(f'{name}>=0%')}"] for name in names}
    assert_recorded(Path(__file__).with_name("figures.txt"), answers, request)


def test_of_no_message_stored_no_broker_has_a_share() -> None:
    report = replace(sent(topic=TWO), brokers=tuple(replace(tally, stored=0, share=None) for tally in TALLIES))
    for text in ("share[a]>=0", "share[a]>=0%"):
        assert try_on(parse_condition(text, SEND_FIGURES), report).met is None
    refusal(DataError, try_on, parse_condition("share[x]>1%", SEND_FIGURES), report)


def broken(reaction: Reaction, start: float, end: float | None = None, notices: float | None = None) -> Failure:
    notices_us = None if notices is None else int(notices * S)
    return Failure("b", reaction, Moment(int(start * S)), None if end is None else Moment(int(end * S)), notices_us)


@every_case(("failure", "seconds"), [
    (broken(REFUSED, 0, notices=0), 30 + 30),  # the poll at 30 s, and another one
    (broken(REFUSED, 45, notices=0), 60 + 30),
    (broken(REFUSED, 30, 90, notices=0), 120 + 30),  # a poll at the very moment comes too early
    (broken(REFUSED, 29, 31, notices=0), 60 + 30),
    (broken(TIMEOUT, 0, notices=120), 150 + 30),
    (broken(TIMEOUT, 0, 100, notices=120), 100 + 30),  # back before the NameServer noticed
    (broken(REFUSED, 10), 10 + 30),  # which it never does
    (broken(SLOW, 10), 10 + 30),
    (broken(SLOW, 10, 50), 50 + 30),
    (broken(READ_ONLY, 10), 30 + 30),
    (Failure("b", REFUSED, Moment(message=301), None, 0), 60 + 30),  # that starts at 30 s
    (Failure("b", REFUSED, Moment(message=300), None, 0), 30 + 30),  # that starts 0.1 s before it
    (Failure("b", SLOW, Moment(message=1), Moment(message=51), None), 5 + 30),
])  # fmt: skip
def test_it_lasts_until_the_producer_knows_and_a_poll_more(failure: Failure, seconds: float) -> None:
    assert long_enough(SendScenario(rate=Fraction(10), failures=(failure,))).duration_us == seconds * S


def test_an_isolation_is_waited_for_and_a_million_messages_are_enough() -> None:
    for version, isolated_s in (("5.5.0", 10), ("4.9.7", 600)):
        scenario = SendScenario(version, latency_fault=True, failures=(broken(SLOW, 10, 50),))
        assert long_enough(scenario).duration_us == (50 + isolated_s + 30) * S
    scenario = SendScenario(rate=Fraction(100_000), failures=(broken(REFUSED, 0, notices=0),))
    assert (long_enough(scenario).messages, long_enough(scenario).duration_us) == (1_000_000, 60 * S)
    assert long_enough(replace(scenario, rate=None)).messages == 600


@every_case(("detector", "messages", "found"), [(True, 12, False), (True, 13, True), (False, 13, False)])
def test_only_the_detector_finds_a_broker_again_every_three_seconds(detector: bool, messages: int, found: bool) -> None:
    """The broker fails at 0 s, is isolated for 10 s, and fails again at 11 s: it is found at 3 s and at 12 s."""
    fields: dict[str, Any] = {"rate": Fraction(1), "latency_fault": True, "detector": detector, "retries": 1}
    scenario = SendScenario(messages=messages, start_at=0, failures=(Failure("a", ERROR),), **fields)
    run = producer_of(route(a=1, b=1), scenario)
    assert isinstance(run, JavaProducer)
    run.run()
    assert [course.failed for course in run.cluster.courses] == [2]
    assert run.strategy.items["a"].reachable is found


def test_the_detector_waits_200_ms_for_an_answer() -> None:
    silent = (REFUSED, TIMEOUT, Reaction("slow", "slow", 0, 200_001))
    slow, busy = Reaction("slow", "slow", 0, 200_000), Reaction("code", "SYSTEM_BUSY", 2, 300_000)
    answering = (None, UNSAFE, READ_ONLY, slow, busy)
    assert [[is_silent(each) for each in some] for some in (silent, answering)] == [[True] * 3, [False] * 5]


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


ORDERS, BILLS = route("Orders", a=2, b=2), route("Bills", b=2)


def at(kind: EventKind, broker: str, second: int) -> Event:
    return Event(kind, second * S, broker)


DOWN, UP = at("broker-down", "b", 30), at("broker-up", "b", 90)


@every_case(("events", "expected"), [
    ((UP, at("leave", "c", 5), DOWN), [("refused", 30, 90)]),
    ((DOWN,), [("refused", 30, None)]),
    ((DOWN, UP, at("broker-loss", "b", 200)), [("refused", 30, 90), ("timeout", 200, None)]),
    ((DOWN, at("broker-loss", "b", 60), at("broker-down", "b", 90), at("broker-up", "b", 90)), [("refused", 30, 90)]),
    ((at("broker-up", "new", 5),), []),
])  # fmt: skip
def test_a_broker_fails_from_down_to_up(events: tuple[Event, ...], expected: list[Any]) -> None:
    """The NameServers drop a process that ends at once, and a silent machine when its registration is too old."""
    failures = failures_of(events)
    ends = [None if each.end is None else (each.end.us or 0) // S for each in failures]
    windows = [(each.reaction.kind, (each.start.us or 0) // S) for each in failures]
    assert [(*window, end) for window, end in zip(windows, ends, strict=True)] == expected
    assert all(each.notices_us == (0 if each.reaction.kind == "refused" else HOST_LOSS_US) for each in failures)


def test_a_topic_on_the_failing_broker_has_a_producer_at_its_own_or_an_assumed_rate() -> None:
    failures = failures_of([DOWN, UP])
    found_ = producers_of([ORDERS, route("Elsewhere", a=2), BILLS], failures, SendScenario(), {"Orders": 2.5})
    orders, bills = found_.reports
    assert (orders.topic, bills.topic, found_.findings) == ("Orders", "Bills", ())
    assert (orders.scenario.rate, bills.scenario.rate) == (Fraction(5, 2), 10)
    assert orders.totals.messages == 150 * 2.5
    # A client keeps the last route that it had, and finds no broker there until the broker is back.
    assert (orders.totals.lost, bills.totals.lost) == (0, pytest.approx(600, abs=1))


def test_a_topic_whose_producer_cannot_be_simulated_is_a_finding() -> None:
    found_ = producers_of([ORDERS], failures_of([DOWN]), SendScenario(client_version="1.0.0"), {})
    assert found_.reports == ()
    assert [(each.code, "topic Orders" in each.message) for each in found_.findings] == [("producers-left-out", True)]
