"""A topic's queues changed under a producer that sends by key and a group that consumes in order.

All at once, messages come out of order, and those in queues that are no longer read are lost: as many as the plan of
the change says before. In its steps neither happens, and what each step waits for comes to hold.
"""

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.sources.native.source import NameServerReads
from rmqlb.sources.source import Access
from tests.cli.run import run

from .cluster import MQADMIN, RocketMQCluster, TopicOnBroker
from .jvm import LOOPBACK, wait_until
from .members import FAST_REBALANCE, SETTLE_DEADLINE, Program

pytestmark = [pytest.mark.live, pytest.mark.slow]

BROKER = "broker-k"
ELSEWHERE, OTHER_CLUSTER = "broker-w", "West"
CONSUMERS, KEYS, PAUSE_MS, TAKES_MS = 2, 40, 4, 15
FEW, MANY = 2, 7
"""Numbers of queues; with a message each 4 ms that takes 15 ms, the few queues fall behind and the many do not."""
OLDER, NEWER = 5, 3
"""Messages of each key before a change and after it, where they are counted."""


class TwoClusters(RocketMQCluster):
    def _broker_config(self, broker_name: str, folder: Path, host: str = LOOPBACK) -> dict[str, str | int]:
        config = super()._broker_config(broker_name, folder, host)
        return config | ({"brokerClusterName": OTHER_CLUSTER} if broker_name == ELSEWHERE else {})


@pytest.fixture(scope="module")
def keyed() -> Iterator[RocketMQCluster]:
    with TwoClusters("5.5.0", brokers=[BROKER, ELSEWHERE]) as running:
        yield running


def to(queues: int) -> tuple[str, ...]:
    return "--queues", str(queues)


@contextmanager
def ordered_keys(cluster: RocketMQCluster, topic: str, queues: int) -> Iterator[Program]:
    cluster.create_topics([TopicOnBroker(topic, BROKER, queues, queues)])
    numbers = [str(number) for number in (CONSUMERS, KEYS, PAUSE_MS, TAKES_MS)]
    arguments = (cluster.name_server, topic, f"ordered-{topic}", *numbers)
    command = cluster.java.command("OrderedKeys", *arguments, properties=FAST_REBALANCE)
    with Program.start(f"keys-{topic}", command, cluster.java.home / f"keys-{topic}.log") as program:
        await_step(cluster, topic, to(queues), 1)
        yield program


def planned(
    cluster: RocketMQCluster, topic: str, change: Sequence[str], *more: str
) -> tuple[int | None, dict[str, Any]]:
    line = ["plan-topic", "-s", f"rocketmq://{cluster.name_server}", "-t", topic, *change, *more]
    ran = run(*line, "-o", "json")
    return ran.code, json.loads(ran.stdout)["data"] if ran.stdout else {"error": ran.stderr}


def await_step(cluster: RocketMQCluster, topic: str, change: Sequence[str], number: int) -> None:
    last: tuple[int | None, dict[str, Any]] = (-1, {})

    def holds() -> bool:
        nonlocal last
        last = planned(cluster, topic, change, "--check-step", str(number))
        return last[0] == ExitCode.OK

    wait_until(holds, SETTLE_DEADLINE, lambda: f"step {number} of {topic}: {last[0]} {last[1].get('checked', last[1])}")


def run_commands(cluster: RocketMQCluster, step: dict[str, Any]) -> None:
    for command in step["commands"]:
        words = shlex.split(command["text"])
        assert words[0] == "mqadmin"
        cluster.run(MQADMIN, *words[1:])


