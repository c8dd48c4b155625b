"""Frames → rows of values, collected only through `rows`, after the caller has bounded them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import fields
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from rmqlb.pipeline.schemas import DOCUMENTS, KEY, Table
from rmqlb.pipeline.warehouse import Warehouse


class Row(Struct, frozen=True, rename="camel"):
    """What the page shows of something: a field is a column of the same name in camelCase, None is unknown."""


Kind = TypeVar("Kind", bound=Row)


@dataclass(frozen=True)
class Tables:
    """The tables that a report reads."""

    spark: SparkSession
    warehouse: Warehouse

    def whole(self, table: Table) -> DataFrame | None:
        """A table's rows; None when it is not there."""
        return None if self.warehouse.stored(table.name) is None else self.warehouse.read(self.spark, table)

    def last(self, table: Table) -> DataFrame | None:
        """A table's rows of each cluster's last snapshot among those it tells of; None when it is not there."""
        frame = self.whole(table)
        if frame is None:
            return None
        seen = {(row.cluster, row.snapshot): row.date for row in frame.select(*KEY).distinct().collect()}
        if len({cluster for cluster, _ in seen}) == len(seen):
            return frame
        # What is unknown comes before all that is known; of each cluster the last one stays.
        order = sorted(seen, key=lambda key: (self.taken.get(key, -1), str(seen[key] or ""), key[1]))
        last = list(dict(order).items())
        pairs = self.spark.createDataFrame(last, "cluster string, snapshot string")
        return frame.join(fn.broadcast(pairs), ["cluster", "snapshot"], "left_semi")

    @cached_property
    def taken(self) -> dict[tuple[str, str], int]:
        """(cluster, snapshot) → when it was taken, in microseconds since 1970, where that is known."""
        documents = self.warehouse.read_or_empty(self.spark, DOCUMENTS).where("takenAt is not null")
        found = documents.groupBy("cluster", "snapshot").agg(fn.unix_micros(fn.max("takenAt"))).collect()
        return {(cluster, snapshot): taken for cluster, snapshot, taken in found}


def rows(kind: type[Kind], frame: DataFrame) -> tuple[Kind, ...]:
    """All rows of a frame that has a column for each field of `kind`, in the frame's order."""
    found = frame.select(*(field.encode_name for field in fields(kind))).collect()
    return tuple(kind(*(tuple(value) if isinstance(value, list) else value for value in row)) for row in found)


def first(kind: type[Kind], frame: DataFrame, top: int, *order: Column | str) -> tuple[Kind, ...]:
    """The first rows by an order; what decides ties belongs to the order."""
    return rows(kind, frame.orderBy(*order).limit(top))


def count_if(condition: Column) -> Column:
    """How many rows meet a condition, 0 in an empty frame."""
    return fn.coalesce(fn.count_if(condition), fn.lit(0))


def total(column: Column | str) -> Column:
    """The sum of what is known, 0 in an empty frame."""
    return fn.coalesce(fn.sum(column), fn.lit(0))


def sums(*columns: str) -> list[Column]:
    """The sum of what is known of each, under its own name; null where nothing is."""
    return [fn.sum(name).alias(name) for name in columns]


def down(name: str) -> Column:
    """Largest first, unknown last."""
    return fn.desc_nulls_last(name)
