"""Frames → rows of values. A page's questions are gathered and answered together, in one job.

What a question may ask: a bounded number of rows, either the first of an order or sums by clusters, brokers, days.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import fields
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from rmqlb.pipeline.schemas import (
    BROKER_LOSSES,
    DOCUMENTS,
    FLEET,
    GROUPS,
    REFUSALS,
    SCORES,
    SEND_SHARES,
    SENDS,
    SNAPSHOT,
    TREND,
    WHAT_IF,
    Table,
)
from rmqlb.pipeline.warehouse import Warehouse

_ADAPTIVE = "spark.sql.adaptive.enabled"
_BY_SNAPSHOT = (DOCUMENTS, GROUPS, FLEET, SCORES, REFUSALS, WHAT_IF, BROKER_LOSSES, SENDS, SEND_SHARES, TREND)
"""Tables of which it matters which snapshots they tell of."""
_MOST_NAMED = 200
"""Snapshots that a filter names; of more a join is made."""


class Row(Struct, frozen=True, rename="camel"):
    """What the page shows of something: a field is a column of the same name in camelCase, None is unknown."""


Kind = TypeVar("Kind", bound=Row)


class Seen(Row, frozen=True):
    """A snapshot in a table: its rows, when it was taken (microseconds since 1970), its first file in DOCUMENTS."""

    of: str
    cluster: str
    date: dt.date | None
    snapshot: str
    rows: int
    taken: int | None
    file: str | None


@contextmanager
def one_job(spark: SparkSession) -> Iterator[None]:
    """Within the block a query is one job.

    Adaptive planning makes a job of each shuffle, to plan the next one by its size; here all are small by then.
    """
    before = spark.conf.get(_ADAPTIVE)
    spark.conf.set(_ADAPTIVE, "false")
    try:
        yield
    finally:
        spark.conf.set(_ADAPTIVE, before or "true")


@dataclass(frozen=True)
class Tables:
    """The tables that a report reads, each listed once."""

    spark: SparkSession
    warehouse: Warehouse
    _frames: dict[str, DataFrame | None] = field(default_factory=dict, init=False)
    _kept: list[DataFrame] = field(default_factory=list, init=False)

    def whole(self, table: Table) -> DataFrame | None:
        """A table's rows; None when it is not there."""
        if table.name not in self._frames:
            there = self.warehouse.stored(table.name) is not None
            self._frames[table.name] = self.warehouse.read(self.spark, table) if there else None
        return self._frames[table.name]

    def last(self, table: Table) -> DataFrame | None:
        """A table's rows of each cluster's last snapshot among those it tells of; None when it is not there."""
        return self.rows_of(table, self.last_seen(table))

    def last_seen(self, table: Table) -> tuple[Seen, ...]:
        """Each cluster's last snapshot of a table. What is unknown comes before all that is known."""
        taken = {(one.cluster, one.snapshot): one.taken for one in self.seen(DOCUMENTS)}

        def order(one: Seen) -> tuple[int, str, str]:
            known = taken.get((one.cluster, one.snapshot))
            return -1 if known is None else known, str(one.date or ""), one.snapshot

        return tuple({one.cluster: one for one in sorted(self.seen(table), key=order)}.values())

    def seen(self, table: Table) -> tuple[Seen, ...]:
        """The snapshots that a table tells of."""
        return self._seen.get(table.name, ())

    def rows_of(self, table: Table, chosen: Collection[Seen]) -> DataFrame | None:
        """A table's rows of these snapshots; None when it is not there."""
        frame = self.whole(table)
        if frame is None or len(chosen) == len(self.seen(table)):
            return frame
        return of_snapshots(self.spark, frame, chosen)

    def made(self, name: str, make: Callable[[], DataFrame | None]) -> DataFrame | None:
        """A frame under a name, made once and kept in memory until `close`."""
        if name not in self._frames:
            frame = make()
            if frame is not None:
                with one_job(self.spark):
                    self._kept.append(frame.persist())
            self._frames[name] = frame
        return self._frames[name]

    def close(self) -> None:
        """Let go of what was kept."""
        while self._kept:
            self._kept.pop().unpersist()

    @cached_property
    def _seen(self) -> Mapping[str, tuple[Seen, ...]]:
        there = [(table, frame) for table in _BY_SNAPSHOT if (frame := self.whole(table)) is not None]
        if not there:
            return {}
        every = reduce(DataFrame.unionAll, (_snapshots(table, frame) for table, frame in there))
        found = every.groupBy("of", "cluster", "date", "snapshot").agg(
            fn.count("*").alias("rows"), fn.max("taken").alias("taken"), fn.min("file").alias("file")
        )
        asked = Asked(self.spark)
        answer = asked.rows(Seen, found)
        asked.answer()
        of_all = sorted(answer.rows, key=lambda one: (one.cluster, str(one.date), one.snapshot))
        return {table.name: tuple(one for one in of_all if one.of == table.name) for table, _ in there}


