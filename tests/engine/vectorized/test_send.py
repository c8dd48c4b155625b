"""Each trial of the kernel is the engine's trial of that number, in every counter."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import erf, log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.randomness import draw, stream_key
from rmqlb.engine.send.encode_scenario import Lanes, lanes_of
from rmqlb.engine.send.latency import constant, from_samples, lognormal
from rmqlb.engine.send.simulate import rules, simulate_send
from rmqlb.engine.send.simulation import SendSimulation
from rmqlb.engine.send.vectorized.counters import SendCounts
from rmqlb.engine.send.vectorized.simulation import SendKernel
from rmqlb.engine.send.vectorized.tables import SendTables
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_report import SendReport
from rmqlb.model.send_scenario import Failure, Latency, Moment, Reaction, SendScenario
from tests.engine.send.scenarios import REACTIONS, VERSIONS, fitting, routes
from tests.support.builders import route

THREE = route(a=4, b=4, c=4)
REFUSED = Reaction("refused", "refused", 0, 1000)
TIMEOUT = Reaction("timeout", "timeout")
BUSY = Reaction("code", "SYSTEM_BUSY", 2)
UNSAFE = Reaction("status", "FLUSH_DISK_TIMEOUT", 10)
READ_ONLY = Reaction("read-only", "read-only")
LOGNORMAL = lognormal(400_000, 1.5, "lognormal, 400 ms, 1.5")


def lanes(topic: TopicRouteData, scenario: SendScenario) -> Lanes | None:
    return lanes_of(SendSimulation(topic, scenario, rules(scenario)))


def counted(topic: TopicRouteData, scenario: SendScenario, trials: Sequence[int]) -> tuple[Lanes, SendCounts]:
    covered = lanes(topic, scenario)
    assert covered is not None
    return covered, SendKernel(covered.plan).run(trials)


def as_counted(covered: Lanes, counts: SendCounts, lane: int) -> dict[str, Any]:
    """What the kernel says of a lane."""
    per_ms = 1000 * covered.plan.ticks
    lost = {reason: int(times) for reason, times in zip(covered.reasons, counts.lost[lane], strict=True) if times}
    return {
        "queues": {
            queue: (int(picks), int(failed + stored), int(failed), int(stored))
            for queue, picks, failed, stored in zip(
                covered.rows, counts.picks[lane], counts.failed[lane], counts.stored[lane], strict=True
            )
        },
        "messages": counts.messages[lane],
        "stored": counts.messages[lane] - sum(lost.values()),
        "not_store_ok": counts.not_store_ok[lane],
        "duplicated": counts.duplicated[lane],
        "lost_by": lost,
        "attempts": counts.attempts[lane],
        "failed_attempts": counts.failed[lane].sum(),
        "retries": counts.retries[lane],
        "retried": counts.retried[lane],
        "failing_ms": counts.failing[lane] / per_ms,
        "longest_send_ms": counts.longest[lane] / per_ms,
        "lasted_ms": counts.last_done[lane] / per_ms,
        "brokers": {
            name: (
                int(counts.stored_by_broker[lane, i]),
                int(counts.isolations[lane, i]),
                counts.isolated_ticks[lane, i] / per_ms,
            )
            for i, name in enumerate(covered.broker_names)
        },
        "failures": [
            tuple(None if at < 0 else at / per_ms for at in times)
            for times in zip(counts.began[lane], counts.isolated_at[lane], strict=True)
        ],
    }


def as_reported(covered: Lanes, report: SendReport) -> dict[str, Any]:
    """What the engine says of a trial."""
    totals = report.totals
    none = (0, 0, 0, 0)
    seen = {tally.queue: (tally.picks, tally.attempts, tally.failed, tally.stored) for tally in report.queues}
    assert set(seen) <= set(covered.rows)
    return {
        "queues": {queue: seen.get(queue, none) for queue in covered.rows},
        "messages": totals.messages,
        "stored": totals.stored,
        "not_store_ok": totals.not_store_ok,
        "duplicated": totals.duplicated,
        "lost_by": totals.lost_by,
        "attempts": totals.attempts,
        "failed_attempts": totals.failed_attempts,
        "retries": totals.retries,
        "retried": totals.retried,
        "failing_ms": totals.failing_ms,
        "longest_send_ms": totals.longest_send_ms or 0,
        "lasted_ms": totals.lasted_ms,
        "brokers": {b.broker_name: (b.stored, b.isolations, b.isolated_ms) for b in report.brokers},
        "failures": [(failure.began_ms, failure.isolated_ms) for failure in report.failures],
    }


def hold_equal(topic: TopicRouteData, scenario: SendScenario, trials: Sequence[int]) -> list[int]:
    """Every trial that is not flagged equals the engine's; the flagged ones are returned."""
    covered, counts = counted(topic, scenario, trials)
    for lane, trial in enumerate(trials):
        if not counts.flagged[lane]:
            report = simulate_send(topic, scenario, trial=trial, skip=False, trace=False)
            assert as_counted(covered, counts, lane) == as_reported(covered, report), trial
    return [trial for lane, trial in enumerate(trials) if counts.flagged[lane]]


