"""What the options of the pipeline's commands say, without Spark."""

from __future__ import annotations

import socket

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.cli.pipeline.options import OnlyOptions, ScheduleOptions
from rmqlb.cli.pipeline.plan import plan_for
from rmqlb.errors import UsageError
from rmqlb.pipeline.spark.reachable import storage_must_answer

from .run import error_of, run


@pytest.mark.parametrize("timeout", ["500us", "1.5ms"])
def test_a_time_out_has_whole_milliseconds(timeout: str) -> None:
    with pytest.raises(UsageError, match=f"--send-timeout {timeout}: the client counts whole milliseconds"):
        plan_for(OnlyOptions(), schedule=ScheduleOptions(send_timeout=timeout))


ENDPOINT = "spark.hadoop.fs.s3a.endpoint"


@pytest.fixture
def closed() -> str:
    """An address at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.parametrize("place", ["hdfs://{}/wh", "s3a://bucket/wh", "abfss://c@{}/wh"])
def test_a_storage_that_does_not_listen_is_told_before_java_starts(place: str, closed: str) -> None:
    uri = place.format(closed)
    for command in ("ingest", "report"):
        ran = run(
            *("pipeline", command, "-w", uri, "--conf", f"{ENDPOINT}=http://{closed}"),
            *(["examples/cluster.json"] if command == "ingest" else []),
        )
        assert (ran.code, ran.stdout) == (ExitCode.ENDPOINT, "")
        told = error_of(ran.stderr.replace("running on Spark\n", ""))
        assert (told.code, told.hint) == ("unreachable", "is it running, and are its name and port right?")
        assert told.message == f"{closed}: cannot reach the storage of {uri}: Connection refused"


def test_a_host_that_is_not_there_is_told() -> None:
    ran = run("pipeline", "report", "-w", "hdfs://no-such-host.invalid:8020/wh")
    assert ran.code == ExitCode.ENDPOINT
    assert "no-such-host.invalid:8020: cannot reach the storage" in ran.stderr


def test_a_port_that_is_none_is_told() -> None:
    ran = run("pipeline", "report", "-w", "hdfs://namenode:80200/wh")
    assert ran.code == ExitCode.USAGE
    assert "--warehouse hdfs://namenode:80200/wh: not HOST:PORT" in ran.stderr


@pytest.mark.parametrize(
    ("uri", "conf"),
    [
        ("hdfs://nameservice1/wh", {}),
        ("s3a://bucket/wh", {}),
        ("gs://bucket/wh", {}),
        ("file:///data/wh", {}),
        ("s3a://bucket/wh", {ENDPOINT: "http://{}", "spark.hadoop.fs.s3a.proxy.host": "proxy"}),
    ],
)
def test_where_only_hadoop_knows_the_server_nothing_is_asked(uri: str, conf: dict[str, str], closed: str) -> None:
    storage_must_answer(uri, {key: value.format(closed) for key, value in conf.items()})
