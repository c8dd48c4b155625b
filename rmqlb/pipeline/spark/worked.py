"""Rows that Python processes make of a frame's rows: as a frame of Spark's, or as Parquet files that they write.

A row that goes back to Spark is taken apart into cells, and put together again by the Parquet writer in Java: that is
nine tenths of what a table like ASSIGNMENTS costs. Where the processes reach the warehouse's folder themselves, they
write the batches as they are; where only Spark reaches it, the frame is written by Spark.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from rmqlb.pipeline.schemas import Table, columns, ddl
from rmqlb.pipeline.spark.in_workers import Batches, in_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rmqlb.pipeline.spark.progress import Count

WRITTEN = columns("folder string, file string, rows bigint")
"""A file: its folder below that of the table, which says what of each partition column its rows have; its name."""
_ROWS_AT_ONCE = 1 << 17
"""Of all files of a task together; they are in memory until there are so many."""
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = frozenset({*map(chr, range(1, 32)), *"\"#%'*/:=?\\\x7f{[]^"})
"""What Spark does not let stand in the name of a partition's folder."""


@dataclass(frozen=True)
class Worked:
    """What a step makes of a frame: rows of a table, in batches that have its columns; `count` counts the frame's."""

    of: DataFrame
    step: Callable[[Batches], Batches]
    table: Table
    count: Count | None = None

    def frame(self) -> DataFrame:
        """As Spark's rows."""
        return in_workers(self.of, self.step, self.table.ddl, self.count)

    def write(self, folder: str) -> Written:
        """As files in a folder that all machines reach; there may be others in it, of tasks that failed."""
        work = partial(_write, self.step, self.table, folder)
        rows = in_workers(self.of, work, ddl(WRITTEN), self.count).collect()
        return Written(folder, tuple((row["folder"], row["file"], row["rows"]) for row in rows))


@dataclass(frozen=True)
class Written:
    """Files of tasks that ended well: of each its folder below `folder`, its name, and its number of rows."""

    folder: str
    files: tuple[tuple[str, str, int], ...]

    @property
    def rows(self) -> int:
        """Of all files."""
        return sum(rows for _, _, rows in self.files)

    def below(self, folder: str) -> Written:
        """Those in a folder below this one."""
        inside = ((os.path.relpath(its, folder), file, rows) for its, file, rows in self.files if _within(its, folder))
        return Written(os.path.join(self.folder, folder), tuple(inside))

    def move(self, folder: str) -> int:
        """Put them into another folder of the same disk, which is made if need be, and come back with their rows."""
        os.makedirs(folder, exist_ok=True)
        for below, file, _ in self.files:
            os.makedirs(os.path.join(folder, below), exist_ok=True)
            os.rename(os.path.join(self.folder, below, file), os.path.join(folder, below, file))
        return self.rows


def _within(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")


def partition_folder(values: dict[str, Any]) -> str:
    """The folder of rows that have these values of the partition columns, as Spark names it.

    >>> partition_folder({"cluster": "a/b", "date": None})
    'cluster=a%2Fb/date=__HIVE_DEFAULT_PARTITION__'
    """
    return "/".join(f"{name}={_escaped(value)}" for name, value in values.items())


def _escaped(value: Any) -> str:
    if value is None or value == "":
        return _NO_VALUE
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)


def _write(step: Callable[[Batches], Batches], table: Table, folder: str, batches: Batches) -> Batches:
    """`mapInArrow`: write what comes of the batches, and say which files."""
    files: defaultdict[str, _File] = defaultdict(lambda: _File(folder))
    waiting = 0
    for batch in step(batches):
        for below, rows in _by_partition(batch, table.partitions):
            files[below].add(below, rows)
        waiting += batch.num_rows
        if waiting >= _ROWS_AT_ONCE:
            waiting = 0
            for file in files.values():
                file.flush()
    done = [(below, file.name, file.end()) for below, file in files.items()]
    schema = pa.schema([("folder", pa.string()), ("file", pa.string()), ("rows", pa.int64())])
    rows = [dict(zip(schema.names, values, strict=True)) for values in done]
    yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _by_partition(batch: pa.RecordBatch, partitions: Sequence[str]) -> list[tuple[str, pa.RecordBatch]]:
    """The rows of each partition, without its columns."""
    rest = batch.drop_columns(list(partitions))
    keys = pa.Table.from_batches([batch.select(list(partitions))])
    found = []
    different: Any = keys.group_by(list(partitions)).aggregate([]).to_pylist()
    for values in different:
        rows = rest if len(different) == 1 else rest.filter(_having(batch, values))
        found.append((partition_folder(values), rows))
    return found


def _having(batch: pa.RecordBatch, values: dict[str, Any]) -> Any:
    from pyarrow import compute

    marked: Any = None
    for name, value in values.items():
        column = batch.column(name)
        same = compute.is_null(column) if value is None else compute.equal(column, pa.scalar(value, column.type))
        same = compute.fill_null(same, fill_value=False)
        marked = same if marked is None else compute.and_(marked, same)
    return marked


class _File:
    """One file of a task, begun with its first rows."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._waiting: list[pa.RecordBatch] = []
        self._writer: Any = None
        self._rows = 0
        self.name = f"part-{uuid4().hex}.parquet"

    def add(self, below: str, rows: pa.RecordBatch) -> None:
        """Take the rows, which are to stand below the folder; `flush` writes them."""
        if self._writer is None:
            from pyarrow import parquet

            os.makedirs(os.path.join(self._folder, below), exist_ok=True)
            self._writer = parquet.ParquetWriter(os.path.join(self._folder, below, self.name), rows.schema)
        self._waiting.append(rows)
        self._rows += rows.num_rows

    def end(self) -> int:
        """Write what waits, and come back with the number of all rows."""
        self.flush()
        self._writer.close()
        return self._rows

    def flush(self) -> None:
        """Write what waits, as one row group."""
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting))
        self._waiting = []
