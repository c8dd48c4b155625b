"""How evenly a group was seen to hold its queues, snapshot by snapshot.

Rules of this file:
- Joins are merges: by the size of their files, in which such rows take next to nothing, Spark would think millions of
  them small enough to be sent everywhere.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.history.snapshot_timeline import conform, place
from rmqlb.pipeline.schemas import GROUP_IN_SNAPSHOT, QUEUE, TREND


def trend(
    timeline: DataFrame, owners: DataFrame, groups: DataFrame, members: DataFrame, offsets: DataFrame
) -> DataFrame:
    """TIMELINE, OWNERS, GROUPS, MEMBERS and OFFSETS → TREND: the balance of each observed group over time.

    A row for each group with a queue whose owners were looked for, in each snapshot with a time. `members` counts
    processes; `lag` sums over those queues, and is null when that of one is not known.

    `most`, `mean` and `idle` are those of `engine.assignment.balance.spread`: over the group's client ids, each of
    which counts once, with the queues that it holds; an owner that is no member does not count. When the members
    were not observed, `members`, `mean`, `skew` and `idle` are null, and `most` is over the owners seen. `skew` is
    most / mean, null when no member holds a queue.
    """
    in_time = timeline.select("cluster", "snapshot")
    seen = place(owners.where(fn.col("owners").isNotNull()), in_time).select(
        *GROUP_IN_SNAPSHOT, *QUEUE, fn.array_distinct("owners").alias("owners")
    )
    known = fn.col("members").isNotNull()
    mean = fn.when(known, fn.try_divide("heldByMembers", "ids"))
    most = fn.when(known, fn.col("mostOfMembers")).otherwise(fn.col("mostOfOwners"))
    whole = (
        _totals(seen, offsets)
        .join(groups.select(*GROUP_IN_SNAPSHOT, "members").hint("merge"), list(GROUP_IN_SNAPSHOT), "left")
        .join(_spread(seen, members).hint("merge"), list(GROUP_IN_SNAPSHOT), "left")
        .select("*", mean.alias("mean"), most.alias("most"))
        .withColumn("skew", fn.try_divide("most", "mean"))
        .withColumn("idle", fn.when(known, fn.coalesce("idleIds", fn.lit(0))))
    )
    return conform(place(whole, timeline), TREND)


def _totals(seen: DataFrame, offsets: DataFrame) -> DataFrame:
    """Per group and snapshot: its queues, those without an owner, and the lag of all."""
    queues = seen.select(*GROUP_IN_SNAPSHOT, *QUEUE, (fn.size("owners") == 0).alias("isUnowned"))
    lags = offsets.select(*GROUP_IN_SNAPSHOT, *QUEUE, "lag")
    every_lag_is_known = fn.count("lag") == fn.count("*")
    return (
        queues.join(lags.hint("merge"), [*GROUP_IN_SNAPSHOT, *QUEUE], "left")
        .groupBy(*GROUP_IN_SNAPSHOT)
        .agg(
            fn.count("*").alias("queues"),
            fn.count_if("isUnowned").alias("unowned"),
            fn.when(every_lag_is_known, fn.try_sum("lag")).alias("lag"),
        )
    )


def _spread(seen: DataFrame, members: DataFrame) -> DataFrame:
    """Per group and snapshot: what its client ids hold, and what all hold who were seen to."""
    holds = seen.select(*GROUP_IN_SNAPSHOT, fn.explode("owners").alias("clientId"), fn.lit(1).alias("held"))
    listed = members.select(*GROUP_IN_SNAPSHOT, "clientId", fn.lit(0).alias("held"))
    # One union, and so one shuffle, in place of an outer join of holdings and members.
    by_id = (
        holds.withColumn("listed", fn.lit(0))
        .unionByName(listed.withColumn("listed", fn.lit(1)))
        .groupBy(*GROUP_IN_SNAPSHOT, "clientId")
        .agg(fn.sum("held").alias("held"), (fn.max("listed") == 1).alias("isMember"))
    )
    of_member = fn.when(fn.col("isMember"), fn.col("held"))
    return by_id.groupBy(*GROUP_IN_SNAPSHOT).agg(
        fn.max("held").alias("mostOfOwners"),
        fn.max(of_member).alias("mostOfMembers"),
        fn.sum(of_member).alias("heldByMembers"),
        fn.count_if("isMember").alias("ids"),
        fn.count_if(of_member == 0).alias("idleIds"),
    )
