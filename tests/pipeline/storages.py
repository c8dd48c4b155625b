"""Storages on loopback for warehouses at URIs: HDFS by Maven, S3 by moto, and the Spark that Delta Lake has jars for.

Delta Lake follows Spark some months later. While the pyspark that is installed is newer than its jars, these tests run
the program with an older one beside it, from the user's cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyspark

from tests.support import maven
from tests.support.pages import DOCS, blocks

from .quick_java import QUICK_JAVA

ROOT = Path(__file__).parent.parent.parent
DELTA, SPARK, HADOOP = "4.4.0", "4.2.1", "3.4.1"
"""Of Delta Lake's jars, of the pyspark that they go with, and of HDFS."""
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_PROGRAM = Path(__file__).parent / "programs" / "MiniHdfs.java"
_CORE_SITE = "<configuration><property><name>fs.defaultFS</name><value>{uri}</value></property></configuration>"
_MINICLUSTER = (
    f"org.apache.hadoop:hadoop-client-minicluster:{HADOOP}",
    f"org.apache.hadoop:hadoop-client-runtime:{HADOOP}",
    "org.mockito:mockito-core:4.11.0",
    "junit:junit:4.13.2",
    "org.slf4j:slf4j-simple:1.7.36",
)
_YARN = (
    "ch.qos.reload4j:reload4j:1.2.22",
    "org.bouncycastle:bcpkix-jdk18on:1.78.1",
    "org.glassfish.jaxb:jaxb-runtime:2.3.1",
)


def delta_jars() -> list[str]:
    """Delta Lake's own jars; what else Maven brings with them, Spark has."""
    folder = maven.bring([f"io.delta:delta-spark_{SPARK[:3]}_2.13:{DELTA}"], maven.cache() / "delta" / DELTA)
    return sorted(str(jar) for jar in folder.glob("*.jar") if jar.name.startswith(("delta-", "unitycatalog-")))


def s3_jars() -> list[str]:
    """What Spark needs for s3a://, of the version of the Hadoop that this pyspark has."""
    version = _hadoop_version(spark_for_delta())
    folder = maven.bring([f"org.apache.hadoop:hadoop-aws:{version}"], maven.cache() / "hadoop-aws" / version)
    return sorted(map(str, folder.glob("*.jar")))


def spark_for_delta() -> Path:
    """The folder to put before others on the PYTHONPATH: that of the pyspark that is installed, where it fits."""
    if pyspark.__version__.startswith(SPARK[:3]):
        return Path(pyspark.__file__).parent.parent
    folder = maven.cache() / f"pyspark-{SPARK}"
    if not folder.is_dir():
        scratch = folder.with_name(f"{folder.name}.{os.getpid()}")
        pip = [sys.executable, "-m", "pip"]
        if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode:
            pip = [maven.tool("pip")]
        maven.run([*pip, "install", "-q", "--no-deps", "--target", str(scratch), f"pyspark=={SPARK}"])
        scratch.rename(folder)
    return folder


def with_delta(**environment: str) -> dict[str, str]:
    """The environment of a program that runs with that pyspark."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(spark_for_delta()), str(ROOT)]), **environment}


def rmqlb(
    *arguments: str,
    conf: Mapping[str, str] | None = MappingProxyType({}),
    code: int | None = 0,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """`rmqlb pipeline …` with Delta Lake, off a terminal; without settings of Spark's where `conf` is None."""
    done = subprocess.run(
        [sys.executable, "-m", "rmqlb", "pipeline", *arguments, *([] if conf is None else conf_options(conf))],
        capture_output=True,
        text=True,
        check=False,
        env=with_delta(**(environment or {})),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
    )
    assert code is None or done.returncode == code, done.stderr[-3000:]
    return done


def conf_options(conf: Mapping[str, str]) -> list[str]:
    return [part for key, value in _conf(conf).items() for part in ("--conf", f"{key}={value}")]


