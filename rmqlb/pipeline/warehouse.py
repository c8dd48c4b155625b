"""The warehouse: named tables in a folder, each replaced or added to as a whole, or not at all.

What is read is what `tables.json` names. Rows are written aside, in a folder of their own, and one rename of
`tables.json` makes them visible, all tables of a stage together; the next writer removes folders that it does not name.
One writer at a time: the lock is the kernel's, so that it ends with its process.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from rmqlb.decoding import decode
from rmqlb.errors import DataError, UsageError
from rmqlb.pipeline.schemas import WRITTEN_BY, Table, ddl
from rmqlb.sources.atomic_file import replace_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rmqlb.pipeline.spark.worked import Worked

FORMAT, VERSION = "rmqlb/warehouse", 2
_CONTENTS, _LOCK, _RUN = "tables.json", ".lock", "run"


class Stored(msgspec.Struct, frozen=True, rename="camel"):
    """One table as it is in the warehouse.

    Attributes:
        folders: where its rows are, below the table's own folder.
        made_from: what it was made from, by name, for a later run to see whether it still holds.
        left_out: folder → snapshots whose rows in it are shown no more, because a later folder has them anew.
    """

    folders: tuple[str, ...]
    rows: int
    columns: dict[str, str]
    made_from: dict[str, str] = {}
    left_out: dict[str, tuple[str, ...]] = {}

    @property
    def version(self) -> str:
        """Changes whenever the rows do."""
        return ",".join(self.folders)

    def with_more(self, more: Stored, gone: int, snapshots: tuple[str, ...]) -> Stored:
        """This table with another's rows beside its own, less those (so many) of some snapshots."""
        left_out = dict(self.left_out)
        if gone:
            for folder in self.folders:
                left_out[folder] = tuple(sorted({*left_out.get(folder, ()), *snapshots}))
        return msgspec.structs.replace(
            more, folders=(*self.folders, *more.folders), rows=self.rows - gone + more.rows, left_out=left_out
        )


class _Contents(msgspec.Struct, frozen=True, rename="camel"):
    schema: str = FORMAT
    format_version: int = VERSION
    last: int = 0
    tables: dict[str, Stored] = {}


