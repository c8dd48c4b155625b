import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rmqlb.remoting.codes import RequestCode, ResponseCode
from rmqlb.remoting.command import RemotingCommand
from rmqlb.verbs.source import MOST_ASKED
from tests.cli.run import envelope_of, run
from tests.support.replay_dashboard import Replay as Dashboard
from tests.support.replay_dashboard import dashboard as serving
from tests.support.replay_remoting import Replay, at, cluster, error_answer, silent, success

OFFSETS = (RequestCode.QUERY_CONSUMER_OFFSET, RequestCode.GET_MAX_OFFSET, RequestCode.GET_MIN_OFFSET)
SEARCH = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
MEMBERS = RequestCode.GET_CONSUMER_CONNECTION_LIST
STATS = RequestCode.GET_CONSUME_STATS


@pytest.fixture
def brokers() -> Iterator[tuple[Replay, ...]]:
    with cluster() as running:
        yield running


def plan(brokers: tuple[Replay, ...], *args: str, timeout: str = "5s") -> Any:
    where = (*at(brokers), "--source-timeout", timeout)
    return envelope_of("plan-rebalance", *where, "-g", "order-svc", "-t", "OrderEvents", *args)


def starts(plan: dict[str, Any]) -> list[tuple[str, int, str, Any, Any]]:
    return [
        (queue["brokerName"], queue["queueId"], queue["change"], queue["startRule"], queue["startOffset"])
        for queue in plan["data"]["topics"][0]["queues"]
        if queue["startRule"] is not None
    ]


def asked(brokers: tuple[Replay, ...], code: int) -> set[tuple[str, int]]:
    return {
        (broker.broker_name, int(request.ext_fields["queueId"]))
        for broker in brokers
        for request in broker.requests
        if request.code == code
    }


def answering(number: int) -> Callable[[RemotingCommand], RemotingCommand]:
    return lambda _: success(offset=str(number))


def nothing_stored(brokers: tuple[Replay, ...], consume_from: str, *, end: int = 40, begin: int = 7) -> None:
    """Broker b has nothing stored of the group, which begins as it says."""
    for broker in brokers:
        body = json.loads((broker.answers[MEMBERS, "consumerGroup=order-svc"]).body)  # type: ignore[union-attr, arg-type]
        broker.answers[MEMBERS, "consumerGroup=order-svc"] = success(
            json.dumps(body | {"consumeFromWhere": consume_from}).encode()
        )
    for i in range(16):
        key = f"topic=OrderEvents&queueId={i}"
        brokers[1].answers[OFFSETS[0], f"consumerGroup=order-svc&{key}"] = error_answer(ResponseCode.QUERY_NOT_FOUND)
        brokers[1].answers[OFFSETS[1], key] = answering(end)
        brokers[1].answers[OFFSETS[2], key] = answering(begin)
        brokers[1].answers[SEARCH, key] = answering(end - 5)


def test_only_the_queues_that_move_are_asked_about(brokers: tuple[Replay, ...]) -> None:
    moved = starts(plan(brokers, "--add", "192.0.2.2@inst3"))
    assert asked(brokers, OFFSETS[0]) == {(broker, i) for broker, i, *_ in moved}
    assert {change for _, _, change, _, _ in moved} == {"moved"}
    assert {(rule, offset) for *_, rule, offset in moved} == {("stored", 31), ("stored", 32)}
    assert asked(brokers, OFFSETS[2]) == set(), "nothing waits before the stored offset"
    assert asked(brokers, SEARCH) == set()


@pytest.mark.parametrize(
    ("consume_from", "rule", "offset"),
    [("CONSUME_FROM_LAST_OFFSET", "end", 40), ("CONSUME_FROM_FIRST_OFFSET", "beginning", 7)],
)
def test_consume_from_where_decides(brokers: tuple[Replay, ...], consume_from: str, rule: str, offset: int) -> None:
    nothing_stored(brokers, consume_from)
    moved = starts(plan(brokers, "--add", "192.0.2.2@inst3"))
    assert {(found, at) for broker, _, _, found, at in moved if broker == "broker-b"} == {(rule, offset)}
    assert {found for broker, _, _, found, _ in moved if broker == "broker-a"} == {"stored"}


def test_a_member_s_own_consume_timestamp_is_what_the_broker_is_asked_to_find(brokers: tuple[Replay, ...]) -> None:
    """The captured member's text is 30 minutes before it was made; the other members tell none."""
    nothing_stored(brokers, "CONSUME_FROM_TIMESTAMP")
    to_inst2 = starts(plan(brokers, "--remove", "192.0.2.2@inst1"))
    assert {(rule, at) for broker, _, _, rule, at in to_inst2 if broker == "broker-b"} == {("timestamp", None)}
    assert asked(brokers, SEARCH) == set()
    to_inst0 = starts(plan(brokers, "--remove", "192.0.2.2@inst1", "--remove", "192.0.2.2@inst2"))
    assert {(rule, at) for broker, _, _, rule, at in to_inst0 if broker == "broker-b"} == {("timestamp", 35)}
    requests = [request for broker in brokers for request in broker.requests if request.code == SEARCH]
    assert {request.ext_fields["timestamp"] for request in requests} == {"1795224683000"}


