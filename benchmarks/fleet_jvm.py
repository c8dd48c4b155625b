"""The kernels and the Spark stage beside one JVM loop over RocketMQ's own classes, in turns, in one run.

All three deal out the same groups. RocketMQ's classes get sorted lists, finished strategy objects and a warmed-up JVM;
the kernels get arrays of names, hash them, and are one thread too; the stage reads its table and writes its rows, and
its rate is divided by its cores.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from typing import IO, TYPE_CHECKING

from benchmarks.fleet_pairs import batches, checksum, owners, write_lines
from benchmarks.fleet_strategies import SETTINGS
from benchmarks.measuring import Spread, ratio
from benchmarks.rocketmq import Program
from benchmarks.sections import Section

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from rmqlb.pipeline.groups.group_batch import GroupBatch

FLEET = "the fleet"
HASH = "CONSISTENT_HASH"
ONE_RING = f"{HASH}/one-ring"
CORES = 2
WRITTEN = (FLEET, "64×16")
"""The cases in which the loop is also asked to read the groups and to write its rows, as the stage does."""


class FleetAllocations(Program):
    """A whole fleet's allocations: `FleetAllocations.java`."""

    def __init__(self, name: str, commands: IO[str], answers: IO[str]) -> None:
        super().__init__(name, commands, answers)
        self.whole = False

    def load(self, file: str, *, whole: bool) -> tuple[int, ...]:
        """The fleet from now on; `whole` when its pairs are unlike and all of them are to be passed each time."""
        self.whole = whole
        return self.ask(f"fleet {file}")

    def check(self, strategy: str, seconds: float) -> tuple[int, int]:
        """Of how many pairs, the first ones, the owners were found in so many seconds, and the checksum of them."""
        pairs, total = self.ask(f"check {strategy} {seconds * 1000:.0f}")
        return pairs, total

    def rate(self, strategy: str, seconds: float) -> float:
        """Queues a second."""
        queues, nanos = self.ask(f"{'pass' if self.whole else 'time'} {strategy} {seconds * 1000:.0f}")
        return queues / nanos * 1e9

    def rows(self, strategy: str, groups: str, file: str) -> float:
        """Queues a second with the fleet read from a file, and a line written for each queue."""
        queues, nanos = self.ask(f"rows {strategy} {groups} {file}")
        return queues / nanos * 1e9


