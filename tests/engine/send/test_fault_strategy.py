"""`MQFaultStrategy` by itself, and the detector that finds brokers again."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest

from rmqlb import Failure, Moment, MQFaultStrategy, UsageError
from rmqlb.engine.send.fault import _wall_clock
from tests.engine.send.scenarios import ERROR, REFUSED, TWO, played
from tests.support.builders import route


@pytest.mark.parametrize("detector", [False, True])
def test_only_the_detector_finds_a_broker_again(detector: bool) -> None:
    failing = Failure("a", ERROR, end=Moment(us=500_000))
    run = played(TWO, failing, messages=8, rate=Fraction(1), latency_fault=True, detector=detector)
    assert run.strategy.items["a"].reachable is detector


def test_a_broker_that_answers_again_just_before_three_seconds_is_found_then_and_not_three_seconds_later() -> None:
    failing = Failure("a", REFUSED, end=Moment(us=2_999_500))
    run = played(TWO, failing, messages=5, rate=Fraction(1), latency_fault=True, detector=True)
    assert run.strategy.items["a"].reachable


@pytest.mark.parametrize(("messages", "found"), [(12, False), (13, True)])
def test_the_detector_asks_every_three_seconds(messages: int, found: bool) -> None:
    """The broker fails at 0 s, is isolated for 10 s, and fails again at 11 s: it is found at 3 s and at 12 s."""
    failing = Failure("a", ERROR)
    run = played(
        route(a=1, b=1), failing, messages=messages, rate=Fraction(1), latency_fault=True, detector=True, retries=1
    )
    assert run.recorder.counts.by_failure == [2]
    assert run.strategy.items["a"].reachable is found


def test_the_default_clock_counts_milliseconds_since_1970() -> None:
    assert abs(_wall_clock() / 1000 - time.time()) < 600


def test_a_broker_is_available_until_it_is_isolated_and_again_after() -> None:
    now = [0]
    strategy = MQFaultStrategy(True, clock=lambda: now[0])
    assert strategy.is_available("a")
    strategy.update_fault_item("a", 20, isolation=True)
    assert (strategy.is_available("a"), strategy.is_available("b")) == (False, True)
    now[0] = 9_999
    assert not strategy.is_available("a")
    now[0] = 10_000
    assert strategy.is_available("a")


def test_a_measured_latency_is_a_java_long() -> None:
    strategy = MQFaultStrategy(True, clock=lambda: 0)
    for latency in (2**63 - 1, -(2**63)):
        strategy.update_fault_item("a", latency)
    for latency in (2**63, -(2**63) - 1):
        with pytest.raises(UsageError, match="current_latency"):
            strategy.update_fault_item("a", latency)


@pytest.mark.parametrize(
    ("reachable", "available"), [({}, True), ({"reachable": True}, True), ({"reachable": False}, False)]
)
def test_an_update_that_says_no_more_than_a_latency_leaves_the_broker_available(
    reachable: dict[str, bool], available: bool
) -> None:
    """In 5.1.4 a broker that waits for the detector is not available either."""
    strategy = MQFaultStrategy(True, lambda: 0, "5.1.4")
    strategy.update_fault_item("a", 20, **reachable)
    assert strategy.is_available("a") is available
