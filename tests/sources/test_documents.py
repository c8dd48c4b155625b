from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.errors import DataError, DocumentError
from rmqlb.model.group import QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.formats.documents import with_owners
from rmqlb.sources.formats.loose_json import ObjectKey
from tests.support.mismatches import every_case

T0 = "MessageQueue [topic=T, brokerName=a, queueId={}]"


def problem(document: object, topic: str = "T") -> str:
    with pytest.raises(DocumentError) as caught:
        docs.parse_route(document, topic)  # type: ignore[arg-type]
    return caught.value.message


def test_a_connections_version_has_the_name_that_rocketmq_gives_it() -> None:
    versions: dict[str | None, dict[str, object]] = {
        "V5_5_0": {"version": 513},
        "V5_5_1": {"version": 513, "versionDesc": "V5_5_1"},
        "V4_9_7": {"version": "V4_9_7"},
        "HIGHER_VERSION": {"version": 9999},
        "-1": {"version": -1},
        None: {},
    }
    items = [{"clientId": "a", **reported} for reported in versions.values()]
    document = docs.convert({"connectionSet": items}, docs.ConnectionsDocument, "x")
    assert [connection.version for connection in docs.connections(document)] == [*versions]


def test_a_queue_without_a_client_is_not_known_to_be_unowned_and_a_dropped_one_not_held() -> None:
    items = [{"topic": "T", "queueStatInfoList": [{"brokerName": "a", "queueId": 0, "clientInfo": None}]}]
    states = docs.queue_states(docs.convert(items, list[docs.TopicConsumerDocument], "x"))
    assert states == {MessageQueue("T", "a", 0): QueueState(owners=None)}
    table = {T0.format(0): {"droped": True}, T0.format(1): {}}
    document = docs.convert({"properties": {}, "mqTable": table}, docs.RunningInfoDocument, "x")
    assert docs.held_queues(document, "x") == {MessageQueue("T", "a", 1)}


def test_java_error_texts_lose_their_class_and_their_trace() -> None:
    for text, line in (
        ("org.apache.X: CODE: 17  DESC: none\nSee more", "org.apache.X: CODE: 17  DESC: none"),
        ("org.apache.rocketmq.client.exception.MQClientException: CODE: 17", "CODE: 17"),
        ("java.lang.OutOfMemoryError: heap", "heap"),
        ("", "no message"),
        (None, "no message"),
    ):
        assert docs.first_line(text) == line


def test_a_route_may_be_given_parsed_as_text_as_bytes_or_in_an_envelope_and_its_lists_may_be_missing() -> None:
    document = {"queueDatas": [{"brokerName": "a", "readQueueNums": 2, "writeQueueNums": 1, "perm": 6}]}
    text = json.dumps(document)
    for form in (document, text, text.encode(), {"status": 0, "data": document}, text + "\n"):
        assert docs.parse_route(form, "T") == TopicRouteData("T", (QueueData("a", 2, 1, 6),), ())
    assert docs.parse_route('{"queueDatas":null}', "T") == TopicRouteData("T", (), ())
    assert docs.parse_route('{"brokerDatas":[{"brokerName":"a"}]}', "T").broker_datas == (BrokerData("", "a", {}),)


def test_a_static_topic_keeps_its_mapping_and_names_itself() -> None:
    ids = {"currIdMap": {"0": 0, "4": 1}, "dirty": False, "epoch": 1699999999999, "totalQueues": 8}
    document = {"topicQueueMappingByBroker": {"a": {"bname": "a", "scope": "__global__", "topic": "t", **ids}}}
    mapping = TopicQueueMappingInfo("t", "__global__", 8, "a", 1699999999999, {0: 0, 4: 1})
    assert docs.parse_route({"queueDatas": [], **document}, "t").topic_queue_mapping_by_broker == {"a": mapping}
    assert docs.route_topic(docs.convert(document, docs.RouteDocument, "x")) == "t"


def with_many(**fields: object) -> dict[str, object]:
    data = {"readQueueNums": 0, "writeQueueNums": 0, **fields}
    return {"queueDatas": [{"brokerName": name, **data} for name in "abc"]}


def static(*scopes: str) -> dict[str, object]:
    mapping = {name: {"scope": scope, "totalQueues": 100_000} for name, scope in zip("abc", scopes, strict=True)}
    return {"queueDatas": [], "topicQueueMappingByBroker": mapping}


def test_a_route_that_would_fill_the_memory_is_a_document_error() -> None:
    negative = {"brokerName": "d", "readQueueNums": -100_000}
    for document in (
        with_many(readQueueNums=100_000),
        with_many(writeQueueNums=100_000),
        {"queueDatas": [*({"brokerName": n, "readQueueNums": 100_000} for n in "abc"), negative]},
        {"queueDatas": [], "orderTopicConf": "a:100000;b:100000;c:+00100000:x"},
        {"queueDatas": [], "orderTopicConf": "a:300000;b"},
        static("a", "b", "c"),
    ):
        assert problem(document) == "route of T: 300000 queues in one route, more than 200000"
    for text in (b'{"queueDatas":"\xff"}', '{"queueDatas":["\ud800"]}'):
        assert problem(text).endswith(": it is not UTF-8 text")


def test_what_clients_read_or_refuse_by_themselves_is_left_to_them() -> None:
    route = docs.parse_route({"queueDatas": [], "orderTopicConf": "a:99999999999"}, "T")
    with pytest.raises(DataError, match="order config of topic T is malformed"):
        route.publish_queues()
    each_repeats_it = docs.parse_route(static(*["__global__"] * 3), "T")
    assert len(each_repeats_it.subscribe_queues()) == 100_000


