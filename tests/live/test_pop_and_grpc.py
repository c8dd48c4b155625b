"""Groups whose consumers own no queue: what rmqlb says of them on a cluster where they really consume."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rmqlb import MessageQueue
from tests.cli.run import Ran, run

from .cluster import RocketMQCluster
from .jvm import wait_until
from .members import SETTLE_DEADLINE, running_members
from .pop_groups import PopGroup
from .proxies import grpc_java, proxy_by_itself
from .receivers import receivers

pytestmark = [pytest.mark.live, pytest.mark.slow]

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


def test_a_group_behind_a_proxy_is_consumed_and_not_offline_and_the_proxy_tells_its_consumers(
    cluster: RocketMQCluster, tmp_path: Path
) -> None:
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
            assert_is_told(cluster, group, number, ("--proxy", remoting))
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


def assert_is_told(cluster: RocketMQCluster, group: str, number: int, asked: tuple[str, ...]) -> None:
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
