from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .cluster import RocketMQCluster
from .jvm import started
from .members import FAST_REBALANCE, Program


class Consumers(Program):
    def join(self, group: str, name: str, topics: str, **options: str) -> str:
        """Start a consumer; its client ID. Topics and options are those of ``Consumers.java``."""
        given = " ".join(f"{key}={value}" for key, value in {"topics": topics, **options}.items())
        return str(self.ask(f"join {group} {name} {given}")["joined"])

    def leave(self, group: str, name: str) -> None:
        self.ask(f"leave {group} {name}")

    def produce(self, topic: str, per_second: float, tag: str = "") -> None:
        self.ask(f"produce {topic} {per_second} {tag}")

    def fill(self, topic: str, per_second: float) -> None:
        self.ask(f"fill {topic} {per_second}")


@contextmanager
def consumers(cluster: RocketMQCluster, name: str, *, fast: bool = False) -> Iterator[Consumers]:
    """A JVM without consumers yet; `fast` lets them rebalance every second instead of every 20 s."""
    command = cluster.java.command("Consumers", cluster.name_server, properties=FAST_REBALANCE if fast else None)
    with started(name, command, cluster.java.home / f"consumers-{name}.log") as process:
        program = Consumers(process)
        program.next_answer()
        yield program
