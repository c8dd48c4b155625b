"""POP and gRPC groups, as a broker of 5.5.0 and its Proxy showed them: live, and offline from what fetch-routes wrote."""

import json
import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.remoting.codes import RequestCode, ResponseCode
from rmqlb.remoting.command import RemotingCommand
from tests.cli.run import data_of, error_of, run
from tests.support.mismatches import every_case
from tests.support.replay_dashboard import Replay as Dashboard
from tests.support.replay_dashboard import dashboard as serving_dashboard
from tests.support.replay_dashboard import failure
from tests.support.replay_remoting import (
    Answer,
    Replay,
    at,
    captured,
    cluster,
    error_answer,
    proxy_replay,
    remoting,
    success,
)

GROUP_COMMANDS = ("show-owners", "plan-rebalance --add 1", "simulate-rebalance --event 'crash #0@10s'", "plan-rollout")
ROUTE, MEMBERS, STATS, RUNNING = 105, 203, 208, 307
ASSIGNMENT, MODES, POLLING = 400, 402, 200055
ASK_PROXY = "to list a Proxy's consumers, pass its remoting port, --proxy HOST:8080 (for a file, to fetch-routes)"
POLICY = 'rules:\n  - {name: r, groups: ["*"], limits: {minConsumers: 1, unassigned: 0}}\n'
POP_MODES = (
    b'{"messageRequestModeMap":{"PopT":{"pop-svc":{"consumerGroup":"pop-svc","mode":"POP","popShareQueueNum":0,'
    b'"topic":"PopT"},"other":{"consumerGroup":"other","mode":"PULL","topic":"PopT"}}}}'
)


def answer(value: object) -> Answer:
    return success(json.dumps(value).encode())


def route_of(*brokers: str) -> Answer:
    queues = [{"brokerName": b, "readQueueNums": 2, "writeQueueNums": 2, "perm": 6} for b in brokers]
    places = [
        {"brokerName": b, "cluster": "c", "brokerAddrs": {"0": f"127.0.0.1:{port}"}}
        for b, port in zip(brokers, (10911, 20911), strict=False)
    ]
    return answer({"queueDatas": queues, "brokerDatas": places})


def stats(broker: str, *topics: str, tps: float = 0.0) -> bytes:
    table = ",".join(
        f'{{"brokerName":"{broker}","queueId":{i},"topic":"{topic}"}}:'
        f'{{"brokerOffset":36,"consumerOffset":36,"lastTimestamp":0,"pullOffset":36}}'
        for topic in topics
        for i in range(2)
    )
    return f'{{"consumeTps":{tps},"offsetTable":{{{table}}}}}'.encode()


def running(*, popped: str | None, held: str | None, own: bool = False) -> bytes:
    """What a consumer of 5.5.0 said of itself, shortened."""
    key = '{{"brokerName":"broker-a","queueId":{0},"topic":"{1}"}}'
    pop = f'{key.format(-1, popped)}:{{"droped":false,"lastPopTimestamp":1795317239143,"waitAckCount":0}}'
    pull = ",".join(f'{key.format(i, held)}:{{"droped":false}}' for i in range(2))
    properties = {
        "clientRebalance": str(own).lower(),
        "allocateMessageQueueStrategy": "a.AllocateMessageQueueAveragely@1",
    }
    tables = f'"mqPopTable":{{{pop if popped else ""}}},"mqTable":{{{pull if held else ""}}}'
    return f'{{{tables},"properties":{json.dumps(properties)}}}'.encode()


def known(group: str, *topics: str) -> dict[tuple[int, str], Answer]:
    return {
        (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, ""): answer({"topicList": topics}),
        (RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, ""): answer({"subscriptionGroupTable": {group: {}}}),
    }


def pop_group(*, default: bool = False) -> dict[tuple[int, str], Answer]:
    """`pop-svc`, whose one consumer lets brokers assign PopT and PullT; without `setConsumeMode` by their default."""
    members = {
        "connectionSet": [{"clientId": "127.0.0.1@p1", "version": 513}],
        "subscriptionTable": {topic: {} for topic in ("PopT", "PullT", "%RETRY%pop-svc")},
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
    }
    assigned = b'{"messageQueueAssignments":[{"messageQueue":{"brokerName":"broker-a","queueId":-1,"topic":"PopT"},"mode":"POP"}]}'
    topics = ("PopT", "PullT", "%RETRY%pop-svc")
    return {
        **known("pop-svc", "PopT", "PullT"),
        **{(ROUTE, f"topic={topic}"): route_of("broker-a") for topic in topics},
        (MEMBERS, "consumerGroup=pop-svc"): answer(members),
        (STATS, "consumerGroup=pop-svc"): success(stats("broker-a", "PopT", "PullT")),
        (RUNNING, "consumerGroup=pop-svc&clientId=127.0.0.1@p1"): success(running(popped=None, held="PullT")),
        (MODES, ""): success(b'{"messageRequestModeMap":{}}' if default else POP_MODES),
        (ASSIGNMENT, ""): lambda request: success(assigned if b'"PopT"' in (request.body or b"") else b"{}"),
    }


