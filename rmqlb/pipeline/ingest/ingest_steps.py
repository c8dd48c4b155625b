"""The steps of ingest between what was read and what is written: DataFrame → DataFrame.

What is compared here, names and hashes, is small beside what is read: in few parts (`in_few_parts`) it is put in order
without a shuffle, and so without a job of its own.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from rmqlb.pipeline.ingest.arrow_udf import HEAD, READ_DOCUMENT
from rmqlb.pipeline.schemas import CLUSTERS, KEY, QUARANTINE
from rmqlb.sources.dump import LARGEST_FILE

HEADS = {"doc": "string", **KEY, **HEAD}
_QUARANTINE_KEY = ("file", "position", "hash")
_ROWS_A_PART = 200_000


def in_few_parts(frame: DataFrame, rows: int = 0) -> DataFrame:
    """The same rows, of which there are about so many, in one part, or a few."""
    return frame.coalesce(1 + rows // _ROWS_A_PART)


def heads_of(read: DataFrame) -> DataFrame:
    """`READ` → `HEADS`."""
    return read.filter("head IS NOT NULL").select("doc", *KEY, "head.*")


def read_heads(read: DataFrame) -> DataFrame:
    """`READ` → `HEADS` of the documents that could be read."""
    return heads_of(read).filter(fn.col("outcome") == READ_DOCUMENT)


def fresh_documents(heads: DataFrame, known: DataFrame | None, rows: int = 0) -> DataFrame:
    """`HEADS`, hashes and snapshots that are known → `HEADS` of those read that are not, and of two alike the first.

    `known`: those of the same dates at least; None when there are none. `rows`: about how many heads there are.
    """
    alike = Window.partitionBy("hash", "snapshot").orderBy("file", "position", "doc")
    read = in_few_parts(heads.filter(fn.col("outcome") == READ_DOCUMENT), rows)
    first = read.withColumn("nth", fn.row_number().over(alike)).filter("nth = 1").select(*HEADS)
    if known is None:
        return first
    marked = in_few_parts(known, rows).groupBy("hash", "snapshot").agg(fn.lit(1).alias("known")).hint("merge")
    # Not as an anti join, which Spark would push below the parts.
    return first.join(marked, ["hash", "snapshot"], "left").filter("known IS NULL").select(*HEADS)


def replaced_documents(fresh: DataFrame, documents: DataFrame) -> DataFrame:
    """Fresh `HEADS`, and documents of the same dates → cluster, and snapshots (`before`) in whose place another is.

    The place is a file and a position in it, the other snapshot one of the same cluster and time.
    """
    place = ("cluster", "file", "position", "kind")
    its = (fn.col(name).alias(other) for name, other in (("snapshot", "before"), ("takenAt", "then"), ("date", "on")))
    both = in_few_parts(fresh).join(in_few_parts(documents.select(*place, *its)).hint("merge"), list(place))
    same_time = fn.col("date").eqNullSafe(fn.col("on")) & fn.col("takenAt").eqNullSafe(fn.col("then"))
    return both.filter(same_time).select("cluster", "before").distinct()


def rivals(snapshots: DataFrame, documents: DataFrame | None, rows: int = 0) -> DataFrame:
    """Fresh `HEADS`, and documents of the same dates → cluster, time (`at`), and two files (`file`, `other`).

    Each of the two files has another snapshot of that cluster and time. `rows`: about how many heads there are.
    """
    moment = ["cluster", "takenAt"]
    at_once = Window.partitionBy(*moment)
    place = fn.struct("file", "position", "snapshot")
    few = in_few_parts(snapshots.filter("kind = 'snapshot' AND takenAt IS NOT NULL"), rows)
    marked = few.withColumn("first", fn.min(place).over(at_once)).withColumn("last", fn.max(place).over(at_once))
    other = fn.when(fn.col("first.snapshot") != fn.col("last.snapshot"), fn.col("last.file"))
    if documents is not None:
        there = documents.filter("kind = 'snapshot'").select(*moment, fn.col("file").alias("itsFile"))
        both = few.select(*moment, "file").join(in_few_parts(there, rows).hint("merge"), moment)
        before = both.filter("file <> itsFile").groupBy(*moment).agg(fn.min("itsFile").alias("before"))
        marked = marked.join(before.hint("merge"), moment, "left")
        other = fn.coalesce(other, fn.col("before"))
    at = fn.date_format("takenAt", "yyyy-MM-dd'T'HH:mm:ss'Z'").alias("at")  # collected, it would be in local time
    found = marked.select("cluster", at, fn.col("first.file").alias("file"), other.alias("other"))
    return found.filter("other IS NOT NULL")


def semi(frame: DataFrame, kept: DataFrame, *columns: str) -> DataFrame:
    """The rows whose values are among those kept."""
    return frame.join(kept.select(*columns).distinct(), list(columns), "left_semi").select(*frame.columns)


def unread_files(listed: DataFrame, heads: DataFrame) -> DataFrame:
    """Path and length of files that Spark listed, and `HEADS` → quarantine: those of which Spark gave no content."""
    read = heads.select(fn.col("file").alias("path")).distinct()
    too_large = fn.concat("path", fn.lit(f": larger than {LARGEST_FILE >> 20} MB"))
    return listed.join(read, "path", "left_anti").select(
        fn.col("path").alias("file"),
        fn.lit(1).alias("position"),
        fn.lit(None).cast("string").alias("hash"),
        fn.col("length").alias("bytes"),
        fn.when(fn.col("length") > LARGEST_FILE, too_large)
        .otherwise(fn.concat(fn.lit("Spark cannot read "), "path"))
        .alias("reason"),
    )


def lost_pieces(fresh: DataFrame, made: DataFrame) -> DataFrame:
    """Fresh `HEADS`, and what came of putting pieces together → quarantine: new pieces of snapshots that failed."""
    failed = made.filter("made.reason IS NOT NULL").select("snapshot", fn.col("made.reason").alias("why"))
    pieces = fresh.filter("kind = 'pieces'").drop("reason")
    return pieces.join(failed, "snapshot").withColumnRenamed("why", "reason").select(*QUARANTINE.columns)


def not_yet_quarantined(found: DataFrame, quarantine: DataFrame) -> DataFrame:
    """Quarantine twice: what was found now, and what is there → what is to be added."""
    there = quarantine.select(
        *(fn.col(name).alias(f"{name}_there") for name in _QUARANTINE_KEY), fn.lit(1).alias("known")
    )
    same = fn.lit(True)  # noqa: FBT003 - a column, not a flag
    for name in _QUARANTINE_KEY:
        same = same & fn.col(name).eqNullSafe(fn.col(f"{name}_there"))
    once = in_few_parts(found).dropDuplicates(list(_QUARANTINE_KEY))
    compared = once.join(in_few_parts(there).hint("merge"), same, "left")
    return compared.filter("known IS NULL").select(*QUARANTINE.columns)


def clusters_with_more(clusters: DataFrame, heads: DataFrame, rows: int = 0) -> DataFrame:
    """CLUSTERS, and `HEADS` of snapshots that are new → CLUSTERS."""
    newest = in_few_parts(clusters.select("cluster", fn.col("newest").alias("newestBefore")), rows).hint("merge")
    new = _snapshots(in_few_parts(heads, rows)).join(newest, "cluster", "left")
    is_late = fn.col("takenAt") <= fn.col("newestBefore")
    each = new.select(
        "cluster",
        _last(),
        fn.col("takenAt").alias("newest"),
        fn.col("date").alias("firstDate"),
        *_is_timed(),
        fn.coalesce(is_late.cast("int"), fn.lit(0)).alias("late"),
    )
    of_new = each.groupBy("cluster").agg(*_sums(), fn.max("late").alias("late"))
    before = clusters.select("cluster", _last(), "newest", "firstDate", "snapshots", "untimed", "late")
    both = in_few_parts(before.unionByName(of_new), rows)
    return _as_clusters(both.groupBy("cluster").agg(*_sums(), fn.sum("late").alias("late")))


def clusters_anew(clusters: DataFrame, documents: DataFrame, changed: Collection[str]) -> DataFrame:
    """CLUSTERS of before and documents of some clusters → CLUSTERS of these; in the `changed` one was replaced."""
    first = fn.col("date").alias("firstDate")
    each = _snapshots(documents).select("cluster", _last(), fn.col("takenAt").alias("newest"), first, *_is_timed())
    late = clusters.select("cluster", "late")
    is_changed = fn.col("cluster").isin(list(changed)).cast("int")
    counted = each.groupBy("cluster").agg(*_sums()).join(late, "cluster", "left")
    return _as_clusters(counted.withColumn("late", fn.coalesce("late", fn.lit(0)) + is_changed))


def _snapshots(documents: DataFrame) -> DataFrame:
    """Documents → a row for each snapshot, whose revision tells of which documents it is made."""
    hashes = fn.array_join(fn.array_sort(fn.collect_set("hash")), ",")
    return documents.groupBy("cluster", "snapshot").agg(
        fn.max("date").alias("date"),
        fn.max("takenAt").alias("takenAt"),
        fn.substring(fn.sha2(hashes, 256), 1, 16).alias("revision"),
    )


def _last() -> Column:
    return fn.struct("date", "takenAt", "snapshot", "revision").alias("last")


def _is_timed() -> tuple[Column, Column]:
    timed = fn.col("takenAt").isNotNull()
    return timed.cast("int").alias("snapshots"), (~timed).cast("int").alias("untimed")


def _sums() -> tuple[Column, ...]:
    """The last is by date, then by time taken, what is unknown first; ties by snapshot id."""
    counts = (fn.sum(name).cast("int").alias(name) for name in ("snapshots", "untimed"))
    first = fn.min("firstDate").alias("firstDate")
    return fn.max("last").alias("last"), fn.max("newest").alias("newest"), first, *counts


def _as_clusters(rows: DataFrame) -> DataFrame:
    return rows.select("*", "last.*").select(
        *(fn.col(name).cast(kind).alias(name) for name, kind in CLUSTERS.columns.items())
    )
