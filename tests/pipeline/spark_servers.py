"""A standalone Spark cluster on loopback, from the installed pyspark.

Each runs under a small guard that reads a pipe from us and, when it closes, kills its whole process group, executors
included: even a killed pytest leaves nothing behind. Ports are the system's choice, read from each server's log.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rmqlb.pipeline.spark import find_java

START_DEADLINE = 300.0
POLL = 0.1
_LOG4J2 = """\
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n%ex
"""
_GUARD = """\
import os, signal, subprocess, sys
subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
sys.stdin.read()
os.killpg(0, signal.SIGKILL)
"""


@dataclass(frozen=True)
class StandaloneCluster:
    """A running master and its workers.

    Attributes:
        master: its `spark://` address.
        folder: where the first worker keeps its executors' folders and logs.
        folders: those of all workers.
    """

    master: str
    folders: tuple[Path, ...]

    @property
    def folder(self) -> Path:
        return self.folders[0]


@contextmanager
def standalone_processes(
    folder: Path, *, workers: int = 1, cores: int = 2, home: Path | None = None
) -> Iterator[StandaloneCluster]:
    """A master and workers of so many cores each; `home`: the folder of their Spark."""
    package = "org.apache.spark.deploy"
    here = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    folders = [folder / ("work" if number == 0 else f"work-{number + 1}") for number in range(workers)]
    with ExitStack() as stack:
        log = stack.enter_context(_server([f"{package}.master.Master", *here], folder, "master", home))
        address = _said(log, r"Starting Spark master at (spark://\S+)")
        _said(log, r"I have been elected leader")
        for work in folders:
            room = ["--cores", str(cores), "--memory", "1g", "--work-dir", str(work)]
            worker = [f"{package}.worker.Worker", *here, *room, address]
            _said(stack.enter_context(_server(worker, folder, work.name, home)), r"Successfully registered with master")
        yield StandaloneCluster(address, tuple(folders))


@contextmanager
def _server(program: list[str], folder: Path, name: str, home: Path | None) -> Iterator[Path]:
    """Run one of Spark's programs, outside the reach of our own PYTHONPATH, and yield its log."""
    (folder / "conf").mkdir(exist_ok=True)
    (folder / "conf" / "log4j2.properties").write_text(_LOG4J2, encoding="utf-8")
    ours = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environ = ours | {
        "SPARK_HOME": _spark_home(),
        "JAVA_HOME": str(Path(find_java(ours)).resolve().parent.parent),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_DIRS": str(folder),
        "PYSPARK_PYTHON": sys.executable,
        **({} if home is None else {"SPARK_HOME": str(home)}),
    }
    command = [f"{environ['SPARK_HOME']}/bin/spark-class", *program]
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        guard = subprocess.Popen(
            [sys.executable, "-c", _GUARD, *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environ,
            cwd=folder,
            start_new_session=True,
        )
    try:
        yield log
    finally:
        with suppress(ProcessLookupError):
            os.killpg(guard.pid, signal.SIGKILL)
        guard.communicate()


def _said(log: Path, pattern: str) -> str:
    """Wait until the log has a line that matches; the pattern's group, or all of the match."""
    deadline = time.monotonic() + START_DEADLINE
    while time.monotonic() < deadline:
        if found := re.search(pattern, log.read_text(encoding="utf-8", errors="replace")):
            return found[1] if found.groups() else found[0]
        time.sleep(POLL)
    raise AssertionError(f"{log.name} never said {pattern!r}:\n{log.read_text(encoding='utf-8', errors='replace')}")


def _spark_home() -> str:
    import pyspark

    return str(Path(pyspark.__file__).parent)
