"""The warehouse: named tables, each replaced or added to as a whole, or not at all.

A run writes tables that nobody sees, and publishes them together at its end: by one act that the storage does wholly or
not at all, with the run's number and the versions of what each table was made from. Who reads sees the state that was
published last, of all tables. One writer at a time.

What is read or replaced can be narrowed to some values of columns (`Where`), best of those that a table's folders are
by: then neither files nor rows of others are touched, and a night costs the same however many there were before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rmqlb.errors import DataError
from rmqlb.pipeline.schemas import MIGRATED, WRITTEN_BY, Table
from rmqlb.pipeline.storage.contents import Contents, Stored
from rmqlb.pipeline.storage.delta_tables import DeltaTables
from rmqlb.pipeline.storage.local_folder import LocalFolder
from rmqlb.pipeline.storage.storage import Rows, Storage, Where, is_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rmqlb.pipeline.spark.worked import Worked


class Warehouse:
    """Tables in a folder of this machine, which all of Spark's machines see, or at a URI that Spark reaches."""

    def __init__(self, place: str, spark: SparkSession | None = None) -> None:
        self._storage: Storage = DeltaTables(place) if is_uri(place) else LocalFolder(place)
        self._held = False
        if spark is not None:
            self.use(spark)

    @property
    def folder(self) -> str:
        """Its folder or its URI."""
        return self._storage.place

    @property
    def needs_spark(self) -> bool:
        """Nothing can be asked of it before `use`."""
        return self._storage.needs_spark

    def use(self, spark: SparkSession) -> None:
        """The session by which its storage is reached."""
        self._storage.use(spark)

    def stored(self, name: str) -> Stored | None:
        """What is known of a table; None when there is none."""
        return self._storage.contents().tables.get(name)

    def names(self) -> tuple[str, ...]:
        """The tables that are there."""
        return tuple(sorted(self._storage.contents().tables))

    def read(self, spark: SparkSession, table: Table, where: Where | None = None) -> DataFrame:
        """A table's rows (those `where`); a DataError when it is not there, or was written with other columns."""
        stored = self.stored(table.name)
        if stored is None:
            raise DataError(
                f"table {table.name} is not in {self.folder}",
                hint=f"write it first: rmqlb pipeline {_writer(table)}",
                code="table-not-found",
            )
        return self._rows(spark, table, stored, where)

    def read_or_empty(self, spark: SparkSession, table: Table, where: Where | None = None) -> DataFrame:
        """A table's rows (those `where`); none when the table is not there."""
        if self.stored(table.name) is None:
            return no_rows(spark, table)
        return self.read(spark, table, where)

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
    def held(self) -> Iterator[None]:
        """Be the only one that writes, for as long as the block lasts; what is held already stays so.

        Raises:
            DataError: the place cannot be made or written.
            UsageError: another process is writing.
        """
        if self._held:
            yield
            return
        with self._storage.held():
            self._held = True
            try:
                yield
            finally:
                self._held = False

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Write tables; all of them show when the block ends well, none of them otherwise (raises as `held`)."""
        with self.held():
            self._storage.clean()
            contents = self._storage.contents()
            writing = Writing(self, self._storage, contents.last + 1)
            try:
                yield writing
                tables = {**contents.tables, **writing.written}
                self._storage.publish(Contents(last=writing.number, tables=tables), writing.written)
            finally:
                self._storage.clean()

    def forget(self) -> None:
        """Remove files that no state of the last days needs, where the storage keeps such."""
        with self.held():
            self._storage.forget(self._storage.contents())

    def _these(self, tables: Iterable[Table]) -> dict[str, Stored]:
        there = self._storage.contents().tables
        return {table.name: there[table.name] for table in tables if table.name in there}

    def _rows(self, spark: SparkSession, table: Table, stored: Stored, where: Where | None) -> DataFrame:
        """The rows that are stored, with this version's columns."""
        missing = sorted(set(table.columns) - set(stored.columns) - MIGRATED.get(table.name, {}).keys())
        if missing:
            raise DataError(
                f"table {table.name} in {self.folder} has no column {missing[0]}: another version of rmqlb wrote it",
                hint=_anew(table),
            )
        try:
            frame = self._storage.read(spark, table, stored, where)
        except DataError as error:
            raise DataError(error.message, hint=_anew(table)) from None
        for name, known in MIGRATED.get(table.name, {}).items():
            if name not in stored.columns:
                frame = frame.selectExpr("*", f"CAST({known} AS {table.columns[name]}) AS `{name}`")
        return frame.select(*table.columns)


