from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rmqlb.remoting.codes import RequestCode
from tests.cli.run import data_of, error_of, run
from tests.cli.test_unowned import POLICY, POLLING, ROUTE, RUNNING, STATS, known, route_of, serving
from tests.support.replay_proxy import captured, proxy_replay
from tests.support.replay_remoting import Answer, Replay, at, remoting, success

PUSH = ("vm@11012@0@knf9y2k23", "vm@11012@1@knfzeaz7r")


def answers(group: str) -> dict[tuple[int, str], Answer]:
    return {
        (ROUTE, "topic=Pulled"): success(route_of("broker-a", "broker-b")),
        **known(group, "Pulled"),
        (STATS, f"consumerGroup={group}"): captured("broker-a-stats"),
        (POLLING, f"consumerGroup={group}&topic=Pulled&queueId=-1"): success(pollingNum="0"),
    }


@pytest.fixture
def brokers(request: pytest.FixtureRequest) -> Iterator[tuple[Replay, ...]]:
    yield from serving(answers(getattr(request, "param", "grpc-svc")))


@pytest.fixture
def proxy() -> Iterator[Replay]:
    with remoting(proxy_replay(grpc_svc="grpc-svc", simple_svc="simple-svc", java_svc="java-svc")) as running:
        yield running


def test_show_owners_says_who_may_read_what(brokers: tuple[Replay, ...], proxy: Replay, tmp_path: Path) -> None:
    path = str(tmp_path / "cluster.json")
    live = [*at(brokers), "--proxy", proxy.address]
    assert run("fetch-routes", *live, "-g", "grpc-svc", "--to", path).code == 0
    for source in (live, ["-s", path]):
        assert run("show-owners", *source, "-g", "grpc-svc").stdout.splitlines()[0] == (
            "grpc-svc, 2 consumers: behind a Proxy, no consumer owns a queue; every consumer may read every queue; "
            "4 queues, lag 0+"
        )
        data = data_of("show-owners", *source, "-g", "grpc-svc")
        queues = [{"brokerName": b, "queueId": -1, "consumers": [*PUSH]} for b in ("broker-a", "broker-b")]
        unknown: dict[str, Any] = {"strategy": None, "popShareQueueNums": [], "assumed": False, "byProxy": True}
        assert data["popTopics"] == [{"topic": "Pulled", "queues": queues, **unknown}]
        assert (data["queues"], data["strategies"], data["hidden"], len(data["offsets"])) == ([], [], None, 4)


@pytest.mark.parametrize("brokers", ["grpc-svc", "simple-svc"], indirect=True)
def test_a_group_that_a_proxy_lists_is_neither_offline_nor_unowned(
    brokers: tuple[Replay, ...], proxy: Replay, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    group = request.node.callspec.params["brokers"]
    live = [*at(brokers), "--proxy", proxy.address]
    (line,) = data_of("show-groups", *live, "-g", group)["groups"]
    consumers = 2 if group == "grpc-svc" else 1
    assert (line["status"], line["consumers"], line["unassigned"]) == ("inOrder", consumers, None)
    assert [finding["code"] for finding in line["findings"]] == ["behind-proxy"]
    shown = data_of("show-consumers", *live, "-g", group)["consumers"]
    kinds = {(each["consumeType"], each["language"], len(each["notListedBy"])) for each in shown}
    assert kinds == {("grpc", "JAVA", 0)}
    assert {address["proxyAddr"] for each in shown for address in each["addresses"]} == {proxy.address}
    (finding,) = json.loads(run("diagnose", *live, "-g", group, "--looks", "1", "-o", "json").stdout)["data"][
        "findings"
    ]
    assert (finding["code"], finding["evidence"][0]["source"]) == ("behind-proxy", f"Proxy {proxy.address}")
    for command in (("simulate-rebalance", "--event", "crash #0@10s"), ("plan-rollout",), ("record", "--for", "1s")):
        failed = error_of(run(*command, *live, "-g", group).stderr)
        assert failed.code == "behind-proxy", command
        assert "gRPC clients" in failed.message
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.replace('"*"', group))
    judged = json.loads(run("check", *live, "-p", str(policy), "-o", "json").stdout)["data"]
    assert [one["limit"] for one in judged["notApplicable"]] == ["unassigned"]
    assert (judged["failed"], judged["incomplete"]) == ([], [])


@pytest.mark.parametrize("brokers", ["java-svc"], indirect=True)
def test_consumers_of_the_remoting_protocol_behind_a_proxy_share_the_queues(
    brokers: tuple[Replay, ...], proxy: Replay
) -> None:
    live = [*at(brokers), "--proxy", proxy.address, "-g", "java-svc"]
    owners = [queue["owners"]["AVG"] for queue in data_of("show-owners", *live, "--strategy", "AVG")["queues"]]
    assert owners == [["127.0.0.1@j1"]] * 2 + [["127.0.0.1@j2"]] * 2
    assert not [request for broker in brokers for request in broker.requests if request.code == RUNNING]
    alone = error_of(run("show-owners", *live[:-4], "-g", "java-svc").stderr)
    assert alone.message.endswith("it is offline, or behind a Proxy")


def test_a_proxy_is_asked_nothing_but_who_is_online(brokers: tuple[Replay, ...], proxy: Replay) -> None:
    run("show-owners", *at(brokers), "--proxy", proxy.address, "-g", "grpc-svc")
    assert {request.code for request in proxy.requests} == {RequestCode.GET_CONSUMER_CONNECTION_LIST}


def test_a_context_names_the_proxies_of_its_cluster(
    brokers: tuple[Replay, ...], proxy: Replay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    source = at(brokers)
    assert run("context", "add", "prod", *source, "--proxy", proxy.address).code == 0
    ran = run("show-owners", "--context", "prod", "-g", "grpc-svc")
    assert "grpc-svc, 2 consumers: behind a Proxy" in ran.stdout
    compared = run("diff", "prod", "prod", "-g", "grpc-svc", "-o", "json")
    assert compared.code == 0, compared.stderr
