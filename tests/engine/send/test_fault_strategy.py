"""`MQFaultStrategy` by itself, and the detector that finds brokers again."""

from __future__ import annotations

from fractions import Fraction

import pytest

from rmqlb import Failure, Moment, MQFaultStrategy, UsageError, simulate_send
from rmqlb.engine.send.simulate import producer_of
from rmqlb.model.send_scenario import SendScenario
from tests.engine.send.scenarios import ERROR, REFUSED, TWO, played
from tests.support.builders import route
from tests.support.mismatches import every_case


@pytest.mark.parametrize("detector", [False, True])
def test_only_the_detector_finds_a_broker_again(detector: bool) -> None:
    failing = Failure("a", ERROR, end=Moment(us=500_000))
    run = played(TWO, failing, messages=8, rate=Fraction(1), latency_fault=True, detector=detector)
    assert run.strategy.items["a"].reachable is detector


@pytest.mark.parametrize(("messages", "found"), [(12, False), (13, True)])
def test_the_detector_asks_every_three_seconds(messages: int, found: bool) -> None:
    """The broker fails at 0 s, is isolated for 10 s, and fails again at 11 s: it is found at 3 s and at 12 s."""
    failing = Failure("a", ERROR)
    run = played(
        route(a=1, b=1), failing, messages=messages, rate=Fraction(1), latency_fault=True, detector=True, retries=1
    )
    assert [course.failed for course in run.cluster.courses] == [2]
    assert run.strategy.items["a"].reachable is found


def test_a_measured_latency_is_a_java_long() -> None:
    strategy = MQFaultStrategy(True, clock=lambda: 0)
    for latency in (2**63 - 1, -(2**63)):
        strategy.update_fault_item("a", latency)
    for latency in (2**63, -(2**63) - 1):
        with pytest.raises(UsageError, match="current_latency"):
            strategy.update_fault_item("a", latency)


def places_by_thread(version: str, seed: int) -> tuple[list[int], list[int]]:
    """Where the brokers that each of two threads picks stand among four isolated ones, the first to be free first."""
    names = "abcd"
    scenario = SendScenario(
        version,
        threads=2,
        messages=24,
        rate=Fraction(10),
        latency_fault=True,
        retries=0,
        failures=tuple(Failure(name, REFUSED) for name in names),
        seed=seed,
    )
    freed: dict[str, float] = {}
    places: tuple[list[int], list[int]] = [], []
    for attempt in simulate_send(route(a=1, b=1, c=1, d=1), scenario).attempts or ():
        if len(freed) == len(names):
            places[attempt.thread - 1].append(sorted(names, key=freed.__getitem__).index(attempt.broker_name))
        freed[attempt.broker_name] = attempt.at_ms
    return places


@every_case("version", ["4.7.1", "4.8.0", "4.9.3", "4.9.7", "4.9.8", "5.1.0", "5.1.3"])
def test_each_thread_takes_the_better_half_in_turn_by_an_index_of_its_own(version: str) -> None:
    """`whichItemWorst` is a `ThreadLocalIndex`: each thread's starts at random, and other threads do not move it."""
    starts = set()
    for seed in range(20):
        for places in (found := places_by_thread(version, seed)):
            assert len(places) == 10
            assert places == [(places[0] + turn) % 2 for turn in range(10)]
        starts.add((found[0][0], found[1][0]))
    assert starts == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_a_new_queue_list_leaves_the_index_among_isolated_brokers_as_it_is() -> None:
    """It belongs to the fault table, which lives as long as the producer; the round robin belongs to the list."""
    scenario = SendScenario("4.9.7", messages=1)
    run = producer_of(TWO, scenario)
    thread = run.threads[0]
    run.look_at_route(thread)
    before = thread.worst.send_which_queue, thread.info.send_which_queue
    run.cluster.version += 1
    run.look_at_route(thread)
    after = thread.worst.send_which_queue, thread.info.send_which_queue
    assert before[0] == after[0] != 0
    assert before[1] != after[1]
