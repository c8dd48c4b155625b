"""The interface of a storage; `local_folder.py` and `delta_tables.py` are the two that there are.

A run's writes are seen by nobody until `publish`, which is one atomic act on every storage; `held` is what makes a run
the only one that writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from rmqlb.errors import UsageError
from rmqlb.pipeline.schemas import Table
from rmqlb.pipeline.storage.contents import Contents, Stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rmqlb.pipeline.spark.worked import Worked, Written

Rows: TypeAlias = "DataFrame | Worked | Written"
"""What can be written: rows of Spark's, rows that Python processes make, or files that these have made."""
Where = Mapping[str, Collection[Any]]
"""Column → the values that are meant (None: unknown)."""
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:")


class Storage(Protocol):
    """What the warehouse asks of the place where its tables are.

    Attributes:
        place: the folder or the URI, as people read it.
        needs_spark: nothing can be asked of it before there is a session.
    """

    place: str
    needs_spark: bool

    def use(self, spark: SparkSession) -> None:
        """The session by which the tables are reached."""

    def held(self) -> AbstractContextManager[None]:
        """Be the only writer while the block lasts; a UsageError when another is, a DataError when none can be."""

    def contents(self) -> Contents:
        """What was published last."""

    def read(self, spark: SparkSession, table: Table, stored: Stored, where: Where | None = None) -> DataFrame:
        """A table's rows as they were stored, with the columns that it has there; a DataError when they are gone."""

    def in_two(self, rows: Worked, part: str, run: int) -> tuple[Rows, Callable[[], DataFrame | None]]:
        """The rows whose column `part` is false, to be written next, and then the others, if any; computed once."""

    def replace(self, table: Table, rows: Rows | None, run: int) -> Stored:
        """Write a table's rows in place of what is there; None is no rows."""

    def put(self, table: Table, rows: Rows | None, run: int, before: Stored, where: Where) -> tuple[Stored, int]:
        """Write rows beside those of before, less those with these values, and come back with how many were written."""

    def add(
        self, table: Table, frame: DataFrame, run: int, before: Stored | None, instead_of: Collection[str]
    ) -> tuple[Stored, int]:
        """Write rows beside those of before, less those of some snapshots, and come back with how many were written.

        The table is `before` itself when that changes nothing.
        """

    def compact(self, spark: SparkSession, table: Table, run: int, before: Stored) -> Stored:
        """The same rows in as few files as are useful; `before` itself when they are."""

    def aside(self, name: str, run: int) -> str:
        """A path, for Spark, of what only this run needs."""

    def publish(self, contents: Contents, written: Collection[str]) -> None:
        """Show these contents, of which the tables named were written; all of them or none."""

    def clean(self) -> None:
        """Remove what a run left aside, this one or one that was killed. Only for the one that holds the place."""

    def forget(self, contents: Contents) -> None:
        """Remove files that no published state of the last days needs. Only for the one that holds the place."""


def rows_where(frame: DataFrame, where: Where | None) -> DataFrame:
    """The rows with these values."""
    from pyspark.sql import functions as fn

    for name, values in (where or {}).items():
        wanted = fn.col(name).isin([fn.lit(value) for value in values if value is not None])
        frame = frame.filter(wanted | fn.col(name).isNull() if None in values else wanted)
    return frame


def is_uri(place: str) -> bool:
    """It has a scheme, and is never a path of this machine; a UsageError where it is unclear which it is.

    >>> is_uri("hdfs://nn/fleet"), is_uri("/data/fleet"), is_uri("./s3a:fleet")
    (True, False, False)
    """
    if _URI.match(place):
        return True
    if _SCHEME.match(place):
        scheme = place.partition(":")[0]
        hint = f"a URI is {scheme}://…, a folder of this name ./{place}"
        raise UsageError(f"--warehouse {place}: neither a folder nor a URI", hint=hint)
    return False
