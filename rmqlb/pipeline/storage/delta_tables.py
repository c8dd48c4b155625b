"""A warehouse at a URI: a Delta Lake table for each table, and one that says which versions of them belong together.

`_published` has a row for each table and run: the version of its Delta Lake table that is shown, with the run's number
and the versions of what it was made from. A run commits its tables one after the other and publishes them by one commit
to `_published`, its last; versions that no row names are seen by nobody, and the next run goes back behind them. All of
it is Delta Lake's own: a reader needs nothing of ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from msgspec.structs import replace

from rmqlb.errors import DataError, UsageError
from rmqlb.pipeline.schemas import Table
from rmqlb.pipeline.storage.claims import Claimed, claimed
from rmqlb.pipeline.storage.contents import VERSION, Contents, Stored
from rmqlb.pipeline.storage.files import spark_files
from rmqlb.pipeline.storage.reader_scripts import delta_scripts
from rmqlb.pipeline.storage.storage import Rows, Where, rows_where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rmqlb.pipeline.spark.worked import Worked

PUBLISHED = Table(
    "_published",
    {
        "name": "string",
        "run": "bigint",
        "tableVersion": "bigint",
        "rows": "bigint",
        "at": "timestamp",
        "writer": "string",
        "format": "int",
        "columns": "map<string, string>",
        "madeFrom": "map<string, string>",
        "lastChange": "bigint",
    },
)
"""A table as a run left it; of each `name` the row of the highest `run` holds. `lastChange` is the last run that
changed the table's rows, `writer` names the process."""

MOST_COMMITS = 32
"""After so many to a table that is read as a whole, its small files are put together: a later night costs no more."""
_FOLDERS = frozenset({"date"})
"""Of a table's partitions those that are folders here: a cluster's night is too small for a file of its own."""
_ABSENT = {"DELTA_TABLE_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_MISSING_DELTA_TABLE", "PATH_NOT_FOUND"}
_UNFIT = re.compile(r"[\x00-\x20\x7f`?#*\[\]{}\\']")


