"""The judge over a fleet: how each group's queues lie on its members under each strategy.

It measures rows of ASSIGNMENTS and knows nothing of how they came about; `rmqlb.engine.balance` says the same of one
group.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from rmqlb.engine.allocate import WITHOUT_SETTINGS
from rmqlb.engine.detect import DEFAULT
from rmqlb.pipeline.schemas import GROUP, LOADS, SCORES

_UNDER = (*GROUP, "strategy")


def loads(assignments: DataFrame, fleet: DataFrame) -> DataFrame:
    """What each client id gets from all its group's topics under each strategy, as rows of LOADS.

    Args:
        assignments: rows of ASSIGNMENTS.
        fleet: rows of FLEET, for the members that get nothing.
    """
    got = (
        assignments.where(sql.col("owner").isNotNull())
        .groupBy(*_UNDER, sql.col("owner").alias("clientId"))
        .agg(sql.count("*").cast("int").alias("queues"), _sum_if_known("lag").alias("lag"))
    )
    members = fleet.select(*GROUP, sql.posexplode("members").alias("place", "clientId"))
    ids = members.groupBy(*GROUP, "clientId").agg(
        sql.min("place").alias("place"), sql.count("*").cast("int").alias("processes")
    )
    everybody = assignments.select(*_UNDER).distinct().join(ids, list(GROUP))
    whole = everybody.join(got, [*_UNDER, "clientId"], "left")
    queues = sql.coalesce("queues", sql.lit(0))
    whole = whole.withColumns(
        {"lag": sql.when(sql.col("queues").isNull(), 0).otherwise(sql.col("lag")), "queues": queues}
    )
    # Means and what a group shows by windows: a join with what comes of the same rows would make these twice.
    mean = sql.avg("queues").over(Window.partitionBy(*_UNDER))
    return whole.withColumn("excess", sql.col("queues") - mean).select(*LOADS.columns)


def scores(assignments: DataFrame, loads: DataFrame, fleet: DataFrame) -> DataFrame:
    """Each group under each strategy, as rows of SCORES.

    Args:
        assignments: rows of ASSIGNMENTS.
        loads: rows of LOADS.
        fleet: rows of FLEET, for the strategies that members report.
    """
    whole = _queues(assignments, loads).join(_members(loads), list(_UNDER), "left")
    whole = whole.join(fleet.select(*GROUP, sql.col("strategy").alias("reported")), list(GROUP))
    whole = whole.withColumns(
        {
            "members": sql.coalesce("members", sql.lit(0)),
            "idle": sql.coalesce("idle", sql.lit(0)),
            "skew": sql.when(sql.col("mean") > 0, sql.col("most") / sql.col("mean")),
        }
    )
    whole = whole.withColumn("shown", _shown())
    runs, origin = _runs()
    return whole.withColumns({"runs": runs, "origin": sql.when(runs, origin)}).select(*SCORES.columns)


def _queues(assignments: DataFrame, loads: DataFrame) -> DataFrame:
    """What is counted by queue: a queue with several owners has a row for each of them."""
    shared = loads.where(sql.col("processes") > 1).select(
        *_UNDER, sql.col("clientId").alias("owner"), sql.lit(1).alias("isShared")
    )
    rows = assignments.join(sql.broadcast(shared), [*_UNDER, "owner"], "left")
    one = sql.when(sql.col("owners") > 1, 1 / sql.col("owners")).otherwise(sql.lit(1.0))
    lag = sql.round(sql.sum(sql.col("lag") * one)).cast("bigint")
    return rows.groupBy(*_UNDER).agg(
        sql.count_distinct("topic").cast("int").alias("topics"),
        _count(one).alias("queues"),
        _count(sql.when(sql.col("owner").isNull(), one)).alias("unowned"),
        _count(sql.when(sql.col("owners") > 1, one)).alias("multiplyOwned"),
        _count(sql.when(sql.col("isShared") == 1, one)).alias("sharedId"),
        sql.when(sql.count("lag") == sql.count("*"), lag).alias("lag"),
        _count(sql.when(sql.col("drifts").isNotNull(), one)).alias("observed"),
        _count(sql.when(sql.col("drifts"), one)).alias("drift"),
    )


def _members(loads: DataFrame) -> DataFrame:
    return loads.groupBy(*_UNDER).agg(
        sql.count("*").cast("int").alias("members"),
        sql.count_if(sql.col("queues") == 0).cast("int").alias("idle"),
        sql.min("queues").alias("least"),
        sql.max("queues").alias("most"),
        sql.avg("queues").alias("mean"),
        sql.when(sql.count("lag") == sql.count("*"), sql.max("lag")).alias("mostLag"),
        sql.min_by("excess", "place").alias("firstIdBias"),
    )


def _shown() -> Column:
    """The strategy that the queues show: all that were looked at lie as it says; the client's default first."""
    order = sql.array_position(sql.array(*(sql.lit(name) for name in WITHOUT_SETTINGS)), sql.col("strategy"))
    fits = (order > 0) & (sql.col("observed") > 0) & (sql.col("drift") == 0)
    return sql.min_by("strategy", sql.when(fits, order)).over(Window.partitionBy(*GROUP))


def _runs() -> tuple[Column, Column]:
    """Whether the group runs the row's strategy, and how that is known (`rmqlb.engine.detect`)."""
    reported, shown = sql.col("reported"), sql.col("shown")
    name = sql.coalesce(reported, shown, sql.lit(DEFAULT))
    origin = (
        sql.when(reported.isNotNull(), sql.lit("reported"))
        .when(shown.isNotNull(), sql.lit("observed"))
        .otherwise(sql.lit("assumed"))
    )
    return (sql.col("strategy") == name) | sql.startswith("strategy", sql.concat(name, sql.lit("-"))), origin


def _count(values: Column) -> Column:
    """A sum of fractions of queues, which add up to whole ones."""
    return sql.coalesce(sql.round(sql.sum(values)), sql.lit(0)).cast("int")


def _sum_if_known(column: str) -> Column:
    return sql.when(sql.count(column) == sql.count("*"), sql.sum(column))
