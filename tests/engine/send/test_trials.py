import re
from fractions import Fraction
from math import erf, sqrt
from pathlib import Path
from statistics import fmean

import pytest
from msgspec.structs import replace

from rmqlb import DataError, MessageQueue, UsageError, simulate_send, simulate_trials
from rmqlb.engine.conditions import parse_condition
from rmqlb.engine.kernel import nearest_rank
from rmqlb.engine.send.findings import SEND_FIGURES, try_on
from rmqlb.engine.send.trials import estimate, student, wilson
from rmqlb.model.send_scenario import Failure, Latency, Moment, Selector, SendScenario
from rmqlb.model.simulate_send import Estimate
from tests.engine.send.scenarios import REFUSED, TIMEOUT
from tests.support.builders import route
from tests.support.mismatches import assert_recorded, every_case, refusal

THREE = route(a=4, b=4, c=4)
SAMPLES = Latency("samples", (500, 1000, 4000))
THREE_FAILURES = tuple(
    Failure(name, REFUSED, Moment(us=at)) for name, at in (("a", 9000), ("b", 20_000), ("c", 70_000))
)

SCENARIOS = {
    "healthy": SendScenario(messages=30, latency=SAMPLES),
    "refused": SendScenario(messages=30, latency_fault=True, failures=(Failure("a", REFUSED, Moment(us=9000)),)),
    "late": SendScenario(messages=20, failures=(Failure("a", TIMEOUT), Failure("b", TIMEOUT))),
    "lost": SendScenario(messages=20, retries=0, failures=(Failure("b", TIMEOUT),), threads=2),
    "not reached": SendScenario(messages=5, failures=(Failure("b", REFUSED, Moment(us=10**9)),)),
    "three failures": SendScenario("5.1.3", messages=40, latency_fault=True, latency=SAMPLES, timeout_ms=100, failures=THREE_FAILURES),
    "async": SendScenario(mode="async", messages=20, rate=Fraction(100), latency=SAMPLES),
    "one way": SendScenario(mode="oneway", messages=20, rate=Fraction(100), failures=(Failure("a", REFUSED),)),
    "by message": SendScenario(messages=20, failures=(Failure("a", REFUSED, Moment(message=5), Moment(message=9)),)),
    "random selector": SendScenario(messages=20, selector=Selector("random")),
    "a queue elsewhere": SendScenario(messages=3, selector=Selector("queue", queue=MessageQueue("T", "z", 0))),
}  # fmt: skip
TRIALS = 12
ASKED = (
    *("lost", "stored", "not-store-ok", "duplicated", "retried"),
    *("attempts", "failed-attempts", "retries", "failing-ms"),
    *("picks[a]", "failed[a]", "isolations[a]", "share[a]", "share[a]%"),
)


@every_case("name", SCENARIOS)
def test_the_figures_of_many_trials_are_the_means_of_each_trials(name: str) -> None:
    ours = simulate_trials(THREE, SCENARIOS[name], TRIALS)
    trials = [simulate_send(THREE, SCENARIOS[name], trial=trial) for trial in range(TRIALS)]
    for figure in ASKED:
        condition = parse_condition(figure.replace("%", "") + (">=0%" if "%" in figure else ">=0"), SEND_FIGURES)
        singles = [try_on(condition, trial).value for trial in trials]
        tried = try_on(condition, trials[0], ours)
        assert tried.value == pytest.approx(fmean(value for value in singles if value is not None)), figure
        assert tried.met
    totals = [trial.totals for trial in trials]
    assert (ours.trials, ours.wanted, ours.stopped_early, ours.profile) == (TRIALS, TRIALS, False, trials[0].profile)
    assert ours.attempts.mean == pytest.approx(fmean(total.attempts / total.messages for total in totals))
    assert ours.lost_share.mean == pytest.approx(fmean(total.lost / total.messages for total in totals))
    assert 0 <= ours.lost_messages.low <= ours.lost_messages.mean <= ours.lost_messages.high
    assert ours.losing_trials.mean == pytest.approx(fmean(total.lost > 0 for total in totals))
    longest, spread = sorted(total.longest_send_ms or 0 for total in totals), ours.longest_send_ms
    assert spread is not None
    assert (spread.mean, spread.mean_ms) == (pytest.approx(fmean(longest)), pytest.approx(fmean(longest)))
    assert (spread.p50_ms, spread.max_ms) == (longest[5], longest[11])
    for index, failure in enumerate(ours.failures):
        taken = [trial.failures[index] for trial in trials]
        until = [t.isolated_ms - t.began_ms for t in taken if t.isolated_ms is not None and t.began_ms is not None]
        assert (failure.began, failure.isolated) == (sum(t.began_ms is not None for t in taken), len(until))
        assert (failure.until_isolated is None) == (not until)
        if failure.until_isolated is not None:
            assert failure.until_isolated.mean_ms == pytest.approx(fmean(until))
            assert failure.until_isolated.max_ms == pytest.approx(max(until))


