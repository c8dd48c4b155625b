"""SYNC sends: retries, the deadline over all attempts, what the fault strategy learns, and when the route helps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import (
    DataError,
    Failure,
    Moment,
    Reaction,
    SendReport,
    SendScenario,
    UsageError,
    simulate_send,
    simulate_trials,
)
from rmqlb.engine.send.latency import constant
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.send_scenario import Latency, Selector
from tests.engine.send.scenarios import ERROR, READ_ONLY, REFUSED, TIMEOUT, TWO, UNSAFE, played
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


def test_round_robin_follows_the_publish_list() -> None:
    assert picks(sent()) == ["1:a0", "1:a1", "1:b0", "1:b1", "1:c0", "1:c1"]


def test_a_retry_goes_to_the_next_queue_of_another_broker() -> None:
    assert picks(sent(Failure("a", REFUSED), messages=3)) == ["1:a0!", "2:b0", "1:b1", "1:c0"]


def test_only_the_broker_just_tried_is_passed_over() -> None:
    report = sent(Failure("a", REFUSED), Failure("b", REFUSED), topic=route(a=1, b=1), messages=1)
    assert picks(report) == ["1:a0!", "2:b0!", "3:a0!"]
    assert report.totals.lost_by == {"RemotingConnectException": 1}


def test_without_retries_a_failure_is_final() -> None:
    assert picks(sent(Failure("a", REFUSED), retries=0, messages=1)) == ["1:a0!"]


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
    assert [tally.picks for tally in report.queues] == [
        1,
        0,
        1,
        0,
        0,
        0,
    ]  # the second pick comes before the deadline's check
    assert "timeouts-not-retried" in [finding.code for finding in report.findings]


def test_at_the_very_deadline_there_are_attempts_without_any_time() -> None:
    """Each isolates a healthy broker: seen with real clients of 5.5.0 in about half of all time-outs."""
    report = sent(Failure("a", TIMEOUT), messages=1, overshoot_us=0, latency_fault=True, seed=3, client_version="5.1.4")
    assert picks(report)[0] == "1:a0!"
    assert {attempt.outcome for attempt in report.attempts or ()} == {"RemotingTimeoutException"}
    assert len(report.attempts or ()) == 3
    assert [broker.isolations for broker in report.brokers] == [1, 1, 1]


def test_a_cap_on_each_request_leaves_time_for_a_retry() -> None:
    report = sent(Failure("a", TIMEOUT), messages=1, timeout_per_request_ms=800)
    assert picks(report) == ["1:a0!", "2:b0"]
    assert report.totals.longest_send_ms == 800.5 + 1
    assert sent(Failure("a", TIMEOUT), messages=1, timeout_per_request_ms=800, client_version="5.3.2").totals.lost == 1


def test_a_lesser_status_is_stored_and_retried_only_when_asked() -> None:
    status = Failure("a", Reaction("status", "FLUSH_DISK_TIMEOUT", 10))
    plain = sent(status, messages=1)
    assert (plain.totals.attempts, plain.totals.stored, plain.totals.not_store_ok, plain.totals.lost) == (1, 1, 1, 0)
    again = sent(status, messages=1, retry_not_store_ok=True)
    assert (again.totals.attempts, again.totals.stored, again.totals.not_store_ok) == (2, 1, 0)
    assert sum(tally.stored for tally in again.queues) == 2  # the message is there twice


def test_a_status_before_an_error_is_the_result() -> None:
    status = Reaction("status", "SLAVE_NOT_AVAILABLE", 11)
    report = sent(
        Failure("a", status), Failure("b", code(13)), messages=1, retry_not_store_ok=True, latency=constant(1000, "1ms")
    )
    assert (report.totals.stored, report.totals.not_store_ok, report.totals.lost) == (1, 1, 0)


def test_a_slow_broker_isolates_itself_by_the_table_of_the_version() -> None:
    slow = Failure("a", Reaction("slow", "slow", 0, 800_000))
    new = sent(slow, latency_fault=True, rate=Fraction(10), messages=40)
    old = sent(slow, latency_fault=True, rate=Fraction(10), messages=40, client_version="4.9.7")
    assert [b.isolations for b in new.brokers] == [2, 0, 0]
    assert [b.isolations for b in old.brokers] == [1, 0, 0]
    assert new.brokers[0].isolated_ms == pytest.approx(2000 + 3901 - 3800, abs=1000)
    assert old.failures[0].isolated_by == "isolation"


def test_thresholds_can_be_given() -> None:
    slow = Failure("a", Reaction("slow", "slow", 0, 100_000))
    given: dict[str, Any] = {"latency_max": (50, 100), "not_available_duration": (0, 7000)}
    report = sent(slow, latency_fault=True, rate=Fraction(10), messages=100, **given)
    assert report.brokers[0].isolations == 2
    with pytest.raises(UsageError, match="2 thresholds of latency and 1 isolations"):
        sent(latency_max=(1, 2), not_available_duration=(3,))


def test_the_round_robin_starts_anew_after_a_retry_with_latency_fault() -> None:
    """5.1.4 and newer reset the index at random; 5.1.3 goes on."""
    failed = Failure("a", REFUSED, end=Moment(us=1000))
    old = sent(failed, latency_fault=True, client_version="5.1.3", messages=4)
    assert picks(old)[1:] == ["2:b0", "1:b0", "1:b1", "1:c0"]
    starts = {picks(sent(failed, latency_fault=True, messages=2, seed=seed))[1] for seed in range(40)}
    assert starts == {"2:b0", "2:b1", "2:c0", "2:c1"}


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


@every_case("began_s", [30, 60, 90])
def test_a_poll_at_the_very_moment_of_a_failure_comes_too_early(began_s: int) -> None:
    """Or a failure at a round time would hurt nobody."""
    failed = Failure("a", REFUSED, Moment(us=began_s * 1_000_000), notices_us=0)
    report = sent(failed, rate=Fraction(10), messages=2000)
    assert report.failures[0].isolated_ms == (began_s + 30) * 1000
    assert report.totals.failed_attempts > 0


def test_a_simulation_that_ends_before_the_route_poll_says_so() -> None:
    def codes(*failures: Failure, **settings: Any) -> list[str]:
        return [finding.code for finding in sent(*failures, **settings).findings]

    dead = Failure("a", REFUSED, notices_us=0)
    assert "before-route-poll" in codes(dead)
    assert "before-route-poll" not in codes(dead, rate=Fraction(1), messages=40)
    assert "before-route-poll" not in codes(Failure("a", REFUSED, end=Moment(us=2000), notices_us=0))
    assert "before-route-poll" not in codes(Failure("a", REFUSED))
    assert "before-route-poll" in codes(Failure("a", TIMEOUT, notices_us=120_000_000), rate=Fraction(1), messages=40)


def test_a_poll_at_a_random_time_is_anywhere_in_the_interval() -> None:
    polls = [
        simulate_send(THREE, SendScenario(messages=1, first_poll_us=None), trial=trial).producer.first_poll_ms
        for trial in range(300)
    ]
    assert len(set(polls)) == 300
    assert all(0 <= poll < 30_000 for poll in polls)
    quarters = [sum(int(poll // 7_500) == quarter for poll in polls) for quarter in range(4)]
    assert min(quarters) > 50  # 75 are expected


def test_a_restarted_broker_is_used_again_after_the_next_poll() -> None:
    window = Failure("a", REFUSED, Moment(us=10_000_000), Moment(us=40_000_000), notices_us=0)
    report = sent(window, rate=Fraction(10), messages=1000)
    assert report.failures[0].isolated_ms == 30_000
    assert report.failures[0].used_again_ms is not None
    assert 60_000 <= report.failures[0].used_again_ms < 61_000
    assert report.brokers[0].isolated_ms == 30_000


def test_a_read_only_broker_stores_until_the_poll() -> None:
    report = sent(Failure("a", Reaction("read-only", "read-only"), Moment(us=1)), rate=Fraction(1), messages=60)
    assert report.totals.failed_attempts == 0
    assert report.brokers[0].stored == 10
    assert report.failures[0].isolated_ms == 30_000


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


def test_messages_can_number_the_moments() -> None:
    report = sent(Failure("a", REFUSED, Moment(message=3), Moment(message=8)), messages=14)
    assert [a.message for a in report.attempts or () if a.outcome != "SEND_OK"] == [7]
    assert report.failures[0].began_ms == 2


def test_the_later_of_two_failures_of_one_broker_counts() -> None:
    report = sent(Failure("a", REFUSED), Failure("a", code(13, "MESSAGE_ILLEGAL")), messages=1)
    assert report.totals.lost_by == {"MESSAGE_ILLEGAL": 1}


def test_excluded_brokers_are_not_in_the_list() -> None:
    report = sent(exclude=frozenset("b"))
    assert {attempt.broker_name for attempt in report.attempts or ()} == {"a", "c"}
    assert [broker.broker_name for broker in report.brokers] == ["a", "c"]
    with pytest.raises(DataError, match="every broker with a queue for producers is excluded"):
        sent(exclude=frozenset("abc"), start_at=None)


def test_a_topic_without_a_queue_to_write_to_is_an_error() -> None:
    silent = TopicRouteData("T", (QueueData("a", 4, 4, 4),), ())
    with pytest.raises(DataError, match="no queue that a producer could write to"):
        sent(topic=silent)


def test_each_thread_has_its_own_round_robin() -> None:
    report = sent(threads=3, messages=60, rate=Fraction(1000), start_at=None)
    by_thread: dict[int, list[int]] = {1: [], 2: [], 3: []}
    order = [(queue.broker_name, queue.queue_id) for queue in report.publish_queues]
    for attempt in report.attempts or ():
        by_thread[attempt.thread].append(order.index((attempt.broker_name, attempt.queue_id)))
    for places in by_thread.values():
        assert [(place - places[0]) % 6 for place in places] == [i % 6 for i in range(20)]
    assert [a.thread for a in report.attempts or ()][:6] == [1, 2, 3, 1, 2, 3]


def test_threads_back_to_back_share_the_messages() -> None:
    report = sent(threads=4, messages=10)
    assert [a.message for a in report.attempts or ()] == list(range(1, 11))
    assert report.totals.lasted_ms == 3


def test_a_thread_that_is_held_up_sends_late() -> None:
    report = sent(Failure("a", Reaction("slow", "slow", 0, 1_000_000)), rate=Fraction(10), messages=3)
    assert [attempt.at_ms for attempt in report.attempts or ()] == [0, 1000, 2000]


def test_equal_seeds_give_equal_reports_and_others_do_not() -> None:
    scenario = SendScenario(messages=50, threads=2, failures=(Failure("b", TIMEOUT),), rate=Fraction(5))
    assert simulate_send(THREE, scenario) == simulate_send(THREE, scenario)
    other = simulate_send(THREE, replace(scenario, seed=2))
    assert other.attempts != simulate_send(THREE, scenario).attempts
    assert simulate_send(THREE, scenario, trial=1).attempts != simulate_send(THREE, scenario).attempts


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
    assert (
        len(attempts)
        == totals.attempts
        == sum(t.attempts for t in report.queues)
        == sum(b.attempts for b in report.brokers)
    )
    assert (
        sum(t.failed for t in report.queues)
        == totals.failed_attempts
        == sum(f.failed for f in report.failures) + sum(1 for a in attempts if a.took_ms == 0.1)
    )
    assert totals.retries == sum(1 for a in attempts if a.attempt > 1)
    assert totals.lost == sum(totals.lost_by.values()) == sum(s.lost for s in report.timeline)
    for name in "abc":
        assert sum(b.attempts for s in report.timeline for b in s.brokers if b.broker_name == name) == sum(
            1 for a in attempts if a.broker_name == name
        )
    assert [s.from_ms for s in report.timeline[1:]] == [s.to_ms for s in report.timeline[:-1]]


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


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(UsageError, match="how many messages"):
        sent(messages=None)
    with pytest.raises(UsageError, match="mode oneway needs a rate"):
        sent(mode="oneway")
    with pytest.raises(UsageError, match=r"older than 4\.0\.0"):
        sent(client_version="3.5.8")
    with pytest.raises(UsageError, match="not a client version"):
        sent(client_version="latest")


@every_case(
    ("scenario", "complaint"),
    [
        (SendScenario(threads=0), "threads is 0: a number from 1 to 1000 is needed"),
        (SendScenario(rate=Fraction(0)), "a rate of 0"),
        (SendScenario(poll_us=0), "poll_us is 0: a number from 1"),
        (SendScenario(latency=Latency("none", ())), r"latency\.table .*: a length from 1 is needed"),
        (SendScenario(latencies={"a": Latency("-1", (-1,))}), r"latencies\['a'\]\.table\[0\] is -1: a number from 0"),
        (
            SendScenario(failures=(Failure("a", Reaction("slow", "slow", cost_us=-1)),)),
            r"failures\[0\]\.reaction\.cost_us is -1",
        ),
        (SendScenario(messages=None, duration_us=1, latency=Latency("0", (0,))), "have no end within a duration"),
        (SendScenario(messages=None, duration_us=1, latencies={"a": Latency("0", (0,))}), "have no end within a"),
        (
            SendScenario(rate=Fraction(10**7) + 1),
            "a rate of 10000001/1 messages per second: more than 0 and at most 1000",
        ),
        (SendScenario(rate=Fraction(10**24 + 1, 10**24)), "the rate is finer than any clock"),
        (SendScenario(rate=Fraction(1, 10**24 + 1)), "the rate is finer than any clock"),
        (SendScenario(mode="async", rate=Fraction(1), selector=Selector("hash")), "for SYNC sends, not for ASYNC"),
        (SendScenario(mode="async", rate=None), "mode async needs a rate: its threads wait for nothing"),
        (
            SendScenario(selector=Selector("hash", queue=MessageQueue("T", "a", 0))),
            "kind queue needs a queue, and no oth",
        ),
        (SendScenario(start_at=1), "start_at is 1: the producer's list has 1 queues, 0 to 0"),
        (
            SendScenario(latency_max=(5, 5, 6), not_available_duration=(1, 2)),
            "3 thresholds of latency and 2 isolations",
        ),
        (SendScenario(latency_max=(5, 6), not_available_duration=(2, 1)), "2, 1: thresholds and isolations must rise"),
        (
            SendScenario(failures=(Failure("a", REFUSED, Moment(us=1, message=1)),)),
            r"failures\[0\]\.start is a time or",
        ),
        (SendScenario(failures=(Failure("a", REFUSED, end=Moment(us=1, message=1)),)), r"failures\[0\]\.end is a time"),
        (
            SendScenario(failures=(Failure("a", REFUSED), Failure("a", REFUSED, Moment(message=2), Moment(message=2)))),
            r"failures\[1\] ends before it starts",
        ),
        (SendScenario(failures=(Failure("a", Reaction("code", "X", 0)),)), r"failures\[0\]\.reaction\.code is 0"),
        (SendScenario(messages=None, duration_us=1, failures=(Failure("a", FREE),)), "have no end within a duration"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_numbers_that_make_no_sense_are_refused(scenario: SendScenario, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        simulate_send(route(a=1), scenario)


@every_case(
    "scenario",
    [
        SendScenario(rate=Fraction(10**7)),
        SendScenario(rate=Fraction(10**24 - 1, 10**24)),
        SendScenario(start_at=0),
        SendScenario(latency_max=(5, 5), not_available_duration=(1, 1)),
        SendScenario(failures=(Failure("a", Reaction("code", "X", 1)),)),
        SendScenario(failures=(Failure("a", REFUSED, Moment(us=1), Moment(us=2)),)),
        SendScenario(failures=(Failure("a", REFUSED, Moment(us=9), Moment(message=2)),)),
        SendScenario(latency=Latency("0", (0,)), duration_us=1),
        SendScenario(messages=None, duration_us=1, latency=Latency("0", (0,)), rate=Fraction(1)),
        SendScenario(messages=None, duration_us=1, latency=Latency("0 or 1", (0, 1))),
        SendScenario(messages=None, duration_us=1, failures=(Failure("a", ERROR),)),
    ],
    ids=str,
)
def test_the_last_that_makes_sense_is_simulated(scenario: SendScenario) -> None:
    scenario = scenario if scenario.messages is None else replace(scenario, messages=2)
    assert simulate_send(route(a=1), scenario).totals.messages >= 1


def test_all_queues_and_brokers_of_a_report_are_in_order() -> None:
    """An ASYNC retry keeps its queue id: queues that the list does not have come after it."""
    topic = route(a=3, b=1, c=1)
    scenario = SendScenario(mode="async", messages=60, rate=Fraction(10), failures=(Failure("a", REFUSED),), start_at=0)
    report = simulate_send(topic, scenario)
    found = [(tally.broker_name, tally.queue_id) for tally in report.queues]
    assert found == [*(("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0)), *(("b", 1), ("b", 2), ("c", 1), ("c", 2))]
    assert [(broker.broker_name, broker.queues) for broker in report.brokers] == [("a", 3), ("b", 1), ("c", 1)]
    for broker in report.brokers:
        own = [tally for tally in report.queues if tally.broker_name == broker.broker_name]
        assert broker.picks == sum(tally.picks for tally in own)
        assert broker.attempts == sum(tally.attempts for tally in own) == broker.failed + broker.stored
        assert broker.failed == sum(tally.failed for tally in own)
        assert broker.share == broker.stored / report.totals.stored


def test_a_failures_marks_are_told_in_milliseconds() -> None:
    """Messages come each second; the list changes at the polls at 30 and 60 s, a retry finds b at once."""
    window = Failure("a", REFUSED, Moment(us=2_500_000), Moment(us=45_000_000), notices_us=4_500)
    other = Failure("a", code(205, "NO_PERMISSION"), Moment(us=70_500_000))
    report = sent(window, other, topic=route(a=1, b=1), rate=Fraction(1), messages=80, first_poll_us=30_000_000)
    first, second = report.failures
    assert (first.kind, first.name, first.code) == ("refused", "refused", None)
    assert (second.kind, second.name, second.code) == ("code", "NO_PERMISSION", 205)
    assert (first.nameserver_notices_ms, second.nameserver_notices_ms) == (4.5, None)
    assert (first.began_ms, first.ended_ms, first.isolated_ms, first.isolated_by) == (2500, 45_000, 30_000, "route")
    assert (first.isolated_after_ms, report.totals.until_isolated_ms) == (27_500, 27_500)
    assert first.used_again_ms in (60_000, 61_000)
    assert first.used_again_after_ms == report.totals.until_used_again_ms == first.used_again_ms - 45_000
    assert (second.ended_ms, second.isolated_ms, second.isolated_after_ms, second.isolated_by) == (None,) * 4
    assert (second.used_again_ms, second.used_again_after_ms) == (None, None)
    assert (report.producer.first_poll_ms, report.producer.failure_isolates_ms) == (30_000, 10_000)


def test_the_attempt_that_uses_a_broker_again_ends_all_failures_that_are_over() -> None:
    """Each on a alone, from 1 to 3 s and from 2 to 4 s; the first message after both is sent at 4 s."""
    both = [Failure("a", REFUSED, Moment(us=s * 1_000_000), Moment(us=(s + 2) * 1_000_000)) for s in (1, 2)]
    report = sent(*both, topic=route(a=1), rate=Fraction(1), messages=7, retries=0)
    assert [failure.used_again_ms for failure in report.failures] == [4000, 4000]
    assert [failure.used_again_after_ms for failure in report.failures] == [1000, 0]
    assert report.totals.until_used_again_ms == 1000


def test_exceptions_are_told_by_how_many_messages_they_ended() -> None:
    """Most are lost at a, the first at b; as many at c as at b, later."""
    reactions = (code(13, "MESSAGE_ILLEGAL"), REFUSED, ERROR)
    failing = [Failure(name, reaction) for name, reaction in zip("bca", reactions, strict=True)]
    report = sent(*failing, topic=route(a=3, b=1, c=1), messages=10, retries=0, start_at=3)
    assert [(each.messages, each.first_message, each.brokers_sent) for each in report.exceptions] == [
        (6, 3, ("a",)),
        (2, 1, ("b",)),
        (2, 2, ("c",)),
    ]
    assert list(report.totals.lost_by) == sorted(report.totals.lost_by)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_attempts_and_lost_messages_are_told_by_message(mode: Any) -> None:
    """However they end: of two threads, the one that meets the slow broker is done long after the other."""
    slow, dead = Failure("a", Reaction("slow", "slow", 0, 900_000)), Failure("b", code(13))
    report = sent(slow, dead, mode=mode, topic=route(a=1, b=1), threads=2, rate=Fraction(10), messages=9, start_at=None)
    kept = [(each.message, each.attempt) for each in report.attempts or ()]
    assert kept == sorted(kept)
    assert [message for message, _ in kept] == list(range(1, 10))
    lost = [each.message for each in report.lost_messages or ()]
    assert lost == sorted(lost)
    assert len(lost) == report.totals.lost > 1


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


@every_case("threads", [1, 3])
@every_case("latency_fault", [False, True])
def test_attempts_may_take_no_time(threads: int, latency_fault: bool) -> None:
    everyone = tuple(Failure(name, FREE) for name in "ab")
    for scenario in (
        SendScenario(messages=3000, threads=threads, latency_fault=latency_fault, failures=everyone),
        SendScenario(messages=3000, threads=threads, latency_fault=latency_fault, latency=Latency("0", (0,))),
    ):
        assert simulate_send(route(a=3, b=4), scenario, trace=False).totals.messages == 3000


@every_case(
    ("failures", "fields", "draws"),
    [
        ((Failure("a", TIMEOUT),), {}, 1),
        ((Failure("a", TIMEOUT),), {"timeout_per_request_ms": 500}, 0),
        ((Failure("a", REFUSED), Failure("b", TIMEOUT)), {"retries": 1}, 0),
    ],
    ids=["first", "capped", "second"],
)
def test_how_far_into_a_millisecond_a_message_began_matters_after_a_first_timeout(
    failures: tuple[Failure, ...], fields: dict[str, Any], draws: int
) -> None:
    assert played(TWO, *failures, **fields).threads[0].draws == draws


@every_case("reaction", [REFUSED, TIMEOUT, UNSAFE, ERROR, Reaction("slow", "slow", 0, 90_000)], ids=lambda r: r.kind)
@every_case("mode", ["sync", "async", "oneway", "selector"])
def test_a_clock_of_finer_ticks_changes_no_time(mode: Any, reaction: Reaction) -> None:
    """Three messages a second need thirds of a microsecond; the first message is sent at 0 all the same."""
    failing = Failure("a", reaction, end=Moment(us=200_000), notices_us=100_000 if reaction.kind == "timeout" else None)
    how: Any = {"selector": Selector("hash")} if mode == "selector" else {"mode": mode}
    scenario = SendScenario("5.1.0", messages=1, start_at=0, latency_fault=True, failures=(failing,), **how)
    scenario = replace(scenario, timeout_ms=500, duration_us=100_000, first_poll_us=150_000)
    whole, third = (simulate_send(TWO, replace(scenario, rate=Fraction(rate))) for rate in (1, 3))
    assert replace(third, scenario=whole.scenario, producer=whole.producer) == whole
    assert len(whole.attempts or ()) >= 1


def test_a_failure_is_first_felt_by_the_first_attempt_that_fails_of_it() -> None:
    """A retry takes b's next queue, so that a has its turn at 0, 1, 3 and 5 s."""
    failing = Failure("a", REFUSED, Moment(us=500_000))
    (failure,) = simulate_send(
        TWO, SendScenario(messages=6, rate=Fraction(1), start_at=0, failures=(failing,))
    ).failures
    assert (failure.failed, failure.began_ms, failure.first_failed_ms, failure.last_failed_ms) == (
        3,
        500.0,
        1000.0,
        5000.0,
    )