def said(program: str, *arguments: str, conf: Mapping[str, str] | None = None, cwd: Path) -> Any:
    """What a Python program prints as JSON in its last line; it gets its session's settings as its first argument."""
    done = subprocess.run(
        [sys.executable, "-m", program, json.dumps(_conf(conf or {})), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=with_delta(),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def _conf(conf: Mapping[str, str]) -> dict[str, str]:
    jars = [*delta_jars(), *(conf.get("spark.jars") or "").split(",")]
    quick = {"spark.driver.extraJavaOptions": QUICK_JAVA, "spark.sql.shuffle.partitions": "2"}
    return {**_LOOPBACK, "spark.driver.memory": "1g", **quick, **conf, "spark.jars": ",".join(filter(None, jars))}


@dataclass(frozen=True)
class Hdfs:
    """A running HDFS.

    Attributes:
        uri: its root.
        settings: a folder for HADOOP_CONF_DIR, by which paths without a scheme are its paths (`fs.defaultFS`).
    """

    uri: str
    settings: Path
    server: subprocess.Popen[bytes]

    def put(self, path: Path) -> str:
        """Copy a file or a folder of this machine into the root; its URI."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(f"{path}\n".encode())
        self.server.stdin.flush()
        assert self.server.stdout.readline() == b"copied\n"
        return f"{self.uri}/{path.name}"


@contextmanager
def hdfs(folder: Path) -> Iterator[Hdfs]:
    """A NameNode and two data nodes on loopback."""
    library = maven.bring(_MINICLUSTER, maven.cache() / "minicluster" / HADOOP)
    command = [maven.tool("java"), "-Xmx512m", "-cp", f"{library}/*", str(_PROGRAM), str(folder)]
    with _java(command, folder, "hdfs.log") as (server, (uri,)):
        settings = folder / "hadoop-conf"
        settings.mkdir()
        (settings / "core-site.xml").write_text(_CORE_SITE.format(uri=uri), encoding="utf-8")
        yield Hdfs(uri, settings, server)


@contextmanager
def _java(command: list[str], folder: Path, log_name: str) -> Iterator[tuple[subprocess.Popen[bytes], list[str]]]:
    """A server that says "ready", and what it says behind that. It ends with us, however we end."""
    with (folder / log_name).open("wb") as log:
        server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=folder, start_new_session=True
        )
    try:
        assert server.stdout is not None
        word, *more = server.stdout.readline().decode().split() or [""]
        assert word == "ready", (folder / log_name).read_text(errors="replace")[-3000:]
        yield server, more
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.communicate()


@contextmanager
def yarn(folder: Path, hdfs: Hdfs) -> Iterator[Path]:
    """YARN with two node managers on loopback, upon that HDFS; a folder for HADOOP_CONF_DIR."""
    library = maven.bring([*_MINICLUSTER, *_YARN], maven.cache() / "miniyarn" / HADOOP)
    command = [maven.tool("java"), "-Xmx768m", "--add-opens", "java.base/java.lang=ALL-UNNAMED"]
    command += ["-cp", f"{library}/*", str(_PROGRAM.with_name("MiniYarn.java")), str(folder), hdfs.uri]
    with _java(command, folder, "yarn.log") as (_, ready):
        assert ready == []
        shutil.copy(hdfs.settings / "core-site.xml", folder)
        yield folder


@contextmanager
def s3() -> Iterator[tuple[str, dict[str, str]]]:
    """A bucket of an S3-compatible server on loopback, as a URI, and Spark's settings for it."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
        boto3.client("s3", endpoint_url=endpoint, **keys).create_bucket(Bucket="fleet")
        conf = {
            "spark.jars": ",".join(s3_jars()),
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": "key",
            "spark.hadoop.fs.s3a.secret.key": "secret",
        }
        yield "s3a://fleet", conf
    finally:
        server.stop()


def _hadoop_version(packages: Path) -> str:
    (jar,) = (packages / "pyspark" / "jars").glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


def python_archive() -> Path:
    """A Python for executors in an archive, by the lines of docs/pipeline.md, made once and kept in the user's cache."""
    (lines,) = (block for block in blocks(DOCS / "pipeline.md", "sh") if "env/bin/venv-pack" in block)
    digest = hashlib.sha256(f"{sys.executable} {sys.version} {lines}".encode()).hexdigest()[:12]
    archive = maven.cache() / "executors" / digest / "rmqlb-env.tar.gz"
    if not archive.is_file():
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
            ours = lines.replace("python3", shlex.quote(sys.executable), 1)
            maven.run(["sh", "-e", "-c", f"cd {shlex.quote(scratch)}\n{ours}"])
            Path(scratch, archive.name).rename(archive)
    return archive


def executors_conf() -> dict[str, str]:
    """Executors of a cluster have the Python of the archive."""
    return {
        "spark.archives": f"{python_archive()}#environment",
        "spark.pyspark.python": "./environment/bin/python",
        "spark.executor.memory": "768m",
        "spark.executor.extraJavaOptions": QUICK_JAVA,
    }
