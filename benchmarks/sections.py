"""What the parts of a benchmark are made of: tables with holds on their ratios, and short runs in this process.

Rule of this file: nothing but the standard library is imported, for the reason that `measuring.run` gives.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import NoReturn

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


def broken(sections: Sequence[Section], holds: Mapping[tuple[str, ...], Hold]) -> list[str]:
    """A line for each hold that is broken, and for each thing that was not there to be measured.

    Args:
        sections: what was measured.
        holds: what each ratio is held to; `Hold()` holds to nothing.
    """
    complaints = [f"hold not measured: {what}" for section in sections for what in section.missing]
    for section in sections:
        for name, spread in section.ratios.items():
            hold = holds[name]
            if not hold.least <= spread.median <= hold.most:
                complaints.append(f"hold broken: {', '.join(name)}: {spread.median:.3g}, and {hold} is asked")
    return complaints


def parser_of(module: str, description: str | None, names: Iterable[str], turns: int) -> ArgumentParser:
    """The options that every script of sections has.

    Args:
        module: its name.
        description: what it measures.
        names: of its sections.
        turns: how many count unless the user says.
    """
    parser = ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--turns", type=int, default=turns, metavar="N", help="turns that count (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=tuple(names), help="repeatable; default: all")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a hold is broken or not measured")
    return parser


def measure(
    parts: Mapping[str, Callable[[], Section]], complain: Callable[[Sequence[Section]], list[str]], *, check: bool
) -> NoReturn:
    """Measure and print each part in turn, then what there is to complain of, which with `check` makes exit code 1."""
    sections = []
    for name, part in parts.items():
        sys.stdout.write(f"\n{name}\n\n")
        sys.stdout.flush()
        sections.append(part())
        sys.stdout.write(f"{sections[-1]}\n")
        sys.stdout.flush()
    complaints = complain(sections)
    sys.stdout.writelines(f"\n{line}\n" for line in complaints)
    sys.exit(1 if check and complaints else 0)


def loop(times: int) -> None:
    """The bare interpreter's share: a dict and a list that are updated so often."""
    counts: dict[int, int] = {}
    last = [0] * 8
    for i in range(times):
        place = i & 7
        counts[place] = counts.get(place, 0) + 1
        last[place] = i


def least(call: Callable[[], object], runs: int = RUNS, clock: Callable[[], float] = perf_counter) -> float:
    """Seconds of the fastest of several runs, by this clock; of fewer where they take long."""
    fastest, began = float("inf"), perf_counter()
    for _ in range(runs):
        start = clock()
        call()
        fastest = min(fastest, clock() - start)
        if perf_counter() - began > LONG / 10:
            break
    return fastest