def test_a_queue_as_a_key_is_read_in_both_forms() -> None:
    for key in (ObjectKey((("brokerName", "a"), ("queueId", 3), ("topic", "T"))), T0.format(3)):
        assert docs.queue_key(key, "x") == MessageQueue("T", "a", 3)
    texts = ("MessageQueue [topic=T, brokerName=a]", T0.format("9" * 5000), "T:a:3")
    partly, wrong = (("topic", "T"),), (("topic", 1), ("brokerName", "a"), ("queueId", 0))
    odd: tuple[object, ...] = (*texts, 3, ObjectKey(partly), ObjectKey(wrong))
    for other in odd:
        with pytest.raises(DocumentError, match=r"x: .* is not a MessageQueue"):
            docs.queue_key(other, "x")


HOST = {"clientIP": "10.0.0.1", "instanceName": "7"}
STREAM = {"enableStreamRequestType": "true"}


def test_a_clients_id_is_put_together_as_clients_do() -> None:
    for properties, expected in (
        (HOST, "10.0.0.1@7"),
        (HOST | {"unitName": "u"}, "10.0.0.1@7@u"),
        (HOST | STREAM, "10.0.0.1@7@STREAM"),
        (HOST | STREAM | {"unitName": "u"}, "10.0.0.1@7@u@STREAM"),
        ({"clientIP": "10.0.0.1"}, None),
        ({}, None),
    ):
        assert docs.client_id(properties) == expected


LED: dict[str, str | None] = {"clientRebalance": "false"}
ACTIVE, LITE = {"PROP_CONSUME_TYPE": "CONSUME_ACTIVELY"}, {"autoCommit": "true"}


def test_what_a_consumer_does_not_say_stays_unknown() -> None:
    cases: tuple[tuple[dict[str, str | None], str | None, bool | None], ...] = (
        (LED | {"allocateMessageQueueStrategy": "a.b.AllocateX@1f"}, "AllocateX", False),
        ({"allocateMessageQueueStrategy": "AllocateX"}, "AllocateX", None),
        ({"allocateMessageQueueStrategy": None}, None, None),
        (LED | {"PROP_CONSUMEORDERLY": "true"}, None, True),
        (LED | {"messageModel": "BROADCASTING"}, None, True),
        (LED | {"PROP_CONSUMEORDERLY": "false", "messageModel": "CLUSTERING"}, None, False),
    )
    for properties, strategy, rebalance in cases:
        report = docs.member_report(docs.RunningInfoDocument(properties), "a")
        assert (report.strategy_class, report.client_rebalance, report.topics) == (strategy, rebalance, None)


def test_a_setting_that_one_consumer_has_tells_which_it_is() -> None:
    cases: tuple[tuple[dict[str, str], list[docs.SubscriptionItem] | None, str | None], ...] = (
        ({}, None, None),
        ({"PROP_CONSUME_TYPE": "CONSUME_PASSIVELY"}, [], "push"),
        (ACTIVE, None, None),
        (ACTIVE | {"registerTopics": "T"}, None, "pull"),
        (ACTIVE | LITE, [], "assign"),
        (ACTIVE | LITE, [docs.SubscriptionItem("T")], "lite-pull"),
    )
    for properties, topics, consumer in cases:
        document = docs.RunningInfoDocument({**properties}, subscription_set=topics)
        assert docs.member_report(document, "a").consumer_type == consumer


A0, A1, A2 = (MessageQueue("T", "a", i) for i in range(3))
QUEUES, IDS = st.sampled_from((A0, A1, A2)), st.sampled_from("xyz")
Known = Mapping[MessageQueue, set[str] | None]


def states(known: Known) -> dict[MessageQueue, QueueState]:
    return {queue: QueueState(None if ids is None else frozenset(ids)) for queue, ids in known.items()}


@every_case(
    ("known", "held", "members", "popped", "expected"),
    [
        ({A0: {"x"}, A1: None}, {"x": set()}, {"x"}, set(), {A0: set(), A1: set()}),
        ({A0: {"y"}, A1: None}, {"x": set()}, {"x", "y"}, set(), {A0: {"y"}, A1: None}),
        ({A0: None, A1: {"x"}}, {}, None, set(), {A0: None, A1: {"x"}}),
        ({A0: None, A1: {"x"}}, {}, set(), set(), {A0: None, A1: {"x"}}),
        ({A0: None, A1: {"y"}}, {"x": {A1}}, {"x"}, {"T"}, {A0: None, A1: {"x"}}),
    ],
)
def test_a_queue_that_nobody_holds_has_no_owner_once_every_consumer_answered(
    known: Known, held: dict[str, set[MessageQueue]], members: set[str] | None, popped: set[str], expected: Known
) -> None:
    assert with_owners(states(known), held, members, popped) == states(expected)


@given(
    st.dictionaries(QUEUES, st.builds(QueueState, st.none() | st.frozensets(IDS))),
    st.dictionaries(IDS, st.frozensets(QUEUES)),
    st.none() | st.frozensets(IDS),
)
def test_no_queue_is_lost_and_no_holder_forgotten(
    queues: dict[MessageQueue, QueueState], held: dict[str, frozenset[MessageQueue]], members: frozenset[str] | None
) -> None:
    found = with_owners(queues, held, members)
    assert set(found) == {*queues, *(queue for own in held.values() for queue in own)}
    for queue, state in found.items():
        holders = {client_id for client_id, own in held.items() if queue in own}
        assert not holders or state.owners == holders
