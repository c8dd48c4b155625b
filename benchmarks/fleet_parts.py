"""The sections of `benchmarks.fleet`.

Rule of this file: what is measured runs in processes of its own, a new one each turn, so that every figure has the
start of a cold JVM in it, as a user's command has; only `jvm` has a session here, warmed up as the JVM beside it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from benchmarks import fleet_jvm
from benchmarks.fleet_inputs import STAGE_NAMES, nights_of, put_night, write_giant
from benchmarks.fleet_peers import DUCKDB, TRIAL
from benchmarks.fleet_run import MASTER, Job, Ran, run_stages, stage_named
from benchmarks.fleet_strategies import ALL
from benchmarks.measuring import MEGABYTE, Spread, ratio
from benchmarks.sections import Section

MOST_BYTES = 4 * 2**30
PAIR_CPU_SECONDS, PAIR_BYTES = 40, 2_000_000_000
"""What ten million queues may cost under AVG and AVG_BY_CIRCLE."""
LONG = 300.0
"""Seconds after which a series takes no further turn."""

FIRST = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
PAIR = ("AVG", "AVG_BY_CIRCLE")
STAGE_QUEUES, ROW_QUEUES, JVM_QUEUES, HISTORY_QUEUES, PLAIN_QUEUES = 2_000_000, 10_000_000, 2_000_000, 50_000, 270_000
GIANT_TOPICS, GIANT_QUEUES, GIANT_CONSUMERS = 10_000, 256, 64
NIGHT_QUEUES = 5_000
WARM = 2
"""Turns in one session before those that count."""
SIZES = ((64, 16), (256, 64), (1024, 256))
_TABLES = ("allocate", "score")


@dataclass(frozen=True)
class Parts:
    """The sections, each a method.

    Attributes:
        folder: gets the fleets and warehouses.
        turns: that count.
        queues: of the fleet; None for each section's own number.
        days: of history.
        strategies: beside RocketMQ's own.
        run: seconds of a JVM loop in a turn.
        conf: Spark's settings.
    """

    folder: str
    turns: int
    queues: int | None
    days: int
    strategies: Sequence[str]
    run: float
    conf: Mapping[str, str]

    def stages(self) -> Section:
        """Six strategies, all stages up to the scores, from an empty warehouse."""
        fleet = self._fleet(self.queues or STAGE_QUEUES, observed=True)
        warehouse = os.path.join(self.folder, "stages")
        stages = ("ingest", "allocate", "score")
        runs = self._turns(replace(self._job(warehouse), stages=stages, strategies=ALL, inputs=(fleet,)), anew=True)
        section = Section(("stage", "seconds", "CPU seconds", "rows written", "rows/s", "peak, MB"))
        for name in stages:
            section.rows.append(_row(name, [stage_named(ran, name) for ran in runs]))
        section.rows.append(_row("together", [_together(ran) for ran in runs]))
        section.ratios["memory", "stages"] = _memory(runs)
        return section

    def rows(self) -> Section:
        """Ten million queues; the allocate stage, for each strategy and for three at once."""
        warehouse, ingested = self._ingested(self.queues or ROW_QUEUES)
        section = Section(("allocate", "seconds", "CPU seconds", "rows written", "rows/s", "peak, MB"))
        if ingested is not None:
            section.rows.append(_row("before it: ingest", [ingested]))
        peaks = []
        for strategies in (PAIR, ("CONSISTENT_HASH",), FIRST):
            runs = self._turns(replace(self._job(warehouse), stages=("allocate",), strategies=strategies))
            section.rows.append(_row(", ".join(strategies), [ran[0] for ran in runs]))
            peaks += runs
            if strategies == PAIR:
                section.ratios["rows", "CPU"] = Spread.of(ran[0].cpu_seconds / PAIR_CPU_SECONDS for ran in runs)
                section.ratios["rows", "memory"] = Spread.of(ran[0].peak_bytes / PAIR_BYTES for ran in runs)
        section.ratios["memory", "rows"] = _memory(peaks)
        return section

    def plain(self) -> Section:
        """AVG and AVG_BY_CIRCLE beside the plain trial and DuckDB, in turns, in one session that is warm."""
        names = ("allocate", TRIAL, DUCKDB)
        warehouse, _ = self._ingested(self.queues or PLAIN_QUEUES)
        stages = names * (WARM + self.turns)
        job = replace(self._job(warehouse), stages=stages, strategies=PAIR)
        together = run_stages(job)
        ran = {name: [one for one in together if one.stage == name][WARM:] for name in names}
        section = Section(("what", "seconds", "CPU seconds", "rows written", "rows/s", "peak, MB", "allocate / this"))
        cpu = {name: [one.cpu_seconds for one in its] for name, its in ran.items()}
        for name, its in ran.items():
            times = ratio(cpu["allocate"], cpu[name])
            section.rows.append((*_row(name, its), "" if name == "allocate" else times))
        section.ratios["plain", "CPU"] = ratio(cpu["allocate"], cpu[TRIAL])
        seconds = ([one.seconds for one in ran[name]] for name in ("allocate", TRIAL))
        section.ratios["plain", "seconds"] = ratio(*seconds)
        return section

    def growth(self) -> Section:
        """The allocate stage by the number of queues, three strategies."""
        most = self.queues or ROW_QUEUES
        sizes = [size for size in (most // 1000, most // 100, most // 10, most) if size >= 100]
        section = Section(
            ("queues", "seconds", "CPU seconds", "rows written", "rows/s", "peak, MB", "time / row above")
        )
        before: list[Ran] = []
        for size in sizes:
            job = replace(self._job(self._ingested(size)[0]), stages=("allocate",), strategies=FIRST)
            after = [ran[0] for ran in self._turns(job)]
            grows = _times(after, before)
            section.rows.append((*_row(f"{size:,}", after), grows or ""))
            if grows is not None and size == most:
                tenth = 10.0
                section.ratios[("growth",)] = Spread(grows.median / tenth, grows.least / tenth, grows.most / tenth)
            before = after
        return section

    def cores(self) -> Section:
        """The allocate stage and the scores on one core and on two."""
        warehouse = self._ingested(self.queues or STAGE_QUEUES)[0]
        section = Section(("stage", "master", "seconds", "CPU seconds", "rows written", "peak, MB", "one core / this"))
        ran: dict[str, list[list[Ran]]] = {"local[1]": [], MASTER: []}
        began = perf_counter()
        for _ in range(self.turns):  # in turns, so that a slow minute of the machine slows both
            for master, runs in ran.items():
                job = replace(self._job(warehouse), stages=_TABLES, strategies=FIRST, master=master)
                runs.append(run_stages(job))
            if perf_counter() - began > LONG:
                break
        for name in _TABLES:
            one = [stage_named(runs, name) for runs in ran["local[1]"]]
            for master, runs in ran.items():
                its = [stage_named(stages, name) for stages in runs]
                _, seconds, cpu, rows, _, peak = _row(name, its)
                section.rows.append((name, master, seconds, cpu, rows, peak, _times(one, its)))
        return section

    def giant(self) -> Section:
        """One group of 10,000 topics with 256 queues each and 64 consumers: `--queues` makes the topics fewer."""
        topics = max((self.queues or GIANT_TOPICS * GIANT_QUEUES) // GIANT_QUEUES, 1)
        dumps = os.path.join(self.folder, f"giant-{topics}")
        if not os.path.isdir(dumps):
            write_giant(dumps, topics, GIANT_QUEUES, GIANT_CONSUMERS)
        stages = ("ingest", "allocate", "score", "what-if")
        warehouse = os.path.join(self.folder, "giant")
        job = replace(self._job(warehouse), stages=stages, strategies=PAIR, inputs=(dumps,))
        runs = self._turns(job, anew=True)
        section = Section(("stage", "seconds", "CPU seconds", "rows written", "rows/s", "peak, MB"))
        for name in stages:
            section.rows.append(_row(name, [stage_named(ran, name) for ran in runs]))
        section.ratios["memory", "giant"] = _memory(runs)
        return section

    def nights(self) -> Section:
        """All stages night by night, each with the files of one night more; the last beside the second."""
        fleet = self._fleet(self.queues or NIGHT_QUEUES, observed=True, days=self.days)
        warehouse, inputs = (os.path.join(self.folder, name) for name in ("nights", "nights-input"))
        for folder in (warehouse, inputs):
            shutil.rmtree(folder, ignore_errors=True)
        job = replace(self._job(warehouse), stages=tuple(STAGE_NAMES), strategies=PAIR, inputs=(inputs,), force=False)
        ran: list[list[Ran]] = []
        for night in nights_of(fleet):
            put_night(fleet, night, inputs)
            ran.append(run_stages(job))
        section = Section(("stage", "night", "jobs", "read, MB", "rows written", "CPU seconds"))
        for name in job.stages:
            for number in (2, len(ran)):
                one = stage_named(ran[number - 1], name)
                read = f"{one.read_bytes / MEGABYTE:,.1f}"
                section.rows.append((name, number, one.jobs, read, f"{one.written:,}", _seconds(one.cpu_seconds)))
        for what in ("jobs", "read_bytes", "written"):
            second, last = (sum(getattr(one, what) for one in ran[number]) for number in (1, -1))
            section.ratios["nights", what] = Spread.of([last / max(second, 1)])
        return section

    def history(self) -> Section:
        """A month of nights: ingest, and everything that is said over time."""
        fleet = self._fleet(self.queues or HISTORY_QUEUES, observed=True, days=self.days)
        warehouse = os.path.join(self.folder, "history")
        stages = ("ingest", "history")
        runs = self._turns(replace(self._job(warehouse), stages=stages, inputs=(fleet,)), anew=True)
        section = Section(("stage", "seconds", "CPU seconds", "rows written", "rows/s", "peak, MB"))
        for name in stages:
            section.rows.append(_row(name, [stage_named(ran, name) for ran in runs]))
        section.ratios["memory", "history"] = _memory(runs)
        return section

    def jvm(self) -> Section:
        """Beside RocketMQ's own classes."""
        from rmqlb.pipeline.spark.session import spark_session
        from rmqlb.pipeline.spark.settings import SessionSettings

        from benchmarks.fleet_pairs import groups_of_a_fleet, groups_of_one_size
        from benchmarks.rocketmq import FLEET_ALLOCATIONS, java_if_here
        from rmqlb.pipeline.warehouse import Warehouse

        queues = self.queues or JVM_QUEUES
        warehouse = self._ingested(queues)[0]
        run_stages(replace(self._job(warehouse), stages=("allocate",), strategies=("AVG",)))
        cases = {fleet_jvm.FLEET: groups_of_a_fleet(Warehouse(warehouse))}
        cases |= {f"{size[0]}×{size[1]}": groups_of_one_size(*size, queues // 2) for size in SIZES}
        section = Section(fleet_jvm.HEADERS)
        log = os.path.join(self.folder, "spark-jvm.log")
        with (
            java_if_here(FLEET_ALLOCATIONS, fleet_jvm.FleetAllocations, heap="1g") as java,
            spark_session(SessionSettings(MASTER, self.conf, log)) as spark,
        ):
            if java is None:
                section.missing.append("RocketMQ's own allocations")
            for case, groups in cases.items():
                with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                    stage = fleet_jvm.Stage(spark, folder, groups)
                    fleet_jvm.compare(
                        case, groups, stage, java, self.strategies, (self.turns, self.run), section, folder
                    )
        _hold_jvm(section)
        return section

    def _job(self, warehouse: str) -> Job:
        return Job(warehouse, (), conf=self.conf)

    def _turns(self, job: Job, *, anew: bool = False) -> list[list[Ran]]:
        """The job so many times, or until it has taken long."""
        runs: list[list[Ran]] = []
        began = perf_counter()
        while len(runs) < self.turns and (not runs or perf_counter() - began < LONG):
            if anew:
                shutil.rmtree(job.warehouse, ignore_errors=True)
            runs.append(run_stages(job))
        return runs

    def _fleet(self, queues: int, *, observed: bool, days: int = 1) -> str:
        """The folder of a generated fleet; the fleet of an earlier run is taken as it is."""
        from tests.support.synthetic.generate import generate
        from tests.support.synthetic.shape import FleetShape

        name = f"fleet-{queues}-{days}-{'observed' if observed else 'plain'}"
        folder = os.path.join(self.folder, name)
        if not os.path.isdir(folder):
            aside = f"{folder}.tmp"
            shutil.rmtree(aside, ignore_errors=True)
            made = generate(FleetShape(queues=queues, days=days, observed=observed, other_clients=0.0), aside)
            os.rename(aside, folder)
            sys.stdout.write(f"{name}: {made.pairs:,} pairs, {made.queues:,} queues, {made.clusters} clusters\n\n")
            sys.stdout.flush()
        return folder

    def _ingested(self, queues: int) -> tuple[str, Ran | None]:
        """A warehouse with a fleet in it, and what ingesting it took, unless an earlier run has done it."""
        fleet = self._fleet(queues, observed=False)
        warehouse = f"{fleet}.warehouse"
        if os.path.exists(os.path.join(warehouse, "tables.json")):
            return warehouse, None
        return warehouse, run_stages(replace(self._job(warehouse), stages=("ingest",), inputs=(fleet,)))[0]


def _row(name: str, ran: Sequence[Ran]) -> tuple[object, ...]:
    """A stage, over the turns."""
    seconds = Spread.of(one.seconds for one in ran)
    rows = ran[0].rows
    return (
        name,
        seconds,
        _seconds(Spread.of(one.cpu_seconds for one in ran).median),
        f"{rows:,}",
        f"{rows / seconds.median:,.0f}",
        f"{max(one.peak_bytes for one in ran) / MEGABYTE:,.0f}",
    )


def _seconds(median: float) -> str:
    return f"{median:,.0f}" if median >= 10 else f"{median:.1f}"


def _together(ran: Sequence[Ran]) -> Ran:
    tables = {f"{one.stage} {table}": rows for one in ran for table, rows in one.tables.items()}
    seconds, cpu = sum(one.seconds for one in ran), sum(one.cpu_seconds for one in ran)
    return Ran("together", seconds, cpu, max(one.peak_bytes for one in ran), tables)


def _memory(runs: Sequence[Sequence[Ran]]) -> Spread:
    """The peaks in units of what is allowed."""
    return Spread.of(max(one.peak_bytes for one in ran) / MOST_BYTES for ran in runs)


def _times(ours: Sequence[Ran], peers: Sequence[Ran]) -> Spread | None:
    """Ours in units of the peer's, turn by turn; None without a peer."""
    turns = min(len(ours), len(peers))
    if not turns:
        return None
    return ratio([one.seconds for one in ours[:turns]], [one.seconds for one in peers[:turns]])


def _hold_jvm(section: Section) -> None:
    """The least ratios over the sizes, which are held."""
    over_sizes = [(name, its) for name, its in section.ratios.items() if name[-1] != fleet_jvm.FLEET]
    for kind in ("kernels", "stage"):
        for what in (fleet_jvm.HASH, "others"):
            found = [
                its
                for (its_kind, strategy, _), its in over_sizes
                if its_kind == kind and (strategy == fleet_jvm.HASH) == (what == fleet_jvm.HASH)
            ]
            if found:
                section.ratios[kind, what] = min(found, key=lambda its: its.median)
