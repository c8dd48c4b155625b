"""The strategies side by side: how lopsided each would leave the groups."""

from __future__ import annotations

import math
from itertools import pairwise

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.charts import Picture, Series, histograms
from rmqlb.pipeline.report.frames import Row, Tables, count_if, rows, sums
from rmqlb.pipeline.report.page import Section, counts, decimals, grid_of, said, shares, words
from rmqlb.pipeline.report.text import share_of
from rmqlb.pipeline.schemas import REFUSALS
from rmqlb.views.report import percent

SKEW_BINS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, math.inf)
"""Bounds of the bins of skew; a bin's lower bound belongs to it. Skew is most / mean, so it is never below 1."""
EVEN, LOPSIDED = 1.25, 2.0
"""Up to the first a group counts as even; from the second on its busiest member has twice its due."""


_BINS = tuple(pairwise(SKEW_BINS))


class StrategyScores(Row, frozen=True):
    """All groups under one strategy.

    `bins`: groups in each bin of `SKEW_BINS`; `even`: groups up to `EVEN`;
    `refused`: (group, topic) pairs whose clients cannot run it, None when nobody noted them.
    """

    strategy: str
    groups: int
    running: int
    even: int
    median: float | None
    p90: float | None
    worst: float | None
    idle: int | None
    unowned: int | None
    refused: int | None
    bins: tuple[int, ...]


def strategy_scores(tables: Tables, scores: DataFrame) -> tuple[StrategyScores, ...]:
    """SCORES summed up by strategy."""
    skew = fn.col("skew")
    bins = [count_if((skew >= low) & (skew < high)) for low, high in _BINS]
    found = scores.groupBy("strategy").agg(
        fn.count("*").alias("groups"),
        count_if(fn.col("runs")).alias("running"),
        count_if(skew <= EVEN).alias("even"),
        fn.percentile("skew", 0.5).alias("median"),
        fn.percentile("skew", 0.9).alias("p90"),
        fn.max("skew").alias("worst"),
        *sums("idle", "unowned"),
        fn.array(*bins).alias("bins"),
    )
    refusals = tables.last(REFUSALS)
    if refusals is None:
        found = found.withColumn("refused", fn.lit(None).cast("bigint"))
    else:
        refused = refusals.groupBy("strategy").agg(fn.count("*").alias("refused"))
        found = found.join(fn.broadcast(refused), "strategy", "left").fillna(0, ["refused"])
    return rows(StrategyScores, found.orderBy("strategy"))


def strategies(found: tuple[StrategyScores, ...]) -> Section:
    """A histogram of skew for each strategy."""
    name, title = "skew", "How lopsided each strategy is"
    if not found:
        return Section(name, title, (said("Nothing: no group was scored."),))
    best = max(found, key=lambda one: share_of(one.even, one.groups) or 0)
    share = percent(share_of(best.even, best.groups) or 0)
    seen = said(
        "Each group was dealt its queues by every strategy, with the members and queues it has. {} leaves the most "
        f"groups even ({share} have a busiest consumer with at most {EVEN:g} times the mean).",
        best.strategy,
    )
    picture = histograms(
        Picture(name, title, "A histogram for each strategy: the share of groups by the skew of their queues."),
        [f"{low:g}–{high:g}" if math.isfinite(high) else f"{low:g}+" for low, high in _BINS],
        [Series(one.strategy, [share_of(count, one.groups) or 0 for count in one.bins]) for one in found],
        "queues of the busiest consumer / mean",
        "share of groups",
    )
    grid = grid_of(
        "The strategies by name. Worst tenth: one group in ten is at least so lopsided. Refused: topics of groups that "
        "cannot run it",
        found,
        words("strategy"),
        counts("groups", ("run it", "running")),
        shares((f"even (≤ {EVEN:g})", lambda one: share_of(one.even, one.groups))),
        decimals("median", ("worst tenth", "p90"), "worst"),
        counts("idle", ("without reader", "unowned"), "refused"),
    )
    advice = (
        "choose a strategy for what it does to your groups, not by its name; every member of a group must run the same "
        "one."
    )
    return Section(name, title, (seen,), advice, (picture,), (grid,))