class DeltaTables:
    """Tables at a URI; every session that reads or writes them has Delta Lake's jars."""

    needs_spark = True

    def __init__(self, uri: str) -> None:
        self.place = uri.rstrip("/")
        if self.place.endswith(":") or _UNFIT.search(self.place):
            hint = "such as hdfs://namenode/rmqlb or s3a://bucket/rmqlb"
            raise UsageError(f"--warehouse {uri}: not a URI for tables", hint=hint)
        self._session: SparkSession | None = None
        self._contents: Contents | None = None
        self._claim: Claimed | None = None
        self._writer = uuid4().hex
        self._on_disk: list[DataFrame] = []

    def use(self, spark: SparkSession) -> None:
        """The session by which all is reached."""
        self._session = spark

    @contextmanager
    def held(self) -> Iterator[None]:
        """By a claim, a small file beside the tables; no job is run for it."""
        with claimed(spark_files(self._spark).folder(f"{self.place}/_writers"), self.place) as claim:
            self._claim, self._contents = claim, None
            try:
                yield
            finally:
                self._claim = None

    def contents(self) -> Contents:
        """The highest run of each table, as it was when this was first asked, or when we last published."""
        if self._contents is None:
            self._contents = self._read_contents()
        return self._contents

    def read(self, spark: SparkSession, table: Table, stored: Stored, where: Where | None = None) -> DataFrame:
        """The version that is shown."""
        from pyspark.errors import AnalysisException

        reader = spark.read.format("delta").option("versionAsOf", str(stored.table_version))
        try:
            return rows_where(reader.load(self._path(table)).select(*stored.columns), where)
        except AnalysisException as error:
            version = f"version {stored.table_version} of {self._path(table)}"
            raise DataError(f"{version} is gone, but table {table.name} needs it: {error.getCondition()}") from None

    def in_two(self, rows: Worked, part: str, run: int) -> tuple[Rows, Callable[[], DataFrame | None]]:  # noqa: ARG002
        """From Spark's own disks, where they are until `clean`."""
        from pyspark import StorageLevel

        both = rows.frame().persist(StorageLevel.DISK_ONLY)
        self._on_disk.append(both)
        others = both.where(both[part])
        return both.where(~both[part]), lambda: None if others.isEmpty() else others

    def replace(self, table: Table, rows: Rows | None, run: int) -> Stored:
        """All rows of a new version."""
        number, version = self._commit(table, self._frame(table, rows), "overwrite")
        return Stored((), number, dict(table.columns), run=run, table_version=version)

    def put(self, table: Table, rows: Rows | None, run: int, before: Stored, where: Where) -> tuple[Stored, int]:
        """Versions upon the one that is shown: one without the rows that give way, one with the new rows."""
        base = self._go_back(table, before)
        gone = self._delete(table, where)
        if rows is None:
            return Stored((), before.rows - gone, dict(table.columns), run=run, table_version=base + bool(gone)), 0
        number, version = self._commit(table, self._frame(table, rows), "append", base=base + bool(gone))
        now = Stored((), before.rows - gone + number, dict(table.columns), run=run, table_version=version)
        return now, number

    def add(
        self, table: Table, frame: DataFrame, run: int, before: Stored | None, instead_of: Collection[str]
    ) -> tuple[Stored, int]:
        """Versions upon the one that is shown: one without the rows of these snapshots, one with the new rows."""
        if before is None:
            stored = self.replace(table, frame, run)
            return stored, stored.rows
        base = self._go_back(table, before)
        gone = self._delete(table, {"snapshot": instead_of})
        rows, version = self._commit(table, frame, "append", base=base + bool(gone))
        if not rows and not gone:
            return before, 0
        if not table.partitions and version // MOST_COMMITS > base // MOST_COMMITS:
            version = self._optimize(table)
        now = Stored((), before.rows - gone + rows, dict(table.columns), run=run, table_version=version)
        return now, rows

    def compact(self, spark: SparkSession, table: Table, run: int, before: Stored) -> Stored:  # noqa: ARG002 - no new run
        """By OPTIMIZE, which makes a version of the same rows in larger files, where there are several small ones."""
        base = self._go_back(table, before)
        version = self._optimize(table)
        return before if version == base == before.table_version else replace(before, table_version=version)

    def aside(self, name: str, run: int) -> str:
        """A folder of this writer alone."""
        return f"{self.place}/_aside/{name}/{self._writer}-{run}"

    def publish(self, contents: Contents, written: Collection[str]) -> None:
        """By one commit to `_published`, which another that has come first makes void; now and then of all tables."""
        if not written:
            return
        if self._claim is not None:
            self._claim.must_hold(self.place)
        anew = contents.last % MOST_COMMITS == 0
        at = datetime.now(UTC).replace(tzinfo=None)
        rows = [
            (
                *(name, contents.last, stored.table_version, stored.rows, at, self._writer, VERSION),
                *(stored.columns, stored.made_from, stored.run),
            )
            for name, stored in ((name, contents.tables[name]) for name in (contents.tables if anew else written))
        ]
        frame = self._spark.createDataFrame(rows, PUBLISHED.ddl).coalesce(1)
        # A commit of the same application and number is void when there is one already: two never publish one run.
        void = {"txnAppId": "rmqlb", "txnVersion": str(contents.last)}
        self._commit(PUBLISHED, frame, "overwrite" if anew else "append", void)
        self._contents = contents

    def reader_scripts(self, contents: Contents, tables: Iterable[Table]) -> dict[str, str]:
        """The versions that are shown."""
        return delta_scripts(self.place, contents, tables)

    def clean(self) -> None:
        """What is aside, of whomever; versions that no run has published are seen by nobody."""
        while self._on_disk:
            self._on_disk.pop().unpersist()
        spark_files(self._spark).remove_all(f"{self.place}/_aside")

    def forget(self, contents: Contents) -> None:
        """Files of versions that were replaced more than a week ago, and rows of `_published` that no longer hold."""
        older = " OR ".join(f"(name = '{name}' AND run < {run})" for name, run in self._highest_runs().items())
        if older:
            self._sql(f"DELETE FROM {self._name(PUBLISHED)} WHERE {older}")  # noqa: S608 - our own names
            self._sql(f"OPTIMIZE {self._name(PUBLISHED)}")
        for name in (*contents.tables, PUBLISHED.name):
            self._sql(f"VACUUM delta.`{self.place}/{name}`")

    @property
    def _spark(self) -> SparkSession:
        if self._session is None:
            raise RuntimeError("a warehouse at a URI is asked before it has a session")
        return self._session

    def _frame(self, table: Table, rows: Rows | None) -> DataFrame:
        """The rows as Spark's: whether the processes that make them reach this place, only Spark knows."""
        from rmqlb.pipeline.spark.worked import Worked, Written

        if rows is None:
            return self._spark.createDataFrame([], table.ddl)
        if isinstance(rows, Written):
            raise TypeError("files are written only where the processes reach the tables")
        return rows.frame() if isinstance(rows, Worked) else rows

    def _path(self, table: Table) -> str:
        return f"{self.place}/{table.name}"

    def _name(self, table: Table) -> str:
        """The table as SQL has it; a URI with what would end the name is not taken."""
        return f"delta.`{self._path(table)}`"

    def _sql(self, text: str) -> list[Any]:
        return self._spark.sql(text).collect()

    def _optimize(self, table: Table) -> int:
        """Few files of many; the newest version afterwards."""
        self._sql(f"OPTIMIZE {self._name(table)}")
        return int(self._head(table)["version"])

    def _head(self, table: Table) -> Any:
        """The newest version, whether or not it is shown, and what was said of it when it was committed."""
        return self._sql(f"DESCRIBE HISTORY {self._name(table)} LIMIT 1")[0]

    def _commit(
        self, table: Table, frame: DataFrame, mode: str, options: dict[str, str] | None = None, base: int | None = None
    ) -> tuple[int, int]:
        """Write rows; how many they are, and their version, as the commit itself says (UsageError: it is not ours)."""
        folders = [name for name in table.partitions if name in _FOLDERS]
        # By Spark Connect a text may have a collation of its own, which other readers do not know.
        typed = frame.select(*(frame[name].cast(kind).alias(name) for name, kind in table.columns.items()))
        writer = typed.write.format("delta").mode(mode).partitionBy(*folders)
        schema = "overwriteSchema" if mode == "overwrite" else "mergeSchema"
        mark = uuid4().hex
        writer.options(**{schema: "true", "userMetadata": mark, **(options or {})}).save(self._path(table))
        head = self._head(table)
        if int(head["version"]) == base:  # no rows: nothing to commit
            return 0, base
        is_next = (
            base is None or int(head["version"]) == base + 1
        )  # a run that was killed ends a moment after its process
        if head["userMetadata"] != mark or not is_next:
            raise UsageError(
                f"another process has written to {self._path(table)} at the same time",
                hint="nothing of this run is shown; run it again when the other has ended",
                code="warehouse-busy",
            )
        return int(head["operationMetrics"].get("numOutputRows", 0)), int(head["version"])

    def _delete(self, table: Table, where: Where) -> int:
        """How many rows with these values there were."""
        if not all(where.values()):
            return 0
        condition = " AND ".join(_condition(name, values) for name, values in where.items())
        return int(self._sql(f"DELETE FROM {self._name(table)} WHERE {condition}")[0][0])  # noqa: S608

    def _go_back(self, table: Table, shown: Stored) -> int:
        """The newest version, of just the rows that are shown: a run that was killed may have left others upon it."""
        version = int(self._head(table)["version"])
        if version == shown.table_version:
            return version
        self._sql(f"RESTORE TABLE {self._name(table)} TO VERSION AS OF {shown.table_version}")
        return int(self._head(table)["version"])

    def _read_contents(self) -> Contents:
        from pyspark.errors import AnalysisException
        from pyspark.sql import functions as fn

        columns = [name for name in PUBLISHED.columns if name != "name"]
        try:
            frame = self._spark.read.format("delta").load(self._path(PUBLISHED))
            last = frame.groupBy("name").agg(fn.max_by(fn.struct(*columns), "run").alias("last"))
            rows = last.select("name", "last.*").collect()
        except AnalysisException as error:
            if error.getCondition() not in _ABSENT:
                raise
            return Contents()
        for row in rows:
            if row["format"] != VERSION:
                raise DataError(
                    f"{self.place}: format {row['format']} is not what this program reads ({VERSION})",
                    hint="ingest the snapshots into another one: rmqlb pipeline run -w NEW PATH…",
                )
        tables = {
            row["name"]: Stored(
                *((), row["rows"], row["columns"], row["madeFrom"]),
                run=row["lastChange"],
                table_version=row["tableVersion"],
            )
            for row in rows
        }
        return Contents(last=max((row["run"] for row in rows), default=0), tables=tables)

    def _highest_runs(self) -> dict[str, int]:
        frame = self._spark.read.format("delta").load(self._path(PUBLISHED))
        return {row[0]: row[1] for row in frame.groupBy("name").agg({"run": "max"}).collect()}


def _condition(name: str, values: Collection[Any]) -> str:
    """A column has one of these values, of which there are some, as SQL says it."""
    known = sorted(_literal(value) for value in values if value is not None)
    parts = [f"`{name}` IN ({', '.join(known)})"] if known else []
    parts += [f"`{name}` IS NULL"] if None in values else []
    return f"({' OR '.join(parts)})"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"DATE{_text(str(value))}" if isinstance(value, date) else _text(value)


def _text(value: str) -> str:
    """A text as SQL has it."""
    return "'{}'".format(value.replace("\\", "\\\\").replace("'", "\\'"))
