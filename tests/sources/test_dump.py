import gzip
import io
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.errors import DataError, DocumentError
from rmqlb.model.group import BROADCASTING, CLUSTERING, Connection, MemberReport, QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.sources.dump import DumpSource, failed_command, read_table, without_noise
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.formats.documents import with_owners
from rmqlb.sources.formats.loose_json import ObjectKey
from tests.support.mismatches import every_case, refusal

from .captures import DATA, MQADMIN, dashboard_body, dashboard_path, mqadmin_text, queue

EXAMPLE = DATA.parent.parent / "examples" / "cluster.json"
ROUTE = b'{"queueDatas":[{"brokerName":"a","readQueueNums":2,"writeQueueNums":1,"perm":6}]}'
SKEWED = Wanted(topics=("Skewed",))
BESIDE_THE_POINT = ("cluster-list", "home", "subscription-config-order-svc", "topic-list", "topic-stats-OrderEvents")
Writer = Callable[[bytes], str]


@pytest.fixture
def written(tmp_path: Path) -> Writer:
    def write(body: bytes) -> str:
        path = tmp_path / "topology.yaml.gz"
        path.write_bytes(body)
        return str(path)

    return write


ALL = Wanted()
IDS = tuple(f"192.0.2.2@inst{i}" for i in range(3))


def read(path: str, wanted: Wanted = ALL) -> ClusterSnapshot:
    return DumpSource(path).fetch(wanted)


def problem(path: str, wanted: Wanted = ALL) -> str:
    return refusal(DataError, read, path, wanted).message.removeprefix(path)


def brokers(snapshot: ClusterSnapshot, topic: str) -> dict[str, int]:
    return {data.broker_name: data.read_queue_nums for data in snapshot.route(topic).queue_datas}


NOISE = b"OpenJDK 64-Bit Server VM warning: deprecated\nRocketMQLog:WARN No appenders could be found.\n"


@pytest.mark.parametrize("name", ["dashboard", "5.5.0-topicRoute-Skewed.txt", "5.5.0-topicRoute-Skewed-list.txt"])
def test_one_route_is_the_same_in_every_form(name: str, written: Writer) -> None:
    path = dashboard_path("route-Skewed") if name == "dashboard" else str(MQADMIN / name)
    body = Path(path).read_bytes()
    for each in (path, written(body), written(NOISE + body)):
        snapshot = read(each, SKEWED)
        assert brokers(snapshot, "Skewed") == {"broker-a": 6, "broker-b": 3}
        assert (snapshot.kind, snapshot.endpoint, snapshot.taken_at) == ("dump", each, None)
        assert snapshot.routes["Skewed"].seen.where == each


def test_a_route_needs_the_name_of_its_topic_and_a_mapping_has_them_all(written: Writer) -> None:
    path = dashboard_path("route-Skewed")
    for wanted in (Wanted(), Wanted(topics=("Skewed", "OrderEvents"))):
        caught = refusal(DocumentError, read, path, wanted)
        assert caught.message == f"{path} is the route of one topic, but does not name the topic"
        assert caught.hint == "name the topic with --topic NAME"
    path = written(b'{"A":' + ROUTE + b',"B":' + ROUTE.replace(b'"a"', b'"b"') + b"}")
    snapshot = read(path)
    assert {topic: brokers(snapshot, topic) for topic in snapshot.routes} == {"A": {"a": 2}, "B": {"b": 2}}
    assert snapshot.routes["A"].seen.where == f"{path}, A"


