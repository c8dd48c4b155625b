"""What the page tells, in the order in which it is read.

The `subject_*.py` beside it have a subject's rows, its queries and its sections each. A section speaks of each
cluster's last snapshot, history of all; it says in words what is found and what to do, then shows it as a plot and as a
table. A table that is not there has no section. Every order ends in names, so that equal data gives equal pages.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from rmqlb.pipeline.report import overview_rows
from rmqlb.pipeline.report import subject_changes as changes
from rmqlb.pipeline.report import subject_groups as groups
from rmqlb.pipeline.report import subject_history as history
from rmqlb.pipeline.report import subject_overview as overview
from rmqlb.pipeline.report import subject_pop as pop
from rmqlb.pipeline.report import subject_sends as sends
from rmqlb.pipeline.report import subject_sizes as of_sizes
from rmqlb.pipeline.report import subject_strategies as strategies
from rmqlb.pipeline.report.codes import UNREAD_DOCUMENT
from rmqlb.pipeline.report.frames import Asked, Row, Seen, Tables
from rmqlb.pipeline.report.page import Fact, Section, Status, ToDo, counts, grid_of, names, said, words
from rmqlb.pipeline.report.queries import OverviewRows, rows_query
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
    file that its last snapshot is, where one file is; `changed` is the table of what would change, in SQL.
    """

    clusters: tuple[Cluster, ...] = ()
    worst: groups.Worst | None = None
    left_out: tuple[overview.LeftOut, ...] | None = None
    number_left_out: int = 0
    by_pop: tuple[pop.PopGroup, ...] | None = None
    files: Mapping[str, str] = {}
    refused: tuple[strategies.Refused, ...] | None = None
    strategies: tuple[strategies.StrategyScores, ...] | None = None
    strategy_changes: tuple[changes.StrategyChange, ...] | None = None
    gains: tuple[changes.GroupChange, ...] = ()
    changed: str = changes.ALL_ROWS
    consumer_changes: tuple[changes.ConsumerChange, ...] | None = None
    brokers: tuple[changes.BrokerLoss, ...] | None = None
    size_totals: of_sizes.SizeTotals | None = None
    sizes: tuple[of_sizes.GroupSizeRow, ...] = ()
    loss_totals: of_sizes.LossTotals | None = None
    losses: tuple[of_sizes.GroupLosses, ...] = ()
    broken_limits: tuple[of_sizes.BrokenLimit, ...] = ()
    scenarios: tuple[sends.Scenario, ...] | None = None
    send_totals: sends.SendTotals = sends.SendTotals(None, None)
    losing: tuple[sends.TopicSends, ...] = ()
    broker_sends: tuple[sends.BrokerSends, ...] = ()
    moves: tuple[history.MovesDay, ...] | None = None
    flapping: tuple[history.Flapping, ...] | None = None
    flaps: int = 0
    churn: tuple[history.ChurnDay, ...] | None = None
    trend: tuple[history.TrendDay, ...] | None = None
    group_trends: tuple[history.GroupTrend, ...] | None = None
    quarantine: tuple[Quarantined, ...] | None = None
    quarantined: int = 0
    tables: tuple[Exported, ...] = ()


def figures(tables: Tables, top: int, exported: tuple[Exported, ...]) -> Figures:
    """All figures of the page; `top`: rows of each list. Most are asked for together, and answered by one job."""
    asked, scores, runs = Asked(tables.spark), tables.last(SCORES), overview_rows.overview(tables)
    quarantine = tables.whole(QUARANTINE)
    listed = None if quarantine is None else asked.first(Quarantined, quarantine, top, *_BY_FILE)
    worst = None if runs is None else groups.worst(asked, runs, top)
    of_strategies = None if scores is None else strategies.strategy_scores(tables, asked, scores)
    judged = None if runs is None else runs.where("leftOut IS NULL")
    parts = [
        *([] if runs is None else [overview.beginning(tables, asked, runs, top)]),
        changes.changes(tables, asked, judged, top),
        of_sizes.sizes(tables, asked, top),
        sends.sends(tables, asked, top),
        history.history(tables, asked, top),
    ]
    by_pop = pop.pop(tables, asked, top)
    asked.answer()
    found, of_clusters = worst() if worst else (None, ())
    trends = history.group_trends(tables, asked, [(one.cluster, one.group) for one in found.groups] if found else ())
    asked.answer()
    scored, refused = of_strategies() if of_strategies else (None, None)
    return Figures(
        clusters=_clusters(tables, of_clusters),
        worst=found,
        number_left_out=sum(one.left_out for one in of_clusters),
        strategies=scored,
        refused=refused,
        quarantine=None if listed is None else listed.rows,
        quarantined=tables.warehouse.rows(QUARANTINE).get(QUARANTINE.name, 0),
        group_trends=trends(),
        tables=exported,
        by_pop=by_pop(),
        **{name: value for part in parts for name, value in part().items()},
    )


