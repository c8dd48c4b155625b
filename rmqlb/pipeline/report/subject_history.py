"""What many snapshots show: moves, flapping groups, processes that come and go, imbalance over time."""

from __future__ import annotations

import datetime as dt
from itertools import groupby
from typing import Any, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.charts import Picture, Series, bars_of, days, lines
from rmqlb.pipeline.report.codes import FLAPPING_GROUP
from rmqlb.pipeline.report.frames import Row, Tables, down, first, rows, sums, total
from rmqlb.pipeline.report.page import Column, Grid, Section, counts, decimals, grid_of, names, said, shares, words
from rmqlb.pipeline.report.text import capitalize_first, number_of, share_of
from rmqlb.pipeline.schemas import CHURN, FLAPPING, MOVES, TREND

MOST_DAYS = 400
"""Days that the page looks back."""
IN_TABLE = 31
"""Days of a table; the picture has more."""
MOST_LINES = 6
"""Clusters in the trend: those with the most groups."""


class MovesDay(Row, frozen=True):
    """Changes of owners on a day, over all groups."""

    date: dt.date
    moved: int
    newly_unassigned: int
    newly_assigned: int
    observed: int


class ChurnDay(Row, frozen=True):
    """Processes that came and went on a day, over all groups."""

    date: dt.date
    joined: int
    left: int


class Flapping(Row, frozen=True):
    """A group whose queues go back and forth."""

    cluster: str
    group: str
    moved: int | None
    returns: int | None
    queues: int | None
    days: int | None
    moved_per_day: float | None


class TrendDay(Row, frozen=True):
    """A cluster's groups as they were observed on a day: imbalance, idle consumers, unassigned queues."""

    cluster: str
    date: dt.date
    groups: int
    p50: float | None
    p90: float | None
    idle: int | None
    unassigned: int | None


Day = TypeVar("Day", MovesDay, ChurnDay)


def history(tables: Tables, top: int) -> dict[str, Any]:
    """The fields of `Figures` that come from MOVES, FLAPPING, CHURN and TREND."""
    found: dict[str, Any] = {}
    moved, flaps, joined, imbalances = (tables.whole(table) for table in (MOVES, FLAPPING, CHURN, TREND))
    if moved is not None:
        found["moves"] = _last_days(MovesDay, moved, "moved", "newlyUnassigned", "newlyAssigned", "observed")
    if flaps is not None:
        flaps = flaps.where("flaps")
        found["flaps"] = flaps.count()
        found["flapping"] = first(Flapping, flaps, top, down("returns"), down("moved"), "cluster", "group")
    if joined is not None:  # where it is null, it is a group's first observation, from which nothing came
        found["churn"] = _last_days(ChurnDay, joined.where("joined is not null"), "joined", "left")
    if imbalances is not None:
        found["trend"] = _trend(imbalances)
    return found


def _last_days(kind: type[Day], found: DataFrame, *names: str) -> tuple[Day, ...]:
    by_day = found.where("date is not null").groupBy("date").agg(*(total(name).alias(name) for name in names))
    return first(kind, by_day, MOST_DAYS, fn.desc("date"))[::-1]


def _trend(imbalances: DataFrame) -> tuple[TrendDay, ...]:
    """The last snapshot of each day and cluster, summed up over its groups."""
    dated = imbalances.where("date is not null")
    order = fn.struct("takenAt", "snapshot")
    last = dated.groupBy("cluster", "date").agg(fn.max_by("snapshot", order).alias("snapshot"))
    by_day = (
        dated.join(last, ["cluster", "date", "snapshot"], "left_semi")
        .groupBy("cluster", "date")
        .agg(
            fn.count("*").alias("groups"),
            fn.percentile("imbalance", 0.5).alias("p50"),
            fn.percentile("imbalance", 0.9).alias("p90"),
            *sums("idle", "unassigned"),
        )
    )
    largest = by_day.groupBy("cluster").agg(fn.max("groups").alias("most")).orderBy(down("most"), "cluster")
    few = by_day.join(fn.broadcast(largest.limit(MOST_LINES)), "cluster", "left_semi")
    newest = few.orderBy(fn.desc("date"), "cluster").limit(MOST_DAYS * MOST_LINES)
    return rows(TrendDay, newest.orderBy("cluster", "date"))


def _days_grid(found: tuple[Day, ...], *parts: tuple[Column, ...]) -> Grid:
    caption = f"The last {number_of(min(IN_TABLE, len(found)), 'day')}, newest first"
    return grid_of(caption, found[: -IN_TABLE - 1 : -1], words(("day", "date")), *parts)


