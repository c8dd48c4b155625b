"""Members that come and go."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from rmqlb.pipeline.history.snapshot_timeline import conform, place
from rmqlb.pipeline.schemas import CHURN

_MOMENT = ("cluster", "group", "index")
_OBSERVED = (*_MOMENT, "takenAt", "date", "processes")


def churn(timeline: DataFrame, groups: DataFrame, processes: DataFrame) -> DataFrame:
    """TIMELINE, GROUPS and PROCESSES → CHURN: who joined and who left each group, summed over the moments of a day.

    Compared are moments that follow each other among those at which the group's processes were observed
    (`groups.processes` is not null). Processes that share a client id count each: three where there were two is one
    that joined. What was before the first observation is not known: alone on its day, it has null for `joined` and
    `left`. `processes` is how many the day's last moment shows.
    """
    return churn_of(observed_processes(timeline, groups, processes, None))


def observed_processes(
    timeline: DataFrame, groups: DataFrame, processes: DataFrame, before: DataFrame | None
) -> DataFrame:
    """TIMELINE, GROUPS, PROCESSES and GROUPS_SO_FAR → each group's processes at each moment that has them.

    Those that were observed last before have the index 0.
    """
    looked = place(groups.where(fn.col("processes").isNotNull()), timeline).select(*_OBSERVED[:-1]).distinct()
    observed = looked.join(_processes(timeline, processes), list(_MOMENT), "left")
    new = observed.select(
        *_OBSERVED[:-1], fn.coalesce("processes", fn.array().cast("array<string>")).alias("processes")
    )
    if before is None:
        return new
    last = before.where(fn.col("processes").isNotNull()).withColumn("index", fn.lit(0))
    return last.select(*_OBSERVED).unionByName(new)


def churn_of(observed: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """What `observed_processes` makes → CHURN of the new moments; `known`: CHURN of the same days, as far as it was."""
    by_time = Window.partitionBy("cluster", "group").orderBy("index")
    now, before = fn.col("processes"), fn.col("before")
    compared = observed.withColumn("before", fn.lag(now).over(by_time)).where(fn.col("index") > 0)
    by_day = compared.groupBy("cluster", "group", "date").agg(
        fn.max_by(fn.array_size(now), "index").alias("processes"),
        fn.sum(fn.array_size(fn.array_except(now, before))).alias("joined"),
        fn.sum(fn.array_size(fn.array_except(before, now))).alias("left"),
    )
    new = conform(by_day, CHURN)
    if known is None:
        return new
    both = known.withColumn("isNew", fn.lit(0)).unionByName(new.withColumn("isNew", fn.lit(1)))
    day = both.groupBy("cluster", "group", "date").agg(
        fn.max_by("processes", "isNew").alias("processes"),
        fn.sum("joined").alias("joined"),
        fn.sum("left").alias("left"),
    )
    return conform(day, CHURN)


def _processes(timeline: DataFrame, processes: DataFrame) -> DataFrame:
    """A group's processes at a moment, each by a name of its own: "2 10.0.0.1@7" is the second that has the id.

    As plain text, for Spark compares lists of structs pair by pair. The set over the snapshots of one moment has each
    id as often as the snapshot that shows it most often.
    """
    same_id = Window.partitionBy("cluster", "snapshot", "group", "clientId").orderBy("place")
    name = fn.concat_ws(" ", fn.row_number().over(same_id).cast("string"), "clientId")
    named = place(processes, timeline).withColumn("process", name)
    return named.groupBy(*_MOMENT).agg(fn.collect_set("process").alias("processes"))
