"""The pipeline over generated fleets: `python -m benchmarks.fleet`.

Six sections: all stages up to the scores; ten million queues; beside RocketMQ's own classes in a JVM; how time and
memory grow with the rows; one core against two; and a month of snapshots.

Memory is that of the driver's Java and of all Python processes together, looked at five times a second. Linux only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.fleet_parts import Parts
from benchmarks.fleet_run import CONF
from benchmarks.fleet_strategies import WITH_CLASS
from benchmarks.measuring import machine
from benchmarks.sections import Hold, Section

HOLDS: Mapping[tuple[str, ...], Hold] = {
    ("memory", "stages"): Hold(most=1),
    ("memory", "rows"): Hold(most=1),
    ("memory", "history"): Hold(most=1),
    ("kernels", "CONSISTENT_HASH"): Hold(least=5),
    ("stage", "CONSISTENT_HASH"): Hold(least=1),
    ("kernels", "others"): Hold(least=0.1),
    ("growth",): Hold(most=1.5),
}
"""Of memory, the peak in units of 4 GiB; of kernels and of the stage, queues a second and core in units of RocketMQ's,
the least over 64 queues × 16 members and up; of growth, seconds for the most rows in units of those for a tenth of
them, a row each."""


def broken(sections: Sequence[Section]) -> list[str]:
    """A line for each hold that is broken, and for each thing that was not there to be measured."""
    complaints = [f"hold not measured: {what}" for section in sections for what in section.missing]
    for section in sections:
        for name, spread in section.ratios.items():
            hold = HOLDS.get(name)
            if hold is not None and not hold.least <= spread.median <= hold.most:
                complaints.append(f"hold broken: {', '.join(name)}: {spread.median:.3g}, and {hold} is asked")
    return complaints


def main() -> None:
    """Measure, print the tables, and with `--check` end with 1 when a hold is broken or was not measured."""
    names = ("stages", "rows", "jvm", "growth", "cores", "history")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--turns", type=int, default=3, metavar="N", help="turns that count (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=names, help="repeatable; default: all")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a hold is broken or not measured")
    parser.add_argument("--queues", type=int, metavar="N", help="of the fleet in each section (default: the section's)")
    parser.add_argument("--days", type=int, default=30, metavar="N", help="of history (default: %(default)s)")
    parser.add_argument("--strategy", action="append", choices=WITH_CLASS, help="of jvm; repeatable; default: all")
    parser.add_argument("--run", type=float, default=2.0, metavar="S", help="seconds of a JVM loop in a turn")
    parser.add_argument("--conf", action="append", metavar="K=V", help="of Spark; repeatable")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep fleets and warehouses there for further runs")
    options = parser.parse_args()
    conf = {**CONF, **dict(pair.split("=", 1) for pair in options.conf or ())}
    said = " ".join(f"{key}={value}" for key, value in conf.items())
    sys.stdout.write(f"{machine()}, {options.turns} turns, {said}\n")
    sections = []
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
        todo: Mapping[str, Callable[[], Section]] = {name: getattr(parts, name) for name in names}
        for name in options.only or names:
            sys.stdout.write(f"\n{name}\n\n")
            sys.stdout.flush()
            sections.append(todo[name]())
            sys.stdout.write(f"{sections[-1]}\n")
            sys.stdout.flush()
    complaints = broken(sections)
    sys.stdout.writelines(f"\n{line}\n" for line in complaints)
    sys.exit(1 if options.check and complaints else 0)


if __name__ == "__main__":
    main()