def moves(found: tuple[MovesDay, ...]) -> Section:
    """Queues with another owner than before, day by day."""
    name, title = "moves", "Queues moved per day"
    if not found:
        return Section(name, title, (said("Nothing: no queue was observed twice."),))
    most = max(found, key=lambda one: one.moved)
    seen = said(
        f"On {{}} days {{}} queues moved; most on {most.date}: {{}}.",
        len(found), sum(one.moved for one in found), most.moved,
    )  # fmt: skip
    picture = days(
        Picture(name, title, "Columns: queues that moved, became unassigned or were assigned, day by day."),
        [one.date for one in found],
        [
            Series("moved", [one.moved for one in found]),
            Series("newly unassigned", [one.newly_unassigned for one in found]),
            Series("newly assigned", [one.newly_assigned for one in found]),
        ],
        [],
        "queues",
    )
    grid = _days_grid(
        found,
        counts("observed", "moved"),
        shares(("of these", lambda one: share_of(one.moved, one.observed))),
        counts("newly_unassigned", "newly_assigned"),
    )
    advice = (
        "compare the high days with deployments and broker restarts. What moves and returns between two "
        "snapshots is not observed: take snapshots more often to see more."
    )
    return Section(name, title, (seen,), advice, (picture,), (grid,))


def flapping(found: tuple[Flapping, ...], flaps: int) -> Section:
    """The most restless of so many groups that flap."""
    name, title = "flapping", "Flapping groups"
    if not found:
        return Section(name, title, (said("Nothing: no group's queues go back and forth."),))
    top = found[0]
    seen = said(
        f"{capitalize_first(number_of(flaps, 'group'))} flap: queues go back to owners that they had before. Most "
        "queues returned in {} in {}, with {} moves and {} returns in {} days.",
        top.group, top.cluster, top.moved, top.returns, top.days,
    )  # fmt: skip
    away = "to another", lambda one: None if one.moved is None else max(0, one.moved - (one.returns or 0))
    picture = bars_of(
        Picture(name, title, "Bars: moves back to an earlier owner and other moves, for the groups with most returns."),
        found,
        "group",
        counts(("back to an earlier owner", "returns"), away),
        "moves",
    )
    grid = grid_of(
        "Groups with the most returns first",
        found,
        names("cluster", "group"),
        counts("moved", "returns", "queues", "days"),
        decimals("moved_per_day"),
    )
    advice = (
        "look for consumers that restart or lose their connection again and again; each return is a rebalance, and "
        "redelivered messages."
    )
    return Section(name, title, (seen,), advice, (picture,), (grid,), (FLAPPING_GROUP,))


def churn(found: tuple[ChurnDay, ...]) -> Section:
    """Processes that came and went, day by day."""
    name, title = "churn", "Processes that join and leave"
    if not found:
        return Section(name, title, (said("Nothing: no group was observed twice."),))
    joined, left = sum(one.joined for one in found), sum(one.left for one in found)
    picture = days(
        Picture(name, title, "Columns: processes that joined, upwards, and that left, downwards, day by day."),
        [one.date for one in found],
        [Series("joined", [one.joined for one in found])],
        [Series("left", [one.left for one in found])],
        "processes",
    )
    seen = said("On {} days {} processes joined and {} left.", len(found), joined, left)
    advice = (
        "give processes a client ID that a restart keeps where you can: a new one comes at another place in the sorted "
        "list, and moves the queues of others."
    )
    return Section(name, title, (seen,), advice, (picture,), (_days_grid(found, counts("joined", "left")),))


def trend(found: tuple[TrendDay, ...]) -> Section:
    """Imbalance of observed ownership, for each cluster over time."""
    name, title = "trend", "Imbalance over time"
    if not found:
        return Section(name, title, (said("Nothing: the snapshots report no owners."),))
    clusters = [(cluster, list(its)) for cluster, its in groupby(found, key=lambda one: one.cluster)]
    drawn = [(cluster, [(one.date, one.p90) for one in its if one.p90 is not None]) for cluster, its in clusters]
    known = [(cluster, points) for cluster, points in drawn if points]
    picture = Picture(name, title, "Lines: p90 of the imbalance of groups, for each cluster over time.")
    grid = grid_of(
        "Each cluster on its first and on its last day; of many clusters the six with the most groups",
        [(its[0], its[-1]) for _, its in clusters],
        names(("cluster", lambda pair: pair[0].cluster)),
        words(("first", lambda pair: pair[0].date), ("last", lambda pair: pair[1].date)),
        counts(("groups then", lambda pair: pair[0].groups), ("now", lambda pair: pair[1].groups)),
        decimals(("p50 then", lambda pair: pair[0].p50), ("now", lambda pair: pair[1].p50)),
        decimals(("p90 then", lambda pair: pair[0].p90), ("now", lambda pair: pair[1].p90)),
        counts(("idle then", lambda pair: pair[0].idle), ("now", lambda pair: pair[1].idle)),
    )
    seen = said("Of observed owners, not of predicted ones; p90: one group in ten is at least so imbalanced.")
    advice = (
        "where a line rises, new topics have numbers of queues that the numbers of consumers do not divide: see the "
        "most imbalanced groups above."
    )
    pictures = (lines(picture, known, "imbalance, p90"),) if known else ()
    return Section(name, title, (seen,), advice, pictures, (grid,))
