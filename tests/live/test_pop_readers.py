from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rmqlb import MessageQueue
from rmqlb.remoting.codes import RequestCode
from rmqlb.remoting.command import request

from .broker_requests import ask
from .cluster import RocketMQCluster, TopicOnBroker
from .members import running_members
from .pop_groups import PopGroup

pytestmark = [pytest.mark.live, pytest.mark.slow]

BROKERS = {"broker-a": 3, "broker-b": 3, "broker-c": 2}
FEW = {"broker-a": 2, "broker-c": 1}
# POP needs the timer wheel; brokers learn of a broker that is lost at their own polls, 30 s apart when not set.
CONFIG: dict[str, str | int] = {"timerWheelEnable": "true", "loadBalancePollNameServerInterval": 1000}
NAMES = ("c9", "c10", "c1", "c2")


@contextmanager
def three_brokers() -> Iterator[RocketMQCluster]:
    with RocketMQCluster("5.5.0", brokers=list(BROKERS), config=CONFIG) as running:
        topics = {"Popped": BROKERS, "Few": FEW}
        running.create_topics(
            [TopicOnBroker(topic, name, n, n) for topic, counts in topics.items() for name, n in counts.items()]
        )
        yield running


@pytest.fixture(scope="module")
def popping() -> Iterator[RocketMQCluster]:
    with three_brokers() as running:
        yield running


@contextmanager
def pop_group(cluster: RocketMQCluster, share: int, topic: str = "Popped", strategy: str = "AVG") -> Iterator[PopGroup]:
    name = f"pop-{topic}-{strategy}-{share}-svc"
    counts = BROKERS if topic == "Popped" else FEW
    queues = tuple(MessageQueue(topic, broker, number) for broker, n in counts.items() for number in range(n))
    with running_members(cluster, name, strategy, [topic], NAMES, assigned="true") as members:
        group = PopGroup(cluster, name, [members], strategy, topic=topic, queues=queues, share=share)
        group.set_mode()
        yield group


def ids(*names: str) -> list[str]:
    return [f"127.0.0.1@{name}" for name in names]


@pytest.mark.parametrize(
    ("topic", "share", "strategy"),
    [
        ("Popped", -1, "AVG"),
        ("Popped", 0, "AVG"),
        ("Popped", 1, "AVG"),
        ("Popped", 2, "AVG_BY_CIRCLE"),
        ("Popped", 9, "AVG"),
        ("Few", 1, "AVG"),
    ],
)
def test_who_reads_what_is_predicted_before_and_after_a_consumer_leaves(
    popping: RocketMQCluster, topic: str, share: int, strategy: str
) -> None:
    with pop_group(popping, share, topic, strategy) as group:
        group.must_read(ids(*NAMES))
        after = group.planned_readers("--remove", *ids("c10"))
        group.members.leave("c10")
        group.must_read(ids("c9", "c1", "c2"), after)
        after = group.planned_readers("--add", *ids("c3"))
        group.members.join("c3")
        group.must_read(ids("c9", "c1", "c2", "c3"), after)


def test_who_reads_what_is_predicted_before_and_after_a_broker_is_lost() -> None:
    with three_brokers() as cluster, pop_group(cluster, 0) as everything, pop_group(cluster, 1) as shared:
        after = {}
        for group in (everything, shared):
            group.must_read(ids(*NAMES))
            after[group.group] = group.planned_readers("--remove-broker", "broker-b")
        cluster.kill_broker("broker-b")
        for group in (everything, shared):
            readers = group.must_read(ids(*NAMES), after[group.group])
            assert {queue.broker_name for queue in readers} == {"broker-a", "broker-c"}


def test_the_share_of_a_snapshot_is_what_was_set(popping: RocketMQCluster) -> None:
    with pop_group(popping, 2) as group:
        (seen,) = group.say("fetch-routes")["data"]["groups"]
        listed = [ask(popping, name, request(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)) for name in BROKERS]
    assert seen["popShareQueueNums"] == {"Popped": [2]}
    assert [each["messageRequestModeMap"]["Popped"][group.group]["popShareQueueNum"] for each in listed] == [2, 2, 2]
