"""A snapshot's rows in each table."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb.errors import DataError
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, QueueState, Seen
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting
from rmqlb.pipeline.ingest.snapshot_rows import rows_of, runs
from rmqlb.pipeline.schemas import INGESTED, KEY, POP_QUEUES
from rmqlb.sources.dump import read_document
from tests.support.builders import HERE, group, queues, route

ROOT = Path(__file__).parents[2]


def snapshot(*parts: TopicRouteData | ConsumerGroup) -> ClusterSnapshot:
    return ClusterSnapshot(
        "dump",
        "a test",
        routes={part.topic: RouteSighting(part, HERE) for part in parts if isinstance(part, TopicRouteData)},
        groups={part.group: part for part in parts if isinstance(part, ConsumerGroup)},
    )


def rows(table: str, *parts: TopicRouteData | ConsumerGroup) -> list[tuple[Any, ...]]:
    return {found.name: list(its) for found, its in rows_of(snapshot(*parts))}[table]


def run(broker_name: str, number: int) -> dict[str, Any]:
    return {"brokerName": broker_name, "queues": number}


def test_every_row_has_the_columns_of_its_table() -> None:
    example = read_document((ROOT / "examples/cluster.json").read_bytes(), "x").snapshot
    found = {table.name: (table, list(its)) for table, its in rows_of(example)}
    assert set(found) == {table.name for table in INGESTED} - {"documents"}
    for table, its in found.values():
        assert its or table is POP_QUEUES, table.name
        assert {len(row) for row in its} <= {len(table.columns) - len(KEY)}, table.name


def test_the_example_cluster_row_by_row() -> None:
    example = read_document((ROOT / "examples/cluster.json").read_bytes(), "x").snapshot
    found = {table.name: list(its) for table, its in rows_of(example)}
    assert found["topics"][1] == (
        "Skewed",
        [run("broker-a", 6), run("broker-b", 3)],
        [run("broker-a", 4), run("broker-b", 3)],
        None,
        None,
        False,
    )
    assert found["queues"][16:] == [
        *(("Skewed", "broker-a", i, i, i if i < 4 else None) for i in range(6)),
        *(("Skewed", "broker-b", i, 6 + i, 4 + i) for i in range(3)),
    ]
    assert found["brokers"] == [
        ("broker-a", "DefaultCluster", [(0, "127.0.0.1:10911")], True),
        ("broker-b", "DefaultCluster", [(0, "127.0.0.1:20911")], True),
    ]
    assert [row[:5] for row in found["groups"]] == [
        ("audit-svc", "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_FIRST_OFFSET", 5),
        ("bill-svc", "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_FIRST_OFFSET", 4),
        ("order-svc", "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_FIRST_OFFSET", 3),
    ]
    assert found["processes"][9:] == [
        ("order-svc", 0, "192.0.2.2@inst0", "JAVA", "V5_5_0", "AVG", "AllocateMessageQueueAveragely"),
        ("order-svc", 1, "192.0.2.2@inst1", "JAVA", "V5_5_0", None, None),
        ("order-svc", 2, "192.0.2.2@inst2", "JAVA", "V5_5_0", None, None),
    ]


def test_queues_that_only_producers_see_come_last() -> None:
    data = TopicRouteData("T", (QueueData("a", 1, 3, 6), QueueData("b", 2, 2, 2)), (BrokerData("c", "a", {0: "x"}),))
    assert rows("queues", data) == [("T", "a", 0, 0, 0), ("T", "a", 1, None, 1), ("T", "a", 2, None, 2)]
    assert rows("topics", data) == [("T", [run("a", 1)], [run("a", 3)], None, None, False)]


def test_a_topic_without_queues_is_a_topic() -> None:
    assert rows("topics", TopicRouteData("T", (), ())) == [("T", [], [], None, None, False)]


def test_an_order_topic_has_its_publish_queues_from_its_config() -> None:
    data = replace(route(a=2, b=2), order_topic_conf="b:3;a:1")
    assert rows("topics", data) == [
        ("T", [run("a", 2), run("b", 2)], [run("b", 3), run("a", 1)], None, "b:3;a:1", False)
    ]
    assert rows("queues", data) == [
        ("T", "a", 0, 0, 3),
        ("T", "a", 1, 1, None),
        ("T", "b", 0, 2, 0),
        ("T", "b", 1, 3, 1),
        ("T", "b", 2, None, 2),
    ]


def test_a_malformed_order_config_says_why_there_are_no_publish_queues() -> None:
    (row,) = rows("topics", replace(route(a=1), order_topic_conf="a"))
    assert row == ("T", [run("a", 1)], None, "order config of topic T is malformed at 'a': 'a'", "a", False)
    assert rows("queues", replace(route(a=1), order_topic_conf="a")) == [("T", "a", 0, 0, None)]


def static(**scopes: int) -> TopicRouteData:
    infos = {f"b-{scope}": TopicQueueMappingInfo("T", scope, n, "a", 1, {}) for scope, n in scopes.items()}
    return replace(route(a=1), topic_queue_mapping_by_broker=infos)


def test_a_static_topic_has_logical_queues() -> None:
    name = "__syslo__global__"
    assert rows("topics", static(__global__=2)) == [("T", [run(name, 2)], [run(name, 2)], None, None, True)]
    assert rows("queues", static(__global__=2)) == [("T", name, 0, 0, 0), ("T", name, 1, 1, 1)]


def test_publish_queues_that_alternate_are_said_not_to_be_in_runs_and_keep_their_places() -> None:
    (row,) = rows("topics", static(a=2, b=2))
    assert row[1:4] == (
        [run("__syslo__a", 2), run("__syslo__b", 2)],
        None,
        "the queues of topic T alternate between the scopes of a static topic",
    )
    assert [item[1:] for item in rows("queues", static(a=2, b=2))] == [
        ("__syslo__a", 0, 0, 0),
        ("__syslo__a", 1, 1, 2),
        ("__syslo__b", 0, 2, 1),
        ("__syslo__b", 1, 3, 3),
    ]


def test_subscribe_queues_that_are_not_distinct_are_refused() -> None:
    with pytest.raises(DataError, match="two scopes of a static topic make one name"):
        rows("topics", static(__global__=2, global__=2))


def test_queues_are_written_in_runs() -> None:
    assert runs([]) == []
    assert runs([*queues(2, "a"), *queues(3, "a"), *queues(1, "b")]) == [run("a", 2), run("a", 3), run("b", 1)]
    assert runs([*queues(2, "a"), MessageQueue("T", "b", 1)]) is None


def test_a_broker_is_listed_once_as_it_was_seen_last() -> None:
    def sighting(topic: str, at: int | None, **addrs: str) -> RouteSighting:
        seen = Seen("x", None if at is None else datetime(2026, 1, at, tzinfo=UTC))
        brokers = tuple(BrokerData("c", name, {0: addr, 1: "s"}) for name, addr in addrs.items())
        return RouteSighting(TopicRouteData(topic, (), (*brokers, BrokerData("", "z", {1: "s"}))), seen)

    both = snapshot()
    routes = {
        "A": sighting("A", 2, a="new"),
        "B": sighting("B", 1, a="old"),
        "C": sighting("C", None, a="undated", b="b"),
    }
    found = {table.name: list(its) for table, its in rows_of(replace(both, routes=routes))}
    assert found["brokers"] == [
        ("a", "c", [(0, "new"), (1, "s")], True),
        ("b", "c", [(0, "b"), (1, "s")], True),
        ("z", None, [(1, "s")], False),
    ]


def test_groups_say_why_their_queues_are_not_theirs_to_allocate() -> None:
    unseen = replace(group(name="unseen"), views=None)
    found = rows(
        "groups",
        group("a b", name="good"),
        group(name="none"),
        group("a", name="all", message_model="BROADCASTING"),
        replace(group("a", name="popped"), request_modes={"T1": ("POP",)}),
        unseen,
    )
    broadcast = "group all is BROADCASTING: every consumer reads every queue, nothing is rebalanced"
    popped = "group popped consumes T1 by POP: several consumers may take messages from one queue, none owns it"
    assert [(row[0], row[4], *row[-2:]) for row in found] == [
        ("all", 1, broadcast, "broadcasting-group"),
        ("good", 2, None, None),
        ("none", 0, None, None),
        ("popped", 1, popped, "pop-consumption"),
        ("unseen", None, "the consumers of group unseen are not in a test", "consumers-unknown"),
    ]


def test_a_group_runs_what_most_of_its_members_report() -> None:
    circle, hash_ = "AllocateMessageQueueAveragelyByCircle", "AllocateMessageQueueConsistentHash"
    found = rows(
        "groups",
        group("a", name="alike", reports={"a": circle}),
        group("a b c", name="mixed", reports={"a": hash_, "b": circle, "c": circle}),
        group("a b", name="own", reports={"a": "TheirOwn", "b": "TheirOwn"}),
        group("a", name="silent"),
    )
    assert [row[6:8] for row in found] == [
        ("AVG_BY_CIRCLE", False),
        ("AVG_BY_CIRCLE", True),
        ("TheirOwn", False),
        (None, False),
    ]


def test_a_split_view_is_told() -> None:
    assert [row[5] for row in rows("groups", group("a b", "a", name="g"), group("a", "a", name="h"))] == [True, False]


def test_members_are_in_the_clients_order_with_duplicates() -> None:
    found = rows("processes", group("9 10 \U0001f600 \uffee 10", "9"))
    assert [row[1:3] for row in found] == [(0, "10"), (1, "10"), (2, "9"), (3, "\U0001f600"), (4, "\uffee")]


def test_each_of_two_processes_with_one_id_has_its_own_channel() -> None:
    one = MemberView((Connection("a", "2", "GO", "V1"), Connection("a", "3", "CPP", None), Connection("b")), HERE)
    two = MemberView(tuple(Connection("a", port) for port in "1456"), HERE)
    found = rows("processes", replace(group(), views=(one, two), reports={"a": MemberReport("a", None, "MyStrategy")}))
    assert found == [
        ("g", 0, "a", "GO", "V1", "MyStrategy", "MyStrategy"),
        ("g", 1, "a", "CPP", None, "MyStrategy", "MyStrategy"),
        ("g", 2, "b", None, None, None, None),
    ]


def test_subscriptions_tell_who_does_not_take_part() -> None:
    reports = {
        "b": MemberReport("b", frozenset({"T"})),
        "a": MemberReport("a", frozenset({"U"})),
        "silent": MemberReport("silent"),
        "gone": MemberReport("gone", frozenset()),
    }
    found = rows("subscriptions", route(a=1), replace(group("b a silent"), topics=("T", "U", "T"), reports=reports))
    assert found == [("g", "T", True, ["a"]), ("g", "U", False, ["b"])]
    assert rows("subscriptions", replace(group("a"), topics=None)) == []


def test_a_retry_topic_with_a_route_is_subscribed_to_whatever_the_list_says() -> None:
    """Push consumers add it on their own; those that pull or broadcast do not."""
    retry = route("%RETRY%g", a=1)
    for listed in (("T",), ("T", "%RETRY%g")):
        members = replace(group("a"), topics=listed)
        found = rows("subscriptions", route(a=1), retry, members)
        assert [row[1:3] for row in found] == [("T", True), ("%RETRY%g", True)]
    assert [
        row[1]
        for row in rows("subscriptions", retry, replace(group("a"), topics=("T",), consume_type="CONSUME_ACTIVELY"))
    ] == ["T"]
    assert [row[1] for row in rows("subscriptions", route(a=1), replace(group("a"), topics=("T",)))] == ["T"]


def test_owners_and_offsets_have_rows_only_where_something_is_known() -> None:
    states = {
        MessageQueue("T", "b", 1): QueueState(frozenset({"\uffee", "\U0001f600"}), 10, 4, 99),
        MessageQueue("T", "b", 2): QueueState(frozenset()),
        MessageQueue("T", "x", 0): QueueState(None, 10),
        MessageQueue("T", "b", -1): QueueState(None, None, None, 5),
        MessageQueue("U", "b", 0): QueueState(),
    }
    parts = (route(a=3, b=2), replace(group("a"), queues=states))
    assert rows("owners", *parts) == [
        ("g", "T", "b", 1, 4, ["\U0001f600", "\uffee"]),
        ("g", "T", "b", 2, None, []),
    ]
    assert rows("offsets", *parts) == [
        ("g", "T", "b", 1, 4, 10, 4, 6, 99),
        ("g", "T", "x", 0, None, 10, None, None, None),
        ("g", "T", "b", -1, None, None, None, None, 5),
    ]


def told(*languages: str | None) -> MemberView:
    return MemberView(tuple(Connection("x", None, each, each and "V5_5_0") for each in languages), HERE)


def test_a_process_has_the_language_that_any_broker_tells_of_it() -> None:
    found = rows("processes", replace(group("x"), views=(told(None), told("GO"))), route(a=1))
    assert [row[1:5] for row in found] == [(0, "x", "GO", "V5_5_0")]
    found = rows("processes", replace(group("x"), views=(told("JAVA", "GO"), told("CPP", "CPP"))), route(a=1))
    assert [row[1:4] for row in found] == [(0, "x", "JAVA"), (1, "x", "GO")]
    found = rows("processes", replace(group("x"), views=(told("JAVA", "GO"), told("CPP"))), route(a=1))
    assert [row[1:4] for row in found] == [(0, "x", "CPP")]


def by_pop(*ids: str, **changes: Any) -> ConsumerGroup:
    popped = {"request_modes": {"T": ("POP",)}, "pop_share_queue_nums": {"T": (1,)}, **changes}
    return replace(group(*ids), topics=("T",), **popped)


def test_who_may_read_what_by_pop() -> None:
    assert rows("pop_queues", by_pop("x y z"), route(a=3)) == [
        ("g", "T", "AVG", [1], False, "a", 0, ["x", "z"]),
        ("g", "T", "AVG", [1], False, "a", 1, ["x", "y"]),
        ("g", "T", "AVG", [1], False, "a", 2, ["y", "z"]),
    ]
    assert rows("pop_queues", by_pop("x y", pop_share_queue_nums=None), route(a=3, b=1)) == [
        ("g", "T", "AVG", [-1], True, "a", -1, ["x", "y"]),
        ("g", "T", "AVG", [-1], True, "b", -1, ["x", "y"]),
    ]
    assert rows("pop_queues", group("x"), route(a=3)) == []
    (row,) = rows("groups", by_pop("x y"), route(a=3))
    assert row[-1] == "pop-consumption"


def test_readers_that_no_broker_lists_are_unknown() -> None:
    grpc = by_pop(views=(MemberView((), HERE),), polling_num=2)
    assert rows("pop_queues", grpc, route(a=2)) == [("g", "T", None, [], False, "a", -1, None)]
    told = replace(by_pop("h@1@0@abc"), request_modes=None)
    assert rows("pop_queues", told, route(a=2)) == [("g", "T", None, [], False, "a", -1, ["h@1@0@abc"])]
    assert rows("pop_queues", by_pop("x", message_model="BROADCASTING"), route(a=2)) == []


def test_a_strategy_that_brokers_do_not_have_gives_nobody_an_answer() -> None:
    report = {"x": MemberReport("x", frozenset("T"), "AllocateMessageQueueConsistentHash", client_rebalance=False)}
    assert rows("pop_queues", by_pop("x", reports=report), route(a=2)) == [
        ("g", "T", "CONSISTENT_HASH", [1], False, None, None, None)
    ]
