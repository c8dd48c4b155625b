"""The documents that the pipeline reads, its steps as tests call them, and rows of tables as dicts."""

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from rmqlb.engine.allocate.rules import NAMES
from rmqlb.model.pipeline_result import PipelineResult
from rmqlb.pipeline.ingest import files_at, find_files, ingest
from rmqlb.pipeline.judge import Asked, judge
from rmqlb.pipeline.tables import TABLES, Row, columns
from rmqlb.pipeline.warehouse import Warehouse
from rmqlb.sources.user_files.policy_file import parse_policy
from tests.support import builders

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


def route(**brokers: Any) -> Any:
    return to_builtins(builders.route(**brokers), str_keys=True)


def snapshot(
    taken_at: str | None = "2026-11-21T02:00:00Z",
    topics: Mapping[str, Any] | None = None,
    group: Mapping[str, Any] | None = None,
) -> str:
    data: dict[str, Any] = {"topics": [{"topic": name, "route": value} for name, value in (topics or {}).items()]}
    if group:
        data["groups"] = [{"group": "g", **group}]
    value = {"schema": "rmqlb/snapshot", "formatVersion": "1.0", "source": {"takenAt": taken_at}, "data": data}
    return json.dumps(value)


def connections(group: str, *client_ids: str) -> str:
    data = {
        "connectionSet": [{"clientId": client_id, "language": "JAVA"} for client_id in client_ids],
        "subscriptionTable": {f"%RETRY%{group}": {}, "T": {}},
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
    }
    return json.dumps({"status": 0, "data": data})


def progress(group: str, **owners: str) -> str:
    """What the Dashboard says of a group's queues: broker name → owner of its queue 0."""
    queues = [
        {"brokerName": name, "queueId": 0, "brokerOffset": 9, "consumerOffset": 4, "clientInfo": owner}
        for name, owner in owners.items()
    ]
    return json.dumps({group: {"topic": "T", "queueStatInfoList": queues}})


def write(root: Path, files: Mapping[str, str | bytes]) -> str:
    """Files by path below a folder, whose name comes back."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(root)
