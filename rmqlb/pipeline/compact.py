"""Upkeep of a warehouse: fewer files, and no snapshots older than asked.

What is removed is remembered in FORGOTTEN by its content, or the next ingest of the same folder would bring it back.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from rmqlb.pipeline import schemas
from rmqlb.pipeline.ingest.arrow_udf import PIECES
from rmqlb.pipeline.ingest.document_ids import last_day
from rmqlb.pipeline.schemas import DOCUMENTS, FORGOTTEN
from rmqlb.pipeline.spark.progress import StageProgress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rmqlb.pipeline.warehouse import Warehouse

_ALL = {table.name: table for table in (*schemas.ALL, schemas.FLEET, *schemas.SO_FAR, PIECES, FORGOTTEN)}
_OF_SNAPSHOTS = (*schemas.INGESTED, PIECES)


def compact_tables(
    spark: SparkSession, warehouse: Warehouse, keep_days: int | None, progress: StageProgress | None = None
) -> tuple[dict[str, int], int]:
    """Rows of each table afterwards, and how many snapshots were removed.

    `keep_days` counts from each cluster's newest snapshot that is not in the future, which is always kept; so are
    snapshots without a date.

    Raises:
        DataError: the warehouse cannot be written, or what a table says of itself is not so.
        UsageError: another process is writing to it.
    """
    with warehouse.held():
        removed = 0 if keep_days is None else _remove_old(spark, warehouse, keep_days)
        there = [_ALL[name] for name in warehouse.names() if name in _ALL]
        with warehouse.writing() as writing:
            for table in (progress or StageProgress()).each("tables", there):
                writing.compact(spark, table)
        warehouse.forget()
    return warehouse.rows(*there), removed


def older_than(documents: DataFrame, keep_days: int, today: date) -> DataFrame:
    """The documents whose date is so many days before the newest one of their cluster, up to this day."""
    newest = fn.max(fn.when(fn.col("date") <= fn.lit(today), fn.col("date"))).alias("newest")
    by_cluster = documents.groupBy("cluster").agg(newest)
    is_old = fn.col("date") < fn.date_sub("newest", keep_days)
    return documents.join(by_cluster, "cluster").filter(is_old).select(*documents.columns)


def _remove_old(spark: SparkSession, warehouse: Warehouse, keep_days: int) -> int:
    documents = warehouse.read_or_empty(spark, DOCUMENTS)
    old = older_than(documents, keep_days, last_day())
    snapshots = [row[0] for row in old.select("snapshot").distinct().collect()]
    if not snapshots:
        return 0
    with warehouse.writing() as writing:
        writing.add(FORGOTTEN, old.select(*FORGOTTEN.columns))
        for table in _OF_SNAPSHOTS:
            if warehouse.stored(table.name) is not None:
                writing.add(table, spark.createDataFrame([], table.ddl), snapshots)
    return len(snapshots)
