"""The stage `history`: clusters with later snapshots go on from where they were, others are computed from their start.

Of each cluster the tables say how far they are (`_Reached`). It goes on when all that came since is later; a snapshot
that came late or was replaced changes what was told of later nights: the cluster is computed anew, which is said.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import functions as fn

from rmqlb.model.finding import INFO, Finding
from rmqlb.model.group import BROADCASTING
from rmqlb.model.stage import StageReport, StageState, stage_report
from rmqlb.pipeline.by_cluster import made_of, short, tokens_before
from rmqlb.pipeline.history.history_tables import READS, SO_FAR, history
from rmqlb.pipeline.history.snapshot_timeline import untimed
from rmqlb.pipeline.ingest.ingest_steps import in_few_parts
from rmqlb.pipeline.schemas import CHURN, CLUSTERS, DOCUMENTS, GROUPS, GROUPS_SO_FAR, HISTORY, MOVES, SESSIONS, TREND
from rmqlb.pipeline.schemas import SO_FAR as CARRIED
from rmqlb.pipeline.storage.storage import Where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rmqlb.pipeline.pipeline_plan import PipelinePlan
    from rmqlb.pipeline.schemas import Table
    from rmqlb.pipeline.spark.progress import StageProgress
    from rmqlb.pipeline.warehouse import Warehouse

_STAGE = "history"
_MOST_DAYS = 4000
_MOST_NAMED = 5


class Run(Protocol):
    """What the stage gets; `pipeline.stages` has it, and starts this."""

    @property
    def spark(self) -> SparkSession:
        """The session."""

    @property
    def warehouse(self) -> Warehouse:
        """Where the tables are."""

    @property
    def plan(self) -> PipelinePlan:
        """What is asked for."""

    @property
    def progress(self) -> StageProgress:
        """Who is told how far it is."""

    def read(self, table: Table, where: Where | None = None) -> DataFrame:
        """A table, as far as it is looked at."""


@dataclass(frozen=True)
class _Reached:
    """How far a cluster's history is.

    The `newest` time of a snapshot (µs since 1970), the numbers of those with and without a time, and how often any
    came late or was replaced, as in CLUSTERS.
    """

    newest: int | None
    snapshots: int
    untimed: int
    late: int

    @property
    def token(self) -> str:
        """All of it in a text."""
        return f"{self.newest} {self.snapshots} {self.untimed} {self.late}"

    @property
    def day(self) -> date:
        """That of the newest."""
        return datetime.fromtimestamp((self.newest or 0) // 1_000_000, UTC).date()

    def leads_to(self, now: _Reached) -> bool:
        """What came since is later than all before, as far as the numbers tell."""
        if self.newest is None or now.newest is None or now.newest <= self.newest:
            return False
        return (self.late, self.untimed) == (now.late, now.untimed) and now.snapshots > self.snapshots


@dataclass(frozen=True)
class _New:
    """The snapshots that some clusters go on with: their ids, and the dates of their rows."""

    clusters: frozenset[str]
    snapshots: frozenset[str] = frozenset()
    dates: frozenset[date | None] = frozenset()

    @property
    def where(self) -> Where:
        return {"cluster": self.clusters, "date": self.dates, "snapshot": self.snapshots}


def write_history(run: Run) -> StageReport:
    """The snapshots of all nights → the tables of `schemas.HISTORY`."""
    began = time.monotonic()
    asked = run.plan.digest("only")
    known = None if run.plan.force else tokens_before(run.warehouse, _STAGE, asked)
    if run.plan.only.date:
        findings, changed = _with_dates(run, asked, known)
    else:
        findings, changed = _bring_up_to_date(run, asked, known)
    rows = run.warehouse.rows(*HISTORY)
    state: StageState = "written" if changed else "unchanged"
    return stage_report(_STAGE, time.monotonic() - began, rows, state=state, findings=findings)


def _with_dates(run: Run, asked: str, known: Mapping[str, str] | None) -> tuple[tuple[Finding, ...], bool]:
    """Of some dates only: always from the start; what was found, and whether anything was written."""
    token = {"*": short(run.warehouse.versions(*READS))}
    if known != token:
        _write_anew(run, frozenset(), made_of(asked, token), whole=True)
    return _untimed(untimed(run.read(DOCUMENTS)).count()), known != token


def _bring_up_to_date(run: Run, asked: str, known: Mapping[str, str] | None) -> tuple[tuple[Finding, ...], bool]:
    """What was found, and whether anything was written."""
    now = _reached(run)
    before = {name: _parse(token) for name, token in (known or {}).items()}
    findings = (*_untimed(sum(reached.untimed for reached in now.values())), *_late(before, now))
    if known is not None and before == now:
        return findings, False
    new = _later_snapshots(run, before, now)
    anew = frozenset(name for name in {*now, *before} if now.get(name) != before.get(name)) - new.clusters
    reached = {name: before[name] if name in new.clusters else its for name, its in now.items()}
    if known is None or anew:
        _write_anew(run, anew, _made_of(asked, reached), whole=known is None)
    if new.clusters:
        _write_more(run, new, _made_of(asked, now))
    return findings, True


def _reached(run: Run) -> dict[str, _Reached]:
    """Cluster → how far its history has to be."""
    columns = (fn.unix_micros("newest").alias("newest"), "snapshots", "untimed", "late")
    rows = run.read(CLUSTERS).select("cluster", *columns).collect()
    return {row[0]: _Reached(*row[1:]) for row in rows}


def _parse(token: str) -> _Reached:
    newest, *counts = token.split(" ")
    return _Reached(None if newest == "None" else int(newest), *map(int, counts))


def _made_of(asked: str, reached: Mapping[str, _Reached]) -> dict[str, str]:
    return made_of(asked, {name: its.token for name, its in reached.items()})


def _later_snapshots(run: Run, before: Mapping[str, _Reached], now: Mapping[str, _Reached]) -> _New:
    """The clusters that can go on, and their new snapshots."""
    names = frozenset(name for name, its in before.items() if name in now and its.leads_to(now[name]))
    if not names:
        return _New(names)
    first, last = min(before[name].day for name in names), max(now[name].day for name in names)
    where: dict[str, frozenset[str] | frozenset[date | None]] = {"cluster": names}
    if (last - first).days <= _MOST_DAYS:
        where["date"] = frozenset([None, *(first + timedelta(days=n) for n in range((last - first).days + 1))])
    snapshots = in_few_parts(run.read(DOCUMENTS, where)).groupBy("cluster", "snapshot")
    taken = fn.max(fn.unix_micros("takenAt")).alias("takenAt")
    rows = snapshots.agg(taken, fn.max("date").alias("date")).where("takenAt IS NOT NULL").collect()
    later = [row for row in rows if row["takenAt"] > (before[row["cluster"]].newest or 0)]
    found = Counter(row["cluster"] for row in later)
    # A snapshot in a folder of another date is not among them; then the numbers differ.
    names = frozenset(name for name in names if found[name] == now[name].snapshots - before[name].snapshots)
    names -= _newly_broadcasting(run, _new(names, later))
    return _new(names, later)


def _new(names: frozenset[str], rows: Iterable[Any]) -> _New:
    its = [row for row in rows if row["cluster"] in names]
    return _New(names, frozenset(row["snapshot"] for row in its), frozenset(row["date"] for row in its))


def _newly_broadcasting(run: Run, new: _New) -> frozenset[str]:
    """The clusters in which a group is BROADCASTING whose moves were told: they are to be told no more."""
    if not new.clusters:
        return frozenset()
    groups = run.read(GROUPS, new.where).where(fn.col("messageModel") == BROADCASTING)
    now = {(row[0], row[1]) for row in groups.select("cluster", "group").collect()}
    if not now:
        return frozenset()
    told = run.warehouse.read(run.spark, GROUPS_SO_FAR, {"cluster": {cluster for cluster, _ in now}})
    told = told.where(fn.col("firstDate").isNotNull() & ~fn.col("isBroadcasting")).select("cluster", "group")
    return frozenset(row[0] for row in told.collect() if (row[0], row[1]) in now)


def _write_anew(run: Run, clusters: frozenset[str], made_from: Mapping[str, str], *, whole: bool) -> None:
    where: Where | None = None if whole else {"cluster": clusters}
    with run.warehouse.writing() as writing, history({table.name: run.read(table, where) for table in READS}) as frames:
        for table in run.progress.each("tables", (*HISTORY, *CARRIED)):
            writing.replace(table, frames[table.name], made_from, where)


def _write_more(run: Run, new: _New, made_from: Mapping[str, str]) -> None:
    of_clusters: Where = {"cluster": new.clusters}
    of_days: Where = {"cluster": new.clusters, "date": new.dates}
    gives_way: dict[str, Where] = {
        SESSIONS.name: {"cluster": new.clusters, "isOpen": (True,)},
        MOVES.name: of_days,
        CHURN.name: of_days,
        TREND.name: {"cluster": ()},
    }
    tables = {table.name: run.read(table, new.where) for table in READS}
    carried = {
        table.name: run.warehouse.read(run.spark, table, gives_way.get(table.name, of_clusters)) for table in SO_FAR
    }
    with run.warehouse.writing() as writing, history(tables, carried) as frames:
        for table in run.progress.each("tables", (*HISTORY, *CARRIED)):
            writing.replace(table, frames[table.name], made_from, gives_way.get(table.name, of_clusters))


def _untimed(number: int) -> tuple[Finding, ...]:
    if not number:
        return ()
    return (Finding("untimed", f"{number} snapshots say no time; the history leaves them out"),)


def _late(before: Mapping[str, _Reached], now: Mapping[str, _Reached]) -> tuple[Finding, ...]:
    """What came late is said, as it costs all nights of its cluster."""
    names = sorted(name for name, its in before.items() if name in now and now[name].late != its.late)
    if not names:
        return ()
    which = ", ".join(names[:_MOST_NAMED]) + (f" and {len(names) - _MOST_NAMED} more" if names[_MOST_NAMED:] else "")
    text = f"history is computed from the start where snapshots of earlier nights came late or were replaced: {which}"
    return (Finding("late-snapshots", text, severity=INFO),)