class Warehouse:
    """Tables in a folder of this machine, or one mounted on it; all of Spark's machines see it under the same name."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)

    def stored(self, name: str) -> Stored | None:
        """What is known of a table; None when there is none."""
        return self._contents().tables.get(name)

    def names(self) -> tuple[str, ...]:
        """The tables that are there."""
        return tuple(sorted(self._contents().tables))

    def read(self, spark: SparkSession, table: Table) -> DataFrame:
        """A table's rows; a DataError when it is not there, or was written with other columns."""
        stored = self.stored(table.name)
        if stored is None:
            raise DataError(
                f"table {table.name} is not in {self.folder}",
                hint=f"write it first: rmqlb pipeline {_writer(table)}",
                code="table-not-found",
            )
        missing = sorted(set(table.columns) - set(stored.columns))
        if missing:
            raise DataError(
                f"table {table.name} in {self.folder} has no column {missing[0]}: another version of rmqlb wrote it",
                hint=_anew(table),
            )
        root = os.path.join(self.folder, table.name)
        paths = [os.path.join(root, folder) for folder in stored.folders]
        lost = [path for path in paths if not os.path.isdir(path)]
        if lost:
            raise DataError(f"{lost[0]} is gone, but table {table.name} needs it", hint=_anew(table))
        return _read(spark, table, root, stored)

    def read_or_empty(self, spark: SparkSession, table: Table) -> DataFrame:
        """A table's rows; none when the table is not there."""
        if self.stored(table.name) is None:
            return spark.createDataFrame([], table.ddl)
        return self.read(spark, table)

    def rows(self, *tables: Table) -> dict[str, int]:
        """Table → how many rows it has, of those that are there."""
        return {name: stored.rows for name, stored in self._these(tables).items()}

    def versions(self, *tables: Table) -> dict[str, str]:
        """Table → its version, of those that are there: what a table made from them was made from."""
        return {name: stored.version for name, stored in self._these(tables).items()}

    def is_made_from(self, table: Table, made_from: Mapping[str, str]) -> bool:
        """The table is there, has this version's columns, and was made from just this."""
        stored = self.stored(table.name)
        return stored is not None and stored.made_from == made_from and stored.columns == dict(table.columns)

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Write tables; all of them show when the block ends well, none of them otherwise.

        Raises:
            DataError: the folder cannot be made or written.
            UsageError: another process is writing.
        """
        with self._locked():
            self._remove_left_overs()
            contents = self._contents()
            writing = Writing(self, contents.last + 1)
            try:
                yield writing
                self._publish(contents, writing)
            finally:
                self._remove_left_overs()

    def _these(self, tables: Iterable[Table]) -> dict[str, Stored]:
        there = self._contents().tables
        return {table.name: there[table.name] for table in tables if table.name in there}

    def _contents(self) -> _Contents:
        path = os.path.join(self.folder, _CONTENTS)
        try:
            with open(path, "rb") as file:
                contents = decode(file.read(), _Contents)
        except FileNotFoundError:
            return _Contents()
        except (OSError, msgspec.DecodeError) as error:
            raise DataError(f"{path}: {error}", hint="is this a warehouse of rmqlb?") from None
        if contents.schema != FORMAT or contents.format_version != VERSION:
            raise DataError(
                f"{path}: {contents.schema} {contents.format_version} is not what this program reads "
                f"({FORMAT} {VERSION})",
                hint="ingest the snapshots into another --warehouse, or use the rmqlb that wrote this one",
            )
        return contents

    def _publish(self, contents: _Contents, writing: Writing) -> None:
        tables = {**contents.tables, **writing.written}
        body = msgspec.json.format(msgspec.json.encode(_Contents(last=writing.number, tables=tables)))
        try:
            replace_file(os.path.join(self.folder, _CONTENTS), body.decode())
        except OSError as error:
            raise _unwritable(self.folder, error) from None

    def _remove_left_overs(self) -> None:
        """Folders of ours that no table names; nothing else in the folder is touched."""
        tables = self._contents().tables
        for entry in os.scandir(self.folder):
            if not entry.is_dir():
                continue
            known = tables[entry.name].folders if entry.name in tables else ()
            with suppress(PermissionError):  # not ours, such as the lost+found of a disk
                for below in os.scandir(entry.path):
                    if below.name.startswith(f"{_RUN}=") and below.name not in known:
                        shutil.rmtree(below.path, ignore_errors=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            os.makedirs(self.folder, exist_ok=True)
            lock = os.open(os.path.join(self.folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _unwritable(self.folder, error) from None
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(
                    f"another process is writing to {self.folder}",
                    hint="wait for it, or use another --warehouse",
                    code="warehouse-busy",
                ) from None
            yield
        finally:
            os.close(lock)


class Writing:
    """Tables being written aside, and by name what was written; the run's folders bear its number."""

    def __init__(self, warehouse: Warehouse, number: int) -> None:
        self._warehouse = warehouse
        self._folder = warehouse.folder
        self.number = number
        self.written: dict[str, Stored] = {}

    def replace(self, table: Table, rows: DataFrame | Worked | None, made_from: Mapping[str, str] | None = None) -> int:
        """Write a table in place of what is there, and come back with its number of rows; None is no rows.

        Rows that Python processes make are written by these, as they reach this folder.
        """
        from pyspark.sql import DataFrame

        if rows is None:
            os.makedirs(self._root(table))
            stored = Stored((_folder(self.number),), 0, dict(table.columns), dict(made_from or {}))
        elif isinstance(rows, DataFrame):
            stored = self._write(table, rows, made_from or {})
        else:
            stored = self._moved(table, rows, {"": self._root(table)}, made_from or {})[""]
        self.written[table.name] = stored
        return stored.rows

    def replace_part(self, table: Table, rows: Worked, part: str, made_from: Mapping[str, str]) -> DataFrame | None:
        """Write the rows whose column `part` is false in place of a table, and come back with the others, if any.

        All are computed once. They have the table's columns and `part`, their first partition column; the others are
        there while this block lasts. The processes that make the rows write them, as they reach this folder; a file
        is moved into the table's folder only if its task ended well.
        """
        from rmqlb.pipeline.spark.worked import partition_folder

        own, others = (partition_folder({part: value}) for value in (False, True))
        aside = os.path.join(self.aside(f"{table.name}_others"), others)
        stored = self._moved(table, rows, {own: self._root(table), others: aside}, made_from)
        self.written[table.name] = stored[own]
        if not stored[others].rows:
            return None
        found = rows.of.sparkSession.read.schema(rows.table.ddl).parquet(os.path.dirname(aside))
        return found.select(*rows.table.columns)

    def add(self, table: Table, frame: DataFrame, instead_of: Collection[str] = ()) -> int:
        """Write rows beside those that are there, and come back with their number; a table that is not there is made.

        `instead_of`: snapshots whose rows of before are to be shown no more.
        """
        stored = self._write(table, frame, {})
        before = self._warehouse.stored(table.name)
        if before is None:
            self.written[table.name] = stored
            return stored.rows
        gone = 0
        if instead_of:
            rows = self._warehouse.read(frame.sparkSession, table)
            gone = rows.filter(rows["snapshot"].isin(list(instead_of))).count()
        if stored.rows or gone:
            self.written[table.name] = before.with_more(stored, gone, tuple(instead_of))
        return stored.rows

    def aside(self, name: str) -> str:
        """A folder for what is needed only while this block lasts."""
        return os.path.join(self._folder, name, _folder(self.number))

    def read(self, spark: SparkSession, table: Table) -> DataFrame:
        """The rows of a table that this block has written."""
        return _read(spark, table, os.path.join(self._folder, table.name), self.written[table.name])

    def _root(self, table: Table) -> str:
        return os.path.join(self._folder, table.name, _folder(self.number))

    def _moved(
        self, table: Table, rows: Worked, places: Mapping[str, str], made_from: Mapping[str, str]
    ) -> dict[str, Stored]:
        """Files that processes write aside; those of tasks that ended well are moved, by the folder they begin with."""
        aside = self.aside(f"{table.name}_written")
        number = dict.fromkeys(places, 0)
        for place in places.values():
            os.makedirs(place, exist_ok=True)
        for file in rows.files(aside):
            which = next(name for name in places if f"{file['folder']}/".startswith(f"{name}/" if name else ""))
            to = os.path.join(places[which], file["folder"].removeprefix(which).lstrip("/"))
            os.makedirs(to, exist_ok=True)
            os.rename(os.path.join(aside, file["folder"], file["file"]), os.path.join(to, file["file"]))
            number[which] += file["rows"]
        folders, kinds = (_folder(self.number),), dict(table.columns)
        return {which: Stored(folders, count, kinds, dict(made_from)) for which, count in number.items()}

    def _write(self, table: Table, frame: DataFrame, made_from: Mapping[str, str]) -> Stored:
        root, name = os.path.join(self._folder, table.name), _folder(self.number)
        rows = _written(frame.select(*table.columns), table.partitions, os.path.join(root, name))
        return Stored((name,), rows, dict(table.columns), dict(made_from))


