"""`rmqlb pipeline run` on HDFS with a standalone cluster, on YARN and on S3: the rows, pages and jobs of a folder.

Servers run on loopback; the one of S3 is moto. A missing component is an error.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

import pyarrow.parquet as pq
import pyspark
import pytest
from msgspec import Struct

from tests.support import maven
from tests.support.synthetic.fleet import FleetShape, generate

from .running import POLL, START_DEADLINE, standalone_master

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HADOOP = "3.4.1"
SERVERS = (
    f"org.apache.hadoop:hadoop-client-minicluster:{HADOOP}", f"org.apache.hadoop:hadoop-client-runtime:{HADOOP}",
    "org.mockito:mockito-core:4.11.0", "junit:junit:4.13.2", "org.slf4j:slf4j-simple:1.7.36",
    "ch.qos.reload4j:reload4j:1.2.22", "org.bouncycastle:bcpkix-jdk18on:1.78.1",
    "org.glassfish.jaxb:jaxb-runtime:2.3.1",
)  # fmt: skip
ROOT = Path(__file__).parent.parent.parent
PROGRAM = Path(__file__).parent / "programs" / "MiniHadoop.java"
JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx768m", "--add-opens", "java.base/java.lang=ALL-UNNAMED")
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
Files = Callable[[], Iterable[tuple[str, bytes]]]


class Place(Struct, frozen=True):
    """A warehouse at a URI, the snapshots as Spark reads them, and how the command is told of the servers."""

    uri: str
    inputs: str
    files: Files  # the paths and contents below the warehouse
    master: str = "local[2]"
    conf: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}

    def line(self, folder: Path, page: str) -> list[str]:
        (folder / "events").mkdir(exist_ok=True)
        events = {"enabled": "true", "dir": (folder / "events").as_uri(), "compress": "false"}
        conf = {**{f"spark.eventLog.{key}": value for key, value in events.items()}, **self.conf}
        options = ["--master", self.master, "--log-file", str(folder / "spark.log"), "--to", str(folder / page)]
        options += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
        return [sys.executable, "-m", "rmqlb", "pipeline", "run", self.inputs, "-w", self.uri, *options]

    def start(self, folder: Path, page: str = "page") -> subprocess.Popen[str]:
        environ = {**os.environ, "PYTHONPATH": str(ROOT), **self.environment}
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(self.line(folder, page), env=environ, start_new_session=True, **pipes)

    def run(self, folder: Path, page: str = "page") -> str:
        """Run the command to its end, and return its output."""
        with self.start(folder, page) as child:
            said = child.communicate()[0]
        assert child.returncode == 0, said
        return str(said)

    def kill(self, folder: Path, stage: str, until: Callable[[], bool], page: str = "page") -> None:
        """Kill the command in a stage, once `until` holds."""
        with self.start(folder, page) as child:
            assert child.stdout is not None
            assert next((line for line in iter(child.stdout.readline, "") if f"running {stage}" in line), "")
            end = time.monotonic() + START_DEADLINE
            while child.poll() is None and not until() and time.monotonic() < end:
                time.sleep(POLL)
            assert child.poll() is None, child.stdout.read()
            os.killpg(child.pid, signal.SIGKILL)

    def plain(self, text: str) -> str:
        """Rows and pages without what differs between places."""
        text = without_host(re.sub(r'"modified": \d+', "", text))
        return text.replace(without_host(self.inputs), "INPUTS").replace(without_host(self.uri), "WAREHOUSE")

    @property
    def rows(self) -> dict[str, list[str]]:
        """Table and night → rows; and the marks of complete nights."""
        found: dict[str, list[str]] = {}
        for path, body in self.files():
            table, day, name = path.split("/")[-3:]
            if table == "_nights" and not name.startswith("."):
                found[f"{table}/{day}"] = [name]
            elif name.endswith(".parquet"):
                assert f"{table}/{day}" not in found, f"{table}/{day} has two files"
                rows = pq.read_table(BytesIO(body)).to_pylist()
                texts = (json.dumps({**row, "document": None}, default=str, sort_keys=True) for row in rows)
                found[f"{table}/{day}"] = sorted(map(self.plain, texts))
        return found

    def pages(self, folder: Path, page: str = "page") -> dict[str, str]:
        return {path.name: self.plain(path.read_text("utf-8")) for path in (folder / page).glob("*.html")}


def without_host(text: str) -> str:
    return re.sub("hdfs://[^/]*/", "hdfs:///", text)


def jobs(folder: Path) -> int:
    logs = (path.read_text("utf-8") for path in (folder / "events").rglob("events_*"))
    return sum(log.count('"Event":"SparkListenerJobStart"') for log in logs)


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "snapshots"
    generate(FleetShape(seed=5, clusters=2, groups=12, topics=6, days=2, faults=0.4, churn=0.5), str(folder))
    return folder


@pytest.fixture(scope="module")
def local(snapshots: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, Path]:
    """What the command makes in a folder, and the folder of its page and log."""
    folder = tmp_path_factory.mktemp("local")
    warehouse = folder / "warehouse"
    place = Place(str(warehouse), str(snapshots), lambda: in_folder(warehouse))
    said = place.run(folder)
    assert json.loads((folder / "page" / "verdict.json").read_text())["verdict"]["line"] in said.splitlines()
    assert {each.split("/")[0] for each in place.rows} >= {"_nights", "snapshots", "assignments", "findings", "changes"}
    return place, folder


def in_folder(folder: Path) -> Iterator[tuple[str, bytes]]:
    yield from ((str(path), path.read_bytes()) for path in folder.rglob("*") if path.is_file())


def must_be_equal(place: Place, folder: Path, local: tuple[Place, Path], page: str = "page") -> None:
    other, other_folder = local
    rows, expected = place.rows, other.rows
    assert {each: rows.get(each) for each in expected} == expected
    assert set(rows) == set(expected)
    assert place.pages(folder, page) == other.pages(other_folder)


class Hadoop(Struct, frozen=True):
    """A running HDFS and YARN: HDFS's URI, its HTTP address, and a folder for HADOOP_CONF_DIR."""

    uri: str
    http: str
    settings: Path

    def ask(self, path: str, operation: str) -> bytes:
        with urlopen(f"{self.http}/webhdfs/v1{quote(path)}?op={operation}") as answer:
            return bytes(answer.read())

    def has(self, path: str) -> bool:
        try:
            return bool(self.ask(path, "GETFILESTATUS"))
        except HTTPError:
            return False

    def files(self, path: str) -> Iterator[tuple[str, bytes]]:
        for each in json.loads(self.ask(path, "LISTSTATUS"))["FileStatuses"]["FileStatus"]:
            below = f"{path}/{each['pathSuffix']}"
            if each["type"] == "DIRECTORY":
                yield from self.files(below)
            else:
                yield below, self.ask(below, "OPEN")


