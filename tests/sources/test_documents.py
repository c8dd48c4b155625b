"""RocketMQ's JSON into model values: what real servers answered, what is wrong with a document, and who owns a queue."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.errors import DataError, DocumentError
from rmqlb.model.group import QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.remoting.codes import RequestCode
from rmqlb.remoting.command import RemotingCommand
from rmqlb.remoting.frame import FrameDecoder
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.formats.documents import with_owners
from rmqlb.sources.formats.loose_json import ObjectKey
from tests.support.captured_frames import captured_frames
from tests.support.mismatches import every_case
from tests.support.vectors import vectors

from .captures import DASHBOARD, dashboard_data

PUBLISH = tuple(vectors("publish"))
FAILURES = {"connection-missing", "connection-order-svc-without-address", "route-missing"}


def convert(name: str, kind: type[docs.Document]) -> docs.Document:
    return docs.convert(dashboard_data(name), kind, name)


def problem(document: object, topic: str = "T") -> str:
    with pytest.raises(DocumentError) as caught:
        docs.parse_route(document, topic)  # type: ignore[arg-type]
    return caught.value.message


@every_case("name", sorted({path.stem for path in DASHBOARD.glob("*.json")} - FAILURES - {"manifest", "nsaddr"}))
def test_every_captured_answer_opens(name: str) -> None:
    assert dashboard_data(name)


@every_case(
    ("told", "version"),
    [
        ({"version": 513}, "V5_5_0"),
        ({"version": 513, "versionDesc": "V5_5_0"}, "V5_5_0"),
        ({"version": "V4_9_7"}, "V4_9_7"),
        ({"version": 9999}, "HIGHER_VERSION"),
        ({"version": -1}, "-1"),
        ({}, None),
    ],
)
def test_a_connections_version_has_the_name_that_rocketmq_gives_it(
    told: dict[str, object], version: str | None
) -> None:
    document = docs.convert({"connectionSet": [{"clientId": "a", **told}]}, docs.ConnectionsDocument, "x")
    assert [connection.version for connection in docs.connections(document)] == [version]


def test_a_queue_without_a_client_is_not_known_to_be_unowned() -> None:
    items = [{"topic": "T", "queueStatInfoList": [{"brokerName": "a", "queueId": 0, "clientInfo": None}]}]
    states = docs.queue_states(docs.convert(items, list[docs.TopicConsumerDocument], "x"))
    assert states == {MessageQueue("T", "a", 0): QueueState(owners=None)}


def test_a_queue_that_a_member_has_dropped_is_not_held() -> None:
    table = {
        "MessageQueue [topic=T, brokerName=a, queueId=0]": {"droped": True},
        "MessageQueue [topic=T, brokerName=a, queueId=1]": {},
    }
    document = docs.convert({"properties": {}, "mqTable": table}, docs.RunningInfoDocument, "x")
    assert docs.held_queues(document, "x") == {MessageQueue("T", "a", 1)}


@every_case("name", sorted(FAILURES))
def test_an_error_in_the_envelope_is_told_in_one_line(name: str) -> None:
    with pytest.raises(DocumentError) as caught:
        dashboard_data(name)
    assert caught.value.message.startswith(f"{name}: the Dashboard answered an error: C")
    assert "\n" not in caught.value.message
    assert "Exception" not in caught.value.message


@every_case(
    ("text", "line"),
    [
        ("org.apache.X: CODE: 17  DESC: none\nSee more", "org.apache.X: CODE: 17  DESC: none"),
        ("org.apache.rocketmq.client.exception.MQClientException: CODE: 17", "CODE: 17"),
        ("java.lang.OutOfMemoryError: heap", "heap"),
        ("", "no message"),
        (None, "no message"),
    ],
)
def test_java_error_texts_lose_their_class_and_their_trace(text: str | None, line: str) -> None:
    assert docs.first_line(text) == line


@every_case("vector", PUBLISH, ids=[str(vector["id"]) for vector in PUBLISH])
def test_queue_lists_are_those_of_rocketmqs_own_classes(vector: dict[str, Any]) -> None:
    route = docs.parse_route(vector["routeText"], vector["topic"])
    assert [[q.topic, q.broker_name, q.queue_id] for q in route.publish_queues()] == vector["expected"]
    assert [[q.topic, q.broker_name, q.queue_id] for q in route.subscribe_queues()] == vector["expectedSubscribe"]
    assert route.is_order_topic == vector["orderTopic"]


def test_a_route_may_be_given_parsed_as_text_as_bytes_or_in_an_envelope() -> None:
    document = {"queueDatas": [{"brokerName": "a", "readQueueNums": 2, "writeQueueNums": 1, "perm": 6}]}
    text = json.dumps(document)
    expected = TopicRouteData("T", (QueueData("a", 2, 1, 6),), ())
    for form in (document, text, text.encode(), {"status": 0, "data": document}, text + "\n"):
        assert docs.parse_route(form, "T") == expected


def test_missing_lists_are_empty() -> None:
    assert docs.parse_route('{"queueDatas":null}', "T") == TopicRouteData("T", (), ())
    assert docs.parse_route('{"brokerDatas":[{"brokerName":"a"}]}', "T").broker_datas == (BrokerData("", "a", {}),)


def test_a_static_topic_keeps_its_mapping_and_names_itself() -> None:
    document = {
        "queueDatas": [],
        "topicQueueMappingByBroker": {
            "a": {
                "bname": "a",
                "currIdMap": {"0": 0, "4": 1},
                "dirty": False,
                "epoch": 1699999999999,
                "scope": "__global__",
                "topic": "t",
                "totalQueues": 8,
            }
        },
    }
    route = docs.parse_route(document, "t")
    assert route.topic_queue_mapping_by_broker == {
        "a": TopicQueueMappingInfo("t", "__global__", 8, "a", 1699999999999, {0: 0, 4: 1})
    }
    assert docs.route_topic(docs.convert(document, docs.RouteDocument, "x")) == "t"


@every_case(
    ("document", "message"),
    [
        ('{"queueDatas":[{"brokerName":1}]}', "Expected str, got int at $.queueDatas[0].brokerName"),
        ('{"queueDatas":[{"perm":6}]}', "Object missing required field brokerName at $.queueDatas[0]"),
        (
            '{"queueDatas":[{"brokerName":"a","readQueueNums":"8"}]}',
            "Expected int, got str at $.queueDatas[0].readQueueNums",
        ),
        ('{"queueDatas":[{"brokerName":"a","perm":6.5}]}', "Expected int, got float at $.queueDatas[0].perm"),
        ('{"queueDatas":[{"brokerName":"a","perm":null}]}', "Expected int, got null at $.queueDatas[0].perm"),
        ('{"queueDatas":{}}', "Expected array | null, got object at $.queueDatas"),
        (
            '{"queueDatas":[],"brokerDatas":[{"brokerName":"a","brokerAddrs":{"x":"y"}}]}',
            "Expected int, got str at key in $.brokerDatas[0].brokerAddrs",
        ),
        (
            '{"queueDatas":[],"brokerDatas":[{"brokerName":"a","brokerAddrs":{"0":1}}]}',
            "Expected str, got int at $.brokerDatas[0].brokerAddrs[...]",
        ),
        ('{"queueDatas":[],"orderTopicConf":[1]}', "Expected str | null, got array at $.orderTopicConf"),
        (
            '{"queueDatas":[{"brokerName":"a","readQueueNums":2147483647}]}',
            "Expected int <= 100000 at $.queueDatas[0].readQueueNums",
        ),
        ("{queueDatas:[{brokerName:{}}]}", "Expected str, got object at $.queueDatas[0].brokerName"),
    ],
)
def test_a_field_of_another_type_is_named_by_its_path(document: str, message: str) -> None:
    assert problem(document) == f"route of T: {message}"


@every_case(
    ("document", "message"),
    [
        ("", "expected one document, found 0"),
        ("{}{}", "expected one document, found 2"),
        ("[]", "neither queueDatas nor brokerDatas is in it"),
        ("{}", "neither queueDatas nor brokerDatas is in it"),
        ('{"status":0,"data":null}', "neither queueDatas nor brokerDatas is in it"),
        ('{"status":-1,"data":null,"errMsg":"boom"}', "the Dashboard answered an error: boom"),
        ('{"queueDatas":[', "the text ends too early"),
        (b'{"queueDatas":"\xff"}', "it is not UTF-8 text"),
        ('{"queueDatas":["\ud800"]}', "it is not UTF-8 text"),
        ('{"queueDatas":' + "[" * 300, "nested deeper than 256"),
    ],
)
def test_what_is_no_route_is_a_document_error(document: str | bytes, message: str) -> None:
    text = problem(document)
    assert text.startswith("route of T")
    assert text.endswith(message)


def with_many(**fields: object) -> dict[str, object]:
    """A route of three brokers that each claim as many queues as one may."""
    data = {"readQueueNums": 0, "writeQueueNums": 0, **fields}
    return {"queueDatas": [{"brokerName": name, **data} for name in "abc"]}


@every_case(
    "document",
    [
        with_many(readQueueNums=100_000),
        with_many(writeQueueNums=100_000),
        {"queueDatas": [], "orderTopicConf": "a:100000;b:100000;c:+00100000:x"},
        {"queueDatas": [], "orderTopicConf": "a:300000;b"},
        {
            "queueDatas": [],
            "topicQueueMappingByBroker": {name: {"scope": name, "totalQueues": 100_000} for name in "abc"},
        },
    ],
)
def test_a_route_whose_queue_lists_would_fill_the_memory_is_refused(document: dict[str, object]) -> None:
    assert problem(document) == "route of T: 300000 queues in one route, more than 200000"


def test_a_count_that_no_client_can_read_is_left_to_them() -> None:
    route = docs.parse_route({"queueDatas": [], "orderTopicConf": "a:99999999999"}, "T")
    with pytest.raises(DataError, match="order config of topic T is malformed"):
        route.publish_queues()


def test_brokers_of_one_static_topic_may_each_repeat_how_many_queues_it_has() -> None:
    mapping = {name: {"scope": "__global__", "totalQueues": 100_000} for name in "abc"}
    route = docs.parse_route({"queueDatas": [], "topicQueueMappingByBroker": mapping}, "T")
    assert len(route.subscribe_queues()) == 100_000


def test_a_queue_as_a_key_is_read_in_both_forms() -> None:
    as_object = ObjectKey((("brokerName", "a"), ("queueId", 3), ("topic", "T")))
    for key in (as_object, "MessageQueue [topic=T, brokerName=a, queueId=3]"):
        assert docs.queue_key(key, "x") == MessageQueue("T", "a", 3)


@every_case(
    "key",
    [
        "MessageQueue [topic=T, brokerName=a]",
        f"MessageQueue [topic=T, brokerName=a, queueId={'9' * 5000}]",
        "T:a:3",
        3,
        ObjectKey((("topic", "T"),)),
        ObjectKey((("topic", 1), ("brokerName", "a"), ("queueId", 0))),
    ],
)
def test_what_is_no_queue_is_refused_as_a_key(key: object) -> None:
    with pytest.raises(DocumentError, match=r"x: .* is not a MessageQueue"):
        docs.queue_key(key, "x")


@every_case(
    ("properties", "expected"),
    [
        ({"clientIP": "10.0.0.1", "instanceName": "7"}, "10.0.0.1@7"),
        ({"clientIP": "10.0.0.1", "instanceName": "7", "unitName": "u"}, "10.0.0.1@7@u"),
        ({"clientIP": "10.0.0.1", "instanceName": "7", "enableStreamRequestType": "true"}, "10.0.0.1@7@STREAM"),
        (
            {"clientIP": "10.0.0.1", "instanceName": "7", "unitName": "u", "enableStreamRequestType": "true"},
            "10.0.0.1@7@u@STREAM",
        ),
        ({"clientIP": "10.0.0.1"}, None),
        ({}, None),
    ],
)
def test_a_clients_id_is_put_together_as_clients_do(properties: dict[str, str | None], expected: str | None) -> None:
    assert docs.client_id(properties) == expected


@every_case(
    ("properties", "strategy", "rebalance"),
    [
        ({"allocateMessageQueueStrategy": "a.b.AllocateX@1f", "clientRebalance": "false"}, "AllocateX", False),
        ({"allocateMessageQueueStrategy": "AllocateX"}, "AllocateX", None),
        ({"allocateMessageQueueStrategy": None}, None, None),
        ({"clientRebalance": "false", "PROP_CONSUMEORDERLY": "true"}, None, True),
        ({"clientRebalance": "false", "messageModel": "BROADCASTING"}, None, True),
        ({"clientRebalance": "false", "PROP_CONSUMEORDERLY": "false", "messageModel": "CLUSTERING"}, None, False),
    ],
)
def test_what_a_member_does_not_say_stays_unknown(
    properties: dict[str, str | None], strategy: str | None, rebalance: bool | None
) -> None:
    report = docs.member_report(docs.RunningInfoDocument(properties), "a")
    assert (report.strategy_class, report.client_rebalance, report.topics) == (strategy, rebalance, None)


A0, A1, A2 = (MessageQueue("T", "a", i) for i in range(3))
QUEUES = st.sampled_from((A0, A1, A2))
IDS = st.sampled_from("xyz")


def owners(states: Mapping[MessageQueue, QueueState]) -> dict[MessageQueue, set[str] | None]:
    return {queue: None if state.owners is None else set(state.owners) for queue, state in states.items()}


def owned_by(*client_ids: str) -> QueueState:
    return QueueState(frozenset(client_ids))


def test_a_queue_that_nobody_holds_has_no_owner_once_every_member_answered() -> None:
    assert owners(with_owners({A0: owned_by("x"), A1: QueueState()}, {"x": set()}, {"x"})) == {A0: set(), A1: set()}


def test_while_a_member_has_not_answered_what_was_known_stands() -> None:
    states = with_owners({A0: owned_by("y"), A1: QueueState()}, {"x": set()}, {"x", "y"})
    assert owners(states) == {A0: {"y"}, A1: None}


def test_without_members_nothing_is_concluded() -> None:
    for members in (None, set[str]()):
        assert owners(with_owners({A0: QueueState(), A1: owned_by("x")}, {}, members)) == {A0: None, A1: {"x"}}


@given(
    st.dictionaries(QUEUES, st.builds(QueueState, st.none() | st.frozensets(IDS))),
    st.dictionaries(IDS, st.frozensets(QUEUES)),
    st.none() | st.frozensets(IDS),
)
def test_no_queue_is_lost_and_no_holder_forgotten(
    queues: dict[MessageQueue, QueueState], held: dict[str, frozenset[MessageQueue]], members: frozenset[str] | None
) -> None:
    states = with_owners(queues, held, members)
    assert set(states) == {*queues, *(queue for its in held.values() for queue in its)}
    for queue, state in states.items():
        holders = {client_id for client_id, its in held.items() if queue in its}
        if holders:
            assert state.owners == holders


ENTRIES = [*captured_frames().values()]


def frame(entry: dict[str, Any]) -> RemotingCommand:
    (command,) = FrameDecoder().feed(entry["frame"])
    return command


def document(entry: dict[str, Any], kind: type[docs.Document]) -> docs.Document:
    (value,), _ = docs.parse_documents(frame(entry).body or b"{}", entry["name"])
    return docs.convert(value, kind, entry["name"])


def a_route(entry: dict[str, Any]) -> None:
    route = docs.route(document(entry, docs.RouteDocument), entry["extFields"]["topic"])
    assert {len(route.subscribe_queues()), len(route.publish_queues())} <= {16, 4}
    assert all(broker.has_master for broker in route.broker_datas)


def a_cluster(entry: dict[str, Any]) -> None:
    table = document(entry, docs.ClusterInfoDocument).broker_addr_table
    assert all(docs.broker(data).has_master for data in table.values())


def topics(entry: dict[str, Any]) -> None:
    assert "TBW102" in document(entry, docs.TopicListDocument).topic_list


def members(entry: dict[str, Any]) -> None:
    found = docs.connections(document(entry, docs.ConnectionsDocument))
    assert {connection.language for connection in found} == {"JAVA"}
    assert len(found) == {"order-svc": 3, "audit-svc": 5}[entry["extFields"]["consumerGroup"]]


def offsets(entry: dict[str, Any]) -> None:
    states = docs.consume_stats(document(entry, docs.ConsumeStatsDocument), entry["name"])
    assert {queue.topic for queue in states} == {"OrderEvents"}
    assert {state.lag for state in states.values()} == {0}
    assert {state.owners for state in states.values()} == {None}


def running(entry: dict[str, Any]) -> None:
    info = document(entry, docs.RunningInfoDocument)
    assert docs.client_id(info.properties) == entry["extFields"]["clientId"]
    assert docs.member_report(info, "x").strategy_class == "AllocateMessageQueueAveragely"
    assert MessageQueue("OrderEvents", "broker-a", 0) in docs.held_queues(info, entry["name"])


def groups(entry: dict[str, Any]) -> None:
    assert "TOOLS_CONSUMER" in document(entry, docs.SubscriptionGroupsDocument).subscription_group_table


MEANINGS: dict[int, Callable[[dict[str, Any]], None]] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: a_route,
    RequestCode.GET_BROKER_CLUSTER_INFO: a_cluster,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: topics,
    RequestCode.GET_CONSUMER_CONNECTION_LIST: members,
    RequestCode.GET_CONSUME_STATS: offsets,
    RequestCode.GET_CONSUMER_RUNNING_INFO: running,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: groups,
}


@every_case("entry", ENTRIES, ids=lambda entry: entry["name"])
def test_every_answer_that_a_source_asks_for_means_something(entry: dict[str, Any]) -> None:
    command = frame(entry)
    assert command.code == entry["responseCode"]
    if command.code == 0 and entry["code"] in MEANINGS:
        MEANINGS[entry["code"]](entry)
    elif command.body:
        assert docs.parse_documents(command.body, entry["name"])[0]
    else:
        assert command.remark or command.ext_fields


def test_each_meaning_was_captured() -> None:
    assert set(MEANINGS) <= {entry["code"] for entry in ENTRIES}