def test_new_read_queues_are_asked_about_and_those_of_a_new_broker_begin_at_0(brokers: tuple[Replay, ...]) -> None:
    nothing_stored(brokers, "CONSUME_FROM_LAST_OFFSET")

    def added(*change: str) -> dict[tuple[str, int], Any]:
        return {(broker, i): at for broker, i, kind, _, at in starts(plan(brokers, *change)) if kind == "added"}

    assert added("--read-queues", "broker-b=10") == {("broker-b", 8): 40, ("broker-b", 9): 40}
    assert added("--add-broker", "broker-c:2") == {("broker-c", 0): 0, ("broker-c", 1): 0}


def test_a_reported_0_is_asked_about_while_the_snapshot_is_taken(brokers: tuple[Replay, ...], tmp_path: Path) -> None:
    stats = b'{"consumeTps":0.0,"offsetTable":{%s}}' % b",".join(
        b'{"brokerName":"broker-b","queueId":%d,"topic":"OrderEvents"}:{"brokerOffset":9,"consumerOffset":0,"lastTimestamp":0}'
        % i
        for i in range(8)
    )
    brokers[1].answers[STATS, "consumerGroup=order-svc"] = success(stats)
    for i in range(8):
        stored = success(offset="0") if i == 3 else error_answer(ResponseCode.QUERY_NOT_FOUND)
        brokers[1].answers[OFFSETS[0], f"consumerGroup=order-svc&topic=OrderEvents&queueId={i}"] = stored
    path = str(tmp_path / "cluster.json")
    assert run("fetch-routes", *at(brokers), "-g", "order-svc", "--to", path).code == 4, "members are not online"
    assert asked(brokers, OFFSETS[0]) == {("broker-b", i) for i in range(8)}
    offline = json.loads(
        run("plan-rebalance", "-s", path, "-g", "order-svc", "-t", "OrderEvents", "--add", "1", "-o", "json").stdout
    )
    found = {i: (rule, offset) for broker, i, _, rule, offset in starts(offline) if broker == "broker-b"}
    assert found
    assert {rule for i, rule in found.items() if i != 3} == {("beginning", 0)}
    assert found.get(3, ("stored", 0)) == ("stored", 0)


def test_a_broker_that_keeps_silent_leaves_the_offsets_unknown_and_says_so(brokers: tuple[Replay, ...]) -> None:
    brokers[1].faults[OFFSETS[1]] = silent
    found = plan(brokers, "--add", "192.0.2.2@inst3", timeout="0.3s")
    (told,) = [finding for finding in found["findings"] if finding["code"] == "starts-not-asked"]
    assert told["message"].startswith("start offsets: brokers did not answer for ")
    assert len([r for r in brokers[1].requests if r.code == OFFSETS[1]]) == 1, "it is not asked again"


def test_brokers_are_asked_about_so_many_queues_and_no_more(brokers: tuple[Replay, ...]) -> None:
    found = plan(brokers, "--read-queues", "broker-a=600")
    (told,) = [finding for finding in found["findings"] if finding["code"] == "starts-not-asked"]
    assert f"were asked about {MOST_ASKED} of " in told["message"]
    assert len(asked(brokers, OFFSETS[0])) == MOST_ASKED


def test_a_dashboard_cannot_be_asked_and_a_reported_0_stays_unknown() -> None:
    path = "/consumer/queryTopicByConsumer.query"
    with serving(Dashboard()) as server:
        body = json.loads(server.answers[path, "consumerGroup=order-svc"])
        for topic in body["data"]:
            for queue in topic["queueStatInfoList"]:
                queue["consumerOffset"] = 0 if queue["brokerName"] == "broker-b" else queue["consumerOffset"]
        server.answers[path, "consumerGroup=order-svc"] = json.dumps(body).encode()
        ran = run(
            "plan-rebalance", "-s", server.url, "-g", "order-svc", "-t", "OrderEvents", "--add", "1", "-o", "json"
        )
    moved = starts(json.loads(ran.stdout))
    assert {(rule, offset) for broker, _, _, rule, offset in moved if broker == "broker-b"} == {("unknown", None)}
    assert {rule for broker, _, _, rule, _ in moved if broker == "broker-a"} == {"stored"}


def test_plan_topic_asks_about_queues_that_are_written_and_not_read_yet(brokers: tuple[Replay, ...]) -> None:
    nothing_stored(brokers, "CONSUME_FROM_LAST_OFFSET")
    a, _ = brokers
    route = json.loads(a.answers[RequestCode.GET_ROUTEINFO_BY_TOPIC, "topic=OrderEvents"].body)  # type: ignore[union-attr, arg-type]
    for data in route["queueDatas"]:
        data["readQueueNums"] = 5 if data["brokerName"] == "broker-b" else 8
    a.answers[RequestCode.GET_ROUTEINFO_BY_TOPIC, "topic=OrderEvents"] = success(json.dumps(route).encode())
    ran = run("plan-topic", *at(brokers), "-t", "OrderEvents", "-g", "order-svc", "--queues", "9", "-o", "json")
    assert ran.code == 0, ran.stderr
    (effect,) = json.loads(ran.stdout)["data"]["steps"][0]["groups"]
    assert asked(brokers, OFFSETS[0]) == {("broker-b", number) for number in (5, 6, 7)}, "queue 8 is empty"
    assert effect["starts"] == [{"rule": "end", "queues": 5}]
    assert (effect["skipped"], effect["firstLost"]) == (3 * (40 - 7), 3)
