from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from rmqlb import MessageQueue
from rmqlb.remoting.codes import RequestCode
from rmqlb.remoting.command import request

from .broker_requests import ask
from .cluster import RocketMQCluster, TopicOnBroker
from .members import running_members
from .pop_groups import PopGroup
from .watched_groups import Watched, ids

pytestmark = [pytest.mark.live, pytest.mark.slow]

TOPICS = {"Popped": {"broker-a": 3, "broker-b": 3, "broker-c": 2}, "Few": {"broker-a": 2, "broker-c": 1}}
# POP needs the timer wheel; brokers learn of a broker that is lost at their own polls, 30 s apart when not set.
CONFIG: dict[str, str | int] = {"timerWheelEnable": "true", "loadBalancePollNameServerInterval": 1000}
NAMES = ("c9", "c10", "c1", "c2")
# Topic, `popShareQueueNum` and strategy of each group.
GROUPS = (("Popped", 0, "AVG"), ("Popped", 1, "AVG"), ("Popped", 2, "AVG_BY_CIRCLE"), ("Few", 1, "AVG"))


@pytest.fixture
def popping() -> Iterator[RocketMQCluster]:
    with RocketMQCluster("5.5.0", brokers=list(TOPICS["Popped"]), config=CONFIG) as running:
        running.create_topics(
            [TopicOnBroker(topic, name, n, n) for topic, counts in TOPICS.items() for name, n in counts.items()]
        )
        yield running


def pop_group(cluster: RocketMQCluster, topic: str, share: int, strategy: str, alive: ExitStack) -> PopGroup:
    name = f"pop-{topic}-{strategy}-{share}-svc"
    queues = tuple(MessageQueue(topic, broker, number) for broker, n in TOPICS[topic].items() for number in range(n))
    members = alive.enter_context(running_members(cluster, name, strategy, [topic], NAMES, assigned="true"))
    return PopGroup(cluster, name, [members], strategy, topic=topic, queues=queues, share=share)


def test_who_reads_what_is_predicted_as_consumers_leave_and_join_and_a_broker_is_lost(popping: RocketMQCluster) -> None:
    """Groups live side by side, one of them without POP: while one is read the others come to rest."""
    with ExitStack() as alive:
        groups = [pop_group(popping, *each, alive) for each in GROUPS]
        pulling = Watched(
            popping, "pull-svc", [alive.enter_context(running_members(popping, "pull-svc", "AVG", ["Popped"], NAMES))]
        )
        for group in groups:
            group.set_mode()
        for group in groups:
            group.must_read(ids(*NAMES))
            assert_is_told(popping, group)
        change(groups, ("--remove", *ids("c10")), lambda group: group.members.leave("c10"), ("c9", "c1", "c2"))
        change(groups, ("--add", *ids("c3")), lambda group: group.members.join("c3"), ("c9", "c1", "c2", "c3"))
        pulling.must_own(ids(*NAMES))
        pulled_after = pulling.planned("--remove-broker", "broker-b")
        on_it = [group for group in groups if group.topic == "Popped"]
        lost: list[str] = []

        def lose(_: PopGroup) -> None:
            if not lost:
                lost.append("broker-b")
                popping.kill_broker("broker-b")

        change(on_it, ("--remove-broker", "broker-b"), lose, ("c9", "c1", "c2", "c3"))
        pulling.must_own(ids(*NAMES), pulled_after)


def change(
    groups: Sequence[PopGroup], plan: Sequence[str], act: Callable[[PopGroup], object], left: Sequence[str]
) -> None:
    after = {group.group: group.planned_readers(*plan) for group in groups}
    for group in groups:
        act(group)
    for group in groups:
        group.must_read(ids(*left), after[group.group])


def assert_is_told(cluster: RocketMQCluster, group: PopGroup) -> None:
    """The share in a snapshot is the one that was set on each broker."""
    (seen,) = group.say("fetch-routes")["data"]["groups"]
    assert seen["popShareQueueNums"] == {group.topic: [group.share]}
    for name in group.brokers:
        modes = ask(cluster, name, request(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE))["messageRequestModeMap"]
        assert modes[group.topic][group.group]["popShareQueueNum"] == group.share
