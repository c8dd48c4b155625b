"""What many snapshots show: moves, flapping groups, members that come and go, the trend of skew."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.frames import Tables, down, first, rows, total
from rmqlb.pipeline.report.values import ChurnDay, Flapping, MovesDay, TrendDay
from rmqlb.pipeline.schemas import CHURN, FLAPPING, MOVES, TREND

MOST_DAYS = 400
"""Days that the page looks back."""
MOST_LINES = 6
"""Clusters in the trend: those with the most groups."""


def history(tables: Tables, top: int) -> dict[str, Any]:
    """The fields of `Figures` that come from MOVES, FLAPPING, CHURN and TREND; `top` rows of each list."""
    found: dict[str, Any] = {}
    moves, flapping, churn, trend = (tables.whole(table) for table in (MOVES, FLAPPING, CHURN, TREND))
    if moves is not None:
        names = ("moved", "unassigned", "assigned", "observed")
        found["moves"] = _last_days(MovesDay, moves.groupBy("date").agg(*(total(name).alias(name) for name in names)))
    if flapping is not None:
        flaps = flapping.where("flaps")
        found["flaps"] = int(flaps.agg(fn.count("*")).collect()[0][0])
        order = (down("returns"), down("moves"), "cluster", "group")
        found["flapping"] = first(Flapping, flaps, top, *order)
    if churn is not None:
        compared = churn.where("joined is not null")  # else it is a group's first observation, from which nothing came
        days = compared.groupBy("date").agg(total("joined").alias("joined"), total("left").alias("left"))
        found["churn"] = _last_days(ChurnDay, days)
    if trend is not None:
        found["trend"] = _trend(trend)
    return found


def _last_days(kind: type[Any], days: DataFrame) -> tuple[Any, ...]:
    return first(kind, days.where("date is not null"), MOST_DAYS, fn.desc("date"))[::-1]


def _trend(trend: DataFrame) -> tuple[TrendDay, ...]:
    """The last snapshot of each day and cluster, summed up over its groups."""
    dated = trend.where("date is not null")
    order = fn.struct("takenAt", "snapshot")
    last = dated.groupBy("cluster", "date").agg(fn.max_by("snapshot", order).alias("snapshot"))
    days = (
        dated.join(last, ["cluster", "date", "snapshot"], "left_semi")
        .groupBy("cluster", "date")
        .agg(
            fn.count("*").alias("groups"),
            fn.percentile("skew", 0.5).alias("median"),
            fn.percentile("skew", 0.9).alias("p90"),
            fn.sum("idle").alias("idle"),
            fn.sum("unowned").alias("unowned"),
        )
    )
    largest = days.groupBy("cluster").agg(fn.max("groups").alias("most")).orderBy(down("most"), "cluster")
    few = days.join(fn.broadcast(largest.limit(MOST_LINES)), "cluster", "left_semi")
    newest = few.orderBy(fn.desc("date"), "cluster").limit(MOST_DAYS * MOST_LINES)
    return rows(TrendDay, newest.orderBy("cluster", "date"))
