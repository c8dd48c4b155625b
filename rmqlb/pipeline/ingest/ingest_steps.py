"""The steps of ingest between what was read and what is written: DataFrame → DataFrame."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as fn

from rmqlb.pipeline.ingest.arrow_udf import FILES, HEAD, READ_DOCUMENT
from rmqlb.pipeline.schemas import KEY, QUARANTINE, ddl
from rmqlb.sources.dump.read_document import LARGEST_FILE

HEADS = {"doc": "string", **KEY, **HEAD}
_QUARANTINE_KEY = ("file", "position", "hash")


def heads_of(read: DataFrame) -> DataFrame:
    """`READ` → `HEADS`."""
    return read.filter("head IS NOT NULL").select("doc", *KEY, "head.*")


def fresh_documents(heads: DataFrame, documents: DataFrame) -> DataFrame:
    """`HEADS` and documents → `HEADS` of those that were read, are not in the warehouse, and of two alike the first."""
    alike = Window.partitionBy("hash", "snapshot").orderBy("file", "position", "doc")
    first = heads.filter(fn.col("outcome") == READ_DOCUMENT).withColumn("nth", fn.row_number().over(alike))
    known = documents.select("hash", "snapshot")
    return first.filter("nth = 1").drop("nth").join(known, ["hash", "snapshot"], "left_anti").select(*HEADS)


def semi(frame: DataFrame, kept: DataFrame, column: str) -> DataFrame:
    """The rows whose value is among those kept, which are few enough for every process to have."""
    return frame.join(fn.broadcast(kept.select(column).distinct()), column, "left_semi").select(*frame.columns)


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
    there = quarantine.select(*(fn.col(name).alias(f"{name}_there") for name in _QUARANTINE_KEY))
    same = fn.lit(True)  # noqa: FBT003 - a column, not a flag
    for name in _QUARANTINE_KEY:
        same = same & fn.col(name).eqNullSafe(fn.col(f"{name}_there"))
    return found.dropDuplicates(list(_QUARANTINE_KEY)).join(there, same, "left_anti").select(*QUARANTINE.columns)


def url_files(spark: SparkSession, urls: tuple[str, ...]) -> DataFrame:
    """`FILES` at URLs, as Spark reads them: the content is read only where it is asked for.

    A file that cannot be read is not there, instead of failing all others; `unread_files` finds it.
    """
    if not urls:
        return spark.createDataFrame([], ddl(FILES))
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    reader = reader.option("ignoreCorruptFiles", "true").option("ignoreMissingFiles", "true")
    return reader.load(list(urls)).select(*FILES)
