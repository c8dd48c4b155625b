"""Dumps are recognised by what is in them, whatever their names, alone or several in one file."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rmqlb.errors import DataError, DocumentError
from rmqlb.model.group import Connection, QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.sources.dump import DumpSource
from tests.support.mismatches import every_case

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


def read(path: str, wanted: Wanted = ALL) -> ClusterSnapshot:
    return DumpSource(path).fetch(wanted)


def problem(path: str, wanted: Wanted = ALL) -> str:
    with pytest.raises(DataError) as caught:
        read(path, wanted)
    return caught.value.message.removeprefix(path)


def brokers(snapshot: ClusterSnapshot, topic: str) -> dict[str, int]:
    return {data.broker_name: data.read_queue_nums for data in snapshot.route(topic).queue_datas}


@pytest.mark.parametrize(
    "path",
    [
        dashboard_path("route-Skewed"),
        str(MQADMIN / "5.5.0-topicRoute-Skewed.txt"),
        str(MQADMIN / "5.5.0-topicRoute-Skewed-list.txt"),
    ],
)
def test_one_route_is_the_same_in_every_form(path: str, written: Writer) -> None:
    for name in (path, written(Path(path).read_bytes())):
        snapshot = read(name, SKEWED)
        assert brokers(snapshot, "Skewed") == {"broker-a": 6, "broker-b": 3}
        assert (snapshot.kind, snapshot.endpoint, snapshot.taken_at) == ("dump", name, None)
        assert snapshot.routes["Skewed"].seen.where == name


def test_the_noise_of_a_jvm_before_an_answer_is_passed_over(written: Writer) -> None:
    noise = "OpenJDK 64-Bit Server VM warning: deprecated\nRocketMQLog:WARN No appenders could be found.\n"
    for name in ("5.5.0-topicRoute-Skewed", "5.5.0-topicRoute-Skewed-list"):
        assert brokers(read(written((noise + mqadmin_text(name)).encode()), SKEWED), "Skewed") == {
            "broker-a": 6,
            "broker-b": 3,
        }


def test_a_route_that_does_not_name_its_topic_needs_to_be_told() -> None:
    path = dashboard_path("route-Skewed")
    for wanted in (Wanted(), Wanted(topics=("Skewed", "OrderEvents"))):
        with pytest.raises(DocumentError) as caught:
            read(path, wanted)
        assert caught.value.message == f"{path} is the route of one topic and does not name it"
        assert caught.value.hint == "say which: --topic NAME"


def test_a_mapping_of_topics_to_routes_names_them_all(written: Writer) -> None:
    path = written(b'{"A":' + ROUTE + b',"B":' + ROUTE.replace(b'"a"', b'"b"') + b"}")
    snapshot = read(path)
    assert {topic: brokers(snapshot, topic) for topic in snapshot.routes} == {"A": {"a": 2}, "B": {"b": 2}}
    assert snapshot.routes["A"].seen.where == f"{path}, A"


def test_connections_are_a_group_with_its_members() -> None:
    group = read(dashboard_path("connection-order-svc")).group("order-svc")
    assert group.client_ids == ("192.0.2.2@inst0", "192.0.2.2@inst1", "192.0.2.2@inst2")
    assert group.topics == ("%RETRY%order-svc", "OrderEvents", "Skewed")
    assert (group.message_model, group.consume_type) == ("CLUSTERING", "CONSUME_PASSIVELY")
    assert group.queues == {}
    assert group.views is not None
    assert group.views[0].connections[0] == Connection("192.0.2.2@inst0", "127.0.0.1:51374", "JAVA", "V5_5_0")


def test_progress_is_a_group_whose_members_were_not_observed() -> None:
    group = read(dashboard_path("progress-audit-svc")).group("audit-svc")
    assert group.client_ids is None
    assert group.topics == ("%RETRY%audit-svc", "OrderEvents")
    assert group.queues[queue("OrderEvents broker-b 0")] == QueueState(
        frozenset({"192.0.2.2@inst0"}), 31, 31, 1795226477717
    )


def test_a_members_own_report_names_itself_and_what_it_holds() -> None:
    group = read(dashboard_path("running-order-svc-inst0")).group("order-svc")
    assert group.reports["192.0.2.2@inst0"].strategy_class == "AllocateMessageQueueAveragely"
    assert len(group.queues) == 10
    assert {state.owners for state in group.queues.values()} == {frozenset({"192.0.2.2@inst0"})}
    assert group.client_ids is None


def test_a_group_list_tells_which_groups_have_no_member() -> None:
    groups = read(dashboard_path("group-list")).groups
    assert len(groups) == 8
    assert groups["TOOLS_CONSUMER"].client_ids == ()


@every_case("name", BESIDE_THE_POINT)
def test_an_answer_about_something_else_is_noted(name: str) -> None:
    snapshot = read(dashboard_path(name))
    assert (snapshot.routes, snapshot.groups) == ({}, {})
    assert all(note.endswith("says nothing about routes or consumers and was skipped") for note in snapshot.notes)
    assert snapshot.notes


def order_svc(*names: str) -> bytes:
    return b"\n".join(dashboard_body(name) for name in names)


def test_several_answers_in_one_file_make_one_snapshot(written: Writer) -> None:
    path = written(
        order_svc("connection-order-svc", "progress-order-svc", "running-order-svc-inst0", "group-order-svc", "home")
        + b'{"Skewed":'
        + json.dumps(json.loads(dashboard_body("route-Skewed"))["data"]).encode()
        + b"}"
        + dashboard_body("consumers-of-OrderEvents")
    )
    snapshot = read(path)
    assert brokers(snapshot, "Skewed") == {"broker-a": 6, "broker-b": 3}
    assert sorted(snapshot.groups) == ["audit-svc", "order-svc"]
    group = snapshot.group("order-svc")
    assert group.client_ids == ("192.0.2.2@inst0", "192.0.2.2@inst1", "192.0.2.2@inst2")
    assert group.queues[queue("OrderEvents broker-a 5")].owners == {"192.0.2.2@inst0"}
    assert group.queues[queue("OrderEvents broker-b 5")].lag == 0
    assert list(group.reports) == ["192.0.2.2@inst0"]
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


def test_two_routes_cannot_share_one_name(written: Writer) -> None:
    path = written(ROUTE + ROUTE)
    message = problem(path, Wanted(topics=("T",)))
    assert message == ", document 2 is another route that does not name its topic"


def test_snapshots_and_answers_may_stand_in_one_file(written: Writer) -> None:
    snapshot = read(written(EXAMPLE.read_bytes() + b'{"T":' + ROUTE + b"}"))
    assert sorted(snapshot.routes) == ["OrderEvents", "Skewed", "T"]
    assert sorted(snapshot.groups) == ["audit-svc", "bill-svc", "order-svc"]
    assert snapshot.taken_at is not None


@pytest.mark.parametrize(
    "document",
    [
        b'{"connectionSet":[],"subscriptionTable":{"T":{}}}',
        b'{"connectionSet":[]}',
        b'[{"topic":"T","queueStatInfoList":[]}]',
        b'{"properties":{"clientIP":"1","instanceName":"a"},"mqTable":{}}',
    ],
)
def test_a_document_that_does_not_name_its_group_needs_to_be_told(document: bytes, written: Writer) -> None:
    path = written(document)
    assert problem(path) == " is about one group and does not name it"
    assert list(read(path, Wanted(group="g")).groups) == ["g"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_dash_reads_stdin(pack: Callable[[bytes], bytes]) -> None:
    source = DumpSource("-", stdin=io.BytesIO(pack(dashboard_body("route-Skewed"))))
    snapshot = source.fetch(SKEWED)
    assert (snapshot.endpoint, snapshot.routes["Skewed"].seen.where) == ("stdin", "stdin")
    assert brokers(snapshot, "Skewed") == {"broker-a": 6, "broker-b": 3}


def test_a_closed_stdin_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DocumentError, match="cannot read stdin: it is closed"):
        read("-")


def test_a_packed_dump_is_limited_by_what_it_unpacks_to(written: Writer) -> None:
    path = written(gzip.compress(b" " * 10_000, mtime=0))
    with pytest.raises(DocumentError, match="larger than 1000 bytes"):
        DumpSource(path, max_bytes=1000).fetch(Wanted())


def test_a_file_without_end_is_limited_too() -> None:
    with pytest.raises(DocumentError, match="/dev/zero: larger than 1 MB"):
        DumpSource("/dev/zero", max_bytes=1 << 20).fetch(Wanted())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", " is empty"),
        (b" \n\t\n", " is empty"),
        (b'{"queueDatas":[', ", line 1, column 16: the text ends too early"),
        (b'{\n  "queueDatas": [\n    {"brokerName": "a"', ", line 3, column 23: the text ends too early"),
        (b'{"schema": "rmqlb/snapshot",\n "formatV', ", line 2, column 10: the text ends too early"),
        (b"hello", ": neither JSON nor a YAML mapping, but plain text"),
        (b"- 1\n- 2", ": neither JSON nor a YAML mapping, but a YAML list"),
        (b"# nothing", ": neither JSON nor a YAML mapping, but nothing"),
        (b"42", ": neither JSON nor a YAML mapping, but int"),
        (b"a: 1", ": not recognised"),
        (b"{}", ": not recognised"),
        (b"[1]", ", item 1: not recognised"),
        (b'{"status":0,"data":null}', ": not recognised"),
        (b"<!DOCTYPE html><html><body>Login</body></html>", ": neither JSON nor a YAML mapping, but plain text"),
        (b"a: [1", ", line 2, column 1: did not find expected ',' or ']'"),
        (b"\x00\x01\x02\xff", ", byte 3: it is not UTF-8 text"),
        (b"\x89PNG\r\n\x1a\n", ", byte 0: it is not UTF-8 text"),
        (b"\x1f\x8bnot gzip after all", ": the compressed data is damaged"),
        (gzip.compress(b"{}", mtime=0)[:-4], ": the compressed data is cut short"),
        ('{"é":1}'.encode("utf-16"), ", byte 0: it is not UTF-8 text"),
        (b"[" * 100_000, ", line 1, column 257: nested deeper than 256"),
        (b'{"a":' * 100_000, ", line 1, column 1281: nested deeper than 256"),
        (b"a: &a [x]\nb: *a", ", line 2: YAML aliases are not read"),
        (b'{"queueDatas":[{"brokerName":7}]}', ": Expected str, got int at $.queueDatas[0].brokerName"),
        (b'{"connectionSet":[{"clientId":null}]}', ": Expected str, got null at $.connectionSet[0].clientId"),
        (b'{"A":{"queueDatas":[7]}}', ", A: Expected object, got int at $.queueDatas[0]"),
        (b'{"properties":{"consumerGroup":"g"},"mqTable":{}}', ": the properties do not say which client this is"),
    ],
)
def test_what_cannot_be_read_says_why_and_where(body: bytes, message: str, written: Writer) -> None:
    assert problem(written(body)) == message


@every_case(
    "name",
    [
        "5.5.0-topicList",
        "5.5.0-clusterList",
        "5.5.0-consumerConnection-order-svc",
        "5.5.0-consumerProgress-order-svc",
        "5.5.0-allocateMQ-OrderEvents",
        "4.9.7-clusterList",
    ],
)
def test_what_other_mqadmin_commands_print_is_refused(name: str) -> None:
    assert "\n" not in problem(str(MQADMIN / f"{name}.txt"))


@every_case("command", ["consumerConnection-order-svc", "consumerProgress-order-svc", "clusterList"])
def test_a_table_of_another_mqadmin_command_is_told_as_such(command: str) -> None:
    """As YAML, which it nearly is, its error was one of a parser's about line 6."""
    with pytest.raises(DocumentError) as raised:
        read(str(MQADMIN / f"5.5.0-{command}.txt"))
    assert raised.value.message.endswith(": a table of another mqadmin command than topicRoute")
    assert raised.value.code == "not-recognised"
    assert "--consumers" in (raised.value.hint or "")


def test_a_missing_file_is_told() -> None:
    assert problem("/nonexistent/dump.json") == "cannot read /nonexistent/dump.json: No such file or directory"
