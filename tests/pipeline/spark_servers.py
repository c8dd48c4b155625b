"""A standalone Spark cluster on loopback, from the installed pyspark.

Each runs under a small guard that reads a pipe from us and, when it closes, kills its whole process group, executors
included: even a killed pytest leaves nothing behind. Ports are the system's choice, read from each server's log.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyspark

from rmqlb.pipeline.spark import find_java

START_DEADLINE = 300.0
POLL = 0.1
_GUARD = """\
import os, signal, subprocess, sys
subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
sys.stdin.read()
os.killpg(0, signal.SIGKILL)
"""


@contextmanager
def standalone_master(folder: Path, workers: int = 1) -> Iterator[str]:
    """A master with workers of two cores in all; its address."""
    package = "org.apache.spark.deploy"
    here = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with _server([f"{package}.master.Master", *here], folder, "master") as log:
        address = _said(log, r"Starting Spark master at (spark://\S+)")
        _said(log, r"I have been elected leader")
        room = ["--cores", str(2 // workers), "--memory", "1g", "--work-dir", str(folder / "work")]
        with ExitStack() as running:
            for number in range(workers):
                program = [f"{package}.worker.Worker", *here, *room, address]
                worker = running.enter_context(_server(program, folder, f"worker-{number}"))
                _said(worker, r"Successfully registered with master")
            yield address


@contextmanager
def _server(program: list[str], folder: Path, name: str) -> Iterator[Path]:
    """Run one of Spark's programs, outside the reach of our own PYTHONPATH, and yield its log."""
    ours = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    home = str(Path(pyspark.__file__).parent)
    environ = ours | {
        "SPARK_HOME": home,
        "JAVA_HOME": str(Path(find_java(ours)).resolve().parent.parent),
        "SPARK_CONF_DIR": str(folder),  # which has none: not the settings of the machine
        "SPARK_LOCAL_DIRS": str(folder),
        "PYSPARK_PYTHON": sys.executable,
    }
    log = folder / f"{name}.log"
    line = [sys.executable, "-c", _GUARD, f"{home}/bin/spark-class", *program]
    with log.open("wb") as output:
        guard = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=output, stderr=output, env=environ, cwd=folder, start_new_session=True
        )
    try:
        yield log
    finally:
        with suppress(ProcessLookupError):
            os.killpg(guard.pid, signal.SIGKILL)
        guard.communicate()


def _said(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + START_DEADLINE
    while time.monotonic() < deadline:
        if found := re.search(pattern, log.read_text(encoding="utf-8", errors="replace")):
            return found[1] if found.groups() else found[0]
        time.sleep(POLL)
    raise AssertionError(f"{log.name} never said {pattern!r}:\n{log.read_text(encoding='utf-8', errors='replace')}")
