"""Tables to hand on: Parquet for all, CSV (RFC 4180, no cell steers a spreadsheet) for those that a spreadsheet opens.

Spark sorts and writes; the driver reads a batch at a time. Equal rows give equal bytes.
"""

from __future__ import annotations

import csv
import datetime as dt
import os
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.contents import Exported
from rmqlb.pipeline.report.frames import Tables, count_if, sums
from rmqlb.pipeline.schemas import EXPORTED, KEY, WHAT_IF, WHAT_IF_SUMMARY, Table
from rmqlb.views.formats.text import safe_cell, visible

SPREADSHEET_ROWS = 1_048_575
"""Rows below a header that the common spreadsheets open."""

_IN_PARQUET_ONLY = (WHAT_IF,)


def export(tables: Tables, folder: str, most_rows: int = SPREADSHEET_ROWS) -> tuple[Exported, ...]:
    """Write `parquet/<table>/` and `csv/<table>.csv`; with more than `most_rows` Parquet only, and not sorted."""
    os.makedirs(os.path.join(folder, "csv"))
    there = {*tables.warehouse.names()}
    there |= {WHAT_IF_SUMMARY.name} if WHAT_IF.name in there else set()
    return tuple(_export(tables, table, folder, most_rows) for table in EXPORTED if table.name in there)


def summarise_what_if(what_if: DataFrame) -> DataFrame:
    """Rows of WHAT_IF → rows of WHAT_IF_SUMMARY."""
    summed = [name for name, kind in WHAT_IF_SUMMARY.columns.items() if kind == "bigint" and name in WHAT_IF.columns]
    return (
        what_if.groupBy(*KEY, "change", "subject", "strategy", "strategyAfter")
        .agg(
            fn.count("*").alias("groups"),
            *sums(*summed),
            fn.max("maxQueuesPerConsumerAfter").alias("maxQueuesPerConsumerAfter"),
            count_if(fn.col("lagMoved").isNull()).alias("lagUnknown"),
        )
        .select(*WHAT_IF_SUMMARY.columns)
    )


def _export(tables: Tables, table: Table, folder: str, most_rows: int) -> Exported:
    summary = table is WHAT_IF_SUMMARY
    whole = tables.warehouse.read(tables.spark, WHAT_IF if summary else table)
    stored = tables.warehouse.stored(table.name)
    rows = None if stored is None else stored.rows
    path = os.path.join(folder, "parquet", table.name)
    frame, is_sorted = summarise_what_if(whole) if summary else whole, rows is None or rows <= most_rows
    if tables.warehouse.needs_spark:
        _write_here(frame, path, is_sorted=is_sorted)
    else:
        _write_parquet(frame, path, is_sorted=is_sorted)
    rows = _rows(path) if rows is None else rows
    in_csv = table not in _IN_PARQUET_ONLY and rows <= most_rows
    if in_csv:
        _write_csv(table, path, os.path.join(folder, "csv", f"{table.name}.csv"))
    return Exported(table.name, rows, in_csv)


def _write_parquet(frame: DataFrame, path: str, *, is_sorted: bool) -> None:
    if is_sorted:
        frame = frame.repartition(1).sortWithinPartitions(*frame.columns)
    frame.write.parquet(f"file://{path}")
    parts = sorted(name for name in os.listdir(path) if name.endswith(".parquet"))
    for name in set(os.listdir(path)) - set(parts):
        os.unlink(os.path.join(path, name))
    for number, name in enumerate(parts):
        os.rename(os.path.join(path, name), os.path.join(path, f"part-{number:05d}.parquet"))


def _write_here(frame: DataFrame, path: str, *, is_sorted: bool) -> None:
    """By the driver: where the warehouse is elsewhere, Spark's machines do not have this one's folders."""
    import pyarrow.parquet as pq

    os.makedirs(path)
    rows = frame.sort(*frame.columns) if is_sorted else frame
    pq.write_table(rows.toArrow(), os.path.join(path, "part-00000.parquet"))


def _write_csv(table: Table, parquet: str, path: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(table.columns)
        for batch in _batches(parquet, list(table.columns)):
            writer.writerows(zip(*([_cell(value) for value in column] for column in batch), strict=True))


def _batches(parquet: str, columns: list[str]) -> Iterator[list[list[Any]]]:
    """The rows a batch at a time, column by column."""
    import pyarrow.parquet as pq

    for name in sorted(os.listdir(parquet)):
        with pq.ParquetFile(os.path.join(parquet, name)) as file:
            for batch in file.iter_batches(columns=columns):
                yield [_values(batch.column(column)) for column in columns]


def _values(column: Any) -> list[Any]:
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):  # else nanoseconds come as a pandas value
        column = column.cast(pa.timestamp("us", column.type.tz))
    values: list[Any] = column.to_pylist()
    return values


def _rows(parquet: str) -> int:
    import pyarrow.parquet as pq

    return sum(int(pq.read_metadata(os.path.join(parquet, name)).num_rows) for name in os.listdir(parquet))


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, str):
        return safe_cell(visible(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):  # Spark stores moments in UTC
        return value.replace(tzinfo=None).isoformat() + "Z"
    return value
