"""What many snapshots show: moves, flapping groups, processes that come and go, imbalance over time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import or_
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import fields
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.charts import Picture, Series, bars_of, days, lines
from rmqlb.pipeline.report.codes import FLAPPING_GROUP
from rmqlb.pipeline.report.frames import Answer, Asked, Row, Seen, Tables, sums
from rmqlb.pipeline.report.page import (
    Column,
    Grid,
    Section,
    columns,
    counts,
    decimals,
    grid_of,
    names,
    said,
    shares,
    words,
)
from rmqlb.pipeline.report.queries import rows_query, sum_query
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


class GroupNight(Row, frozen=True):
    """A group as one snapshot shows it."""

    cluster: str
    group: str
    date: dt.date | None
    snapshot: str
    imbalance: float | None
    lag: int | None
    idle: int | None
    unassigned: int | None


class GroupTrend(Struct, frozen=True):
    """A group over its nights, the first one first: of each day the last snapshot."""

    cluster: str
    group: str
    nights: tuple[GroupNight, ...]

    def line(self, name: str) -> tuple[float | None, ...]:
        """One figure, night by night."""
        return tuple(getattr(one, name) for one in self.nights)


Day = TypeVar("Day", MovesDay, ChurnDay)


class _OfDay(Row, frozen=True):
    """The sums of a day: those of MOVES, or of CHURN; without a day, how many groups flap."""

    of: str
    date: dt.date | None
    moved: int | None
    newly_unassigned: int | None
    newly_assigned: int | None
    observed: int | None
    joined: int | None
    left: int | None
    flaps: int | None


def history(tables: Tables, asked: Asked, top: int) -> Callable[[], dict[str, Any]]:
    """The fields of `Figures` that come from MOVES, FLAPPING, CHURN and TREND."""
    whole = {table.name: tables.whole(table) for table in (MOVES, CHURN, FLAPPING)}
    by_day = _by_day(asked, {name: frame for name, frame in whole.items() if frame is not None})
    flapping = whole[FLAPPING.name]
    flaps = None if flapping is None else asked.first(Flapping, flapping.where("flaps"), top, *RESTLESS)
    nights = _trend(tables, asked)

    def found() -> dict[str, Any]:
        figures: dict[str, Any] = {}
        days_of = by_day.by("date") if by_day else ()
        if whole[MOVES.name] is not None:
            figures["moves"] = _last_days(MovesDay, days_of, MOVES.name)
        if whole[CHURN.name] is not None:
            figures["churn"] = _last_days(ChurnDay, days_of, CHURN.name)
        if flaps is not None:
            figures["flapping"] = flaps.rows
            figures["flaps"] = sum(one.flaps or 0 for one in days_of)
        if nights is not None:
            figures["trend"] = nights.by("cluster", "date")
        return figures

    return found


RESTLESS = ("-returns", "-moved", "cluster", "group")
_SUMS = {
    MOVES.name: ("moved", "newlyUnassigned", "newlyAssigned", "observed"),
    CHURN.name: ("joined", "left"),
    FLAPPING.name: (),
}
_FIRST_SEEN = "joined IS NOT NULL"
"""Where it is null, it is a group's first observation, from which nothing came."""


def _by_day(asked: Asked, whole: Mapping[str, DataFrame]) -> Answer[_OfDay] | None:
    """The days of all of them in one grouping."""
    parts = []
    for name, frame in whole.items():
        if name == CHURN.name:
            frame = frame.where(_FIRST_SEEN)  # noqa: PLW2901
        known = {column: fn.col(f"`{column}`") for column in _SUMS[name]}
        known |= {"date": fn.lit(None).cast("date"), "flaps": fn.expr("int(flaps)")} if name == FLAPPING.name else {}
        shown = {one.encode_name: fn.lit(None).cast("bigint") for one in fields(_OfDay)}
        shown["date"] = fn.col("date")
        shown |= known | {"of": fn.lit(name)}
        parts.append(frame.select(*(column.alias(column_name) for column_name, column in shown.items())))
    if not parts:
        return None
    every = reduce(DataFrame.unionByName, parts)
    summed = [fn.sum(name).alias(name) for name in every.columns if name not in ("of", "date")]
    return asked.rows(_OfDay, every.groupBy("of", "date").agg(*summed))


def _last_days(kind: type[Day], found: Sequence[_OfDay], table: str) -> tuple[Day, ...]:
    dated = [(one.date, one) for one in found if one.of == table and one.date is not None]
    names = [one.name for one in fields(kind) if one.name != "date"]
    return tuple(kind(date, *(getattr(one, name) or 0 for name in names)) for date, one in dated[-MOST_DAYS:])


def _nights(tables: Tables) -> tuple[Seen, ...]:
    """The last snapshot of each day and cluster, as far as the page looks back; of the clusters with most groups."""
    last: dict[tuple[str, dt.date], Seen] = {}
    for one in sorted(tables.seen(TREND), key=lambda one: (-1 if one.taken is None else one.taken, one.snapshot)):
        if one.date is not None:
            last[one.cluster, one.date] = one
    most: dict[str, int] = {}
    for (cluster, _), one in last.items():
        most[cluster] = max(most.get(cluster, 0), one.rows)
    few = sorted(most, key=lambda cluster: (-most[cluster], cluster))[:MOST_LINES]
    days_of = sorted({date for cluster, date in last if cluster in few})[-MOST_DAYS:]
    return tuple(one for (cluster, date), one in last.items() if cluster in few and date in set(days_of))


