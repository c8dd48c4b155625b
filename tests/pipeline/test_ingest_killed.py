"""An ingest that is killed while it writes: what was there stays whole, and the next run is as if nothing had been."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqlb.pipeline.ingest.ingest_stage import ingest
from rmqlb.pipeline.schemas import DOCUMENTS, TOPICS
from rmqlb.pipeline.warehouse import Warehouse
from tests.pipeline.documents import route, snapshot, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CHILD = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
from rmqlb.pipeline.ingest.ingest_stage import ingest
from rmqlb.pipeline.warehouse import Warehouse
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "512m").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1").getOrCreate())
ingest(spark, Warehouse(sys.argv[1]), sys.argv[2:])
"""


def run_folders(warehouse: Warehouse) -> set[str]:
    return {str(path.relative_to(warehouse.folder)) for path in Path(warehouse.folder).glob("*/run=*")}


def named_folders(warehouse: Warehouse) -> set[str]:
    tables = json.loads((Path(warehouse.folder) / "tables.json").read_bytes())["tables"]
    return {f"{name}/{folder}" for name, stored in tables.items() for folder in stored["folders"]}


def kill_when_there(child: subprocess.Popen[bytes], folder: Path) -> None:
    """Kill the process and its JVM as soon as the folder is there; it ends by itself when it comes too late."""
    while child.poll() is None and not folder.exists():
        time.sleep(0.01)
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def test_killed_in_the_middle_of_a_write(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    first = write(tmp_path / "first", {"a.json": snapshot("2026-11-20T02:00:00Z", {"T": route(a=1)})})
    second = write(tmp_path / "second", {"b.json": snapshot("2026-11-21T02:00:00Z", {"T": route(a=1)})})
    ingest(spark, warehouse, [first])
    whole = run_folders(warehouse)

    command = [sys.executable, "-c", CHILD, warehouse.folder, second]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL) as child:
        kill_when_there(child, Path(warehouse.folder) / "topics/run=000002")
    assert child.returncode == -signal.SIGKILL
    assert {"documents/run=000002", "topics/run=000002"} <= run_folders(warehouse) - whole
    assert [row["date"].day for row in warehouse.read(spark, TOPICS).collect()] == [20]

    report = ingest(spark, warehouse, [first, second])
    assert (report.found, report.ingested, report.known) == (2, 1, 1)
    for table in (DOCUMENTS, TOPICS):
        assert sorted(row["date"].day for row in warehouse.read(spark, table).collect()) == [20, 21]
    assert run_folders(warehouse) == named_folders(warehouse)
