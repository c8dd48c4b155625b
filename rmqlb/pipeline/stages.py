"""The stages: each reads tables of the warehouse and writes others, all of them or none.

Clusters whose rows were made from just the snapshots and the plan of now keep them; so a night costs one night, and a
rerun goes on where an earlier run stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqlb.model.finding import info
from rmqlb.model.stage import StageReport, StageState, stage_report
from rmqlb.pipeline import schemas
from rmqlb.pipeline.by_cluster import LastSnapshot, Part, part_to_make, short, tokens_of
from rmqlb.pipeline.chosen_snapshots import of_snapshots, partitions
from rmqlb.pipeline.pipeline_plan import PipelinePlan
from rmqlb.pipeline.schemas import Table
from rmqlb.pipeline.spark.progress import Count, StageProgress
from rmqlb.pipeline.storage.storage import Where
from rmqlb.pipeline.warehouse import Warehouse, Writing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class StageRun:
    """What every stage gets."""

    spark: SparkSession
    warehouse: Warehouse
    plan: PipelinePlan
    progress: StageProgress = field(default_factory=StageProgress)

    def read(self, table: Table, where: Where | None = None) -> DataFrame:
        """A table (its rows `where`), as far as it is looked at."""
        return self.plan.only.filter(self.warehouse.read(self.spark, table, where))

    def last_snapshots(self) -> dict[str, LastSnapshot]:
        """Each cluster's last snapshot, as far as it is looked at."""
        from rmqlb.pipeline.ingest.ingest_stage import latest

        if self.plan.as_of is None and not self.plan.only.date:
            rows = self.read(schemas.CLUSTERS).collect()
            return {
                row["cluster"]: LastSnapshot(row["date"], row["snapshot"], short(row["snapshot"], row["revision"]))
                for row in rows
            }
        version = self.warehouse.versions(schemas.DOCUMENTS)
        rows = latest(self.read(schemas.DOCUMENTS), self.plan.as_of).collect()
        return {
            row["cluster"]: LastSnapshot(row["date"], row["snapshot"], short(row["snapshot"], version)) for row in rows
        }

    def latest(self, *tables: Table) -> dict[str, DataFrame]:
        """Tables of ingest, of each cluster's last snapshot, as far as they are looked at."""
        last = self.last_snapshots()
        return self.of_last(last, last, *tables)

    def of_last(
        self, last: Mapping[str, LastSnapshot], clusters: Collection[str], *tables: Table
    ) -> dict[str, DataFrame]:
        """Tables of ingest, of these clusters' last snapshots; of others nothing is read."""
        chosen = {name: last[name] for name in clusters if name in last}
        return {table.name: of_snapshots(self.read(table, partitions(chosen)), chosen) for table in tables}

    def scored(self, clusters: Collection[str], *tables: Table) -> tuple[dict[str, DataFrame], DataFrame, Count | None]:
        """Tables of ingest of the snapshots of these clusters that were scored (of others, the last), and SCORES.

        The groups whose strategy is known begin to be counted.
        """
        from pyspark.sql import functions as fn

        scores = self.read(schemas.SCORES, {"cluster": clusters})
        groups = fn.count_distinct(fn.when(fn.col("runs"), fn.col("group"))).alias("groups")
        rows = scores.groupBy(*schemas.KEY).agg(groups).collect()
        known = {row["cluster"]: LastSnapshot(row["date"], row["snapshot"], "") for row in rows}
        count = self.progress.count(self.spark, "groups", sum(row["groups"] for row in rows))
        return self.of_last({**self.last_snapshots(), **known}, clusters, *tables), scores, count

    def scored_tokens(self) -> dict[str, str]:
        """Cluster → a text that changes with its scores and with its last snapshot."""
        self.warehouse.read(self.spark, schemas.SCORES)
        scores = tokens_of(self.warehouse, schemas.SCORES, "score")
        last = {name: its.token for name, its in self.last_snapshots().items()}
        return {name: short(scores.get(name), last.get(name)) for name in {*scores, *last}}


