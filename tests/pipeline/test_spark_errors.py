import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from rmqlb.errors import DataError, DocumentError, EndpointError, RmqlbError, UsageError
from rmqlb.pipeline.spark import in_workers, plain_error, plain_errors
from tests.support.mismatches import every_case

Step = Callable[[Iterator[object]], NoReturn]

pytestmark = [pytest.mark.spark, pytest.mark.slow]


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
    (raising(ValueError("odd")), RmqlbError, "Spark failed: ValueError: odd", "the whole story is in spark.log"),
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
    ("java.net.UnknownHostException: no.invalid", EndpointError, "no.invalid: there is no host of this name"),
    (f"{STAGED}: getFileStatus on s3a://b: S3Exception: null", UsageError, "s3a://b/wh: permission denied"),
    ("java.nio.file.AccessDeniedException: /data/wh", UsageError, "/data/wh: permission denied"),
    (f"{STAGED} NoAuthWithAWSException: {NO_KEY}", EndpointError, "the storage does not accept the credentials, or there are none"),
    (DENIED, UsageError, "/wh: user ops has no permission to WRITE"),
    ("NoSuchBucketException: The specified bucket does not exist", DataError, "there is no such bucket"),
    ('UnsupportedFileSystemException: No FileSystem for scheme "foo"', UsageError, "Spark knows no storage with the scheme foo"),
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
