"""What many snapshots show: moves, flapping groups, members that come and go, the trend of skew."""

from __future__ import annotations

import datetime as dt
from itertools import groupby
from typing import Any, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.charts import IN_PICTURE, Picture, Series, bars, days, lines
from rmqlb.pipeline.report.frames import Row, Tables, down, first, rows, sums, total
from rmqlb.pipeline.report.page import Column, Grid, Section, counts, decimals, grid_of, names, said, shares, words
from rmqlb.pipeline.report.text import capitalize_first, labels_of, number_of, share_of
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
    unassigned: int
    assigned: int
    observed: int


class ChurnDay(Row, frozen=True):
    """Members that came and went on a day, over all groups."""

    date: dt.date
    joined: int
    left: int


class Flapping(Row, frozen=True):
    """A group whose queues go to and fro."""

    cluster: str
    group: str
    moves: int | None
    returns: int | None
    queues: int | None
    days: int | None
    moves_a_day: float | None


class TrendDay(Row, frozen=True):
    """A cluster's groups as they were seen on a day; `p90`: one group in ten is at least so lopsided."""

    cluster: str
    date: dt.date
    groups: int
    median: float | None
    p90: float | None
    idle: int | None
    unowned: int | None


Day = TypeVar("Day", MovesDay, ChurnDay)


def history(tables: Tables, top: int) -> dict[str, Any]:
    """The fields of `Figures` that come from MOVES, FLAPPING, CHURN and TREND."""
    found: dict[str, Any] = {}
    moved, flaps, joined, skews = (tables.whole(table) for table in (MOVES, FLAPPING, CHURN, TREND))
    if moved is not None:
        found["moves"] = _last_days(MovesDay, moved, "moved", "unassigned", "assigned", "observed")
    if flaps is not None:
        flaps = flaps.where("flaps")
        found["flaps"] = flaps.count()
        found["flapping"] = first(Flapping, flaps, top, down("returns"), down("moves"), "cluster", "group")
    if joined is not None:  # where it is null, it is a group's first observation, from which nothing came
        found["churn"] = _last_days(ChurnDay, joined.where("joined is not null"), "joined", "left")
    if skews is not None:
        found["trend"] = _trend(skews)
    return found


def _last_days(kind: type[Day], found: DataFrame, *names: str) -> tuple[Day, ...]:
    by_day = found.where("date is not null").groupBy("date").agg(*(total(name).alias(name) for name in names))
    return first(kind, by_day, MOST_DAYS, fn.desc("date"))[::-1]