# Random scenarios

NAMES = ("a", "b", "c", "d")
TIMES = st.sampled_from((0, 0, 1000, 100_000, 1_000_000, 5_000_000))


def latencies() -> st.SearchStrategy[Latency]:
    """Constants, small tables, and a lognormal distribution whose longest values time out."""
    values = (0, 500, 1000, 30_000, 120_000, 600_000, 1_900_000, 3_100_000)
    return st.one_of(
        st.sampled_from(values).map(lambda us: constant(us, f"{us}us")),
        st.lists(st.sampled_from(values), min_size=1, max_size=5).map(lambda samples: from_samples(samples, "samples")),
        st.just(Latency("with a tail", (500, 1000, 2000), (3000, 1_000_000, 5_000_000))),
        st.just(LOGNORMAL),
    )


@st.composite
def failures(draw: st.DrawFn) -> Failure:
    start = draw(TIMES)
    length = draw(st.sampled_from((None, None, 1, 1000, 500_000, 3_000_000, 40_000_000)))
    return Failure(
        draw(st.sampled_from(NAMES)),
        draw(st.sampled_from(REACTIONS)),
        Moment(us=start),
        None if length is None else Moment(us=start + length),
        draw(st.sampled_from((None, 0, 10_000, 400_000))),
    )


@st.composite
def scenarios(draw: st.DrawFn) -> SendScenario:
    messages = draw(st.one_of(st.integers(1, 60), st.none()))
    some_rate = st.sampled_from((Fraction(10), Fraction(100, 3), Fraction(1, 3)))
    rate = draw(some_rate if messages is None else st.one_of(st.none(), some_rate, st.just(Fraction(5000))))
    ends = st.sampled_from((1, 100_000, 3_000_000))
    return SendScenario(
        client_version=draw(st.sampled_from(VERSIONS)),
        latency_fault=draw(st.booleans()),
        detector=draw(st.sampled_from((False, False, True))),
        threads=draw(st.sampled_from((1, 1, 2, 3, 5))),
        messages=messages,
        rate=rate,
        duration_us=draw(ends if messages is None else st.one_of(st.none(), ends)),
        retries=draw(st.sampled_from((0, 1, 2, 2, 4))),
        timeout_ms=draw(st.sampled_from((3000, 3000, 0, 1, 50, 1000))),
        timeout_per_request_ms=draw(st.sampled_from((None, None, 0, 300))),
        retry_not_store_ok=draw(st.booleans()),
        failures=tuple(draw(st.lists(failures(), max_size=3))),
        latencies=draw(st.dictionaries(st.sampled_from(NAMES), latencies(), max_size=2)),
        latency=draw(latencies()),
        start_at=draw(st.sampled_from((None, None, 0, 3))),
        seed=draw(st.integers(-1, 5)),
        first_poll_us=draw(st.sampled_from((0, 500_000, 30_000_000))),
        poll_us=draw(st.sampled_from((1_000_000, 30_000_000))),
        overshoot_us=draw(st.sampled_from((None, 0, 1700))),
    )