def ingest(run: StageRun) -> StageReport:
    """Snapshots and routes → the tables of `schemas.INGESTED`, and what could not be read → QUARANTINE."""
    from rmqlb.pipeline.ingest.ingest_report import ingest_findings
    from rmqlb.pipeline.ingest.ingest_stage import ingest as read_in

    began = time.monotonic()
    plan = run.plan
    found = read_in(
        run.spark,
        run.warehouse,
        plan.inputs,
        cluster=plan.cluster,
        only=plan.only,
        again=plan.force,
        progress=run.progress,
    )
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
    last = run.last_snapshots()

    def write(writing: Writing, part: Part) -> None:
        fleet = run.of_last(last, part.clusters, schemas.FLEET)[schemas.FLEET.name]
        groups = judged(fleet, include_retry=plan.include_retry, only=plan.only)
        work = work_of(groups)
        count = run.progress.count(run.spark, "groups" if work.parts == work.groups else "parts of groups", work.parts)
        rows = allocated(spread_out(groups, work), plan.strategies, plan.settings, count)
        others = writing.replace_part(schemas.ASSIGNMENTS, rows, PART, part.made_from, part.where)
        refused = None if others is None else refusals_of(others)
        writing.replace(schemas.REFUSALS, refused, part.made_from, part.where)

    asked = plan.digest("strategies", "settings_text", "as_of", "only", "include_retry")
    return _stage(run, "allocate", {name: its.token for name, its in last.items()}, asked, write)


def score(run: StageRun) -> StageReport:
    """ASSIGNMENTS → LOADS and SCORES."""
    from rmqlb.pipeline.groups.score_rows import loads, scores

    def write(writing: Writing, part: Part) -> None:
        its: Where = {"cluster": part.clusters}
        owned = run.read(schemas.ASSIGNMENTS, its)
        chosen = {row["cluster"]: row for row in owned.select(*schemas.KEY).distinct().collect()}
        groups = of_snapshots(run.read(schemas.FLEET, partitions(chosen)), chosen)
        writing.replace(schemas.LOADS, loads(owned, groups), part.made_from, part.where)
        made = writing.read(run.spark, schemas.LOADS, its)
        writing.replace(schemas.SCORES, scores(owned, made, groups), part.made_from, part.where)

    run.warehouse.read(run.spark, schemas.ASSIGNMENTS)
    tokens = tokens_of(run.warehouse, schemas.ASSIGNMENTS, "allocate")
    return _stage(run, "score", tokens, run.plan.digest("only"), write)


def what_if(run: StageRun) -> StageReport:
    """The groups of the last snapshots → WHAT_IF, TOPICS → BROKER_LOSSES."""
    from rmqlb.pipeline.groups.fleet import judged, spread_out, work_of
    from rmqlb.pipeline.groups.what_if_rows import broker_losses
    from rmqlb.pipeline.groups.what_if_rows import what_if as sweep

    plan = run.plan
    last = run.last_snapshots()

    def write(writing: Writing, part: Part) -> None:
        tables = run.of_last(last, part.clusters, schemas.FLEET, schemas.TOPICS)
        groups = judged(tables["fleet"], include_retry=plan.include_retry, only=plan.only)
        work = work_of(groups)
        count = run.progress.count(run.spark, "groups", work.groups)
        rows = sweep(spread_out(groups, work, by_topic=False), plan.strategies, plan.settings, plan.consumers, count)
        writing.replace(schemas.WHAT_IF, rows, part.made_from, part.where)
        writing.replace(schemas.BROKER_LOSSES, broker_losses(tables["topics"]), part.made_from, part.where)

    asked = plan.digest("strategies", "settings_text", "as_of", "only", "include_retry", "consumers")
    return _stage(run, "what-if", {name: its.token for name, its in last.items()}, asked, write)


def size(run: StageRun) -> StageReport:
    """FLEET under the strategies that SCORES says it runs → SIZES."""
    from rmqlb.pipeline.groups.fleet import judged
    from rmqlb.pipeline.groups.group_sizes import sizes

    plan = run.plan

    def write(writing: Writing, part: Part) -> None:
        its, scores, count = run.scored(part.clusters, schemas.FLEET, schemas.GROUPS)
        fleet = judged(its["fleet"], include_retry=plan.include_retry, only=plan.only)
        rows = sizes(fleet, scores, its["groups"], plan.size_limits, plan.id_trials, plan.settings, count)
        writing.replace(schemas.SIZES, rows, part.made_from, part.where)

    asked = plan.digest("size_limits", "id_trials", "settings_text", "as_of", "only", "include_retry")
    return _stage(run, "size", run.scored_tokens(), asked, write)