def grpc_group(polling: int | None, *, tps: float = 0.0) -> dict[tuple[int, str], Answer]:
    """`grpc-svc`, whose consumers are connected to a Proxy: no broker lists any."""
    waiting = (
        error_answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED) if polling is None else success(pollingNum=str(polling))
    )
    return {
        (ROUTE, "topic=GrpcT"): route_of("broker-a", "broker-b"),
        **known("grpc-svc", "GrpcT"),
        (STATS, "consumerGroup=grpc-svc"): success(stats("broker-a", "GrpcT", tps=tps)),
        (POLLING, "consumerGroup=grpc-svc&topic=GrpcT&queueId=-1"): waiting,
    }


def serving(answers: dict[tuple[int, str], Answer]) -> Iterator[tuple[Replay, ...]]:
    with cluster(Replay(answers=dict(answers)), Replay(broker="b1", answers=dict(answers))) as running_:
        yield running_


@pytest.fixture
def pop() -> Iterator[tuple[Replay, ...]]:
    yield from serving(pop_group())


def live_and_offline(brokers: tuple[Replay, ...], group: str, folder: Path) -> tuple[list[str], list[str]]:
    path = str(folder / f"{group}.json")
    assert run("fetch-routes", *at(brokers), "-g", group, "--to", path).code == 0
    return [*at(brokers), "-g", group], ["-s", path, "-g", group]


def test_who_may_read_what_by_pop_is_shown_live_and_offline(pop: tuple[Replay, ...], tmp_path: Path) -> None:
    queue, before = {"brokerName": "broker-a", "queueId": -1}, ["127.0.0.1@p1"]
    for source in live_and_offline(pop, "pop-svc", tmp_path):
        data = data_of("show-owners", *source)
        assert data["topics"] == ["PullT"]
        known = {"topic": "PopT", "strategy": "AVG", "popShareQueueNums": [0], "assumed": False, "byProxy": False}
        assert data["popTopics"] == [known | {"queues": [queue | {"consumers": before}]}]
        alone = data_of("show-owners", *source, "-t", "PopT")
        assert (alone["queues"], alone["strategies"], alone["popTopics"]) == ([], [], data["popTopics"])
        plan = data_of("plan-rebalance", *source, "--add", "p2@1")
        assert [topic["topic"] for topic in plan["topics"]] == ["PullT"]
        (popped,) = plan["popTopics"]
        assert popped["queues"] == [queue | {"consumersBefore": before, "consumersAfter": [*before, "p2@1"]}]


def test_show_owners_compares_assignments_live_and_asks_nobody_offline(pop: tuple[Replay, ...], tmp_path: Path) -> None:
    pulled = ",".join(
        f'{{"messageQueue":{{"brokerName":"broker-a","queueId":{i},"topic":"PullT"}},"mode":"PULL"}}' for i in range(2)
    )
    usual = pop[0].answers[ASSIGNMENT, ""]

    def answered(text: str) -> dict[str, Any]:
        def assigned(request: RemotingCommand) -> Any:
            is_pulled = b'"PullT"' in (request.body or b"")
            assert callable(usual)
            return success(f'{{"messageQueueAssignments":[{text}]}}'.encode()) if is_pulled else usual(request)

        pop[0].answers[ASSIGNMENT, ""] = assigned
        data: dict[str, Any] = json.loads(run("show-owners", *at(pop), "-g", "pop-svc", "-o", "json").stdout)
        return data

    good = answered(pulled)
    assert good["data"]["brokerAssignments"] == [
        {"topic": topic, "brokerName": "broker-a", "modes": [mode], "consumers": 1, "mismatches": []}
        for topic, mode in (("PopT", "POP"), ("PullT", "PULL"))
    ]
    assert "assignment-mismatch" not in {each["code"] for each in good["findings"]}
    text = run("show-owners", *at(pop), "-g", "pop-svc").stdout
    assert "  assignments by broker-a" in text
    assert "2 answers as predicted" in text
    bad = answered(pulled.partition(",{")[0])
    (mismatch,) = bad["data"]["brokerAssignments"][1]["mismatches"]
    assert mismatch == {
        "clientId": "127.0.0.1@p1",
        "queuesAnswered": [{"brokerName": "broker-a", "queueId": 0}],
        "queuesPredicted": [{"brokerName": "broker-a", "queueId": 0}, {"brokerName": "broker-a", "queueId": 1}],
    }
    assert "assignment-mismatch" in {each["code"] for each in bad["findings"]}
    _, source = live_and_offline(pop, "pop-svc", tmp_path)
    offline = json.loads(run("show-owners", *source, "-o", "json").stdout)
    assert offline["data"]["brokerAssignments"] == []
    assert not {"assignment-mismatch", "assignments-not-asked"} & {each["code"] for each in offline["findings"]}


