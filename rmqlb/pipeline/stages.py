"""The stages: each reads tables of the warehouse and writes others, all of them or none.

One whose tables were made from just the tables and the plan of now has nothing to do; so a rerun goes on where an
earlier run stopped.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rmqlb.model.finding import Finding, info
from rmqlb.model.stage import StageReport, StageState, stage_report
from rmqlb.pipeline import schemas
from rmqlb.pipeline.pipeline_plan import PipelinePlan
from rmqlb.pipeline.schemas import Table
from rmqlb.pipeline.warehouse import Warehouse, Writing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class StageRun:
    """What every stage gets."""

    spark: SparkSession
    warehouse: Warehouse
    plan: PipelinePlan

    def read(self, table: Table) -> DataFrame:
        """A table, as far as it is looked at."""
        return self.plan.only.filter(self.warehouse.read(self.spark, table))

    def latest(self, *tables: Table) -> dict[str, DataFrame]:
        """Tables of ingest, of each cluster's last snapshot, as far as they are looked at."""
        from rmqlb.pipeline.ingest.ingest_stage import latest

        key = list(schemas.SNAPSHOT)
        chosen = latest(self.read(schemas.DOCUMENTS), self.plan.as_of).select(*key)
        return {table.name: self.read(table).join(chosen, key, "left_semi") for table in tables}


def ingest(run: StageRun) -> StageReport:
    """Snapshots and routes → the tables of `schemas.INGESTED`, and what could not be read → QUARANTINE."""
    from rmqlb.pipeline.ingest.ingest_report import ingest_findings
    from rmqlb.pipeline.ingest.ingest_stage import ingest as read_in

    began = time.monotonic()
    found = read_in(run.spark, run.warehouse, run.plan.inputs, cluster=run.plan.cluster, only=run.plan.only)
    counts = {
        "found": found.found,
        "ingested": found.ingested,
        "known": found.known,
        "quarantined": found.quarantined,
        "skipped": found.skipped,
    }
    return stage_report(
        "ingest",
        time.monotonic() - began,
        found.rows,
        state="written" if any(found.rows.values()) else "unchanged",
        counts=counts,
        findings=ingest_findings(found),
    )


def allocate(run: StageRun) -> StageReport:
    """The last snapshots → FLEET, ASSIGNMENTS and REFUSALS."""
    from rmqlb.pipeline.groups.assignment_rows import assignments, refusals
    from rmqlb.pipeline.groups.fleet import fleet

    topics, owners, offsets = schemas.TOPICS, schemas.OWNERS, schemas.OFFSETS
    reads = (topics, schemas.GROUPS, schemas.PROCESSES, schemas.SUBSCRIPTIONS, owners, offsets)
    plan = run.plan

    def write(writing: Writing, made_from: Mapping[str, str]) -> None:
        rows = fleet(run.latest(*reads), include_retry=plan.include_retry)
        writing.replace(schemas.FLEET, rows, made_from)
        groups = writing.read(run.spark, schemas.FLEET)
        writing.replace(schemas.ASSIGNMENTS, assignments(groups, plan.strategies, plan.settings), made_from)
        writing.replace(schemas.REFUSALS, refusals(groups, plan.strategies, plan.settings), made_from)

    asked = plan.digest("strategies", "settings_text", "as_of", "only", "include_retry")
    return _stage(run, "allocate", (schemas.DOCUMENTS, *reads), asked, write)


def score(run: StageRun) -> StageReport:
    """ASSIGNMENTS → LOADS and SCORES."""
    from rmqlb.pipeline.groups.score_rows import loads, scores

    def write(writing: Writing, made_from: Mapping[str, str]) -> None:
        owned, groups = run.read(schemas.ASSIGNMENTS), run.read(schemas.FLEET)
        writing.replace(schemas.LOADS, loads(owned, groups), made_from)
        writing.replace(schemas.SCORES, scores(owned, writing.read(run.spark, schemas.LOADS), groups), made_from)

    return _stage(run, "score", (schemas.ASSIGNMENTS, schemas.FLEET), run.plan.digest("only"), write)


def what_if(run: StageRun) -> StageReport:
    """FLEET → WHAT_IF, TOPICS → BROKER_LOSSES."""
    from rmqlb.pipeline.groups.what_if_rows import broker_losses
    from rmqlb.pipeline.groups.what_if_rows import what_if as sweep

    plan = run.plan

    def write(writing: Writing, made_from: Mapping[str, str]) -> None:
        rows = sweep(run.read(schemas.FLEET), plan.strategies, plan.settings, plan.consumers)
        writing.replace(schemas.WHAT_IF, rows, made_from)
        losses = broker_losses(run.latest(schemas.TOPICS)[schemas.TOPICS.name])
        writing.replace(schemas.BROKER_LOSSES, losses, made_from)

    asked = plan.digest("strategies", "settings_text", "as_of", "only", "consumers")
    return _stage(run, "what-if", (schemas.FLEET, schemas.DOCUMENTS, schemas.TOPICS), asked, write)


