"""`--proxy`: the consumers that Proxies of 5.5.0 listed, by every command that asks for consumers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.remoting.codes import RequestCode
from tests.cli.run import error_of, run
from tests.cli.test_unowned import MEMBERS, POLICY, POLLING, ROUTE, RUNNING, STATS, at, known, route_of, serving
from tests.support.mismatches import every_case
from tests.support.replay_proxy import captured, grpc_port, proxy_replay
from tests.support.replay_remoting import Answer, Replay, refusing_address, remoting, success

GROUPS = ("grpc-svc", "simple-svc", "java-svc")
PUSH = ("vm@11012@0@knf9y2k23", "vm@11012@1@knfzeaz7r")
REMOTING_PORT = "give its remoting port (remotingListenPort, 8080 if not set)"


def answers(group: str) -> dict[tuple[int, str], Answer]:
    """A group of which no broker lists a consumer, and no receive request waits at this moment."""
    offsets = captured("broker-a-stats")
    return {
        (ROUTE, "topic=Pulled"): success(route_of("broker-a", "broker-b")),
        **known(group, "Pulled"),
        (STATS, f"consumerGroup={group}"): offsets,
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
        ran = run("show-owners", *source, "-g", "grpc-svc")
        assert ran.code == 0, ran.stderr
        assert ran.stdout.splitlines()[0] == (
            "grpc-svc, 2 consumers: behind a Proxy, no consumer owns a queue; every consumer may read every queue; "
            "4 queues, lag 0+"
        )
        data = json.loads(run("show-owners", *source, "-g", "grpc-svc", "-o", "json").stdout)["data"]
        assert data["popTopics"] == [
            {
                "topic": "Pulled",
                "strategy": None,
                "popShareQueueNums": [],
                "assumed": False,
                "queues": [{"brokerName": b, "queueId": -1, "consumers": [*PUSH]} for b in ("broker-a", "broker-b")],
                "byProxy": True,
            }
        ]
        assert (data["queues"], data["strategies"], data["hidden"], len(data["offsets"])) == ([], [], None, 4)


def test_nothing_moves_when_a_consumer_joins_or_a_broker_leaves(brokers: tuple[Replay, ...], proxy: Replay) -> None:
    live = [*at(brokers), "--proxy", proxy.address, "-g", "grpc-svc"]
    joined = run("plan-rebalance", *live, "--add", "new@1@0@aa")
    assert joined.code == 0, joined.stderr
    assert joined.stdout.splitlines()[0] == (
        "grpc-svc, 2 → 3 consumers: behind a Proxy, no consumer owns a queue and none moves; "
        "2 of 2 brokers may be read by other consumers than before"
    )
    (topic,) = json.loads(run("plan-rebalance", *live, "--remove-broker", "broker-b", "-o", "json").stdout)["data"][
        "popTopics"
    ]
    assert [(queue["brokerName"], queue["consumersBefore"], queue["consumersAfter"]) for queue in topic["queues"]] == [
        ("broker-a", [*PUSH], [*PUSH]),
        ("broker-b", [*PUSH], None),
    ]
    left = run("plan-rebalance", *live, "--remove", "2")
    assert "no consumer may read 2 of 2 brokers" in left.stdout
    for option in ("--strategy", "--to-strategy"):
        failed = error_of(run("plan-rebalance", *live, option, "AVG").stderr)
        assert failed.message.endswith("because its consumers are behind a Proxy")


@pytest.mark.parametrize("brokers", ["grpc-svc", "simple-svc"], indirect=True)
def test_a_group_that_a_proxy_lists_is_neither_offline_nor_unowned(
    brokers: tuple[Replay, ...], proxy: Replay, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    group = request.node.callspec.params["brokers"]
    live = [*at(brokers), "--proxy", proxy.address]
    (line,) = json.loads(run("show-groups", *live, "-g", group, "-o", "json").stdout)["data"]["groups"]
    consumers = 2 if group == "grpc-svc" else 1
    assert (line["status"], line["consumers"], line["unassigned"]) == ("inOrder", consumers, None)
    assert [finding["code"] for finding in line["findings"]] == ["behind-proxy"]
    shown = json.loads(run("show-consumers", *live, "-g", group, "-o", "json").stdout)["data"]["consumers"]
    assert {(each["consumeType"], each["language"], len(each["notListedBy"])) for each in shown} == {
        ("grpc", "JAVA", 0)
    }
    assert {address["proxyAddr"] for each in shown for address in each["addresses"]} == {proxy.address}
    diagnosis = json.loads(run("diagnose", *live, "-g", group, "--looks", "1", "-o", "json").stdout)["data"]
    assert [finding["code"] for finding in diagnosis["findings"]] == ["behind-proxy"]
    assert diagnosis["findings"][0]["evidence"][0]["source"] == f"Proxy {proxy.address}"
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
    ran = run("show-owners", *live, "--strategy", "AVG", "-o", "json")
    owners = [queue["owners"]["AVG"] for queue in json.loads(ran.stdout)["data"]["queues"]]
    assert owners == [["127.0.0.1@j1"]] * 2 + [["127.0.0.1@j2"]] * 2
    assert not [request for broker in brokers for request in broker.requests if request.code == RUNNING]
    alone = error_of(run("show-owners", *live[:-4], "-g", "java-svc").stderr)
    assert alone.message.endswith("it is offline, or behind a Proxy")


def test_a_policy_that_skips_offline_groups_judges_those_behind_a_proxy(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text('rules:\n  - {name: r, groups: ["grpc-svc"], skipOffline: true, limits: {minConsumers: 1}}\n')
    path = str(tmp_path / "cluster.json")
    busy = answers("grpc-svc") | {(POLLING, "consumerGroup=grpc-svc&topic=Pulled&queueId=-1"): success(pollingNum="2")}
    for waiting, outcome in ((busy, "incomplete"), (answers("grpc-svc"), None)):
        for brokers in serving(waiting):
            run("fetch-routes", *at(brokers), "-g", "grpc-svc", "--to", path)
        judged = json.loads(run("check", "-s", path, "-p", str(policy), "-o", "json").stdout)
        found = [] if outcome is None else judged["data"][outcome]
        assert [one["limit"] for one in found] == (["minConsumers"] if outcome else [])


def test_who_is_at_no_broker_and_at_no_proxy_is_offline(brokers: tuple[Replay, ...]) -> None:
    with remoting(proxy_replay()) as empty:
        live = [*at(brokers), "--proxy", empty.address, "-g", "grpc-svc"]
        failed = error_of(run("show-owners", *live).stderr)
        assert failed.message == f"group grpc-svc has no consumer online, at brokers or at Proxy {empty.address}"
        (line,) = json.loads(run("show-groups", *live, "-o", "json").stdout)["data"]["groups"]
    assert (line["status"], line["consumers"], line["unassigned"]) == ("offline", 0, 4)
    assert "may be behind" not in json.dumps(line)


def test_one_proxy_that_does_not_answer_hides_nothing_of_another(brokers: tuple[Replay, ...], proxy: Replay) -> None:
    with refusing_address() as dead:
        live = [*at(brokers), "--proxy", dead, "--proxy", proxy.address, "-g", "grpc-svc"]
        ran = run("show-owners", *live)
    assert ran.code == 0
    assert ran.stdout.startswith("grpc-svc, 2 consumers: behind a Proxy")
    assert f"not read: consumers of Proxy {dead}: {dead} GET_CONSUMER_CONNECTION_LIST: cannot connect" in ran.stderr
    assert "is its remoting port (remotingListenPort, 8080 if not set) open from here?" in ran.stderr


def test_a_port_that_is_not_a_proxys_is_named_with_what_to_give(brokers: tuple[Replay, ...]) -> None:
    with remoting(grpc_port()) as grpc, remoting() as name_server:
        name_server.answers[MEMBERS, "consumerGroup=grpc-svc"] = captured("namesrv")
        for address, reason in (
            (grpc.address, f"if it is a Proxy's gRPC port, {REMOTING_PORT}"),
            (brokers[0].address, f"a broker answers there, not a Proxy; {REMOTING_PORT}"),
            (name_server.address, f"a NameServer answers there, or a Proxy before 5.1.1; {REMOTING_PORT}"),
        ):
            ran = run("show-groups", *at(brokers), "--proxy", address, "-g", "grpc-svc")
            assert ran.code == 0
            (told,) = [line for line in ran.stderr.splitlines() if "not read" in line]
            assert told.startswith(f"warning: not read: consumers of Proxy {address}: ")
            assert told.endswith(f"{reason} [unread]")
            (line,) = json.loads(run("show-groups", *at(brokers), "--proxy", address, "-o", "json").stdout)["data"][
                "groups"
            ]
            assert (line["status"], line["consumers"]) == ("unknown", None), "it may be behind the Proxy that was meant"


def test_a_proxy_is_asked_nothing_but_who_is_online(brokers: tuple[Replay, ...], proxy: Replay) -> None:
    run("show-owners", *at(brokers), "--proxy", proxy.address, "-g", "grpc-svc")
    assert {request.code for request in proxy.requests} == {RequestCode.GET_CONSUMER_CONNECTION_LIST}


@every_case(
    ("given", "problem"),
    [
        ("p/q", "'p/q' is not the address of a Proxy"),
        ("p:0", "'p:0' is not the address of a Proxy"),
        ("http://p:8080", "'http://p:8080' is not the address of a Proxy"),
        ("me:secret@p:8080", "it names a user"),
    ],
)
def test_what_is_no_address_is_refused(given: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for ran in (
        run("show-groups", "-s", "rocketmq://h:9876", "--proxy", given),
        run("context", "add", "a", "-s", "rocketmq://h:9876", "--proxy", given),
    ):
        failed = error_of(ran.stderr)
        assert (ran.code, failed.message) == (ExitCode.USAGE, f"--proxy: {problem}")
        assert "secret" not in ran.stderr
    monkeypatch.setenv("RMQLB_PROXY", given)
    assert error_of(run("show-groups", "-s", "rocketmq://h:9876").stderr).message == f"RMQLB_PROXY: {problem}"


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
