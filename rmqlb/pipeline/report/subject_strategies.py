"""The strategies side by side: how balanced each would leave the groups."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.charts import Picture, Series, histograms
from rmqlb.pipeline.report.frames import Asked, Row, Tables, count_if, sums
from rmqlb.pipeline.report.page import Section, counts, decimals, grid_of, said, shares, words
from rmqlb.pipeline.report.queries import sum_query
from rmqlb.pipeline.report.text import share_of
from rmqlb.pipeline.schemas import REFUSALS
from rmqlb.views.report import percent

IMBALANCE_BINS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, math.inf)
"""Bounds of the bins of imbalance, which is never below 1; a bin's lower bound belongs to it."""
BALANCED, IMBALANCED = 1.25, 2.0
"""Up to the first a group counts as balanced, from the second on as imbalanced."""


_BINS = tuple(pairwise(IMBALANCE_BINS))


class StrategyScores(Row, frozen=True):
    """All groups under one strategy.

    `bins`: groups in each bin of `IMBALANCE_BINS`; `balanced`: groups up to `BALANCED`.
    """

    strategy: str
    groups: int
    running: int
    balanced: int
    p50: float | None
    p90: float | None
    max: float | None
    idle: int | None
    unassigned: int | None
    bins: tuple[int, ...]


class Refused(Row, frozen=True):
    """How many (group, topic) pairs refuse a strategy."""

    strategy: str
    refused: int


def strategy_scores(
    tables: Tables, asked: Asked, scores: DataFrame
) -> Callable[[], tuple[tuple[StrategyScores, ...], tuple[Refused, ...] | None]]:
    """SCORES summed up by strategy, and REFUSALS, None where nobody noted them."""
    imbalance = fn.col("imbalance")
    bins = [count_if((imbalance >= low) & (imbalance < high)) for low, high in _BINS]
    found = scores.groupBy("strategy").agg(
        fn.count("*").alias("groups"),
        count_if(fn.col("runs")).alias("running"),
        count_if(imbalance <= BALANCED).alias("balanced"),
        fn.percentile("imbalance", 0.5).alias("p50"),
        fn.percentile("imbalance", 0.9).alias("p90"),
        fn.max("imbalance").alias("max"),
        *sums("idle", "unassigned"),
        fn.array(*bins).alias("bins"),
    )
    answer, refusals = asked.rows(StrategyScores, found), tables.last(REFUSALS)
    if refusals is None:
        return lambda: (answer.by("strategy"), None)
    refused = asked.rows(Refused, refusals.groupBy("strategy").agg(fn.count("*").alias("refused")))
    return lambda: (answer.by("strategy"), refused.rows)


_REFUSED = sum_query("refusals", ["strategy"], [("count(*)", "refused")], order=["strategy"])
QUERY = sum_query(
    "scores",
    ["strategy"],
    [
        ("count(*)", "groups"),
        ("sum(CASE WHEN runs THEN 1 ELSE 0 END)", "running"),
        (f"sum(CASE WHEN imbalance <= {BALANCED} THEN 1 ELSE 0 END)", "balanced"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY imbalance)", "p50"),
        ("percentile_cont(0.9) WITHIN GROUP (ORDER BY imbalance)", "p90"),
        ("max(imbalance)", "max"),
        ("sum(idle)", "idle"),
        ("sum(unassigned)", "unassigned"),
    ],
    order=["strategy"],
)


def strategies(found: tuple[StrategyScores, ...], refusals: tuple[Refused, ...] | None = None) -> Section:
    """A histogram of imbalance for each strategy."""
    name, title = "imbalance", "Imbalance under each strategy"
    if not found:
        return Section(name, title, (said("Nothing: no group was scored."),))
    refused = {one.strategy: one.refused for one in refusals or ()}
    none = None if refusals is None else 0
    best = max(found, key=lambda one: share_of(one.balanced, one.groups) or 0)
    share = percent(share_of(best.balanced, best.groups) or 0)
    seen = said(
        "Each group under every strategy, with the consumers and queues it has. {} balances the most groups "
        f"({share} have a busiest consumer with at most {BALANCED:g} times the mean).",
        best.strategy,
    )
    picture = histograms(
        Picture(name, title, "A histogram for each strategy: the share of groups by imbalance."),
        [f"{low:g}–{high:g}" if math.isfinite(high) else f"{low:g}+" for low, high in _BINS],
        [Series(one.strategy, [share_of(count, one.groups) or 0 for count in one.bins]) for one in found],
        "imbalance: queues of the busiest consumer / mean",
        "share of groups",
    )
    grid = grid_of(
        "The strategies by name, p50, p90 and max of imbalance. Refused: topics of groups that cannot run it",
        found,
        words("strategy"),
        counts("groups", ("run it", "running")),
        shares((f"balanced (≤ {BALANCED:g})", lambda one: share_of(one.balanced, one.groups))),
        decimals("p50", "p90", "max"),
        counts("idle", "unassigned", ("refused", lambda one: refused.get(one.strategy, none))),
        queries=(QUERY,) if refusals is None else (QUERY, _REFUSED),
    )
    advice = (
        "choose a strategy for what it does to your groups, not by its name; every consumer of a group must run the "
        "same one."
    )
    return Section(name, title, (seen,), advice, (picture,), (grid,))
