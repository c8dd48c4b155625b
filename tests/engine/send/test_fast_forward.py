"""Jumping over what repeats itself changes nothing but the time it takes."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.send.counters import Counts
from rmqlb.engine.send.latency import constant
from rmqlb.engine.send.publish_info import MASK
from rmqlb.engine.send.simulate import play, rules, simulate_send
from rmqlb.engine.send.simulation import SendSimulation
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_report import SendReport
from rmqlb.model.send_scenario import Failure, Mode, Moment, Reaction, SendScenario
from tests.engine.send.scenarios import REACTIONS, failures, routes, scenarios
from tests.support.builders import route
from tests.support.mismatches import every_case

REFUSED = Reaction("refused", "refused", 0, 1000)
TIMEOUT = Reaction("timeout", "timeout")
SLOW = Reaction("slow", "slow", 0, 800_000)
THREE = route(a=4, b=4, c=4)


def both(topic: TopicRouteData, scenario: SendScenario) -> tuple[SendReport, SendReport]:
    return (
        simulate_send(topic, scenario, trace=False),
        simulate_send(topic, scenario, trace=False, skip=False),
    )


@settings(max_examples=100)
@given(routes(), scenarios(modes=("sync", "sync", "async", "oneway")))
def test_the_fast_simulation_equals_the_traced_one(topic: TopicRouteData, scenario: SendScenario) -> None:
    fast, traced = both(topic, scenario)
    assert fast == traced


@settings(max_examples=75)
@given(routes(), scenarios(modes=("sync", "sync", "async", "oneway")), st.sampled_from((1, 40)))
def test_nothing_is_counted_beyond_the_end(topic: TopicRouteData, scenario: SendScenario, threads: int) -> None:
    """100 threads with one message each have their next ones long after the end: nobody is isolated until then."""
    scenario = replace(scenario, threads=scenario.threads * threads)
    for report in both(topic, scenario):
        slices = report.slices
        end = slices[-1].to_ms if slices else 0
        given_ms = 0 if scenario.duration_us is None else scenario.duration_us / 1000
        unsent = scenario.messages is None or report.totals.messages < scenario.messages
        assert end == max(report.totals.lasted_ms, given_ms if unsent else 0)
        assert [each.from_ms for each in slices] == [0, *(each.to_ms for each in slices)][: len(slices)]
        for broker in report.brokers:
            isolated = [
                one.isolated_ms for each in slices for one in each.brokers if one.broker_name == broker.broker_name
            ]
            assert all(0 <= ms <= each.to_ms - each.from_ms + 1e-6 for ms, each in zip(isolated, slices, strict=True))
            assert sum(isolated) == pytest.approx(broker.isolated_ms)
        for failure in report.failures:
            times = (failure.began_ms, failure.ended_ms, failure.isolated_ms, failure.used_again_ms)
            assert all(at is None or at <= end for at in times)


def test_what_is_counted_for_the_first_time_within_a_period_is_repeated_whole() -> None:
    """A retry keeps its queue id: a broker's queue that the route does not have gets its row when it is tried."""
    since = Counts([1], [0] * 10, [], {"x": 2}, {}, {}, {})
    until = Counts([3, 5], [0] * 10, [], {"x": 3, "y": 4}, {}, {}, {})
    now = until.copy()
    now.repeat(since, until, 3)
    assert (now.rows, now.lost_by) == ([3 + 3 * 2, 5 + 3 * 5], {"x": 3 + 3 * 1, "y": 4 + 3 * 4})


def test_a_jump_does_not_go_on_to_the_arrival_of_a_message_that_is_not_sent() -> None:
    """All queues are gone: each second a message fails at once, and there is none at 61 s."""
    failure = Failure("a", REFUSED, Moment(message=1), notices_us=0)
    scenario = SendScenario(mode="async", messages=61, rate=Fraction(1), retries=0, failures=(failure,))
    fast, traced = both(route(a=1, b=0), scenario)
    assert fast == traced
    assert fast.brokers[0].isolated_ms == 30_000