def test_enough_trials_are_enough() -> None:
    scenario = SCENARIOS["lost"]
    coarse, fine = (simulate_trials(THREE, scenario, 1000, precision=precision) for precision in (0.008, 0.00001))
    assert (coarse.trials, coarse.wanted, coarse.stopped_early) == (768, 1000, True)
    assert coarse == replace(simulate_trials(THREE, scenario, 768), wanted=1000, stopped_early=True)
    assert fine == simulate_trials(THREE, scenario, 1000)


def digits(value: object) -> str:
    return re.sub(r"\d+\.\d{9,}", lambda number: f"{float(number[0]):.9g}", str(value))


def test_named_trials_are_as_recorded(request: pytest.FixtureRequest) -> None:
    one = SendScenario(messages=1, retries=0, failures=(Failure("a", REFUSED),))
    named = {
        # Without a lost message the rule of three bounds their share.
        **{f"no message lost in {number}": simulate_trials(THREE, SCENARIOS["healthy"], number) for number in (2, 300)},
        "nothing stored": simulate_trials(THREE, SendScenario(messages=2, failures=tuple(Failure(name, REFUSED) for name in "abc")), 5),
        # Lost messages cannot be more than are sent; with seed 0 the only message is lost in one trial of two.
        **{f"a message, seed {seed}": simulate_trials(route(a=1, b=1), replace(one, seed=seed), 2) for seed in (0, 2)},
    }  # fmt: skip
    fields = ("lost_share", "lost_messages", "losing_trials", "messages", "shares")
    answers = {name: [f"{key}: {digits(getattr(report, key))}" for key in fields] for name, report in named.items()}
    assert_recorded(Path(__file__).with_name("trials.txt"), answers, request)


def test_trials_that_cannot_run_are_refused() -> None:
    assert "trials is 1: a number from 2" in refusal(UsageError, simulate_trials, THREE, SendScenario(), 1).message
    assert "not positive" in refusal(UsageError, simulate_trials, THREE, SendScenario(), 10, precision=0).message
    assert "needs a rate" in refusal(UsageError, simulate_trials, THREE, SendScenario(mode="async"), 10).message
    assert "no queue" in refusal(DataError, simulate_trials, route(masters=False, a=4), SendScenario(), 10).message
    with pytest.raises(DataError, match="topic T has no such broker"):
        simulate_trials(THREE, SendScenario(exclude=frozenset("z")), 10)


def test_students_t_is_that_of_the_tables_and_its_expansion_has_four_terms() -> None:
    table = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 30: 2.042, 100: 1.984, 10**6: 1.960}
    assert {degrees: student(degrees) for degrees in table} == pytest.approx(table, abs=0.004)
    # Abramowitz and Stegun, 26.7.5, at the normal quantile 2, where the powers of z are those of 2.
    expansion = (10 / 4, 294 / 96, 1098 / 384, 169950 / 92160)
    for degrees in (3, 7):
        expected = 2 + sum(term / degrees**power for power, term in enumerate(expansion, 1))
        assert student(degrees, confidence=erf(sqrt(2))) == pytest.approx(expected, rel=1e-12)


def test_intervals_are_those_of_wilson_and_student_and_quantiles_are_values_that_occurred() -> None:
    # z² / n is 0.384146; √(0.25 × 0.384146 + 0.384146² / 4) / 1.384146 = 0.263407.
    half = wilson(5, 10)
    assert (half.low, half.high) == pytest.approx((0.236593, 0.763407), abs=1e-6)
    assert (wilson(0, 7).low, wilson(7, 7).high) == (0.0, 1.0)
    other = wilson(5, 10, confidence=0.99)  # z = 2.575829: z² / n is 0.663490
    assert (other.low, other.high) == pytest.approx((0.184234, 0.815766), abs=1e-5)
    assert estimate([0.1] * 1000, 1.0) == Estimate(0.1, 0.1, 0.1)
    close = estimate([1e9, 1e9 + 1e-3])
    assert close.high - close.low == pytest.approx(2 * 12.706 * 0.0005, rel=1e-3)
    ordered = [10] * 50 + [20] * 45 + [30] * 5
    assert [nearest_rank(ordered, percent) for percent in (0, 50, 51, 95, 96, 100)] == [10, 10, 20, 20, 30, 30]
