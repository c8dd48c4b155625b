"""A Spark session for as long as a `with` block lasts.

Rules of this file: nothing of Spark reaches the terminal, now or at the end; Ctrl-C stays Python's own; no process and
no temporary file stay. An error of Spark leaves the block as one line.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any

from rmqlb.errors import RmqlbError, UsageError
from rmqlb.pipeline.spark.in_workers import package_zip
from rmqlb.pipeline.spark.java import find_java, java_home
from rmqlb.pipeline.spark.reachable import master_must_answer
from rmqlb.pipeline.spark.settings import (
    DEFAULT_MASTER,
    SUBMITTED,
    SessionSettings,
    driver_conf,
    is_local,
    submitted_conf,
)
from rmqlb.pipeline.spark.spark_errors import plain_errors

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_STOP_SECONDS = 15.0
_COMPLAINT = re.compile(
    r"^(?:Exception in thread \S+ |Error: )?(.*(?:Exception|[Ee]rror(?! occurred during)|Invalid|Could not).*)$",
    re.MULTILINE,
)


@contextmanager
def spark_session(settings: SessionSettings) -> Iterator[SparkSession]:
    """A session of Spark, stopped at the end of the block.

    A master that is local or a cluster's gets a Java process of its own, once in a Python process; `sc://…` is Spark
    Connect; under spark-submit its Java is used. A session that this process has already is used as it is, and left
    running. A cluster's executors get the code of rmqlb sent, but the packages it imports must be installed there, for
    the Python that PYSPARK_PYTHON or `spark.pyspark.python` names.

    Raises:
        UsageError: no Java, no pyspark, a log that cannot be written, or settings that do not go together.
        EndpointError: the master cannot be reached.
        RmqlbError: Spark failed, in the block or before it; one line, with the log file in its hint.
    """
    session: AbstractContextManager[SparkSession]
    log_file = None
    running = _running()
    is_remote = settings.master.startswith("sc://")
    spark_home(needs_jars=running is None and not is_remote and SUBMITTED not in os.environ)
    if running is not None:
        session = nullcontext(running)
    elif is_remote:
        from rmqlb.pipeline.spark.connect import connect_session

        session = connect_session(settings)
    elif SUBMITTED in os.environ:
        session = _submitted_session(settings)
    else:
        session, log_file = _own_session(settings), settings.log_file
    with _logged_to(log_file), session as spark, plain_errors(log_file):
        yield spark


@contextmanager
def _logged_to(log_file: str | None) -> Iterator[None]:
    """Python's log records go to the file until the block ends; None: nowhere, another program has the log."""
    from pyspark.logger import PySparkLogger

    handler: logging.Handler = logging.NullHandler()
    if log_file is not None:
        handler = logging.FileHandler(log_file, encoding="utf-8", delay=True)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    # pyspark gives each of these a handler that writes to the terminal, unless it has one.
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logger: logging.Logger = PySparkLogger.getLogger(name)
        logger.handlers, logger.propagate = [logging.NullHandler()], True
    # With no handler at the root, py4j's records would install one that writes to the terminal, for good.
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


def spark_home(*, needs_jars: bool = True) -> str:
    """The folder of the installed pyspark package, with Spark's jars in it; a UsageError when there is none."""
    found = find_spec("pyspark")
    home = os.path.dirname(found.origin) if found and found.origin else None
    if home is None or (needs_jars and not os.path.isdir(os.path.join(home, "jars"))):
        what = "pyspark is not installed" if home is None else f"the pyspark in {home} is the client part only"
        raise UsageError(f"the pipeline needs Spark: {what}", hint="pip install 'rmqlb[pipeline]'", code="needs-extra")
    return home


def launch_environ(environ: Mapping[str, str], folder: str) -> dict[str, str]:
    """The environment for Spark's own scripts: the given one, with the installed pyspark and a Java that starts it.

    `folder` is this session's alone.
    """
    ignored = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS")
    ours = {key: value for key, value in environ.items() if key not in ignored}
    home = spark_home()
    if "SPARK_HOME" in ours:  # another installation's settings hold, but its jars may not fit the Python part
        ours.setdefault("SPARK_CONF_DIR", os.path.join(ours["SPARK_HOME"], "conf"))
    return {**ours, "SPARK_HOME": home, "JAVA_HOME": java_home(find_java(environ), folder)}


def _running() -> SparkSession | None:
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


