from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb import MessageQueue, SendScenario, UsageError, select_by_hash, select_by_machine_room, select_by_random
from rmqlb.engine.send.cluster import Cluster
from rmqlb.engine.send.fault import FaultStrategy, MQFaultStrategy, TopicPublishInfo
from rmqlb.engine.send.java import MASK, JavaRandom, hash_code, map_order
from rmqlb.engine.send.profile import profile_of
from rmqlb.model.route import QueueData, TopicRouteData
from tests.support.builders import queues
from tests.support.mismatches import every_case, refusal, vectors


def queues_of(vector: dict[str, Any]) -> list[MessageQueue]:
    return [MessageQueue(*queue) for queue in vector["mqs"]]


def names(picks: list[MessageQueue]) -> list[list[Any]]:
    return [[pick.broker_name, pick.queue_id] for pick in picks]


def test_all_vectors_are_there() -> None:
    counts = {name: len(list(vectors(name))) for name in ("pick", "hash", "fault", "fault49")}
    assert counts == {"pick": 400, "hash": 100, "fault": 12, "fault49": 12}
    assert Counter(vector["version"] for vector in vectors("strategy")) == dict.fromkeys(VERSIONS, 126)


@every_case("vector", vectors("pick"), ids=lambda vector: vector["id"])
def test_plain_picks_are_those_of_the_client(vector: dict[str, Any]) -> None:
    info, strategy = TopicPublishInfo(queues_of(vector), vector["index"]), MQFaultStrategy()
    picks = [strategy.select_one_message_queue(info, last) for last in vector["lastBrokers"]]
    assert names(picks) == vector["expected"]


@every_case("vector", vectors("hash"), ids=lambda vector: vector["id"])
def test_the_hash_selector_chooses_as_the_client_does(vector: dict[str, Any]) -> None:
    assert names([select_by_hash(queues_of(vector), arg) for arg in vector["args"]]) == vector["expected"]


@every_case("vector", [*vectors("fault"), *vectors("fault49")], ids=lambda vector: vector["id"])
def test_the_fault_strategy_isolates_whom_the_client_isolates(vector: dict[str, Any]) -> None:
    """Version 4.9.7 also changes the queue list when all brokers are isolated."""
    now, old = 0, "worstIndex" in vector
    info = TopicPublishInfo(queues_of(vector), vector["index"])
    strategy = MQFaultStrategy(True, lambda: now, *(("4.9.7", vector["worstIndex"]) if old else ()))
    for step, expected in zip(vector["steps"], vector["expected"], strict=True):
        now = step["at"]
        pick = strategy.select_one_message_queue(info, step.get("lastBroker"))
        name = pick.broker_name
        isolation, reachable = step.get("isolation", {}).get(name, False), step.get("reachable", {}).get(name, True)
        strategy.update_fault_item(name, step["latency"][name], isolation, reachable)
        assert name == (expected if isinstance(expected, str) else expected["pick"])
        assert not old or pick.queue_id == expected["queueId"]


VERSIONS = (
    *("4.7.1", "4.8.0", "4.9.0", "4.9.3", "4.9.4", "4.9.7", "4.9.8", "5.0.0", "5.1.0", "5.1.1", "5.1.3", "5.1.4"),
    *("5.2.0", "5.3.0", "5.3.1", "5.3.2", "5.3.3", "5.4.0", "5.5.0"),
)


def replayed(vector: dict[str, Any]) -> dict[str, Any]:
    profile = profile_of(vector["version"])
    perms = vector.get("perm", {})
    datas = tuple(QueueData(name, n, n, perms.get(name, 6)) for name, n in vector["writeQueueNums"].items())
    cluster = Cluster(TopicRouteData("T", datas, ()), SendScenario(vector["version"]), profile, 1, 0)
    write_queues = cluster.write_queue_nums
    info = TopicPublishInfo([MessageQueue(*queue) for queue in vector["mqs"]], vector["index"], write_queues)
    strategy = FaultStrategy(profile, enabled=vector["latencyFault"])
    worst = TopicPublishInfo((), vector["worstIndex"], {})
    picks: list[Any] = []
    for step in vector["steps"]:
        seed = step.get("reset")
        if seed is not None:
            info.random = partial(JavaRandom(seed).next_int, MASK)
        try:
            pick = strategy.select(info, worst, step["last"], step["at"], reset_index=seed is not None)
            picks.append([pick.broker_name, pick.queue_id])
        except ZeroDivisionError:
            picks.append({"error": "ArithmeticException"})
        update = step["update"]
        if update is not None:
            strategy.update(
                update["broker"], update["latency"], step["at"], isolation=update["isolation"],
                reachable=update.get("reachable", True),
            )  # fmt: skip
    return {
        "expected": picks,
        "finalMqs": [[queue.topic, queue.broker_name, queue.queue_id] for queue in info.queues],
        "finalIndex": info.send_which_queue,
        "finalFaults": {name: [item.latency, item.start] for name, item in strategy.items.items()},
    }