WINDOW = (Moment(us=300_000), Moment(us=900_000))
REPEATED: dict[str, dict[str, Any]] = {
    "back to back": {"failures": (Failure("a", REFUSED),)},
    "isolated again and again": {"latency_fault": True, "rate": Fraction(10), "failures": (Failure("a", REFUSED),)},
    "by threads": {"latency_fault": True, "threads": 3, "rate": Fraction(20), "failures": (Failure("a", SLOW),)},
    "4.9.7 by threads": {
        "client_version": "4.9.7",
        "latency_fault": True,
        "threads": 2,
        "rate": Fraction(1),
        "failures": (Failure("a", SLOW),),
    },
    "detector": {"latency_fault": True, "detector": True, "rate": Fraction(9), "failures": (Failure("a", REFUSED),)},
    "detector finds": {
        "latency_fault": True,
        "detector": True,
        "rate": Fraction(50),
        "failures": (Failure("a", REFUSED, *WINDOW),),
    },
    "a window": {"rate": Fraction(200), "failures": (Failure("a", TIMEOUT, *WINDOW),), "timeout_ms": 50},
    "late in the end": {"rate": Fraction(1100), "threads": 1, "latency": constant(1000, "1ms")},
    "late, by threads": {"rate": Fraction(2200), "threads": 2, "latencies": {"a": constant(1500, "x")}},
    "late, then not": {"rate": Fraction(200), "threads": 2, "failures": (Failure("a", SLOW, *WINDOW),)},
    "by time": {"messages": None, "duration_us": 1_500_001, "failures": (Failure("b", REFUSED, *WINDOW),)},
    "by time and rate": {"messages": None, "duration_us": 3_000_000, "rate": Fraction(500), "threads": 3},
    "just by time": {"messages": 1500, "duration_us": 1_500_000},
    "by message": {"threads": 2, "failures": (Failure("a", REFUSED, Moment(message=400), Moment(message=1100)),)},
    "async": {"mode": "async", "rate": Fraction(300), "threads": 2, "failures": (Failure("a", REFUSED),)},
    "async, late": {"mode": "async", "rate": Fraction(40), "timeout_ms": 500, "failures": (Failure("a", TIMEOUT),)},
    "async, slow": {"mode": "async", "rate": Fraction(1), "latency_fault": True, "failures": (Failure("a", SLOW),)},
    "one way": {"mode": "oneway", "rate": Fraction(300), "threads": 2, "failures": (Failure("a", REFUSED),)},
    "own latencies": {"latency_fault": True, "latencies": {"b": constant(600_000, "x")}, "threads": 2},
    "a lesser status": {
        "failures": (Failure("a", Reaction("status", "FLUSH_DISK_TIMEOUT", 10)),),
        "retry_not_store_ok": True,
    },
    "lost": {"failures": tuple(Failure(name, REFUSED, *WINDOW) for name in "abc"), "rate": Fraction(700)},
    "the route changes": {
        "failures": (Failure("a", REFUSED, Moment(us=1_000_000), Moment(us=4_200_000), notices_us=100_000),),
        "rate": Fraction(200),
        "first_poll_us": 500_000,
        "poll_us": 700_000,
    },
}


@every_case("name", REPEATED)
def test_whatever_repeats_itself_comes_out_as_it_does_one_by_one(name: str) -> None:
    given: dict[str, Any] = {"messages": 1500, "start_at": 2}
    fast, traced = both(route(a=2, b=3, c=1), SendScenario(**given | REPEATED[name]))
    assert fast == traced


@settings(max_examples=15)
@given(scenarios(most_messages=1), failures())
def test_they_are_equal_over_many_messages_too(scenario: SendScenario, failure: Failure) -> None:
    fast, traced = both(
        route(a=4, b=4, c=4, d=0),
        replace(scenario, messages=8000, duration_us=None, failures=(failure,), selector=None),
    )
    assert fast == traced


