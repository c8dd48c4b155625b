"""How often queues move, and which groups are restless.

A *step* leads from one moment at which a group was observed to the next such moment, however long that takes. A queue
counts in a step when it was sighted at both ends. Groups that were ever seen BROADCASTING share no queues, and are left
out.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from rmqlb.model.group import BROADCASTING
from rmqlb.pipeline.history.snapshot_timeline import QUEUE_OF_GROUP, conform, sightings, with_past
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
    return days_of(changes(with_past(sightings(timeline, owners), None)), broadcasting(groups))


def days_of(changes: DataFrame, broadcasting: DataFrame) -> DataFrame:
    """What `changes` makes, and the groups to leave out → DAYS, of the new moments."""
    by_step = (
        changes.where(fn.col("index") > 0)
        .groupBy("cluster", "group", "step", "date")
        .agg(fn.count("*").alias("queues"), *(fn.sum(fn.col(name).cast("int")).alias(name) for name in _SUMMED))
    )
    by_day = by_step.groupBy("cluster", "group", "date").agg(
        fn.max("queues").alias("queues"),
        fn.count_if(fn.col("step") > 1).alias("snapshots"),
        fn.count_if(fn.col("moved") > 0).alias("restless"),
        *(fn.sum(name).alias(name) for name in _SUMMED),
    )
    return conform(by_day.join(broadcasting, ["cluster", "group"], "left_anti"), DAYS)


def broadcasting(groups: DataFrame) -> DataFrame:
    """GROUPS → cluster and group of those that were seen BROADCASTING."""
    return groups.where(fn.col("messageModel") == BROADCASTING).select("cluster", "group").distinct()


def moves(days: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """DAYS → MOVES: the days on which a step ends; `snapshots` is the number of steps.

    `before`: MOVES of the same days as far as they were known.
    """
    new = conform(days.where(fn.col("snapshots") > 0), MOVES)
    if before is None:
        return new
    day = ("cluster", "date", "group")
    sums = (fn.sum(name).alias(name) for name in MOVES.columns if name not in day)
    return conform(before.unionByName(new).groupBy(*day).agg(*sums), MOVES)


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
    returned = returns(sessions.select("*", fn.lit(True).alias("isNew")), None)  # noqa: FBT003 - a literal
    known = summed(days).join(returned, ["cluster", "group"], "left").fillna(0, ["returns", "moments"])
    return rated(known, least=least, days_a_return=days_a_return, moved_share=moved_share)


def summed(days: DataFrame) -> DataFrame:
    """DAYS → a row for each group, in the words of GROUPS_SO_FAR."""
    return days.groupBy("cluster", "group").agg(
        fn.min("date").alias("firstDate"),
        fn.max("date").alias("lastDate"),
        fn.sum("moved").alias("moved"),
        fn.sum("newlyMoved").alias("queues"),
        fn.sum("restless").alias("restless"),
        fn.max("queues").alias("most"),
    )


def rated(groups: DataFrame, *, least: int = 2, days_a_return: float = 14.0, moved_share: float = 0.5) -> DataFrame:
    """GROUPS_SO_FAR of groups that were observed → FLAPPING."""
    nights = fn.greatest(fn.datediff("lastDate", "firstDate"), fn.lit(1))
    rates = groups.withColumn("days", nights).withColumn("movedPerDay", fn.col("moved") / fn.col("days"))
    back_and_forth = (fn.col("moments") >= least) & (fn.col("moments") * days_a_return >= fn.col("days"))
    never_still = (fn.col("restless") >= least) & (fn.col("movedPerDay") >= fn.col("most") * moved_share)
    return conform(rates.withColumn("flaps", back_and_forth | never_still), FLAPPING)


def returns(sessions: DataFrame, queues: DataFrame | None) -> DataFrame:
    """SESSIONS with `isNew`, and QUEUES_SO_FAR → per group: how often queues went back to an owner, at which moments.

    Counted are sessions that are new, of a client that had one of the same queue before.
    """
    one_owner = Window.partitionBy(*QUEUE_OF_GROUP, "owner").orderBy("since")
    counted = sessions.withColumn("nth", fn.row_number().over(one_owner)).where("isNew")
    had = fn.col("nth") > 1
    if queues is not None:
        counted = counted.join(queues.select(*QUEUE_OF_GROUP, "lost"), list(QUEUE_OF_GROUP), "left")
        had |= fn.coalesce(fn.array_contains("lost", fn.col("owner")), fn.lit(False))  # noqa: FBT003 - a literal
    by_moment = (
        counted.where(had)
        .select("cluster", "group", *QUEUE, "since")
        .distinct()
        .groupBy("cluster", "group", "since")
        .agg(fn.count("*").alias("returns"))
    )
    return by_moment.groupBy("cluster", "group").agg(fn.sum("returns").alias("returns"), fn.count("*").alias("moments"))


def changes(seen: DataFrame) -> DataFrame:
    """SIGHTINGS with their past → the same, with what the group's step that ends there has done to the queue."""
    # Ranked before the queues are put in order: partitioned by group, the rows need no second shuffle for that.
    group = Window.partitionBy("cluster", "group").orderBy("index")
    queue = Window.partitionBy(*QUEUE_OF_GROUP).orderBy("index")
    before, after = fn.col("before"), fn.col("owners")
    had, has = fn.size(before) > 0, fn.size(after) > 0
    # A queue that was not sighted when its group was observed last is at no end of the step that begins there.
    step = fn.when(fn.col("past.observedAgain").isNull(), fn.dense_rank().over(group))
    compared = seen.withColumn("step", step).select(
        "*",
        fn.lag("owners").over(queue).alias("before"),
        fn.lag("step").over(queue).eqNullSafe(fn.col("step") - 1).alias("observed"),
        fn.coalesce(fn.max("past.hasMoved").over(queue), fn.lit(False)).alias("hadMoved"),  # noqa: FBT003 - a literal
    )
    counted = compared.select(
        "*",
        (fn.col("observed") & had & has & (before != after)).alias("moved"),
        (fn.col("observed") & had & ~has).alias("newlyUnassigned"),
        (fn.col("observed") & ~had & has).alias("newlyAssigned"),
    )
    so_far = fn.count_if("moved").over(queue.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return counted.withColumn("newlyMoved", fn.col("moved") & (so_far == 1) & ~fn.col("hadMoved"))
