"""The pipeline's steps as tests call them, and rows of tables as dicts."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from rmqlb.engine.allocate.rules import NAMES
from rmqlb.model.pipeline_result import PipelineResult
from rmqlb.pipeline.ingest import files_at, find_files, ingest
from rmqlb.pipeline.judge import Asked, judge
from rmqlb.pipeline.tables import TABLES, Row, columns
from rmqlb.pipeline.warehouse import Warehouse
from rmqlb.sources.user_files.policy_file import parse_policy

POLICY = """
rules:
  - {name: even, groups: ['*'], limits: {idle: 0, unassigned: 0, forbiddenFindings: [mixed-strategies]}}
  - {name: spread, topics: ['*'], limits: {writableBrokers: 2}, severity: warning}
  - {name: nothing, groups: ['no-such-group-*'], limits: {idle: 0}}
waivers:
  - {rule: even, cluster: fleet-a, limit: idle, reason: known, owner: the team, until: 2099-01-01}
  - {rule: even, cluster: fleet-b, limit: idle, reason: over, until: 2020-01-01}
"""
ASKED = Asked(strategies=("AVG", "AVG_BY_CIRCLE"), policy=parse_policy(POLICY, "policy.yaml", NAMES), text="tests")


def ingest_files(
    warehouse: Warehouse, *inputs: Path | str, cluster: str | None = None, force: bool = False
) -> PipelineResult:
    local, uris = find_files([str(each) for each in inputs])
    with warehouse.writing():
        return ingest(warehouse, [*local, *files_at(warehouse, uris)], cluster, force=force)


def judge_nights(warehouse: Warehouse, asked: Asked | None = None, *, force: bool = False) -> PipelineResult:
    with warehouse.writing():
        return judge(warehouse, asked or Asked(), force=force)


def rows(warehouse: Warehouse, table: type[Row], *days: date) -> list[dict[str, Any]]:
    """The table's rows of these nights, of all without any; without the documents, in their order."""
    frame = warehouse.read(table, days or warehouse.dates(table)).drop("document")
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=repr)


def everything(warehouse: Warehouse, *, without: tuple[str, ...] = ()) -> dict[str, list[dict[str, Any]]]:
    return {
        table.__name__: [
            {name: value for name, value in row.items() if name in columns(table) and name not in without}
            for row in rows(warehouse, table)
        ]
        for table in TABLES
    }