@pytest.fixture(scope="module")
def hadoop(snapshots: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    folder = tmp_path_factory.mktemp("hadoop")
    library = maven.bring(SERVERS, maven.cache() / "miniyarn" / HADOOP)
    line = [maven.tool("java"), *JAVA, "-cp", f"{library}/*", str(PROGRAM), str(folder)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    log = folder / "log"
    with log.open("wb") as output, subprocess.Popen(line, stderr=output, cwd=folder, **pipes) as server:
        try:
            assert server.stdin is not None
            assert server.stdout is not None
            ready = server.stdout.readline().split()
            assert ready[:1] == ["ready"], log.read_text(errors="replace")[-3000:]
            server.stdin.write(f"{snapshots}\n")
            server.stdin.flush()
            assert server.stdout.readline() == "copied\n"
            yield Hadoop(ready[1], ready[2], folder)
        finally:
            server.kill()


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone_master(tmp_path_factory.mktemp("cluster"), workers=2) as address:
        yield address


def test_hdfs_is_repaired(hadoop: Hadoop, two_workers: str, local: tuple[Place, Path], tmp_path: Path) -> None:
    """The same command is killed in ingest, then in judge, then ends; and once more with a report elsewhere."""
    conf = {"spark.executor.memory": "512m"}
    place = Place(f"{hadoop.uri}/wh", f"{hadoop.uri}/snapshots", lambda: hadoop.files("/wh"), two_workers, conf)
    place.kill(tmp_path, "ingest", lambda: hadoop.has("/wh/snapshots/date=2026-11-01"))
    assert not hadoop.has("/wh/queues/date=2026-11-02")
    place.kill(tmp_path, "judge", lambda: hadoop.has("/wh/figures/date=2026-11-01"))
    assert hadoop.has("/wh/queues/date=2026-11-02")
    assert not hadoop.has("/wh/_nights/date=2026-11-01")
    assert "an interrupted run left rows behind" in place.run(tmp_path)
    must_be_equal(place, tmp_path, local)
    place.kill(tmp_path, "report", lambda: True, "elsewhere")
    assert not (tmp_path / "elsewhere").exists()
    place.run(tmp_path, "elsewhere")
    must_be_equal(place, tmp_path, local, "elsewhere")
    assert not hadoop.has("/wh/_writer")
    assert not hadoop.has("/wh/_staging")


def test_yarn_does_the_jobs_of_a_folder(hadoop: Hadoop, local: tuple[Place, Path], tmp_path: Path) -> None:
    """By the line of the documentation: without a NameNode in the URI."""
    jars = f"local:{Path(pyspark.__file__).parent}/jars/*"
    conf = {**LOOPBACK, "spark.yarn.jars": jars, "spark.executor.memory": "512m", "spark.executor.instances": "1"}
    environment = {"HADOOP_CONF_DIR": str(hadoop.settings)}
    files = lambda: hadoop.files("/yarn")  # noqa: E731 - as in the other tests
    place = Place("hdfs:///yarn", "hdfs:///snapshots", files, "yarn", conf, environment)
    place.run(tmp_path)
    must_be_equal(place, tmp_path, local)
    assert jobs(tmp_path) == jobs(local[1])


@pytest.fixture
def s3(snapshots: Path) -> Iterator[Place]:
    import boto3
    from moto.server import ThreadedMotoServer

    version = next((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")).stem.rpartition("-")[2]
    library = maven.bring([f"org.apache.hadoop:hadoop-aws:{version}"], maven.cache() / "hadoop-aws" / version)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
        bucket = boto3.resource("s3", endpoint_url=endpoint, **keys).create_bucket(Bucket="fleet")
        for path in snapshots.rglob("*.gz"):
            bucket.upload_file(str(path), f"snapshots/{path.relative_to(snapshots)}")

        def files() -> Iterator[tuple[str, bytes]]:
            for each in bucket.objects.filter(Prefix="wh/"):
                yield each.key, each.get()["Body"].read()

        access = {"endpoint": endpoint, "path.style.access": "true", "access.key": "key", "secret.key": "secret"}
        conf = {f"spark.hadoop.fs.s3a.{key}": value for key, value in access.items()}
        conf["spark.jars"] = ",".join(sorted(map(str, library.glob("*.jar"))))
        yield Place("s3a://fleet/wh", "s3a://fleet/snapshots", files, conf=conf)
    finally:
        server.stop()


def test_s3_has_the_rows_of_a_folder(s3: Place, local: tuple[Place, Path], tmp_path: Path) -> None:
    s3.run(tmp_path)
    must_be_equal(s3, tmp_path, local)
    assert jobs(tmp_path) == jobs(local[1])