def _written(frame: DataFrame, partitions: tuple[str, ...], path: str) -> int:
    """Write Parquet, and come back with the number of its rows, as Spark counted them while it wrote."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as fn

    seen = Observation()
    frame.observe(seen, fn.count(fn.lit(1)).alias("rows")).write.partitionBy(*partitions).parquet(path)
    return int(seen.get.get("rows", 0))


def _folder(number: int) -> str:
    """A run's folder, below each of its tables; as Spark reads it, `run` is one more column."""
    return f"{_RUN}={number:06d}"


def _read(spark: SparkSession, table: Table, root: str, stored: Stored) -> DataFrame:
    from pyspark.sql import functions as fn

    reader = spark.read.schema(ddl({**table.columns, _RUN: "int"})).option("basePath", root)
    frame = reader.parquet(*(os.path.join(root, folder) for folder in stored.folders))
    for folder, snapshots in stored.left_out.items():
        gone = (fn.col(_RUN) == int(folder.partition("=")[2])) & fn.col("snapshot").isin(list(snapshots))
        frame = frame.filter(~gone)
    return frame.select(*table.columns)


def _writer(table: Table) -> str:
    return next((stage for stage, tables in WRITTEN_BY.items() if table in tables), "ingest")


def _anew(table: Table) -> str:
    """How a table is made again; what was ingested before is known, and is not read again into the same warehouse."""
    stage = _writer(table)
    return (
        "ingest the snapshots into another --warehouse"
        if stage == "ingest"
        else f"rebuild it: rmqlb pipeline {stage} --force"
    )


def _unwritable(folder: str, error: OSError) -> DataError:
    return DataError(f"cannot write to {folder}: {error.strerror or error}", hint="choose another --warehouse")
