"""What commands read of running clusters, and what they make of the answers."""

import json
import ssl
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.remoting.codes import RequestCode
from tests.support.replay_remoting import Replay, at, cluster, remoting, success

from .run import data_of, run

Servers = tuple[Replay, ...]
ROUTE = RequestCode.GET_ROUTEINFO_BY_TOPIC


@pytest.fixture
def servers() -> Iterator[Servers]:
    with cluster() as running:
        yield running
        assert not any(server.forbidden for server in running)


def codes_asked(servers: Servers) -> Counter[int]:
    return Counter(request.code for server in servers for request in server.requests)


def test_show_groups_reads_with_so_many_requests_and_no_more(servers: Servers) -> None:
    found = {each["group"]: each for each in data_of("show-groups", *at(servers), "--source-retries", "0")["groups"]}
    assert set(found) == {"order-svc", "audit-svc", "bill-svc"}
    assert found["order-svc"]["consumers"] == 3
    asked = codes_asked(servers)
    assert asked[RequestCode.GET_CONSUMER_CONNECTION_LIST] <= 2 * len(found)
    assert asked[RequestCode.GET_CONSUME_STATS] <= 2 * len(found)
    assert asked[RequestCode.GET_CONSUMER_RUNNING_INFO] <= sum(each["consumers"] or 0 for each in found.values())
    assert asked[RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG] == 2


@pytest.mark.parametrize("names", [("order-svc", "audit-svc"), ("[ao]*-svc",)])
def test_groups_are_listed_only_for_a_pattern(names: tuple[str, ...], servers: Servers) -> None:
    given = [part for name in names for part in ("-g", name)]
    data = data_of("show-owners", *at(servers), *given, "--strategy", "AVG")
    assert sorted(group["group"] for group in data["groups"]) == ["audit-svc", "order-svc"]
    assert (RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG in codes_asked(servers)) == (len(names) == 1)


def test_the_route_of_a_retry_topic_is_asked_for_though_another_topic_is_named(servers: Servers) -> None:
    answers = servers[0].answers
    answers[ROUTE, "topic=%RETRY%order-svc"] = answers[ROUTE, "topic=OrderEvents"]
    data = data_of("show-owners", *at(servers), "-g", "order-svc", "-t", "OrderEvents", "--include-retry")
    assert data["topics"] == ["OrderEvents", "%RETRY%order-svc"]


def test_a_policy_for_topics_reads_no_group(servers: Servers) -> None:
    policy = "rules: [{name: t, topics: OrderEvents, limits: {minBrokers: 1}}]"
    assert run("check", "-p", "-", *at(servers), stdin=policy).code == 0
    assert not any("group" in what.lower() for server in servers for _, what in server.asked)


CONFIG = b'{"attributes":{%s},"order":false,"perm":6,"readQueueNums":8,"topicName":"OrderEvents","writeQueueNums":8}'


@pytest.mark.parametrize(
    ("attributes", "expected"), [(b'"message.type":"TRANSACTION"', " -a +message.type=TRANSACTION"), (b"", "")]
)
def test_a_broker_says_the_type_of_a_topic(attributes: bytes, expected: str, servers: Servers) -> None:
    """As `AdminBrokerProcessor.getTopicConfig` of 5.5.0 answers; without the attribute a topic is NORMAL."""
    for server in servers:
        server.answers[RequestCode.GET_TOPIC_CONFIG, "topic=OrderEvents"] = success(CONFIG % attributes)
    ran = run("plan-topic", *at(servers), "-t", "OrderEvents", "--add-broker", "broker-c", "-o", "json")
    assert ran.code in (ExitCode.OK, ExitCode.DATA), ran.stderr
    (first,) = json.loads(ran.stdout)["data"]["steps"][0]["commands"]
    assert first["text"].endswith(f"-r 8 -w 8 -p 4{expected}")
    assert "message-type-unknown" not in ran.stderr


