"""What a night of the pipeline costs: `python -m benchmarks.fleet`.

Processor seconds and memory are of the whole process tree, Java and Python workers and the session's start included.
Jobs and bytes read are Spark's own, from its event log. The limits are those of a machine with two quiet cores.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measuring import MEGABYTE, clean_environment, machine
from benchmarks.process_tree import Watch
from benchmarks.sections import Section, measure, parser_of
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, Seen
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting
from tests.support.synthetic.fleet import document

EXAMPLE = "examples/fleet"
NIGHTS = 5
YEAR = 365
SHAPE = {"groups": 80, "topics": 40, "clusters": 3, "faults": 0.1}
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

    cpu_seconds: float | None = None
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


def _generate(folder: Path, nights: int, **shape: float) -> None:
    """Write a fleet in a process of its own, with nights of one history."""
    program = (
        "import sys; from tests.support.synthetic.fleet import FleetShape, generate;"
        f"generate(FleetShape(days={nights}, **{shape!r}), sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True)  # noqa: S603


@contextmanager
def _without(folder: Path, first: int, last: int) -> Iterator[None]:
    """Keep the nights from one number to another (from 0, the last one not included) away from the pipeline."""
    nights = sorted({night.name for night in folder.glob("cluster=*/date=*")})[first:last]
    held = [(night, night.with_name(f"_{night.name}")) for name in nights for night in folder.glob(f"cluster=*/{name}")]
    for night, away in held:
        night.rename(away)
    yield
    for night, away in held:
        away.rename(night)


def _row(section: Section, complaints: list[str], what: str, found: Cost, limit: Limit = Limit()) -> None:
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
        _row(section, complaints, "no new snapshot, run", cost(folder, *run, EXAMPLE), Limit(40))
        _row(section, complaints, "a path that does not exist", cost(folder, *run, "nowhere", code=4), Limit(3))
        _row(section, complaints, "a bad option", cost(folder, *run, EXAMPLE, "--keep", "x", code=2), Limit(3))
    return section


def fleet(complaints: list[str]) -> Section:
    """80 groups: all nights at once, then one night more."""
    section = Section(HEADERS)
    with TemporaryDirectory() as place:
        folder = Path(place)
        _generate(folder / "fleet", NIGHTS + 1, **SHAPE)
        run = ("run", "-w", str(folder / "wh"), "--to", str(folder / "page"), str(folder / "fleet"))
        with _without(folder / "fleet", NIGHTS, NIGHTS + 1):
            first = cost(folder, *run)
        _row(section, complaints, f"80 groups, {NIGHTS} nights from nothing", first, Limit(80, jobs=30))
        _row(section, complaints, "one more night", cost(folder, *run), Limit(45, jobs=15))
    return section


def year(complaints: list[str]) -> Section:
    """The second night and the last one of a year, which must cost the same."""
    section = Section(HEADERS)
    with TemporaryDirectory() as place:
        folder = Path(place)
        _generate(folder / "fleet", YEAR, **{**SHAPE, "groups": 20, "topics": 10})
        run = ("run", "-w", str(folder / "wh"), "--to", str(folder / "page"), str(folder / "fleet"))
        with _without(folder / "fleet", 1, YEAR):
            cost(folder, *run)
        with _without(folder / "fleet", 2, YEAR):
            second = cost(folder, *run)
        with _without(folder / "fleet", YEAR - 1, YEAR):
            cost(folder, *run)
        last = cost(folder, *run)
    _row(section, complaints, "20 groups, night 2", second, Limit(45, jobs=15))
    _row(section, complaints, f"20 groups, night {YEAR}", last, Limit(second.cpu_seconds * 1.1, jobs=second.jobs))
    if last.bytes_read > second.bytes_read * 1.1:
        complaints.append(f"night {YEAR} reads {last.bytes_read:,} bytes, night 2 {second.bytes_read:,}")
    return section


def rows(complaints: list[str]) -> Section:
    """A million queues in 100 groups of 64 consumers, under two strategies, with every loss."""
    section = Section(HEADERS)
    with TemporaryDirectory() as place:
        folder = Path(place)
        file = folder / "snapshots" / "cluster=fleet" / "date=2026-11-01" / "snapshot.json"
        file.parent.mkdir(parents=True)
        file.write_bytes(document(_large()))
        _row(
            section, complaints, "a million queues, ingest", cost(folder, "ingest", "-w", str(folder / "wh"), str(file))
        )
        judged = cost(folder, "judge", "-w", str(folder / "wh"), "--strategy", "AVG_BY_CIRCLE")
        _row(section, complaints, "a million queues, judge", judged)
    return section


def _large() -> ClusterSnapshot:
    at = datetime(2026, 11, 1, 2, tzinfo=UTC)
    seen = Seen("rocketmq://10.0.0.1:9876", at)
    brokers = tuple(BrokerData("fleet", f"broker-{at}", {0: f"10.0.0.{at}:10911"}) for at in range(4))
    datas = tuple(QueueData(broker.broker_name, 64, 64, 6) for broker in brokers)
    topics = tuple(f"Topic{at:02}" for at in range(40))
    groups = {}
    for number in range(100):
        ids = [f"10.1.{number}.{at}@1" for at in range(64)]
        view = MemberView(tuple(Connection(each, f"{each[:-2]}:40000", "JAVA", "V5_5_0") for each in ids), seen)
        groups[f"svc-{number}"] = ConsumerGroup(
            group=f"svc-{number}",
            seen=seen,
            consume_type="CONSUME_PASSIVELY",
            message_model="CLUSTERING",
            views=(view,),
            topics=topics,
            reports={each: MemberReport(each, frozenset(topics), "AllocateMessageQueueAveragely") for each in ids},
        )
    routes = {topic: RouteSighting(TopicRouteData(topic, datas, brokers), seen) for topic in topics}
    return ClusterSnapshot(kind="nameserver", endpoint=seen.where, taken_at=at, routes=routes, groups=groups)


PARTS: dict[str, Callable[[list[str]], Section]] = {"example": example, "fleet": fleet, "year": year, "rows": rows}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser_of("benchmarks.fleet", __doc__, PARTS, 1).parse_args(arguments)
    sys.stdout.write(f"{machine()}\n")
    complaints: list[str] = []
    parts = {name: partial(PARTS[name], complaints) for name in options.only or PARTS}
    measure(parts, lambda _: complaints, check=options.check)


if __name__ == "__main__":
    main()
