"""From when to when a client held a queue."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from rmqlb.pipeline.history.snapshot_timeline import QUEUE_OF_GROUP, conform, sightings, with_past
from rmqlb.pipeline.schemas import SESSIONS


def sessions(timeline: DataFrame, owners: DataFrame) -> DataFrame:
    """TIMELINE and OWNERS → SESSIONS; `snapshots` counts the moments that show the client.

    A session of a client and a queue is a run of the queue's sightings, all of which show the client as an owner; a
    queue with several owners has a session for each. Moments at which the queue was not sighted are passed over. It
    ends at the first moment after its last sighting (`until`) that

    - sights the queue without the client: `endedBy` is moved when others hold it, otherwise unassigned;
    - or, when the queue is never sighted again, observes the group on other queues: `endedBy` is unobserved.

    Without one it lasts, as far as is known: `until` and `endedBy` are null; `lastSeen` says how old that knowledge is.
    """
    return conform(sessions_of(with_past(sightings(timeline, owners), None)), SESSIONS)


def sessions_of(seen: DataFrame) -> DataFrame:
    """SIGHTINGS with their past → SESSIONS that were open before, or begin; and which of them do (`isNew`)."""
    ended = _runs(seen).join(observed_again(seen), ["cluster", "group", "index"])
    observed = fn.coalesce("observedBefore", "observedAgain")
    by = (
        fn.when(fn.col("nextOwners") > 0, "moved")
        .when(fn.col("nextOwners") == 0, "unassigned")
        .when(observed.isNotNull(), "unobserved")
    )
    until = fn.coalesce("nextSighting", observed)
    return ended.select("*", until.alias("until"), by.alias("endedBy"), fn.col("nextOwners").isNull().alias("isOpen"))


def observed_again(seen: DataFrame) -> DataFrame:
    """A group's moments: cluster, group, index, and the next moment at which it is observed (`observedAgain`)."""
    # Queues that were sighted last at different moments of before have the index 0 in common, but no time.
    at = fn.when(fn.col("index") > 0, fn.col("takenAt")).alias("takenAt")
    moments = seen.select("cluster", "group", "index", at).distinct()
    next_moment = fn.lead("takenAt").over(Window.partitionBy("cluster", "group").orderBy("index"))
    return moments.select("cluster", "group", "index", next_moment.alias("observedAgain"))


def _runs(seen: DataFrame) -> DataFrame:
    """Runs of a queue's sightings that show the same owner, with the queue's sighting after each run.

    `index` is that of the run's last moment.
    """
    edges = _edges(seen)
    one_owner = Window.partitionBy(*QUEUE_OF_GROUP, "owner").orderBy("sighting")
    here = fn.struct("index", "sighting", "takenAt", "nextSighting", "nextOwners", "observedBefore")
    # A run's last sighting is where it begins, or else its owner's next edge.
    last = fn.when(fn.col("ends"), here).otherwise(fn.lead(here).over(one_owner))
    before = fn.get(fn.filter("held", lambda its: its["owner"] == fn.col("owner")), fn.lit(0))
    snapshots = fn.coalesce(before["snapshots"] - 1, fn.lit(0)) + fn.col("last.sighting") - fn.col("sighting") + 1
    return (
        edges.select("*", last.alias("last"))
        .where("begins")
        .select(
            *QUEUE_OF_GROUP,
            "owner",
            (fn.col("index") > 0).alias("isNew"),
            fn.coalesce(before["since"], "takenAt").alias("since"),
            fn.col("last.takenAt").alias("lastSeen"),
            snapshots.alias("snapshots"),
            "last.index",
            "last.nextSighting",
            "last.nextOwners",
            "last.observedBefore",
        )
    )


def _edges(seen: DataFrame) -> DataFrame:
    """The sightings of a queue and owner at which a run begins or ends: few, where little changes."""
    queue = Window.partitionBy(*QUEUE_OF_GROUP).orderBy("index")
    owners, before, after = fn.col("owners"), fn.col("before"), fn.col("after")
    numbered = seen.select(
        "*",
        fn.row_number().over(queue).alias("sighting"),
        fn.lag("owners").over(queue).alias("before"),
        fn.lead("owners").over(queue).alias("after"),
        fn.lead("takenAt").over(queue).alias("nextSighting"),
    )
    changed = numbered.where(~(owners.eqNullSafe(before) & owners.eqNullSafe(after)))
    held = changed.select(
        *QUEUE_OF_GROUP,
        "index",
        "sighting",
        "takenAt",
        "nextSighting",
        fn.array_size(after).alias("nextOwners"),
        fn.col("past.observedAgain").alias("observedBefore"),
        fn.col("past.held").alias("held"),
        fn.explode("owners").alias("owner"),
        "before",
        "after",
    )
    return held.select(
        "*",
        (before.isNull() | ~fn.array_contains(before, fn.col("owner"))).alias("begins"),
        (after.isNull() | ~fn.array_contains(after, fn.col("owner"))).alias("ends"),
    ).where("begins or ends")
