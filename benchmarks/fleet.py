"""What a night of the pipeline costs: `python -m benchmarks.fleet`.

Processor seconds and memory are of the whole process tree, Java and Python workers and the session's start included.
Jobs and bytes read are Spark's own, from its event log. The limits are those of a machine with two quiet cores.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measuring import MEGABYTE, clean_environment, machine
from benchmarks.process_tree import Watch
from benchmarks.sections import Section, measure, parser_of

EXAMPLE = "examples/fleet"
NIGHTS = 5
CLUSTERS = 3
SHAPE = {"groups": 80, "topics": 40, "clusters": CLUSTERS, "faults": 0.1}
HEADERS = ("work", "CPU s", "limit", "MB", "limit", "jobs", "limit", "MB read")


@dataclass(frozen=True)
class Cost:
    """What one command took, all its processes together."""

    cpu_seconds: float
    peak_bytes: int
    jobs: int
    bytes_read: int


@dataclass(frozen=True)
class Limit:
    """What it may take; None where nothing is asked."""

    cpu_seconds: float
    jobs: int | None = None
    megabytes: float | None = None


def cost(folder: Path, *arguments: str, code: int = 0) -> Cost:
    """Run `rmqlb pipeline` in a folder (raises RuntimeError when it ends otherwise)."""
    with TemporaryDirectory(dir=folder) as log:
        conf = {"enabled": "true", "dir": Path(log).as_uri(), "compress": "false"}
        more = [word for key, value in conf.items() for word in ("--conf", f"spark.eventLog.{key}={value}")]
        line = [sys.executable, "-m", "rmqlb", "pipeline", *arguments, *more, "-q", "-o", "json"]
        child = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=clean_environment())  # noqa: S603
        with Watch(child.pid) as watch:
            _, complaint = child.communicate()
        if child.returncode != code:
            raise RuntimeError(f"{' '.join(line)} ended with {child.returncode}:\n{complaint.decode(errors='replace')}")
        jobs, bytes_read = _spark(Path(log))
    cpu = max((seen.cpu_seconds for seen in watch.looks), default=0.0)
    return Cost(cpu, max((seen.resident_bytes for seen in watch.looks), default=0), jobs, bytes_read)


def _spark(log: Path) -> tuple[int, int]:
    """Jobs and bytes read, by the event log."""
    jobs = bytes_read = 0
    for path in log.rglob("events_*"):
        for line in path.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            jobs += event["Event"] == "SparkListenerJobStart"
            if event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                bytes_read += event["Task Metrics"]["Input Metrics"]["Bytes Read"]
    return jobs, bytes_read


def _generate(folder: Path, nights: int) -> None:
    """Write the fleet in a process of its own, with nights of one history."""
    program = (
        "import sys; from tests.support.synthetic.fleet import FleetShape, generate;"
        f"generate(FleetShape(days={nights}, **{SHAPE!r}), sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True)  # noqa: S603


def _row(section: Section, complaints: list[str], what: str, found: Cost, limit: Limit) -> None:
    megabytes = found.peak_bytes / MEGABYTE
    pairs = (
        ("CPU s", found.cpu_seconds, limit.cpu_seconds),
        ("MB", megabytes, limit.megabytes),
        ("jobs", found.jobs, limit.jobs),
    )
    complaints += [
        f"{what}: {value:.3g} {unit}, at most {most}" for unit, value, most in pairs if most and value > most
    ]
    cells = [cell for _, value, most in pairs for cell in (f"{value:.0f}", "" if most is None else f"{most:g}")]
    section.rows.append((what, *cells, f"{found.bytes_read / MEGABYTE:.1f}"))


def example(complaints: list[str]) -> Section:
    """The fleet of the documentation, and mistakes that must be told before Java starts."""
    section = Section(HEADERS)
    with TemporaryDirectory() as place:
        folder = Path(place)
        run = ("run", "-w", str(folder / "wh"), "--to", str(folder / "page"))
        _row(section, complaints, "example fleet, run", cost(folder, *run, EXAMPLE), Limit(40, megabytes=1500))
        _row(section, complaints, "nothing new, run", cost(folder, *run, EXAMPLE), Limit(40))
        _row(section, complaints, "a path that is not there", cost(folder, *run, "nowhere", code=4), Limit(3))
        _row(section, complaints, "a bad option", cost(folder, *run, EXAMPLE, "--keep", "x", code=2), Limit(3))
    return section


def fleet(complaints: list[str]) -> Section:
    """80 groups: all nights at once, then one night more."""
    section = Section(HEADERS)
    with TemporaryDirectory() as place:
        folder = Path(place)
        _generate(folder / "fleet", NIGHTS + 1)
        last = sorted((folder / "fleet").glob("cluster=*/date=*"), key=lambda night: night.name)[-CLUSTERS:]
        aside = [night.rename(folder / "-".join(night.parts[-2:])) for night in last]
        run = ("run", "-w", str(folder / "wh"), "--to", str(folder / "page"), str(folder / "fleet"))
        first = cost(folder, *run)
        _row(section, complaints, f"80 groups, {NIGHTS} nights from nothing", first, Limit(80, jobs=30))
        for moved, night in zip(aside, last, strict=True):
            moved.rename(night)
        _row(section, complaints, "one more night", cost(folder, *run), Limit(45, jobs=15))
    return section


PARTS: dict[str, Callable[[list[str]], Section]] = {"example": example, "fleet": fleet}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser_of("benchmarks.fleet", __doc__, PARTS, 1).parse_args(arguments)
    sys.stdout.write(f"{machine()}\n")
    complaints: list[str] = []
    parts = {name: partial(PARTS[name], complaints) for name in options.only or PARTS}
    measure(parts, lambda _: complaints, check=options.check)


if __name__ == "__main__":
    main()
