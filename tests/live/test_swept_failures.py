"""Two counterexamples of `sweep-failures` come true: a pair of consumers is killed, then a broker.

What is swept is the running cluster. Each counterexample names a command; what that command shows is what the consumers that
are left own afterwards.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rmqlb.cli.main import app

from .cluster import RocketMQCluster, TopicOnBroker
from .consumers import Consumers, consumers
from .jvm import wait_until

pytestmark = [pytest.mark.live, pytest.mark.slow]

TOPIC, GROUP = "Swept", "swept-svc"
CLIENT_IDS = [f"127.0.0.1@c{number}" for number in (1, 2, 3, 4)]
NOTICED = 120.0
"""Sockets close at once, and consumers ask for the route every 2 s; the machine may have other things to do."""
POLICY = f"""
rules:
  - {{name: enough, groups: [{GROUP}], limits: {{minConsumers: 3}}}}
  - {{name: two-brokers, topics: [{TOPIC}], limits: {{writableBrokers: 2}}}}
"""
Owners = dict[tuple[str, int], tuple[str, ...]]


@pytest.fixture(scope="module")
def mortal() -> Iterator[RocketMQCluster]:
    with RocketMQCluster("5.5.0", brokers=["broker-a", "broker-b"]) as running:
        running.create_topics([TopicOnBroker(TOPIC, "broker-a", 7, 7), TopicOnBroker(TOPIC, "broker-b", 4, 4)])
        yield running


def data(*words: str) -> Any:
    result = CliRunner().invoke(app, [*words, "-o", "json"], prog_name="rmqlb")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["data"]


def observed(cluster: RocketMQCluster) -> Owners:
    shown = data("show-owners", "-s", f"rocketmq://{cluster.name_server}", "-g", GROUP)
    return {(q["brokerName"], q["queueId"]): tuple(q["ownersObserved"] or ()) for q in shown["queues"]}


def planned(command: str) -> tuple[Owners, Mapping[str, Any]]:
    """Who owns each queue that is left by the command of a counterexample, and its figures."""
    _, *words = shlex.split(command)
    plan = data(*words)
    queues = [queue for topic in plan["topics"] for queue in topic["queues"] if queue["change"] != "removed"]
    return {(q["brokerName"], q["queueId"]): tuple(q["ownersAfter"]) for q in queues}, plan["summary"]


def counterexample(cluster: RocketMQCluster, policy: Path, *more: str) -> Mapping[str, Any]:
    source = f"rocketmq://{cluster.name_server}"
    found = data("sweep-failures", "-s", source, "-g", GROUP, "-p", str(policy), *more)
    assert found["cases"]["tried"] == found["cases"]["all"]
    worst: Mapping[str, Any] = found["counterexamples"][0]
    return worst


def must_come_to(owners: Owners, cluster: RocketMQCluster) -> None:
    seen: list[Owners] = [{}]

    def is_so() -> bool:
        seen[0] = observed(cluster)
        return seen[0] == owners

    wait_until(is_so, NOTICED, lambda: f"expected {owners}, and there is {seen[0]}")


def join(program: Consumers, *names: str) -> None:
    for name in names:
        program.join(GROUP, name, TOPIC)


def test_two_counterexamples_come_true(mortal: RocketMQCluster, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    with consumers(mortal, "lasting", fast=True) as lasting, consumers(mortal, "dying", fast=True) as dying:
        join(lasting, "c1", "c2")
        join(dying, "c3", "c4")
        wait_until(
            lambda: sorted({each for own in observed(mortal).values() for each in own}) == CLIENT_IDS,
            NOTICED,
            lambda: f"not all consumers own queues: {observed(mortal)}",
        )

        pair = counterexample(mortal, policy, "--lose", "consumer")
        assert (pair["limit"], pair["value"], len(pair["losses"]), pair["cases"]) == ("minConsumers", 2, 2, 6)
        killed = dict(zip((each["name"] for each in pair["losses"]), CLIENT_IDS[2:], strict=True))
        # all six pairs are alike but for their moves
        command = re.sub("|".join(killed), lambda name: killed[name[0]], pair["command"])
        owners, summary = planned(command)
        for figure in ("unassigned", "idle", "imbalance"):
            assert summary[figure] == pair["group"][figure]
        dying.process.kill()
        must_come_to(owners, mortal)

        broker = counterexample(mortal, policy, "--lose", "broker")
        assert (broker["name"], broker["limit"], broker["value"]) == (TOPIC, "writableBrokers", 1)
        (lost,) = broker["losses"]
        source = f"rocketmq://{mortal.name_server}"
        owners, _ = planned(f"rmqlb plan-rebalance -s {source} -g {GROUP} --remove-broker {lost['name']}")
        mortal.kill_broker(lost["name"])
        must_come_to(owners, mortal)
        (left,) = data("show-route", "-s", source, "-t", TOPIC)["topics"]
        writable = {queue["brokerName"] for queue in left["writableQueues"]}
        assert len(writable) == broker["value"]
        assert len(left["writableQueues"]) == broker["topic"]["writableQueues"]
