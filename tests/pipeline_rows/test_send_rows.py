"""The producers stage without Spark: a shape stands for every topic that has it, and the engine says what comes of it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import UsageError, simulate_trials
from rmqlb.engine.send.latency import constant, from_samples
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.send_scenario import Failure, Moment, Reaction, Selector, SendScenario
from rmqlb.pipeline.producers.send_rows import (
    DIES,
    LOAD,
    QueueRun,
    SendSchedule,
    SendShape,
    check_schedule,
    jobs_of,
    outcome_of,
    route_of,
    scenario_of,
    scenarios_of,
    send_columns,
    shape_of,
)
from tests.engine.send.scenarios import BROKERS, scenarios
from tests.pipeline_rows.send_shapes import shape, static_route, told_of
from tests.support.builders import route
from tests.support.mismatches import every_case

REFUSED = Reaction("refused", "refused", 0, 1000)
TIMEOUT = Reaction("timeout", "timeout")
SAMPLES = from_samples([500, 1000, 4000], "samples")
SHORT = SendScenario(messages=40, latency=SAMPLES)


def written(route_: TopicRouteData) -> str:
    return msgspec.json.encode(shape(route_)).decode()


@st.composite
def odd_routes(draw: st.DrawFn) -> TopicRouteData:
    """Brokers that are read-only, write-only, without a master, listed twice, or in an order config."""
    names = draw(st.lists(st.sampled_from(BROKERS), min_size=1, max_size=4))
    datas = tuple(
        QueueData(name, draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.sampled_from((6, 6, 4))))
        for name in names
    )
    ordered = draw(st.sampled_from((False, False, True)))
    counts = {data.broker_name: data.write_queue_nums for data in reversed(datas)}
    return TopicRouteData(
        "T",
        datas,
        tuple(
            BrokerData("c", name, {draw(st.sampled_from((0, 0, 0, 1))): f"{name}:1"}) for name in dict.fromkeys(names)
        ),
        ";".join(f"{name}:{counts[name]}" for name in draw(st.permutations(sorted(counts)))) if ordered else None,
    )


@settings(max_examples=150)
@given(odd_routes(), scenarios(most_messages=60), st.booleans())
def test_a_shape_says_all_of_a_route_that_its_producer_goes_by(
    topic: TopicRouteData, scenario: SendScenario, is_slow: bool
) -> None:
    assume(topic.publish_queues())
    scenario = replace(scenario, rate=Fraction(1, 2)) if is_slow else scenario
    known = {data.broker_name for data in topic.queue_datas}
    failures = tuple(failure for failure in scenario.failures if failure.broker_name in known)
    latencies = {name: latency for name, latency in scenario.latencies.items() if name in known}
    schedule = SendSchedule(replace(scenario, failures=()), scenario.failures, in_turn=False)
    ours = scenario_of(shape(topic), schedule, "schedule")
    assert ours == replace(scenario, failures=failures, latencies=latencies)
    assert send_columns(simulate_trials(route_of(shape(topic)), ours, 3)) == send_columns(
        simulate_trials(topic, replace(scenario, failures=failures, latencies=latencies), 3)
    )


def test_a_row_is_what_simulate_trials_says() -> None:
    topic = route("Payments", a=4, b=2)
    failure = Failure("b", TIMEOUT, Moment(us=10_000))
    schedule = SendSchedule(SHORT, (failure,), in_turn=False, name="b is silent", trials=20)
    report = simulate_trials(topic, replace(SHORT, failures=(failure,)), 20)
    assert report.lost_share.mean > 0
    assert report.failed_at["b"].mean > report.failed_at["a"].mean
    assert outcome_of(written(topic), "b is silent", schedule) == {
        "shape": written(topic),
        "scenario": "b is silent",
        "latencyFault": False,
        "trials": 20,
        "messages": 40.0,
        "attempts": report.attempts_at["a"].mean + report.attempts_at["b"].mean,
        "attemptsPerMessage": report.attempts.mean,
        "retries": report.retries.mean,
        "lost": report.lost_messages.mean,
        "lostLow": report.lost_messages.low,
        "lostHigh": report.lost_messages.high,
        "lostShare": report.lost_share.mean,
        "losingTrials": 1.0,
        "longestSendMs": report.longest_send_ms and report.longest_send_ms.mean,
        "shares": [
            {
                "brokerName": name,
                "attempts": report.attempts_at[name].mean,
                "failures": report.failed_at[name].mean,
                "share": report.shares[name].mean,
            }
            for name in "ab"
        ],
    }


SELECTORS = (None, Selector("random"), Selector("machine-room"), Selector("hash", (5, -7, 3)))


@every_case("version", ["4.9.7", "5.1.0", "5.5.0"])
@every_case("selector", SELECTORS, ids=str)
def test_the_name_of_a_topic_plays_no_part(version: str, selector: Selector | None) -> None:
    kind = SendShape((QueueRun("a", 3), QueueRun("b", 5)), ("c",))
    load = replace(SHORT, client_version=version, selector=selector, latency_fault=True, threads=2)
    scenario = replace(load, failures=(Failure("a", REFUSED, Moment(us=5000)), Failure("b", TIMEOUT)))
    one, other = (simulate_trials(route_of(kind, name), scenario, 5) for name in ("Orders", "%RETRY%grüße"))
    assert one == replace(other, topic="Orders")
    assert other.topic == "%RETRY%grüße"


def test_by_default_each_broker_dies_in_turn() -> None:
    text = written(route(b=4, a=4, c=2))
    schedule = SendSchedule()
    check_schedule(schedule)
    jobs = list(jobs_of(text, schedule))
    assert jobs == [{"shape": text, "scenario": name} for name in "abc"]
    scenario = scenario_of(shape_of(text), schedule, "b")
    assert scenario == replace(LOAD, failures=(replace(DIES, broker_name="b"),))
    row = outcome_of(text, "b", schedule)
    # For 300 messages, until the route poll, a round is 6 messages: a's four, one that fails at b's first queue and
    # passes on over b's others to c's first, and c's second.
    assert (row["messages"], row["lost"], row["longestSendMs"]) == (1200, 0, 2)
    assert row["retries"] == pytest.approx(50, abs=1)
    assert {share["brokerName"]: share["share"] < 0.2 for share in row["shares"]} == {"a": False, "b": True, "c": False}


def test_a_topic_on_one_broker_loses_everything_from_its_death_on() -> None:
    row = outcome_of(written(route(a=4)), "a", SendSchedule(trials=5))
    assert (row["messages"], row["lost"], row["lostLow"], row["lostHigh"]) == (1200, 900, 900, 900)
    assert (row["lostShare"], row["losingTrials"]) == (0.75, 1)


@every_case("brokers", [{"a": 4}, {"a": 4, "b": 2}], ids="-".join)
@every_case("kind", ["refused", "timeout"])
def test_a_row_counts_what_simulate_send_counts(kind: str, brokers: dict[str, Any]) -> None:
    topic = route("Payments", **brokers)
    dies = DIES if kind == "refused" else Failure("*", TIMEOUT, DIES.start, notices_us=120_000_000)
    row = outcome_of(written(topic), "a", SendSchedule(failures=(dies,), trials=5))
    told = told_of(topic, f"a@30s-:{kind}", 5)
    trials = told["trials"]
    named = {
        "messages": "messages",
        "attemptsPerMessage": "attemptsPerMessage",
        "retries": "retries",
        "lost": "lost",
        "lostShare": "lostShare",
        "losingTrials": "losingTrials",
        "longestSendMs": "longestSendMs",
    }
    assert {column: row[column] for column in named} == {name: trials[key]["mean"] for name, key in named.items()}
    assert (row["lostLow"], row["lostHigh"]) == (trials["lost"]["low"], trials["lost"]["high"])
    assert row["attempts"] == pytest.approx(row["messages"] + row["retries"])
    if len(brokers) == 1 and kind == "refused":  # nothing is random: one run counts what all of them do
        assert (row["lost"], row["attempts"]) == (told["totals"]["lost"], told["totals"]["attempts"])


def test_a_trial_that_stores_nothing_has_no_shares() -> None:
    schedule = SendSchedule(SHORT, (Failure("*", REFUSED),), trials=2)
    assert outcome_of(written(route(a=1)), "a", schedule)["shares"] == [
        {"brokerName": "a", "attempts": 120, "failures": 120, "share": None}
    ]


def test_failures_and_latencies_go_by_pattern_and_by_the_topics_own_brokers() -> None:
    slow, quick = constant(9000, "9ms"), constant(500, "500us")
    schedule = SendSchedule(
        replace(SHORT, latencies={"x-*": slow, "x-2": quick, "elsewhere": slow}),
        (Failure("y", REFUSED), Failure("x-[12]", TIMEOUT), Failure("x-2", REFUSED)),
        in_turn=False,
    )
    kind = SendShape((QueueRun("x-1", 1), QueueRun("x-2", 1), QueueRun("x-3", 1)))
    scenario = scenario_of(kind, schedule, "schedule")
    assert scenario is not None
    assert scenario.failures == (Failure("x-1", TIMEOUT), Failure("x-2", TIMEOUT), Failure("x-2", REFUSED))
    assert scenario.latencies == {"x-1": slow, "x-2": quick, "x-3": slow}


def test_a_brokers_own_name_fits_it_even_where_it_looks_like_a_pattern() -> None:
    schedule = SendSchedule(SHORT, (Failure("x[1]", REFUSED),))
    assert scenarios_of(SendShape((QueueRun("x1", 1), QueueRun("x[1]", 1), QueueRun("y", 1))), schedule) == (
        "x1",
        "x[1]",
    )


def test_in_turn_a_broker_meets_all_failures_that_fit_it_and_no_other() -> None:
    schedule = SendSchedule(SHORT, (Failure("*", TIMEOUT), Failure("b", REFUSED)))
    kind = SendShape((QueueRun("a", 1), QueueRun("b", 1)))
    found = {name: scenario_of(kind, schedule, name) for name in scenarios_of(kind, schedule)}
    assert {name: scenario.failures for name, scenario in found.items() if scenario} == {
        "a": (Failure("a", TIMEOUT),),
        "b": (Failure("b", TIMEOUT), Failure("b", REFUSED)),
    }


@pytest.mark.parametrize(("in_turn", "name"), [(True, None), (False, "schedule")])
def test_a_topic_that_the_schedule_does_not_touch_is_simulated_all_the_same(in_turn: bool, name: str | None) -> None:
    schedule = SendSchedule(SHORT, (Failure("z", REFUSED),), in_turn=in_turn, trials=3)
    kind = shape(route(a=2, b=2))
    assert scenarios_of(kind, schedule) == (name,)
    assert scenario_of(kind, schedule, name) == SHORT


UNSENDABLE = {
    "nobody has a master": route(masters=False, a=4),
    "read-only": route(perm=4, a=4),
    "a malformed order config": replace(route(a=4), order_topic_conf="a:many"),
    "no broker at all": TopicRouteData("T", (), ()),
}


@every_case("name", UNSENDABLE)
@every_case("in_turn", [True, False])
def test_a_topic_that_cannot_be_sent_to_is_one_row_without_trials(name: str, in_turn: bool) -> None:
    text = written(UNSENDABLE[name])
    schedule = SendSchedule(in_turn=in_turn)
    (job,) = jobs_of(text, schedule)
    assert job["scenario"] == (None if in_turn else "schedule")
    assert outcome_of(text, job["scenario"], schedule) == {**job, "latencyFault": False, "trials": 0}


def test_a_producer_that_leaves_out_every_broker_has_no_trials() -> None:
    schedule = SendSchedule(replace(SHORT, exclude=frozenset("ab")), in_turn=False, trials=2)
    assert outcome_of(written(route(a=4, b=4)), "schedule", schedule)["trials"] == 0
    assert outcome_of(written(route(a=4, c=4)), "schedule", schedule)["trials"] == 2


def test_of_a_static_topic_nobody_knows_which_broker_bears_its_queues() -> None:
    text = written(static_route("Logical", 8, "broker-a"))
    broker = "__syslo__global__"
    assert list(jobs_of(text, SendSchedule())) == [{"shape": text, "scenario": None}]
    assert outcome_of(text, None, SendSchedule())["trials"] == 0
    healthy = outcome_of(text, "healthy", SendSchedule(SHORT, (), in_turn=False, name="healthy", trials=2))
    assert (healthy["trials"], healthy["lost"], healthy["shares"]) == (
        2,
        0,
        [{"brokerName": broker, "attempts": 40, "failures": 0, "share": 1}],
    )
    direct = send_columns(simulate_trials(static_route("Logical", 8, "broker-a"), SHORT, 2))
    assert {name: healthy[name] for name in direct} == direct


def test_the_queues_of_an_order_topic_stay_in_the_list_whatever_fails() -> None:
    plain = route(a=2, b=2)
    ordered = replace(plain, order_topic_conf="b:2;a:2")
    schedule = SendSchedule(trials=3)
    assert scenarios_of(shape(ordered), schedule) == ("b", "a")
    rows = {name: outcome_of(written(topic), "a", schedule) for name, topic in (("o", ordered), ("p", plain))}
    assert rows["o"]["retries"] > 2 * rows["p"]["retries"]


def test_an_unknown_shape_is_that_of_a_topic_without_queues() -> None:
    assert shape_of("{}") == SendShape()
    text = '{"publish":[{"brokerName":"a","queues":2}],"others":["b"],"fixed":true,"isStatic":false}'
    assert shape_of(text) == SendShape((QueueRun("a", 2),), ("b",), fixed=True)


BAD: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "one trial": ({"trials": 1}, {}, "1 trials: at least 2"),
    "async": ({}, {"mode": "async"}, "SYNC sends, not ASYNC"),
    "no end": ({}, {"duration_us": None}, "how many messages"),
    "client": ({}, {"client_version": "3.0.0"}, "3.0.0"),
    "failures": ({}, {"failures": (DIES,)}, "belong to the schedule"),
    "queue": ({}, {"selector": Selector("queue", queue=MessageQueue("T", "a", 0))}, "about one topic"),
}


@every_case("name", BAD)
def test_a_schedule_that_cannot_be_simulated_for_all_topics_is_refused(name: str) -> None:
    of_schedule, of_scenario, words = BAD[name]
    with pytest.raises(UsageError, match=words):
        check_schedule(SendSchedule(replace(LOAD, **of_scenario), **of_schedule))