def test_the_mode_is_carried_in_a_snapshot_and_nobody_is_said_to_own_what_is_popped(pop: tuple[Replay, ...]) -> None:
    pop[0].answers[RUNNING, "consumerGroup=pop-svc&clientId=127.0.0.1@p1"] = success(
        running(popped="PopT", held="PullT")
    )
    (group,) = json.loads(run("fetch-routes", *at(pop), "-g", "pop-svc", "-o", "json").stdout)["data"]["groups"]
    assert group["requestModes"] == {"PopT": ["POP"]}
    assert group["popShareQueueNums"] == {"PopT": [0]}
    assert group["reports"][0]["popTopics"] == ["PopT"]
    owners = {(queue["topic"], queue["queueId"]): queue["owners"] for queue in group["queues"]}
    assert owners[("PopT", 0)] is None
    assert owners[("PullT", 0)] == ["127.0.0.1@p1"]


def test_where_no_mode_is_set_the_broker_tells_its_own() -> None:
    for brokers in serving(pop_group(default=True)):
        data = data_of("plan-rebalance", *at(brokers), "-g", "pop-svc", "-t", "PopT", "--add", "1")
        assert [topic["topic"] for topic in data["popTopics"]] == ["PopT"]
        asked = [request.body or b"" for request in brokers[0].requests if request.code == ASSIGNMENT]
        assert [json.loads(body)["topic"] for body in asked] == ["PopT", "PullT"]


def test_members_that_rebalance_by_themselves_pull_and_no_mode_is_asked_for(pop: tuple[Replay, ...]) -> None:
    member = "consumerGroup=pop-svc&clientId=127.0.0.1@p1"
    pop[0].answers[RUNNING, member] = success(running(popped=None, held="PopT", own=True))
    ran = run("plan-rebalance", *at(pop), "-g", "pop-svc", "-t", "PopT", "--add", "1")
    assert ran.code == 0
    assert not {request.code for broker in pop for request in broker.requests} & {ASSIGNMENT, MODES, POLLING}


def test_a_group_behind_a_proxy_is_not_called_offline(tmp_path: Path) -> None:
    text = (
        "brokers list no consumer of group grpc-svc, but 4 receive requests of the group wait there: its consumers are "
        "connected to a Proxy (gRPC), so they are not visible here"
    )
    for brokers in serving(grpc_group(2)):
        for source in live_and_offline(brokers, "grpc-svc", tmp_path):
            for command, more in product(GROUP_COMMANDS[1:], ((), ("-t", "GrpcT"))):
                ran = run(*shlex.split(command), *source, *more)
                assert ran.code == ExitCode.DATA
                assert error_of(ran.stderr) == (text, "behind-proxy", ASK_PROXY)


def test_offsets_and_lag_of_a_group_behind_a_proxy_are_shown(tmp_path: Path) -> None:
    for brokers in serving(grpc_group(2)):
        for source in live_and_offline(brokers, "grpc-svc", tmp_path):
            for more in ((), ("-t", "GrpcT")):
                first = "grpc-svc: its consumers are behind a Proxy, not visible here; 4 queues, lag 0+"
                assert run("show-owners", *source, *more).stdout.splitlines()[0] == first
            data = data_of("show-owners", *source)
            assert data["hidden"] == "certain"
            assert [queue["consumers"] for queue in data["popTopics"][0]["queues"]] == [None, None]
            known = [queue for queue in data["offsets"] if queue["brokerName"] == "broker-a"]
            assert [(q["brokerOffset"], q["consumerOffset"], q["lag"]) for q in known] == [(36, 36, 0)] * 2
            for option, value in (("--strategy", "AVG"), ("--pop-share", "1")):
                failed = error_of(run("show-owners", *source, option, value).stderr)
                assert failed.message == (
                    f"{option}: no strategy decides the owners of queues in group grpc-svc: its consumers are "
                    "behind a Proxy"
                )