@settings(max_examples=100)
@given(routes(), scenarios(), st.sampled_from((0, 1000)))
def test_every_counter_of_every_trial_is_the_engines(topic: TopicRouteData, scenario: SendScenario, first: int) -> None:
    scenario = fitting(topic, scenario)
    if lanes(topic, scenario) is not None:
        hold_equal(topic, scenario, range(first, first + 5))


# Chosen scenarios


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("latency_fault", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_window_of_failure_is_taken_as_every_version_takes_it(
    version: str, latency_fault: bool, threads: int
) -> None:
    window = Failure("a", REFUSED, Moment(us=20_000), Moment(us=90_000), notices_us=30_000)
    scenario = SendScenario(
        version,
        latency_fault=latency_fault,
        threads=threads,
        messages=100,
        failures=(window,),
        latency=lognormal(1500, 0.5, "lognormal"),
        first_poll_us=60_000,
        poll_us=60_000,
    )
    flagged = hold_equal(THREE, scenario, range(2))
    # 4.7.1 insists on the broker that has just failed, and then has none.
    assert bool(flagged) == (version == "4.7.1" and latency_fault)


TAILED = Latency("with a tail", (500, 1000, 2000), (3000, 1_000_000, 5_000_000))
FEW = from_samples([500, 30_000, 600_000, 3_100_000], "samples")
SLOW = Reaction("slow", "slow", 0, 700_000)
FOLLOWED: dict[str, dict[str, Any]] = {
    "own latencies": {"latencies": {"b": FEW, "c": constant(7000, "7ms")}, "messages": 40},
    "own latencies, three threads": {"latencies": {"a": TAILED, "b": FEW}, "threads": 3, "messages": 60},
    "own latencies, a failure": {"latencies": {"b": FEW}, "failures": (Failure("a", REFUSED),), "messages": 40},
    "a tail everywhere": {"latency": TAILED, "latency_fault": True, "messages": 80},
    "a tail of one": {"latency": constant(250, "x"), "latencies": {"c": TAILED}, "latency_fault": True, "messages": 80},
    "slow ones isolate": {"latency": FEW, "latency_fault": True, "threads": 2, "messages": 60},
    "4.9.7 forgets": {"client_version": "4.9.7", "latencies": {"b": FEW}, "latency_fault": True, "messages": 90},
    "4.9.8, two threads": {"client_version": "4.9.8", "latencies": {"b": FEW}, "latency_fault": True, "threads": 2},
    "5.1.3, by rate": {
        "client_version": "5.1.3",
        "latencies": {"b": FEW},
        "latency_fault": True,
        "rate": Fraction(5),
        "timeout_ms": 4000,
    },
    "isolated at once": {"latency_fault": True, "threads": 5, "failures": (Failure("b", REFUSED),), "messages": 60},
    "4.9.8, isolated at once": {
        "client_version": "4.9.8",
        "latency_fault": True,
        "threads": 5,
        "failures": (Failure("b", REFUSED),),
        "messages": 60,
    },
    "lost by a refusal": {"failures": (Failure("a", REFUSED),), "retries": 0},
    "an excluded broker fails": {
        "exclude": frozenset("a"),
        "latency_fault": True,
        "failures": (Failure("a", REFUSED), Failure("b", REFUSED)),
    },
    "no time": {"timeout_ms": 0, "retries": 1, "messages": 10, "failures": (Failure("a", REFUSED),)},
    "no time, no failure": {"timeout_ms": 0, "retries": 2, "messages": 10, "latency_fault": True},
    "a millisecond": {"timeout_ms": 1, "latency": constant(1000, "1ms"), "latencies": {"b": constant(1001, "x")}},
    "no cap time": {"timeout_per_request_ms": 0, "messages": 10},
    "cap": {"timeout_per_request_ms": 300, "latency": FEW, "messages": 30, "retries": 3, "timeout_ms": 700},
    "cap of the only attempt": {"timeout_per_request_ms": 300, "latency": FEW, "messages": 30, "retries": 0},
    "cap beyond": {"timeout_per_request_ms": 5000, "failures": (Failure("a", TIMEOUT),), "messages": 30},
    "late and later": {"failures": (Failure("a", TIMEOUT), Failure("b", TIMEOUT)), "overshoot_us": 0, "retries": 4},
    "slow and late": {"failures": (Failure("a", SLOW), Failure("b", SLOW)), "timeout_ms": 650, "latency_fault": True},
    "slow by thirds": {"failures": (Failure("a", SLOW),), "rate": Fraction(100, 3), "threads": 5, "messages": 40},
    "rate": {"rate": Fraction(5000), "threads": 3, "messages": 61, "latency": TAILED},
    "rate, one thread": {"rate": Fraction(1, 3), "messages": 7, "failures": (Failure("b", BUSY),)},
    "until": {"messages": None, "duration_us": 100_000, "failures": (Failure("b", REFUSED, Moment(us=99_000)),)},
    "until, by rate": {"messages": None, "duration_us": 3_000_000, "rate": Fraction(10), "threads": 2},
    "until or so many": {"messages": 50, "duration_us": 3_000_000, "latency": FEW, "threads": 2},
    "until, isolated": {
        "messages": 400,
        "duration_us": 20_000_000,
        "rate": Fraction(10),
        "latency_fault": True,
        "failures": (Failure("a", REFUSED, Moment(us=1_000_000), notices_us=3_000_000),),
        "first_poll_us": 5_000_000,
        "poll_us": 1_000_000,
    },
    "two of one broker": {
        "failures": (
            Failure("a", BUSY, Moment(us=5000), Moment(us=40_000)),
            Failure("a", REFUSED, Moment(us=20_000), Moment(us=60_000)),
        ),
        "latency_fault": True,
        "messages": 80,
    },
    "the least seed": {"seed": -1, "start_at": 3, "threads": 2, "messages": 20},
    "all lesser": {
        "failures": tuple(Failure(name, UNSAFE) for name in "abc"),
        "retry_not_store_ok": True,
        "messages": 10,
        "latency_fault": True,
    },
    "lesser, then stored": {"failures": (Failure("a", UNSAFE),), "retry_not_store_ok": True, "messages": 30},
    "5.1.3, lesser, then another broker": {
        "client_version": "5.1.3",
        "latency_fault": True,
        "failures": (Failure("a", UNSAFE),),
        "retry_not_store_ok": True,
        "messages": 30,
    },
    "5.1.0, lesser, then the same broker": {
        "client_version": "5.1.0",
        "latency_fault": True,
        "failures": (Failure("a", UNSAFE),),
        "retry_not_store_ok": True,
        "messages": 30,
    },
    "detector, dead": {
        "client_version": "5.1.4",
        "latency_fault": True,
        "detector": True,
        "rate": Fraction(10),
        "messages": 150,
        "failures": (Failure("a", TIMEOUT, Moment(us=500_000), Moment(us=6_100_000)), Failure("b", SLOW)),
    },
    "detector, slow answers": {
        "client_version": "5.5.0",
        "latency_fault": True,
        "detector": True,
        "rate": Fraction(10),
        "messages": 90,
        "failures": (Failure("a", Reaction("slow", "slow", 0, 3_500_000)), Failure("b", BUSY)),
    },
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_whatever_is_asked_for_the_kernel_follows_the_engine(name: str) -> None:
    given: dict[str, Any] = {"messages": 20, "first_poll_us": 30_000_000}
    assert hold_equal(THREE, SendScenario(**given | FOLLOWED[name]), range(3)) == []


def test_a_failure_that_comes_just_at_the_end_has_come() -> None:
    """Three messages of 1 ms: the last is done at 3 ms."""
    for at, began in ((3000, 3.0), (3001, None)):
        scenario = SendScenario(messages=3, failures=(Failure("a", REFUSED, Moment(us=at)),))
        assert hold_equal(THREE, scenario, range(2)) == []
        assert simulate_send(THREE, scenario).failures[0].began_ms == began


@pytest.mark.parametrize(
    ("brokers", "runs"),
    [
        ([0], [1]),
        ([0, 0, 0], [3, 3, 3]),
        ([0, 1], [1, 1]),
        ([0, 0, 1], [2, 1, 1]),
        ([0, 1, 1, 0], [1, 2, 1, 2]),
        ([0, 0, 1, 1, 1, 0], [2, 1, 3, 2, 1, 3]),
    ],
)
def test_a_run_is_how_far_the_next_queue_of_another_broker_is(brokers: list[int], runs: list[int]) -> None:
    """Around the end of the list too; the list's length when there is none."""
    plan = lanes(route(a=1), SendScenario()).plan  # type: ignore[union-attr]
    rows, numbered = len(brokers), tuple(brokers)
    assert SendTables(replace(plan, row_brokers=numbered, lists=(tuple(range(rows)),))).runs.tolist() == runs


def test_a_success_isolates_by_the_highest_threshold_that_it_reaches() -> None:
    """A broken millisecond does not count; durations of 0 isolate no broker."""
    plan = lanes(route(a=1), SendScenario(rate=Fraction(3))).plan  # type: ignore[union-attr]
    assert plan.ticks == 3
    tables = SendTables(replace(plan, thresholds=((50, 0), (550, 2000), (1800, 5000))))
    took = np.array([us * 3 for us in (0, 50_000, 549_999, 550_000, 1_799_999, 1_800_000, 9_000_000)])
    assert tables.durations(took).tolist() == [ms * 3000 for ms in (0, 0, 0, 2000, 2000, 5000, 5000)]
    assert tables.isolates_from == 550 * 3000
    assert SendTables(replace(plan, thresholds=((50, 0),))).isolates_from == 1 << 62


def test_listed_time_leaves_out_what_a_broker_was_unlisted_for() -> None:
    """Broker a is read-only from 1 to 3 s; the client polls each second from 1.5 s on."""
    failing = Failure("a", READ_ONLY, Moment(us=1_000_000), Moment(us=3_000_000))
    covered = lanes(THREE, SendScenario(failures=(failing,), first_poll_us=1_500_000, poll_us=1_000_000))
    assert covered is not None
    tables = SendTables(covered.plan)
    times = [0, 1_500_000, 2_000_000, 3_500_000, 4_000_000]
    at = np.array(times)
    assert tables.listed_time(np.zeros(5, np.int64), at).tolist() == [0, 1_500_000, 1_500_000, 1_500_000, 2_000_000]
    assert tables.listed_time(np.ones(5, np.int64), at).tolist() == times


def test_a_broker_without_an_address_fails_at_once() -> None:
    gone = Failure("a", TIMEOUT, Moment(us=0), notices_us=1_000_000)
    ordered = replace(THREE, order_topic_conf="a:4;b:4;c:4")
    scenario = SendScenario(messages=40, failures=(gone,), first_poll_us=1_000_000, poll_us=1_000_000)
    assert hold_equal(ordered, scenario, range(6)) == []
    covered, counts = counted(ordered, replace(scenario, retries=0), range(6))
    assert counts.lost[:, covered.reasons.index("MQClientException")].all()


def test_time_outs_draw_how_far_into_a_millisecond_a_message_began() -> None:
    scenario = SendScenario(messages=30, failures=(Failure("a", TIMEOUT),), retries=3)
    assert hold_equal(THREE, scenario, range(20)) == []
    covered, counts = counted(THREE, scenario, range(20))
    late, empty = (counts.lost[:, covered.reasons.index(name)] for name in ("call timeout", "RemotingTimeoutException"))
    assert late.any()
    assert (counts.picks.sum(axis=1) - counts.attempts == late).all()
    assert empty.any()


@pytest.mark.parametrize("version", ["5.3.2", "5.3.3"])
def test_a_request_is_cut_short_where_the_version_has_the_setting(version: str) -> None:
    """`sendMsgMaxTimeoutPerRequest` came with 5.3.3: only there is time left for other brokers."""
    scenario = SendScenario(version, messages=20, failures=(Failure("a", TIMEOUT),), timeout_per_request_ms=300)
    assert hold_equal(THREE, scenario, range(4)) == []
    totals = simulate_send(THREE, scenario).totals
    assert (totals.lost > 0) == (version == "5.3.2")


def test_a_broker_that_waits_for_the_detector_is_available_when_its_isolation_is_over() -> None:
    """Since 5.2.0, where the first filter does not ask whether a broker can be reached."""
    dead = (Failure("a", REFUSED),)
    scenario = SendScenario(
        "5.5.0", latency_fault=True, detector=True, messages=90, rate=Fraction(1), failures=dead, start_at=0
    )
    assert hold_equal(THREE, scenario, range(4)) == []
    assert simulate_send(THREE, scenario).brokers[0].isolations > 1


def test_a_retry_that_no_filter_lets_pass_takes_the_next_queue() -> None:
    """The only broker of the topic has just failed: it is neither available nor another than the last."""
    scenario = SendScenario("5.5.0", latency_fault=True, messages=20, failures=(Failure("a", BUSY),), start_at=0)
    assert hold_equal(route(a=4), scenario, range(4)) == []
    assert all(each.picks for each in simulate_send(route(a=4), scenario).queues)


def test_a_lesser_status_is_kept_when_later_attempts_fail() -> None:
    both = (Failure("a", UNSAFE), Failure("b", BUSY), Failure("c", REFUSED))
    scenario = SendScenario(messages=50, failures=both, retry_not_store_ok=True)
    assert hold_equal(THREE, scenario, range(8)) == []
    assert counted(THREE, scenario, range(8))[1].not_store_ok.all()


def test_a_detector_clears_what_it_finds() -> None:
    window = Failure("a", REFUSED, Moment(us=0), Moment(us=4_000_000))
    scenario = SendScenario(
        "5.1.4", latency_fault=True, detector=True, threads=2, rate=Fraction(20), messages=400, failures=(window,)
    )
    assert hold_equal(THREE, scenario, range(4)) == []


def test_a_list_that_becomes_shorter_and_longer_gives_new_indexes() -> None:
    window = Failure("b", READ_ONLY, Moment(us=100_000), Moment(us=300_000))
    scenario = SendScenario(
        threads=3, messages=1500, failures=(window,), start_at=2, first_poll_us=150_000, poll_us=100_000
    )
    assert hold_equal(THREE, scenario, range(5)) == []
    assert len(counted(THREE, scenario, [0])[0].plan.lists) == 3


@pytest.mark.parametrize(("trial", "left"), [(28630955, 13), (37649860, 32)])
def test_the_index_wraps_after_31_bits(trial: int, left: int) -> None:
    start = draw(stream_key(1, trial, 1), 0) >> 32
    assert 0x7FFFFFFF - (start & 0x7FFFFFFF) == left
    assert hold_equal(route(a=3, b=4), SendScenario(messages=60), [trial]) == []
    # Where more than a step is needed just there, and where older clients go backwards, the engine goes on.
    assert hold_equal(route(a=3, b=4), SendScenario(messages=60, failures=(Failure("a", REFUSED),)), [trial]) == [trial]
    assert hold_equal(route(a=3, b=4), SendScenario("4.9.3", messages=60), [5, trial]) == [trial] * (start < 2**31)


@pytest.mark.parametrize(
    ("version", "first", "left"), [("4.7.1", 1, []), ("4.8.0", 2, [0]), ("4.9.3", 2, [0]), ("4.9.4", 1, [])]
)
def test_an_index_that_begins_at_the_least_int(version: str, first: int, left: list[int]) -> None:
    """`Math.abs` leaves −2^31 as it is, this seed's first draw: 4.7.1 makes it 0, and the next of 4.8.0 is 2^31 − 1."""
    scenario = SendScenario(version, messages=20, seed=7820257040943770961)
    assert draw(stream_key(scenario.seed, 0, 1), 0) >> 32 == 2**31
    (attempt, *_) = simulate_send(route(a=5), scenario).attempts or ()
    assert attempt.queue_id == first
    assert hold_equal(route(a=5), scenario, [0, 1]) == left


def test_results_do_not_depend_on_the_company_a_trial_is_in() -> None:
    scenario = SendScenario(messages=40, failures=(Failure("a", REFUSED),), latency=LOGNORMAL, latency_fault=True)
    covered, together = counted(THREE, scenario, range(40))
    _, alone = counted(THREE, scenario, [17])
    assert as_counted(covered, together, 17) == as_counted(covered, alone, 0)


@pytest.mark.parametrize(
    "scenario",
    [
        SendScenario(mode="async", rate=Fraction(10)),
        SendScenario(failures=(Failure("a", REFUSED, Moment(message=3)),)),
        SendScenario(failures=(Failure("a", REFUSED, end=Moment(message=3)),)),
        SendScenario(failures=tuple(Failure(name, READ_ONLY) for name in "abc")),
        SendScenario(timeout_per_request_ms=-1),
        SendScenario(rate=Fraction(10**9 + 1, 10**9 - 1)),
        SendScenario(messages=10**6, timeout_ms=2**31 - 1),
    ],
    ids=["async", "starts with a message", "ends with a message", "no queue", "negative", "too many ticks", "long"],
)
def test_other_scenarios_are_left_to_the_engine(scenario: SendScenario) -> None:
    assert lanes(THREE, scenario) is None


def test_memory_bounds_the_trials_at_a_time() -> None:
    def at_a_time(queues: int) -> int:
        covered = lanes(route(a=queues), SendScenario())
        assert covered is not None
        return SendKernel(covered.plan).lanes

    assert at_a_time(4) == 4096
    assert 16 <= at_a_time(5000) < 128


# What is random


def chi_square(seen: Sequence[int], expected: Sequence[float]) -> float:
    return sum((count - wanted) ** 2 / wanted for count, wanted in zip(seen, expected, strict=True))


def test_first_picks_are_spread_evenly_over_the_list() -> None:
    _, counts = counted(THREE, SendScenario(messages=1), range(6000))
    # 31.26 is passed once in a thousand with 11 degrees of freedom.
    assert chi_square(counts.picks.sum(axis=0).tolist(), [500] * 12) < 31.26


def test_retries_start_anew_at_any_place() -> None:
    scenario = SendScenario(
        "5.5.0", latency_fault=True, messages=1, retries=1, start_at=0, failures=(Failure("a", REFUSED),)
    )
    _, counts = counted(route(a=1, b=7), scenario, range(8000))
    # From a's place the first of b's queues is taken: it gets two shares of eight.
    assert chi_square(counts.picks.sum(axis=0).tolist()[1:], [2000, *[1000] * 6]) < 22.46


def test_latencies_are_distributed_as_asked_for() -> None:
    median, sigma = 5000.0, 0.8
    scenario = SendScenario(messages=1, latency=lognormal(median, sigma, "lognormal"))
    took = sorted(counted(THREE, scenario, range(8000))[1].longest.tolist())
    # Kolmogorov and Smirnov: a distance of 1.95 / sqrt(n) is passed once in a thousand.
    distances = [
        abs((1 + erf(log(us / median) / (sigma * sqrt(2)))) / 2 - (place + 0.5) / len(took))
        for place, us in enumerate(took)
    ]
    assert max(distances) < 1.95 / sqrt(len(took))


def test_a_broker_without_an_address_costs_no_more_by_a_clock_of_finer_ticks() -> None:
    """An order topic's queues stay listed when the broker is dropped; three messages a second need thirds of a tick."""
    topic = replace(THREE, order_topic_conf="a:4;b:4;c:4")
    failing = Failure("a", TIMEOUT, notices_us=0)
    scenario = SendScenario(messages=9, rate=Fraction(3), failures=(failing,), first_poll_us=1)
    hold_equal(topic, scenario, range(4))
    report = simulate_send(topic, scenario)
    assert "MQClientException" in {attempt.outcome for attempt in report.attempts or ()}


def test_phases_are_spread_over_the_millisecond() -> None:
    scenario = SendScenario(
        messages=1, retries=1, failures=tuple(Failure(name, TIMEOUT) for name in "abc"), overshoot_us=250
    )
    covered, counts = counted(THREE, scenario, range(4000))
    late = int(counts.lost[:, covered.reasons.index("call timeout")].sum())
    # The deadline is over where phase + 250 us reach the next millisecond: in a quarter of all trials.
    assert abs(late - 1000) < 3.3 * sqrt(4000 * 0.25 * 0.75)
