"""What the page tells, in the order in which it is read.

The `subject_*.py` beside it have a subject's rows, its queries and its sections each. A section speaks of each
cluster's last snapshot, history of all; it says in words what is found and what to do, then shows it as a plot and as a
table. A table that is not there has no section. Every order ends in names, so that equal data gives equal pages.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from rmqlb.pipeline.report import overview_rows
from rmqlb.pipeline.report import subject_changes as changes
from rmqlb.pipeline.report import subject_clusters as of_clusters
from rmqlb.pipeline.report import subject_groups as groups
from rmqlb.pipeline.report import subject_history as history
from rmqlb.pipeline.report import subject_overview as overview
from rmqlb.pipeline.report import subject_pop as pop
from rmqlb.pipeline.report import subject_sends as sends
from rmqlb.pipeline.report import subject_sizes as of_sizes
from rmqlb.pipeline.report import subject_strategies as strategies
from rmqlb.pipeline.report.codes import UNREAD_DOCUMENT
from rmqlb.pipeline.report.frames import Asked, Row, Tables
from rmqlb.pipeline.report.page import (
    Fact,
    Section,
    Status,
    ToDo,
    Verdict,
    columns,
    counts,
    grid_of,
    names,
    said,
    words,
)
from rmqlb.pipeline.report.queries import (
    DUPLICATE_OWNERS_EACH,
    IDLE_EACH,
    MISMATCHES_EACH,
    OBSERVED_DUPLICATES_EACH,
    OBSERVED_UNASSIGNED_EACH,
    UNASSIGNED_EACH,
    OverviewRows,
    rows_query,
)
from rmqlb.pipeline.report.text import number_of
from rmqlb.pipeline.schemas import QUARANTINE, SCORES


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
    file that its last snapshot is, where one file is; `changed` is the table of what would change, in SQL; `since`: the
    first day that the page looks back to; `readers`: commands that open the warehouse itself.
    """

    clusters: tuple[of_clusters.Cluster, ...] = ()
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
    since: dt.date | None = None
    tables: tuple[Exported, ...] = ()
    readers: tuple[str, ...] = ()


def figures(tables: Tables, top: int, exported: tuple[Exported, ...]) -> Figures:
    """All figures of the page; `top`: rows of each list. Most are asked for together, and answered by one job."""
    asked, scores, runs = Asked(tables.spark), tables.whole(SCORES), overview_rows.overview(tables)
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
    found, totals = worst() if worst else (None, ())
    trends = history.group_trends(tables, asked, [(one.cluster, one.group) for one in found.groups] if found else ())
    asked.answer()
    scored, refused = of_strategies() if of_strategies else (None, None)
    return Figures(
        clusters=of_clusters.clusters(tables, totals),
        worst=found,
        number_left_out=sum(one.left_out for one in totals),
        strategies=scored,
        refused=refused,
        quarantine=None if listed is None else listed.rows,
        quarantined=tables.warehouse.rows(QUARANTINE).get(QUARANTINE.name, 0),
        group_trends=trends(),
        since=tables.since,
        tables=exported,
        by_pop=by_pop(),
        **{name: value for part in parts for name, value in part().items()},
    )


_BY_FILE = ("file", "position", "reason")


def sections(found: Figures) -> tuple[Section, ...]:
    """All parts of the page."""
    return (
        *_unless_none(of_clusters.section, found.clusters or None),
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
        *_unless_none(history.moves, found.moves, found.since),
        *_unless_none(history.flapping, found.flapping, found.flaps),
        *_unless_none(history.churn, found.churn, found.since),
        *_unless_none(history.trend, found.trend, found.since),
        *_unless_none(history.by_group, found.group_trends, groups.LISTS["groups"].query(_listed(found)), found.since),
        *_unless_none(_quarantine, found.quarantine, found.quarantined),
        _tables(found.tables, found.readers),
    )


def _listed(found: Figures) -> int:
    return 0 if found.worst is None else len(found.worst.groups)


def _unless_none(make: Callable[..., Section], found: object, *more: object) -> tuple[Section, ...]:
    return () if found is None else (make(found, *more),)