def test_each_answer_about_a_group_says_what_it_knows() -> None:
    group = read(dashboard_path("connection-order-svc")).group("order-svc")
    assert (group.client_ids, group.topics) == (IDS, ("%RETRY%order-svc", "OrderEvents", "Skewed"))
    assert (group.message_model, group.consume_type, group.queues) == ("CLUSTERING", "CONSUME_PASSIVELY", {})
    assert (group.views or ())[0].connections[0] == Connection(IDS[0], "127.0.0.1:51374", "JAVA", "V5_5_0")
    group = read(dashboard_path("progress-audit-svc")).group("audit-svc")
    assert (group.client_ids, group.topics) == (None, ("%RETRY%audit-svc", "OrderEvents"))
    state = QueueState(frozenset(IDS[:1]), 31, 31, 1795226477717)
    assert group.queues[queue("OrderEvents broker-b 0")] == state
    group = read(dashboard_path("running-order-svc-inst0")).group("order-svc")
    assert group.reports[IDS[0]].strategy_class == "AllocateMessageQueueAveragely"
    assert [state.owners for state in group.queues.values()] == [frozenset(IDS[:1])] * 10
    assert group.client_ids is None
    groups = read(dashboard_path("group-list")).groups
    assert (len(groups), groups["TOOLS_CONSUMER"].client_ids) == (8, ())


@every_case("name", BESIDE_THE_POINT)
def test_an_answer_about_something_else_is_noted(name: str) -> None:
    snapshot = read(dashboard_path(name))
    assert (snapshot.routes, snapshot.groups) == ({}, {})
    assert all(note.endswith("says nothing about routes or consumers and was skipped") for note in snapshot.notes)
    assert snapshot.notes


def test_several_answers_in_one_file_make_one_snapshot(written: Writer) -> None:
    names = ("connection-order-svc", "progress-order-svc", "running-order-svc-inst0", "group-order-svc", "home")
    route = json.dumps({"Skewed": json.loads(dashboard_body("route-Skewed"))["data"]}).encode()
    path = written(b"\n".join(map(dashboard_body, names)) + route + dashboard_body("consumers-of-OrderEvents"))
    snapshot = read(path)
    assert brokers(snapshot, "Skewed") == {"broker-a": 6, "broker-b": 3}
    assert sorted(snapshot.groups) == ["audit-svc", "order-svc"]
    group = snapshot.group("order-svc")
    assert (group.client_ids, list(group.reports)) == (IDS, [IDS[0]])
    assert group.queues[queue("OrderEvents broker-a 5")].owners == {IDS[0]}
    assert group.queues[queue("OrderEvents broker-b 5")].lag == 0
    assert snapshot.notes == (f"{path}, document 5 says nothing about routes or consumers and was skipped",)


def test_queues_that_nobody_holds_are_unowned_once_every_member_has_answered(written: Writer) -> None:
    connections = {"connectionSet": [{"clientId": "1@a"}], "subscriptionTable": {"%RETRY%g": {}}}
    progress = [
        {"topic": topic, "queueStatInfoList": [{"brokerName": "x", "queueId": i} for i in (0, 1)]}
        for topic in ("T", "%RETRY%g")
    ]
    report = {
        "properties": {"consumerGroup": "g", "clientIP": "1", "instanceName": "a"},
        "mqTable": {str(MessageQueue("T", "x", 1)): {"droped": False}},
    }
    parts = [json.dumps(part).encode() for part in (connections, progress, report)]
    queues = read(written(b"".join(parts))).group("g").queues
    assert queues[MessageQueue("T", "x", 1)].owners == {"1@a"}
    assert queues[MessageQueue("T", "x", 0)].owners == set()
    queues = read(written(b"".join(parts[:2]))).group("g").queues
    assert queues[MessageQueue("T", "x", 0)].owners is None
    either = [{**connections, "messageModel": model} for model in (CLUSTERING, BROADCASTING)]
    assert read(written("".join(map(json.dumps, either)).encode())).group("g").message_model == CLUSTERING


def test_routes_and_snapshots_may_stand_in_one_file(written: Writer) -> None:
    message = problem(written(ROUTE + ROUTE), Wanted(topics=("T",)))
    assert message == ", document 2 is a second route without the name of its topic"
    snapshot = read(written(EXAMPLE.read_bytes() + b'{"T":' + ROUTE + b"}"))
    assert sorted(snapshot.routes) == ["OrderEvents", "Skewed", "T"]
    assert sorted(snapshot.groups) == ["audit-svc", "bill-svc", "order-svc"]
    assert snapshot.taken_at is not None