@every_case("command", [("show-owners",), ("plan-rebalance", "--add", "0"), ("plan-rollout",)])
def test_a_group_that_nobody_consumes_says_so_and_not_that_there_is_no_route(command: tuple[str, ...]) -> None:
    for brokers in serving(grpc_group(0)):
        ran = run(*command, *at(brokers), "-g", "grpc-svc")
        failed = error_of(ran.stderr)
        assert failed.message == (
            "no consumer of group grpc-svc is visible, and no broker holds a receive request of it: "
            "it is offline, or behind a Proxy"
        )
        assert failed.code == "no-consumer-online"
        assert run("plan-rebalance", *at(brokers), "-g", "grpc-svc", "--add", "2").code == 0


def test_messages_that_both_brokers_gave_out_in_the_last_minute_are_a_sign_too() -> None:
    for brokers in serving(grpc_group(None, tps=2.5)):
        failed = error_of(run("plan-rebalance", *at(brokers), "-g", "grpc-svc", "--add", "0").stderr)
        assert re.search(r"they gave it 5 messages per second .* are probably connected to a Proxy", failed.message)


def test_a_broker_before_5_is_asked_nothing_that_it_might_not_answer() -> None:
    old = Replay(version="4.9.7")
    old.answers[RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, ""] = answer({"subscriptionGroupTable": {"g": {}}})
    old.answers[STATS, "consumerGroup=g"] = success(stats("legacy-a", "LegacyTopic"))
    with cluster(old) as (broker,):
        ran = run("show-owners", *at((broker,)), "-g", "g")
    assert error_of(ran.stderr).code == "no-consumer-online"
    assert not {request.code for request in broker.requests} & {ASSIGNMENT, MODES, POLLING}


def test_receive_requests_are_asked_for_of_the_topics_that_are_named_too() -> None:
    """A group that has stored no offset yet does not tell its topics."""
    answers = grpc_group(1) | {(STATS, "consumerGroup=grpc-svc"): success(b'{"consumeTps":0.0,"offsetTable":{}}')}
    for brokers in serving(answers):
        assert error_of(run("show-owners", *at(brokers), "-g", "grpc-svc").stderr).code == "no-consumer-online"
        named = run("show-owners", *at(brokers), "-g", "grpc-svc", "-t", "GrpcT")
        assert named.stdout.startswith(
            "grpc-svc: its consumers are behind a Proxy, not visible here; 4 queues, lag unknown"
        )


@every_case(("age_s", "code"), [(2, "behind-proxy"), (3600, "no-consumer-online")])
def test_a_dashboard_tells_when_what_the_group_read_last_was_stored(age_s: int, code: str) -> None:
    offsets, read = "/consumer/queryTopicByConsumer.query", round((datetime.now(UTC).timestamp() - age_s) * 1000)
    with serving_dashboard(Dashboard()) as server:
        body = json.loads(server.answers[offsets, "consumerGroup=order-svc"])
        for queue in (queue for topic in body["data"] for queue in topic["queueStatInfoList"]):
            queue["lastTimestamp"] = read
        server.answers[offsets, "consumerGroup=order-svc"] = json.dumps(body).encode()
        offline = failure("CODE: 206  DESC: Not found the consumer group connection")
        server.answers["/consumer/consumerConnection.query", "consumerGroup=order-svc"] = offline
        failed = error_of(run("plan-rebalance", "-s", server.url, "-g", "order-svc", "--add", "0").stderr)
    assert failed.code == code
    assert ("probably connected to a Proxy" in failed.message) == (code == "behind-proxy")


# Their consumers, as a Proxy tells them.

PUSH = ("vm@11012@0@knf9y2k23", "vm@11012@1@knfzeaz7r")


def answers(group: str) -> dict[tuple[int, str], Answer]:
    return {
        (ROUTE, "topic=Pulled"): route_of("broker-a", "broker-b"),
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
            "grpc-svc, 2 consumers: behind a Proxy, so no consumer owns a queue; every consumer may read every queue; "
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
    (finding,) = json.loads(run("diagnose", *live, "-g", group, "--samples", "1", "-o", "json").stdout)["data"][
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
def test_remoting_consumers_behind_a_proxy_share_the_queues(brokers: tuple[Replay, ...], proxy: Replay) -> None:
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
