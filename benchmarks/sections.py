"""What the parts of a benchmark are made of: tables with holds on their ratios, and short runs in this process.

Rule of this file: nothing but the standard library is imported, for the reason that `measuring.run` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from benchmarks.measuring import Spread, markdown

RUNS = 3
LONG = 10.0
"""A series that has taken so many seconds takes no further turn; a tenth of them makes a run the last of its turn."""


@dataclass(frozen=True)
class Hold:
    """What the median of a ratio must not leave."""

    least: float = 0
    most: float = float("inf")

    def __str__(self) -> str:
        return f"≥ {self.least:g}" if self.least else f"≤ {self.most:g}"


@dataclass
class Section:
    """What one part has to say.

    Attributes:
        headers: of its table.
        rows: of its table.
        ratios: by what the holds are called.
        missing: what was not measured although a hold asks for it.
        remark: stands for the table where there is none, or under it.
    """

    headers: tuple[str, ...]
    rows: list[Sequence[object]] = field(default_factory=list)
    ratios: dict[tuple[str, ...], Spread] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    remark: str = ""

    def __str__(self) -> str:
        table = markdown(self.headers, self.rows) if self.rows else ""
        return "\n\n".join(text for text in (table, self.remark) if text)


def loop(times: int) -> None:
    """The bare interpreter's share: a dict and a list that are updated so often."""
    counts: dict[int, int] = {}
    last = [0] * 8
    for i in range(times):
        place = i & 7
        counts[place] = counts.get(place, 0) + 1
        last[place] = i


def least(call: Callable[[], object], runs: int = RUNS) -> float:
    """Seconds of the fastest of several runs; of fewer where they take long."""
    fastest, began = float("inf"), perf_counter()
    for _ in range(runs):
        start = perf_counter()
        call()
        fastest = min(fastest, perf_counter() - start)
        if perf_counter() - began > LONG / 10:
            break
    return fastest
