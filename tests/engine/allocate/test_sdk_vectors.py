"""Every allocation that the Go and the C++ client wrote down, answered by ours."""

from __future__ import annotations

from typing import Any

import pytest

from rmqlb import AllocationError, MessageQueue, allocate, allocate_for
from rmqlb.engine.allocate.sdks import SDKS
from rmqlb.model.message_queue import sort_client_ids, sort_queues
from tests.support.mismatches import every_case
from tests.support.vectors import vectors

VECTORS = {name: list(vectors(f"{name}-allocate")) for name in ("go", "cpp")}
ALL = [(name, vector) for name, its in VECTORS.items() for vector in its]


def settings(vector: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if "virtualNodeCnt" in vector:
        given["virtual_nodes"] = vector["virtualNodeCnt"]
    if "consumeridcs" in vector:
        given["consumer_idcs"] = vector["consumeridcs"]
    if "config" in vector:
        given["config"] = queues(vector["config"])
    return given


def queues(rows: list[list[Any]]) -> list[MessageQueue]:
    return [MessageQueue(*row) for row in rows]


def answer(sdk: str, client_id: str, vector: dict[str, Any]) -> object:
    lists = queues(vector["mqAll"]), vector["cidAll"]
    try:
        share = allocate_for(client_id, vector["strategy"], *lists, sdk=sdk, **settings(vector))
    except AllocationError as error:
        return {"error": str(error)}
    return [[queue.topic, queue.broker_name, queue.queue_id] for queue in share]


def test_there_are_100_vectors_of_each_go_strategy_and_320_of_the_one_in_cpp() -> None:
    strategies = ("AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM_NEARBY", "MACHINE_ROOM", "CONFIG", "CONSISTENT_HASH")
    assert [vector["strategy"] for vector in VECTORS["go"]] == [name for name in strategies for _ in range(100)]
    assert [vector["strategy"] for vector in VECTORS["cpp"]] == ["AVG"] * 320


@pytest.mark.parametrize("sdk", VECTORS)
def test_lists_are_sorted_as_the_client_sorts_them(sdk: str) -> None:
    order = SDKS[sdk].order
    for vector in VECTORS[sdk]:
        assert sort_queues(queues(vector["mqAll"]), order) == queues(vector["sortedMqAll"]), vector["id"]
        assert sort_client_ids(vector["cidAll"], order) == vector["sortedCidAll"], vector["id"]
    assert any(vector["sortedCidAll"] != sort_client_ids(vector["cidAll"]) for vector in VECTORS[sdk])


@every_case(
    ("sdk", "strategy"), dict.fromkeys((name, vector["strategy"]) for name, vector in ALL), ids=lambda value: value
)
def test_each_consumer_gets_what_its_client_gives_it(sdk: str, strategy: str) -> None:
    for vector in VECTORS[sdk]:
        if vector["strategy"] == strategy:
            for client_id, expected in vector["expected"].items():
                assert answer(sdk, client_id, vector) == expected, (vector["id"], client_id)


@pytest.mark.parametrize("sdk", VECTORS)
def test_the_whole_group_gets_what_its_consumers_get(sdk: str) -> None:
    for vector in VECTORS[sdk]:
        expected = {i: share for i, share in vector["expected"].items() if i in vector["cidAll"]}
        lists = queues(vector["mqAll"]), vector["cidAll"]
        try:
            shares = allocate(vector["strategy"], *lists, sdk=sdk, **settings(vector))
        except AllocationError as error:
            assert all(share == {"error": str(error)} for share in expected.values()), vector["id"]
        else:
            assert list(shares) == list(dict.fromkeys(vector["sortedCidAll"])), vector["id"]
            assert all(shares[i] == queues(share) for i, share in expected.items()), vector["id"]
