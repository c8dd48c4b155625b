from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import pytest

from rmqlb import MessageQueue
from rmqlb.engine.simulate_receive.rules import again_after_us, broker_rules
from rmqlb.engine.simulate_receive.simulate_receive import simulate_receive
from rmqlb.model.simulate_receive import SECOND_US, QueueRate, ReceiveScenario
from tests.support.builders import route

from .broker_requests import pop, send
from .cluster import RocketMQCluster, TopicOnBroker

pytestmark = [pytest.mark.live, pytest.mark.slow]

BROKER = "broker-a"
QUEUES = 4
WITH_MESSAGES = (0, 1)
RECEIVES = 300
TOLERANCE = 0.15  # more than four standard deviations of a share of three quarters
LATE_MS = 1000
INVISIBLE_MS = 5000
AWAIT_MS = 15_000


@pytest.fixture(scope="module", params=["5.3.3", "5.5.0"])
def popping(request: pytest.FixtureRequest) -> Iterator[RocketMQCluster]:
    if request.param == "5.5.0":
        yield request.getfixturevalue("cluster")
        return
    with RocketMQCluster(request.param, brokers=[BROKER], config={"timerWheelEnable": "true"}) as running:
        counts = {"Ordered": QUEUES, "Back": 1}
        running.create_topics([TopicOnBroker(topic, BROKER, queues, queues) for topic, queues in counts.items()])
        yield running


def simulated_first(version: str) -> Counter[int]:
    rates = tuple(QueueRate("a", queue, Fraction(50)) for queue in WITH_MESSAGES)
    scenario = ReceiveScenario(
        "pop", batch=1, rates=rates, round_trip_us=100_000, messages=5 * RECEIVES, broker_version=version
    )
    report = simulate_receive(route(a=QUEUES), scenario, trace=True)
    received = sorted(report.messages or (), key=lambda message: message.received_ms or 0)
    return Counter(message.queue_id for message in received[:RECEIVES])


def test_receives_go_through_the_queues_as_simulated(popping: RocketMQCluster) -> None:
    for queue in WITH_MESSAGES:
        for number in range(RECEIVES):
            send(popping, MessageQueue("Ordered", BROKER, queue), str(number))
    found = Counter(pop(popping, BROKER, "ordered-svc", "Ordered", invisible_ms=600_000) for _ in range(RECEIVES))
    simulated = simulated_first(popping.version)
    assert sum(found.values()) == RECEIVES
    for queue in WITH_MESSAGES:
        assert abs(found["normal", queue] - simulated[queue]) < TOLERANCE * RECEIVES
    favoured = 1 if broker_rules(popping.version).counts_down else 0
    assert found["normal", favoured] > 2 * found["normal", 1 - favoured]


def test_a_message_that_comes_back_wakes_a_receive_as_simulated(popping: RocketMQCluster) -> None:
    send(popping, MessageQueue("Back", BROKER, 0), "comes back")
    assert pop(popping, BROKER, "back-svc", "Back", invisible_ms=INVISIBLE_MS) == ("normal", 0)
    began = time.monotonic()
    woken = pop(popping, BROKER, "back-svc", "Back", invisible_ms=INVISIBLE_MS, wait_ms=AWAIT_MS)
    lasted_ms = (time.monotonic() - began) * 1000
    early_us, late_us = again_after_us(ReceiveScenario("pop", invisible_us=INVISIBLE_MS * 1000))
    assert late_us / 1000 + LATE_MS < AWAIT_MS - SECOND_US / 1000
    assert woken == ("retry", 0)
    if broker_rules(popping.version).retry_wakes:
        assert early_us / 1000 - LATE_MS <= lasted_ms <= late_us / 1000 + LATE_MS
    else:
        assert lasted_ms > AWAIT_MS - LATE_MS