def of_snapshots(spark: SparkSession, frame: DataFrame, chosen: Collection[Seen]) -> DataFrame:
    """The rows of these snapshots; files of other days are not read."""
    dates = {one.date for one in chosen}
    in_days = fn.col("date").isin([fn.lit(day) for day in sorted(day for day in dates if day is not None)])
    frame = frame.where(in_days | fn.col("date").isNull() if None in dates else in_days)
    pairs = sorted({(one.cluster, one.snapshot) for one in chosen})
    if len(pairs) > _MOST_NAMED:
        return frame.join(spark.createDataFrame(pairs, "cluster string, snapshot string"), list(SNAPSHOT), "semi")
    named = [
        fn.struct(fn.lit(cluster).alias("cluster"), fn.lit(snapshot).alias("snapshot")) for cluster, snapshot in pairs
    ]
    return frame.where(fn.struct(*SNAPSHOT).isin(named))


def _snapshots(table: Table, frame: DataFrame) -> DataFrame:
    taken = fn.unix_micros("takenAt") if "takenAt" in table.columns else fn.lit(None).cast("bigint")
    file = fn.col("file") if "file" in table.columns else fn.lit(None).cast("string")
    key = (fn.lit(table.name).alias("of"), "cluster", "date", "snapshot")
    return frame.select(*key, taken.alias("taken"), file.alias("file"))


@dataclass
class Answer(Generic[Kind]):
    """The rows of a question, once it is answered."""

    kind: type[Kind]
    rows: tuple[Kind, ...] = ()

    def by(self, *order: str) -> tuple[Kind, ...]:
        """The rows in an order of fields; of those that begin with `-` the largest first, unknown last."""
        found = list(self.rows)
        for name in reversed(order):
            if name.startswith("-"):
                found.sort(key=lambda row, name=name[1:]: _down(getattr(row, name)))  # type: ignore[misc]
            else:
                found.sort(key=lambda row, name=name: _up(getattr(row, name)))  # type: ignore[misc]
        return tuple(found)


def _down(value: Any) -> tuple[bool, Any]:
    return value is None, 0 if value is None else -value


def _up(value: Any) -> tuple[bool, Any]:
    return value is not None, "" if value is None else value


class Asked:
    """Questions, which are answered by one job."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._asked: list[tuple[Answer[Any], DataFrame]] = []

    def rows(self, kind: type[Kind], frame: DataFrame) -> Answer[Kind]:
        """All rows of a frame that has a column for each field of `kind`."""
        answer = Answer(kind)
        self._asked.append((answer, frame.select(fn.struct(*(one.encode_name for one in fields(kind))))))
        return answer

    def first(self, kind: type[Kind], frame: DataFrame, top: int, *order: str) -> Answer[Kind]:
        """The first rows by an order of columns, in it; of those that begin with `-` the largest first, unknown last.

        What decides ties belongs to the order.
        """
        return self.rows(kind, frame.orderBy(*map(_ordered, order)).limit(top))

    def answer(self) -> None:
        """Have all answered that were not answered before."""
        if not self._asked:
            return
        branches = [frame.toDF(f"answer{at}") for at, (_, frame) in enumerate(self._asked)]
        found: list[list[Any]] = [[] for _ in self._asked]
        with one_job(self._spark):
            whole = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), branches)
            for row in whole.collect():
                at, values = next((at, its) for at, its in enumerate(row) if its is not None)
                found[at].append(self._asked[at][0].kind(*(_plain(value) for value in values)))
        for (answer, _), its in zip(self._asked, found, strict=True):
            answer.rows = tuple(its)
        self._asked.clear()


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def convert_row(row: Row, kind: type[Kind]) -> Kind:
    """The fields that a kind has of a row."""
    return kind(**{one.name: getattr(row, one.name) for one in fields(kind)})


def count_if(condition: Column) -> Column:
    """How many rows meet a condition, 0 in an empty frame."""
    return fn.coalesce(fn.count_if(condition), fn.lit(0))


def total(column: Column | str) -> Column:
    """The sum of what is known, 0 in an empty frame."""
    return fn.coalesce(fn.sum(column), fn.lit(0))


def sums(*columns: str) -> list[Column]:
    """The sum of what is known of each, under its own name; null where nothing is."""
    return [fn.sum(name).alias(name) for name in columns]


def _ordered(name: str) -> Column:
    return fn.expr(name[1:]).desc_nulls_last() if name.startswith("-") else fn.col(name).asc_nulls_first()
