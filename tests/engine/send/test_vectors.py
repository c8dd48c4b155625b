from collections import Counter
from functools import partial
from typing import Any

from rmqlb.engine.send.cluster import Cluster
from rmqlb.engine.send.fault import FaultStrategy, MQFaultStrategy, TopicPublishInfo
from rmqlb.engine.send.java import MASK, JavaRandom
from rmqlb.engine.send.profile import profile_of
from rmqlb.engine.send.queues import select_by_hash
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import QueueData, TopicRouteData
from rmqlb.model.send_scenario import SendScenario
from tests.support.mismatches import every_case
from tests.support.vectors import vectors


def queues(vector: dict[str, Any]) -> list[MessageQueue]:
    return [MessageQueue(*queue) for queue in vector["mqs"]]


def names(picks: list[MessageQueue]) -> list[list[Any]]:
    return [[pick.broker_name, pick.queue_id] for pick in picks]


def test_all_vectors_are_there() -> None:
    counts = {name: len(list(vectors(name))) for name in ("pick", "hash", "fault", "fault49")}
    assert counts == {"pick": 400, "hash": 100, "fault": 12, "fault49": 12}


@every_case("vector", vectors("pick"), ids=lambda vector: vector["id"])
def test_plain_picks_are_those_of_the_client(vector: dict[str, Any]) -> None:
    info, strategy = TopicPublishInfo(queues(vector), vector["index"]), MQFaultStrategy()
    picks = [strategy.select_one_message_queue(info, last) for last in vector["lastBrokers"]]
    assert names(picks) == vector["expected"]


@every_case("vector", vectors("hash"), ids=lambda vector: vector["id"])
def test_the_hash_selector_chooses_as_the_client_does(vector: dict[str, Any]) -> None:
    assert names([select_by_hash(queues(vector), arg) for arg in vector["args"]]) == vector["expected"]


@every_case("vector", [*vectors("fault"), *vectors("fault49")], ids=lambda vector: vector["id"])
def test_the_fault_strategy_isolates_whom_the_client_isolates(vector: dict[str, Any]) -> None:
    """Version 4.9.7 also changes the queue list when all brokers are isolated."""
    now, old = 0, "worstIndex" in vector
    info = TopicPublishInfo(queues(vector), vector["index"])
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
    datas = tuple(
        QueueData(name, number, number, perms.get(name, 6)) for name, number in vector["writeQueueNums"].items()
    )
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


def test_every_version_has_its_vectors() -> None:
    assert Counter(vector["version"] for vector in vectors("strategy")) == dict.fromkeys(VERSIONS, 126)


@every_case("version", VERSIONS)
def test_picks_lists_and_isolations_are_those_of_the_client(version: str) -> None:
    for vector in vectors("strategy"):
        if vector["version"] == version:
            ours = replayed(vector)
            theirs = {key: vector[key] for key in ours}
            theirs["finalFaults"] = {name: item[:2] for name, item in theirs["finalFaults"].items()}
            assert ours == theirs, vector
