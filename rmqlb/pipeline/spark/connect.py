"""Spark Connect: a session on a server far away, over gRPC, without Java."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rmqlb.errors import EndpointError, UsageError
from rmqlb.pipeline.spark.in_workers import package_zip
from rmqlb.pipeline.spark.settings import SessionSettings, session_conf
from rmqlb.pipeline.spark.spark_errors import plain_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONNECT_SECONDS = 10
_ENABLED = "SPARK_CONNECT_MODE_ENABLED"  # pyspark sets it, needs it, and would not start another kind with it


@contextmanager
def connect_session(settings: SessionSettings) -> Iterator[SparkSession]:
    """A session on the server of a `sc://` master, released at the end; the server gets the code of rmqlb."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC's own library writes to the terminal; read at its import
    _must_answer(settings.master)
    from pyspark.sql import SparkSession

    with TemporaryDirectory(prefix="rmqlb-spark-") as folder, plain_errors(None):
        try:
            spark = SparkSession.builder.remote(settings.master).getOrCreate()
            try:
                _set(spark, settings)
                if (archive := package_zip(folder)) is not None:
                    spark.addArtifacts(archive, pyfile=True)
                yield spark
            finally:
                spark.stop()
        finally:
            os.environ.pop(_ENABLED, None)


def _set(spark: SparkSession, settings: SessionSettings) -> None:
    from pyspark.errors import PySparkException

    for key, value in session_conf(settings).items():
        try:
            spark.conf.set(key, value)
        except PySparkException as error:
            if error.getCondition() != "CANNOT_MODIFY_CONFIG":
                raise
            hint = "give it to the server when that is started, or leave it out"
            raise UsageError(f"--conf {key}: a Spark Connect server does not take it from us", hint=hint) from None


def _must_answer(master: str) -> None:
    from pyspark.errors import PySparkException

    try:
        from pyspark.sql.connect.client import DefaultChannelBuilder
    except ImportError as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"--master {master}: {reason}", hint="pip install 'pyspark[connect]'") from None
    import grpc  # type: ignore[import-untyped]

    try:
        channel = DefaultChannelBuilder(master).toChannel()
    except (PySparkException, ValueError) as error:
        raise UsageError(f"--master {master}: {error}", hint="such as sc://host:15002") from None
    try:
        grpc.channel_ready_future(channel).result(timeout=_CONNECT_SECONDS)
    except grpc.FutureTimeoutError:
        text = f"{master}: no Spark Connect server answered within {_CONNECT_SECONDS} s"
        raise EndpointError(text, hint="is it running there, and is the port right? 15002 is the usual one") from None
    finally:
        channel.close()
