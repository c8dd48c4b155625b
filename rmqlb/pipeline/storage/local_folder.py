"""A warehouse in a folder of this machine, or of one that is mounted on it: Parquet, and `tables.json`.

What is read is what `tables.json` names. Rows are written aside, in a folder of their own, and one rename of
`tables.json` makes them visible, all tables of a stage together; the next writer removes folders that it does not name.
One writer at a time: the lock is the kernel's, so that it ends with its process. Spark gets paths with the scheme
`file`, or they would be those of a cluster's own file system.
"""

from __future__ import annotations

import dataclasses
import fcntl
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from rmqlb.decoding import decode
from rmqlb.errors import DataError, UsageError
from rmqlb.pipeline.schemas import Table, ddl
from rmqlb.pipeline.storage.contents import FORMAT, VERSION, Contents, Stored
from rmqlb.sources.atomic_file import replace_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CONTENTS, _LOCK, _RUN = "tables.json", ".lock", "run"
_MIGRATED = 2
"""The format of before, in which a run's number was that of its folder only."""
_ROWS_A_FILE = 4_000_000


class LocalFolder:
    """Tables in a folder; all of Spark's machines see it under the same name."""

    needs_spark = False

    def __init__(self, folder: str) -> None:
        self.place = os.path.abspath(folder)

    def use(self, spark: SparkSession) -> None:
        """Each frame has its own session, which is enough."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """By the kernel's lock of a file."""
        try:
            os.makedirs(self.place, exist_ok=True)
            lock = os.open(os.path.join(self.place, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._unwritable(error) from None
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(
                    f"another process is writing to {self.place}",
                    hint="wait for it, or use another --warehouse",
                    code="warehouse-busy",
                ) from None
            yield
        finally:
            os.close(lock)

    def contents(self) -> Contents:
        """What `tables.json` says."""
        path = os.path.join(self.place, _CONTENTS)
        try:
            with open(path, "rb") as file:
                contents = decode(file.read(), Contents)
        except FileNotFoundError:
            return Contents()
        except (OSError, msgspec.DecodeError) as error:
            raise DataError(f"{path}: {error}", hint="is this a warehouse of rmqlb?") from None
        if contents.schema != FORMAT or contents.format_version not in {VERSION, _MIGRATED}:
            raise DataError(
                f"{path}: {contents.schema} {contents.format_version} is not what this program reads "
                f"({FORMAT} {VERSION})",
                hint="ingest the snapshots into another one: rmqlb pipeline run -w NEW PATH…",
            )
        return contents if contents.format_version == VERSION else _migrated(contents)

    def read(self, spark: SparkSession, table: Table, stored: Stored) -> DataFrame:
        """The rows of the folders that are named, less those left out."""
        from pyspark.sql import functions as fn

        root = os.path.join(self.place, table.name)
        lost = [folder for folder in stored.folders if not os.path.isdir(os.path.join(root, folder))]
        if lost:
            raise DataError(f"{os.path.join(root, lost[0])} is gone, but table {table.name} needs it")
        reader = spark.read.schema(ddl({**stored.columns, _RUN: "int"})).option("basePath", _url(root))
        frame = reader.parquet(*(_url(os.path.join(root, folder)) for folder in stored.folders))
        for folder, snapshots in stored.left_out.items():
            gone = (fn.col(_RUN) == int(folder.partition("=")[2])) & fn.col("snapshot").isin(list(snapshots))
            frame = frame.filter(~gone)
        return frame.select(*stored.columns)

    def replace(self, table: Table, frame: DataFrame, run: int) -> Stored:
        """In a folder of the run."""
        folder = _folder(run)
        rows = self._write(table, frame, folder)
        return Stored((folder,), rows, dict(table.columns), run=run)

    def add(
        self, table: Table, frame: DataFrame, run: int, before: Stored | None, instead_of: Collection[str]
    ) -> tuple[Stored, int]:
        """In a folder of the run; of the folders of before, the rows of these snapshots are named as left out."""
        more = self.replace(table, frame, run)
        if before is None:
            return more, more.rows
        gone = 0
        if instead_of:
            there = self.read(frame.sparkSession, table, before)
            gone = there.filter(there["snapshot"].isin(list(instead_of))).count()
        if not more.rows and not gone:
            return before, 0
        left_out = dict(before.left_out)
        if gone:
            for folder in before.folders:
                left_out[folder] = tuple(sorted({*left_out.get(folder, ()), *instead_of}))
        folders, rows = (*before.folders, *more.folders), before.rows - gone + more.rows
        return msgspec.structs.replace(more, folders=folders, rows=rows, left_out=left_out), more.rows

    def compact(self, spark: SparkSession, table: Table, run: int, before: Stored) -> Stored:
        """One folder, and in it one file for each of the table's folders of clusters and dates."""
        if len(before.folders) <= 1 and not before.left_out:
            return before
        frame = self.read(spark, table, before)
        if table.partitions:
            frame = frame.repartition(*table.partitions)
        else:
            frame = frame.repartition(1 + before.rows // _ROWS_A_FILE)
        after = self.replace(dataclasses.replace(table, columns=before.columns), frame, run)
        if after.rows != before.rows:
            raise DataError(f"table {table.name} in {self.place}: {before.rows} rows are said, {after.rows} are there")
        return msgspec.structs.replace(before, folders=after.folders, left_out={})

    def aside(self, name: str, run: int) -> str:
        """A folder beside those of the tables."""
        return _url(os.path.join(self.place, name, _folder(run)))

    def publish(self, contents: Contents, written: Collection[str]) -> None:  # noqa: ARG002 - the file names all
        """By one rename."""
        body = msgspec.json.format(msgspec.json.encode(contents))
        try:
            replace_file(os.path.join(self.place, _CONTENTS), body.decode())
        except OSError as error:
            raise self._unwritable(error) from None

    def clean(self) -> None:
        """Folders of ours that no table names; nothing else in the folder is touched."""
        tables = self.contents().tables
        for entry in os.scandir(self.place):
            if not entry.is_dir():
                continue
            known = tables[entry.name].folders if entry.name in tables else ()
            with suppress(PermissionError):  # not ours, such as the lost+found of a disk
                for below in os.scandir(entry.path):
                    if below.name.startswith(f"{_RUN}=") and below.name not in known:
                        shutil.rmtree(below.path, ignore_errors=True)

    def forget(self, contents: Contents) -> None:
        """What no table names is gone already."""

    def _write(self, table: Table, frame: DataFrame, folder: str) -> int:
        """Write rows, and come back with their number, as the write itself counted them."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as fn

        written, path = Observation(), _url(os.path.join(self.place, table.name, folder))
        counted = frame.select(*table.columns).observe(written, fn.count(fn.lit(1)).alias("rows"))
        counted.write.partitionBy(*table.partitions).parquet(path)
        return int(written.get["rows"])

    def _unwritable(self, error: OSError) -> DataError:
        return DataError(f"cannot write to {self.place}: {error.strerror or error}", hint="choose another --warehouse")


def _folder(run: int) -> str:
    """A run's folder, below each of its tables; as Spark reads it, `run` is one more column."""
    return f"{_RUN}={run:06d}"


def _url(path: str) -> str:
    return f"file://{path}"


def _migrated(contents: Contents) -> Contents:
    """The contents of the format of before, with the numbers of the runs that its folders tell."""
    tables = {
        name: msgspec.structs.replace(stored, run=int(stored.folders[-1].partition("=")[2]))
        for name, stored in contents.tables.items()
    }
    return msgspec.structs.replace(contents, format_version=VERSION, tables=tables)
