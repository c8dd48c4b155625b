import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from tests.cli.run import run
from tests.support.mismatches import every_case

from .running import route, snapshot, write

pytestmark = pytest.mark.spark

EXAMPLE = Path(__file__).parent.parent.parent / "examples"
GROUP = {"clientIds": ["10.0.0.1@1", "10.0.0.2@1", "10.0.0.3@1"], "topics": ["T"], "messageModel": "CLUSTERING"}
POLICY = "rules: [{name: even, groups: ['*'], assume: AVG, limits: {idle: 0}}]"


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert spark is not None  # the commands use the session that runs
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"in/cluster=x/date=2026-11-21/s.json": snapshot("2026-11-21T02:00:00Z", {"T": route(a=2)}, GROUP)})
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "expected").write_text("x\n")
    return tmp_path


def test_the_verdict_leaves_the_machine(place: Path) -> None:
    done = run("pipeline", "ingest", "-w", "wh", "in", "-o", "json")
    assert (done.code, json.loads(done.stdout)["data"]["ingested"]) == (0, ["2026-11-21"])
    assert run("pipeline", "judge", "-w", "wh", "--expect", "expected").code == 0
    failed = run("pipeline", "judge", "-w", "wh", "-p", "policy.yaml", "-o", "json")
    verdict = json.loads(failed.stdout)["data"]["verdict"]
    assert (failed.code, verdict["failed"], verdict["groups"]) == (3, 1, 1)
    (place / "expected").write_text("x\nwest\n")
    silent = run("pipeline", "judge", "-w", "wh", "--expect", "expected", "-o", "prometheus")
    assert silent.code == 3
    assert 'rmqlb_fleet_silent_cluster{cluster="west"} 1' in silent.stdout
    glob = str(place / "wh" / "figures" / "*" / "*.parquet")
    with duckdb.connect() as reader:
        assert reader.execute(f"select idle from read_parquet('{glob}', hive_partitioning=true)").fetchall() == [(1,)]


@pytest.mark.usefixtures("place")
def test_given_strategies_and_policies_hold_for_the_last_night() -> None:
    assert run("pipeline", "ingest", "-w", "wh", "in").code == 0
    first = run("pipeline", "judge", "-w", "wh", "--strategy", "CONSISTENT_HASH", "-o", "json")
    again = run("pipeline", "judge", "-w", "wh", "--strategy", "CONSISTENT_HASH", "-o", "json")
    other = run("pipeline", "judge", "-w", "wh", "-o", "json")
    assert [len(json.loads(each.stdout)["data"]["judged"]) for each in (first, again, other)] == [1, 0, 1]


@every_case(("line", "code", "said"), [
    ("judge -w none", 4, "there is no warehouse none"),
    ("judge", 2, "no warehouse"),
    ("ingest -w wh none", 4, "none: no file found"),
    ("ingest -w wh in --keep 3w", 2, "--keep 3w: not a number of days"),
    ("ingest -w wh in --conf a=b", 2, "--conf a=b: not a Spark key"),
    ("ingest -w wh in --master sc://host", 2, "not a valid Spark master"),
    ("ingest -w w* in", 2, "Spark reads * ? [ ] { } and \\ as patterns"),
    ("ingest -w /proc/none in", 2, "--warehouse /proc/none: No such file or directory"),
    ("ingest -w hdfs://namenode:80200/wh in", 2, "not HOST:PORT"),
    ("run -w wh in -p none.yaml", 4, "none.yaml"),
    ("run -w wh in --strategy NOPE", 2, "NOPE"),
    ("run -w wh in --expect none", 4, "--expect none: No such file or directory"),
])  # fmt: skip
def test_what_is_refused_before_java_starts(line: str, code: int, said: str, tmp_path: Path) -> None:
    write(tmp_path, {"in/s.json": "{}"})
    environ = {**os.environ, "PYTHONPATH": str(EXAMPLE.parent), "JAVA_HOME": "/none", "PATH": "/none"}
    command = [sys.executable, "-m", "rmqlb", "pipeline", *line.split()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environ, check=False)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
