"""How sure many trials make us: intervals that hold the true value in 95 of 100 cases.

Rule of this file: sums are exact (`math.fsum`), so that a figure does not depend on the order of its parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import fsum, inf, pi, sqrt, tan
from statistics import NormalDist

from rmqlb.model.send_trials import Estimate

CONFIDENCE = 0.95


def student(degrees: int, confidence: float = CONFIDENCE) -> float:
    """Student's t: half of the interval of that confidence, in standard errors.

    Exact for one and two degrees of freedom, else the expansion around the normal quantile (Abramowitz and Stegun,
    26.7.5), which is off by 0.004 at three and by less than 0.001 from four on.
    """
    if degrees == 1:
        return tan(pi * confidence / 2)
    if degrees == 2:
        return confidence * sqrt(2 / (1 - confidence**2))
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    correction = 0.0
    for term in reversed(terms):
        correction = (correction + term) / degrees
    return z + correction


def wilson(hits: int, trials: int, confidence: float = CONFIDENCE) -> Estimate:
    """A probability from how often something happened, with Wilson's interval."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, spread = hits / trials, z * z / trials
    middle = (share + spread / 2) / (1 + spread)
    half = sqrt(share * (1 - share) * spread + spread * spread / 4) / (1 + spread)
    low = 0.0 if hits == 0 else max(middle - half, 0.0)
    return Estimate(share, low, 1.0 if hits == trials else min(middle + half, 1.0))


class Mean:
    """A mean over trials, from one block of trials after another."""

    def __init__(self, low: float = 0.0, high: float = inf) -> None:
        self.count = 0  # how many values there are
        self._low, self._high = low, high
        self._origin = 0.0
        self._sums: list[float] = []
        self._squares: list[float] = []

    def add(self, values: Sequence[float]) -> None:
        if not values:
            return
        if not self.count:
            self._origin = values[0]
        # Taken from the first one, equal values have no spread at all, and close ones lose no digits.
        away = [value - self._origin for value in values]
        self.count += len(values)
        self._sums = [fsum((*self._sums, *away))]
        self._squares = [fsum((*self._squares, *(value * value for value in away)))]

    def estimate(self) -> Estimate:
        """The mean of at least one value; a single one says nothing about the interval."""
        total, squares, count = fsum(self._sums), fsum(self._squares), self.count
        mean = self._origin + total / count
        if count == 1:
            return Estimate(mean, self._low, self._high)
        variance = max(squares - total * total / count, 0.0) / (count - 1)
        half = student(count - 1) * sqrt(variance / count)
        return Estimate(mean, max(mean - half, self._low), min(mean + half, self._high))


def quantile(counts: Counter[int], share: float) -> int:
    """The least value that at least this share of all values does not exceed."""
    wanted, seen = share * counts.total(), 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= wanted:
            return value
    return max(counts)