@pytest.mark.parametrize(
    ("attributes", "factor", "finding"),
    [(b'"message.type":"PRIORITY"', 100, "has type PRIORITY"), (b"", None, None), (None, None, "is unknown")],
)
def test_receives_follow_the_type_that_a_broker_reports(
    attributes: bytes | None, factor: int | None, finding: str | None, servers: Servers
) -> None:
    for server in servers if attributes is not None else ():
        server.answers[RequestCode.GET_TOPIC_CONFIG, "topic=OrderEvents"] = success(CONFIG % attributes)
    ran = run("simulate-receive", *at(servers), "-t", "OrderEvents", "--messages", "5", "-o", "json")
    value = json.loads(ran.stdout)
    assert value["data"]["scenario"]["priorityFactor"] == factor
    found = [each["message"] for each in value["findings"] if each["code"] == "assumed-priority"]
    assert len(found) == (finding is not None)
    assert finding is None or finding in found[0]


SEND = ("simulate-send", "-o", "json", "--messages", "20", "-s")
TEMPLATE = {
    "queueDatas": [{"brokerName": "broker-a", "readQueueNums": 8, "writeQueueNums": 8, "perm": 7}],
    "brokerDatas": [{"brokerName": "broker-a", "cluster": "c", "brokerAddrs": {"0": "10.0.0.1:10911"}}],
}


def test_a_producer_of_a_new_topic_takes_the_templates_queues() -> None:
    new = ("--topic", "OrderEvent")
    with remoting(Replay(answers={(int(ROUTE), "topic=TBW102"): success(json.dumps(TEMPLATE).encode())})) as replay:
        asked = run(*SEND, f"rocketmq://{replay.address}", *new)
    for ran in (asked, run(*SEND, "-", *new, stdin=json.dumps({"TBW102": TEMPLATE}))):
        value = json.loads(ran.stdout)
        assert [queue["queueId"] for queue in value["data"]["queues"]] == [0, 1, 2, 3]
        (finding,) = [finding["message"] for finding in value["findings"] if finding["code"] == "new-topic"]
        assert "topic OrderEvent does not exist" in finding


def test_a_producer_asks_the_nameserver_for_the_route_and_nothing_else() -> None:
    with remoting() as replay:
        ran = run(*SEND, f"rocketmq://{replay.address}", "--topic", "OrderEvents")
        asked = {code for code, _ in replay.asked}
        missing = run(*SEND, f"rocketmq://{replay.address}", "--topic", "OrderEvent")
    value = json.loads(ran.stdout)
    assert value["source"]["kind"] == "nameserver"
    assert sum(queue["stored"] for queue in value["data"]["queues"]) == 20
    assert (asked, replay.forbidden, missing.code, missing.stdout) == ({ROUTE}, [], 4, "")
    error = json.loads(missing.stderr)["error"]
    assert ("OrderEvent" in error["message"], error["hint"]) == (True, "did you mean OrderEvents?")


def test_each_option_of_tls_is_needed_where_the_server_needs_it(tmp_path: Path) -> None:
    ca = trustme.CA()
    mine = ca.issue_cert("client.example")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("broker.example").configure_cert(context)
    context.verify_mode = ssl.CERT_REQUIRED
    ca.configure_trust(context)
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    mine.cert_chain_pems[0].write_to_path(tmp_path / "me.pem")
    mine.private_key_pem.write_to_path(tmp_path / "me.key")
    given = {
        "--ca-file": [str(tmp_path / "ca.pem")],
        "--tls-name": ["broker.example"],
        "--client-cert": [str(tmp_path / "me.pem"), "--client-key", str(tmp_path / "me.key")],
    }
    with remoting(tls=context) as replay:
        show = ("show-route", "-s", f"rocketmqs://{replay.address}", "--topic", "OrderEvents", "-o", "csv")
        for missing in (None, *given):
            options = [word for name, words in given.items() if name != missing for word in (name, *words)]
            done = run(*show, *options, "--source-retries", "0")
            assert done.code == (ExitCode.OK if missing is None else ExitCode.ENDPOINT)
            assert done.stdout[:5] == ("topic" if missing is None else "")
            assert missing is None or (missing in done.stderr and len(done.stderr.splitlines()) == 2)
        done = run(*show, "--client-cert", "no-such.pem")
    assert done.code == ExitCode.USAGE
    assert "no-such.pem" in done.stderr
