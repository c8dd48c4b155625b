"""Stage 6: what many snapshots tell together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.history.churn import churn_of, observed_processes
from rmqlb.pipeline.history.moves import broadcasting, changes, days_of, moves, rated, returns, summed
from rmqlb.pipeline.history.sessions import observed_again, sessions_of
from rmqlb.pipeline.history.snapshot_timeline import QUEUE_OF_GROUP, conform, sightings, timeline, with_past
from rmqlb.pipeline.history.trend import trend
from rmqlb.pipeline.schemas import (
    CHURN,
    DOCUMENTS,
    GROUPS,
    GROUPS_SO_FAR,
    MOVES,
    OFFSETS,
    OWNERS,
    PROCESSES,
    QUEUES_SO_FAR,
    SESSIONS,
)

READS = (DOCUMENTS, OWNERS, GROUPS, PROCESSES, OFFSETS)
"""The tables that `history` is made from."""
SO_FAR = (QUEUES_SO_FAR, GROUPS_SO_FAR, MOVES, CHURN)
"""What it goes on from; of the last two the rows of the days of the new snapshots."""


@contextmanager
def history(
    tables: Mapping[str, DataFrame], so_far: Mapping[str, DataFrame] | None = None
) -> Iterator[dict[str, DataFrame]]:
    """The tables of the history by name, to be written inside the block in this order.

    `so_far`: the tables of `SO_FAR` as they are, when the snapshots are all later than those they were made from. Then
    come those rows only that are new or take the place of others: of SESSIONS all that are open and those that have
    ended now, of MOVES and CHURN the days of the new snapshots, of TREND these; all of the others.

    Several are made from the timeline, sessions and changes: Spark keeps these until the block ends.
    """
    before = so_far or {}
    order = timeline(tables[DOCUMENTS.name]).persist(StorageLevel.MEMORY_AND_DISK)
    owners, groups, processes = (tables[table.name] for table in (OWNERS, GROUPS, PROCESSES))
    queues, known = before.get(QUEUES_SO_FAR.name), before.get(GROUPS_SO_FAR.name)
    seen = with_past(sightings(order, owners), queues)
    held = sessions_of(seen).persist(StorageLevel.DISK_ONLY)
    changed = changes(seen).persist(StorageLevel.DISK_ONLY)
    try:
        left_out = broadcasting(groups)
        if known is not None:
            left_out = left_out.union(known.where("isBroadcasting").select("cluster", "group")).distinct()
        by_day = days_of(changed, left_out)
        members = observed_processes(order, groups, processes, known)
        queues_now = _queues(queues, changed, held, observed_again(changed))
        groups_now = _groups(known, by_day, returns(held, queues), left_out, members)
        yield {
            "sessions": conform(held, SESSIONS),
            "moves": moves(by_day, before.get(MOVES.name)),
            "flapping": rated(groups_now.where(fn.col("firstDate").isNotNull() & ~fn.col("isBroadcasting"))),
            "churn": churn_of(members, before.get(CHURN.name)),
            "trend": trend(order, owners, groups, processes, tables[OFFSETS.name]),
            QUEUES_SO_FAR.name: queues_now,
            GROUPS_SO_FAR.name: groups_now,
        }
    finally:
        order.unpersist()
        held.unpersist()
        changed.unpersist()


def _queues(before: DataFrame | None, changes: DataFrame, sessions: DataFrame, observed: DataFrame) -> DataFrame:
    """QUEUES_SO_FAR of before, what `changes` and `sessions_of` make, when groups are observed → QUEUES_SO_FAR."""
    none = fn.array().cast("array<string>")
    last = changes.groupBy(*QUEUE_OF_GROUP).agg(
        fn.max(fn.struct("index", "takenAt", "date", "owners")).alias("last"),
        fn.max("past").alias("past"),
        fn.max("moved").alias("movedNow"),
    )
    session = fn.struct("owner", "since", fn.col("snapshots").cast("int").alias("snapshots"))
    of_queue = sessions.groupBy(*QUEUE_OF_GROUP).agg(
        fn.sort_array(fn.collect_list(fn.when(fn.col("isOpen"), session))).alias("held"),
        fn.collect_set(fn.when(~fn.col("isOpen"), fn.col("owner"))).alias("lostNow"),
    )
    whole = last.select(*QUEUE_OF_GROUP, "past", "movedNow", "last.*")
    whole = whole.join(of_queue, list(QUEUE_OF_GROUP), "left").join(observed, ["cluster", "group", "index"])
    if before is None:
        whole = whole.withColumn("lost", none)
    else:
        whole = whole.join(before.select(*QUEUE_OF_GROUP, "lost"), list(QUEUE_OF_GROUP), "left")
    lost = fn.array_union(fn.coalesce("lost", none), fn.coalesce("lostNow", none))
    of_past = fn.when(fn.col("index") == 0, fn.col("past.observedAgain"))
    return conform(
        whole.withColumns(
            {
                "observedAgain": fn.coalesce(of_past, "observedAgain"),
                "hasMoved": fn.coalesce("past.hasMoved", fn.lit(False)) | fn.col("movedNow"),  # noqa: FBT003
                "held": fn.coalesce("held", fn.array().cast(QUEUES_SO_FAR.columns["held"])),
                "lost": fn.array_sort(lost),
            }
        ),
        QUEUES_SO_FAR,
    )


def _groups(
    before: DataFrame | None, days: DataFrame, returned: DataFrame, left_out: DataFrame, members: DataFrame
) -> DataFrame:
    """GROUPS_SO_FAR of before, and what is new of it → GROUPS_SO_FAR."""
    last = members.groupBy("cluster", "group").agg(
        fn.max_by(fn.struct("takenAt", "date", "processes"), "index").alias("its")
    )
    parts = [
        summed(days),
        returned,
        left_out.withColumn("isBroadcasting", fn.lit(True)),  # noqa: FBT003 - a literal
        last.select("cluster", "group", "its.*"),
    ]
    if before is not None:
        parts.append(before)
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionByName(part, allowMissingColumns=True)
    counts = ("moved", "queues", "restless", "returns", "moments")
    whole = rows.groupBy("cluster", "group").agg(
        fn.min("firstDate").alias("firstDate"),
        fn.max("lastDate").alias("lastDate"),
        *(fn.coalesce(fn.sum(name), fn.lit(0)).alias(name) for name in counts),
        fn.max("most").alias("most"),
        fn.coalesce(fn.max("isBroadcasting"), fn.lit(False)).alias("isBroadcasting"),  # noqa: FBT003 - a literal
        fn.max(fn.when(fn.col("takenAt").isNotNull(), fn.struct("takenAt", "date", "processes"))).alias("its"),
    )
    return conform(whole.select("*", "its.*"), GROUPS_SO_FAR)
