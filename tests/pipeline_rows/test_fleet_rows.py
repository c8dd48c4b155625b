"""Each group whose consumers allocate its queues is one row of FLEET, with all that decides who owns them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb.engine.allocate.sdks import sdk_of_connection
from rmqlb.model.group import BROADCASTING, Connection, ConsumerGroup, MemberView, QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting
from rmqlb.pipeline.ingest.fleet_rows import weight
from rmqlb.pipeline.ingest.snapshot_rows import rows_of
from rmqlb.pipeline.schemas import FLEET, KEY
from tests.support.builders import HERE, group, route

NAMES = [name for name in FLEET.columns if name not in KEY]


def fleet(*parts: TopicRouteData | ConsumerGroup) -> dict[str, dict[str, Any]]:
    snapshot = ClusterSnapshot(
        "dump",
        "a test",
        routes={part.topic: RouteSighting(part, HERE) for part in parts if isinstance(part, TopicRouteData)},
        groups={part.group: part for part in parts if isinstance(part, ConsumerGroup)},
    )
    rows = next(list(its) for table, its in rows_of(snapshot) if table is FLEET)
    return {row[0]: dict(zip(NAMES, row, strict=True)) for row in rows}


def consuming(given: ConsumerGroup, *topics: str) -> ConsumerGroup:
    return replace(given, topics=topics)


def run(broker: str, number: int) -> dict[str, Any]:
    return {"brokerName": broker, "queues": number}


def test_a_group_has_its_client_ids_in_order_and_its_topics_by_name() -> None:
    known = {
        MessageQueue("T2", "a", 0): QueueState(frozenset({"10.0.0.9@1", "10.0.0.10@1"})),
        MessageQueue("T2", "a", 3): QueueState(None, 10, 3),
        MessageQueue("T2", "a", 9): QueueState(frozenset({"10.0.0.9@1"}), 4, 1),
        MessageQueue("T1", "b", 0): QueueState(frozenset(), 5, 5),
        MessageQueue("gone", "a", 0): QueueState(frozenset(), 5, 5),
    }
    some = replace(group("10.0.0.9@1 10.0.0.10@1 10.0.0.10@1"), queues=known, reports={})
    found = fleet(consuming(some, "T2", "T1", "gone"), route("T1", a=2, b=1), route("T2", a=4), route("unread", a=1))
    assert list(found) == ["g"]
    row = found["g"]
    assert (row["strategy"], row["queues"], row["retryTopics"]) == (None, 7, [])
    assert row["clientIds"] == ["10.0.0.10@1", "10.0.0.10@1", "10.0.0.9@1"]
    assert row["topics"] == [
        ("T1", [run("a", 2), run("b", 1)], [], [(2, 0)], [(2, [])]),
        ("T2", [run("a", 4)], [], [(3, 7)], [(0, ["10.0.0.10@1", "10.0.0.9@1"])]),
    ]


def test_nothing_that_is_not_known_is_said_of_a_topic() -> None:
    row = fleet(consuming(group("a", reports={"a": "AllocateMessageQueueAveragely"}), "T"), route(a=1))["g"]
    assert (row["strategy"], row["topics"]) == ("AVG", [("T", [run("a", 1)], [], None, None)])


def test_retry_topics_stand_apart() -> None:
    row = fleet(consuming(group("a"), "T", "%RETRY%other"), route(a=2), route("%RETRY%g", a=1))["g"]
    assert [topic[0] for topic in row["topics"]] == ["T"]
    assert [topic[:2] for topic in row["retryTopics"]] == [("%RETRY%g", [run("a", 1)])]
    assert row["queues"] == 2


def test_groups_whose_consumers_do_not_allocate_have_no_row() -> None:
    every = replace(consuming(group("a", name="all"), "T"), message_model=BROADCASTING)
    unseen = replace(consuming(group(name="unseen"), "T"), views=None)
    popped = replace(consuming(group("a", name="popped"), "T"), request_modes={"T": ("POP",)})
    routeless = consuming(group("a", name="routeless"), "gone")
    assert list(fleet(every, unseen, popped, routeless, route(a=1))) == []
    nobody = fleet(consuming(group(name="nobody"), "T"), route(a=1))["nobody"]
    assert (nobody["clientIds"], nobody["sdks"]) == ([], None)


def connected(*languages: tuple[str | None, str | None]) -> ConsumerGroup:
    connections = tuple(
        Connection(f"10.0.0.{number}@1", language=language, version=version)
        for number, (language, version) in enumerate(languages)
    )
    return replace(consuming(group(), "T"), views=(MemberView(connections, HERE),))


def test_each_process_has_the_library_of_its_connection() -> None:
    languages = ("JAVA", "GO", "CPP", "PYTHON", "NODE_JS", "RUST", "go")
    pairs = list(product(languages, (None, "", "V4_5_2", "V3_1_8", "V4_6_0", "V5_5_0")))
    for pair in pairs:
        guess = sdk_of_connection(*pair)
        is_java = (guess.sdk.name, guess.assumed) == ("java", False)
        expected = None if is_java else [(guess.sdk.name, guess.assumed)]
        assert fleet(connected(pair), route(a=1))["g"]["sdks"] == expected, pair


def test_one_process_that_is_not_javas_has_all_of_them_named() -> None:
    both = fleet(connected(("JAVA", "V5_5_0"), ("GO", "V4_5_2")), route(a=1))["g"]
    assert both["sdks"] == [("java", False), ("go", False)]
    alike = fleet(connected(("JAVA", "V5_5_0"), ("JAVA", "V4_9_0")), route(a=1))["g"]
    assert alike["sdks"] is None


@pytest.mark.parametrize(("topics", "expected"), [([], 1), ([("T", [], [], None, None)], 2)])
def test_a_row_weighs_what_it_holds(topics: list[Any], expected: int) -> None:
    assert weight(("g", None, 0, ["a"], None, topics, [])) == expected
    known: Any = ("T", [], [], [(0, 1), (1, 1)], [(0, ["a"])])
    assert weight(("g", None, 0, ["a"], None, topics, [known])) == expected + 4
