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
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from rmqlb.decoding import decode
from rmqlb.errors import DataError, UsageError
from rmqlb.pipeline.schemas import Table, ddl
from rmqlb.pipeline.spark.reading import read_parquet
from rmqlb.pipeline.storage.contents import FORMAT, VERSION, Contents, Stored
from rmqlb.pipeline.storage.reader_scripts import folder_scripts
from rmqlb.pipeline.storage.shared_folder import must_be_shared
from rmqlb.pipeline.storage.storage import Rows, Where, rows_where
from rmqlb.sources.atomic_file import replace_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rmqlb.pipeline.spark.worked import Worked, Written

_CONTENTS, _LOCK, _RUN = "tables.json", ".lock", "run"
_MIGRATED = 2
"""The format of before, in which a run's number was that of its folder only."""
_ROWS_A_FILE = 4_000_000
_UNKNOWN_FOLDER = "__HIVE_DEFAULT_PARTITION__"
MOST_FOLDERS = 32
"""Of a table that has no partitions: it is read as a whole, and a small file costs as much as many rows."""


class LocalFolder:
    """Tables in a folder; all of Spark's machines see it under the same name."""

    needs_spark = False

    def __init__(self, folder: str) -> None:
        self.place = os.path.abspath(folder)
        self._is_held = False

    def use(self, spark: SparkSession) -> None:
        """Each frame has its own session; before it writes, its machines must see this folder."""
        if self._is_held:
            must_be_shared(spark, self.place)

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
            self._is_held = True
            yield
        finally:
            self._is_held = False
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

    def read(self, spark: SparkSession, table: Table, stored: Stored, where: Where | None = None) -> DataFrame:
        """The rows of the folders that are named, less those left out; only partitions asked for are listed."""
        from pyspark.sql import functions as fn

        root = os.path.join(self.place, table.name)
        lost = [folder for folder in stored.folders if not os.path.isdir(os.path.join(root, folder))]
        if lost:
            raise DataError(f"{os.path.join(root, lost[0])} is gone, but table {table.name} needs it")
        paths = [path for folder in stored.folders for path in _paths(root, folder, table, stored, where or {})]
        if not paths:
            return spark.createDataFrame([], ddl(stored.columns)).limit(0)
        columns = ddl({**stored.columns, _RUN: "int"})
        frame = rows_where(read_parquet(spark, columns, *map(_url, paths), base=_url(root)), where)
        for folder, snapshots in stored.left_out.items():
            gone = (fn.col(_RUN) == int(folder.partition("=")[2])) & fn.col("snapshot").isin(list(snapshots))
            frame = frame.filter(~gone)
        return frame.select(*stored.columns)

    def in_two(self, rows: Worked, part: str, run: int) -> tuple[Rows, Callable[[], DataFrame | None]]:
        """From files that the processes write aside: those of the others stay there until `clean`."""
        from rmqlb.pipeline.spark.worked import partition_folder

        both = self._written(rows, run)
        no, yes = (partition_folder({part: value}) for value in (False, True))

        def others() -> DataFrame | None:
            those, folder = both.below(yes), self._aside(f"{rows.table.name}_others", run)
            if not those.rows:
                return None
            those.move(os.path.join(folder, yes))
            found = read_parquet(rows.of.sparkSession, rows.table.ddl, _url(folder))
            return found.select(*rows.table.columns)  # Spark has a folder's partitions last

        return both.below(no), others

    def replace(self, table: Table, rows: Rows | None, run: int) -> Stored:
        """In a folder of the run; no rows need none."""
        if rows is None:
            return Stored((), 0, dict(table.columns), run=run)
        folder = _folder(run)
        return Stored((folder,), self._write(table, rows, run), dict(table.columns), run=run)

    def put(self, table: Table, rows: Rows | None, run: int, before: Stored, where: Where) -> tuple[Stored, int]:
        """In a folder of the run; of the folders of before, these partitions are named as dropped."""
        other = where.keys() - set(table.partitions)
        if other:
            raise ValueError(f"table {table.name} has no folders by {', '.join(sorted(other))}")
        more = self.replace(table, rows, run)
        kept = self._without(table, before, where)
        folders, number = (*kept.folders, *more.folders), kept.rows + more.rows
        return (
            msgspec.structs.replace(more, folders=folders, rows=number, left_out=kept.left_out, dropped=kept.dropped),
            more.rows,
        )

    def add(
        self, table: Table, frame: DataFrame, run: int, before: Stored | None, instead_of: Collection[str]
    ) -> tuple[Stored, int]:
        """In a folder of the run; of the folders of before, the rows of these snapshots are named as left out."""
        if before is not None and not table.partitions and len(before.folders) >= MOST_FOLDERS:
            return self._add_in_one(table, frame, run, before, instead_of)
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
        now = msgspec.structs.replace(more, folders=folders, rows=rows, left_out=left_out, dropped=before.dropped)
        return now, more.rows

    def compact(self, spark: SparkSession, table: Table, run: int, before: Stored) -> Stored:
        """One folder, and in it one file for each of the table's folders of clusters and dates."""
        if len(before.folders) <= 1 and not before.left_out and not before.dropped:
            return before
        frame = self.read(spark, table, before)
        if table.partitions:
            frame = frame.repartition(*table.partitions)
        else:
            frame = frame.repartition(1 + before.rows // _ROWS_A_FILE)
        after = self.replace(dataclasses.replace(table, columns=before.columns), frame, run)
        if after.rows != before.rows:
            raise DataError(f"table {table.name} in {self.place}: {before.rows} rows are said, {after.rows} are there")
        return msgspec.structs.replace(before, folders=after.folders, left_out={}, dropped={})

    def aside(self, name: str, run: int) -> str:
        """A folder beside those of the tables."""
        return _url(self._aside(name, run))

    def publish(self, contents: Contents, written: Collection[str]) -> None:  # noqa: ARG002 - the file names all
        """By one rename."""
        body = msgspec.json.format(msgspec.json.encode(contents))
        try:
            replace_file(os.path.join(self.place, _CONTENTS), body.decode())
        except OSError as error:
            raise self._unwritable(error) from None

    def reader_scripts(self, contents: Contents, tables: Iterable[Table]) -> dict[str, str]:
        """Views of the folders that count, which hold while the warehouse is as it is."""
        return folder_scripts(self.place, contents, tables)

    def clean(self) -> None:
        """Folders of ours that no table names, or that one has dropped; nothing else in the folder is touched."""
        tables = self.contents().tables
        for entry in os.scandir(self.place):
            if not entry.is_dir():
                continue
            stored = tables.get(entry.name)
            known = stored.folders if stored else ()
            with suppress(PermissionError):  # not ours, such as the lost+found of a disk
                for below in os.scandir(entry.path):
                    if below.name.startswith(f"{_RUN}=") and below.name not in known:
                        shutil.rmtree(below.path, ignore_errors=True)
            for folder, partitions in stored.dropped.items() if stored else ():
                for partition in partitions:
                    shutil.rmtree(os.path.join(entry.path, folder, partition), ignore_errors=True)

    def forget(self, contents: Contents) -> None:
        """What no table names is gone already."""

    def _add_in_one(
        self, table: Table, frame: DataFrame, run: int, before: Stored, instead_of: Collection[str]
    ) -> tuple[Stored, int]:
        """The same with the rows of before in one folder, now and then, so that small files do not pile up."""
        there = self.read(frame.sparkSession, table, before).select(*table.columns)
        kept = before.rows
        if instead_of:
            there = there.filter(~there["snapshot"].isin(list(instead_of)))
            kept = there.count()
        whole = there.unionByName(frame.select(*table.columns)).coalesce(1 + before.rows // _ROWS_A_FILE)
        now = self.replace(table, whole, run)
        return msgspec.structs.replace(now, made_from=before.made_from), now.rows - kept

    def _without(self, table: Table, before: Stored, where: Where) -> Stored:
        """What is known of a table when the rows of some partitions are gone."""
        folders, rows, left_out = list(before.folders), before.rows, dict(before.left_out)
        dropped: dict[str, tuple[str, ...]] = {}
        for folder in before.folders:
            path = os.path.join(self.place, table.name, folder)
            dropped_before = _dropped(path, folder, before)
            there = set(_partition_folders(path, table.partitions, {})) - dropped_before
            gone = there & set(_partition_folders(path, table.partitions, where))
            rows -= sum(_rows_of_files(os.path.join(path, partition)) for partition in gone)
            if gone == there:
                folders.remove(folder)
                left_out.pop(folder, None)
            elif gone or dropped_before:
                dropped[folder] = tuple(sorted(gone | dropped_before))
        return msgspec.structs.replace(before, folders=tuple(folders), rows=rows, left_out=left_out, dropped=dropped)

    def _write(self, table: Table, rows: Rows, run: int) -> int:
        """Write rows, and come back with their number, as the write itself counted them."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as fn

        from rmqlb.pipeline.spark.worked import Worked, Written

        path = os.path.join(self.place, table.name, _folder(run))
        if isinstance(rows, Worked):
            rows = self._written(rows, run)
        if isinstance(rows, Written):
            return rows.move(path)
        written = Observation()
        counted = rows.select(*table.columns).observe(written, fn.count(fn.lit(1)).alias("rows"))
        counted.write.partitionBy(*table.partitions).parquet(_url(path))
        return int(written.get.get("rows", 0))

    def _written(self, rows: Worked, run: int) -> Written:
        """Files that the processes which make the rows write aside; of tasks that failed there may be others."""
        return rows.write(self._aside(f"{rows.table.name}_written", run))

    def _aside(self, name: str, run: int) -> str:
        return os.path.join(self.place, name, _folder(run))

    def _unwritable(self, error: OSError) -> DataError:
        return DataError(f"cannot write to {self.place}: {error.strerror or error}", hint="choose another --warehouse")


def _folder(run: int) -> str:
    """A run's folder, below each of its tables; as Spark reads it, `run` is one more column."""
    return f"{_RUN}={run:06d}"


def _dropped(path: str, folder: str, stored: Stored) -> set[str]:
    """The partitions of a folder that are shown no more, and have not been removed yet."""
    return {part for part in stored.dropped.get(folder, ()) if os.path.isdir(os.path.join(path, part))}


def _paths(root: str, folder: str, table: Table, stored: Stored, where: Where) -> list[str]:
    """The paths of a folder that hold the rows of these partitions: the folder itself where all of it counts."""
    path = os.path.join(root, folder)
    dropped = _dropped(path, folder, stored)
    if not dropped and not where.keys() & set(table.partitions):
        return [path]
    found = _partition_folders(path, table.partitions, where)
    return [os.path.join(path, partition) for partition in found if partition not in dropped]


def _partition_folders(path: str, partitions: Collection[str], where: Where) -> list[str]:
    """The folders of these partitions below a run's folder, sorted."""
    found = [""]
    for name in partitions:
        wanted = {_folder_value(value) for value in where[name]} if name in where else None
        below = [(parent, entry.name) for parent in found for entry in os.scandir(os.path.join(path, parent))]
        found = [
            os.path.join(parent, child)
            for parent, child in below
            if child.startswith(f"{name}=") and (wanted is None or unquote(child.partition("=")[2]) in wanted)
        ]
    return sorted(found)


def _folder_value(value: Any) -> str:
    """A partition's value as its folder's name has it, but for the escapes."""
    if value is None:
        return _UNKNOWN_FOLDER
    return str(value).lower() if isinstance(value, bool) else str(value)


def _rows_of_files(path: str) -> int:
    """How many rows the Parquet files in a folder say that they have."""
    from pyarrow import parquet

    files = [entry.path for entry in os.scandir(path) if entry.name.endswith(".parquet")]
    return sum(int(parquet.read_metadata(file).num_rows) for file in files)


def _url(path: str) -> str:
    return f"file://{path}"


def _migrated(contents: Contents) -> Contents:
    """The contents of the format of before, with the numbers of the runs that its folders tell."""
    tables = {
        name: msgspec.structs.replace(stored, run=int(stored.folders[-1].partition("=")[2]))
        for name, stored in contents.tables.items()
    }
    return msgspec.structs.replace(contents, format_version=VERSION, tables=tables)
