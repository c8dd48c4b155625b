"""From when to when a client held a queue."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from rmqlb.pipeline.history.snapshot_timeline import QUEUE_OF_GROUP, conform, sightings
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
    seen = sightings(timeline, owners)
    moments = seen.select("cluster", "group", "index", "takenAt").distinct()
    next_moment = fn.lead("takenAt").over(Window.partitionBy("cluster", "group").orderBy("index"))
    observed = moments.select("cluster", "group", "index", next_moment.alias("observedAgain"))
    ended = _runs(seen).join(observed, ["cluster", "group", "index"])
    by = (
        fn.when(fn.col("nextOwners") > 0, "moved")
        .when(fn.col("nextOwners") == 0, "unassigned")
        .when(fn.col("observedAgain").isNotNull(), "unobserved")
    )
    until = fn.coalesce("nextSighting", "observedAgain")
    return conform(ended.select("*", until.alias("until"), by.alias("endedBy")), SESSIONS)


def _runs(seen: DataFrame) -> DataFrame:
    """Runs of a queue's sightings that show the same owner, with the queue's sighting after each run.

    `index` is that of the run's last moment.
    """
    edges = _edges(seen)
    one_owner = Window.partitionBy(*QUEUE_OF_GROUP, "owner").orderBy("sighting")
    here = fn.struct("index", "sighting", "takenAt", "nextSighting", "nextOwners")
    # A run's last sighting is where it begins, or else its owner's next edge.
    last = fn.when(fn.col("ends"), here).otherwise(fn.lead(here).over(one_owner))
    return (
        edges.select(*QUEUE_OF_GROUP, "owner", "begins", "sighting", "takenAt", last.alias("last"))
        .where("begins")
        .select(
            *QUEUE_OF_GROUP,
            "owner",
            fn.col("takenAt").alias("since"),
            fn.col("last.takenAt").alias("lastSeen"),
            (fn.col("last.sighting") - fn.col("sighting") + 1).alias("snapshots"),
            "last.index",
            "last.nextSighting",
            "last.nextOwners",
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
        fn.explode("owners").alias("owner"),
        "before",
        "after",
    )
    return held.select(
        "*",
        (before.isNull() | ~fn.array_contains(before, fn.col("owner"))).alias("begins"),
        (after.isNull() | ~fn.array_contains(after, fn.col("owner"))).alias("ends"),
    ).where("begins or ends")
