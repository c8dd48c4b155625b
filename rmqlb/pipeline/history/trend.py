"""How evenly a group was observed to hold its queues, snapshot by snapshot.

Joins are merges: by the size of their files Spark would think millions of such rows small enough to be sent everywhere.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.history.snapshot_timeline import conform, place
from rmqlb.pipeline.schemas import GROUP_IN_SNAPSHOT, QUEUE, TREND


def trend(
    timeline: DataFrame, owners: DataFrame, groups: DataFrame, processes: DataFrame, offsets: DataFrame
) -> DataFrame:
    """TIMELINE, OWNERS, GROUPS, PROCESSES and OFFSETS → TREND: the balance of each observed group over time.

    A row for each group with a queue whose owners were observed, in each snapshot with a time. `lag` sums over those
    queues, and is null when that of one is not known.

    Queues per consumer, their imbalance and `idle` are those of `engine.assignment.balance.spread`: over the group's
    client ids, each of which counts once, with the queues that it holds; an owner that is not in the group does not
    count. When the processes were not observed, these and `processes` are null, but `maxQueuesPerConsumer`, which is
    then that of the observed owners.
    """
    in_time = timeline.select("cluster", "snapshot")
    seen = place(owners.where(fn.col("ownersObserved").isNotNull()), in_time).select(
        *GROUP_IN_SNAPSHOT, *QUEUE, fn.array_distinct("ownersObserved").alias("owners")
    )
    known = fn.col("processes").isNotNull()
    mean = fn.when(known, fn.try_divide("heldByListed", "ids"))
    most = fn.when(known, fn.col("mostOfListed")).otherwise(fn.col("mostOfOwners"))
    whole = (
        _totals(seen, offsets)
        .join(groups.select(*GROUP_IN_SNAPSHOT, "processes").hint("merge"), list(GROUP_IN_SNAPSHOT), "left")
        .join(_spread(seen, processes).hint("merge"), list(GROUP_IN_SNAPSHOT), "left")
        .select("*", mean.alias("meanQueuesPerConsumer"), most.alias("maxQueuesPerConsumer"))
        .withColumn("imbalance", fn.try_divide("maxQueuesPerConsumer", "meanQueuesPerConsumer"))
        .withColumn("idle", fn.when(known, fn.coalesce("idleIds", fn.lit(0))))
    )
    return conform(place(whole, timeline), TREND)


def _totals(seen: DataFrame, offsets: DataFrame) -> DataFrame:
    """Per group and snapshot: its queues, those without an owner, and the lag of all."""
    queues = seen.select(*GROUP_IN_SNAPSHOT, *QUEUE, (fn.size("owners") == 0).alias("isUnassigned"))
    lags = offsets.select(*GROUP_IN_SNAPSHOT, *QUEUE, "lag")
    every_lag_is_known = fn.count("lag") == fn.count("*")
    return (
        queues.join(lags.hint("merge"), [*GROUP_IN_SNAPSHOT, *QUEUE], "left")
        .groupBy(*GROUP_IN_SNAPSHOT)
        .agg(
            fn.count("*").alias("queues"),
            fn.count_if("isUnassigned").alias("unassigned"),
            fn.when(every_lag_is_known, fn.try_sum("lag")).alias("lag"),
        )
    )


def _spread(seen: DataFrame, processes: DataFrame) -> DataFrame:
    """Per group and snapshot: what its client ids hold, and what all hold who were seen to."""
    holds = seen.select(*GROUP_IN_SNAPSHOT, fn.explode("owners").alias("clientId"), fn.lit(1).alias("held"))
    listed = processes.select(*GROUP_IN_SNAPSHOT, "clientId", fn.lit(0).alias("held"))
    # One union, and so one shuffle, in place of an outer join of holdings and processes.
    by_id = (
        holds.withColumn("listed", fn.lit(0))
        .unionByName(listed.withColumn("listed", fn.lit(1)))
        .groupBy(*GROUP_IN_SNAPSHOT, "clientId")
        .agg(fn.sum("held").alias("held"), (fn.max("listed") == 1).alias("isListed"))
    )
    of_listed = fn.when(fn.col("isListed"), fn.col("held"))
    return by_id.groupBy(*GROUP_IN_SNAPSHOT).agg(
        fn.max("held").alias("mostOfOwners"),
        fn.max(of_listed).alias("mostOfListed"),
        fn.sum(of_listed).alias("heldByListed"),
        fn.count_if("isListed").alias("ids"),
        fn.count_if(of_listed == 0).alias("idleIds"),
    )
