"""Groups whose consumers run: what rmqlb predicts of them, what they report, and which messages really reach whom."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from typer.testing import CliRunner

from rmqlb import MessageQueue
from rmqlb.cli.main import app

from .broker_requests import send
from .cluster import RocketMQCluster
from .jvm import wait_until
from .members import Members

Owners = Mapping[MessageQueue, tuple[str, ...]]
"""Queue → client ids, sorted as text; a queue without an owner has none."""

OWNED_DEADLINE = 90.0
"""A Go consumer that misses a broker's notification rebalances 20 s later, and learns of a route within 30 s."""
_numbers = count()


@dataclass(frozen=True)
class Watched:
    cluster: RocketMQCluster
    group: str
    programs: Sequence[Members]
    strategy: str = "AVG"  # as RocketMQ names it

    def say(self, command: str, *more: str) -> dict[str, Any]:
        source = ("-s", f"rocketmq://{self.cluster.name_server}", "-g", self.group, "--source-timeout", "20s")
        ran = CliRunner().invoke(app, [command, *source, *more, "-o", "json"])
        if ran.exit_code != 0:
            raise RuntimeError(ran.stderr)
        said: dict[str, Any] = json.loads(ran.stdout)
        return said

    def owners(self) -> tuple[Owners, Owners]:
        shown = self.say("show-owners", "--strategy", self.strategy)["data"]
        rows = {MessageQueue(q["topic"], q["brokerName"], q["queueId"]): q for q in shown["queues"]}
        (name,) = (each["strategy"] for each in shown["strategies"])
        return (
            {queue: tuple(sorted(row["owners"][name])) for queue, row in rows.items()},
            {queue: tuple(sorted(row["ownersObserved"] or ())) for queue, row in rows.items()},
        )

    def planned(self, *change: str) -> Owners:
        plan = self.say("plan-rebalance", "--strategy", self.strategy, *change)["data"]
        return {
            MessageQueue(topic["topic"], queue["brokerName"], queue["queueId"]): tuple(sorted(queue["ownersAfter"]))
            for topic in plan["topics"]
            for queue in topic["queues"]
            if queue["change"] != "removed"
        }

    def must_own(self, client_ids: Sequence[str], expected: Owners | None = None) -> Owners:
        """Wait until these consumers report, and get messages of, the predicted queues and no others; `expected` is older."""
        predicted: Owners = {}
        observed: Owners = {}

        def agree() -> bool:
            nonlocal predicted, observed
            shown = self.say("show-owners", "--strategy", self.strategy)
            predicted, observed = self.owners()
            differ = any(finding["code"] == "assignment-mismatch" for finding in shown["findings"])
            return (
                sorted(shown["data"]["sortedConsumers"]) == sorted(client_ids) and predicted == observed and not differ
            )

        wait_until(agree, OWNED_DEADLINE, lambda: f"{self.group}: {differences(predicted, observed)}", 1.0)
        assert expected is None or predicted == expected, differences(expected, predicted)
        self._must_receive(predicted)
        return predicted

    def _must_receive(self, owners: Owners) -> None:
        text = next_text()
        for queue in owners:
            send(self.cluster, queue, text)

        def arrived() -> bool:
            return self.received(text, owners) == owners

        wait_until(
            arrived, OWNED_DEADLINE, lambda: f"{self.group}: {differences(owners, self.received(text, owners))}", 0.5
        )

    def received(self, text: str, queues: Sequence[MessageQueue] | Owners) -> Owners:
        got = [pair for program in self.programs for pair in program.received(text).items()]
        return {queue: tuple(sorted(client_id for client_id, its in got if queue in its)) for queue in queues}


def ids(*names: str) -> list[str]:
    return [f"127.0.0.1@{name}" for name in names]


def next_text() -> str:
    return f"message {next(_numbers)}"


def differences(predicted: Owners, observed: Owners) -> str:
    rows = [
        f"{queue.topic} {queue.broker_name} {queue.queue_id}: {predicted.get(queue)} predicted, {observed.get(queue)} seen"
        for queue in sorted({*predicted, *observed})
        if predicted.get(queue) != observed.get(queue)
    ]
    return "\n".join(rows) or "no difference"


def unassigned(owners: Owners) -> list[MessageQueue]:
    return [queue for queue, its in owners.items() if not its]


def owned_twice(owners: Owners) -> list[MessageQueue]:
    return [queue for queue, its in owners.items() if len(its) > 1]
