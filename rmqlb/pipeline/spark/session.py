"""A Spark session for as long as a `with` block lasts.

Rules of this file: nothing of Spark reaches the terminal, now or at the end; whatever was changed in this process (the
environment, the handler of Ctrl-C, pyspark's idea of a running Java) is put back; no process and no temporary file
stay. An error of Spark leaves the block as one line.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rmqlb.errors import EndpointError, UsageError
from rmqlb.pipeline.spark.driver import Driver, driver_process, spark_home
from rmqlb.pipeline.spark.java import find_java
from rmqlb.pipeline.spark.package import package_zip
from rmqlb.pipeline.spark.python_logs import logged_to
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
    from pyspark.sql import SparkSession

_CONNECT_SECONDS = 5.0
_REGISTER_SECONDS = 45.0  # Spark itself would try for a minute, once it has begun
_STOP_SECONDS = 15.0
_NO_MASTER = "is it running, and does its page show this very spark:// address?"


@contextmanager
def spark_session(settings: SessionSettings) -> Iterator[SparkSession]:
    """A session of Spark, stopped at the end of the block.

    A master that is local or a cluster's gets a Java process of its own; `sc://…` is Spark Connect, which needs none;
    under spark-submit its Java is used. A session that this process has already is used as it is, and left running.
    A cluster's executors get the code of rmqlb sent, but the packages it imports (numpy, pandas, pyarrow, msgspec,
    PyYAML) must be installed there, for the Python that PYSPARK_PYTHON or `spark.pyspark.python` names.

    Raises:
        UsageError: no Java, no pyspark, a log that cannot be written, or settings that do not go together.
        EndpointError: the master cannot be reached.
        RmqlbError: Spark failed, in the block or before it; one line, with the log file in its hint.
    """
    session: AbstractContextManager[SparkSession]
    running = _running()
    if running is not None:
        session, log_file = nullcontext(running), None
    elif settings.master.startswith("sc://"):
        from rmqlb.pipeline.spark.connect import connect_session

        session, log_file = connect_session(settings), None
    elif SUBMITTED in os.environ:
        session, log_file = _submitted_session(settings), None
    else:
        session, log_file = _own_session(settings), settings.log_file
    with session as spark, logged_to(log_file), plain_errors(log_file):
        yield spark


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
    """On a Java process of our own."""
    spark_home()
    java = find_java(os.environ)
    _must_answer(settings.master)
    with (
        _session_folder() as folder,
        _environment(_python_for(settings)),
        driver_process(java, driver_conf(settings, folder), folder=folder, log_file=settings.log_file) as driver,
        plain_errors(settings.log_file),
    ):
        try:
            # Before the goodbye too: a Java without a gateway is asked in vain, for ever.
            with plain_errors(settings.log_file):
                spark = _attach(driver, settings.master)
                _clean_when_killed(spark, folder)
                _send_package(spark, folder)
            yield spark
        finally:
            _detach()


@contextmanager
def _session_folder() -> Iterator[str]:
    """A folder that is gone at the end, from the search path of modules as well, where Spark puts parts of it."""
    with TemporaryDirectory(prefix="rmqlb-spark-", ignore_cleanup_errors=True) as folder:
        try:
            yield folder
        finally:
            sys.path[:] = [path for path in sys.path if not path.startswith(folder)]
            shutil.rmtree(folder, ignore_errors=True)


def _python_for(settings: SessionSettings) -> dict[str, str | None]:
    """The interpreter of Spark's Python processes: this one, unless another machine may have it elsewhere."""
    named = settings.conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    workers = sys.executable if is_local(settings.master) or not named else named
    return {"PYSPARK_PYTHON": workers, "PYSPARK_DRIVER_PYTHON": sys.executable}


@contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """With these variables in the environment, or without those that are None."""
    before = {name: os.environ.get(name) for name in changes}
    _change_environment(changes)
    try:
        yield
    finally:
        _change_environment(before)


def _change_environment(changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _must_answer(master: str) -> None:
    """A spark:// master listens; Spark itself would take a minute to notice that it does not."""
    if not master.startswith("spark://"):
        return
    reasons = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise UsageError(f"--master {master}: not HOST:PORT: {address}", hint="such as spark://host:7077")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            reasons.append(f"{getattr(error, 'strerror', None) or error}")
        else:
            return
    raise EndpointError(
        f"{master}: cannot reach the Spark master: {'; '.join(reasons)}", hint=_NO_MASTER, code="unreachable"
    )


def _attach(driver: Driver, master: str) -> SparkSession:
    """Make pyspark use the process, and wait until the master has taken us on."""
    from pyspark.sql import SparkSession

    gateway = {"PYSPARK_GATEWAY_PORT": str(driver.port), "PYSPARK_GATEWAY_SECRET": driver.secret}
    classic = {"SPARK_REMOTE": None, "SPARK_CONNECT_MODE_ENABLED": None}
    late = threading.Event()

    def give_up() -> None:
        late.set()
        driver.kill()

    timer = threading.Timer(_REGISTER_SECONDS, give_up)
    timer.daemon = True
    if master.startswith("spark://"):
        timer.start()
    try:
        with _environment({**gateway, **classic}), _own_interrupts():
            return SparkSession.builder.config("spark.api.mode", "classic").getOrCreate()
    except Exception as error:
        if late.is_set():
            text = f"{master}: it did not take the application on within {_REGISTER_SECONDS:.0f} s"
            raise EndpointError(text, hint=_NO_MASTER) from error
        raise
    finally:
        timer.cancel()


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep the handler of Ctrl-C: the one pyspark sets asks Java on a connection that is in use."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _clean_when_killed(spark: SparkSession, folder: str) -> None:
    """Have Java remove the folder at its end: it outlives this process by a moment, when that is killed."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - no public way to Spark's own list of such folders
    if jvm is not None:
        folder_there = jvm.java.io.File(folder)
        getattr(jvm, "org.apache.spark.util.ShutdownHookManager").registerShutdownDeleteDir(folder_there)


def _send_package(spark: SparkSession, folder: str) -> None:
    """Executors on other machines get the code that runs here."""
    context = spark.sparkContext
    archive = None if is_local(context.getConf().get("spark.master", "")) else package_zip(folder)
    if archive is not None:
        context.addPyFile(archive)


def _detach() -> None:
    """Stop the session, and let pyspark forget its Java.

    In a thread of its own, because it has a connection of its own: the one of a thread that was interrupted while it
    waited for an answer is of no more use.
    """
    thread = threading.Thread(target=_stop, daemon=True)
    thread.start()
    thread.join(_STOP_SECONDS)

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = SparkContext._gateway  # noqa: SLF001 - pyspark has no way to say that its Java has ended
    SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    if gateway is not None:
        with suppress(Exception):
            gateway.shutdown()


def _stop() -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    session, context = SparkSession._instantiatedSession, SparkContext._active_spark_context  # noqa: SLF001
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns when Java is gone already
        if session is not None:
            session.stop()
        elif context is not None:
            context.stop()
