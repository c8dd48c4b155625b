"""Which of the files that were found are new: the table `files` knows the others by name, size and time.

So a night costs no look into the files of the nights before, only their names. A file that says the same under another
name or time is read, and its documents are known by their content.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as fn

from rmqlb.errors import DataError
from rmqlb.pipeline.arrow import arrow_schema
from rmqlb.pipeline.ingest.arrow_udf import INPUTS
from rmqlb.pipeline.ingest.ingest_steps import in_few_parts
from rmqlb.pipeline.ingest.input_files import Found, nothing_at
from rmqlb.pipeline.schemas import FILES, columns, ddl
from rmqlb.pipeline.warehouse import Warehouse
from rmqlb.sources.dump import LARGEST_FILE
from rmqlb.version import __version__

LISTED = columns("path string, length bigint, modified timestamp, url string")
"""A file that was found; `url` as Spark knows it, null for one of this machine."""
_KEY = tuple(LISTED)


@dataclass(frozen=True)
class NewFiles:
    """The files to read, as rows of `LISTED`, and what is known of the others.

    `listed` files were found; of these `documents`, of which so many are `quarantined`, are in files that were read
    before. `changed`: some of the new ones have a name that was read before.
    """

    files: tuple[Any, ...]
    listed: int
    documents: int = 0
    quarantined: int = 0
    changed: bool = False

    @property
    def local(self) -> list[Any]:
        """Those of this machine."""
        return [row for row in self.files if row["url"] is None]

    @property
    def urls(self) -> list[str]:
        """Those that Spark reads."""
        return [row["url"] for row in self.files if row["url"] is not None]


def find_new(
    spark: SparkSession, warehouse: Warehouse, found: Found, cluster: str | None, *, again: bool = False
) -> NewFiles:
    """Hold what was found against what was read; with `again` all of it is new.

    Raises:
        DataError: a URL cannot be read, or has no file.
    """
    listed = _listed(spark, found)
    if warehouse.stored(FILES.name) is None:
        rows = listed.select("*", fn.lit(False).alias("cameBefore")).collect()  # noqa: FBT003 - a literal
        return NewFiles(tuple(rows), len(rows))
    stored = warehouse.read(spark, FILES)
    told = Observation()
    fates = _fates(listed, stored, cluster, fn.lit(not again)).observe(
        told,
        fn.count(fn.lit(1)).alias("listed"),
        fn.sum("documents").alias("documents"),
        fn.sum("quarantined").alias("quarantined"),
    )
    new = fates.filter("documents IS NULL").collect()
    counts = told.get
    return NewFiles(
        tuple(new),
        counts["listed"] or 0,
        counts["documents"] or 0,
        counts["quarantined"] or 0,
        any(row["cameBefore"] for row in new),
    )


def inputs(spark: SparkSession, new: NewFiles, urls: Iterable[str], slices: int) -> DataFrame:
    """`INPUTS` of the new files; those of this machine in so many slices of about one size, largest first."""
    local = sorted(new.local, key=lambda row: (row["length"], row["path"]), reverse=True)
    dealt = [row for slice_ in range(slices) for row in local[slice_::slices]]
    columns_ = [[row[name] for row in dealt] for name in ("path", "length", "modified")]
    schema = arrow_schema(INPUTS)
    arrays = [pa.array(values, field.type) for values, field in zip(columns_, schema, strict=False)]
    table = pa.Table.from_arrays([*arrays, pa.nulls(len(dealt), pa.binary())], schema=schema)
    frame = spark.createDataFrame(table, ddl(INPUTS))  # of no rows Spark Connect asks for the types
    if not new.urls:
        return frame
    at_urls = url_files(spark, tuple(urls))
    if len(new.urls) < new.listed:
        at_urls = at_urls.filter(fn.col("_metadata.file_path").isin(new.urls))
    at_urls = at_urls.filter(fn.col("length") <= LARGEST_FILE).select(*INPUTS)
    return frame.unionByName(at_urls) if local else at_urls


def url_files(spark: SparkSession, urls: tuple[str, ...]) -> DataFrame:
    """`INPUTS` at URLs, as Spark reads them, with `_metadata`: the content is read only where it is asked for.

    A file that cannot be read is not there, instead of failing all others; `unread_files` finds it.
    """
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    reader = reader.option("ignoreCorruptFiles", "true").option("ignoreMissingFiles", "true")
    return reader.load(list(urls)).withColumnRenamed("modificationTime", "modified")


def _listed(spark: SparkSession, found: Found) -> DataFrame:
    """`LISTED`, of all files."""
    schema = arrow_schema(LISTED)
    arrays = [pa.array(found.files, pa.string()), pa.array(found.sizes, pa.int64())]
    times = pa.array(found.modified, pa.int64()).cast(schema.field("modified").type)
    nothing = pa.nulls(len(found.files), pa.string())
    listed = spark.createDataFrame(pa.Table.from_arrays([*arrays, times, nothing], schema=schema), ddl(LISTED))
    if not found.urls:
        return listed
    for url in found.urls:
        try:
            files = url_files(spark, (url,)).inputFiles()
        except Exception as error:  # noqa: BLE001 - what a file system of Spark's throws has no common type
            raise DataError(f"{url}: {_first_line(error)}", hint="is it a URL that this Spark can read?") from None
        if not files:
            raise nothing_at(url)
    at_urls = url_files(spark, found.urls).select(
        "path", "length", "modified", fn.col("_metadata.file_path").alias("url")
    )
    return listed.unionByName(at_urls) if found.files else at_urls


def _fates(listed: DataFrame, stored: DataFrame, cluster: str | None, trusted: Column) -> DataFrame:
    """`LISTED` and FILES → `LISTED` with `documents` and `quarantined`, null for those that are to be read.

    `cameBefore`: the name did.
    """
    before = stored.select(*(fn.col(name).alias(f"its_{name}") for name in FILES.columns))
    same = fn.col("its_length") == fn.col("length")
    same &= fn.col("its_modified") == fn.col("modified")
    same &= fn.col("its_cluster").eqNullSafe(fn.lit(cluster))
    same &= (fn.col("its_quarantined") == 0) | (fn.col("its_version") == __version__)
    same &= trusted
    joined = in_few_parts(listed).join(in_few_parts(before).hint("merge"), fn.col("path") == fn.col("its_file"), "left")
    return joined.groupBy(*_KEY).agg(
        *(fn.max(fn.when(same, fn.col(f"its_{name}"))).alias(name) for name in ("documents", "quarantined")),
        (fn.count("its_file") > 0).alias("cameBefore"),
    )


def _first_line(error: Exception) -> str:
    """What Java says, without where it was called from."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])
