"""Every frame that real servers sent becomes model values, or the error that it carries."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rmqlb.model.message_queue import MessageQueue
from rmqlb.remoting.codes import RequestCode
from rmqlb.remoting.command import RemotingCommand
from rmqlb.remoting.frame import FrameDecoder
from rmqlb.sources.formats import documents as docs
from tests.support.mismatches import every_case

FOLDER = Path(__file__).parent.parent / "data" / "remoting"
ENTRIES: list[dict[str, Any]] = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))


def frame(entry: dict[str, Any]) -> RemotingCommand:
    (command,) = FrameDecoder().feed((FOLDER / entry["file"]).read_bytes())
    return command


def document(entry: dict[str, Any], kind: type[docs.Document]) -> docs.Document:
    (value,), _ = docs.parse_documents(frame(entry).body or b"{}", entry["file"])
    return docs.convert(value, kind, entry["file"])


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
    states = docs.consume_stats(document(entry, docs.ConsumeStatsDocument), entry["file"])
    assert {queue.topic for queue in states} == {"OrderEvents"}
    assert {state.lag for state in states.values()} == {0}
    assert {state.owners for state in states.values()} == {None}


def running(entry: dict[str, Any]) -> None:
    info = document(entry, docs.RunningInfoDocument)
    assert docs.client_id(info.properties) == entry["extFields"]["clientId"]
    assert docs.member_report(info, "x").strategy_class == "AllocateMessageQueueAveragely"
    assert MessageQueue("OrderEvents", "broker-a", 0) in docs.held_queues(info, entry["file"])


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


@every_case("entry", ENTRIES, ids=lambda entry: entry["file"])
def test_every_answer_that_a_source_asks_for_means_something(entry: dict[str, Any]) -> None:
    command = frame(entry)
    assert command.code == entry["responseCode"]
    if command.code == 0 and entry["code"] in MEANINGS:
        MEANINGS[entry["code"]](entry)
    elif command.body:
        assert docs.parse_documents(command.body, entry["file"])[0]
    else:
        assert command.remark or command.ext_fields


def test_each_meaning_was_captured() -> None:
    assert set(MEANINGS) <= {entry["code"] for entry in ENTRIES}
