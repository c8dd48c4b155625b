"""Tables to hand on: Parquet for all, CSV (RFC 4180, no cell steers a spreadsheet) for those that a spreadsheet opens.

Spark sorts the rows and makes files of them; the driver alone writes, so that a report lies on its machine wherever
Spark runs. All tables that a spreadsheet opens are one job. Equal rows give equal bytes.
"""

from __future__ import annotations

import csv
import datetime as dt
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.arrow import arrow_schema
from rmqlb.pipeline.report.contents import Cluster, Exported
from rmqlb.pipeline.report.frames import Tables, count_if, one_job, sums
from rmqlb.pipeline.report.overview_rows import overview
from rmqlb.pipeline.report.parquet_bytes import COLUMNS, parquet_bytes
from rmqlb.pipeline.report.subject_pop import pop_groups
from rmqlb.pipeline.schemas import (
    CLUSTER_SUMMARY,
    EXPORTED,
    KEY,
    OVERVIEW,
    POP_GROUPS,
    WHAT_IF,
    WHAT_IF_SUMMARY,
    Table,
    ddl,
)
from rmqlb.pipeline.spark.in_workers import in_workers
from rmqlb.views.formats.text import safe_cell, visible

SPREADSHEET_ROWS = 1_048_575
"""Rows below a header that the common spreadsheets open."""

_IN_PARQUET_ONLY = (WHAT_IF,)


def export(
    tables: Tables, clusters: Sequence[Cluster], folder: str, most_rows: int = SPREADSHEET_ROWS
) -> tuple[Exported, ...]:
    """Write `parquet/<table>/` and `csv/<table>.csv`; with more than `most_rows` Parquet only, and not sorted."""
    frames = [(table, frame) for table in EXPORTED if (frame := _frame(tables, table, clusters)) is not None]
    stored = tables.warehouse.rows(*(table for table, _ in frames))
    os.makedirs(os.path.join(folder, "csv"))
    for table, _ in frames:
        os.makedirs(_parquet(folder, table))
    small = [_sorted(table, frame) for table, frame in frames if stored.get(table.name, 0) <= most_rows]
    if small:
        with one_job(tables.spark):
            _write_parts(folder, reduce(DataFrame.unionAll, small).collect())
    for table, frame in frames:
        if stored.get(table.name, 0) > most_rows:
            _write_parts(folder, _packed(table, frame).toLocalIterator())
    return tuple(_exported(folder, table, most_rows) for table, _ in frames)


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


def _frame(tables: Tables, table: Table, clusters: Sequence[Cluster]) -> DataFrame | None:
    """The rows of a table; None when there are none to export."""
    if table is OVERVIEW:
        return overview(tables)
    if table is POP_GROUPS:
        return tables.made(POP_GROUPS.name, lambda: pop_groups(tables))
    if table is CLUSTER_SUMMARY:
        rows = [tuple(getattr(one, name) for name in one.__struct_fields__) for one in clusters]
        return tables.spark.createDataFrame(rows, CLUSTER_SUMMARY.ddl) if rows else None
    if table is WHAT_IF_SUMMARY:
        what_if = tables.whole(WHAT_IF)
        return None if what_if is None else summarise_what_if(what_if)
    return tables.whole(table)


def _sorted(table: Table, frame: DataFrame) -> DataFrame:
    return _packed(table, frame.select(*table.columns).coalesce(1).sortWithinPartitions(*table.columns))


def _packed(table: Table, frame: DataFrame) -> DataFrame:
    """The rows of each partition as a file, in pieces."""
    step = partial(parquet_bytes, name=table.name, columns=dict(table.columns))
    return in_workers(frame.select(*table.columns), step, ddl(COLUMNS))


def _write_parts(folder: str, pieces: Iterable[Any]) -> None:
    """Pieces of files, in order, as files; where a file begins, the one before has ended."""
    numbers: dict[str, int] = {}
    for name, is_first, piece in pieces:
        number = numbers[name] = numbers.get(name, -1) + bool(is_first)
        with open(os.path.join(folder, "parquet", name, f"part-{number:05d}.parquet"), "ab") as file:
            file.write(piece)


def _exported(folder: str, table: Table, most_rows: int) -> Exported:
    parquet = _parquet(folder, table)
    if not os.listdir(parquet):  # Spark asks no worker about a table that it knows to be empty
        empty = arrow_schema(table.columns).empty_table()
        pq.write_table(empty, os.path.join(parquet, "part-00000.parquet"))
    rows = _rows(parquet)
    in_csv = table not in _IN_PARQUET_ONLY and rows <= most_rows
    if in_csv:
        _write_csv(table, parquet, os.path.join(folder, "csv", f"{table.name}.csv"))
    return Exported(table.name, rows, in_csv)


def _parquet(folder: str, table: Table) -> str:
    return os.path.join(folder, "parquet", table.name)


def _write_csv(table: Table, parquet: str, path: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(table.columns)
        for batch in _batches(parquet, list(table.columns)):
            writer.writerows(zip(*([_cell(value) for value in column] for column in batch), strict=True))


def _batches(parquet: str, columns: list[str]) -> Iterator[list[list[Any]]]:
    """The rows a batch at a time, column by column."""
    for name in sorted(os.listdir(parquet)):
        with pq.ParquetFile(os.path.join(parquet, name)) as file:
            for batch in file.iter_batches(columns=columns):
                yield [_values(batch.column(column)) for column in columns]


def _values(column: Any) -> list[Any]:
    if pa.types.is_timestamp(column.type):  # else nanoseconds come as a pandas value
        column = column.cast(pa.timestamp("us", column.type.tz))
    values: list[Any] = column.to_pylist()
    return values


def _rows(parquet: str) -> int:
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
