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
from rmqlb.model.stage import StageReport, stage_report
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
        """Tables of ingest, of each cluster's last snapshot, as far as they are looked at.

        Which these are is asked first: then Spark reads no other night, which a join would have it do.
        """
        from rmqlb.pipeline.chosen_snapshots import of_snapshots
        from rmqlb.pipeline.ingest.ingest_stage import latest

        chosen = latest(self.read(schemas.DOCUMENTS), self.plan.as_of).collect()
        return {table.name: of_snapshots(self.read(table), chosen) for table in tables}


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
    """The groups of the last snapshots → ASSIGNMENTS and REFUSALS, in one pass."""
    from rmqlb.pipeline.groups.assignment_rows import PART, allocated, refusals_of
    from rmqlb.pipeline.groups.fleet import judged, spread_out, work_of

    plan = run.plan

    def write(writing: Writing, made_from: Mapping[str, str]) -> None:
        groups = judged(run.latest(schemas.FLEET)["fleet"], include_retry=plan.include_retry, only=plan.only)
        spread = spread_out(groups, work_of(groups))
        rows = allocated(spread, plan.strategies, plan.settings)
        others = writing.replace_part(schemas.ASSIGNMENTS, rows, PART, made_from)
        writing.replace(schemas.REFUSALS, None if others is None else refusals_of(others), made_from)

    asked = plan.digest("strategies", "settings_text", "as_of", "only", "include_retry")
    return _stage(run, "allocate", (schemas.DOCUMENTS, schemas.FLEET), asked, write)


def score(run: StageRun) -> StageReport:
    """ASSIGNMENTS → LOADS and SCORES."""
    from rmqlb.pipeline.chosen_snapshots import of_snapshots
    from rmqlb.pipeline.groups.score_rows import loads, scores

    def write(writing: Writing, made_from: Mapping[str, str]) -> None:
        owned = run.read(schemas.ASSIGNMENTS)
        groups = of_snapshots(run.read(schemas.FLEET), owned.select(*schemas.KEY).distinct().collect())
        writing.replace(schemas.LOADS, loads(owned, groups), made_from)
        writing.replace(schemas.SCORES, scores(owned, writing.read(run.spark, schemas.LOADS), groups), made_from)

    return _stage(run, "score", (schemas.ASSIGNMENTS,), run.plan.digest("only"), write)


def what_if(run: StageRun) -> StageReport:
    """The groups of the last snapshots → WHAT_IF, TOPICS → BROKER_LOSSES."""
    from rmqlb.pipeline.groups.fleet import judged, spread_out, work_of
    from rmqlb.pipeline.groups.what_if_rows import broker_losses
    from rmqlb.pipeline.groups.what_if_rows import what_if as sweep

    plan = run.plan

    def write(writing: Writing, made_from: Mapping[str, str]) -> None:
        last = run.latest(schemas.FLEET, schemas.TOPICS)
        groups = judged(last["fleet"], include_retry=plan.include_retry, only=plan.only)
        groups = spread_out(groups, work_of(groups), by_topic=False)
        writing.replace(schemas.WHAT_IF, sweep(groups, plan.strategies, plan.settings, plan.consumers), made_from)
        writing.replace(schemas.BROKER_LOSSES, broker_losses(last["topics"]), made_from)

    asked = plan.digest("strategies", "settings_text", "as_of", "only", "include_retry", "consumers")
    return _stage(run, "what-if", (schemas.FLEET, schemas.DOCUMENTS, schemas.TOPICS), asked, write)


def producers(run: StageRun) -> StageReport:
    """TOPICS → SENDS and SEND_SHARES."""
    from rmqlb.pipeline.producers.send_tables import PARTITIONS, write_sends

    plan = run.plan

    def write(writing: Writing, made_from: Mapping[str, str]) -> None:
        topics = run.latest(schemas.TOPICS)[schemas.TOPICS.name]
        most = max(run.warehouse.rows(schemas.TOPICS)["topics"], 1)  # of shapes, some of which fail in several ways
        write_sends(topics, plan.schedule, writing, made_from=made_from, partitions=min(PARTITIONS, most))

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
    summary = write_report(run.spark, run.warehouse, folder, top=run.plan.top)
    rows = {exported.name: exported.rows for exported in summary.tables}
    written = info(f"the report is {summary.page}")
    counts = {camel_case(words): number for words, number in summary.facts.items()}
    return stage_report("report", time.monotonic() - began, rows, counts=counts, findings=(written,))


STAGES: Mapping[str, Callable[[StageRun], StageReport]] = {
    "ingest": ingest,
    "allocate": allocate,
    "score": score,
    "what-if": what_if,
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