def _trend(skews: DataFrame) -> tuple[TrendDay, ...]:
    """The last snapshot of each day and cluster, summed up over its groups."""
    dated = skews.where("date is not null")
    order = fn.struct("takenAt", "snapshot")
    last = dated.groupBy("cluster", "date").agg(fn.max_by("snapshot", order).alias("snapshot"))
    by_day = (
        dated.join(last, ["cluster", "date", "snapshot"], "left_semi")
        .groupBy("cluster", "date")
        .agg(
            fn.count("*").alias("groups"),
            fn.percentile("skew", 0.5).alias("median"),
            fn.percentile("skew", 0.9).alias("p90"),
            *sums("idle", "unowned"),
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
    name, title = "moves", "Moves a day"
    if not found:
        return Section(name, title, (said("Nothing: no queue was looked at twice."),))
    most = max(found, key=lambda one: one.moved)
    seen = said(
        f"On {{}} days {{}} queues were seen with another owner than before; most on {most.date}: {{}}.",
        len(found), sum(one.moved for one in found), most.moved,
    )  # fmt: skip
    picture = days(
        Picture(name, title, "Columns: queues that changed owner, lost theirs or got one, day by day."),
        [one.date for one in found],
        [
            Series("moved", [one.moved for one in found]),
            Series("lost their owner", [one.unassigned for one in found]),
            Series("got one", [one.assigned for one in found]),
        ],
        [],
        "queues",
    )
    grid = _days_grid(
        found,
        counts(("looked at", "observed"), "moved"),
        shares(("of these", lambda one: share_of(one.moved, one.observed))),
        counts(("lost their owner", "unassigned"), ("got one", "assigned")),
    )
    advice = (
        "compare the high days with deployments and broker restarts. What happens between two snapshots and heals "
        "again is not seen: take snapshots more often to see more."
    )
    return Section(name, title, (seen,), advice, (picture,), (grid,))


def flapping(found: tuple[Flapping, ...], flaps: int) -> Section:
    """The most restless of so many groups that flap."""
    name, title = "flapping", "Flapping groups"
    if not found:
        return Section(name, title, (said("Nothing: no group's queues go to and fro."),))
    top = found[0]
    seen = said(
        f"{capitalize_first(number_of(flaps, 'group'))} flap: queues go back to owners that they had before. Most "
        "restless is {} in {}, with {} moves and {} returns in {} days.",
        top.group, top.cluster, top.moves, top.returns, top.days,
    )  # fmt: skip
    few = found[:IN_PICTURE]
    away = [None if one.moves is None else max(0, one.moves - (one.returns or 0)) for one in few]
    picture = bars(
        Picture(name, title, "Bars: moves back to an earlier owner and other moves, for the most restless groups."),
        labels_of(few, "group"),
        [Series("back to an earlier owner", [one.returns for one in few]), Series("to another", away)],
        "moves",
    )
    grid = grid_of(
        "Groups with the most returns first",
        found,
        names("cluster", "group"),
        counts("moves", "returns", "queues", "days"),
        decimals("moves_a_day"),
    )
    advice = (
        "look for consumers that restart or lose their connection again and again; each return is a rebalance, and "
        "messages that are delivered twice."
    )
    return Section(name, title, (seen,), advice, (picture,), (grid,))


def churn(found: tuple[ChurnDay, ...]) -> Section:
    """Members that came and went, day by day."""
    name, title = "churn", "Consumers that come and go"
    if not found:
        return Section(name, title, (said("Nothing: no group was looked at twice."),))
    joined, left = sum(one.joined for one in found), sum(one.left for one in found)
    picture = days(
        Picture(name, title, "Columns: consumers that joined, upwards, and that left, downwards, day by day."),
        [one.date for one in found],
        [Series("joined", [one.joined for one in found])],
        [Series("left", [one.left for one in found])],
        "consumers",
    )
    seen = said("On {} days {} consumers came and {} went.", len(found), joined, left)
    advice = (
        "give processes a client id that a restart keeps where you can: a new id comes at another place in the sorted "
        "list, and moves the queues of others."
    )
    return Section(name, title, (seen,), advice, (picture,), (_days_grid(found, counts("joined", "left")),))


def trend(found: tuple[TrendDay, ...]) -> Section:
    """Skew as it was seen, for each cluster over time."""
    name, title = "trend", "Trend of skew"
    if not found:
        return Section(name, title, (said("Nothing: no group was seen to hold queues."),))
    clusters = [(cluster, list(its)) for cluster, its in groupby(found, key=lambda one: one.cluster)]
    drawn = [(cluster, [(one.date, one.p90) for one in its if one.p90 is not None]) for cluster, its in clusters]
    known = [(cluster, points) for cluster, points in drawn if points]
    picture = Picture(
        name, title, "Lines: the skew that one group in ten reaches or exceeds, for each cluster over time."
    )
    grid = grid_of(
        "Each cluster on its first and on its last day; of many clusters the six with the most groups",
        [(its[0], its[-1]) for _, its in clusters],
        names(("cluster", lambda pair: pair[0].cluster)),
        words(("first", lambda pair: pair[0].date), ("last", lambda pair: pair[1].date)),
        counts(("groups then", lambda pair: pair[0].groups), ("now", lambda pair: pair[1].groups)),
        decimals(("median then", lambda pair: pair[0].median), ("now", lambda pair: pair[1].median)),
        decimals(("worst tenth then", lambda pair: pair[0].p90), ("now", lambda pair: pair[1].p90)),
        counts(("idle then", lambda pair: pair[0].idle), ("now", lambda pair: pair[1].idle)),
    )
    seen = said(
        "As the queues were seen to lie, not as a strategy would deal them. One group in ten is at least so lopsided."
    )
    advice = (
        "a line that climbs says that topics or groups come in which do not fit each other; the lopsided groups above "
        "are the ones to look at."
    )
    pictures = (lines(picture, known, "most / mean, worst tenth"),) if known else ()
    return Section(name, title, (seen,), advice, pictures, (grid,))
