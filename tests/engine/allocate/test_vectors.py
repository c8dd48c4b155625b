from collections import Counter
from typing import Any

from rmqlb import AllocationError, MessageQueue, allocate, allocate_for
from rmqlb.engine.allocate import full_name
from rmqlb.engine.allocate.rules import JAVA_CLASSES
from rmqlb.engine.allocate.sdks import SDKS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.model.message_queue import sort_client_ids, sort_queues
from tests.support.mismatches import every_case
from tests.support.vectors import vectors

FILES = {"java": "allocate", "go": "go-allocate", "cpp": "cpp-allocate"}
VECTORS = {sdk: list(vectors(file)) for sdk, file in FILES.items()}
STRATEGIES = {sdk: Counter(vector["strategy"] for vector in found) for sdk, found in VECTORS.items()}
SETTINGS = {
    "virtualNodeCnt": "virtual_nodes",
    "consumeridcs": "consumer_idcs",
    "delegate": "inner",
    "brokerZones": "broker_zones",
    "consumerZones": "client_zones",
}


def queues(rows: list[list[Any]]) -> list[MessageQueue]:
    return [MessageQueue(*row) for row in rows]


def settings(vector: dict[str, Any]) -> dict[str, Any]:
    given = {name: vector[key] for key, name in SETTINGS.items() if key in vector}
    given |= {"config": queues(vector["config"])} if "config" in vector else {}
    return given | {"presorted": not vector.get("sort", True)}


def expected_of(vector: dict[str, Any]) -> dict[str, list[MessageQueue] | str]:
    return {
        client_id: queues(share) if isinstance(share, list) else share.get("message", share["error"])
        for client_id, share in vector["expected"].items()
    }


def test_there_are_vectors_of_every_strategy_of_each_library() -> None:
    assert (STRATEGIES["java"].total(), STRATEGIES["java"].keys()) == (1500, set(JAVA_CLASSES.values()))
    assert STRATEGIES["go"] == dict.fromkeys(JAVA_CLASSES.values(), 100)
    assert STRATEGIES["cpp"] == {"AVG": 320}
    for vector in VECTORS["java"]:
        assert full_name(vector["strategy"], Settings(inner=vector.get("delegate", "AVG"))) == vector["name"]


@every_case("sdk", ["go", "cpp"])
def test_lists_are_sorted_as_the_client_sorts_them(sdk: str) -> None:
    order = SDKS[sdk].order
    for vector in VECTORS[sdk]:
        assert sort_queues(queues(vector["mqAll"]), order) == queues(vector["sortedMqAll"]), vector["id"]
        assert sort_client_ids(vector["cidAll"], order) == vector["sortedCidAll"], vector["id"]
    assert any(vector["sortedCidAll"] != sort_client_ids(vector["cidAll"]) for vector in VECTORS[sdk])


@every_case(("sdk", "strategy"), [(sdk, name) for sdk, names in STRATEGIES.items() for name in names])
def test_each_consumer_and_the_whole_group_get_what_its_client_gives_them(sdk: str, strategy: str) -> None:
    for vector in (each for each in VECTORS[sdk] if each["strategy"] == strategy):
        lists = strategy, queues(vector["mqAll"]), vector["cidAll"]
        for client_id, expected in expected_of(vector).items():
            found: object
            try:
                found = allocate_for(client_id, *lists, sdk=sdk, **settings(vector))
            except AllocationError as error:
                found = str(error)
            assert found == expected, (vector["id"], client_id)
        own = {i: share for i, share in expected_of(vector).items() if i in vector["cidAll"]}
        try:
            shares = allocate(*lists, sdk=sdk, **settings(vector))
        except AllocationError as error:
            assert all(share == str(error) for share in own.values()), vector["id"]
        else:
            assert list(shares) == list(dict.fromkeys(vector.get("sortedCidAll", shares))), vector["id"]
            assert (shares.keys(), own.items() <= shares.items()) == (set(vector["cidAll"]), True), vector["id"]
