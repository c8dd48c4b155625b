"""All stages over two nights on each storage and kind of cluster: the same rows everywhere, and those of the engine.

Rules of this file: real servers on loopback, each in its own process; rows are read without Spark. One story for the
storages: a night; the next one, killed while it writes its history; a second writer in that time; the night again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rmqlb.model.message_queue import MessageQueue
from rmqlb.pipeline.schemas import INGESTED
from rmqlb.pipeline.synthetic.generate import generate
from rmqlb.pipeline.synthetic.shape import FleetShape

from . import by_the_engine, storages
from .all_rows import Rows, newest, rows_at, rows_in_folder, shown
from .by_the_engine import last_snapshots
from .quick_java import QUICK_JAVA
from .spark_servers import StandaloneCluster, connect_server_process, standalone_processes

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DEADLINE = 3600.0
LOCAL = "local[2]"
OF_HISTORY = ("sessions", "moves", "flapping", "churn", "trend")
NIGHTS = (("night-1",), ("night-1", "night-2"))


@dataclass(frozen=True)
class Place:
    """Where a story happens.

    Attributes:
        uri: the warehouse.
        dumps: the folder of the nights' dumps, as Spark reads it.
        conf: Spark's settings; None: those of a server are its own.
        reader: what `deltalake` needs to read there.
        environment: of the command.
    """

    uri: str
    dumps: str
    master: str = LOCAL
    conf: Mapping[str, str] | None = field(default_factory=dict)
    reader: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def arguments(self, stage: str, *nights: str) -> list[str]:
        paths = [f"{self.dumps}/{night}" for night in nights]
        return [stage, *paths, "-w", self.uri, "--master", self.master]

    def run(self, folder: Path, *nights: str) -> dict[str, Any]:
        """`rmqlb pipeline run` to its end; what it says of itself."""
        arguments = [*self.arguments("run", *nights), "--trials", "2", "-o", "json", "--log-file", "run.log"]
        done = storages.rmqlb(*arguments, conf=self.conf, cwd=folder, environment=self.environment)
        said: dict[str, Any] = json.loads(done.stdout)["data"]
        return said

    def stage(
        self,
        folder: Path,
        name: str,
        *nights: str,
        code: int = 0,
        conf: Mapping[str, str] | None = None,
        log_file: str = "stage.log",
    ) -> subprocess.CompletedProcess[str]:
        """One stage, or compact."""
        arguments = [*self.arguments(name, *nights), "--log-file", log_file]
        whole = None if self.conf is None else {**self.conf, **(conf or {})}
        return storages.rmqlb(*arguments, conf=whole, cwd=folder, environment=self.environment, code=code)

    def rows(self) -> Rows:
        return rows_at(self.uri, self.reader)


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each night."""
    folder = tmp_path_factory.mktemp("fleet")
    shape = FleetShape(seed=5, clusters=2, brokers=2, groups=6, topics=4, days=2, odd_names=0.1, bad_files=1)
    generate(shape, str(folder / "dumps"))
    for of_day in sorted((folder / "dumps").glob("cluster=*/date=*")):
        night = folder / f"night-{int(of_day.name[-2:])}" / of_day.parent.name
        night.mkdir(parents=True, exist_ok=True)
        of_day.rename(night / of_day.name)
    return folder


@pytest.fixture(scope="module")
def local(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Rows]:
    """The rows of a folder of this machine after each of two nights, on the Spark that is installed."""
    folder, found = tmp_path_factory.mktemp("local"), []
    conf = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": QUICK_JAVA}
    more = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    for nights in NIGHTS:
        paths = [str(dumps / night) for night in nights]
        command = [sys.executable, "-m", "rmqlb", "pipeline", "run", *paths, "-w", "warehouse", "--master", LOCAL]
        subprocess.run(
            [*command, "--trials", "2", "--log-file", "spark.log", *more],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(storages.ROOT)},
            check=True,
            capture_output=True,
        )
        found.append(rows_in_folder(folder / "warehouse"))
    return found