_BY_FILE = ("file", "position", "reason")


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
        *_unless_none(strategies.strategies, found.strategies, found.refused),
        *_unless_none(groups.idle, found.worst),
        *_unless_none(groups.one_consumer, found.worst),
        *_unless_none(changes.other_strategies, found.strategy_changes, found.gains, found.changed),
        *_unless_none(changes.other_consumers, found.consumer_changes, found.changed),
        *_unless_none(changes.lost_brokers, found.brokers, found.changed, [one.name for one in found.tables]),
        *_unless_none(of_sizes.group_sizes, found.size_totals, found.sizes),
        *_unless_none(of_sizes.single_losses, found.loss_totals, found.losses, found.broken_limits),
        *_unless_none(sends.producers, found.scenarios, found.send_totals, found.losing, found.broker_sends),
        *_unless_none(history.moves, found.moves),
        *_unless_none(history.flapping, found.flapping, found.flaps),
        *_unless_none(history.churn, found.churn),
        *_unless_none(history.trend, found.trend),
        *_unless_none(history.by_group, found.group_trends, groups.LISTS["groups"].query(_listed(found))),
        *_unless_none(_quarantine, found.quarantine, found.quarantined),
        _tables(found.tables),
    )


def _listed(found: Figures) -> int:
    return 0 if found.worst is None else len(found.worst.groups)


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
    shown = [_fact("clusters", len(found.clusters), rows_query("cluster_summary", "", ["cluster"]))]
    if found.worst is not None:
        totals = found.worst.totals
        shown += [
            _fact("groups", totals.groups, groups.LISTS["groups"].query()),
            *_observed(totals),
            _sum("unassigned queues predicted", totals.unassigned, "unassigned", "error"),
            _sum("queues with duplicate owners predicted", totals.duplicate_owners, "duplicateOwners", "error"),
            _sum("idle consumers", totals.idle, "idle", "warning"),
            _bad("imbalanced groups", totals.imbalanced, "warning", groups.IMBALANCED_ROWS.query()),
        ]
    if found.left_out is not None:
        shown.append(_fact("groups left out", found.number_left_out, overview.LEFT_OUT.query()))
    if found.flapping is not None:
        shown.append(_bad("flapping groups", found.flaps, "warning", rows_query("flapping", "flaps", history.RESTLESS)))
    if found.quarantine is not None:
        rows = rows_query("quarantine", "", _BY_FILE)
        shown.append(_bad("quarantined documents", found.quarantined, "warning", rows))
    return tuple(shown)


def _observed(totals: groups.Totals) -> Iterator[Fact]:
    if totals.observed and totals.observed_unassigned is not None and totals.observed_duplicate_owners is not None:
        yield _sum("unassigned queues observed", totals.observed_unassigned, "observedUnassigned", "error")
        duplicates = totals.observed_duplicate_owners
        yield _sum("queues with duplicate owners observed", duplicates, "observedDuplicateOwners", "error")
        yield _sum("mismatches", totals.mismatches, "mismatches", "warning")


def _fact(what: str, number: int, query: str) -> Fact:
    return Fact(what, number, query=query)


def _bad(what: str, number: int, status: Status, query: str, of: str = "count(*)") -> Fact:
    return Fact(what, number, status if number else "inOrder", query, of)


def _sum(what: str, number: int, column: str, status: Status) -> Fact:
    """The sum of a column of OVERVIEW."""
    return _bad(what, number, status, OverviewRows(f"{column} > 0", (f"-{column}",)).query(), f"sum({column})")


def to_do(found: Figures) -> tuple[ToDo, ...]:
    """What to do first."""
    return overview.to_do(found.worst, (one.file for one in found.quarantine or ()), found.files)


def _clusters(tables: Tables, scored: Sequence[groups.ClusterTotals]) -> tuple[Cluster, ...]:
    of_groups = {one.cluster: one for one in scored if one.groups}
    of_documents: dict[str, list[Seen]] = {name: [] for name in of_groups}
    for one in tables.seen(DOCUMENTS):
        of_documents.setdefault(one.cluster, []).append(one)
    return tuple(_cluster(name, of_documents[name], of_groups.get(name)) for name in sorted(of_documents))


def _cluster(name: str, seen: Sequence[Seen], scored: groups.ClusterTotals | None) -> Cluster:
    dates = [one.date for one in seen if one.date is not None]
    dates = dates or [one for one in (scored.scored_date if scored else None,) if one is not None]
    known = (
        (scored.groups, scored.consumers, scored.queues, scored.idle_known, scored.unassigned_known) if scored else ()
    )
    return Cluster(
        name,
        len({one.snapshot for one in seen}) or None,
        min(dates, default=None),
        max(dates, default=None),
        *(known or (None,) * 5),
    )


def _clusters_section(found: tuple[Cluster, ...]) -> Section:
    grid = grid_of(
        "Each cluster, with the groups of its last snapshot under the strategies that they run",
        found[:MOST_CLUSTERS],
        names("cluster"),
        counts("snapshots"),
        words(("first", "first_date"), ("last", "last_date")),
        counts("groups", "consumers", "queues", ("idle predicted", "idle"), ("unassigned predicted", "unassigned")),
        query=rows_query("cluster_summary", "", ["cluster"], min(len(found), MOST_CLUSTERS)),
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
                query=rows_query("quarantine", "", _BY_FILE, len(found)),
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
    seen = (
        said(
            "Every figure above comes from these. A query of this page is run in DuckDB and in Spark SQL as it stands."
        ),
        said("In the folder of this page: duckdb -init duckdb.sql, or spark-sql -i spark.sql --master local."),
    )
    return Section("tables", "The tables", seen, grids=(grid,))
