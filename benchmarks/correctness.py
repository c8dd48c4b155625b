"""For how many queues `mqadmin allocateMQ` and rmqlb name the true owner: `python -m benchmarks.correctness`.

A RocketMQ 5.5.0 cluster with two brokers and a group of running Java consumers on loopback is the judge: what the
consumers themselves hold is the truth. `mqadmin allocateMQ` is given the client ids twice, as the broker lists them and
sorted as clients sort them; either way it does not sort the queues. Needs Java 17 and Maven.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence

from benchmarks.measuring import markdown
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from tests.live.cluster import RocketMQCluster, TopicOnBroker
from tests.live.members import running_members

TOPICS = {"OrderEvents": {"broker-a": 8, "broker-b": 8}, "Skewed": {"broker-a": 6, "broker-b": 3}}
MEMBERS = ("c9", "c10", "c1", "c2", "c11")
GROUP, STRATEGY = "order-svc", "AVG"
MQADMIN = "org.apache.rocketmq.tools.command.MQAdminStartup"

Owners = Mapping[MessageQueue, str]


def share_right(answer: Owners, truth: Owners) -> str:
    """How many owners are the true ones.

    >>> q = [MessageQueue("T", "a", i) for i in range(3)]
    >>> share_right({q[0]: "x", q[1]: "y"}, {q[0]: "x", q[1]: "x", q[2]: "y"})
    '1 of 3'
    """
    return f"{sum(answer.get(queue) == owner for queue, owner in truth.items())} of {len(truth)}"


def owners_in_allocate_mq(text: str) -> dict[MessageQueue, str]:
    """The answer of `mqadmin allocateMQ`: client id → queues, turned round.

    >>> owners_in_allocate_mq('{"result":{"x":[{"brokerName":"a","queueId":0,"topic":"T"}]}}')
    {MessageQueue(topic='T', broker_name='a', queue_id=0): 'x'}
    """
    result = json.loads(text[text.index("{") :])["result"]
    return {
        MessageQueue(queue["topic"], queue["brokerName"], queue["queueId"]): client_id
        for client_id, queues in result.items()
        for queue in queues
    }


def mqadmin(cluster: RocketMQCluster, topic: str, client_ids: Sequence[str]) -> Owners:
    """What `mqadmin allocateMQ` says."""
    arguments = ("allocateMQ", "-n", cluster.name_server, "-t", topic, "-i", ",".join(client_ids))
    done = subprocess.run(cluster.java.command(MQADMIN, *arguments), capture_output=True, text=True, check=True)  # noqa: S603
    return owners_in_allocate_mq(done.stdout)


def rmqlb(cluster: RocketMQCluster, topic: str) -> Owners:
    """What `rmqlb show-owners` says."""
    source = ("-s", f"rocketmq://{cluster.name_server}", "--group", GROUP, "--topic", topic)
    command = [sys.executable, "-m", "rmqlb", "show-owners", *source, "--strategy", STRATEGY, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    queues = json.loads(done.stdout)["data"]["queues"]
    return {MessageQueue(topic, q["brokerName"], q["queueId"]): " ".join(q["owners"][STRATEGY]) for q in queues}


def all_queues() -> list[MessageQueue]:
    """The queues of both topics and of the group's retry topic."""
    retry = {f"%RETRY%{GROUP}": dict.fromkeys(("broker-a", "broker-b"), 1)}
    return [
        MessageQueue(topic, broker, i)
        for topic, brokers in (TOPICS | retry).items()
        for broker, number in brokers.items()
        for i in range(number)
    ]


def main() -> None:
    """Start the cluster and its members, ask both programs, and print the table."""
    with RocketMQCluster("5.5.0", brokers=["broker-a", "broker-b"]) as cluster:
        cluster.create_topics([TopicOnBroker(t, b, n, n) for t, on in TOPICS.items() for b, n in on.items()])
        with running_members(cluster, GROUP, STRATEGY, tuple(TOPICS), MEMBERS) as members:
            owned = members.settled(all_queues())
            listed = list(owned)
            rows = []
            for topic in TOPICS:
                truth = {q: client_id for client_id, held in owned.items() for q in held if q.topic == topic}
                answers = {
                    "mqadmin allocateMQ, IDs as listed": mqadmin(cluster, topic, listed),
                    "mqadmin allocateMQ, IDs sorted by hand": mqadmin(cluster, topic, sort_client_ids(listed)),
                    "rmqlb show-owners": rmqlb(cluster, topic),
                }
                rows += [(name, topic, share_right(answer, truth)) for name, answer in answers.items()]
    sys.stdout.write(markdown(("program", "topic", "correct owners"), rows) + "\n")


if __name__ == "__main__":
    main()