@settings(max_examples=100)
@given(
    st.sampled_from((route(a=1, b=1), route(a=2, b=3), route(a=1, b=2, c=1))),
    st.sampled_from(("5.1.4", "5.2.0", "5.5.0")),
    st.lists(
        st.sampled_from(REACTIONS).flatmap(lambda r: st.sampled_from("ab").map(lambda b: Failure(b, r))), max_size=2
    ),
    st.sampled_from((None, Fraction(1, 2), Fraction(3), Fraction(10))),
    st.sampled_from((1_000_000, 100_000, 700_000)),
    st.integers(0, 2),
    st.booleans(),
)
def test_what_comes_after_many_retries_is_what_came_after_the_first(
    topic: TopicRouteData,
    version: str,
    failing: list[Failure],
    rate: Fraction | None,
    latency_us: int,
    retries: int,
    detector: bool,
) -> None:
    """Messages take so long that hundreds of isolations end, each with a random place of the round robin after it."""
    scenario = SendScenario(
        version,
        messages=1000,
        latency_fault=True,
        failures=tuple(failing),
        rate=rate,
        latency=constant(latency_us, "x"),
        retries=retries,
        detector=detector,
    )
    fast, traced = both(topic, scenario)
    assert fast == traced


def ends(
    topic: TopicRouteData, scenario: SendScenario, index: int, places: tuple[int, ...] = (0,)
) -> list[tuple[object, ...]]:
    """What is left of a run whose round robins start at `index`, jumped through and not; retries draw `places`."""
    found: list[tuple[object, ...]] = []
    for skip in (True, False):
        run = SendSimulation(topic, scenario, rules(scenario))
        drawn = cycle(places)

        def place(run: SendSimulation = run, drawn: Iterator[int] = drawn) -> int:
            run.draw(run.threads[0])
            return next(drawn)

        for thread in run.threads:
            run.look_at_route(thread)
            thread.info.send_which_queue = index
            thread.info.random = place
        play(run, skip=skip)
        found.append(left(run))
    return found


def left(run: SendSimulation) -> tuple[object, ...]:
    counts = run.recorder.counts
    return counts.rows, counts.totals, run.indexes(), run.recorder.last_done


@every_case("version", ["4.7.1", "4.8.0", "4.9.3", "4.9.7", "5.1.3", "5.5.0"])
@every_case("latency_fault", [False, True])
@every_case("index", [MASK - 3, MASK - 500, -1, -500, -MASK, 0])
def test_a_jump_stops_before_the_index_wraps(version: str, latency_fault: bool, index: int) -> None:
    scenario = SendScenario(version, messages=3000, latency_fault=latency_fault, failures=(Failure("b", REFUSED),))
    fast, traced = ends(route(a=3, b=2), scenario, index if version >= "5" else abs(index))
    assert fast == traced


# What a report's slice lasts comes from the latency, which refusals do not take: all messages are in the first slice,
# whose end would keep a jump short otherwise.
WIDE = constant(10_000_000, "10s")


@every_case(
    ("version", "threads", "retries"),
    [("4.7.1", 1, 40), ("4.9.7", 1, 20), ("5.5.0", 1, 20), ("5.5.0", 2, 20)],
)
def test_a_message_of_many_retries_that_meets_the_wrap_is_no_period(version: str, threads: int, retries: int) -> None:
    """2^31 is no multiple of 3: a message that meets the wrap may end where it began, in another number of steps."""
    everyone = tuple(Failure(name, REFUSED) for name in "ab")
    scenario = SendScenario(version, messages=20, threads=threads, retries=retries, failures=everyone, latency=WIDE)
    fast, traced = ends(route(a=2, b=1), scenario, MASK - 70)
    assert fast == traced


