"""How long healthy brokers take: a table of equally likely values, so that every engine draws the very same numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rmqlb.errors import UsageError
from rmqlb.model.send_scenario import Latency

_CELLS = 1 << 16
_LONGEST_US = 24 * 3600 * 1_000_000


def constant(us: int, text: str) -> Latency:
    """Always the same."""
    return Latency(text, (us,))


def lognormal(median_us: float, sigma: float, text: str) -> Latency:
    """A lognormal distribution by its median and the deviation of its natural logarithm.

    The table holds 65,536 quantiles, the last of which is refined by as many again: the rarest value has a chance of
    about one in nine thousand million.
    Raises UsageError.
    """
    if not 0 <= sigma <= 10:
        raise UsageError(f"latency {text}: sigma is not between 0 and 10")
    if sigma == 0:
        return constant(round(median_us), text)
    from statistics import NormalDist

    quantile = NormalDist().inv_cdf

    def value(probability: float) -> int:
        return min(round(median_us * math.exp(sigma * quantile(probability))), _LONGEST_US)

    table = tuple(value((cell + 0.5) / _CELLS) for cell in range(_CELLS))
    tail = tuple(value(1 - (_CELLS - cell - 0.5) / _CELLS**2) for cell in range(_CELLS))
    return Latency(text, table, tail)


def from_samples(samples_us: Sequence[int], text: str) -> Latency:
    """Measured latencies, each as likely as the others; raises UsageError."""
    if not samples_us:
        raise UsageError(f"latency {text}: no sample")
    return Latency(text, tuple(samples_us))


def pick(latency: Latency, bits: int) -> int:
    """The value in microseconds that 64 random bits stand for."""
    table = latency.table
    cell = ((bits >> 32) * len(table)) >> 32
    if latency.tail and cell == len(table) - 1:
        return latency.tail[((bits & 0xFFFFFFFF) * len(latency.tail)) >> 32]
    return table[cell]
