"""A topic's queues changed under a producer that sends by key and a group that consumes in order.

All at once, messages come out of order, and those in queues that are no longer read are lost, as many as the snapshot
before has unread there. In the steps of plan-topic neither happens, and what each step waits for comes to hold.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from typer.testing import CliRunner

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.cli.main import app

from .cluster import RocketMQCluster, TopicOnBroker
from .jvm import started, wait_until
from .members import FAST_REBALANCE, SETTLE_DEADLINE, Program

pytestmark = [pytest.mark.live, pytest.mark.slow]

BROKER = "broker-k"
CONSUMERS, KEYS, PAUSE_MS, TAKES_MS = 2, 40, 4, 15
FEW, MANY = 2, 7
"""Numbers of queues; with a message each 4 ms that takes 15 ms, the few queues fall behind."""


@pytest.fixture(scope="module")
def keyed() -> Iterator[RocketMQCluster]:
    """A broker of its own."""
    with RocketMQCluster("5.5.0", brokers=[BROKER]) as running:
        yield running


@contextmanager
def ordered_keys(cluster: RocketMQCluster, topic: str, queues: int) -> Iterator[Program]:
    """The producer, held, and the group `ordered-TOPIC`, on a new topic."""
    cluster.create_topics([TopicOnBroker(topic, BROKER, queues, queues)])
    numbers = [str(number) for number in (CONSUMERS, KEYS, PAUSE_MS, TAKES_MS)]
    arguments = (cluster.name_server, topic, f"ordered-{topic}", *numbers)
    command = cluster.java.command("OrderedKeys", *arguments, properties=FAST_REBALANCE)
    with started(f"keys-{topic}", command, cluster.java.home / f"keys-{topic}.log") as process:
        program = Program(process)
        program.next_answer()
        await_step(cluster, topic, queues, 1)
        yield program


def planned(cluster: RocketMQCluster, topic: str, queues: int, *more: str) -> tuple[int, dict[str, Any]]:
    """How plan-topic ends, and its data, which an error does not have."""
    line = ["plan-topic", "-s", f"rocketmq://{cluster.name_server}", "-t", topic, "--queues", str(queues), *more]
    ran = CliRunner().invoke(app, [*line, "-o", "json"])
    return ran.exit_code, json.loads(ran.stdout)["data"] if ran.stdout else {}


def await_step(cluster: RocketMQCluster, topic: str, queues: int, number: int) -> None:
    """Come back once all that the step waits for holds."""
    last: tuple[int, dict[str, Any]] = (-1, {})

    def holds() -> bool:
        nonlocal last
        last = planned(cluster, topic, queues, "--check-step", str(number))
        return last[0] == ExitCode.OK

    wait_until(holds, SETTLE_DEADLINE, lambda: f"step {number} of {topic}: {last[0]} {last[1].get('checked')}")


def run_commands(cluster: RocketMQCluster, step: dict[str, Any]) -> None:
    """What the step's commands say, done as mqadmin does it."""
    for command in step["commands"]:
        words = shlex.split(command["text"])
        assert words[:2] == ["mqadmin", "updateTopic"]
        said = dict(zip(words[2::2], words[3::2], strict=True))
        assert said["-b"] == cluster.broker_addresses[BROKER]
        cluster.create_topics([TopicOnBroker(said["-t"], BROKER, int(said["-r"]), int(said["-w"]), int(said["-p"]))])


def behind(program: Program, messages: int) -> None:
    """Send until so many messages are unread."""
    program.ask("release")

    def is_behind() -> bool:
        report = program.ask("report")
        return bool(report["sent"] - report["received"] >= messages)

    wait_until(is_behind, SETTLE_DEADLINE, lambda: f"{program.ask('report')}")


def at_rest(program: Program, lost: int = 0) -> dict[str, Any]:
    """The producer held, the report once all messages but so many have come."""
    program.ask("hold")

    def is_read() -> bool:
        report = program.ask("report")
        return bool(report["received"] >= report["sent"] - lost)

    wait_until(is_read, SETTLE_DEADLINE, lambda: f"{program.ask('report')}")
    return program.ask("report")


def polled(program: Program, queues: int) -> None:
    """Come back once the producer picks from so many queues."""
    wait_until(lambda: program.ask("queues")["queues"] == queues, SETTLE_DEADLINE, lambda: f"{program.ask('queues')}")


def follow(cluster: RocketMQCluster, program: Program, topic: str, queues: int) -> None:
    """Change the topic as plan-topic says, step by step, while messages come."""
    for step in planned(cluster, topic, queues)[1]["steps"]:
        if step["done"]:
            continue
        run_commands(cluster, step)
        if step["kind"] == "hold-producers":
            program.ask("hold")
        elif step["kind"] == "release-producers":
            polled(program, queues)
            program.ask("release")
        await_step(cluster, topic, queues, step["number"])
    assert planned(cluster, topic, queues)[1]["nextStep"] is None


def test_in_the_steps_of_the_plan_nothing_is_lost_or_out_of_order(keyed: RocketMQCluster) -> None:
    topic = "InSteps"
    with ordered_keys(keyed, topic, FEW) as program:
        behind(program, messages=200)
        follow(keyed, program, topic, MANY)
        behind(program, messages=50)
        follow(keyed, program, topic, FEW)
        behind(program, messages=50)
        report = at_rest(program)
    assert (report["received"], report["refused"], report["outOfOrder"]) == (report["sent"], 0, 0)


def test_more_queues_at_once_break_the_order_as_foretold(keyed: RocketMQCluster) -> None:
    topic = "MoreAtOnce"
    with ordered_keys(keyed, topic, FEW) as program:
        behind(program, messages=400)
        change = planned(keyed, topic, MANY)[1]["steps"][2]
        assert change["uniformShare"] > 0.5
        assert change["orderBrokenUnheldMs"] is None or change["orderBrokenUnheldMs"] > 30_000
        keyed.create_topics([TopicOnBroker(topic, BROKER, MANY, MANY)])
        polled(program, MANY)
        sent = program.ask("report")["sent"]
        wait_until(lambda: program.ask("report")["sent"] > sent + 10 * KEYS, SETTLE_DEADLINE, lambda: "nothing is sent")
        report = at_rest(program)
    assert report["outOfOrder"] > 0


def test_fewer_queues_at_once_lose_what_is_unread_as_foretold(keyed: RocketMQCluster) -> None:
    topic = "FewerAtOnce"
    with ordered_keys(keyed, topic, FEW) as program:
        behind(program, messages=400)
        program.ask("hold")
        code, data = planned(keyed, topic, 1, "--check-step", "5")
        assert code == ExitCode.CONDITION
        (drained,) = (each for each in data["checked"]["conditions"] if each["kind"] == "drained")
        assert drained["holds"] is False
        unread = data["steps"][5]["groups"][0]["lagRemoved"]
        keyed.create_topics([TopicOnBroker(topic, BROKER, 1, 1)])
        await_step(keyed, topic, 1, 6)
        wait_until(lambda: is_still(program), SETTLE_DEADLINE, lambda: f"{program.ask('report')}", 2.0)
        report = program.ask("report")
        lost = report["sent"] - report["received"]
        assert 0 < lost <= unread  # some are read until consumers have polled
        keyed.create_topics([TopicOnBroker(topic, BROKER, FEW, FEW)])  # they were stuck, not gone
        assert at_rest(program)["received"] == report["sent"]


_last_report: dict[str, Any] = {}


def is_still(program: Program) -> bool:
    """Whether nothing has come since it was asked before."""
    report = program.ask("report")
    same = report == _last_report
    _last_report.clear()
    _last_report.update(report)
    return same
