"""What RocketMQ's own classes answered: plain picks, hash selector, fault strategy of 5.5.0 and 4.9.7."""

from __future__ import annotations

from typing import Any

import pytest

from rmqlb.engine.send.fault import MQFaultStrategy, TopicPublishInfo
from rmqlb.engine.send.selectors import select_by_hash
from rmqlb.model.message_queue import MessageQueue
from tests.support.mismatches import every_case
from tests.support.vectors import vectors


def named(name: str) -> list[Any]:
    return [pytest.param(vector, id=f"{name}-{vector['id']}") for vector in vectors(name)]


def queues(vector: dict[str, Any]) -> list[MessageQueue]:
    return [MessageQueue(*queue) for queue in vector["mqs"]]


def test_all_vectors_are_there() -> None:
    counts = {name: len(list(vectors(name))) for name in ("pick", "hash", "fault", "fault49")}
    assert counts == {"pick": 400, "hash": 100, "fault": 12, "fault49": 12}


@every_case("vector", named("pick"))
def test_plain_picks_are_those_of_the_client(vector: dict[str, Any]) -> None:
    info, strategy = TopicPublishInfo(queues(vector), vector["index"]), MQFaultStrategy()
    picks = [strategy.select_one_message_queue(info, last) for last in vector["lastBrokers"]]
    assert [[pick.broker_name, pick.queue_id] for pick in picks] == vector["expected"]


@every_case("vector", named("hash"))
def test_the_hash_selector_chooses_as_the_client_does(vector: dict[str, Any]) -> None:
    picks = [select_by_hash(queues(vector), arg) for arg in vector["args"]]
    assert [[pick.broker_name, pick.queue_id] for pick in picks] == vector["expected"]


@every_case("vector", named("fault"))
def test_the_fault_strategy_isolates_whom_the_client_isolates(vector: dict[str, Any]) -> None:
    now = 0
    info, strategy = TopicPublishInfo(queues(vector), vector["index"]), MQFaultStrategy(True, clock=lambda: now)
    picks = []
    for step in vector["steps"]:
        now = step["at"]
        pick = strategy.select_one_message_queue(info, step["lastBroker"])
        name = pick.broker_name
        isolation, reachable = step.get("isolation", {}).get(name, False), step.get("reachable", {}).get(name, True)
        strategy.update_fault_item(name, step["latency"][name], isolation, reachable)
        picks.append(name)
    assert picks == [pick if isinstance(pick, str) else pick["pick"] for pick in vector["expected"]]


@every_case("vector", named("fault49"))
def test_the_fault_strategy_of_4_9_7_picks_and_mutates_as_the_client_does(vector: dict[str, Any]) -> None:
    now = 0
    info = TopicPublishInfo(queues(vector), vector["index"])
    strategy = MQFaultStrategy(True, lambda: now, "4.9.7", vector["worstIndex"])
    picks = []
    for step in vector["steps"]:
        now = step["at"]
        pick = strategy.select_one_message_queue(info, step.get("lastBroker"))
        name = pick.broker_name
        strategy.update_fault_item(name, step["latency"][name], step.get("isolation", {}).get(name, False))
        picks.append((name, pick.queue_id))
    assert picks == [(expected["pick"], expected["queueId"]) for expected in vector["expected"]]
