"""RocketMQ's JSON into model values: what real servers answered, and what is wrong with a document, with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rmqlb.errors import DataError, DocumentError
from rmqlb.model.group import Connection, QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.formats.loose_json import ObjectKey
from tests.support.mismatches import every_case
from tests.support.vectors import vectors

from .captures import DASHBOARD, MQADMIN, dashboard_body, dashboard_data, queue

PUBLISH = tuple(vectors("publish"))
FAILURES = {"connection-missing", "connection-order-svc-without-address", "route-missing"}
BROKER_A = BrokerData("DefaultCluster", "broker-a", {0: "127.0.0.1:10911"})
BROKER_B = BrokerData("DefaultCluster", "broker-b", {0: "127.0.0.1:20911"})


def convert(name: str, kind: type[docs.Document]) -> docs.Document:
    return docs.convert(dashboard_data(name), kind, name)


def problem(document: object, topic: str = "T") -> str:
    with pytest.raises(DocumentError) as caught:
        docs.parse_route(document, topic)  # type: ignore[arg-type]
    return caught.value.message


# -- captures -----------------------------------------------------------------------------------------------------------


@every_case("name", sorted({path.stem for path in DASHBOARD.glob("*.json")} - FAILURES - {"manifest", "nsaddr"}))
def test_every_captured_answer_opens(name: str) -> None:
    assert dashboard_data(name)


def test_a_captured_route_becomes_a_route() -> None:
    assert docs.parse_route(dashboard_body("route-Skewed"), "Skewed") == TopicRouteData(
        topic="Skewed",
        queue_datas=(QueueData("broker-b", 3, 3, 6, 0), QueueData("broker-a", 6, 4, 6, 0)),
        broker_datas=(BROKER_B, BROKER_A),
    )


@pytest.mark.parametrize(
    ("version", "brokers", "cluster"),
    [("4.9.7", {"legacy-a"}, "LegacyCluster"), ("5.5.0", {"broker-a", "broker-b"}, "DefaultCluster")],
)
def test_a_name_servers_raw_body_becomes_a_route(version: str, brokers: set[str], cluster: str) -> None:
    route = docs.parse_route((MQADMIN / f"{version}-nameserver-route.body").read_bytes(), "T")
    assert {data.broker_name for data in route.queue_datas} == brokers
    assert all(data.readable and data.writable and data.read_queue_nums > 0 for data in route.queue_datas)
    assert {(broker.broker_name, broker.cluster) for broker in route.broker_datas} == {
        (name, cluster) for name in brokers
    }
    assert all(broker.has_master and not broker.enable_acting_master for broker in route.broker_datas)
    assert len(route.publish_queues()) == sum(data.write_queue_nums for data in route.queue_datas)


def test_the_cluster_list_tells_the_brokers() -> None:
    table = convert("cluster-list", docs.ClusterListDocument).cluster_info.broker_addr_table
    assert {name: docs.broker(document) for name, document in table.items()} == {
        "broker-a": BROKER_A,
        "broker-b": BROKER_B,
    }


def test_the_topic_list_tells_the_topics() -> None:
    topics = convert("topic-list", docs.TopicListDocument).topic_list
    assert len(topics) == 22
    assert {"OrderEvents", "Skewed", "%RETRY%order-svc"} <= set(topics)


def test_connections_are_sorted_by_id() -> None:
    document = convert("connection-order-svc", docs.ConnectionsDocument)
    assert docs.connections(document) == (
        Connection("192.0.2.2@inst0", "127.0.0.1:51374", "JAVA", "V5_5_0"),
        Connection("192.0.2.2@inst1", "127.0.0.1:51394", "JAVA", "V5_5_0"),
        Connection("192.0.2.2@inst2", "127.0.0.1:51410", "JAVA", "V5_5_0"),
    )
    assert (document.consume_type, document.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
    assert document.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
    assert docs.group_of(document.subscription_table or ()) == "order-svc"


@every_case(("group", "members"), [("audit-svc", 5), ("bill-svc", 4), ("order-svc", 3)])
def test_every_captured_group_has_its_members(group: str, members: int) -> None:
    found = docs.connections(convert(f"connection-{group}", docs.ConnectionsDocument))
    assert [connection.client_id for connection in found] == [f"192.0.2.2@inst{i}" for i in range(members)]


def test_two_processes_with_one_id_are_two_connections() -> None:
    item = {"clientId": "a", "clientAddr": "x:2", "language": "GO", "version": 513}
    document = docs.convert({"connectionSet": [item, {**item, "clientAddr": "x:1"}]}, docs.ConnectionsDocument, "x")
    assert [(each.client_id, each.client_addr) for each in docs.connections(document)] == [
        ("a", "x:1"),
        ("a", "x:2"),
    ]


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


def test_progress_tells_offsets_and_owners_of_both_brokers() -> None:
    states = docs.queue_states(convert("progress-order-svc", list[docs.TopicConsumerDocument]))
    assert len(states) == 2 + 16 + 9
    assert states[queue("OrderEvents broker-b 3")] == QueueState(
        owners=frozenset({"192.0.2.2@inst2"}), broker_offset=32, consumer_offset=32, last_timestamp=1795226477721
    )
    assert {q.broker_name for q in states} == {"broker-a", "broker-b"}


def test_progress_of_a_topic_tells_its_groups() -> None:
    groups = convert("consumers-of-OrderEvents", dict[str, docs.TopicConsumerDocument])
    assert sorted(groups) == ["audit-svc", "order-svc"]
    states = docs.queue_states([groups["audit-svc"]])
    assert len(states) == 16
    assert states[queue("OrderEvents broker-a 0")].owners == {"192.0.2.2@inst1"}


def test_a_queue_without_a_client_is_not_known_to_be_unowned() -> None:
    items = [{"topic": "T", "queueStatInfoList": [{"brokerName": "a", "queueId": 0, "clientInfo": None}]}]
    states = docs.queue_states(docs.convert(items, list[docs.TopicConsumerDocument], "x"))
    assert states == {MessageQueue("T", "a", 0): QueueState(owners=None)}


def test_a_member_reports_its_strategy_topics_and_queues() -> None:
    document = convert("running-order-svc-inst0", docs.RunningInfoDocument)
    report = docs.member_report(document, "192.0.2.2@inst0")
    assert report.strategy_class == "AllocateMessageQueueAveragely"
    assert report.topics == {"OrderEvents", "Skewed", "%RETRY%order-svc"}
    assert report.client_rebalance is True
    assert docs.client_id(document.properties) == "192.0.2.2@inst0"
    assert docs.held_queues(document, "x") == {
        queue("%RETRY%order-svc broker-a 0"),
        *(queue(f"OrderEvents broker-a {i}") for i in range(6)),
        *(queue(f"Skewed broker-a {i}") for i in range(3)),
    }


def test_a_queue_that_a_member_has_dropped_is_not_held() -> None:
    table = {
        "MessageQueue [topic=T, brokerName=a, queueId=0]": {"droped": True},
        "MessageQueue [topic=T, brokerName=a, queueId=1]": {},
    }
    document = docs.convert({"properties": {}, "mqTable": table}, docs.RunningInfoDocument, "x")
    assert docs.held_queues(document, "x") == {MessageQueue("T", "a", 1)}


def test_groups_are_counted() -> None:
    group = convert("group-order-svc", docs.GroupItem)
    assert (group.group, group.count, group.consume_type) == ("order-svc", 3, "CONSUME_PASSIVELY")
    groups = convert("group-list", list[docs.GroupItem])
    assert len(groups) == 8
    assert {group.count for group in groups} == {0}


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


# -- vectors ------------------------------------------------------------------------------------------------------------


@every_case("vector", PUBLISH, ids=[str(vector["id"]) for vector in PUBLISH])
def test_queue_lists_are_those_of_rocketmqs_own_classes(vector: dict[str, Any]) -> None:
    route = docs.parse_route(vector["routeText"], vector["topic"])
    assert [[q.topic, q.broker_name, q.queue_id] for q in route.publish_queues()] == vector["expected"]
    assert [[q.topic, q.broker_name, q.queue_id] for q in route.subscribe_queues()] == vector["expectedSubscribe"]
    assert route.is_order_topic == vector["orderTopic"]


def test_there_are_400_vectors_and_some_of_each_kind() -> None:
    assert len(PUBLISH) == 400
    assert {vector["orderTopic"] for vector in PUBLISH} == {True, False}


# -- routes -------------------------------------------------------------------------------------------------------------


def test_a_route_may_be_given_parsed_as_text_as_bytes_or_in_an_envelope() -> None:
    document = {"queueDatas": [{"brokerName": "a", "readQueueNums": 2, "writeQueueNums": 1, "perm": 6}]}
    text = json.dumps(document)
    expected = TopicRouteData("T", (QueueData("a", 2, 1, 6),), ())
    for given in (document, text, text.encode(), {"status": 0, "data": document}, text + "\n"):
        assert docs.parse_route(given, "T") == expected


def test_missing_lists_are_empty() -> None:
    assert docs.parse_route('{"queueDatas":null}', "T") == TopicRouteData("T", (), ())
    assert docs.parse_route('{"brokerDatas":[{"brokerName":"a"}]}', "T").broker_datas == (BrokerData("", "a", {}),)


def test_fields_of_newer_servers_are_passed_over() -> None:
    document = '{"queueDatas":[{"brokerName":"a","perm":6,"newThing":{"x":[1]}}],"other":1}'
    assert docs.parse_route(document, "T").queue_datas == (QueueData("a", 0, 0, 6),)


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


def test_fewer_queues_than_none_are_none() -> None:
    route = docs.parse_route(with_many(readQueueNums=-(2**31), writeQueueNums=-1), "T")
    assert (route.subscribe_queues(), route.publish_queues()) == ([], [])


# -- queues as keys -----------------------------------------------------------------------------------------------------


def test_a_queue_as_a_key_is_read_in_both_forms() -> None:
    as_object = ObjectKey((("brokerName", "a"), ("queueId", 3), ("topic", "T")))
    for key in (as_object, "MessageQueue [topic=T, brokerName=a, queueId=3]"):
        assert docs.queue_key(key, "x") == MessageQueue("T", "a", 3)


def test_a_name_with_commas_and_brackets_stays_whole() -> None:
    text = str(MessageQueue("T, brokerName=x]", "b [c]\n", -1))
    assert docs.queue_key(text, "x") == MessageQueue("T, brokerName=x]", "b [c]\n", -1)


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


# -- clients ------------------------------------------------------------------------------------------------------------


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
    ("topics", "group"), [(["T", "%RETRY%g"], "g"), (["T"], None), ([], None), (["%RETRY%g", "%RETRY%h"], None)]
)
def test_a_group_is_named_by_its_one_retry_topic(topics: list[str], group: str | None) -> None:
    assert docs.group_of(topics) == group


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