def sweep(run: StageRun) -> StageReport:
    """FLEET under the strategies that SCORES says it runs, and BROKERS → WORST_LOSSES and BROKEN_LIMITS."""
    from rmqlb.pipeline.groups.fleet import judged
    from rmqlb.pipeline.groups.group_losses import write_losses
    from rmqlb.pipeline.groups.running_groups import running_groups

    plan = run.plan

    def write(writing: Writing, part: Part) -> None:
        its, scores, count = run.scored(part.clusters, schemas.FLEET, schemas.GROUPS, schemas.BROKERS)
        fleet = judged(its["fleet"], include_retry=plan.include_retry, only=plan.only)
        running, limits = running_groups(fleet, scores, its["brokers"]), dict(plan.loss_limits)
        write_losses(running, its["groups"], limits, plan.settings, writing, part.made_from, part.where, count)

    asked = plan.digest("loss_limits", "settings_text", "as_of", "only", "include_retry")
    return _stage(run, "sweep", run.scored_tokens(), asked, write)


def producers(run: StageRun) -> StageReport:
    """TOPICS → SENDS and SEND_SHARES."""
    from rmqlb.pipeline.producers.send_tables import write_sends

    plan = run.plan
    last = run.last_snapshots()

    def write(writing: Writing, part: Part) -> None:
        topics = run.of_last(last, part.clusters, schemas.TOPICS)[schemas.TOPICS.name]
        write_sends(topics, plan.schedule, writing, part.made_from, part.where, run.progress)

    asked = plan.digest("schedule_text", "as_of", "only")
    return _stage(run, "producers", {name: its.token for name, its in last.items()}, asked, write)


def history(run: StageRun) -> StageReport:
    """All snapshots → the tables of `schemas.HISTORY`."""
    from rmqlb.pipeline.history.history_stage import write_history

    return write_history(run)


def report(run: StageRun) -> StageReport:
    """All tables → CSV, Parquet and one page in the report's folder."""
    from rmqlb.pipeline.report.text import camel_case
    from rmqlb.pipeline.report.write import write_report

    began = time.monotonic()
    folder = run.plan.report_to or DEFAULT_REPORT
    summary = write_report(run.spark, run.warehouse, folder, top=run.plan.top, force=run.plan.force)
    rows = {exported.name: exported.rows for exported in summary.tables}
    state: StageState = "unchanged" if summary.unchanged else "written"
    written = info(f"the report is {summary.page}")
    counts = {camel_case(words): number for words, number in summary.facts.items()}
    return stage_report("report", time.monotonic() - began, rows, state=state, counts=counts, findings=(written,))


def compact(run: StageRun) -> StageReport:
    """All tables → the same rows in fewer files, and without snapshots that are no longer kept."""
    from rmqlb.pipeline.compact import compact_tables

    began = time.monotonic()
    rows, removed = compact_tables(run.spark, run.warehouse, run.plan.keep_days, run.progress)
    return stage_report("compact", time.monotonic() - began, rows, counts={"removedSnapshots": removed})


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
UPKEEP: Mapping[str, Callable[[StageRun], StageReport]] = {"compact": compact}
"""What is done to a warehouse beside them."""
READ_ONLY = frozenset({"report"})
"""The stages that write no table."""
DEFAULT_REPORT = "rmqlb-report"
"""The report's folder, of this machine, below the current one."""


def _stage(
    run: StageRun, name: str, tokens: Mapping[str, str], asked: str, write: Callable[[Writing, Part], None]
) -> StageReport:
    """Write a stage's tables, of the clusters whose rows are not there or were made from something else.

    `tokens`: cluster → what its rows are made from; `asked`: a digest of what of the plan they depend on.
    """
    began = time.monotonic()
    warehouse, writes = run.warehouse, schemas.WRITTEN_BY[name]
    part = part_to_make(warehouse, name, asked, tokens, force=run.plan.force)
    if part.nothing:
        return stage_report(name, time.monotonic() - began, warehouse.rows(*writes), state="unchanged")
    with warehouse.writing() as writing:
        write(writing, part)
        rows = {table: stored.rows for table, stored in writing.written.items()}
    return stage_report(name, time.monotonic() - began, rows)