class Stage:
    """The allocate stage over groups that are there.

    Args:
        spark: the session.
        folder: gets the tables.
        groups: rows of FLEET.
    """

    def __init__(self, spark: SparkSession, folder: str, groups: pa.Table) -> None:
        from pyarrow import parquet
        from rmqlb.pipeline.schemas import FLEET as TABLE

        from rmqlb.pipeline.warehouse import Warehouse

        self._warehouse = Warehouse(os.path.join(folder, "warehouse"))
        aside = os.path.join(folder, "groups")
        os.makedirs(aside)
        size = -(-groups.num_rows // (2 * CORES))
        for number in range(2 * CORES):
            parquet.write_table(groups.slice(number * size, size), os.path.join(aside, f"{number}.parquet"))
        frame = spark.read.schema(TABLE.ddl).parquet(aside)
        with self._warehouse.writing() as writing:
            writing.replace(TABLE, frame)
        self._groups = self._warehouse.read(spark, TABLE)

    def rate(self, strategy: str) -> float:
        """Queues a second and core, the writing of the table ASSIGNMENTS included."""
        from rmqlb.pipeline.groups.assignment_rows import PART, allocated
        from rmqlb.pipeline.schemas import ASSIGNMENTS

        start = perf_counter()
        with self._warehouse.writing() as writing:
            writing.replace_part(ASSIGNMENTS, allocated(self._groups, (strategy,), SETTINGS), PART, {})
            rows = writing.written[ASSIGNMENTS.name].rows
        return rows / (perf_counter() - start) / CORES


def kernel_rate(read: Sequence[GroupBatch], strategy: str) -> float:
    """Queues a second that the kernels deal out; nothing is known from an earlier run."""
    from rmqlb.pipeline.groups.batch_allocator import BatchAllocator

    start = perf_counter()
    for batch in read:
        dealt = BatchAllocator(batch, SETTINGS)
        dealt.places(strategy, dealt.pairs)
    return sum(int(batch.queues.sum()) for batch in read) / (perf_counter() - start)


@dataclass
class Rates:
    """One strategy over one set of groups, in queues a second, a value a turn."""

    kernels: list[float] = field(default_factory=list)
    stage: list[float] = field(default_factory=list)
    loop: list[float] = field(default_factory=list)
    one_ring: list[float] = field(default_factory=list)
    with_rows: list[float] = field(default_factory=list)


def check_owners(groups: pa.Table, strategy: str, java: FleetAllocations, seconds: float) -> int:
    """Compare the owners of the first pairs, as many as RocketMQ's classes manage; comes back with their number.

    Raises:
        RuntimeError: they differ.
    """
    pairs, total = java.check(strategy, seconds)
    ours = islice(owners(groups, strategy.partition("/")[0]), pairs)
    if checksum(owner for pair in ours for owner in pair) != total:
        raise RuntimeError(f"{strategy}: the owners differ from RocketMQ's, in the first {pairs} pairs")
    return pairs


def measured(
    groups: pa.Table,
    stage: Stage | None,
    java: FleetAllocations | None,
    strategies: Sequence[str],
    turns: int,
    run: float,
) -> dict[str, Rates]:
    """All sides in turns, warmed up and found to agree.

    Args:
        groups: rows of FLEET.
        stage: over the same; None leaves it out.
        java: the same groups loaded, as `lines_of` writes them; None leaves it out.
        strategies: which.
        turns: that count.
        run: seconds of the loop in a turn, where pairs are alike.
    """
    from rmqlb.pipeline.groups.group_batch import read_batch

    read = [read_batch(rows) for rows in batches(groups)]
    rates = {strategy: Rates() for strategy in strategies}
    for strategy, one in rates.items():
        if java is not None:
            for name in (strategy, ONE_RING) if strategy == HASH else (strategy,):
                check_owners(groups, name, java, 5 * run)
                java.rate(name, run)
        kernel_rate(read, strategy)
        if stage is not None:
            stage.rate(strategy)
        for _ in range(turns):
            one.kernels.append(kernel_rate(read, strategy))
            if stage is not None:
                one.stage.append(stage.rate(strategy))
            if java is not None:
                one.loop.append(java.rate(strategy, run))
                if strategy == HASH:
                    one.one_ring.append(java.rate(ONE_RING, run))
    return rates


def rows_of(case: str, rates: Mapping[str, Rates], section: Section) -> None:
    """Put what was measured into the section."""
    for strategy, one in rates.items():
        ratios = {
            "kernels": ratio(one.kernels, one.loop) if one.loop else None,
            "stage": ratio(one.stage, one.loop) if one.loop and one.stage else None,
            "one ring": ratio(one.kernels, one.one_ring) if one.one_ring else None,
            "rows": ratio(one.stage, one.with_rows) if one.with_rows and one.stage else None,
        }
        section.ratios.update({(kind, strategy, case): its for kind, its in ratios.items() if its is not None})
        measured_rates = (one.loop, one.one_ring, one.with_rows, one.kernels, one.stage)
        shown = [f"{Spread.of(its).median / 1e6:.3g}" if its else "–" for its in measured_rates]
        section.rows.append((strategy, case, *shown, *(its or "–" for its in ratios.values())))


HEADERS = (
    "strategy",
    "queues × members",
    "RocketMQ, 10⁶/s",
    "one ring",
    "with rows",
    "kernels, 10⁶/s",
    "stage, 10⁶/s a core",
    "kernels / RocketMQ",
    "stage / RocketMQ",
    "kernels / one ring",
    "stage / with rows",
)


def compare(
    case: str,
    groups: pa.Table,
    stage: Stage | None,
    java: FleetAllocations | None,
    strategies: Sequence[str],
    how_long: tuple[int, float],
    section: Section,
    folder: str,
) -> None:
    """Measure one set of groups, and put it into the section.

    Args:
        case: what the groups are called.
        groups: rows of FLEET.
        stage: over the same; None leaves it out.
        java: RocketMQ's own classes; None leaves them out.
        strategies: which.
        how_long: turns that count, and seconds of the loop in a turn.
        section: gets the rows and ratios.
        folder: gets the file for the JVM.
    """
    with lines_of(groups, folder) as lines:
        if java is not None:
            java.load(lines, whole=case == FLEET)
        rates = measured(groups, stage, java, strategies, *how_long)
        if java is not None and case in WRITTEN:
            for strategy, one in rates.items():
                one.with_rows += [java.rows(strategy, lines, f"{lines}.out") for _ in range(how_long[0])]
                os.remove(f"{lines}.out")
    rows_of(case, rates, section)


@contextmanager
def lines_of(groups: pa.Table, folder: str) -> Iterator[str]:
    """The file with the groups as the JVM reads them, for the length of a `with` block."""
    path = os.path.join(folder, "fleet.txt")
    with open(path, "w", encoding="utf-8") as file:
        write_lines(groups, file)
    yield path
    os.remove(path)
