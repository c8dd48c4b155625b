"""What producers went through under the failure schedules."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from rmqlb.pipeline.report.frames import Tables, counted, down, first
from rmqlb.pipeline.report.values import BrokerSends, Scenario, TopicSends
from rmqlb.pipeline.schemas import SEND_SHARES, SENDS

MOST_SCENARIOS = 100
"""Scenarios in one table."""
_CASE = ("scenario", "latencyFault")


def sends(tables: Tables, top: int) -> dict[str, Any]:
    """The fields of `Figures` that come from SENDS and SEND_SHARES; `top` rows of each list."""
    found: dict[str, Any] = {}
    topics, shares = tables.last(SENDS), tables.last(SEND_SHARES)
    if topics is not None:
        found["scenarios"] = first(Scenario, _scenarios(topics), MOST_SCENARIOS, *_CASE)
        order = (down("lost"), down("anyLost"), "cluster", "topic", *_CASE)
        found["losing"] = first(TopicSends, topics.where("lost > 0"), top, *order)
    if shares is not None:
        order = (down("failures"), down("attempts"), "cluster", "brokerName", *_CASE)
        found["broker_sends"] = first(BrokerSends, _brokers(shares), top, *order)
    return found


def _scenarios(topics: DataFrame) -> DataFrame:
    return topics.groupBy(*_CASE).agg(
        sql.count("*").alias("topics"),
        counted(sql.col("lost") > 0).alias("losing"),
        *(sql.sum(name).alias(name) for name in ("messages", "extraAttempts", "lost")),
        sql.max("longestMs").alias("longestMs"),
    )


def _brokers(shares: DataFrame) -> DataFrame:
    brokers = shares.groupBy("cluster", "brokerName", *_CASE).agg(
        sql.sum("attempts").alias("attempts"), sql.sum("failures").alias("failures")
    )
    everywhere = sql.sum("attempts").over(Window.partitionBy("cluster", *_CASE))
    return brokers.withColumn("share", sql.try_divide(sql.col("attempts"), everywhere))
