"""What the page tells, in the order in which it is read.

The `subject_*.py` beside it have a subject's rows, its queries and its sections each. A section speaks of each
cluster's last snapshot, history of all; it says in words what is found and what to do, then shows it as a plot and as a
table. A table that is not there has no section. Every order ends in names, so that equal data gives equal pages.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.report import subject_changes as changes
from rmqlb.pipeline.report import subject_groups as groups
from rmqlb.pipeline.report import subject_history as history
from rmqlb.pipeline.report import subject_overview as overview
from rmqlb.pipeline.report import subject_pop as pop
from rmqlb.pipeline.report import subject_sends as sends
from rmqlb.pipeline.report import subject_strategies as strategies
from rmqlb.pipeline.report.codes import UNREAD_DOCUMENT
from rmqlb.pipeline.report.frames import Row, Tables, first, sums
from rmqlb.pipeline.report.page import Fact, Section, Status, ToDo, counts, grid_of, names, said, words
from rmqlb.pipeline.report.text import number_of
from rmqlb.pipeline.schemas import DOCUMENTS, QUARANTINE, SCORES

MOST_CLUSTERS = 200
"""Clusters in the first table of the page."""


class Cluster(Row, frozen=True):
    """What is known of a cluster: its snapshots, and its groups in the last of them that was scored."""

    cluster: str
    snapshots: int | None
    first_date: dt.date | None
    last_date: dt.date | None
    groups: int | None
    consumers: int | None
    queues: int | None
    idle: int | None
    unassigned: int | None


class Quarantined(Row, frozen=True):
    """A document that could not be read."""

    file: str | None
    position: int | None
    bytes: int | None
    reason: str | None


class Exported(Struct, frozen=True):
    """A table that lies beside the page; `in_csv` is False when it has more rows than a spreadsheet."""

    name: str
    rows: int
    in_csv: bool


class Figures(Struct, frozen=True):
    """All that the page shows: None is a table that is not there, an empty tuple one without rows.

    `flaps`, `quarantined` and `number_left_out` count all rows, of which the page has the first; `files`: cluster → the
    file that its last snapshot is, where one file is.
    """

    clusters: tuple[Cluster, ...] = ()
    worst: groups.Worst | None = None
    left_out: tuple[overview.LeftOut, ...] | None = None
    number_left_out: int = 0
    by_pop: tuple[pop.PopGroup, ...] | None = None
    files: Mapping[str, str] = {}
    strategies: tuple[strategies.StrategyScores, ...] | None = None
    strategy_changes: tuple[changes.StrategyChange, ...] | None = None
    gains: tuple[changes.GroupChange, ...] = ()
    consumer_changes: tuple[changes.ConsumerChange, ...] | None = None
    brokers: tuple[changes.BrokerLoss, ...] | None = None
    scenarios: tuple[sends.Scenario, ...] | None = None
    send_totals: sends.SendTotals = sends.SendTotals(None, None)
    losing: tuple[sends.TopicSends, ...] = ()
    broker_sends: tuple[sends.BrokerSends, ...] = ()
    moves: tuple[history.MovesDay, ...] | None = None
    flapping: tuple[history.Flapping, ...] | None = None
    flaps: int = 0
    churn: tuple[history.ChurnDay, ...] | None = None
    trend: tuple[history.TrendDay, ...] | None = None
    quarantine: tuple[Quarantined, ...] | None = None
    quarantined: int = 0
    tables: tuple[Exported, ...] = ()


def figures(tables: Tables, top: int, exported: tuple[Exported, ...]) -> Figures:
    """All figures of the page; `top`: rows of each list."""
    scores = tables.last(SCORES)
    runs = None if scores is None else groups.running(scores)
    quarantine = tables.whole(QUARANTINE)
    return Figures(
        clusters=_clusters(tables, runs),
        worst=None if runs is None else groups.worst(tables, runs, top),
        strategies=None if scores is None else strategies.strategy_scores(tables, scores),
        quarantine=None if quarantine is None else first(Quarantined, quarantine, top, "file", "position", "reason"),
        quarantined=next((table.rows for table in exported if table.name == QUARANTINE.name), 0),
        tables=exported,
        by_pop=pop.pop_groups(tables, top),
        **({} if runs is None else overview.beginning(tables, runs, top)),
        **changes.changes(tables, runs, top),
        **sends.sends(tables, top),
        **history.history(tables, top),
    )


def sections(found: Figures) -> tuple[Section, ...]:
    """All parts of the page."""
    return (
        *_unless_none(_clusters_section, found.clusters or None),
        *_unless_none(overview.groups, found.worst),
        *_unless_none(overview.left_out, found.left_out, found.number_left_out),
        *_unless_none(pop.by_pop, found.by_pop),
        *_unless_none(groups.unassigned, found.worst),
        *_unless_none(groups.mismatches, found.worst),
        *_unless_none(groups.imbalanced, found.worst),
        *_unless_none(strategies.strategies, found.strategies),
        *_unless_none(groups.idle, found.worst),
        *_unless_none(groups.one_consumer, found.worst),
        *_unless_none(changes.other_strategies, found.strategy_changes, found.gains),
        *_unless_none(changes.other_consumers, found.consumer_changes),
        *_unless_none(changes.lost_brokers, found.brokers),
        *_unless_none(sends.producers, found.scenarios, found.send_totals, found.losing, found.broker_sends),
        *_unless_none(history.moves, found.moves),
        *_unless_none(history.flapping, found.flapping, found.flaps),
        *_unless_none(history.churn, found.churn),
        *_unless_none(history.trend, found.trend),
        *_unless_none(_quarantine, found.quarantine, found.quarantined),
        _tables(found.tables),
    )


def _unless_none(make: Callable[..., Section], found: object, *more: object) -> tuple[Section, ...]:
    return () if found is None else (make(found, *more),)


def subtitle(found: Figures) -> str:
    """Of what and when the page tells, as HTML."""
    dates = [date for one in found.clusters for date in (one.first_date, one.last_date) if date is not None]
    if not found.clusters:
        return said("No cluster was read.")
    span = "unknown date"
    if dates:
        span = min(dates).isoformat() if min(dates) == max(dates) else f"{min(dates)} to {max(dates)}"
    return said(f"{number_of(len(found.clusters), 'cluster')}, snapshots of {span}")


def facts(found: Figures) -> tuple[Fact, ...]:
    """The figures at the top of the page: none stands there without a sign that ought to be 0 and is not."""
    shown = [Fact("clusters", len(found.clusters))]
    if found.worst is not None:
        totals = found.worst.totals
        shown += [
            Fact("groups", totals.groups),
            *_observed(totals),
            _bad("unassigned queues predicted", totals.unassigned, "error"),
            _bad("queues with duplicate owners predicted", totals.duplicate_owners, "error"),
            _bad("idle consumers", totals.idle, "warning"),
            _bad("imbalanced groups", totals.imbalanced, "warning"),
        ]
    if found.left_out is not None:
        shown.append(Fact("groups left out", found.number_left_out))
    if found.flapping is not None:
        shown.append(_bad("flapping groups", found.flaps, "warning"))
    if found.quarantine is not None:
        shown.append(_bad("quarantined documents", found.quarantined, "warning"))
    return tuple(shown)


def _observed(totals: groups.Totals) -> Iterator[Fact]:
    if totals.observed and totals.observed_unassigned is not None and totals.observed_duplicate_owners is not None:
        yield _bad("unassigned queues observed", totals.observed_unassigned, "error")
        yield _bad("queues with duplicate owners observed", totals.observed_duplicate_owners, "error")
        yield _bad("mismatches", totals.mismatches, "warning")


def _bad(what: str, number: int, status: Status) -> Fact:
    return Fact(what, number, status if number else "inOrder")


def to_do(found: Figures) -> tuple[ToDo, ...]:
    """What to do first."""
    return overview.to_do(found.worst, (one.file for one in found.quarantine or ()), found.files)


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
        *sums("consumers", "queues", "idle", "unassigned"),
    )
    whole = seen.join(scored, "cluster", "full")
    for name in ("firstDate", "lastDate"):
        whole = whole.withColumn(name, fn.coalesce(name, "scoredDate"))
    return first(Cluster, whole, MOST_CLUSTERS, "cluster")


def _clusters_section(found: tuple[Cluster, ...]) -> Section:
    grid = grid_of(
        "Each cluster, with the groups of its last snapshot under the strategies that they run",
        found,
        names("cluster"),
        counts("snapshots"),
        words(("first", "first_date"), ("last", "last_date")),
        counts("groups", "consumers", "queues", ("idle predicted", "idle"), ("unassigned predicted", "unassigned")),
    )
    seen = "Queues are counted once for each group that reads them, consumers once for each group they are in."
    return Section("clusters", "Clusters", (said(seen),), grids=(grid,))


def _quarantine(found: tuple[Quarantined, ...], number: int) -> Section:
    name, title = "quarantine", "Documents that could not be read"
    if not number:
        return Section(name, title, (said("Nothing: every document was read."),))
    documents = number_of(number, "document")
    return Section(
        name,
        title,
        (said(f"{documents} could not be read. What they hold is missing everywhere on this page."),),
        "repair or fetch them again, and ingest them again: what was read before is known and skipped.",
        grids=(
            grid_of(
                "The first, by file and place",
                found,
                names("file"),
                counts(("document", "position"), "bytes"),
                names("reason"),
            ),
        ),
        codes=(UNREAD_DOCUMENT,),
    )


def _tables(found: tuple[Exported, ...]) -> Section:
    grid = grid_of(
        "Tables beside this page: Parquet of all, CSV of those that a spreadsheet opens",
        found,
        words(("table", "name")),
        counts("rows"),
        words(("files", lambda one: f"parquet/{one.name}/" + (f", csv/{one.name}.csv" if one.in_csv else ""))),
    )
    return Section("tables", "The tables", (said("Every figure above comes from these."),), grids=(grid,))
