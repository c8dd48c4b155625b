"""What every change would do to the groups: other strategies, other numbers of members, lost brokers."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.frames import Tables, counted, down, first, rows
from rmqlb.pipeline.report.values import BrokerLoss, GroupChange, MemberChange, StrategyChange
from rmqlb.pipeline.schemas import BROKER_LOSSES, GROUP_IN_SNAPSHOT, KEY, WHAT_IF

_UNDER = (*GROUP_IN_SNAPSHOT, "strategy")
MOST_SUBJECTS = 200
"""Strategies times changes of members in one table."""


def changes(tables: Tables, runs: DataFrame | None, top: int) -> dict[str, Any]:
    """The fields of `Figures` that come from WHAT_IF and BROKER_LOSSES.

    Args:
        tables: of the warehouse.
        runs: SCORES under the strategy that each group runs; None when nothing was scored.
        top: the rows of each list.
    """
    whole = tables.last(WHAT_IF)
    losses = tables.last(BROKER_LOSSES)
    what_if = None if whole is None else _of_running(whole, runs)
    found: dict[str, Any] = {}
    if what_if is not None:
        found |= _other_strategies(what_if.where("change = 'strategy' and strategyAfter <> strategy"), top)
        found["member_changes"] = _members(what_if.where("change = 'members'"))
    if what_if is not None or losses is not None:
        found["brokers"] = _brokers(tables, what_if, losses, top)
    return found


def _of_running(what_if: DataFrame, runs: DataFrame | None) -> DataFrame:
    """Rows about the strategy that a group runs, with what its busiest member holds now; all rows without scores."""
    if runs is None:
        return what_if.withColumn("mostBefore", fn.lit(None).cast("int"))
    return what_if.join(runs.select(*_UNDER, fn.col("most").alias("mostBefore")), list(_UNDER))


def _other_strategies(what_if: DataFrame, top: int) -> dict[str, Any]:
    gain = fn.expr("mostBefore - mostAfter")
    whole = what_if.withColumns({"gain": gain, "queues": fn.col("queuesBefore"), "members": fn.col("membersBefore")})
    summary = whole.groupBy("strategyAfter").agg(
        fn.count("*").alias("groups"),
        counted(gain > 0).alias("better"),
        counted(gain == 0).alias("same"),
        counted(gain < 0).alias("worse"),
        *(fn.sum(name).alias(name) for name in ("queues", "moved", "idleBefore", "idleAfter")),
    )
    by_group = Window.partitionBy(*KEY, "group").orderBy(down("gain"), "moved", "strategyAfter")
    best = whole.where(gain > 0).withColumn("nth", fn.row_number().over(by_group)).where("nth = 1")
    return {
        "strategy_changes": rows(StrategyChange, summary.orderBy("strategyAfter")),
        "gains": first(GroupChange, best, top, down("gain"), "moved", "cluster", "group"),
    }


def _members(what_if: DataFrame) -> tuple[MemberChange, ...]:
    found = what_if.groupBy("strategy", "subject").agg(
        fn.count("*").alias("groups"),
        fn.sum("queuesBefore").alias("queues"),
        *(fn.sum(name).alias(name) for name in ("moved", "idleBefore", "idleAfter")),
    )
    return first(MemberChange, found, MOST_SUBJECTS, "strategy", fn.expr("try_cast(subject as int)"), "subject")


def _brokers(tables: Tables, what_if: DataFrame | None, losses: DataFrame | None, top: int) -> tuple[BrokerLoss, ...]:
    if what_if is None:
        what_if = tables.spark.createDataFrame([], WHAT_IF.ddl)
    if losses is None:
        losses = tables.spark.createDataFrame([], BROKER_LOSSES.ddl)
    groups = (
        what_if.where("change = 'broker-lost'")
        .groupBy("cluster", fn.col("subject").alias("brokerName"))
        .agg(
            counted(fn.expr("moved > 0 or removed > 0")).alias("groups"),
            *(fn.sum(name).alias(name) for name in ("moved", "removed", "lagMoved", "idleAfter", "unownedAfter")),
        )
    )
    topics = losses.groupBy("cluster", "brokerName").agg(
        fn.count("*").alias("topics"),
        counted(fn.expr("writeQueuesBefore > 0 and writeQueuesAfter = 0")).alias("withoutWrite"),
        counted(fn.expr("readQueuesBefore > 0 and readQueuesAfter = 0")).alias("withoutRead"),
    )
    found = groups.join(topics, ["cluster", "brokerName"], "full").withColumn(
        "touched", fn.expr("coalesce(moved, 0) + coalesce(removed, 0)")
    )
    order = (down("withoutWrite"), down("touched"), down("lagMoved"), "cluster", "brokerName")
    return first(BrokerLoss, found, top, *order)
