"""What many snapshots show."""

from __future__ import annotations

from itertools import groupby

from rmqlb.pipeline.report.charts import Picture, Series, bars, days, lines
from rmqlb.pipeline.report.figures import Figures
from rmqlb.pipeline.report.page import Section, grid_of, said
from rmqlb.pipeline.report.sections_groups import IN_PICTURE
from rmqlb.pipeline.report.values import ChurnDay, Flapping, MovesDay, TrendDay
from rmqlb.pipeline.report.words import capitalize_first, labels_of, number_of, share_of

IN_TABLE = 31
"""Days of a table; the picture has more."""


def history_sections(figures: Figures) -> tuple[Section, ...]:
    """The sections that come from MOVES, FLAPPING, CHURN and TREND."""
    parts: list[Section] = []
    if figures.moves is not None:
        parts.append(_moves(figures.moves))
    if figures.flapping is not None:
        parts.append(_flapping(figures.flapping, figures.flaps))
    if figures.churn is not None:
        parts.append(_churn(figures.churn))
    if figures.trend is not None:
        parts.append(_trend(figures.trend))
    return tuple(parts)


def _moves(found: tuple[MovesDay, ...]) -> Section:
    name, title = "moves", "Moves a day"
    if not found:
        return Section(name, title, (said("Nothing: no queue was looked at twice."),))
    most = max(found, key=lambda one: one.moved)
    seen = said(
        "On {} days {} queues were seen with another owner than before; most on " + most.date.isoformat() + ": {}.",
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
    grid = grid_of(
        f"The last {number_of(min(IN_TABLE, len(found)), 'day')}, newest first",
        found[: -IN_TABLE - 1 : -1],
        ("day", "word", "date"),
        ("looked at", "count", "observed"),
        ("moved", "count", "moved"),
        ("of these", "share", lambda one: share_of(one.moved, one.observed)),
        ("lost their owner", "count", "unassigned"),
        ("got one", "count", "assigned"),
    )
    return Section(
        name,
        title,
        (seen,),
        "compare the high days with deployments and broker restarts. What happens between two snapshots and heals "
        "again is not seen: take snapshots more often to see more.",
        (picture,),
        (grid,),
    )


def _flapping(found: tuple[Flapping, ...], flaps: int) -> Section:
    name, title = "flapping", "Flapping groups"
    if not found:
        return Section(name, title, (said("Nothing: no group's queues go to and fro."),))
    first = found[0]
    seen = said(
        f"{capitalize_first(number_of(flaps, 'group'))} flap: queues go back to owners that they had before. Most "
        "restless is {} in {}, with {} moves and {} returns in {} days.",
        first.group, first.cluster, first.moves, first.returns, first.days,
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
        ("cluster", "name", "cluster"),
        ("group", "name", "group"),
        ("moves", "count", "moves"),
        ("returns", "count", "returns"),
        ("queues", "count", "queues"),
        ("days", "count", "days"),
        ("moves a day", "figure", "moves_a_day"),
    )
    return Section(
        name,
        title,
        (seen,),
        "look for consumers that restart or lose their connection again and again; each return is a rebalance, and "
        "messages that are delivered twice.",
        (picture,),
        (grid,),
    )


def _churn(found: tuple[ChurnDay, ...]) -> Section:
    name, title = "churn", "Consumers that come and go"
    if not found:
        return Section(name, title, (said("Nothing: no group was looked at twice."),))
    seen = said(
        "On {} days {} consumers came and {} went.",
        len(found), sum(one.joined for one in found), sum(one.left for one in found),
    )  # fmt: skip
    picture = days(
        Picture(name, title, "Columns: consumers that joined, upwards, and that left, downwards, day by day."),
        [one.date for one in found],
        [Series("joined", [one.joined for one in found])],
        [Series("left", [one.left for one in found])],
        "consumers",
    )
    grid = grid_of(
        f"The last {number_of(min(IN_TABLE, len(found)), 'day')}, newest first",
        found[: -IN_TABLE - 1 : -1],
        ("day", "word", "date"),
        ("joined", "count", "joined"),
        ("left", "count", "left"),
    )
    return Section(
        name,
        title,
        (seen,),
        "give processes a client id that a restart keeps where you can: a new id comes at another place in the sorted "
        "list, and moves the queues of others.",
        (picture,),
        (grid,),
    )


def _trend(found: tuple[TrendDay, ...]) -> Section:
    name, title = "trend", "Trend of skew"
    if not found:
        return Section(name, title, (said("Nothing: no group was seen to hold queues."),))
    clusters = [(cluster, list(its)) for cluster, its in groupby(found, key=lambda one: one.cluster)]
    drawn = [(cluster, [(one.date, one.p90) for one in its if one.p90 is not None]) for cluster, its in clusters]
    known = [(cluster, points) for cluster, points in drawn if points]
    picture = Picture(
        name, title, "Lines: the skew that one group in ten reaches or exceeds, for each cluster over time."
    )
    ends = [(its[0], its[-1]) for _, its in clusters]
    grid = grid_of(
        "Each cluster on its first and on its last day; of many clusters the six with the most groups",
        ends,
        ("cluster", "name", lambda pair: pair[0].cluster),
        ("first", "word", lambda pair: pair[0].date),
        ("last", "word", lambda pair: pair[1].date),
        ("groups then", "count", lambda pair: pair[0].groups),
        ("now", "count", lambda pair: pair[1].groups),
        ("median then", "figure", lambda pair: pair[0].median),
        ("now", "figure", lambda pair: pair[1].median),
        ("worst tenth then", "figure", lambda pair: pair[0].p90),
        ("now", "figure", lambda pair: pair[1].p90),
        ("idle then", "count", lambda pair: pair[0].idle),
        ("now", "count", lambda pair: pair[1].idle),
    )
    seen = (
        "As the queues were seen to lie, not as a strategy would deal them. One group in ten is at least so lopsided."
    )
    return Section(
        name,
        title,
        (said(seen),),
        "a line that climbs says that topics or groups come in which do not fit each other; the lopsided groups above "
        "are the ones to look at.",
        (lines(picture, known, "most / mean, worst tenth"),) if known else (),
        (grid,),
    )
