"""The figures of the page, from the warehouse: groups and strategies here, the rest beside it.

Rules of this file:
- What a section speaks of is each cluster's last snapshot; history speaks of all.
- Every order ends in names, so that equal data gives equal pages.
"""

from __future__ import annotations

import math
from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.figures import Figures, Worst
from rmqlb.pipeline.report.frames import Tables, counted, down, first, rows, running, total
from rmqlb.pipeline.report.gather_changes import changes
from rmqlb.pipeline.report.gather_history import history
from rmqlb.pipeline.report.gather_sends import sends
from rmqlb.pipeline.report.values import (
    EVEN,
    LOPSIDED,
    SKEW_BINS,
    Cluster,
    Exported,
    GroupScore,
    Quarantined,
    SeenGroup,
    StrategyScores,
    Totals,
)
from rmqlb.pipeline.schemas import DOCUMENTS, FLEET, GROUP_IN_SNAPSHOT, QUARANTINE, REFUSALS, SCORES

MOST_CLUSTERS = 200
"""Clusters in the first table of the page."""


def figures(tables: Tables, top: int, exported: tuple[Exported, ...]) -> Figures:
    """All figures of the page.

    Args:
        tables: of the warehouse.
        top: the rows of each list.
        exported: the tables that lie beside the page.
    """
    scores = tables.last(SCORES)
    runs = None if scores is None else running(scores)
    quarantine = tables.whole(QUARANTINE)
    return Figures(
        clusters=_clusters(tables, runs),
        worst=None if runs is None else _worst(_as_seen(tables, runs), top),
        strategies=None if scores is None else _strategies(tables, scores),
        quarantine=None if quarantine is None else first(Quarantined, quarantine, top, "file", "position", "reason"),
        quarantined=next((table.rows for table in exported if table.name == QUARANTINE.name), 0),
        tables=exported,
        **changes(tables, runs, top),
        **sends(tables, top),
        **history(tables, top),
    )


def _clusters(tables: Tables, runs: DataFrame | None) -> tuple[Cluster, ...]:
    documents = tables.whole(DOCUMENTS)
    if documents is None and runs is None:
        return ()
    seen = tables.warehouse.read_or_empty(tables.spark, DOCUMENTS)
    seen = seen.groupBy("cluster").agg(
        fn.count_distinct("snapshot").alias("snapshots"),
        fn.min("date").alias("firstDate"),
        fn.max("date").alias("lastDate"),
    )
    scored = tables.warehouse.read_or_empty(tables.spark, SCORES) if runs is None else runs
    scored = scored.groupBy("cluster").agg(
        fn.count("*").alias("groups"),
        fn.max("date").alias("scoredDate"),
        *(fn.sum(name).alias(name) for name in ("members", "queues", "idle", "unowned")),
    )
    whole = seen.join(scored, "cluster", "full")
    for name in ("firstDate", "lastDate"):
        whole = whole.withColumn(name, fn.coalesce(name, "scoredDate"))
    return first(Cluster, whole, MOST_CLUSTERS, "cluster")


def _as_seen(tables: Tables, runs: DataFrame) -> DataFrame:
    """Groups with how many of their queues were seen with nobody, and with several; null where FLEET does not tell."""
    fleet = tables.last(FLEET)
    if fleet is None:
        return runs.withColumns({"heldByNobody": fn.lit(None).cast("int"), "heldBySeveral": fn.lit(None).cast("int")})
    topics = fleet.select(*GROUP_IN_SNAPSHOT, fn.explode("topics").alias("read"))
    queues = topics.select(*GROUP_IN_SNAPSHOT, fn.explode("read.owners").alias("queue"))
    holders = fn.size(fn.array_distinct("queue.owners"))
    seen = queues.groupBy(*GROUP_IN_SNAPSHOT).agg(
        counted(holders == 0).alias("heldByNobody"), counted(holders > 1).alias("heldBySeveral")
    )
    return runs.join(seen, list(GROUP_IN_SNAPSHOT), "left")


def _worst(groups: DataFrame, top: int) -> Worst:
    share = fn.try_divide("mostLag", "lag")
    groups = groups.withColumns({"lagShare": fn.when(fn.col("lag") > 0, share), "excess": fn.expr("most - mean")})
    waits = fn.expr("members > 1 and lagShare > 0.5")
    names = ("cluster", "group")
    totals = groups.agg(
        fn.count("*").alias("groups"),
        counted(fn.col("skew") >= LOPSIDED).alias("lopsided"),
        counted(fn.col("idle") > 0).alias("withIdle"),
        total("idle").alias("idle"),
        total(fn.greatest(fn.lit(0), fn.least(fn.col("idle"), fn.expr("members - queues")))).alias("surplus"),
        counted(fn.col("unowned") > 0).alias("withUnowned"),
        total("unowned").alias("unowned"),
        counted(fn.col("multiplyOwned") > 0).alias("withMultiplyOwned"),
        total("multiplyOwned").alias("multiplyOwned"),
        counted(waits).alias("onOneMember"),
        total("observed").alias("observed"),
        counted(fn.col("drift") > 0).alias("withDrift"),
        total("drift").alias("drift"),
        fn.sum("heldByNobody").alias("heldByNobody"),
        fn.sum("heldBySeveral").alias("heldBySeveral"),
    )
    doubtful = groups.where("unowned > 0 or multiplyOwned > 0")
    otherwise = groups.where("drift > 0 or heldByNobody > 0 or heldBySeveral > 0")
    return Worst(
        totals=rows(Totals, totals)[0],
        unowned=first(GroupScore, doubtful, top, down("unowned"), down("multiplyOwned"), down("lag"), *names),
        # With fewer queues than members the skew only says that some are idle, which has a section of its own.
        lopsided=first(
            GroupScore, groups.where("skew > 1 and queues >= members"), top, down("skew"), down("excess"), *names
        ),
        idle=first(GroupScore, groups.where("idle > 0"), top, down("idle"), *names),
        one_member=first(GroupScore, groups.where(waits), top, down("mostLag"), down("lagShare"), *names),
        drift=first(
            SeenGroup, otherwise, top, down("heldByNobody"), down("heldBySeveral"), down("drift"), down("lag"), *names
        ),
    )


def _strategies(tables: Tables, scores: DataFrame) -> tuple[StrategyScores, ...]:
    skew = fn.col("skew")
    found = scores.groupBy("strategy").agg(
        fn.count("*").alias("groups"),
        counted(fn.col("runs")).alias("running"),
        counted(skew <= EVEN).alias("even"),
        fn.percentile("skew", 0.5).alias("median"),
        fn.percentile("skew", 0.9).alias("p90"),
        fn.max("skew").alias("worst"),
        fn.sum("idle").alias("idle"),
        fn.sum("unowned").alias("unowned"),
        fn.array(*_bins(skew)).alias("bins"),
    )
    refusals = tables.last(REFUSALS)
    if refusals is None:
        found = found.withColumn("refused", fn.lit(None).cast("bigint"))
    else:
        counts = refusals.groupBy("strategy").agg(fn.count("*").alias("refused"))
        found = found.join(fn.broadcast(counts), "strategy", "left").fillna(0, ["refused"])
    return rows(StrategyScores, found.orderBy("strategy"))


def _bins(skew: Column) -> list[Column]:
    return [
        counted((skew >= low) & (skew < high) if math.isfinite(high) else (skew >= low))
        for low, high in pairwise(SKEW_BINS)
    ]
