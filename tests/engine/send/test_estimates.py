"""The small statistics of trials, against tables and numbers worked out by hand."""

from __future__ import annotations

from collections import Counter
from math import erf, sqrt

import pytest

from rmqlb.engine.send.trials import Mean, quantile, student, wilson
from rmqlb.model.simulate_send import Estimate
from tests.support.mismatches import every_case


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


def test_a_mean_with_students_interval() -> None:
    mean = Mean()
    add(mean, [1, 2])
    add(mean, [])
    add(mean, [3, 4, 5])
    # The variance is 2.5; 2.776 × √(2.5 / 5) = 1.963.
    assert mean.count == 5
    estimate = mean.estimate()
    assert (estimate.mean, estimate.low, estimate.high) == pytest.approx((3, 1.037, 4.963), abs=0.001)


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
