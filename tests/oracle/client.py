"""The producer classes of one RocketMQ version in a JVM, answering questions at times that we say.

Their clock is replaced at run time: the fault classes are copied from the jar with their reference to
``java/lang/System`` renamed to our ``VirtualClock``, and the copies stand first on the class path.
"""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.live.jars import compiled, jars, tool

from .vector import READ_WRITE, Answers, Fault, Layout, Pick, Update

ARTIFACTS = ("rocketmq-client",)
PROGRAMS = Path(__file__).parent
PATCHED = "org/apache/rocketmq/client/latency/LatencyFaultToleranceImpl"


@dataclass(frozen=True)
class Client:
    java: subprocess.Popen[str]
    log: Path

    def ask(self, *fields: object) -> list[str]:
        """One line there and one line back; None is an empty field."""
        assert self.java.stdin is not None
        assert self.java.stdout is not None
        self.java.stdin.write("\t".join("" if field is None else _word(field) for field in fields) + "\n")
        self.java.stdin.flush()
        answer = self.java.stdout.readline()
        if not answer:
            raise RuntimeError(f"the client ended:\n{self.log.read_text(encoding='utf-8')[-4000:]}")
        return answer.rstrip("\n").split("\t")

    @cached_property
    def can_reset(self) -> bool:
        return "reset" in self.ask("abilities")

    @cached_property
    def can_tell_reachable(self) -> bool:
        """Whether an update says if the broker was reached."""
        return "reachable" in self.ask("abilities")

    def start(self, layout: Layout) -> None:
        self.ask("start", layout.latency_fault, layout.index, layout.worst)
        for queue in layout.queues:
            self.ask("queue", *queue)
        for broker, write_queues in layout.write_queue_nums.items():
            self.ask("route", broker, write_queues, layout.perm.get(broker, READ_WRITE))

    def pick(self, at: int, last: str | None, seed: int | None) -> Pick:
        """Pick a queue, if it may be not of the last broker; with a seed, from a new index."""
        answer = self.ask("pick", at, last, seed)
        if answer[0].startswith("!"):
            return {"error": answer[0][1:]}
        return [answer[0], int(answer[1])] if answer[0] else None

    def update(self, said: Update | None) -> None:
        if said:
            self.ask("update", said.broker, said.latency, said.isolation, said.reachable)

    def answers(self, picks: list[Pick]) -> Answers:
        """The picks, together with what they and the updates have left behind."""
        queues = [(topic, broker, int(number)) for topic, broker, number in _rows(self.ask("queues"), 3)]
        index, worst = map(int, self.ask("indexes"))
        faults = {broker: fault.document() for broker, fault in sorted(self.faults().items())}
        return Answers(picks, queues, index, worst, faults)

    def faults(self) -> dict[str, Fault]:
        rows = _rows(self.ask("faults"), 4 if self.can_tell_reachable else 3)
        return {name: Fault(int(latency), int(start), *_flags(more)) for name, latency, start, *more in rows}

    def defaults(self) -> dict[str, Any]:
        return {name: json.loads(value) for name, value in _rows(self.ask("defaults"), 2)}


@contextmanager
def client(version: str, scratch: Path) -> Iterator[Client]:
    """The client of a version for the length of a ``with`` block; it ends by itself when its input does."""
    library = jars(version, ARTIFACTS, "rocketmq-client")
    classes = compiled(PROGRAMS, library, scratch / "classes")
    patched = _patched(library / f"rocketmq-client-{version}.jar", scratch / "patched")
    class_path = os.pathsep.join((str(patched), str(classes), f"{library}/*"))
    command = [tool("java"), "-Xmx256m", f"-Duser.home={scratch}", "-cp", class_path, "Picks"]
    log = scratch / "log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8"
        ) as java,
    ):
        yield Client(java, log)


def _patched(jar: Path, into: Path) -> Path:
    """The fault classes with our clock: a constant pool names a class once, by its length and its name."""
    found, ours = (b"\1" + len(name).to_bytes(2) + name for name in (b"java/lang/System", b"VirtualClock"))
    patched = 0
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            content = archive.read(name) if name.startswith(PATCHED) else b""
            if found in content:
                assert content.count(found) == 1, name
                target = into / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.replace(found, ours))
                patched += 1
    assert patched == 2, f"{jar}: the clock is no longer read by the fault table and its items alone"
    return into


def _word(field: object) -> str:
    return str(field).lower() if isinstance(field, bool) else str(field)


def _rows(fields: list[str], width: int) -> Iterator[list[str]]:
    if fields != [""]:
        for start in range(0, len(fields), width):
            yield fields[start : start + width]


def _flags(fields: list[str]) -> list[bool]:
    return [field == "true" for field in fields]