class Writing:
    """Tables that nobody sees yet, and by name what was written; `number` is that of the run."""

    def __init__(self, warehouse: Warehouse, storage: Storage, number: int) -> None:
        self._warehouse = warehouse
        self._storage = storage
        self.number = number
        self.written: dict[str, Stored] = {}

    def replace(
        self, table: Table, rows: Rows | None, made_from: Mapping[str, str] | None = None, where: Where | None = None
    ) -> int:
        """Write a table in place of what is there, and come back with the number of rows written; None is no rows.

        `where`: only rows of before with these values give way, all others stay. `made_from` is of the whole table.
        """
        before = None if where is None else self._warehouse.stored(table.name)
        if where is None or before is None:
            stored = self._storage.replace(table, rows, self.number)
            number = stored.rows
        else:
            stored, number = self._storage.put(table, rows, self.number, before, where)
        self.written[table.name] = replace(stored, made_from=dict(made_from or {}))
        return number

    def replace_part(
        self, table: Table, rows: Worked, part: str, made_from: Mapping[str, str], where: Where | None = None
    ) -> DataFrame | None:
        """`replace` with the rows whose column `part` is false, and come back with the others, if there are any.

        All are computed once. They have the table's columns and `part`, their first partition column; the others are
        there while this block lasts.
        """
        these, others = self._storage.in_two(rows, part, self.number)
        self.replace(table, these, made_from, where)
        return others()

    def add(self, table: Table, frame: DataFrame, instead_of: Collection[str] = (), *, empty: bool = False) -> int:
        """Write rows beside those that are there, and come back with their number; a table that is not there is made.

        `instead_of`: snapshots whose rows of before are to be shown no more. `empty`: the frame is known to have no
        rows, and nothing is done where they would change nothing.
        """
        before = self._warehouse.stored(table.name)
        if empty and not instead_of:
            if before is None:
                self.written[table.name] = self._storage.replace(table, None, self.number)
            return 0
        if before is not None and before.columns != dict(table.columns):
            return self._migrate(table, frame, instead_of)
        stored, rows = self._storage.add(table, frame, self.number, before, instead_of)
        if stored is not before:
            self.written[table.name] = stored
        return rows

    def _migrate(self, table: Table, frame: DataFrame, instead_of: Collection[str]) -> int:
        """Rows of other columns are written anew with those of now, before others are beside them."""
        kept = self._warehouse.read(frame.sparkSession, table)
        if instead_of:
            kept = kept.filter(~kept["snapshot"].isin(list(instead_of)))
        rows = kept.count()
        return self.replace(table, kept.unionByName(frame.select(*table.columns))) - rows

    def compact(self, spark: SparkSession, table: Table) -> None:
        """Put a table's rows in as few files as are useful; it stays the same version of the table."""
        before = self._warehouse.stored(table.name)
        if before is not None:
            self.written[table.name] = self._storage.compact(spark, table, self.number, before)

    def aside(self, name: str) -> str:
        """A path, for Spark, of what is needed only while this block lasts."""
        return self._storage.aside(name, self.number)

    def read(self, spark: SparkSession, table: Table, where: Where | None = None) -> DataFrame:
        """The rows (those `where`) of a table that this block has written, with those of before that stay."""
        return self._storage.read(spark, table, self.written[table.name], where).select(*table.columns)


def no_rows(spark: SparkSession, table: Table) -> DataFrame:
    """A table without rows; with the limit Spark knows that no job has to make them."""
    return spark.createDataFrame([], table.ddl).limit(0)


def _writer(table: Table) -> str:
    return next((stage for stage, tables in WRITTEN_BY.items() if table in tables), "ingest")


def _anew(table: Table) -> str:
    """The command that makes a table again; a warehouse knows what was ingested, and does not read it twice."""
    stage = _writer(table)
    return (
        "ingest the snapshots into another one: rmqlb pipeline run -w NEW PATH…"
        if stage == "ingest"
        else f"rebuild it: rmqlb pipeline {stage} --force"
    )