@every_case("version", VERSIONS)
def test_picks_lists_and_isolations_are_those_of_the_client(version: str) -> None:
    for vector in vectors("strategy"):
        if vector["version"] == version:
            ours = replayed(vector)
            theirs = {key: vector[key] for key in ours}
            theirs["finalFaults"] = {name: item[:2] for name, item in theirs["finalFaults"].items()}
            assert ours == theirs, vector


EIGHT = [*queues(4, "broker-a"), *queues(4, "broker-b")]


@every_case(("arg", "code", "of_8", "of_3"), [
    ("order-1", -1207111310, 6, 2),
    ("polygenelubricants", -2147483648, 0, 2),
    (-7, -7, 7, 1),
    (-2147483648, -2147483648, 0, 2),
    (2147483647, 2147483647, 7, 1),
    (12345678901, -539222985, 1, 0),
    # `Long.hashCode` folds both halves; a Long is what does not fit an Integer.
    (2**31, -(2**31), 0, 2),
    (-(2**31) - 1, -(2**31), 0, 2),
    (2**63 - 1, -(2**31), 0, 2),
    (-(2**63), -(2**31), 0, 2),
    (True, 1231, 7, 1),
    (False, 1237, 5, 1),
    ("x", 120, 0, 0),
    (1.5, 1073217536, 0, 2),
])  # fmt: skip
def test_hashes_and_places_are_javas(arg: object, code: int, of_8: int, of_3: int) -> None:
    assert hash_code(arg) == code
    assert select_by_hash(EIGHT, arg) == EIGHT[of_8]
    assert select_by_hash(EIGHT[:3], arg) == EIGHT[of_3]


@given(st.text())
def test_a_strings_hash_is_a_java_int(text: str) -> None:
    data = text.encode("utf-16-be")
    units = [int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2)]
    expected = sum(unit * 31 ** (len(units) - 1 - place) for place, unit in enumerate(units)) % 2**32
    assert hash_code(text) % 2**32 == expected
    assert -(2**31) <= hash_code(text) < 2**31


@every_case("expected", [
    "2 3 0 1 13 14 8 11 22 9 12 6 20 7 10 21 4 5 19 17 18 15 16",
    "2 3 0 1 22 23 20 21 13 14 11 8 12 9 6 10 7 4 5 19 17 18 15 16",
    (
        "2 3 0 1 24 25 22 23 20 21 28 29 26 27 13 14 11 12 10 19 17 18 15 16 46 47 44 45 42 43 40 41 48 49 35 36 8 33 "
        "9 34 6 31 7 32 4 5 30 39 37 38"
    ),
], ids=lambda expected: str(len(expected.split())))  # fmt: skip
def test_a_map_of_brokers_iterates_as_java_does_while_it_grows(expected: str) -> None:
    """As a `ConcurrentHashMap(16)` of Java 17 gave `broker-0`, `broker-1`, …: it doubles at 24 and at 48 names."""
    names = [f"broker-{number}" for number in expected.split()]
    assert map_order(sorted(names, key=lambda name: int(name.partition("-")[2]))) == names


@every_case("arg", [None, b"bytes", object(), [1], 2**63, -(2**63) - 1])
def test_what_java_hashes_by_identity_is_refused(arg: object) -> None:
    refusal(UsageError, select_by_hash, EIGHT, arg)


@every_case(("bound", "numbers"), [
    (None, [-1170105035, 234785527, -1360544799]),
    (8, [5, 0, 5, 0, 2]),
    (6, [2, 3, 0, 2, 0]),
    (5, [0, 3, 3, 4, 0, 0, 0, 3]),
    (10, [0, 3, 8, 4, 0, 5, 5, 8]),
    (2**30, [781215565, 58696381, 733605624]),
    (2**30 + 1, [117392763, 102948884, 662969970]),
])  # fmt: skip
def test_random_numbers_are_javas(bound: int | None, numbers: list[int]) -> None:
    random = JavaRandom(42)
    assert [random.next_int(bound) for _ in numbers] == numbers
    with pytest.raises(ValueError, match="bound must be positive"):
        random.next_int(0)


def test_random_and_machine_room() -> None:
    assert select_by_random(EIGHT, JavaRandom(42)) == EIGHT[5]
    assert [select_by_machine_room(EIGHT, room) for room in ("room", "broker", None)] == [None] * 3  # type: ignore[func-returns-value]
