"""The producers stage: TOPICS → jobs → outcomes → SENDS and SEND_SHARES.

A job is a shape and a scenario; each is simulated once, however many topics have that shape. Every topic comes out: one
that cannot be sent to, or of which nobody can tell what fails, with 0 trials and nulls. Equal topics, schedule and seed
give equal rows, in whatever partitions they are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.arrow import Batches, arrow_schema
from rmqlb.pipeline.producers.send_rows import SendSchedule, check_schedule, jobs_of, outcome_of
from rmqlb.pipeline.schemas import KEY, SEND_SHARES, SENDS, Table, columns
from rmqlb.pipeline.spark.in_workers import in_workers
from rmqlb.pipeline.spark.progress import Count, StageProgress
from rmqlb.pipeline.spark.reading import read_parquet
from rmqlb.pipeline.storage.storage import Where
from rmqlb.pipeline.warehouse import Writing

PARTITIONS = 64
"""Some dozens of jobs each where there are thousands; by default a job takes about a tenth of a second."""

JOBS = Table("send_jobs", columns("shape string, scenario string"))
"""What is simulated: a `shape` (`send_rows.SendShape` as JSON), under a scenario."""

OUTCOMES = Table(
    "send_outcomes",
    {
        **JOBS.columns,
        **{name: kind for name, kind in SENDS.columns.items() if name not in (*KEY, "topic", "scenario")},
        "shares": "array<struct<brokerName: string, attempts: double, failures: double, share: double>>",
    },
)
"""A job and what came of it; `shares` has an entry for each of the shape's brokers, null without a simulation."""


def send_jobs(topics: DataFrame, schedule: SendSchedule) -> DataFrame:
    """TOPICS → JOBS: each shape with each of its scenarios, once."""
    check_schedule(schedule)
    shapes = topics.select(_shape().alias("shape")).distinct()
    return in_workers(shapes, partial(_jobs, schedule), JOBS.ddl)


def simulate_sends(jobs: DataFrame, schedule: SendSchedule, count: Count | None = None) -> DataFrame:
    """JOBS → OUTCOMES; all of the stage's work is here."""
    check_schedule(schedule)
    return in_workers(jobs, partial(_outcomes, schedule), OUTCOMES.ddl, count)


def sends(topics: DataFrame, outcomes: DataFrame) -> DataFrame:
    """TOPICS and OUTCOMES → SENDS: a row for each topic and scenario."""
    return _by_topic(topics, outcomes).select(*SENDS.columns)


def send_shares(topics: DataFrame, outcomes: DataFrame) -> DataFrame:
    """TOPICS and OUTCOMES → SEND_SHARES: a row for each topic, scenario and broker, where anything was simulated."""
    broker = fn.explode("shares").alias("broker")
    rows = _by_topic(topics, outcomes).select(*KEY, "topic", "scenario", "latencyFault", broker)
    return rows.select(*KEY, "topic", "scenario", "latencyFault", "broker.*").select(*SEND_SHARES.columns)


def write_sends(
    topics: DataFrame,
    schedule: SendSchedule,
    writing: Writing,
    made_from: Mapping[str, str] | None = None,
    where: Where | None = None,
    progress: StageProgress | None = None,
) -> tuple[int, int]:
    """Simulate TOPICS once, write SENDS and SEND_SHARES (in place of the rows `where`), and come back with their rows.

    Raises:
        UsageError: the schedule cannot be simulated for all topics.
    """
    aside = writing.aside(OUTCOMES.name)
    spark, jobs = topics.sparkSession, send_jobs(topics, schedule)
    number = jobs.count()
    # Spark would put these few bytes in one task.
    spread = jobs.repartition(max(1, min(PARTITIONS, number)), "shape", "scenario")
    count = (progress or StageProgress()).count(spark, "simulations", number)
    simulate_sends(spread, schedule, count).write.parquet(aside)
    outcomes = read_parquet(spark, OUTCOMES.ddl, aside)
    rows = writing.replace(SENDS, sends(topics, outcomes), made_from, where)
    return rows, writing.replace(SEND_SHARES, send_shares(topics, outcomes), made_from, where)


def _shape() -> Column:
    """A topic's `SendShape` as JSON, equal for equal shapes; a null list of queues is left out."""
    none = fn.array().cast("array<string>")
    publish, subscribe = (fn.coalesce(f"{name}.brokerName", none) for name in ("publish", "subscribe"))
    is_ordered = fn.coalesce(fn.col("orderTopicConf") != "", fn.lit(False))  # noqa: FBT003
    is_static = fn.col("isStatic") & fn.col("orderTopicConf").isNull()
    return fn.to_json(
        fn.struct(
            "publish",
            fn.when(is_static, none).otherwise(fn.array_except(subscribe, publish)).alias("others"),
            (is_ordered | is_static).alias("fixed"),
            is_static.alias("isStatic"),
        )
    )


def _by_topic(topics: DataFrame, outcomes: DataFrame) -> DataFrame:
    return topics.select(*KEY, "topic", _shape().alias("shape")).join(outcomes, "shape")


def _jobs(schedule: SendSchedule, batches: Batches) -> Batches:
    kind = arrow_schema(JOBS.columns)
    for batch in batches:
        rows = [row for text in batch.column("shape").to_pylist() for row in jobs_of(text, schedule)]
        yield pa.RecordBatch.from_pylist(rows, kind)


def _outcomes(schedule: SendSchedule, batches: Batches) -> Batches:
    """A batch a job: what is done is on its way at once."""
    kind = arrow_schema(OUTCOMES.columns)
    for batch in batches:
        for job in batch.to_pylist():
            yield pa.RecordBatch.from_pylist([outcome_of(job["shape"], job["scenario"], schedule)], kind)
