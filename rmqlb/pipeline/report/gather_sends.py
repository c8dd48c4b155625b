"""What producers went through under the failure schedules."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.frames import Tables, counted, down, first, rows
from rmqlb.pipeline.report.values import BrokerSends, Scenario, SendTotals, TopicSends
from rmqlb.pipeline.schemas import SEND_SHARES, SENDS

MOST_SCENARIOS = 100
"""Scenarios in one table."""
_CASE = ("scenario", "latencyFault")


def sends(tables: Tables, top: int) -> dict[str, Any]:
    """The fields of `Figures` that come from SENDS and SEND_SHARES; `top` rows of each list."""
    found: dict[str, Any] = {}
    topics, shares = tables.last(SENDS), tables.last(SEND_SHARES)
    if topics is not None:
        scenarios = _scenarios(topics)
        sums = scenarios.agg(*(fn.sum(name).alias(name) for name in ("messages", "lost")))
        found["send_totals"] = rows(SendTotals, sums)[0]
        worst = (down("lostShare"), down("extraAttempts"), *_CASE)
        found["scenarios"] = first(Scenario, scenarios, MOST_SCENARIOS, *worst)
        order = (down("lost"), down("anyLost"), "cluster", "topic", *_CASE)
        found["losing"] = first(TopicSends, topics.where("lost > 0"), top, *order)
    if shares is not None:
        order = (down("failures"), down("attempts"), "cluster", "brokerName", *_CASE)
        found["broker_sends"] = first(BrokerSends, _brokers(shares), top, *order)
    return found


def _scenarios(topics: DataFrame) -> DataFrame:
    found = topics.groupBy(*_CASE).agg(
        fn.count("*").alias("topics"),
        counted(fn.col("lost") > 0).alias("losing"),
        *(fn.sum(name).alias(name) for name in ("messages", "extraAttempts", "lost")),
        fn.max("longestMs").alias("longestMs"),
    )
    return found.withColumn("lostShare", fn.try_divide("lost", "messages"))


def _brokers(shares: DataFrame) -> DataFrame:
    brokers = shares.groupBy("cluster", "brokerName", *_CASE).agg(
        fn.sum("attempts").alias("attempts"), fn.sum("failures").alias("failures")
    )
    everywhere = fn.sum("attempts").over(Window.partitionBy("cluster", *_CASE))
    return brokers.withColumn("share", fn.try_divide(fn.col("attempts"), everywhere))
