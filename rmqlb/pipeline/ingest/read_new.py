"""Reading the new files: what comes of it is written aside once, and counted while it is.

A row is about one thing (`arrow_udf.READ`): a file, a document, a snapshot, or a row of one of the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as fn

from rmqlb.pipeline.ingest import arrow_udf
from rmqlb.pipeline.ingest import ingest_steps as steps
from rmqlb.pipeline.ingest.arrow_udf import QUARANTINED, READ, READ_DOCUMENT, ROWS
from rmqlb.pipeline.ingest.input_files import Found
from rmqlb.pipeline.ingest.new_files import NewFiles, inputs
from rmqlb.pipeline.schemas import ddl
from rmqlb.pipeline.spark.in_workers import in_workers
from rmqlb.pipeline.spark.progress import StageProgress
from rmqlb.pipeline.spark.reading import read_parquet
from rmqlb.pipeline.storage.storage import Where
from rmqlb.pipeline.warehouse import Writing
from rmqlb.version import __version__

_MOST_TASKS = 512
_BYTES_A_TASK = 4 << 20
_MOST_DAYS = 4000
_FEW_FILES_AT_A_TIME = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4",
    "spark.sql.files.maxPartitionBytes": str(32 << 20),
}
"""While Spark hands over whole files."""
_SLICES = "spark.sql.leafNodeDefaultParallelism"
MADE = ("madeTopics", "madeGroups", *(table.name for table in ROWS))
"""Of what was counted, what is about rows."""


@dataclass(frozen=True)
class Read:
    """What was read: `READ`, and what was counted of it while it was."""

    rows: DataFrame
    counts: Mapping[str, Any]

    @property
    def heads(self) -> DataFrame:
        """Of all documents."""
        return steps.heads_of(self.rows)

    @property
    def documents(self) -> int:
        """How many could be read."""
        return int(self.counts["snapshots"] + self.counts["pieces"])

    @property
    def all_rows_count(self) -> bool:
        """No row is of a document that failed half-way."""
        return not self.counts["halfWay"]

    @property
    def dates(self) -> Where | None:
        """Where the warehouse has these documents if it has them; None when that is everywhere."""
        days: set[date | None] = set()
        for kind in ("snapshot", "piece"):
            first, last = self.counts[f"{kind}First"], self.counts[f"{kind}Last"]
            if self.counts[f"{kind}Undated"]:
                days.add(None)
            if first is not None and (last - first).days > _MOST_DAYS:
                return None
            if first is not None:
                days |= {first + timedelta(days=number) for number in range((last - first).days + 1)}
        return {"date": days}


def read_new(
    spark: SparkSession, writing: Writing, found: Found, new: NewFiles, cluster: str | None, progress: StageProgress
) -> Read:
    """Read the new files; `cluster` is what the user calls that of all of them."""
    size = sum(row["length"] for row in new.local)
    tasks = max(1, min(len(new.local), _MOST_TASKS, 2 + size // _BYTES_A_TASK))
    files = inputs(spark, new, found.urls, tasks)
    count = progress.count(spark, "files", len(new.files))
    rows = in_workers(files, partial(arrow_udf.read_files, cluster, __version__), ddl(READ), count)
    return counted(writing, "_read", rows, {**_FEW_FILES_AT_A_TIME, _SLICES: str(tasks)})


def counted(
    writing: Writing, name: str, rows: DataFrame, settings: Mapping[str, str] | None = None, *more: Column
) -> Read:
    """`READ`, from a file, and what was counted (`more` too) while it was written."""
    told = Observation()
    rows = aside(writing, name, rows.observe(told, *_counts(), *more), settings)
    return Read(rows, told.get)


def aside(writing: Writing, name: str, frame: DataFrame, settings: Mapping[str, str] | None = None) -> DataFrame:
    """The same rows, from a file: what they are made of is computed once."""
    path, spark = writing.aside(name), frame.sparkSession
    with _settings(spark, settings or {}):
        frame.write.parquet(path)
    return read_parquet(spark, frame.schema, path)


def announced() -> Iterator[Column]:
    """How many topics and groups the snapshots say that they have."""
    yield fn.sum("made.topics").alias("madeTopics")
    yield fn.sum("made.groups").alias("madeGroups")


def _counts() -> Iterator[Column]:
    """What is counted while documents are read."""
    head = fn.col("head")
    is_snapshot = (head["outcome"] == READ_DOCUMENT) & (head["kind"] == "snapshot")
    yield fn.count("file").alias("files")
    yield fn.sum("file.documents").alias("inFiles")
    yield fn.count("head").alias("documents")
    yield fn.count_if(head["outcome"] == QUARANTINED).alias("quarantined")
    yield fn.count_if((head["outcome"] == QUARANTINED) & head["kind"].isNotNull()).alias("halfWay")
    yield fn.count_if(is_snapshot).alias("snapshots")
    yield fn.count("piece").alias("pieces")
    for kind, where, day in (
        ("snapshot", is_snapshot, fn.col("date")),
        ("piece", fn.col("piece").isNotNull(), fn.col("piece.date")),
    ):
        yield fn.min(fn.when(where, day)).alias(f"{kind}First")
        yield fn.max(fn.when(where, day)).alias(f"{kind}Last")
        yield fn.count_if(where & day.isNull()).alias(f"{kind}Undated")
    for table in ROWS:
        yield fn.count(table.name).alias(table.name)
    yield from announced()


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Spark's settings for a while."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
