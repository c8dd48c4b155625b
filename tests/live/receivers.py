"""gRPC consumers behind a Proxy, and messages for consumers that receive: who had what, and when."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .cluster import RocketMQCluster
from .jvm import Java, JavaProcess, started
from .members import Program


@dataclass(frozen=True)
class Got:
    """A message that came to a consumer of a group, in epoch milliseconds."""

    group: str
    body: str
    at_ms: int


def all_got(process: JavaProcess) -> list[Got]:
    lines = process.output().splitlines(keepends=True)
    rows = [json.loads(line[len("got ") :]) for line in lines if line.startswith("got ") and line.endswith("\n")]
    return [Got(row["group"], row["body"], row["atMs"]) for row in rows]


class Receivers(Program):
    """gRPC consumers in one JVM, each with a client of its own; each start answers when it was, in epoch milliseconds."""

    def simple(
        self, group: str, topic: str, *, loops: int = 1, await_s: float = 5, invisible_s: int = 10, ack: bool = True
    ) -> int:
        times = f"{round(await_s * 1000)} {invisible_s * 1000}"
        return int(self.ask(f"simple {group} {topic} {loops} {times} {str(ack).lower()}")["atMs"])

    def push(self, group: str, topic: str, *, ack: bool = True) -> int:
        return int(self.ask(f"push {group} {topic} {str(ack).lower()}")["atMs"])

    def failures(self, group: str) -> list[str]:
        start = f"failed {group} "
        return [line[len(start) :] for line in self.process.output().splitlines() if line.startswith(start)]


class Sender(Program):
    def send(self, topic: str, broker: str, queue: int, body: str) -> None:
        """Send a message to a queue; its body must be its own."""
        self.process.send(f"{topic} {broker} {queue} {body}")

    def sent(self) -> dict[str, int]:
        """When each message so far set out, in epoch milliseconds, by its body."""
        self.process.must_run()
        rows = [json.loads(line) for line in self._answers()]
        return {row["body"]: row["atMs"] for row in rows if "body" in row}


@contextmanager
def receivers(java: Java, endpoint: str, log: Path) -> Iterator[Receivers]:
    with started(log.stem, java.command("GrpcReceivers", endpoint), log) as process:
        program = Receivers(process)
        program.next_answer()
        yield program


@contextmanager
def sender(cluster: RocketMQCluster, log: Path) -> Iterator[Sender]:
    with started("messages", cluster.java.command("Messages", cluster.name_server), log) as process:
        program = Sender(process)
        program.next_answer()
        yield program