@pytest.fixture(scope="module")
def hdfs(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[storages.Hdfs]:
    with storages.hdfs(tmp_path_factory.mktemp("hdfs")) as running:
        for night in NIGHTS[-1]:
            running.put(dumps / night)
        yield running


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    folder = tmp_path_factory.mktemp("cluster")
    home = storages.spark_for_delta() / "pyspark"
    with standalone_processes(folder, workers=2, cores=1, home=home) as running:
        yield running


def test_the_owners_of_a_folder_are_those_of_the_engine(dumps: Path, local: list[Rows]) -> None:
    for nights, rows in zip(NIGHTS, local, strict=True):
        found: dict[tuple[str, str, str], by_the_engine.Owners] = {}
        for row in map(json.loads, rows["assignments"]):
            owned = found.setdefault((row["cluster"], row["group"], row["strategy"]), {})
            queue = MessageQueue(row["topic"], row["brokerName"], row["queueId"])
            owned.setdefault(queue, set()).update({row["owner"]} - {None})
        snapshots = last_snapshots(dumps.glob(f"{nights[-1]}/cluster=*/date=*/snapshot.json.gz"))
        assert found == dict(by_the_engine.owners(snapshots))
        assert len(found) > 10


def test_two_nights_on_a_hdfs_under_a_cluster_of_two_workers(
    hdfs: storages.Hdfs, cluster: StandaloneCluster, local: list[Rows], tmp_path: Path
) -> None:
    environment = {"HADOOP_CONF_DIR": str(hdfs.settings)}
    conf = storages.executors_conf()
    place = Place(f"{hdfs.uri}/warehouse", hdfs.uri, cluster.master, conf, environment=environment)
    two_nights(place, local, tmp_path)
    for work in cluster.folders:
        assert list(work.glob("app-*/*/environment/bin/python")), f"{work.name} had no executor"


def test_two_nights_on_an_s3_compatible_server(dumps: Path, local: list[Rows], tmp_path: Path) -> None:
    with storages.s3() as (uri, conf):
        reader = {
            "AWS_ENDPOINT_URL": conf["spark.hadoop.fs.s3a.endpoint"],
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }
        place = Place(f"{uri}/warehouse", str(dumps), conf=conf, reader=reader)
        two_nights(place, local, tmp_path)
        before = place.rows()
        place.stage(tmp_path, "compact")
        assert place.rows() == before


def test_a_night_is_ingested_on_yarn(hdfs: storages.Hdfs, local: list[Rows], tmp_path: Path) -> None:
    with storages.yarn(tmp_path, hdfs) as settings:
        jars = storages.spark_for_delta() / "pyspark" / "jars"
        conf = {**storages.executors_conf(), "spark.executor.instances": "2", "spark.yarn.jars": f"local:{jars}/*"}
        environment = {"HADOOP_CONF_DIR": str(settings)}
        place = Place(f"{hdfs.uri}/by-yarn", hdfs.uri, "yarn", conf, environment=environment)
        place.stage(tmp_path, "ingest", *NIGHTS[0])
        rows = place.rows()
    must_be_equal(rows, {name: local[0][name] for name in rows})
    assert {table.name for table in INGESTED} <= rows.keys()


def test_a_folder_is_this_machines_whatever_the_default_file_system_is(
    hdfs: storages.Hdfs, dumps: Path, cluster: StandaloneCluster, local: list[Rows], tmp_path: Path
) -> None:
    environment = {"HADOOP_CONF_DIR": str(hdfs.settings)}
    place = Place("warehouse", str(dumps), cluster.master, storages.executors_conf(), environment=environment)
    place.stage(tmp_path, "ingest", *NIGHTS[0])
    rows = rows_in_folder(tmp_path / "warehouse")
    must_be_equal(rows, {name: local[0][name] for name in rows})


def test_two_nights_by_spark_connect_in_a_folder_and_on_hdfs(
    hdfs: storages.Hdfs, dumps: Path, local: list[Rows], tmp_path: Path
) -> None:
    """The server is elsewhere: the client has no Delta Lake, no Java and no settings of the storage."""
    more = {
        "spark.jars": ",".join(storages.delta_jars()),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
    }
    home = storages.spark_for_delta() / "pyspark"
    with connect_server_process(tmp_path, more=more, home=home) as server:
        place = Place(f"file://{tmp_path}/tables", str(dumps), server.master, conf=None)
        for nights, expected in zip(NIGHTS, local, strict=True):
            place.run(tmp_path, *nights)
            must_be_equal(place.rows(), expected)
        (tmp_path / "rmqlb-report" / "index.html").unlink()
        place.stage(tmp_path, "report")
        assert (tmp_path / "rmqlb-report" / "index.html").is_file()

        place = Place(f"{hdfs.uri}/by-connect", hdfs.uri, server.master, conf=None)
        place.run(tmp_path, *NIGHTS[0])
        must_be_equal(place.rows(), local[0])


def two_nights(place: Place, local: list[Rows], folder: Path) -> None:
    """The story of a storage, with the rows of a folder."""
    place.run(folder, *NIGHTS[0])
    must_be_equal(place.rows(), local[0])

    before = shown(place.uri, place.reader)
    with started(place, folder, *NIGHTS[1]) as running:
        until(lambda: is_writing(place, "documents"), running)
        must_be_refused(place, folder)
        until(lambda: is_writing(place, *OF_HISTORY), running)
        os.kill(running.pid, signal.SIGKILL)
    after = shown(place.uri, place.reader)
    assert is_writing(place, *OF_HISTORY)
    assert {name: after[name] for name in OF_HISTORY} == {name: before[name] for name in OF_HISTORY}
    assert after["scores"] > before["scores"]

    stages = place.run(folder, *NIGHTS[1])["stages"]
    states = {stage["stage"]: stage["state"] for stage in stages}
    assert (states["ingest"], states["score"], states["history"]) == ("unchanged", "unchanged", "written")
    must_be_equal(place.rows(), local[1])
    assert (folder / "rmqlb-report" / "index.html").is_file()


def must_be_equal(rows: Rows, expected: Rows) -> None:
    assert rows.keys() == expected.keys()
    for name, its in expected.items():
        assert rows[name] == its, name


def must_be_refused(place: Place, folder: Path) -> None:
    """A second writer, with its line and exit code, before Spark has a job for it."""
    events = folder / "events"
    events.mkdir()
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{events}",
        "spark.eventLog.compress": "false",
    }
    done = place.stage(folder, "allocate", code=2, conf=conf, log_file="second.log")
    assert f"error: another process is writing to {place.uri}: process " in done.stderr
    assert "[warehouse-busy]" in done.stderr
    assert "Traceback" not in done.stderr
    told = [line for file in sorted(events.rglob("events_*")) for line in file.read_text().splitlines()]
    kinds = {json.loads(line)["Event"] for line in told}
    assert "SparkListenerApplicationStart" in kinds
    assert "SparkListenerJobStart" not in kinds


@contextmanager
def started(place: Place, folder: Path, *nights: str) -> Iterator[subprocess.Popen[bytes]]:
    """`rmqlb pipeline run` in the background; it does not outlive the block."""
    command = [sys.executable, "-m", "rmqlb", "pipeline", *place.arguments("run", *nights), "--trials", "2"]
    command += [*storages.conf_options(place.conf or {}), "--log-file", str(folder / "killed.log")]
    with subprocess.Popen(command, env=storages.with_delta(**place.environment), cwd=folder) as child:
        try:
            yield child
        finally:
            child.kill()


def is_writing(place: Place, *tables: str) -> bool:
    """One of the tables has a version that is not shown."""
    now = newest(place.uri, tables, place.reader)  # first: what is shown by then, was committed before
    known = shown(place.uri, place.reader)
    return any(now[name] > known[name] for name in tables)


def until(condition: Callable[[], bool], running: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert running.poll() is None, "it ended before"
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.2)
