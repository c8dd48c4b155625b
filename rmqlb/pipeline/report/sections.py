"""Figures → the parts of the page, in the order in which they are read.

Rules of these files (`sections*.py`):
- A section says in words what is seen and what to do, then shows it as a plot and as a table.
- A table that is not there has no section; one without rows has a section of one line.
"""

from __future__ import annotations

from rmqlb.pipeline.report.figures import Figures
from rmqlb.pipeline.report.page import Section, Value, grid_of, said
from rmqlb.pipeline.report.sections_changes import change_sections
from rmqlb.pipeline.report.sections_groups import group_sections
from rmqlb.pipeline.report.sections_history import history_sections
from rmqlb.pipeline.report.sections_sends import send_sections
from rmqlb.pipeline.report.words import number_of


def sections(figures: Figures) -> tuple[Section, ...]:
    """All parts of the page."""
    return (
        *_clusters(figures),
        *group_sections(figures),
        *change_sections(figures),
        *send_sections(figures),
        *history_sections(figures),
        *_quarantine(figures),
        _tables(figures),
    )


def subtitle(figures: Figures) -> str:
    """Of what and when the page tells, as HTML."""
    dates = [date for one in figures.clusters for date in (one.first_date, one.last_date) if date is not None]
    if not figures.clusters:
        return "No cluster was read."
    clusters = number_of(len(figures.clusters), "cluster")
    if not dates:
        return said(f"{clusters}, snapshots of unknown date")
    span = min(dates).isoformat() if min(dates) == max(dates) else f"{min(dates).isoformat()} to {max(dates)}"
    return said(f"{clusters}, snapshots of {span}")


def facts(figures: Figures) -> tuple[tuple[str, Value], ...]:
    """The figures at the top of the page."""
    found: list[tuple[str, Value]] = [("clusters", len(figures.clusters))]
    if figures.worst is not None:
        totals = figures.worst.totals
        found += [
            ("groups", totals.groups),
            ("lopsided groups", totals.lopsided),
            ("idle consumers", totals.idle),
            ("queues without reader", totals.unowned),
        ]
        if totals.observed and totals.held_by_nobody is not None:
            found.append(("queues seen without reader", totals.held_by_nobody))
    if figures.flapping is not None:
        found.append(("flapping groups", figures.flaps))
    if figures.quarantine is not None:
        found.append(("documents quarantined", figures.quarantined))
    return tuple(found)


def _clusters(figures: Figures) -> tuple[Section, ...]:
    if not figures.clusters:
        return ()
    grid = grid_of(
        "Each cluster, with the groups of its last snapshot under the strategies that they run",
        figures.clusters,
        ("cluster", "name", "cluster"),
        ("snapshots", "count", "snapshots"),
        ("first", "word", "first_date"),
        ("last", "word", "last_date"),
        ("groups", "count", "groups"),
        ("consumers", "count", "members"),
        ("queues", "count", "queues"),
        ("idle", "count", "idle"),
        ("without reader", "count", "unowned"),
    )
    seen = "Queues are counted once for each group that reads them, consumers once for each group they are in."
    return (Section("clusters", "Clusters", (said(seen),), grids=(grid,)),)


def _quarantine(figures: Figures) -> tuple[Section, ...]:
    if figures.quarantine is None:
        return ()
    title = "Documents that could not be read"
    if not figures.quarantined:
        return (Section("quarantine", title, (said("Nothing: every document was read."),)),)
    documents = number_of(figures.quarantined, "document")
    grid = grid_of(
        "The first, by file and place",
        figures.quarantine,
        ("file", "name", "file"),
        ("document", "count", "position"),
        ("bytes", "count", "bytes"),
        ("reason", "name", "reason"),
    )
    return (
        Section(
            "quarantine",
            title,
            (said(f"{documents} could not be read. What they would have told is missing everywhere on this page."),),
            "mend or fetch them again, and ingest them again: what was read before is known and skipped.",
            grids=(grid,),
        ),
    )


def _tables(figures: Figures) -> Section:
    grid = grid_of(
        "Tables beside this page: Parquet of all, CSV of those that a spreadsheet opens",
        figures.tables,
        ("table", "word", "name"),
        ("rows", "count", "rows"),
        ("files", "word", lambda one: f"parquet/{one.name}/" + (f", csv/{one.name}.csv" if one.in_csv else "")),
    )
    return Section("tables", "The tables", (said("Every figure above comes from these."),), grids=(grid,))
