"""Real failures of a real Spark, each in one line."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError

from rmqlb.errors import DataError, DocumentError, EndpointError, RmqlbError, UsageError
from rmqlb.pipeline.spark import in_workers
from rmqlb.pipeline.spark_errors import plain_error, plain_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Step = Callable[[Iterator[object]], NoReturn]

pytestmark = [pytest.mark.spark, pytest.mark.slow]

WHERE = "the whole story is in spark.log"


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


def through(spark: SparkSession, step: Step) -> DataFrame:
    return in_workers(spark.range(4), step, "id long")


def failure(run: Callable[[], object]) -> RmqlbError:
    """The plain error of whatever this raises."""
    with pytest.raises(RmqlbError) as raised, plain_errors("spark.log"):
        run()
    assert "\n" not in raised.value.message
    return raised.value


def test_an_error_of_ours_in_a_worker_comes_back_as_itself(spark: SparkSession) -> None:
    error = failure(through(spark, raising(DataError("topic T: it has no queues"))).collect)
    assert type(error) is DataError
    assert (error.message, error.code, error.hint) == ("topic T: it has no queues", "data", None)


def test_of_two_errors_of_ours_the_last_comes_back(spark: SparkSession, tmp_path: Path) -> None:
    frame = through(spark, raising_while_handling)
    error = failure(lambda: frame.write.parquet(str(tmp_path / "table")))
    assert type(error) is DocumentError
    assert error.message == "a.json: line 3: rmqlb.errors are odd: topic is missing"


def test_another_error_in_a_worker_is_said_with_the_log(spark: SparkSession) -> None:
    error = failure(through(spark, raising(ValueError("odd"))).collect)
    assert type(error) is RmqlbError
    assert (error.message, error.hint) == ("Spark failed: ValueError: odd", WHERE)


def test_a_full_disk_is_said(spark: SparkSession) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    error = failure(through(spark, raising(full)).collect)
    assert error.message == "the disk is full"
    assert WHERE in (error.hint or "")


def test_a_package_that_executors_lack_is_named(spark: SparkSession) -> None:
    error = failure(through(spark, raising(ModuleNotFoundError("No module named 'msgspec'"))).collect)
    assert error.message == "the Python package msgspec is missing where Spark's executors run"


@pytest.mark.parametrize(
    "words",
    [
        "Caused by: java.lang.OutOfMemoryError: Java heap space",
        "Caused by: org.apache.spark.memory.SparkOutOfMemoryError: Java heap space",
    ],
)
def test_memory_that_ran_out_is_said_with_sparks_reason(words: str) -> None:
    error = plain_error(PySparkRuntimeError(f"An error occurred.\n{words}\n\tat x.Y"), "spark.log")
    assert error is not None
    assert error.message == "Spark ran out of memory: Java heap space"


NO_KEY = "software.amazon.awssdk.core.exception.SdkClientException: x: No AWS Credentials provided by Simple"


@pytest.mark.parametrize(
    ("words", "kind", "message"),
    [
        (
            "java.net.UnknownHostException: no-such-host.invalid",
            EndpointError,
            "no-such-host.invalid: there is no host of this name",
        ),
        (
            "java.nio.file.AccessDeniedException: s3a://b/wh/_staging/7b.json:: getFileStatus on s3a://b: S3Exception: null",
            UsageError,
            "s3a://b/wh: permission denied",
        ),
        ("java.nio.file.AccessDeniedException: /data/wh", UsageError, "/data/wh: permission denied"),
        (
            f"java.nio.file.AccessDeniedException: s3a://b/wh/_staging/7b.json: NoAuthWithAWSException: {NO_KEY}",
            EndpointError,
            "the storage does not accept the credentials, or there are none",
        ),
        (
            'AccessControlException: Permission denied: user=ops, access=WRITE, inode="/wh":hdfs:supergroup:drwxr-xr-x',
            UsageError,
            "/wh: user ops has no permission to WRITE",
        ),
        (
            "NoSuchBucketException: The specified bucket does not exist (Service: S3)",
            DataError,
            "there is no such bucket",
        ),
        (
            'UnsupportedFileSystemException: No FileSystem for scheme "foo"',
            UsageError,
            "Spark knows no storage with the scheme foo",
        ),
    ],
)
def test_what_a_storage_refuses_is_said_without_our_own_files(words: str, kind: type[RmqlbError], message: str) -> None:
    error = plain_error(
        PySparkRuntimeError(f"An error occurred while calling o1.create.\n: {words}\n\tat x.Y"), "spark.log"
    )
    assert (type(error), error and error.message) == (kind, message)


def test_a_worker_that_dies_is_said(spark: SparkSession) -> None:
    assert failure(through(spark, dying).collect).message == "a Python process of Spark was killed or crashed"


def test_a_folder_that_cannot_be_made_is_named(spark: SparkSession) -> None:
    error = failure(lambda: spark.range(4).write.parquet("/proc/none/table"))
    assert type(error) is UsageError
    assert error.message == "/proc/none/table: cannot be created"


def test_a_path_that_is_not_there_is_named(spark: SparkSession, tmp_path: Path) -> None:
    error = failure(lambda: spark.read.parquet(f"{tmp_path}/none"))
    assert type(error) is DataError
    assert error.message == f"{tmp_path}/none: no such file or folder"


def test_an_error_of_analysis_is_said_without_its_plan(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    error = failure(lambda: spark.range(4).select("nope"))
    assert error.message.startswith("Spark failed: [UNRESOLVED_COLUMN")
    assert error.message.endswith("[`id`].")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("error", [ValueError("ours"), DataError("ours"), ConnectionRefusedError("a dashboard's")])
def test_an_error_that_is_not_sparks_is_left_alone(error: Exception) -> None:
    assert plain_error(error, "spark.log") is None
    with pytest.raises(type(error)), plain_errors("spark.log"):
        raise error


@pytest.mark.parametrize(
    "said", ["py4j.reflection does not exist in the JVM", "Job 3 cancelled because SparkContext was shut down"]
)
def test_what_java_logged_before_it_ended_is_the_cause(said: str, tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_text("java.lang.OutOfMemoryError: Java heap space\n")
    error = plain_error(Py4JError(said), str(log))
    assert error is not None
    assert error.message == "Spark ran out of memory: Java heap space"
