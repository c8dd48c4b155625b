import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rmqlb import MessageQueue
from rmqlb.remoting.codes import RequestCode
from rmqlb.remoting.command import request
from tests.cli.run import Ran, run

from .broker_requests import ask
from .cluster import RocketMQCluster, TopicOnBroker
from .jvm import wait_until
from .members import SETTLE_DEADLINE, receivers, running_members
from .proxies import grpc_java, proxy_by_itself
from .watched_groups import PopGroup, Watched, ids

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


BROKER = "broker-a"
"""The one with these topics."""


def rmqlb(cluster: RocketMQCluster, *args: str) -> Ran:
    return run(*args, "-s", f"rocketmq://{cluster.name_server}", "-o", "json")


def data(ran: Ran) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ran.stdout)["data"] if ran.code == 0 else {}
    return found


def test_the_topic_that_a_group_consumes_by_pop_is_told_and_the_other_one_planned(cluster: RocketMQCluster) -> None:
    name = "pop-svc"
    queues = tuple(MessageQueue("Popped", BROKER, number) for number in range(4))
    with running_members(cluster, name, "AVG", ["Popped", "Pulled"], ["a", "b"], assigned="true") as members:
        group = PopGroup(cluster, name, [members], topic="Popped", queues=queues, share=0)
        group.set_mode()
        by_pop = group.say("plan-rebalance", "-t", "Popped", "--add", "1")["data"]
        planned = group.say("plan-rebalance", "--add", "1")["data"]
        (seen,) = group.say("fetch-routes")["data"]["groups"]
    assert by_pop["topics"] == []
    (popped,) = by_pop["popTopics"]
    assert (popped["topic"], popped["popShareQueueNums"], popped["assumed"]) == ("Popped", [0], False)
    assert [topic["topic"] for topic in planned["topics"]] == ["Pulled"]
    assert seen["requestModes"]["Popped"] == ["POP"]
    assert seen["requestModes"]["Pulled"] == ["PULL"], "the broker's own default, by QUERY_ASSIGNMENT"


def test_a_group_behind_a_proxy_is_not_offline_and_has_consumers(cluster: RocketMQCluster, tmp_path: Path) -> None:
    """With the Proxy groups are in order, whoever asks; without it they are behind a Proxy, never offline or unowned."""
    groups, path = {"push-svc": 2, "receive-svc": 1}, str(tmp_path / "cluster.json")
    with ExitStack() as alive:
        endpoint, remoting = alive.enter_context(proxy_by_itself(cluster))
        consumers = alive.enter_context(receivers(grpc_java(cluster), endpoint, tmp_path / "consumers.log"))
        consumers.push("push-svc", "Pulled")
        consumers.push("push-svc", "Pulled")
        consumers.simple("receive-svc", "Pulled")
        for group, number in groups.items():
            wait_until(
                lambda group=group: data(rmqlb(cluster, "show-owners", "-g", group)).get("hidden") == "certain",  # type: ignore[misc]
                SETTLE_DEADLINE,
                lambda group=group: f"{rmqlb(cluster, 'show-owners', '-g', group)}",  # type: ignore[misc]
            )
            assert_is_hidden(cluster, group)
            assert_proxy_tells(cluster, group, number, ("--proxy", remoting))
        cluster.admin("sendMessage", "-t", "Pulled", "-p", "one")
        failed = rmqlb(cluster, "plan-rebalance", "-g", "push-svc", "--add", "1")
        assert rmqlb(cluster, "fetch-routes", "-g", "push-svc", "--to", path).code == 0
    error = json.loads(failed.stderr)["error"]
    assert error["code"] == "behind-proxy"
    assert "its consumers are connected to a Proxy (gRPC)" in error["message"]
    assert data(run("show-owners", "-s", path, "-g", "push-svc", "-o", "json"))["hidden"] == "certain"
    gone = rmqlb(cluster, "show-owners", "-g", "push-svc", "--proxy", remoting)
    assert "cannot connect" in gone.stdout + gone.stderr


def assert_is_hidden(cluster: RocketMQCluster, group: str) -> None:
    (line,) = data(rmqlb(cluster, "show-groups", "-g", group))["groups"]
    assert (line["status"], line["consumers"], line["unassigned"], line["lag"]) == ("unknown", None, None, 0)
    said = data(rmqlb(cluster, "diagnose", "-g", group, "--samples", "1"))
    assert [finding["code"] for finding in said["findings"]] == ["behind-proxy"]


def assert_proxy_tells(cluster: RocketMQCluster, group: str, number: int, asked: tuple[str, ...]) -> None:
    (line,) = data(rmqlb(cluster, "show-groups", "-g", group, *asked))["groups"]
    assert (line["status"], line["consumers"], line["unassigned"], line["lag"]) == ("inOrder", number, None, 0)
    found = data(rmqlb(cluster, "diagnose", "-g", group, "--samples", "1", *asked))
    assert [finding["code"] for finding in found["findings"]] == ["behind-proxy"]
    assert len(found["findings"][0]["consumers"]) == number
    (topic,) = data(rmqlb(cluster, "show-owners", "-g", group, *asked))["popTopics"]
    assert topic["byProxy"]
    assert [(queue["brokerName"], len(queue["consumers"])) for queue in topic["queues"]] == [(BROKER, number)]
    (planned,) = data(rmqlb(cluster, "plan-rebalance", "-g", group, "--add", "1", *asked))["popTopics"]
    assert [len(queue["consumersAfter"]) for queue in planned["queues"]] == [number + 1]