@pytest.mark.parametrize("document", [
    b'{"connectionSet":[],"subscriptionTable":{"T":{}}}',
    b'{"connectionSet":[]}',
    b'[{"topic":"T","queueStatInfoList":[]}]',
    b'{"properties":{"clientIP":"1","instanceName":"a"},"mqTable":{}}',
])  # fmt: skip
def test_a_document_that_does_not_name_its_group_needs_to_be_told(document: bytes, written: Writer) -> None:
    path = written(document)
    assert problem(path) == " is about one group, but does not name the group"
    assert list(read(path, Wanted(group="g")).groups) == ["g"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_dash_reads_stdin(pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pack(dashboard_body("route-Skewed")))))
    snapshot = read("-", SKEWED)
    assert (snapshot.endpoint, snapshot.routes["Skewed"].seen.where) == ("stdin", "stdin")
    assert brokers(snapshot, "Skewed") == {"broker-a": 6, "broker-b": 3}


def test_a_file_without_end_or_out_of_reach_is_one_line(written: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert problem("-") == "cannot read stdin: it is closed"
    assert problem("/nonexistent/dump.json") == "cannot read /nonexistent/dump.json: No such file or directory"
    assert problem(written(b"\x1f\x8bnot gzip after all")) == ": the compressed data is damaged"
    assert problem(written('{"é":1}'.encode("utf-16"))) == ", byte 0: it is not UTF-8 text"
    bomb = written(gzip.compress(b" " * 10_000, mtime=0))
    for path, limit, size in ((bomb, 1000, "1000 bytes"), ("/dev/zero", 1 << 20, "1 MB")):
        with pytest.raises(DocumentError, match=f"{path}: larger than {size}"):
            DumpSource(path, max_bytes=limit).fetch(Wanted())


@every_case("path", sorted(MQADMIN.glob("5.5.0-c*.txt")), ids=lambda path: path.stem)
def test_what_other_mqadmin_commands_print_is_refused(path: Path) -> None:
    """As YAML, which a table nearly is, its error was one of a parser's about line 6."""
    raised = refusal(DataError, read, str(path))
    if "offline" not in path.stem:
        assert raised.message.endswith(": a table of an mqadmin command other than topicRoute")
        assert (raised.code, "--consumers" in (raised.hint or "")) == ("not-recognised", True)


TABLES = sorted(path.stem for path in MQADMIN.glob("*-list.txt"))
JVM_NOISE = """\
OpenJDK 64-Bit Server VM warning: Options -Xverify:none were deprecated in JDK 13.
Picked up JAVA_TOOL_OPTIONS: -Dfile.encoding=UTF-8
[0.004s][warning][cds] shared class paths mismatch
RocketMQLog:WARN No appenders could be found for logger (io.netty.util.internal.InternalThreadLocalMap).
SLF4J: Failed to load class org.slf4j.impl.StaticLoggerBinder.

"""
HEADER = "#ClusterName  #BrokerName  #BrokerAddrs  #ReadQueue #WriteQueue #Perm\n"
ROW = "c  a  {0=10.0.0.1:10911, 1=10.0.0.2:10911}  8  4  6    \n"


def table(text: str) -> TopicRouteData:
    return docs.route(read_table(text, "table"), "T")


def by_name(route: TopicRouteData) -> tuple[set[QueueData], list[BrokerData]]:
    return {*route.queue_datas}, sorted(route.broker_datas, key=lambda broker: broker.broker_name)


def table_problem(text: str) -> str:
    return refusal(DocumentError, table, text).message.removeprefix("table")


@every_case("name", TABLES)
def test_the_table_and_the_json_of_one_route_agree(name: str) -> None:
    from_json = docs.parse_route(mqadmin_text(name.removesuffix("-list")), "T")
    assert by_name(table(mqadmin_text(name))) == by_name(from_json)
    assert from_json.subscribe_queues()


def test_a_stack_trace_gives_its_reason_and_a_table_has_either_line_end() -> None:
    reason = "CODE: 17  DESC: No topic route info in name server for the topic: NoSuchTopic"
    for version in ("4.9.7", "5.5.0"):
        assert failed_command(mqadmin_text(f"{version}-topicRoute-NoSuchTopic.stderr")) == reason
    for line_end in ("\n", "\r\n"):
        text = (" " + HEADER + ROW + "-----").replace("\n", line_end)
        [data], [broker] = table(text).queue_datas, table(text).broker_datas
        assert (data.broker_name, data.read_queue_nums, data.write_queue_nums, data.perm) == ("a", 8, 4, 6)
        assert broker.broker_addrs == {0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}


def test_a_table_that_is_wrong_says_where() -> None:
    noisy = without_noise(JVM_NOISE + HEADER + "not a row\n")
    assert table_problem(noisy) == ", line 8: not a row of the table that mqadmin topicRoute -l prints"
    for cut in (HEADER, HEADER + ROW):
        assert table_problem(cut) == ": the table of mqadmin topicRoute -l is cut short: its Total line is missing"
    for addresses in ("x=10.0.0.1:1", "10.0.0.1:1", "0=a:1, -1=b:1", "²=a:1"):
        message = table_problem(HEADER + f"c a {{{addresses}}} 8 8 6\n---\n")
        assert (message[:9], message.endswith(" is not ID=ADDRESS")) == (", line 2:", True)
    message = table_problem(HEADER + "c a {0=x:1} 2147483647 8 6\n---\n")
    assert message == ", line 2: Expected int <= 100000 at $.readQueueNums"


T0 = "MessageQueue [topic=T, brokerName=a, queueId={}]"


def route_problem(document: object, topic: str = "T") -> str:
    return refusal(DocumentError, docs.parse_route, document, topic).message  # type: ignore[arg-type]


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
        assert route_problem(document) == "route of T: 300000 queues in one route, more than 200000"
    for text in (b'{"queueDatas":"\xff"}', '{"queueDatas":["\ud800"]}'):
        assert route_problem(text).endswith(": it is not UTF-8 text")


def test_what_clients_read_or_refuse_by_themselves_is_left_to_them() -> None:
    route = docs.parse_route({"queueDatas": [], "orderTopicConf": "a:99999999999"}, "T")
    assert "order config of topic T is malformed" in refusal(DataError, route.publish_queues).message
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
SOME_QUEUES, SOME_IDS = st.sampled_from((A0, A1, A2)), st.sampled_from("xyz")
Known = Mapping[MessageQueue, set[str] | None]


def states(known: Known) -> dict[MessageQueue, QueueState]:
    return {queue: QueueState(None if ids is None else frozenset(ids)) for queue, ids in known.items()}


@every_case(("known", "held", "members", "popped", "expected"), [
    ({A0: {"x"}, A1: None}, {"x": set()}, {"x"}, set(), {A0: set(), A1: set()}),
    ({A0: {"y"}, A1: None}, {"x": set()}, {"x", "y"}, set(), {A0: {"y"}, A1: None}),
    ({A0: None, A1: {"x"}}, {}, None, set(), {A0: None, A1: {"x"}}),
    ({A0: None, A1: {"x"}}, {}, set(), set(), {A0: None, A1: {"x"}}),
    ({A0: None, A1: {"y"}}, {"x": {A1}}, {"x"}, {"T"}, {A0: None, A1: {"x"}}),
])  # fmt: skip
def test_a_queue_that_nobody_holds_has_no_owner_once_every_consumer_answered(
    known: Known, held: dict[str, set[MessageQueue]], members: set[str] | None, popped: set[str], expected: Known
) -> None:
    reports = {"x": MemberReport("x", pop_topics=frozenset(popped))}
    assert with_owners(states(known), held, members, reports) == states(expected)


@given(
    st.dictionaries(SOME_QUEUES, st.builds(QueueState, st.none() | st.frozensets(SOME_IDS))),
    st.dictionaries(SOME_IDS, st.frozensets(SOME_QUEUES)),
    st.none() | st.frozensets(SOME_IDS),
)
def test_no_queue_is_lost_and_no_holder_forgotten(
    queues: dict[MessageQueue, QueueState], held: dict[str, frozenset[MessageQueue]], members: frozenset[str] | None
) -> None:
    found = with_owners(queues, held, members, {})
    assert set(found) == {*queues, *(each for own in held.values() for each in own)}
    for each, state in found.items():
        holders = {client_id for client_id, own in held.items() if each in own}
        assert not holders or state.owners == holders
