"""Groups of several client libraries, beside groups of one: `python -m benchmarks.mixed_groups`.

A mixed group is computed consumer by consumer, so that each strategy is prepared once for each library. Both sides are
measured in turns in the same run, and what counts is their ratio to the slower pure group, in processor time: what else
the machine does is no part of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from time import process_time

from benchmarks.measuring import machine, ratio
from benchmarks.rebalancing import group, topic
from benchmarks.sections import Hold, Section, least, measure, parser_of
from benchmarks.sections import broken as sections_broken
from rmqlb.engine.assignment.assign import Members, assign

STRATEGIES = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
SIZES = ((64, 16), (1024, 64), (1024, 512))
HOLDS: Mapping[tuple[str, ...], Hold] = {
    (strategy, f"{queues} x {consumers}"): Hold(most=2) for strategy in STRATEGIES for queues, consumers in SIZES
}


def mixed(turns: int, sizes: Sequence[tuple[int, int]] = SIZES) -> Section:
    """Every second consumer runs Go's library."""
    section = Section(("strategy", "queues x consumers", "java, ms", "go, ms", "mixed, ms", "mixed / slower pure"))
    for strategy in STRATEGIES:
        for queues, consumers in sizes:
            calls = {name: _call(name, strategy, queues, consumers) for name in ("java", "go", "mixed")}
            times: dict[str, list[float]] = {name: [] for name in calls}
            for _ in range(turns):
                for name, call in calls.items():
                    times[name].append(least(call, clock=process_time))
            pure = [max(pair) for pair in zip(times["java"], times["go"], strict=True)]
            spread = ratio(times["mixed"], pure)
            size = f"{queues} x {consumers}"
            section.ratios[strategy, size] = spread
            section.rows.append((strategy, size, *(f"{min(times[name]) * 1e3:.2f}" for name in calls), spread))
    return section


def _call(kind: str, strategy: str, queues: int, consumers: int) -> Callable[[], object]:
    """The owners of a topic's queues in three groups by turns: rings are kept for two."""
    route = topic(queues)
    ids = group(consumers).client_ids
    turns = cycle([_members(kind, strategy, tuple(f"{client_id}{end}" for client_id in ids)) for end in "123"])
    return lambda: assign(route, next(turns))


def _members(kind: str, strategy: str, ids: tuple[str, ...]) -> Members:
    if kind == "mixed":
        return Members(ids, strategy, sdk_of=dict.fromkeys(ids[::2], "go"))
    return Members(ids, strategy, sdk=kind)


def broken(sections: Sequence[Section]) -> list[str]:
    """A line for each hold that is broken."""
    return sections_broken(sections, HOLDS)


def main() -> None:
    """Measure, print, and with --check judge."""
    parser = parser_of("benchmarks.mixed_groups", __doc__, ("mixed",), turns=5)
    asked = parser.parse_args()
    sys.stdout.write(f"{machine()}\n")
    parts: Mapping[str, Callable[[], Section]] = {"mixed": lambda: mixed(asked.turns)}
    measure(parts, broken, check=asked.check)


if __name__ == "__main__":
    main()
