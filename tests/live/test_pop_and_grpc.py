"""Groups whose consumers own no queue: what rmqlb says of them on a cluster where they really consume."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from rmqlb.cli.main import app

from .cluster import RocketMQCluster, TopicOnBroker
from .jars import compiled, jars
from .jvm import LOOPBACK, free_port, started, wait_until
from .members import SETTLE_DEADLINE, running_members

pytestmark = [pytest.mark.live, pytest.mark.slow]

HERE = Path(__file__).parent
BROKER, MQADMIN = "broker-p", "org.apache.rocketmq.tools.command.MQAdminStartup"
PROXY = "org.apache.rocketmq.proxy.ProxyStartup"
GRPC_CLIENT = "5.0.7"


@pytest.fixture(scope="module")
def popping() -> Iterator[RocketMQCluster]:
    """A broker that serves POP, which needs its timer wheel."""
    with RocketMQCluster("5.5.0", brokers=[BROKER], config={"timerWheelEnable": "true"}) as running:
        running.create_topics([TopicOnBroker(topic, BROKER, 4, 4) for topic in ("Popped", "Pulled")])
        yield running


def rmqlb(cluster: RocketMQCluster, *args: str) -> Result:
    return CliRunner().invoke(app, [*args, "-s", f"rocketmq://{cluster.name_server}"])


def error_of(result: Result) -> tuple[str, str]:
    """Code and message."""
    error: dict[str, Any] = json.loads(result.stderr)["error"]
    return error["code"], error["message"]


def test_the_topic_that_a_group_consumes_by_pop_is_told_and_the_other_one_planned(popping: RocketMQCluster) -> None:
    group = "pop-svc"
    with running_members(popping, group, "AVG", ["Popped", "Pulled"], ["a", "b"], assigned="true") as members:
        mode = ("-t", "Popped", "-g", group, "-m", "POP", "-q", "0")
        popping.run(MQADMIN, "setConsumeMode", "-n", popping.name_server, "-b", popping.broker_addresses[BROKER], *mode)
        wait_until(
            lambda: (
                {queue.topic for held in members.owned().values() for queue in held} == {"Pulled", f"%RETRY%{group}"}
            ),
            SETTLE_DEADLINE,
            lambda: f"still pulled: {members.owned()}",
        )
        by_pop = rmqlb(popping, "plan-rebalance", "-g", group, "-t", "Popped", "--add", "1", "-o", "json")
        planned = rmqlb(popping, "plan-rebalance", "-g", group, "--add", "1", "-o", "json")
        fetched = rmqlb(popping, "fetch-routes", "-g", group, "-o", "json")
    assert json.loads(by_pop.stdout)["data"]["topics"] == []
    (popped,) = json.loads(by_pop.stdout)["data"]["popTopics"]
    assert (popped["topic"], popped["popShareQueueNums"], popped["assumed"]) == ("Popped", [0], False)
    assert [topic["topic"] for topic in json.loads(planned.stdout)["data"]["topics"]] == ["Pulled"]
    (seen,) = json.loads(fetched.stdout)["data"]["groups"]
    assert seen["requestModes"]["Popped"] == ["POP"]
    assert seen["requestModes"]["Pulled"] == ["PULL"], "the broker's own default, by QUERY_ASSIGNMENT"


@contextmanager
def grpc_consumers(cluster: RocketMQCluster, group: str, topic: str, folder: Path) -> Iterator[None]:
    """A Proxy in cluster mode, and two consumers that are connected to it."""
    grpc = free_port()
    settings = {
        "rocketMQClusterName": cluster.name,
        "namesrvAddr": cluster.name_server,
        "proxyMode": "cluster",
        "grpcServerPort": grpc,
        "remotingListenPort": free_port(),
    }
    file = folder / "proxy.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    proxy = replace(cluster.java, class_path=f"{jars('5.5.0', ('rocketmq-proxy',), 'rocketmq-proxy')}/*")
    library = jars(GRPC_CLIENT, ("rocketmq-client-java",), "rocketmq-client-java")
    client = replace(cluster.java, class_path=f"{compiled(HERE / 'grpc', library, folder / 'classes')}:{library}/*")
    with started("proxy", proxy.command(PROXY, "-pc", str(file)), folder / "proxy.log") as server:
        server.wait_for_text("rocketmq-proxy startup successfully")
        command = client.command("GrpcConsumers", f"{LOOPBACK}:{grpc}", group, topic)
        with started("grpc", command, folder / "grpc.log") as consumers:
            consumers.wait_for_text("consuming")
            yield


def test_a_group_behind_a_proxy_is_consumed_and_not_offline(popping: RocketMQCluster, tmp_path: Path) -> None:
    path = str(tmp_path / "cluster.json")
    with grpc_consumers(popping, "grpc-svc", "Pulled", tmp_path):
        popping.run(MQADMIN, "sendMessage", "-n", popping.name_server, "-t", "Pulled", "-p", "one")

        def code() -> str:
            return error_of(rmqlb(popping, "show-owners", "-g", "grpc-svc", "-o", "json"))[0]

        wait_until(lambda: code() == "behind-proxy", SETTLE_DEADLINE, lambda: f"told as {code()}")
        message = error_of(rmqlb(popping, "plan-rebalance", "-g", "grpc-svc", "--add", "1", "-o", "json"))[1]
        assert rmqlb(popping, "fetch-routes", "-g", "grpc-svc", "--to", path).exit_code == 0
    assert "its consumers are connected to a Proxy (gRPC)" in message
    offline = CliRunner().invoke(app, ["show-owners", "-s", path, "-g", "grpc-svc", "-o", "json"])
    assert error_of(offline)[0] == "behind-proxy"
