"""Spark Connect: the same code over sc://, and one line for what it lacks."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from . import scripts
from .spark_servers import ConnectServer
from .test_session import COUNTS, JOB

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def grpc() -> None:
    pytest.importorskip("grpc", reason="Spark Connect is an extra: pip install 'pyspark[connect]'")


def test_the_same_job_runs_over_connect(tmp_path: Path, connect_server: ConnectServer) -> None:
    body = JOB.replace('"table"', f'"{tmp_path}/table"')
    done = scripts.run(tmp_path, body, connect_server.master)
    assert (done.code, done.terminal, done.left) == (0, "", [])
    assert done.said["counts"] == COUNTS
    assert done.said["rmqlb"].endswith("rmqlb.zip/rmqlb/__init__.py")
    assert not (tmp_path / "spark.log").exists()


def test_an_error_in_a_worker_comes_back_over_connect(tmp_path: Path, connect_server: ConnectServer) -> None:
    body = """\
def step(batches):
    from rmqlb.errors import DataError
    raise DataError("topic T: it has no queues")
spark.range(4).mapInArrow(step, "id long").collect()
"""
    done = scripts.run(tmp_path, body, connect_server.master)
    assert (done.code, done.terminal, done.left) == (0, "", [])
    assert done.said == {"kind": "DataError", "message": "topic T: it has no queues", "hint": None}


def test_an_ingest_that_has_no_files_of_this_machine_has_none_over_connect(
    tmp_path: Path, connect_server: ConnectServer
) -> None:
    body = """\
from rmqlb.pipeline.ingest.input_files import Found
from rmqlb.pipeline.ingest.new_files import NewFiles, _listed, inputs
nothing = Found((), (), 0, ())
say(listed=_listed(spark, nothing).count(), read=inputs(spark, NewFiles((), 0), (), 1).count())
"""
    done = scripts.run(tmp_path, body, connect_server.master)
    assert (done.code, done.terminal, done.left) == (0, "", [])
    assert done.said == {"listed": 0, "read": 0}


def test_a_setting_that_the_server_keeps_is_an_error(tmp_path: Path, connect_server: ConnectServer) -> None:
    done = scripts.run(tmp_path, "say()", connect_server.master, conf={"spark.driver.memory": "2g"})
    assert (done.code, done.terminal, done.left) == (0, "", [])
    assert done.said["kind"] == "UsageError"
    assert done.said["message"] == "--conf spark.driver.memory: a Spark Connect server does not take it from us"


@pytest.mark.usefixtures("grpc")
def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens
        master = f"sc://127.0.0.1:{closed.getsockname()[1]}"
        done = scripts.run(tmp_path, "say()", master)
    assert (done.code, done.terminal, done.left) == (0, "", [])
    assert done.said["kind"] == "EndpointError"
    assert done.said["message"] == f"{master}: no Spark Connect server answered within 10 s"


def test_without_its_packages_the_one_to_install_is_named(tmp_path: Path) -> None:
    (tmp_path / "grpc.py").write_text("raise ImportError('as if it were not there')\n", encoding="utf-8")
    done = scripts.run(tmp_path, "say()", "sc://127.0.0.1:1")
    assert (done.code, done.terminal, done.left) == (0, "", [])
    assert done.said["kind"] == "UsageError"
    assert done.said["message"].startswith("--master sc://127.0.0.1:1: [PACKAGE_NOT_INSTALLED] grpcio ")
    assert done.said["hint"] == "pip install 'pyspark[connect]'"
