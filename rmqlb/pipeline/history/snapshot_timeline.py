"""When each snapshot was taken, and what it shows of a queue: what all of the history is made from.

- A cluster's snapshots are in the order of `takenAt`; one without a time is left out (`untimed`). Those of the same
  time are one moment: a queue's owners at it are all that any of them shows; likewise a group's members.
- A queue is *sighted* at a moment when it has a row in `owners`; a group is *observed* when one of its queues is
  sighted. Otherwise nothing is known, and nothing has changed.
- Of the moments that an earlier run has looked at, only each queue's last sighting is taken again, with what else of
  its past matters (`with_past`): so that going on costs the new moments only, and comes to the same.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from rmqlb.pipeline.ingest.ingest_steps import in_few_parts
from rmqlb.pipeline.schemas import QUEUE, QUEUES_SO_FAR, Table, columns, struct

TIMELINE = Table(
    "timeline", columns("cluster string, snapshot string, date date, takenAt timestamp, index int, shared boolean")
)
"""One snapshot with a time. `index` counts the cluster's moments from 1; `shared`: others have the same moment."""

SIGHTINGS = Table(
    "sightings",
    {
        **columns("cluster string, group string"),
        **QUEUE,
        **columns("index int, takenAt timestamp, date date, owners array<string>"),
    },
)
"""Who held a queue at a moment: `owners` sorted, without duplicates."""

QUEUE_OF_GROUP = ("cluster", "group", *QUEUE)
_PAST = {name: QUEUES_SO_FAR.columns[name] for name in ("observedAgain", "hasMoved", "held")}
"""Without `lost`, the one thing that grows with the nights: it is read where it is needed only."""


def timeline(documents: DataFrame) -> DataFrame:
    """DOCUMENTS → TIMELINE; a snapshot made of several documents is as old as the newest of them."""
    timed = _snapshots(in_few_parts(documents)).where(fn.col("takenAt").isNotNull())
    moment = Window.partitionBy("cluster", "takenAt")
    placed = timed.select(
        "cluster",
        "snapshot",
        fn.min("date").over(moment).alias("date"),
        "takenAt",
        fn.dense_rank().over(Window.partitionBy("cluster").orderBy("takenAt")).alias("index"),
        (fn.count("*").over(moment) > 1).alias("shared"),
    )
    return conform(placed, TIMELINE)


def untimed(documents: DataFrame) -> DataFrame:
    """The snapshots that the history leaves out, as they have no time: cluster, snapshot, documents."""
    return _snapshots(documents).where(fn.col("takenAt").isNull())


def sightings(timeline: DataFrame, owners: DataFrame) -> DataFrame:
    """TIMELINE and OWNERS → SIGHTINGS: one row for a queue and moment."""
    seen = place(owners.withColumnRenamed("ownersObserved", "owners").where("owners IS NOT NULL"), timeline)
    # Only where two snapshots share a moment is there anything to put together; all others need no shuffle for it.
    alone = seen.where(~fn.col("shared")).withColumn("owners", fn.array_sort(fn.array_distinct("owners")))
    everyone = fn.array_sort(fn.array_distinct(fn.flatten(fn.collect_list("owners"))))
    together = (
        seen.where(fn.col("shared")).groupBy(*QUEUE_OF_GROUP, "index", "takenAt", "date").agg(everyone.alias("owners"))
    )
    return conform(alone, SIGHTINGS).unionByName(conform(together, SIGHTINGS))


def with_past(seen: DataFrame, queues: DataFrame | None) -> DataFrame:
    """SIGHTINGS and QUEUES_SO_FAR → SIGHTINGS with `past`, which only sightings of before have; their index is 0."""
    new = seen.withColumn("past", fn.lit(None).cast(struct(_PAST)))
    if queues is None:
        return new
    before = queues.select("*", fn.lit(0).alias("index"), fn.struct(*_PAST).alias("past"))
    return before.select(*new.columns).unionByName(new)


def place(rows: DataFrame, timeline: DataFrame) -> DataFrame:
    """Rows of any table from snapshots with the date, time and index of their snapshot; those without a time go."""
    return rows.drop("date").join(fn.broadcast(timeline), ["cluster", "snapshot"])


def conform(rows: DataFrame, table: Table) -> DataFrame:
    """The table's columns in its order and types."""
    return rows.select(*(fn.col(name).cast(kind).alias(name) for name, kind in table.columns.items()))


def _snapshots(documents: DataFrame) -> DataFrame:
    return documents.groupBy("cluster", "snapshot").agg(
        fn.max("takenAt").alias("takenAt"), fn.max("date").alias("date"), fn.count("*").alias("documents")
    )
