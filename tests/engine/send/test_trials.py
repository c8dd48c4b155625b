"""Many trials of a scenario, and the small statistics of their means."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import erf, sqrt
from statistics import fmean

import msgspec
import pytest

from rmqlb import UsageError, simulate_send, simulate_trials
from rmqlb.engine.conditions import parse_condition
from rmqlb.engine.send.findings import SEND_FIGURES, try_on
from rmqlb.engine.send.scenarios import from_samples
from rmqlb.engine.send.trials import Mean, quantile, student, wilson
from rmqlb.errors import DataError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import Failure, Moment, Reaction, Selector, SendScenario
from rmqlb.model.simulate_send import Estimate
from tests.support.builders import route
from tests.support.mismatches import every_case

THREE = route(a=4, b=4, c=4)
REFUSED = Reaction("refused", "refused", 0, 1000)
TIMEOUT = Reaction("timeout", "timeout")
SAMPLES = from_samples([500, 1000, 4000], "samples")

SCENARIOS = {
    "healthy": SendScenario(messages=30, latency=SAMPLES),
    "refused": SendScenario(messages=30, latency_fault=True, failures=(Failure("a", REFUSED, Moment(us=9000)),)),
    "late": SendScenario(messages=20, failures=(Failure("a", TIMEOUT), Failure("b", TIMEOUT))),
    "lost": SendScenario(messages=20, retries=0, failures=(Failure("b", TIMEOUT),), threads=2),
    "not reached": SendScenario(messages=5, failures=(Failure("b", REFUSED, Moment(us=10**9)),)),
    "three failures": SendScenario(
        "5.1.3",
        messages=40,
        latency_fault=True,
        latency=SAMPLES,
        timeout_ms=100,
        failures=tuple(
            Failure(name, REFUSED, Moment(us=at)) for name, at in (("a", 9000), ("b", 20_000), ("c", 70_000))
        ),
    ),
    "async": SendScenario(mode="async", messages=20, rate=Fraction(100), latency=SAMPLES),
    "one way": SendScenario(mode="oneway", messages=20, rate=Fraction(100), failures=(Failure("a", REFUSED),)),
    "by message": SendScenario(messages=20, failures=(Failure("a", REFUSED, Moment(message=5), Moment(message=9)),)),
    "random selector": SendScenario(messages=20, selector=Selector("random")),
    "a queue elsewhere": SendScenario(messages=3, selector=Selector("queue", queue=MessageQueue("T", "z", 0))),
}


@every_case("name", SCENARIOS)
def test_the_report_adds_up_what_simulate_send_says_of_each_trial(name: str) -> None:
    scenario = SCENARIOS[name]
    ours = simulate_trials(THREE, scenario, 12)
    trials = [simulate_send(THREE, scenario, trial=trial) for trial in range(12)]
    totals = [trial.totals for trial in trials]
    assert (ours.trials, ours.wanted, ours.stopped_early) == (12, 12, False)
    assert ours.profile == trials[0].profile
    assert ours.messages.mean == pytest.approx(fmean(total.messages for total in totals))
    assert ours.attempts.mean == pytest.approx(fmean(total.attempts / total.messages for total in totals))
    assert ours.lost_share.mean == pytest.approx(fmean(total.lost / total.messages for total in totals))
    assert ours.lost_messages.mean == pytest.approx(fmean(total.lost for total in totals))
    assert 0 <= ours.lost_messages.low <= ours.lost_messages.mean <= ours.lost_messages.high
    assert ours.losing_trials.mean == pytest.approx(fmean(total.lost > 0 for total in totals))
    assert ours.retries.mean == pytest.approx(fmean(total.retries for total in totals))
    assert ours.failing_ms.mean == pytest.approx(fmean(total.failing_ms for total in totals))
    longest = sorted(total.longest_send_ms or 0 for total in totals)
    assert ours.longest_send_ms is not None
    assert ours.longest_send_ms.mean == pytest.approx(fmean(longest))
    spread = ours.longest_send_ms
    assert (spread.mean_ms, spread.p50_ms, spread.max_ms) == (pytest.approx(fmean(longest)), longest[5], longest[11])
    for broker in trials[0].brokers:
        tallies = [next(b for b in trial.brokers if b.broker_name == broker.broker_name) for trial in trials]
        share = fmean(tally.stored / total.stored for tally, total in zip(tallies, totals, strict=True))
        assert ours.shares[broker.broker_name].mean == pytest.approx(share)
        assert ours.isolations[broker.broker_name].mean == pytest.approx(fmean(tally.isolations for tally in tallies))
        assert ours.attempts_at[broker.broker_name].mean == pytest.approx(fmean(tally.attempts for tally in tallies))
        assert ours.failed_at[broker.broker_name].mean == pytest.approx(fmean(tally.failed for tally in tallies))
    for index, failure in enumerate(ours.failures):
        taken = [trial.failures[index] for trial in trials]
        until = [t.isolated_ms - t.began_ms for t in taken if t.isolated_ms is not None and t.began_ms is not None]
        assert (failure.began, failure.isolated) == (sum(t.began_ms is not None for t in taken), len(until))
        assert (failure.until_isolated is None) == (not until)
        if failure.until_isolated is not None:
            assert failure.until_isolated.mean_ms == pytest.approx(fmean(until))
            assert failure.until_isolated.max_ms == pytest.approx(max(until))


ASKED = (
    *("lost", "stored", "not-store-ok", "duplicated", "retried"),
    *("attempts", "failed-attempts", "retries", "failing-ms"),
)
ASKED_OF_A_BROKER = ("picks[a]", "failed[a]", "isolations[a]", "share[a]", "share[a]%")


@every_case("name", SCENARIOS)
@every_case("figure", [*ASKED, *ASKED_OF_A_BROKER])
def test_a_figure_of_many_trials_is_the_mean_of_each_trials(name: str, figure: str) -> None:
    scenario = SCENARIOS[name]
    condition = parse_condition(figure.replace("%", "") + (">=0%" if "%" in figure else ">=0"), SEND_FIGURES)
    trials = [simulate_send(THREE, scenario, trial=trial) for trial in range(4)]
    singles = [try_on(condition, trial).value for trial in trials]
    tried = try_on(condition, trials[0], simulate_trials(THREE, scenario, 4))
    assert tried.value == pytest.approx(fmean(value for value in singles if value is not None))
    assert tried.met


def test_enough_trials_are_enough() -> None:
    scenario = SCENARIOS["lost"]
    coarse, fine = (simulate_trials(THREE, scenario, 1000, precision=precision) for precision in (0.05, 0.00001))
    assert (coarse.trials, coarse.wanted, coarse.stopped_early) == (768, 1000, True)
    assert coarse == msgspec.structs.replace(simulate_trials(THREE, scenario, 768), wanted=1000, stopped_early=True)
    assert (fine.trials, fine.stopped_early) == (1000, False)
    assert fine == simulate_trials(THREE, scenario, 1000)


def test_without_a_lost_message_the_rule_of_three_says_how_few_there_can_be() -> None:
    report = simulate_trials(THREE, SCENARIOS["healthy"], 300)
    assert report.lost_share == Estimate(0.0, 0.0, 0.01)
    assert report.lost_messages == Estimate(0.0, 0.0, 0.01 * report.messages.mean)
    assert report.losing_trials.mean == 0
    assert simulate_trials(THREE, SCENARIOS["healthy"], 2).lost_share.high == 1


def test_a_trial_that_stores_nothing_has_no_shares() -> None:
    everywhere = tuple(Failure(name, REFUSED) for name in "abc")
    report = simulate_trials(THREE, SendScenario(messages=2, failures=everywhere), 5)
    assert report.shares == {}
    assert report.lost_share == Estimate(1.0, 1.0, 1.0)
    assert report.lost_messages == report.messages


def test_lost_messages_cannot_be_more_than_are_sent() -> None:
    """The only message is lost in one trial of two: the interval of so few is all that is possible."""
    topic = route(a=1, b=1)
    scenarios = [
        SendScenario(messages=1, retries=0, failures=(Failure("a", REFUSED),), seed=seed) for seed in range(99)
    ]
    scenario = next(
        each for each in scenarios if sum(simulate_send(topic, each, trial=trial).totals.lost for trial in (0, 1)) == 1
    )
    report = simulate_trials(topic, scenario, 2)
    assert report.lost_messages == report.lost_share == Estimate(0.5, 0.0, 1.0)
    assert (report.losing_trials.mean, report.failing_ms.mean) == (0.5, 0.5)
    # Only one trial stored anything, all of it at b.
    assert report.shares == {"a": Estimate(0.0, 0.0, 1.0), "b": Estimate(1.0, 0.0, 1.0)}


def test_what_cannot_be_tried_is_refused() -> None:
    with pytest.raises(UsageError, match="trials is 1: a number from 2"):
        simulate_trials(THREE, SendScenario(), 1)
    with pytest.raises(UsageError, match="not positive"):
        simulate_trials(THREE, SendScenario(), 10, precision=0)
    with pytest.raises(UsageError, match="needs a rate"):
        simulate_trials(THREE, SendScenario(mode="async"), 10)
    with pytest.raises(DataError, match="no queue"):
        simulate_trials(route(masters=False, a=4), SendScenario(), 10)


def add(mean: Mean, values: list[float]) -> None:
    for value in values:
        mean.add(value)


@every_case(
    ("degrees", "table"),
    [
        (1, 12.706),
        (2, 4.303),
        (3, 3.182),
        (4, 2.776),
        (5, 2.571),
        (10, 2.228),
        (30, 2.042),
        (100, 1.984),
        (10**6, 1.960),
    ],
)
def test_students_t_is_that_of_the_tables(degrees: int, table: float) -> None:
    assert student(degrees) == pytest.approx(table, abs=0.004)


@pytest.mark.parametrize("degrees", [3, 7])
def test_the_expansion_of_students_t_has_its_four_terms(degrees: int) -> None:
    """Abramowitz and Stegun, 26.7.5, at the normal quantile 2, where the powers of z are those of 2."""
    expansion = (10 / 4, 294 / 96, 1098 / 384, 169950 / 92160)
    expected = 2 + sum(term / degrees**power for power, term in enumerate(expansion, 1))
    assert student(degrees, confidence=erf(sqrt(2))) == pytest.approx(expected, rel=1e-12)


def test_wilsons_interval_to_the_digit() -> None:
    """z² / n is 0.384146; √(0.25 × 0.384146 + 0.384146² / 4) / 1.384146 = 0.263407."""
    half = wilson(5, 10)
    assert (half.low, half.high) == pytest.approx((0.236593, 0.763407), abs=1e-6)
    assert (wilson(0, 7).low, wilson(7, 7).high) == (0.0, 1.0)
    other = wilson(5, 10, confidence=0.99)  # z = 2.575829: z² / n is 0.663490
    assert (other.low, other.high) == pytest.approx((0.184234, 0.815766), abs=1e-5)


def test_equal_values_have_no_spread() -> None:
    mean = Mean(high=1.0)
    add(mean, [0.1] * 1000)
    assert mean.estimate() == Estimate(0.1, 0.1, 0.1)


def test_close_values_lose_no_digits() -> None:
    mean = Mean()
    add(mean, [1e9, 1e9 + 1e-3])
    estimate = mean.estimate()
    assert estimate.high - estimate.low == pytest.approx(2 * 12.706 * 0.0005, rel=1e-3)


def test_quantiles_are_values_that_occurred() -> None:
    counts = Counter({10: 50, 20: 45, 30: 5})
    assert [quantile(counts, share) for share in (0.5, 0.51, 0.95, 0.951, 1)] == [10, 20, 20, 30, 30]
