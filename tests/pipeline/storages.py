"""Storages on loopback for warehouses at URIs: HDFS by Maven, S3 by moto, and the Spark that Delta Lake has jars for.

Delta Lake follows Spark some months later. While the pyspark that is installed is newer than its jars, these tests run
the program with an older one beside it, from the user's cache.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark

from tests.support import maven

from .quick_java import QUICK_JAVA

ROOT = Path(__file__).parent.parent.parent
DELTA, SPARK, HADOOP = "4.4.0", "4.2.1", "3.4.1"
"""Of Delta Lake's jars, of the pyspark that they go with, and of HDFS."""
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_PROGRAM = Path(__file__).parent / "programs" / "MiniHdfs.java"
_MINICLUSTER = (
    f"org.apache.hadoop:hadoop-client-minicluster:{HADOOP}",
    f"org.apache.hadoop:hadoop-client-runtime:{HADOOP}",
    "org.mockito:mockito-core:4.11.0",
    "junit:junit:4.13.2",
    "org.slf4j:slf4j-simple:1.7.36",
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
    *arguments: str, conf: Mapping[str, str] | None = None, code: int | None = 0, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """`rmqlb pipeline …` with Delta Lake, off a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "rmqlb", "pipeline", *arguments, *conf_options(conf or {})],
        capture_output=True,
        text=True,
        check=False,
        env=with_delta(),
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
    quick = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": QUICK_JAVA}
    return {**_LOOPBACK, **quick, **conf, "spark.jars": ",".join(filter(None, jars))}


@contextmanager
def hdfs(folder: Path) -> Iterator[str]:
    """A NameNode and two data nodes on loopback; their URI. They end with us, however we end."""
    library = maven.bring(_MINICLUSTER, maven.cache() / "minicluster" / HADOOP)
    command = [maven.tool("java"), "-Xmx512m", "-cp", f"{library}/*", str(_PROGRAM), str(folder)]
    with (folder / "hdfs.log").open("wb") as log:
        server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=folder, start_new_session=True
        )
    try:
        assert server.stdout is not None
        ready = server.stdout.readline().decode().split()
        assert ready[:1] == ["ready"], (folder / "hdfs.log").read_text(errors="replace")[-3000:]
        yield ready[1]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.communicate()


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