def reported(program: Program, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    last: dict[str, Any] = {}

    def is_so() -> bool:
        nonlocal last
        last = program.ask("report")
        return condition(last)

    wait_until(is_so, SETTLE_DEADLINE, lambda: f"{last}")
    return last


def sending(program: Program, messages: int) -> None:
    """The producer released, back once it has sent so many more."""
    program.ask("release")
    before = program.ask("report")["sent"]
    reported(program, lambda report: report["sent"] >= before + messages)


def at_rest(program: Program) -> dict[str, Any]:
    """The producer held, the report once all messages have come."""
    program.ask("hold")
    return reported(program, lambda report: report["received"] >= report["sent"])


def polled(program: Program, queues: Sequence[str], who: str = "queues") -> None:
    """Come back once the producer picks from these queues; with `owned` once the consumers have them."""
    wait_until(lambda: program.ask(who)["queues"] == [*queues], SETTLE_DEADLINE, lambda: f"{program.ask(who)}")


def few(queues: int) -> list[str]:
    return [f"{BROKER} {number}" for number in range(queues)]


def waited_for(step: dict[str, Any], kind: str) -> list[str]:
    (wait,) = (each for each in step["waitFor"] if each["kind"] == kind)
    return [f"{queue['brokerName']} {queue['queueId']}" for queue in wait["queues"]]


def follow(cluster: RocketMQCluster, program: Program, topic: str, change: Sequence[str]) -> None:
    code, plan = planned(cluster, topic, change)
    assert code == ExitCode.OK, plan
    for step in plan["steps"]:
        if step["done"]:
            continue
        run_commands(cluster, step)
        if step["kind"] == "hold-producers":
            program.ask("hold")
        elif step["kind"] == "release-producers":
            polled(program, waited_for(step, "writable"))
            program.ask("release")
        await_step(cluster, topic, change, step["number"])
    assert planned(cluster, topic, change)[1]["nextStep"] is None


def of_group(plan: dict[str, Any], kind: str) -> dict[str, Any]:
    (step,) = (each for each in plan["steps"] if each["kind"] == kind)
    (effect,) = step["groups"]
    return dict(effect)


def removed_lag(cluster: RocketMQCluster, topic: str, change: Sequence[str]) -> int:
    """The unread messages in the queues that go, once the group has stored its offsets."""
    lags: list[int | None] = []

    def is_known() -> bool:
        lags.append(of_group(planned(cluster, topic, change)[1], "remove-read-queues")["lagRemoved"])
        return lags[-1] is not None

    wait_until(is_known, SETTLE_DEADLINE, lambda: f"{topic}: {lags}")
    return lags[-1] or 0


def test_in_the_steps_of_the_plan_nothing_is_lost_or_out_of_order(keyed: RocketMQCluster) -> None:
    topic = "InSteps"
    with ordered_keys(keyed, topic, FEW) as program:
        sending(program, messages=10 * KEYS)
        follow(keyed, program, topic, to(MANY))
        sending(program, messages=10 * KEYS)
        follow(keyed, program, topic, to(FEW))
        sending(program, messages=10 * KEYS)
        report = at_rest(program)
    assert (report["received"], report["refused"], report["outOfOrder"]) == (report["sent"], 0, 0)


def test_a_topic_moves_to_another_cluster_and_loses_nothing(keyed: RocketMQCluster) -> None:
    topic = "Moves"
    with ordered_keys(keyed, topic, FEW) as program:
        sending(program, messages=10 * KEYS)
        follow(keyed, program, topic, ("--move-to-cluster", OTHER_CLUSTER))
        sending(program, messages=10 * KEYS)
        report = at_rest(program)
        (after,) = planned(keyed, topic, to(FEW))[1]["steps"][-1]["brokers"][1:]
        assert program.ask("owned")["queues"] == [f"{ELSEWHERE} {number}" for number in range(FEW)]
    assert (report["received"], report["refused"], report["outOfOrder"]) == (report["sent"], 0, 0)
    assert (after["brokerName"], after["writeQueueNums"], after["perm"]) == (ELSEWHERE, FEW, 6)


def test_more_queues_break_the_order_of_so_many_messages_as_planned(keyed: RocketMQCluster, tmp_path: Path) -> None:
    """The group is slow in the queue that was there before: it comes to the new ones first."""
    topic, keys = "MoreAtOnce", tmp_path / "keys.txt"
    keys.write_text("".join(f"order-{number}\n" for number in range(KEYS)), encoding="utf-8")
    with ordered_keys(keyed, topic, 1) as program:
        program.ask("send 1")
        await_step(keyed, topic, to(1), 2)  # it is read: the group has an offset now
        program.ask("without 0")
        program.ask(f"send {OLDER}")
        _, plan = planned(keyed, topic, to(MANY), "--keys", str(keys), "--sdk", "java")
        keyed.create_topics([TopicOnBroker(topic, BROKER, MANY, MANY)])
        polled(program, few(MANY))
        program.ask(f"send {NEWER}")
        moved = plan["steps"][2]["keys"][0]["moved"]
        reported(program, lambda report: report["received"] == KEYS + moved * NEWER)
        program.ask("without -1")
        report = at_rest(program)
    assert 0 < moved < KEYS
    expected = of_group(plan, "change-write-queues")["outOfOrderUnheld"]
    assert (report["outOfOrder"], report["refused"]) == (expected, 0)
    assert expected == moved * OLDER


def test_fewer_queues_at_once_lose_as_many_messages_as_the_plan_says(keyed: RocketMQCluster) -> None:
    """The group is slow in the queue that goes; once that one can be read again, its messages are late."""
    topic = "FewerAtOnce"
    with ordered_keys(keyed, topic, 2) as program:
        program.ask("without 1")
        program.ask(f"send {OLDER}")
        unread = removed_lag(keyed, topic, to(1))
        reported(program, lambda report: report["received"] == report["sent"] - unread)
        code, checked = planned(keyed, topic, to(1), "--check-step", "5")
        keyed.create_topics([TopicOnBroker(topic, BROKER, 1, 1)])
        await_step(keyed, topic, to(1), 6)
        polled(program, few(1))
        polled(program, few(1), "owned")
        program.ask(f"send {NEWER}")
        program.ask("without -1")
        stuck = reported(program, lambda report: report["received"] == report["sent"] - unread)
        keyed.create_topics([TopicOnBroker(topic, BROKER, 2, 2)])
        report = at_rest(program)
    (drained,) = (each for each in checked["checked"]["conditions"] if each["kind"] == "drained")
    assert (code, drained["holds"]) == (ExitCode.CONDITION, False)
    assert 0 < unread == stuck["sent"] - stuck["received"] < OLDER * KEYS
    assert (stuck["outOfOrder"], report["outOfOrder"]) == (0, unread)


@pytest.mark.parametrize("message_type", ["FIFO", "NORMAL"])
def test_a_broker_that_gets_a_topic_gets_its_type(keyed: RocketMQCluster, message_type: str) -> None:
    """`updateTopic` on a broker without the topic takes the attributes in the command, and later ones keep them."""
    topic, change = f"Typed-{message_type}", ("--add-broker", ELSEWHERE)
    words = ("-n", keyed.name_server, "-b", keyed.broker_addresses[BROKER], "-t", topic, "-r", "2", "-w", "2")
    keyed.run(MQADMIN, "updateTopic", *words, *(() if message_type == "NORMAL" else ("-a", "+message.type=FIFO")))
    wait_until(lambda: planned(keyed, topic, change)[0] == ExitCode.OK, SETTLE_DEADLINE, lambda: topic)
    _, plan = planned(keyed, topic, change)
    for step in plan["steps"]:
        run_commands(keyed, step)
    with closing(NameServerReads([keyed.name_server], Access())) as reads:
        found = [reads.message_type(topic, keyed.broker_addresses[name]) for name in (BROKER, ELSEWHERE)]
    assert found == [message_type, message_type]
