"""How often queues move, and which groups are restless.

A *step* leads from one moment at which a group was observed to the next such moment, however long that takes. A queue
counts in a step when it was sighted at both ends. Groups that were ever seen BROADCASTING share no queues, and are left
out.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from rmqlb.model.group import BROADCASTING
from rmqlb.pipeline.history.snapshot_timeline import QUEUE_OF_GROUP, conform, sightings
from rmqlb.pipeline.schemas import FLAPPING, MOVES, QUEUE, Table, columns

DAYS = Table(
    "days",
    columns(
        "cluster string, date date, group string, moved int, newlyUnassigned int, newlyAssigned int, observed int, "
        "snapshots int, restless int, newlyMoved int, queues int"
    ),
)
"""A group's day, as MOVES; also a day with its first observation alone (`snapshots` 0). `restless` counts the steps in
which a queue moved, `newlyMoved` the queues that moved for the first time, `queues` the most sighted at one moment."""

_SUMMED = ("moved", "newlyUnassigned", "newlyAssigned", "observed", "newlyMoved")


def days(timeline: DataFrame, owners: DataFrame, groups: DataFrame) -> DataFrame:
    """TIMELINE, OWNERS and GROUPS → DAYS; a step belongs to the date of its later moment.

    In a step a queue *moved* when it has owners before and after, and others: another set of client ids. It was
    *unassigned* when it had owners and has none, *assigned* when it had none and has some.
    """
    by_step = (
        _changes(sightings(timeline, owners))
        .groupBy("cluster", "group", "step", "date")
        .agg(fn.count("*").alias("queues"), *(fn.sum(fn.col(name).cast("int")).alias(name) for name in _SUMMED))
    )
    by_day = by_step.groupBy("cluster", "group", "date").agg(
        fn.max("queues").alias("queues"),
        fn.count_if(fn.col("step") > 1).alias("snapshots"),
        fn.count_if(fn.col("moved") > 0).alias("restless"),
        *(fn.sum(name).alias(name) for name in _SUMMED),
    )
    broadcasting = groups.where(fn.col("messageModel") == BROADCASTING).select("cluster", "group").distinct()
    return conform(by_day.join(broadcasting, ["cluster", "group"], "left_anti"), DAYS)


def moves(days: DataFrame) -> DataFrame:
    """DAYS → MOVES: the days on which a step ends; `snapshots` is the number of steps."""
    return conform(days.where(fn.col("snapshots") > 0), MOVES)


def flapping(
    days: DataFrame, sessions: DataFrame, *, least: int = 2, days_a_return: float = 14.0, moved_share: float = 0.5
) -> DataFrame:
    """DAYS and SESSIONS → FLAPPING: each group, and whether it is restless.

    `days` are the nights from the group's first observation to its last, at least 1. A queue *returns* when it goes to
    a client that held it before and had lost it, also when it was unassigned in between; a queue that returns to two
    clients at one moment returns once. A group flaps when

    - queues go back and forth: they returned at `least` moments or more, and on average once in `days_a_return` days;
    - or they hardly ever stay: queues moved in `least` steps or more, and at least `moved_share` of the most queues
      that were sighted at one moment per day (`movedPerDay`).

    So one deployment, or one client that was away for a night, is no flapping, however many queues it moved.
    """
    nights = fn.datediff(fn.max("date"), fn.min("date"))
    in_all = days.groupBy("cluster", "group").agg(
        fn.sum("moved").alias("moved"),
        fn.sum("newlyMoved").alias("queues"),
        fn.sum("restless").alias("restless"),
        fn.max("queues").alias("most"),
        fn.greatest(nights, fn.lit(1)).alias("days"),
    )
    known = in_all.join(_returns(sessions), ["cluster", "group"], "left").fillna(0, ["returns", "moments"])
    back_and_forth = (fn.col("moments") >= least) & (fn.col("moments") * days_a_return >= fn.col("days"))
    never_still = (fn.col("restless") >= least) & (fn.col("movedPerDay") >= fn.col("most") * moved_share)
    rated = known.withColumn("movedPerDay", fn.col("moved") / fn.col("days"))
    return conform(rated.withColumn("flaps", back_and_forth | never_still), FLAPPING)


def _changes(seen: DataFrame) -> DataFrame:
    """Each sighting, with what the group's step that ends there has done to the queue."""
    # Ranked before the queues are put in order: partitioned by group, the rows need no second shuffle for that.
    group = Window.partitionBy("cluster", "group").orderBy("index")
    queue = Window.partitionBy(*QUEUE_OF_GROUP).orderBy("index")
    before, after = fn.col("before"), fn.col("owners")
    had, has = fn.size(before) > 0, fn.size(after) > 0
    compared = seen.withColumn("step", fn.dense_rank().over(group)).select(
        "*",
        fn.lag("owners").over(queue).alias("before"),
        fn.lag("step").over(queue).eqNullSafe(fn.col("step") - 1).alias("observed"),
    )
    counted = compared.select(
        "*",
        (fn.col("observed") & had & has & (before != after)).alias("moved"),
        (fn.col("observed") & had & ~has).alias("newlyUnassigned"),
        (fn.col("observed") & ~had & has).alias("newlyAssigned"),
    )
    so_far = fn.count_if("moved").over(queue.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return counted.withColumn("newlyMoved", fn.col("moved") & (so_far == 1))


def _returns(sessions: DataFrame) -> DataFrame:
    """Per group: how often a queue went back to an owner, and at how many moments any did."""
    one_owner = Window.partitionBy(*QUEUE_OF_GROUP, "owner").orderBy("since")
    again = sessions.withColumn("nth", fn.row_number().over(one_owner)).where(fn.col("nth") > 1)
    by_moment = (
        again.select("cluster", "group", *QUEUE, "since")
        .distinct()
        .groupBy("cluster", "group", "since")
        .agg(fn.count("*").alias("returns"))
    )
    return by_moment.groupBy("cluster", "group").agg(fn.sum("returns").alias("returns"), fn.count("*").alias("moments"))