@pytest.mark.parametrize(("topic", "before"), [(route(a=3, b=3), 60), (route(a=1, b=2), 100)], ids=["six", "three"])
def test_what_came_between_two_random_places_and_met_the_wrap_does_not_come_again(
    topic: TopicRouteData, before: int
) -> None:
    """Isolated for 10 s, broker a is tried each 100 messages; a retry starts shortly before the wrap, or far from it."""
    scenario = SendScenario(
        "5.5.0",
        messages=400,
        latency_fault=True,
        failures=(Failure("a", REFUSED),),
        latency=WIDE,
        latencies={"b": constant(100_000, "100ms")},
    )
    fast, traced = ends(topic, scenario, 0, (MASK - before, 1001))
    assert fast == traced


def windows(number: int, every_s: int, length_s: int) -> tuple[Failure, ...]:
    """So many failures of one broker after another."""

    def at(seconds: int) -> Moment:
        return Moment(us=seconds * 1_000_000)

    return tuple(
        Failure("abc"[i % 3], REFUSED, at(i * every_s), at(i * every_s + length_s), None) for i in range(number)
    )


@pytest.mark.parametrize("latency_fault", [False, True])
def test_a_billion_messages_with_ten_failures_are_counted_one_by_one(latency_fault: bool) -> None:
    scenario = SendScenario(
        "5.5.0",
        messages=10**9,
        rate=Fraction(1000),
        latency_fault=latency_fault,
        failures=windows(10, 50_000, 60),
    )
    report = simulate_send(THREE, scenario)
    totals = report.totals
    assert totals.messages == totals.stored == 10**9
    assert sum(tally.stored for tally in report.queues) == 10**9
    assert totals.attempts == 10**9 + totals.failed_attempts
    assert [failure.began_ms for failure in report.failures] == [i * 50_000_000 for i in range(10)]
    # 60 s are six isolations of 10 s, or every ninth message: two brokers of four queues, then the first of the third.
    assert totals.failed_attempts == (60 if latency_fault else 10 * -(-60_000 // 9))


@pytest.mark.parametrize("latency_fault", [False, True])
def test_a_slow_broker_is_probed_every_two_seconds_for_days(latency_fault: bool) -> None:
    scenario = SendScenario(
        "5.5.0",
        messages=10**8,
        rate=Fraction(1000),
        threads=2,
        latency_fault=latency_fault,
        failures=(Failure("a", SLOW),),
    )
    totals = simulate_send(THREE, scenario).totals
    assert totals.stored == 10**8
    assert totals.failed_attempts == 0


@every_case("version", ["4.7.1", "4.9.7", "4.9.8", "5.1.3"])
@every_case("mode", ["sync", "async"])
@every_case("last_s", [0, 9])
def test_queues_of_the_better_half_are_the_index_modulo_what_does_not_divide_the_list(
    version: str, mode: Mode, last_s: int
) -> None:
    """All brokers are slow: `pickOneAtLeast` names one of them, and its queue is the index modulo 3, of 8 in the list."""
    slow = [Failure(name, Reaction("slow", "slow", 0, 560_000)) for name in "abc"]
    last = Failure("d", Reaction("slow", "slow", 0, 560_000), Moment(us=last_s * 1_000_000 + 151_000))
    scenario = SendScenario(
        version, mode=mode, latency_fault=True, messages=850, rate=Fraction(2), start_at=0, failures=(*slow, last)
    )
    fast, traced = both(route(a=2, b=3, c=2, d=1), scenario)
    assert fast == traced


def test_a_thread_that_is_late_now_and_then_is_no_backlog() -> None:
    scenario = SendScenario(
        "4.7.1",
        messages=601,
        rate=Fraction(2000),
        latency=constant(250, "x"),
        latencies={"a": constant(1000, "y")},
        seed=0,
    )
    fast, traced = both(route(a=1, b=3), scenario)
    assert fast == traced


def test_a_thread_that_has_caught_up_ends_what_a_later_one_repeats() -> None:
    """Thread 1 is 50 ms late, thread 2 a millisecond; both gain 20 us a message, and only thread 1 goes on to."""
    failing = (
        Failure("a", Reaction("slow", "slow", 0, 50_000), Moment(us=0), Moment(us=400)),
        Failure("a", Reaction("slow", "slow", 0, 2_000), Moment(us=400), Moment(us=600)),
    )
    scenario = SendScenario(
        messages=4000, threads=2, rate=Fraction(2000), latency=constant(980, "x"), failures=failing, start_at=0
    )
    fast, traced = both(route(a=1), scenario)
    assert fast == traced


def test_messages_that_wait_for_their_thread_are_jumped_over_too() -> None:
    scenario = SendScenario("5.5.0", messages=3000, rate=Fraction(2000), failures=(Failure("a", REFUSED),))
    fast, traced = both(THREE, scenario)
    assert fast == traced


def test_rates_that_are_odd_fractions_have_room_for_a_billion_messages() -> None:
    scenario = SendScenario(messages=10**9, rate=Fraction(333333, 10000), failures=windows(3, 100_000, 60))
    totals = simulate_send(THREE, scenario).totals
    assert totals.messages == totals.stored == 10**9
    assert totals.lasted_ms == pytest.approx(10**9 / 33.3333 * 1000, rel=1e-6)


def test_many_requests_under_way_are_jumped_over_too() -> None:
    silent = Failure("a", Reaction("timeout", "timeout"), Moment(us=5_000_000), Moment(us=25_000_000))
    scenario = SendScenario(mode="async", rate=Fraction(200), messages=8000, failures=(silent,))
    fast, traced = both(THREE, scenario)
    assert fast == traced


@every_case(("names", "queues_each"), [("abcd", 1), ("abcdefg", 2)], ids=["four", "seven"])
@every_case("threads", [1, 2])
@every_case(("mode", "rate"), [("sync", None), ("sync", Fraction(50)), ("async", Fraction(50))])
@every_case("version", ["4.7.1", "4.9.7", "4.9.8", "5.1.0"])
def test_a_jump_knows_whose_turn_it_is_among_many_isolated_brokers(
    version: str, mode: Mode, rate: Fraction | None, threads: int, names: str, queues_each: int
) -> None:
    """`pickOneAtLeast` takes the better half in turn: of seven brokers, one of three, each thread by its own index."""
    queues: dict[str, Any] = dict.fromkeys(names, queues_each)
    topic = route(**queues)
    failures = tuple(Failure(name, REFUSED) for name in names)
    scenario = SendScenario(
        version, mode=mode, rate=rate, threads=threads, messages=600, latency_fault=True, failures=failures
    )
    fast, traced = (SendSimulation(topic, scenario, rules(scenario)) for _ in range(2))
    play(fast, skip=True)
    play(traced, skip=False)
    assert left(fast) == left(traced)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_jump_stops_before_the_message_with_which_something_happens(threads: int) -> None:
    failing = Failure("a", REFUSED, Moment(message=777), Moment(message=1555))
    fast, traced = both(route(a=3, b=2), SendScenario(threads=threads, messages=3000, failures=(failing,)))
    assert fast == traced
    assert 0 < fast.failures[0].failed < 778
    assert fast.failures[0].began_ms == pytest.approx(776 / threads, abs=1)


@pytest.mark.parametrize("reaction", [TIMEOUT, Reaction("slow", "slow", 0, 4_500_000)], ids=lambda r: r.kind)
def test_a_jump_knows_how_far_the_next_scan_of_async_requests_is(reaction: Reaction) -> None:
    """No request is under way when the next message is due, so that only the clock tells the periods apart."""
    scenario = SendScenario(
        mode="async", messages=3000, rate=Fraction(7, 100), retries=0, failures=(Failure("a", reaction),)
    )
    fast, traced = both(route(a=1, b=1), scenario)
    assert fast == traced
    assert fast.totals.failed_attempts > 0
