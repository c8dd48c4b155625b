"""Real push consumers of one group, and what they really own.

What a consumer holds follows its own clock, so nothing here measures time: we ask until the answers stand still.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from rmqlb import MessageQueue

from .cluster import RocketMQCluster
from .jvm import START_DEADLINE, JavaProcess, started, wait_until

SETTLE_DEADLINE = 90.0
# RocketMQ's property for the pause between two rebalances of a client, 20 s when not given: same rule, more often.
FAST_REBALANCE = {"rocketmq.client.rebalance.waitInterval": "1000"}
# Long enough that every member has rebalanced between two reports, so equal reports mean a group at rest.
PAUSE_BETWEEN_REPORTS = 3.0

Owned = Mapping[str, frozenset[MessageQueue]]


@dataclass
class Program:
    process: JavaProcess
    _asked: count[int] = field(default_factory=count)

    def next_answer(self) -> dict[str, Any]:
        """The next line of JSON that it says; its first one comes unasked, when it is ready."""
        index = next(self._asked)

        def is_here() -> bool:
            self.process.must_run()
            return len(self._answers()) > index

        wait_until(is_here, START_DEADLINE, lambda: f"no answer {index}:\n{self.process.output()[-2000:]}")
        answer: dict[str, Any] = json.loads(self._answers()[index])
        if "error" in answer:
            raise RuntimeError(f"{self.process.name}: {answer['error']}")
        return answer

    def ask(self, command: str) -> dict[str, Any]:
        self.process.send(command)
        return self.next_answer()

    def _answers(self) -> list[str]:
        """Whole lines only; the clients' own log lines never start with a brace."""
        lines = self.process.output().splitlines(keepends=True)
        return [line for line in lines if line.startswith("{") and line.endswith("\n")]


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


@contextmanager
def running_members(
    cluster: RocketMQCluster, group: str, strategy: str, topics: Sequence[str], names: Sequence[str], **properties: str
) -> Iterator[Members]:
    """A group of these members, with client IDs ``127.0.0.1@NAME``; further properties are those of ``Members.java``."""
    arguments = [cluster.name_server, group, strategy, ",".join(topics), *names]
    own = {f"members.{name}": value for name, value in properties.items()}
    command = cluster.java.command("Members", *arguments, properties=FAST_REBALANCE | own)
    with started(group, command, cluster.java.home / f"members-{group}.log") as process:
        members = Members(process)
        members.next_answer()
        yield members


@contextmanager
def go_members(
    cluster: RocketMQCluster, program: Path, group: str, strategy: str, topics: Sequence[str], names: Sequence[str] = ()
) -> Iterator[Members]:
    """The same of Go's client, all in one process."""
    command = [str(program), cluster.name_server, group, strategy, ",".join(topics), *names]
    with started(f"{group} in Go", command, cluster.java.home / f"go-{group}.log") as process:
        members = Members(process)
        members.next_answer()
        yield members
