"""Groups whose consumers own no queue: what rmqlb says of them on a cluster where they really consume."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from rmqlb.cli.main import app

from .cluster import RocketMQCluster, TopicOnBroker
from .jars import compiled, jars
from .jvm import LOOPBACK, JavaProcess, free_port, started, wait_until
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
def grpc_consumers(
    cluster: RocketMQCluster, group: str, topic: str, folder: Path, **kinds: tuple[str, ...]
) -> Iterator[str]:
    """A Proxy in cluster mode with consumers: group (`_` for `-`) → push or simple, for each of its consumers.

    Without any, `group` has two push consumers. Yields the address of the Proxy's remoting port.
    """
    with ExitStack() as running:
        grpc, remoting = running.enter_context(grpc_proxy(cluster, folder))
        for name, its in (kinds or {group: ("push", "push")}).items():
            running.enter_context(grpc_clients(cluster, grpc, name.replace("_", "-"), topic, folder, *its))
        yield remoting


@contextmanager
def grpc_proxy(cluster: RocketMQCluster, folder: Path) -> Iterator[tuple[str, str]]:
    grpc, remoting = free_port(), free_port()
    settings = {
        "rocketMQClusterName": cluster.name,
        "namesrvAddr": cluster.name_server,
        "proxyMode": "cluster",
        "grpcServerPort": grpc,
        "remotingListenPort": remoting,
    }
    file = folder / "proxy.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    proxy = replace(cluster.java, class_path=f"{jars('5.5.0', ('rocketmq-proxy',), 'rocketmq-proxy')}/*")
    with started("proxy", proxy.command(PROXY, "-pc", str(file)), folder / "proxy.log") as server:
        server.wait_for_text("rocketmq-proxy startup successfully")
        yield f"{LOOPBACK}:{grpc}", f"{LOOPBACK}:{remoting}"


@contextmanager
def grpc_clients(
    cluster: RocketMQCluster, grpc: str, group: str, topic: str, folder: Path, *kinds: str
) -> Iterator[JavaProcess]:
    library = jars(GRPC_CLIENT, ("rocketmq-client-java",), "rocketmq-client-java")
    client = replace(cluster.java, class_path=f"{compiled(HERE / 'grpc', library, folder / 'classes')}:{library}/*")
    command = client.command("GrpcConsumers", grpc, group, topic, *kinds)
    with started(group, command, folder / f"{group}.log") as consumers:
        consumers.wait_for_text("consuming")
        yield consumers


def hidden(result: Result) -> str | None:
    """How sure show-owners is that the consumers are behind a Proxy; None when it fails or sees them."""
    return json.loads(result.stdout)["data"]["hidden"] if result.exit_code == 0 else None


def test_a_group_behind_a_proxy_is_consumed_and_not_offline(popping: RocketMQCluster, tmp_path: Path) -> None:
    path = str(tmp_path / "cluster.json")
    with grpc_consumers(popping, "grpc-svc", "Pulled", tmp_path):
        popping.run(MQADMIN, "sendMessage", "-n", popping.name_server, "-t", "Pulled", "-p", "one")

        def shown() -> Result:
            return rmqlb(popping, "show-owners", "-g", "grpc-svc", "-o", "json")

        wait_until(lambda: hidden(shown()) == "certain", SETTLE_DEADLINE, lambda: f"told as {shown().stderr}")
        code, message = error_of(rmqlb(popping, "plan-rebalance", "-g", "grpc-svc", "--add", "1", "-o", "json"))
        assert rmqlb(popping, "fetch-routes", "-g", "grpc-svc", "--to", path).exit_code == 0
    assert code == "behind-proxy"
    assert "its consumers are connected to a Proxy (gRPC)" in message
    offline = CliRunner().invoke(app, ["show-owners", "-s", path, "-g", "grpc-svc", "-o", "json"])
    assert hidden(offline) == "certain"


def test_a_proxy_tells_the_consumers_of_its_groups(popping: RocketMQCluster, tmp_path: Path) -> None:
    """With it they are in order, whoever asks; without it they are behind a Proxy, and never offline or unowned."""
    groups = {"push-svc": 2, "receive-svc": 1}
    kinds = {"push_svc": ("push", "push"), "receive_svc": ("simple",)}
    with grpc_consumers(popping, "", "Pulled", tmp_path, **kinds) as proxy:

        def data(command: str, group: str, *more: str) -> dict[str, Any]:
            ran = rmqlb(popping, command, "-g", group, *more, "-o", "json")
            found: dict[str, Any] = json.loads(ran.stdout)["data"] if ran.exit_code == 0 else {}
            return found

        for group, number in groups.items():
            wait_until(
                lambda group=group: data("show-owners", group).get("hidden") == "certain",  # type: ignore[misc]
                SETTLE_DEADLINE,
                lambda group=group: f"{group}: {data('show-owners', group)}",  # type: ignore[misc]
            )
            (hidden_line,) = data("show-groups", group)["groups"]
            assert (hidden_line["status"], hidden_line["consumers"], hidden_line["unassigned"]) == (
                "unknown",
                None,
                None,
            )
            assert hidden_line["lag"] == 0
            without = data("diagnose", group, "--looks", "1")
            assert [finding["code"] for finding in without["findings"]] == ["behind-proxy"]

            asked = ("--proxy", proxy)
            (line,) = data("show-groups", group, *asked)["groups"]
            assert (line["status"], line["consumers"], line["unassigned"], line["lag"]) == ("inOrder", number, None, 0)
            found = data("diagnose", group, "--looks", "1", *asked)
            assert [finding["code"] for finding in found["findings"]] == ["behind-proxy"]
            assert len(found["findings"][0]["consumers"]) == number
            (topic,) = data("show-owners", group, *asked)["popTopics"]
            assert topic["byProxy"]
            assert [(queue["brokerName"], len(queue["consumers"])) for queue in topic["queues"]] == [(BROKER, number)]
            (planned,) = data("plan-rebalance", group, "--add", "1", *asked)["popTopics"]
            assert [len(queue["consumersAfter"]) for queue in planned["queues"]] == [number + 1]
    gone = rmqlb(popping, "show-owners", "-g", "push-svc", "--proxy", proxy, "-o", "json")
    assert "cannot connect" in gone.stdout + gone.stderr
