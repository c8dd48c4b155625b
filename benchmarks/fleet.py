"""The pipeline over generated fleets: `python -m benchmarks.fleet`.

Nine sections: all stages up to the scores; allocate beside a plain trial and DuckDB; ten million queues; beside
RocketMQ's own classes in a JVM; how time and memory grow with the rows; one giant group; one core against two; a month
of snapshots at once; and a month of them night by night.

Memory is that of the driver's Java and of all Python processes together, looked at five times a second. Linux only.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.fleet_parts import Parts
from benchmarks.fleet_run import CONF
from benchmarks.fleet_strategies import WITH_CLASS
from benchmarks.measuring import machine
from benchmarks.sections import Hold, Section, measure, parser_of
from benchmarks.sections import broken as sections_broken

HOLDS: Mapping[tuple[str, ...], Hold] = {
    ("memory", "stages"): Hold(most=1),
    ("memory", "rows"): Hold(most=1),
    ("memory", "history"): Hold(most=1),
    ("kernels", "CONSISTENT_HASH"): Hold(least=5),
    ("stage", "CONSISTENT_HASH"): Hold(least=1),
    ("kernels", "others"): Hold(least=0.1),
    ("growth",): Hold(most=1.5),
    ("memory", "giant"): Hold(most=1),
    ("nights", "jobs"): Hold(most=1.2),
    ("nights", "read_bytes"): Hold(most=1.2),
    ("nights", "written"): Hold(most=1.2),
    ("rows", "CPU"): Hold(most=1),
    ("rows", "memory"): Hold(most=1),
    ("plain", "CPU"): Hold(most=1.3),
    ("plain", "seconds"): Hold(most=1.3),
}
"""Of memory, the peak in units of 4 GiB; of kernels and of the stage, queues a second and core in units of RocketMQ's,
the least over 64 queues × 16 members and up; of growth, seconds for the most rows in units of those for a tenth of
them, a row each; of plain, allocate in units of the plain trial of the same run, by the clock and in CPU seconds; of
nights, what the last night takes in units of the second; of rows, ten million queues under AVG and AVG_BY_CIRCLE in
units of 40 CPU seconds and of 2 GB."""


def broken(sections: Sequence[Section]) -> list[str]:
    """A line for each hold that is broken, and for each thing that was not there to be measured; some have no hold."""
    return sections_broken(sections, defaultdict(Hold, HOLDS))


def main() -> None:
    """Measure, print the tables, and with `--check` end with 1 when a hold is broken or was not measured."""
    names = ("stages", "plain", "rows", "jvm", "growth", "giant", "cores", "history", "nights")
    parser = parser_of("benchmarks.fleet", __doc__, names, turns=3)
    parser.add_argument("--queues", type=int, metavar="N", help="of the fleet in each section (default: the section's)")
    parser.add_argument(
        "--days", type=int, default=30, metavar="N", help="of history and nights (default: %(default)s)"
    )
    parser.add_argument("--strategy", action="append", choices=WITH_CLASS, help="of jvm; repeatable; default: all")
    parser.add_argument("--run", type=float, default=2.0, metavar="S", help="seconds of a JVM loop in a turn")
    parser.add_argument("--conf", action="append", metavar="K=V", help="of Spark; repeatable")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep fleets and warehouses there for further runs")
    options = parser.parse_args()
    conf = {**CONF, **dict(pair.split("=", 1) for pair in options.conf or ())}
    said = " ".join(f"{key}={value}" for key, value in conf.items())
    sys.stdout.write(f"{machine()}, {options.turns} turns, {said}\n")
    with tempfile.TemporaryDirectory() as scratch:
        parts = Parts(
            folder=str(options.folder or scratch),
            turns=options.turns,
            queues=options.queues,
            days=options.days,
            strategies=options.strategy or WITH_CLASS,
            run=options.run,
            conf=conf,
        )
        todo: Mapping[str, Callable[[], Section]] = {name: getattr(parts, name) for name in options.only or names}
        measure(todo, broken, check=options.check)


if __name__ == "__main__":
    main()