@every_case("selector", [None, Selector("hash")], ids=["sync", "selector"])
@every_case(("us", "stored"), [(500_000, 1), (500_001, 0)])
def test_an_answer_that_takes_the_whole_budget_is_in_time(selector: Selector | None, us: int, stored: int) -> None:
    fields: dict[str, Any] = {"timeout_ms": 500, "retries": 0, "selector": selector}
    assert simulate_send(TWO, SendScenario(messages=1, latency=constant(us, "x"), **fields)).totals.stored == stored


def test_only_the_first_list_begins_where_it_is_told() -> None:
    """The route changes at 1 s: the second list's round robin starts at a random place."""
    failing = Failure("b", READ_ONLY)
    scenario = SendScenario(messages=2, rate=Fraction(1, 2), start_at=0, failures=(failing,), first_poll_us=1_000_000)
    runs = [simulate_send(route(a=8, b=1), replace(scenario, seed=seed)) for seed in range(8)]
    picked = [[attempt.queue_id for attempt in each.attempts or ()] for each in runs]
    assert {first for first, _ in picked} == {0}
    assert len({second for _, second in picked}) > 2


@every_case(("version", "timeout_ms", "empty_ms"), [("4.9.7", 500.75, 1), ("4.9.8", 500.75, 1), ("5.0.0", 500.5, 0.1)])
def test_what_a_client_takes_beyond_its_budget_is_as_measured(version: str, timeout_ms: float, empty_ms: float) -> None:
    asked: dict[str, Any] = {"client_version": version, "timeout_ms": 500, "retries": 0}
    assert played(TWO, Failure("a", TIMEOUT), **asked).recorder.last_done == timeout_ms * 1000
    assert played(TWO, Failure("a", TIMEOUT), **asked | {"timeout_ms": 0}).recorder.last_done == empty_ms * 1000


@pytest.mark.parametrize(("messages", "kept"), [(1000, True), (1001, False)])
def test_attempts_and_lost_messages_are_kept_of_a_thousand_messages_at_most(messages: int, kept: bool) -> None:
    report = simulate_send(TWO, SendScenario(messages=messages))
    assert ((report.attempts is not None), (report.lost_messages is not None)) == (kept, kept)


def test_a_queues_share_is_its_part_of_what_was_stored() -> None:
    failing = Failure("a", REFUSED, Moment(message=5), notices_us=None)
    report = simulate_send(route(a=1, b=2, c=3), SendScenario(messages=30, start_at=0, failures=(failing,)))
    stored = [tally.stored for tally in report.queues]
    assert len(set(stored)) > 2
    assert [tally.share for tally in report.queues] == [number / sum(stored) for number in stored]
    assert sum(stored) == 30
