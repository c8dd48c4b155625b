"""RocketMQ's own allocation classes, in a JVM that is told over its standard input what to run."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rmqlb import MessageQueue
from tests.live.jars import jars, tool

VERSION = "5.5.0"
PROGRAM = Path(__file__).parent / "Allocations.java"


class RocketMQ:
    """The running JVM.

    Args:
        commands: what `Allocations.java` reads.
        answers: what it prints.
    """

    def __init__(self, commands: IO[str], answers: IO[str]) -> None:
        self._commands = commands
        self._answers = answers

    def load(self, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> None:
        """The group from now on; both lists in the order in which clients pass them."""
        lines = [f"group {queues[0].topic} {len(queues)} {len(client_ids)}"]
        lines += (f"{queue.broker_name} {queue.queue_id}" for queue in queues)
        self._send("\n".join((*lines, *client_ids)))

    def time(self, strategy: str, seconds: float) -> tuple[float, int]:
        """Seconds for all members of the group, the mean over so many seconds, and the checksum of their shares.

        Raises:
            RuntimeError: the JVM ended instead of answering.
        """
        self._send(f"time {strategy} {seconds * 1000:.0f}")
        answer = self._answers.readline()
        if not answer:
            raise RuntimeError(f"{PROGRAM.name} ended at {strategy}; what it said stands above")
        nanos, checksum = answer.split()
        return int(nanos) / 1e9, int(checksum)

    def _send(self, text: str) -> None:
        self._commands.write(text + "\n")
        self._commands.flush()


def prepare(folder: Path) -> list[str]:
    """The command that starts the JVM, with our program compiled.

    Args:
        folder: takes the compiled program and whatever RocketMQ's logging writes.

    Raises:
        MissingToolError: Java or Maven is not here.
        RuntimeError: Maven cannot bring the jars.
    """
    class_path = f"{jars(VERSION)}/*"
    compiler = [tool("javac"), "-nowarn", "-d", str(folder), "-cp", class_path, str(PROGRAM)]
    subprocess.run(compiler, check=True)  # noqa: S603 - our own program
    quiet = folder / "logback.xml"
    quiet.write_text('<configuration><root level="OFF"/></configuration>\n', encoding="utf-8")
    properties = [f"-Duser.home={folder}", f"-Drmq.logback.configurationFile={quiet}"]
    return [tool("java"), "-Xmx512m", *properties, "-cp", f"{folder}:{class_path}", PROGRAM.stem]


@contextmanager
def started(command: Sequence[str]) -> Iterator[RocketMQ]:
    """The JVM for the length of a `with` block; it ends when its standard input closes."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        if process.stdin is None or process.stdout is None:
            raise AssertionError("both are pipes")
        yield RocketMQ(process.stdin, process.stdout)
