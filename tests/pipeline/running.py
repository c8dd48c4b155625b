"""The documents that the pipeline reads, its steps as tests call them, and rows of tables as dicts."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Any

import pyspark
from msgspec import to_builtins

from rmqlb.engine.allocate.rules import NAMES
from rmqlb.model.pipeline_result import PipelineResult
from rmqlb.pipeline.ingest import files_at, find_files, ingest
from rmqlb.pipeline.judge import Question, judge
from rmqlb.pipeline.spark import find_java
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
ASKED = Question(strategies=("AVG", "AVG_BY_CIRCLE"), policy=parse_policy(POLICY, "policy.yaml", NAMES), text="tests")


def ingest_files(
    warehouse: Warehouse, *inputs: Path | str, cluster: str | None = None, force: bool = False
) -> PipelineResult:
    local, uris = find_files([str(each) for each in inputs])
    with warehouse.writing():
        return ingest(warehouse, [*local, *files_at(warehouse, uris)], cluster, force=force)


def judge_nights(warehouse: Warehouse, asked: Question | None = None, *, force: bool = False) -> PipelineResult:
    with warehouse.writing():
        return judge(warehouse, asked or Question(), force=force)


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


START_DEADLINE = 300.0
POLL = 0.1
_GUARD = """\
import os, signal, subprocess, sys
subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
sys.stdin.read()
os.killpg(0, signal.SIGKILL)
"""


@contextmanager
def standalone_master(folder: Path, workers: int = 1) -> Iterator[str]:
    """A master with workers of two cores in all; its address."""
    package = "org.apache.spark.deploy"
    here = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with _server([f"{package}.master.Master", *here], folder, "master") as log:
        address = _said(log, r"Starting Spark master at (spark://\S+)")
        _said(log, r"I have been elected leader")
        room = ["--cores", str(2 // workers), "--memory", "1g", "--work-dir", str(folder / "work")]
        with ExitStack() as running:
            for number in range(workers):
                program = [f"{package}.worker.Worker", *here, *room, address]
                worker = running.enter_context(_server(program, folder, f"worker-{number}"))
                _said(worker, r"Successfully registered with master")
            yield address


@contextmanager
def _server(program: list[str], folder: Path, name: str) -> Iterator[Path]:
    """Run one of Spark's programs, outside the reach of our own PYTHONPATH, and yield its log."""
    ours = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    home = str(Path(pyspark.__file__).parent)
    environ = ours | {
        "SPARK_HOME": home,
        "JAVA_HOME": str(Path(find_java(ours)).resolve().parent.parent),
        "SPARK_CONF_DIR": str(folder),  # which has none: not the settings of the machine
        "SPARK_LOCAL_DIRS": str(folder),
        "PYSPARK_PYTHON": sys.executable,
    }
    log = folder / f"{name}.log"
    line = [sys.executable, "-c", _GUARD, f"{home}/bin/spark-class", *program]
    with log.open("wb") as output:
        guard = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=output, stderr=output, env=environ, cwd=folder, start_new_session=True
        )
    try:
        yield log
    finally:
        with suppress(ProcessLookupError):
            os.killpg(guard.pid, signal.SIGKILL)
        guard.communicate()


def _said(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + START_DEADLINE
    while time.monotonic() < deadline:
        if found := re.search(pattern, log.read_text(encoding="utf-8", errors="replace")):
            return found[1] if found.groups() else found[0]
        time.sleep(POLL)
    raise AssertionError(f"{log.name} never said {pattern!r}:\n{log.read_text(encoding='utf-8', errors='replace')}")
