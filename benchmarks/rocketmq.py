"""RocketMQ's own classes, in a JVM that is told over its standard input what to run."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TypeVar

from rmqlb import MessageQueue
from tests.live.jars import MissingToolError, jars, tool

VERSION = "5.5.0"
HERE = Path(__file__).parent
ALLOCATIONS = HERE / "Allocations.java"
SELECTIONS = HERE / "Selections.java"


class Program:
    """One of our Java programs, running.

    Args:
        name: of the program, for complaints.
        commands: what it reads.
        answers: what it prints.
    """

    def __init__(self, name: str, commands: IO[str], answers: IO[str]) -> None:
        self._name = name
        self._commands = commands
        self._answers = answers

    def send(self, text: str) -> None:
        """Tell it something that it does not answer."""
        self._commands.write(text + "\n")
        self._commands.flush()

    def ask(self, text: str) -> tuple[int, ...]:
        """The numbers of the line that it answers.

        Raises:
            RuntimeError: the JVM ended instead of answering.
        """
        self.send(text)
        answer = self._answers.readline()
        if not answer:
            raise RuntimeError(f"{self._name} ended at {text}; what it said stands above")
        return tuple(map(int, answer.split()))


P = TypeVar("P", bound=Program)


class GroupAllocations(Program):
    """A consumer group's allocations: `Allocations.java`."""

    def load(self, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> None:
        """The group from now on; both lists in the order in which clients pass them."""
        lines = [f"group {queues[0].topic} {len(queues)} {len(client_ids)}", *_lines(queues)]
        self.send("\n".join((*lines, *client_ids)))

    def time(self, strategy: str, seconds: float) -> tuple[float, int]:
        """Seconds for all members of the group, the mean over so many seconds, and the checksum of their shares.

        Raises:
            RuntimeError: the JVM ended instead of answering.
        """
        nanos, checksum = self.ask(f"time {strategy} {seconds * 1000:.0f}")
        return nanos / 1e9, checksum


class Selections(Program):
    """A producer's picks: `Selections.java`."""

    def load(self, queues: Sequence[MessageQueue]) -> None:
        """The publish list from now on."""
        self.send("\n".join((f"topic {queues[0].topic} {len(queues)}", *_lines(queues))))

    def start(self, latency_fault: bool, isolated: str | None) -> None:
        """A new fault strategy; the round robin starts at 0, and no isolation ends before the next start."""
        self.send(f"start {str(latency_fault).lower()} {isolated or '-'}")

    def checksum(self, picks: int) -> int:
        """Over the next so many picks.

        Raises:
            RuntimeError: the JVM ended instead of answering.
        """
        return self.ask(f"checksum {picks}")[0]

    def rate(self, seconds: float) -> float:
        """Picks a second, the mean over so many seconds.

        Raises:
            RuntimeError: the JVM ended instead of answering.
        """
        picks, nanos = self.ask(f"time {seconds * 1000:.0f}")
        return picks / nanos * 1e9


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
def started(command: Sequence[str], kind: Callable[[str, IO[str], IO[str]], P]) -> Iterator[P]:
    """The JVM for the length of a `with` block; it ends when its standard input closes."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        if process.stdin is None or process.stdout is None:
            raise AssertionError("both are pipes")
        yield kind(command[-1], process.stdin, process.stdout)


@contextmanager
def java_if_here(program: Path, kind: Callable[[str, IO[str], IO[str]], P], heap: str = "512m") -> Iterator[P | None]:
    """RocketMQ's own classes; None, and a line that says so, where Java, Maven or the jars are missing."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            command = prepare(Path(scratch), program, heap)
        except (MissingToolError, RuntimeError) as reason:
            sys.stdout.write(f"RocketMQ's own classes are not measured: {str(reason).splitlines()[0]}\n\n")
            command = []
        with started(command, kind) if command else nullcontext() as java:
            yield java
