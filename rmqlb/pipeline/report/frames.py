"""Frames → rows of values. A page's questions are gathered and answered together, in one job.

What a question may ask: a bounded number of rows, either the first of an order or sums by clusters, brokers, days.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import fields
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from rmqlb.pipeline.schemas import CLUSTERS, KEY, SCORES, SNAPSHOT, Table
from rmqlb.pipeline.storage.storage import Where
from rmqlb.pipeline.warehouse import Warehouse

_ADAPTIVE = "spark.sql.adaptive.enabled"
LOOK_BACK = 92
"""Days of history that a report looks back, so that an old warehouse costs no more than a young one."""
_MOST_NAMED = 200
"""Snapshots that a filter names; of more a join is made."""


class Row(Struct, frozen=True, rename="camel"):
    """What the page shows of something: a field is a column of the same name in camelCase, None is unknown."""


Kind = TypeVar("Kind", bound=Row)


class LastSnapshot(Row, frozen=True):
    """A cluster's last snapshot that was ingested, and how many there were; `taken`: microseconds since 1970."""

    cluster: str
    date: dt.date | None
    snapshot: str
    taken: int | None
    first_date: dt.date | None
    snapshots: int


class Snapshot(Row, frozen=True):
    """A snapshot by what names it."""

    cluster: str
    date: dt.date | None
    snapshot: str


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
    """The tables that a report reads, each listed once: of each night's only those of the last snapshots."""

    spark: SparkSession
    warehouse: Warehouse
    _frames: dict[str, DataFrame | None] = field(default_factory=dict, init=False)
    _kept: list[DataFrame] = field(default_factory=list, init=False)

    def whole(self, table: Table) -> DataFrame | None:
        """A table's rows; None when it is not there. The stages have rows of each cluster's last snapshot only."""
        return self._read(table, None)

    def judged(self, table: Table) -> DataFrame | None:
        """A table of ingest, of the snapshots that the page is about; None when it is not there."""
        chosen = self.snapshots
        where = {name: {getattr(one, name) for one in chosen} for name in KEY}
        frame = self._read(table, where)
        return None if frame is None else of_snapshots(self.spark, frame, chosen)

    def recent(self, table: Table) -> DataFrame | None:
        """A table of history, of the days that the page looks back; None when it is not there."""
        since = self.since
        days = None if since is None else [since + dt.timedelta(days=day) for day in range(LOOK_BACK)]
        return self._read(table, None if days is None else {"date": days})

    @property
    def since(self) -> dt.date | None:
        """The first day that the page looks back to; None when no snapshot has a date."""
        dates = [one.date for one in self.clusters if one.date is not None]
        return max(dates) - dt.timedelta(days=LOOK_BACK - 1) if dates else None

    @property
    def clusters(self) -> tuple[LastSnapshot, ...]:
        """Each cluster's last snapshot, as ingest knows it."""
        return self._known[0]

    @property
    def scored(self) -> tuple[Snapshot, ...]:
        """The snapshots in SCORES, one of a cluster."""
        return self._known[1]

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshots that the page is about: those that were scored, of other clusters the last."""
        scored = {one.cluster: one for one in self.scored}
        others = (convert_row(one, Snapshot) for one in self.clusters if one.cluster not in scored)
        return (*scored.values(), *others)

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

    def _read(self, table: Table, where: Where | None) -> DataFrame | None:
        if table.name not in self._frames:
            there = self.warehouse.stored(table.name) is not None
            self._frames[table.name] = self.warehouse.read(self.spark, table, where) if there else None
        return self._frames[table.name]

    @cached_property
    def _known(self) -> tuple[tuple[LastSnapshot, ...], tuple[Snapshot, ...]]:
        asked = Asked(self.spark)
        clusters, scores = self.whole(CLUSTERS), self.whole(SCORES)
        last = scored = None
        if clusters is not None:
            known = {"taken": fn.unix_micros("takenAt"), "snapshots": fn.expr("snapshots + untimed")}
            last = asked.rows(LastSnapshot, clusters.withColumns(known))
        if scores is not None:
            scored = asked.rows(Snapshot, scores.select(*KEY).distinct())
        asked.answer()
        return last.by("cluster") if last else (), scored.by("cluster", "snapshot") if scored else ()


def of_snapshots(spark: SparkSession, frame: DataFrame, chosen: Collection[Snapshot]) -> DataFrame:
    """The rows of these snapshots, of a frame that has few others."""
    pairs = sorted({(one.cluster, one.snapshot) for one in chosen})
    if len(pairs) > _MOST_NAMED:
        return frame.join(spark.createDataFrame(pairs, "cluster string, snapshot string"), list(SNAPSHOT), "semi")
    named = [
        fn.struct(fn.lit(cluster).alias("cluster"), fn.lit(snapshot).alias("snapshot")) for cluster, snapshot in pairs
    ]
    return frame.where(fn.struct(*SNAPSHOT).isin(named))


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