def _trend(tables: Tables, asked: Asked) -> Answer[TrendDay] | None:
    """The nights, each summed up over its groups."""
    frame = tables.rows_of(TREND, _nights(tables))
    if frame is None:
        return None
    by_day = (
        frame.where("date IS NOT NULL")
        .groupBy("cluster", "date")
        .agg(
            fn.count("*").alias("groups"),
            fn.percentile("imbalance", 0.5).alias("p50"),
            fn.percentile("imbalance", 0.9).alias("p90"),
            *sums("idle", "unassigned"),
        )
    )
    return asked.rows(TrendDay, by_day)


def group_trends(
    tables: Tables, asked: Asked, named: Sequence[tuple[str, str]]
) -> Callable[[], tuple[GroupTrend, ...] | None]:
    """Groups (cluster, name) night by night; None when TREND is not there or tells of none of them twice."""
    frame = tables.whole(TREND)
    if frame is None or not named:
        return lambda: None
    taken = {(one.cluster, one.snapshot): one.taken or -1 for one in tables.seen(TREND)}
    newest = sorted({one.date for one in tables.seen(TREND) if one.date is not None})[-IN_TABLE:]
    is_one = [(fn.col("cluster") == cluster) & (fn.col("group") == group) for cluster, group in named]
    of_these = frame.where(fn.col("date").isin([fn.lit(day) for day in newest])).where(reduce(or_, is_one))
    answer = asked.rows(GroupNight, of_these)

    def found() -> tuple[GroupTrend, ...] | None:
        nights: dict[tuple[str, str], dict[dt.date | None, GroupNight]] = {group: {} for group in named}
        for one in sorted(answer.rows, key=lambda one: (taken.get((one.cluster, one.snapshot), -1), one.snapshot)):
            nights[one.cluster, one.group][one.date] = one
        known = {group: sorted(its.values(), key=lambda one: str(one.date)) for group, its in nights.items()}
        return tuple(GroupTrend(*group, tuple(its)) for group, its in known.items() if len(its) > 1) or None

    return found


def by_group(found: tuple[GroupTrend, ...], groups: str) -> Section:
    """The groups at the head of the page, night by night; `groups` is the query of these."""
    listed = " ".join(("SELECT", "o.cluster, o.group", "FROM", f"({groups}) AS o"))

    def ends(title: str, name: str) -> tuple[Column, ...]:
        make = counts if name != "imbalance" else decimals
        first, last = (lambda one: getattr(one.nights[0], name)), (lambda one: getattr(one.nights[-1], name))
        return *columns("line", (title, lambda one: one.line(name))), *make(("first", first), ("last", last))

    grid = grid_of(
        f"At most the last {IN_TABLE} nights of each group, drawn from its own smallest to its own largest figure",
        found,
        names("cluster", "group"),
        counts(("nights", lambda one: len(one.nights))),
        ends("imbalance", "imbalance"),
        ends("lag", "lag"),
        ends("idle", "idle"),
        ends("unassigned", "unassigned"),
        query=rows_query("trend", f"(t.cluster, t.group) IN ({listed})", ("cluster", "group", "date", "snapshot")),
    )
    seen = (
        "The groups at the head of the list, as they were observed night by night; here the queues of their %RETRY% "
        "topics count too."
    )
    advice = "look at what was deployed in the night in which a line steps up; the table trend has every group."
    return Section("group-trends", "Groups over time", (said(seen),), advice, grids=(grid,))


def _days_grid(found: tuple[Day, ...], table: str, *parts: tuple[Column, ...]) -> Grid:
    number = min(IN_TABLE, len(found))
    query = sum_query(
        table,
        ["date"],
        [(f"coalesce(sum({name}), 0)", name) for name in _SUMS[table]],
        where="date IS NOT NULL" + (f" AND {_FIRST_SEEN}" if table == CHURN.name else ""),
        order=["-date"],
        rows=number,
    )
    caption = f"The last {number_of(number, 'day')}, newest first"
    return grid_of(caption, found[: -IN_TABLE - 1 : -1], words(("day", "date")), *parts, query=query)


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
        MOVES.name,
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
        query=rows_query("flapping", "flaps", RESTLESS, len(found)),
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
    return Section(name, title, (seen,), advice, (picture,), (_days_grid(found, CHURN.name, counts("joined", "left")),))


_LAST_OF_DAY = (
    "(SELECT l.*, dense_rank() OVER (PARTITION BY l.cluster, l.date "
    "ORDER BY l.takenAt DESC NULLS LAST, l.snapshot DESC) AS nth FROM trend AS l)"
)
_TREND = sum_query(
    _LAST_OF_DAY,
    ["cluster", "date"],
    [
        ("count(*)", "groups"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY imbalance)", "p50"),
        ("percentile_cont(0.9) WITHIN GROUP (ORDER BY imbalance)", "p90"),
        ("sum(idle)", "idle"),
        ("sum(unassigned)", "unassigned"),
    ],
    where="nth = 1 AND date IS NOT NULL",
    order=["cluster", "date"],
)


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
        query=_TREND,
    )
    seen = said("Of observed owners, not of predicted ones; p90: one group in ten is at least so imbalanced.")
    advice = (
        "where a line rises, new topics have numbers of queues that the numbers of consumers do not divide: see the "
        "most imbalanced groups above."
    )
    pictures = (lines(picture, known, "imbalance, p90"),) if known else ()
    return Section(name, title, (seen,), advice, pictures, (grid,))
