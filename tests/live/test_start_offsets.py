"""Where real consumers begin queues that are new to them, against what the plan of the same change foretells.

The broker has deleted its first messages: a queue that begins at 0 is answered with 0 although nothing is stored, and
`consumeFromWhere` would play no part. The first of the queues beyond those that are read has a stored offset.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from rmqlb import MessageQueue
from tests.cli.run import data_of, run

from .cluster import RocketMQCluster, TopicOnBroker
from .jvm import wait_until
from .members import SETTLE_DEADLINE, Members, Program, running_members

pytestmark = [pytest.mark.live, pytest.mark.slow]

BROKER, TOPIC = "broker-s", "Expired"
READ, WRITTEN, MANY = 2, 4, 6
EARLY = 3
"""Messages that come to each queue before it has an owner."""
SMALL = 1024 * 1024
WHERE = ("CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP")


@pytest.fixture(scope="module")
def expired() -> Iterator[RocketMQCluster]:
    config = {"mappedFileSizeCommitLog": SMALL, "fileReservedTime": 0, "cleanResourceInterval": 2000}
    with RocketMQCluster("5.5.0", brokers=[BROKER], config=config) as running:
        running.create_topics([TopicOnBroker(TOPIC, BROKER, READ, WRITTEN)])
        fill(running, messages=40)
        yield running


def fill(cluster: RocketMQCluster, messages: int, topic: str = TOPIC) -> None:
    arguments = (topic, cluster.broker_addresses[BROKER], str(messages), str(SMALL // 32))
    cluster.run("Expired", cluster.name_server, *arguments)


def foretold(cluster: RocketMQCluster, group: str) -> dict[int, tuple[str, int]]:
    """Queue id → rule and offset by which it is begun once all queues are read."""
    source = ("-s", f"rocketmq://{cluster.name_server}", "--group", group, "--topic", TOPIC)
    plan = data_of("plan-rebalance", *source, "--read-queues", f"{BROKER}={WRITTEN}")
    queues: list[dict[str, Any]] = plan["topics"][0]["queues"]
    return {q["queueId"]: (q["startRule"], q["startOffset"]) for q in queues if q["change"] == "added"}


def group_of(where: str) -> str:
    return f"starts-{where.lower()}"


def began(members: Members, queues: Sequence[MessageQueue]) -> dict[int, int]:
    """Queue id → the offset of the first message that a member got, once it got one of each queue."""
    wait_until(lambda: members.first().keys() >= set(queues), SETTLE_DEADLINE, lambda: f"only {members.first()} came")
    first = members.first()
    return {queue.queue_id: first[queue] for queue in queues}


def test_consumers_begin_where_the_plan_says(expired: RocketMQCluster) -> None:
    queues = [MessageQueue(TOPIC, BROKER, i) for i in range(WRITTEN)]
    with ExitStack() as running:
        groups = {
            where: running.enter_context(
                running_members(expired, group_of(where), "AVG", [TOPIC], ["a"], consumeFrom=where)
            )
            for where in WHERE
        }
        for members in groups.values():
            members.settled(queues[:READ])
        plans = {where: foretold(expired, group_of(where)) for where in WHERE}
        expired.create_topics([TopicOnBroker(TOPIC, BROKER, WRITTEN, WRITTEN)])
        for members in groups.values():
            members.settled(queues)
        fill(expired, messages=1)  # who begins at the end gets these
        for where, members in groups.items():
            assert {i: offset for i, (_, offset) in plans[where].items()} == began(members, queues[READ:]), where
    rules = {where: {rule for rule, _ in plan.values()} for where, plan in plans.items()}
    assert list(rules.values()) == [{"end"}, {"beginning"}, {"timestamp"}]
    assert all(0 < plans[WHERE[1]][i][1] < plans[WHERE[0]][i][1] for i in range(READ, WRITTEN))


def write(messages: Program, topic: str, body: str, queues: int = MANY) -> None:
    for number in range(queues):
        messages.ask(f"{topic} {BROKER} {number} {body}")


def plan_of_topic(cluster: RocketMQCluster, topic: str, *more: str) -> tuple[int | None, dict[str, Any]]:
    """How plan-topic ends that gives the topic many queues, and its first step's effect on the one group."""
    line = ["plan-topic", "-s", f"rocketmq://{cluster.name_server}", "--topic", topic, "--queues", str(MANY), *more]
    ran = run(*line, "-o", "json")
    return ran.code, json.loads(ran.stdout)["data"]["steps"][0]["groups"][0] if ran.stdout else {}


@pytest.mark.parametrize("in_steps", [False, True], ids=["all at once", "in steps"])
def test_what_comes_before_an_owner_is_lost_where_the_plan_says(expired: RocketMQCluster, in_steps: bool) -> None:
    """Half of the new queues have messages whose first ones are deleted, the others are empty.

    All at once producers write before the group sees the queues; in steps it owns them before.
    """
    topic = f"Lapsed-{in_steps}"
    queues = [MessageQueue(topic, BROKER, number) for number in range(MANY)]
    expired.create_topics([TopicOnBroker(topic, BROKER, READ, WRITTEN)])
    fill(expired, 40, topic)
    log = expired.java.home / f"messages-{topic}.log"
    with ExitStack() as running:
        command = expired.java.command("Messages", expired.name_server)
        messages = running.enter_context(Program.start(f"to-{topic}", command, log))
        members = running.enter_context(running_members(expired, f"reads-{topic}", "AVG", [topic], ["a"]))
        members.settled(queues[:READ])
        write(messages, topic, "first", READ)
        began(members, queues[:READ])  # of these the group has an offset from then on
        _, foretold = plan_of_topic(expired, topic)
        if in_steps:
            expired.create_topics([TopicOnBroker(topic, BROKER, MANY, WRITTEN)])
            wait_until(
                lambda: plan_of_topic(expired, topic, "--check-step", "1")[0] == 0, SETTLE_DEADLINE, lambda: topic
            )
        else:
            members.leave("a")
        expired.create_topics([TopicOnBroker(topic, BROKER, MANY, MANY)])
        for number in range(EARLY):
            write(messages, topic, f"early-{number}")
        if not in_steps:
            members.join("a")
            members.settled(queues)
        write(messages, topic, "late")
        first = began(members, queues)
    old, new = range(READ, WRITTEN), range(WRITTEN, MANY)
    assert foretold["starts"] == [{"rule": "end", "queues": MANY - READ}]
    assert foretold["firstLost"] == len(old)
    assert {first[number] for number in old} == {40 if in_steps else 40 + EARLY}
    assert {first[number] for number in new} == {0}
