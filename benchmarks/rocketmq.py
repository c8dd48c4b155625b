"""RocketMQ's own classes, in a JVM that is told over its standard input what to run."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rmqlb import MessageQueue
from tests.live.jars import MissingToolError, jars, tool

VERSION = "5.5.0"
HERE = Path(__file__).parent
ALLOCATIONS = HERE / "Allocations.java"


class GroupAllocations:
    """A consumer group's allocations in a running JVM: `Allocations.java`."""

    def __init__(self, commands: IO[str], answers: IO[str]) -> None:
        self._commands = commands
        self._answers = answers

    def load(self, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> None:
        """The group from now on; both lists in the order in which clients pass them."""
        lines = [f"group {queues[0].topic} {len(queues)} {len(client_ids)}", *_lines(queues)]
        self._send("\n".join((*lines, *client_ids)))

    def time(self, strategy: str, seconds: float) -> tuple[float, int]:
        """Seconds for all members of the group, the mean over so many seconds, and the checksum of their shares.

        Raises:
            RuntimeError: the JVM ended instead of answering.
        """
        self._send(f"time {strategy} {seconds * 1000:.0f}")
        answer = self._answers.readline()
        if not answer:
            raise RuntimeError(f"RocketMQ's classes ended at {strategy}; their output stands above")
        nanos, checksum = map(int, answer.split())
        return nanos / 1e9, checksum

    def _send(self, text: str) -> None:
        self._commands.write(text + "\n")
        self._commands.flush()


def _lines(queues: Sequence[MessageQueue]) -> list[str]:
    return [f"{queue.broker_name} {queue.queue_id}" for queue in queues]


def prepare(folder: Path, program: Path, heap: str = "512m") -> list[str]:
    """The command that starts the JVM, with our program compiled.

    Args:
        folder: takes the compiled program and whatever RocketMQ's logging writes.
        program: the source.
        heap: of the JVM.

    Raises:
        MissingToolError: Java or Maven is not here.
        RuntimeError: Maven cannot bring the jars.
    """
    class_path = f"{jars(VERSION)}/*"
    compiler = [tool("javac"), "-nowarn", "-d", str(folder), "-cp", class_path, str(program)]
    subprocess.run(compiler, check=True)  # noqa: S603 - our own program
    quiet = folder / "logback.xml"
    quiet.write_text('<configuration><root level="OFF"/></configuration>\n', encoding="utf-8")
    properties = [f"-Duser.home={folder}", f"-Drmq.logback.configurationFile={quiet}"]
    return [tool("java"), f"-Xmx{heap}", *properties, "-cp", f"{folder}:{class_path}", program.stem]


@contextmanager
def java_if_here(heap: str = "512m") -> Iterator[GroupAllocations | None]:
    """RocketMQ's own classes until the `with` block ends; without Java or the jars None, and a line with the reason."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            command = prepare(Path(scratch), ALLOCATIONS, heap)
        except (MissingToolError, RuntimeError) as reason:
            sys.stdout.write(f"RocketMQ's own classes are not measured: {str(reason).splitlines()[0]}\n\n")
            yield None
            return
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
            if process.stdin is None or process.stdout is None:
                raise AssertionError("both are pipes")
            yield GroupAllocations(process.stdin, process.stdout)