def size(run: StageRun) -> StageReport:
    """FLEET under the strategies that SCORES says it runs → SIZES."""
    from rmqlb.pipeline.groups.group_sizes import sizes

    plan = run.plan

    def write(writing: Writing, made_from: Mapping[str, str]) -> None:
        groups = run.latest(schemas.GROUPS)[schemas.GROUPS.name]
        fleet, scores = run.read(schemas.FLEET), run.read(schemas.SCORES)
        rows = sizes(fleet, scores, groups, plan.size_limits, plan.id_trials, plan.settings)
        writing.replace(schemas.SIZES, rows, made_from)

    asked = plan.digest("size_limits", "id_trials", "settings_text", "as_of", "only")
    return _stage(run, "size", (schemas.FLEET, schemas.SCORES, schemas.DOCUMENTS, schemas.GROUPS), asked, write)


def sweep(run: StageRun) -> StageReport:
    """FLEET under the strategies that SCORES says it runs, and BROKERS → WORST_LOSSES and BROKEN_LIMITS."""
    from rmqlb.pipeline.groups.group_losses import write_losses
    from rmqlb.pipeline.groups.running_groups import running_groups

    plan = run.plan

    def write(writing: Writing, made_from: Mapping[str, str]) -> None:
        latest = run.latest(schemas.GROUPS, schemas.BROKERS)
        fleet, scores = run.read(schemas.FLEET), run.read(schemas.SCORES)
        running = running_groups(fleet, scores, latest[schemas.BROKERS.name])
        limits = dict(plan.loss_limits)
        write_losses(running, latest[schemas.GROUPS.name], limits, plan.settings, writing, made_from)

    reads = (schemas.FLEET, schemas.SCORES, schemas.DOCUMENTS, schemas.GROUPS, schemas.BROKERS)
    return _stage(run, "sweep", reads, plan.digest("loss_limits", "settings_text", "as_of", "only"), write)


def producers(run: StageRun) -> StageReport:
    """TOPICS → SENDS and SEND_SHARES."""
    from rmqlb.pipeline.producers.send_tables import write_sends

    plan = run.plan

    def write(writing: Writing, made_from: Mapping[str, str]) -> None:
        topics = run.latest(schemas.TOPICS)[schemas.TOPICS.name]
        write_sends(topics, plan.schedule, writing, made_from=made_from)

    asked = plan.digest("schedule_text", "as_of", "only")
    return _stage(run, "producers", (schemas.DOCUMENTS, schemas.TOPICS), asked, write)


def history(run: StageRun) -> StageReport:
    """All snapshots → the tables of `schemas.HISTORY`."""
    from rmqlb.pipeline.history.history_tables import READS
    from rmqlb.pipeline.history.history_tables import history as over_time
    from rmqlb.pipeline.history.snapshot_timeline import untimed

    def write(writing: Writing, made_from: Mapping[str, str]) -> None:
        with over_time({table.name: run.read(table) for table in READS}) as frames:
            for table in schemas.HISTORY:
                writing.replace(table, frames[table.name], made_from)

    done = _stage(run, "history", READS, run.plan.digest("only"), write)
    without_time = untimed(run.read(schemas.DOCUMENTS)).count()
    if not without_time:
        return done
    text = f"{without_time} snapshots say no time; the history leaves them out"
    return replace(done, findings=(Finding("untimed", text),))


def report(run: StageRun) -> StageReport:
    """All tables → CSV, Parquet and one page in the report's folder."""
    from rmqlb.pipeline.report.text import camel_case
    from rmqlb.pipeline.report.write import write_report

    began = time.monotonic()
    folder = run.plan.report_to or os.path.join(run.warehouse.folder, "report")
    summary = write_report(run.spark, run.warehouse, folder, top=run.plan.top, force=run.plan.force)
    rows = {exported.name: exported.rows for exported in summary.tables}
    written = info(f"the report is {summary.page}")
    counts = {camel_case(words): number for words, number in summary.facts.items()}
    seconds = time.monotonic() - began
    state: StageState = "unchanged" if summary.unchanged else "written"
    return stage_report("report", seconds, rows, state=state, counts=counts, findings=(written,))


STAGES: Mapping[str, Callable[[StageRun], StageReport]] = {
    "ingest": ingest,
    "allocate": allocate,
    "score": score,
    "what-if": what_if,
    "size": size,
    "sweep": sweep,
    "producers": producers,
    "history": history,
    "report": report,
}
"""The stages by name, in the order in which `run` does them."""


def _stage(
    run: StageRun, name: str, reads: tuple[Table, ...], asked: str, write: Callable[[Writing, Mapping[str, str]], None]
) -> StageReport:
    """Write a stage's tables, unless they are there and made from the same.

    They are made from the tables it `reads` and from what is `asked`, a digest of what of the plan they depend on.
    """
    began = time.monotonic()
    warehouse, writes = run.warehouse, schemas.WRITTEN_BY[name]
    made_from = {**warehouse.versions(*reads), "plan": asked}
    if not run.plan.force and all(warehouse.is_made_from(table, made_from) for table in writes):
        return stage_report(name, time.monotonic() - began, warehouse.rows(*writes), state="unchanged")
    with warehouse.writing() as writing:
        write(writing, made_from)
        rows = {table: stored.rows for table, stored in writing.written.items()}
    return stage_report(name, time.monotonic() - began, rows)
