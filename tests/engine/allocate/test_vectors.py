"""Every allocation that RocketMQ's own classes wrote down, answered by ours."""

from __future__ import annotations

from typing import Any

from rmqlb import AllocationError, MessageQueue, allocate, allocate_for
from rmqlb.engine.allocate.rules import JAVA_CLASSES
from tests.support.mismatches import every_case
from tests.support.vectors import vectors

VECTORS = list(vectors("allocate"))


def settings(vector: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {"presorted": not vector["sort"]}
    if "virtualNodeCnt" in vector:
        given["virtual_nodes"] = vector["virtualNodeCnt"]
    if "consumeridcs" in vector:
        given["consumer_idcs"] = vector["consumeridcs"]
    if "config" in vector:
        given["config"] = [MessageQueue(*queue) for queue in vector["config"]]
    if "delegate" in vector:
        given["inner"] = vector["delegate"]
        given["broker_zones"] = vector["brokerZones"]
        given["client_zones"] = vector["consumerZones"]
    return given


def plain(queues: list[MessageQueue]) -> list[list[Any]]:
    return [[queue.topic, queue.broker_name, queue.queue_id] for queue in queues]


def answer(client_id: str, vector: dict[str, Any]) -> object:
    queues = [MessageQueue(*queue) for queue in vector["mqAll"]]
    try:
        return plain(allocate_for(client_id, vector["strategy"], queues, vector["cidAll"], **settings(vector)))
    except AllocationError as error:
        return {"error": "IllegalArgumentException", "message": str(error)}


def test_there_are_1500_vectors_of_every_strategy() -> None:
    assert len(VECTORS) == 1500
    assert {vector["strategy"] for vector in VECTORS} == set(JAVA_CLASSES.values())


@every_case("strategy", sorted({vector["strategy"] for vector in VECTORS}))
def test_each_member_gets_what_java_gives_it(strategy: str) -> None:
    for vector in VECTORS:
        if vector["strategy"] == strategy:
            for client_id, expected in vector["expected"].items():
                assert answer(client_id, vector) == expected, (vector["id"], client_id)


def test_the_whole_group_gets_what_its_members_get() -> None:
    for vector in VECTORS:
        queues = [MessageQueue(*queue) for queue in vector["mqAll"]]
        expected = {i: share for i, share in vector["expected"].items() if i in vector["cidAll"]}
        try:
            shares = allocate(vector["strategy"], queues, vector["cidAll"], **settings(vector))
        except AllocationError as error:
            assert all(share["message"] == str(error) for share in expected.values()), vector["id"]
        else:
            assert shares.keys() == set(vector["cidAll"]), vector["id"]
            assert all(plain(shares[i]) == share for i, share in expected.items()), vector["id"]


def test_names_are_rocketmqs() -> None:
    from rmqlb.engine.allocate import full_name
    from rmqlb.engine.allocate.strategy import Settings

    assert all(full_name(v["strategy"], Settings(inner=v.get("delegate", "AVG"))) == v["name"] for v in VECTORS)