@contextmanager
def _submitted_session(settings: SessionSettings) -> Iterator[SparkSession]:
    """On the Java process that spark-submit started, with the master that it was given."""
    if settings.master != DEFAULT_MASTER:
        hint = "leave --master out, or start rmqlb without spark-submit"
        raise UsageError(f"--master {settings.master}: under spark-submit it is spark-submit's", hint=hint)
    from pyspark.sql import SparkSession

    with TemporaryDirectory(prefix="rmqlb-spark-") as folder, plain_errors(None):
        spark = SparkSession.builder.config(map={**submitted_conf(settings)}).getOrCreate()
        try:
            _send_package(spark, folder)
            yield spark
        finally:
            spark.stop()


@contextmanager
def _own_session(settings: SessionSettings) -> Iterator[SparkSession]:
    """On a Java process of our own, which pyspark starts.

    `SparkSession.builder` alone would start it too, with our terminal as its output and in our process group, takes no
    gateway, and keeps to itself the process that is to end. So the process is pyspark's `launch_gateway`, which lets
    these be said; the session on it is the builder's.
    """
    with TemporaryDirectory(prefix="rmqlb-spark-", ignore_cleanup_errors=True) as folder:
        environ = launch_environ(os.environ, folder)
        master_must_answer(settings.master)
        from pyspark import SparkConf

        named = settings.conf.get("spark.pyspark.python") or environ.get("PYSPARK_PYTHON")
        environ["PYSPARK_PYTHON"] = sys.executable if is_local(settings.master) or not named else named
        conf = SparkConf(loadDefaults=False).setAll([*driver_conf(settings, folder).items()])
        with _environment(environ):
            gateway = _launched(conf, settings.log_file)
            try:
                with plain_errors(settings.log_file):  # while Java runs: what an error says is asked of Java too
                    spark = _created(gateway, conf, folder)
                try:
                    yield spark
                finally:
                    _stop(spark)
            finally:
                _end(gateway.proc)


def _created(gateway: Any, conf: SparkConf, folder: str) -> SparkSession:
    """A session on that Java, with Python's own handler of Ctrl-C: pyspark's asks Java on a connection in use."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # Java outlives this process by a moment when that is killed, and then removes the folder itself.
    hooks = getattr(gateway.jvm, "org.apache.spark.util.ShutdownHookManager")
    hooks.registerShutdownDeleteDir(gateway.jvm.java.io.File(folder))
    before = signal.getsignal(signal.SIGINT)
    try:
        SparkContext(conf=conf, gateway=gateway)
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
    spark = SparkSession.builder.getOrCreate()
    _send_package(spark, folder)
    return spark


@contextmanager
def _environment(environ: Mapping[str, str]) -> Iterator[None]:
    """With this environment instead of ours."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _launched(conf: SparkConf, log_file: str) -> Any:
    """The gateway to a Java process that pyspark starts; all its output goes to the log file.

    It has a pipe as standard input and ends when that closes, so it never outlives this process, however that ends. It
    has its own session, so that Ctrl-C in the terminal does not reach it.
    """
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    with _new_log(log_file) as log:
        try:
            return launch_gateway(  # type: ignore[no-untyped-call]
                conf, {"stdout": log, "stderr": log, "start_new_session": True}
            )
        except PySparkRuntimeError:
            with open(log_file, encoding="utf-8", errors="replace") as written:
                found = _COMPLAINT.search(written.read())
            said = found[1].strip() if found else "it ended"
            raise RmqlbError(f"Java did not start Spark: {said}", hint=f"the whole story is in {log_file}") from None


def _new_log(log_file: str) -> IO[bytes]:
    """An empty log; the one of the last run is kept beside it as `….1`."""
    try:
        if os.path.isfile(log_file):
            os.replace(log_file, f"{log_file}.1")
        return open(log_file, "ab")  # closed by the caller
    except OSError as error:
        hint = "name another file, or a folder that can be written"
        raise UsageError(
            f"{log_file}: Spark's log cannot be written: {error.strerror}", hint=hint, code="cannot-write"
        ) from None


def _send_package(spark: SparkSession, folder: str) -> None:
    """Executors on other machines get the code that runs here."""
    context = spark.sparkContext
    archive = None if is_local(context.getConf().get("spark.master", "")) else package_zip(folder)
    if archive is not None:
        context.addPyFile(archive)


def _stop(spark: SparkSession) -> None:
    """Stop the session in a thread of its own, because that has a connection of its own to Java.

    The one of a thread that was interrupted while it waited for an answer is of no more use.
    """

    def stop() -> None:
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns when Java is gone already
            spark.stop()

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    thread.join(_STOP_SECONDS)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let Java end by itself, which it does when its input closes; otherwise end it and all it started."""
    with suppress(OSError, subprocess.TimeoutExpired):
        if process.stdin is not None:
            process.stdin.close()
        process.wait(_STOP_SECONDS)
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