def facts(found: Figures) -> tuple[Fact, ...]:
    """The figures at the top of the page: none stands there without a sign that ought to be 0 and is not."""
    shown = [_fact("clusters", len(found.clusters), rows_query("cluster_summary", "", ["cluster"]))]
    if old := of_clusters.out_of_date(found.clusters):
        shown.append(_bad("clusters out of date", old, "warning", of_clusters.OUT_OF_DATE))
    if found.worst is not None:
        totals = found.worst.totals
        shown += [
            _fact("groups", totals.groups, groups.LISTS["groups"].query()),
            *_observed(totals),
            _sum("unassigned queues predicted", totals.unassigned, "unassigned", "error", UNASSIGNED_EACH),
            _sum(
                *("queues with duplicate owners predicted", totals.duplicate_owners, "duplicateOwners", "error"),
                DUPLICATE_OWNERS_EACH,
            ),
            _sum("idle consumers", totals.idle, "idle", "warning", IDLE_EACH),
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
        unassigned, duplicates = totals.observed_unassigned, totals.observed_duplicate_owners
        yield _sum("unassigned queues observed", unassigned, "observedUnassigned", "error", OBSERVED_UNASSIGNED_EACH)
        yield _sum(
            *("queues with duplicate owners observed", duplicates, "observedDuplicateOwners", "error"),
            OBSERVED_DUPLICATES_EACH,
        )
        yield _sum("mismatches", totals.mismatches, "mismatches", "warning", MISMATCHES_EACH)


def _fact(what: str, number: int, query: str) -> Fact:
    return Fact(what, number, query=query)


def _bad(what: str, number: int, status: Status, query: str, of: str = "count(*)") -> Fact:
    return Fact(what, number, status if number else "inOrder", query, of)


def _sum(what: str, number: int, column: str, status: Status, each: str) -> Fact:
    """The sum of a column of OVERVIEW; `each`: what it counts, one by one."""
    fact = _bad(what, number, status, OverviewRows(f"{column} > 0", (f"-{column}",)).query(), f"sum({column})")
    return replace(fact, each=each)


def subtitle(found: Figures) -> Markup:
    """Of what and when the page tells, as HTML."""
    return of_clusters.subtitle(found.clusters)


def verdict(found: Figures) -> Verdict:
    """Whether each queue has one owner, what else there is, and of what nothing is known."""
    costs = [fact for fact in facts(found) if fact.status == "warning"]
    status, sentences = _of_owners(found.worst.totals if found.worst is not None else None)
    if costs:
        status = "warning" if status == "inOrder" else status
        sentences.append(said(f"Also: {', '.join(f'{fact.what} {fact.value:,}' for fact in costs)}."))
    if found.number_left_out:
        sentences.append(said(f"Of {number_of(found.number_left_out, 'group')} left out nothing is said."))
    return Verdict(status, tuple(sentences))


def _of_owners(totals: groups.Totals | None) -> tuple[Status, list[Markup]]:
    if totals is None or not totals.groups:
        return "warning", [said("No group is judged: nothing here says whether queues have owners.")]
    status: Status = "error" if totals.wrong else "inOrder"
    sentences = [said(f"Each queue of {number_of(totals.groups, 'group')} has one owner.")]
    if totals.wrong:
        wrong = number_of(totals.wrong, "group")
        sentences = [said(f"In {wrong} of {totals.groups:,} there are queues unassigned or with duplicate owners.")]
    if not totals.observed:
        sentences.append(said("That is predicted: the snapshots report no owners."))
    return status, sentences


def to_do(found: Figures) -> tuple[ToDo, ...]:
    """What to do first."""
    return overview.to_do(found.worst, (one.file for one in found.quarantine or ()), found.files)


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
                columns("text", "reason"),
                query=rows_query("quarantine", "", _BY_FILE, len(found)),
            ),
        ),
        codes=(UNREAD_DOCUMENT,),
    )


def _tables(found: tuple[Exported, ...], readers: Sequence[str]) -> Section:
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
        said(
            f"The whole warehouse, down to each queue, in the same state: {' or '.join(['{}'] * len(readers))}.",
            *readers,
        ),
    )
    return Section("tables", "The tables", seen, grids=(grid,))
