"""Where real consumers begin queues that are new to them, against what the plan of the same change foretells.

The broker has deleted its first messages: a queue that begins at 0 is answered with 0 although nothing is stored, and
`consumeFromWhere` would play no part. The first of the queues beyond those that are read has a stored offset.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest
from typer.testing import CliRunner

from rmqlb import MessageQueue
from rmqlb.cli.main import app

from .cluster import RocketMQCluster, TopicOnBroker
from .jvm import wait_until
from .members import SETTLE_DEADLINE, Members, running_members

pytestmark = [pytest.mark.live, pytest.mark.slow]

BROKER, TOPIC = "broker-s", "Expired"
READ, WRITTEN = 2, 4
SMALL = 1024 * 1024
WHERE = ("CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP")


@pytest.fixture(scope="module")
def expired() -> Iterator[RocketMQCluster]:
    """A broker whose queues begin behind 0, half of them not read."""
    config = {"mappedFileSizeCommitLog": SMALL, "fileReservedTime": 0, "cleanResourceInterval": 2000}
    with RocketMQCluster("5.5.0", brokers=[BROKER], config=config) as running:
        running.create_topics([TopicOnBroker(TOPIC, BROKER, READ, WRITTEN)])
        fill(running, messages=40)
        yield running


def fill(cluster: RocketMQCluster, messages: int) -> None:
    """So many messages for each queue, of which the oldest are deleted."""
    arguments = (TOPIC, cluster.broker_addresses[BROKER], str(messages), str(SMALL // 32))
    cluster.run("Expired", cluster.name_server, *arguments)


def foretold(cluster: RocketMQCluster, group: str) -> dict[int, tuple[str, int]]:
    """Queue id → rule and offset by which it is begun once all queues are read."""
    source = ("-s", f"rocketmq://{cluster.name_server}", "--group", group, "--topic", TOPIC)
    ran = CliRunner().invoke(app, ["plan-rebalance", *source, "--read-queues", f"{BROKER}={WRITTEN}", "-o", "json"])
    assert ran.exit_code == 0, ran.stderr
    queues: list[dict[str, Any]] = json.loads(ran.stdout)["data"]["topics"][0]["queues"]
    return {
        queue["queueId"]: (queue["startRule"], queue["startOffset"]) for queue in queues if queue["change"] == "added"
    }


def group_of(where: str) -> str:
    """The group that begins so."""
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
