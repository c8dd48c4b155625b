"""The clusters: how old what the page says of each is, and its groups together."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from markupsafe import Markup

from rmqlb.pipeline.report.frames import LastSnapshot, Row, Tables
from rmqlb.pipeline.report.page import Section, Status, counts, grid_of, names, said, words
from rmqlb.pipeline.report.queries import rows_query
from rmqlb.pipeline.report.subject_groups import ClusterTotals
from rmqlb.pipeline.report.text import number_of

MOST_CLUSTERS = 200
"""Clusters in the first table of the page."""
OUT_OF_DATE = rows_query(
    "cluster_summary",
    "judgedDate < lastDate OR lastDate < (SELECT max(lastDate) FROM cluster_summary) - INTERVAL 1 DAY",
    ["cluster"],
)


class Cluster(Row, frozen=True):
    """What is known of a cluster: its snapshots, and its groups in the last of them that was scored, of `judged_date`.

    Snapshots that `compact --keep` removed count too.
    """

    cluster: str
    snapshots: int | None
    first_date: dt.date | None
    last_date: dt.date | None
    judged_date: dt.date | None
    groups: int | None
    consumers: int | None
    queues: int | None
    idle: int | None
    unassigned: int | None


def clusters(tables: Tables, scored: Sequence[ClusterTotals]) -> tuple[Cluster, ...]:
    """All clusters that were ingested or scored."""
    of_groups = {one.cluster: one for one in scored if one.groups}
    of_snapshots = {one.cluster: one for one in tables.clusters}
    every = sorted({*of_groups, *of_snapshots})
    return tuple(_cluster(name, of_snapshots.get(name), of_groups.get(name)) for name in every)


def _cluster(name: str, last: LastSnapshot | None, scored: ClusterTotals | None) -> Cluster:
    judged = scored.scored_date if scored else None
    return Cluster(
        cluster=name,
        snapshots=last.snapshots if last else None,
        first_date=last.first_date if last else judged,
        last_date=last.date if last else judged,
        judged_date=judged,
        groups=scored.groups if scored else None,
        consumers=scored.consumers if scored else None,
        queues=scored.queues if scored else None,
        idle=scored.idle_known if scored else None,
        unassigned=scored.unassigned_known if scored else None,
    )


def out_of_date(found: Sequence[Cluster]) -> int:
    """Clusters that were judged by another snapshot than the last, or whose last is older than those of others."""
    newest = _newest(found)
    return sum(_status(one, newest) == "warning" for one in found)


def _newest(found: Sequence[Cluster]) -> dt.date | None:
    return max((one.last_date for one in found if one.last_date is not None), default=None)


def _status(one: Cluster, newest: dt.date | None) -> Status:
    if one.last_date is None or newest is None:
        return ""
    is_behind = one.judged_date is not None and one.judged_date < one.last_date
    return "warning" if is_behind or one.last_date < newest - dt.timedelta(days=1) else ""


def subtitle(found: Sequence[Cluster]) -> Markup:
    """Of what and when the page tells."""
    if not found:
        return said("No cluster was read.")
    dates = [date for one in found if (date := one.judged_date or one.last_date) is not None]
    span = "of unknown date"
    if dates:
        span = f"of {min(dates)}" if min(dates) == max(dates) else f"of {min(dates)} to {max(dates)}"
    return said(f"{number_of(len(found), 'cluster')}, each by its last snapshot, {span}")


def section(found: tuple[Cluster, ...]) -> Section:
    """The clusters in a line each."""
    newest, old = _newest(found), out_of_date(found)
    seen = [said("Queues are counted once for each group that reads them, consumers once for each group they are in.")]
    if old:
        what = f"{number_of(old, 'cluster')} out of date: what the page says of them was so on the day under “judged”."
        seen.insert(0, said(what))
    grid = grid_of(
        "Each cluster, with the groups of its last snapshot under the strategies that they run",
        found[:MOST_CLUSTERS],
        (("", "status", lambda one: _status(one, newest)),),
        names("cluster"),
        counts("snapshots"),
        words(("first", "first_date"), ("last", "last_date"), ("judged", "judged_date")),
        counts("groups", "consumers", "queues", ("idle predicted", "idle"), ("unassigned predicted", "unassigned")),
        query=rows_query("cluster_summary", "", ["cluster"], min(len(found), MOST_CLUSTERS)),
    )
    advice = "take and ingest a new snapshot of these, then run the stages: rmqlb pipeline run." if old else ""
    return Section("clusters", "Clusters", tuple(seen), advice, grids=(grid,))
