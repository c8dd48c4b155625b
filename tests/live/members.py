"""Real push consumers of one group, and what they really own.

What a consumer holds follows its own clock, so nothing here measures time: we ask until the answers stand still.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from rmqlb import MessageQueue

from .cluster import RocketMQCluster
from .jvm import POLL, START_DEADLINE, Java, JavaProcess, started, wait_until

SETTLE_DEADLINE = 90.0
# RocketMQ's property for the pause between two rebalances of a client, 20 s when not given: same rule, more often.
FAST_REBALANCE = {"rocketmq.client.rebalance.waitInterval": "1000"}
# Long enough that every member has rebalanced between two reports, so equal reports mean a group at rest.
PAUSE_BETWEEN_REPORTS = 3.0

Owned = Mapping[str, frozenset[MessageQueue]]


@dataclass
class Program:
    poll: ClassVar[float] = POLL
    process: JavaProcess
    _offset: int = 0
    _answers: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    @contextmanager
    def start(cls, name: str, command: list[str], log: Path) -> Iterator[Self]:
        """The program, once it is ready."""
        with started(name, command, log) as process:
            program = cls(process)
            program.next_answer()
            yield program

    def next_answer(self) -> dict[str, Any]:
        """The next line of JSON that it says; its first one comes unasked, when it is ready."""
        self._await(lambda: bool(self._answers), "answer", START_DEADLINE)
        answer = self._answers.pop(0)
        if "error" in answer:
            raise RuntimeError(f"{self.process.name}: {answer['error']}")
        return answer

    def ask(self, command: str) -> dict[str, Any]:
        self.process.send(command)
        return self.next_answer()

    def _await(self, is_here: Callable[[], bool], what: str, deadline: float) -> None:
        def is_read() -> bool:
            self.process.must_run()
            self._read()
            return is_here()

        wait_until(is_read, deadline, lambda: f"no {what}:\n{self.process.output()[-2000:]}", self.poll)

    def _read(self) -> None:
        """Take the whole lines that are new; the clients' own log lines never start with a brace."""
        with self.process.log.open("rb") as log:
            log.seek(self._offset)
            new = log.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            if line.startswith(b"{"):
                self._take(json.loads(line))

    def _take(self, said: dict[str, Any]) -> None:
        self._answers.append(said)


class Members(Program):
    def join(self, name: str, name_server: str = "") -> str:
        """Start a member, with another NameServer if need be; its client id."""
        return str(self.ask(f"join {name} {name_server}".rstrip())["joined"])

    def leave(self, name: str) -> str:
        return str(self.ask(f"leave {name}")["left"])

    def owned(self) -> Owned:
        return _by_client_id(self.ask("owned")["owned"])

    def popped(self) -> Owned:
        """From which queues each member takes messages by POP, by client id; -1 is any queue of the broker."""
        return _by_client_id(self.ask("popped")["popped"])

    def received(self, text: str) -> Owned:
        """From which queues each member got a message of this text, by client id."""
        return _by_client_id(self.ask(f"received {text}")["received"] or {})

    def first(self) -> Mapping[MessageQueue, int]:
        """The smallest offset of any message that a member got, by queue."""
        rows = self.ask("first")["first"]
        return {MessageQueue(row["topic"], row["brokerName"], row["queueId"]): row["offset"] for row in rows}

    def all_see_each_other(self) -> bool:
        """Whether the brokers name all members, and nobody else, to every member for every topic."""
        seen = self.ask("seen")["seen"]
        return all(sorted(ids) == sorted(seen) for by_topic in seen.values() for ids in by_topic.values())

    def settled(self, queues: Sequence[MessageQueue]) -> Owned:
        """Each member's queues once brokers know all members, two reports agree, and each queue has one owner."""
        wanted = sorted(queues)
        last: Owned = {}

        def is_settled() -> bool:
            nonlocal last
            before, last = last, {}
            if self.all_see_each_other():
                last = {client_id: held & frozenset(queues) for client_id, held in self.owned().items()}
            return before == last and sorted(queue for held in last.values() for queue in held) == wanted

        wait_until(is_settled, SETTLE_DEADLINE, lambda: f"the group never settled: {last}", PAUSE_BETWEEN_REPORTS)
        return last


def _by_client_id(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> Owned:
    return {
        client_id: frozenset(MessageQueue(q["topic"], q["brokerName"], q["queueId"]) for q in queues)
        for client_id, queues in rows.items()
    }


def running_members(
    cluster: RocketMQCluster, group: str, strategy: str, topics: Sequence[str], names: Sequence[str], **properties: str
) -> AbstractContextManager[Members]:
    """A group of these members, with client IDs ``127.0.0.1@NAME``; further properties are those of ``Members.java``."""
    arguments = [cluster.name_server, group, strategy, ",".join(topics), *names]
    own = {f"members.{name}": value for name, value in properties.items()}
    command = cluster.java.command("Members", *arguments, properties=FAST_REBALANCE | own)
    return Members.start(group, command, cluster.java.home / f"members-{group}.log")


def go_members(
    cluster: RocketMQCluster, program: Path, group: str, strategy: str, topics: Sequence[str], names: Sequence[str] = ()
) -> AbstractContextManager[Members]:
    """The same of Go's client, all in one process."""
    command = [str(program), cluster.name_server, group, strategy, ",".join(topics), *names]
    return Members.start(f"{group} in Go", command, cluster.java.home / f"go-{group}.log")


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


def consumers(cluster: RocketMQCluster, name: str, *, fast: bool = False) -> AbstractContextManager[Consumers]:
    """A JVM without consumers yet; `fast` lets them rebalance every second instead of every 20 s."""
    command = cluster.java.command("Consumers", cluster.name_server, properties=FAST_REBALANCE if fast else None)
    return Consumers.start(name, command, cluster.java.home / f"consumers-{name}.log")


@dataclass(frozen=True)
class Got:
    """A message that came to a consumer of a group, in epoch milliseconds."""

    group: str
    body: str
    at_ms: int


def all_got(process: JavaProcess) -> list[Got]:
    rows = (json.loads(line.removeprefix("got ")) for line in process.lines("got "))
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
        return [line.removeprefix(start) for line in self.process.lines(start)]


class Sender(Program):
    def send(self, topic: str, broker: str, queue: int, body: str) -> None:
        """Send a message to a queue; its body must be its own."""
        self.process.send(f"{topic} {broker} {queue} {body}")

    def sent(self) -> dict[str, int]:
        """When each message so far set out, in epoch milliseconds, by its body."""
        self.process.must_run()
        return {row["body"]: row["atMs"] for row in map(json.loads, self.process.lines('{"body"'))}


def receivers(java: Java, endpoint: str, log: Path) -> AbstractContextManager[Receivers]:
    return Receivers.start(log.stem, java.command("GrpcReceivers", endpoint), log)


def sender(cluster: RocketMQCluster, log: Path) -> AbstractContextManager[Sender]:
    return Sender.start("messages", cluster.java.command("Messages", cluster.name_server), log)
