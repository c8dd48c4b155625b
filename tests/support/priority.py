"""Messages with priorities, and receives from a PRIORITY topic: what is asked of a broker, and what rmqlb predicts."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import sqrt
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rmqlb import simulate_send
from rmqlb.engine.simulate_receive.rules import RANDOM_QUEUES, broker_rules
from rmqlb.engine.simulate_receive.simulate_receive import simulate_receive
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.send_scenario import SendScenario
from rmqlb.model.simulate_receive import QueueRate, ReceiveScenario

from .builders import route
from .mismatches import FOLDER

PRIORITY_VECTORS = FOLDER / "priority.json"
QUEUES, WRITE_QUEUES, PICKED = 4, 3, 1
RECEIVES = 200
RETRY = "retry"
STRAYS = 4
"""Receives of 200 that may pass over a queue, as the broker locks it while it commits an offset."""
_DEVIATIONS = 4.5


class SendCase(Struct, frozen=True):
    """A message to queue `PICKED`; `priority` is the one that counts."""

    priority: int | None
    properties: Mapping[str, str]
    batch: bool = False

    @property
    def predicted(self) -> int:
        of_broker = QueueData("broker-a", QUEUES, WRITE_QUEUES, 6), BrokerData("c", "broker-a", {0: "127.0.0.1:10911"})
        topic = TopicRouteData("Sent", of_broker[:1], of_broker[1:])
        scenario = SendScenario(messages=1, start_at=PICKED, priorities=(self.priority,))
        (attempt,) = simulate_send(topic, scenario).attempts or ()
        return attempt.queue_id


class ReceiveCase(Struct, frozen=True):
    """Receives of one message each, while the retry topic and all queues have messages."""

    factor: int
    retry_percent: int = 0

    @property
    def scenario(self) -> ReceiveScenario:
        return ReceiveScenario("pop", batch=1, priority_factor=self.factor, priority_retry_percent=self.retry_percent)

    def shares(self, *, with_retry: bool = True) -> Mapping[str, float]:
        """From where a receive takes its message, as a share of all receives."""
        orders = (broker_rules("5.5.0").order(number, QUEUES, self.scenario) for number in range(RANDOM_QUEUES))
        found = Counter(RETRY if first and with_retry else str(next(places)) for first, places in orders)
        return {place: number / RANDOM_QUEUES for place, number in found.items()}

    def assert_fits(self, found: Mapping[str, int], *, with_retry: bool = True, strays: int = 0) -> None:
        """The counts are those of the shares, within chance, except for some receives that met a locked queue."""
        shares, receives = self.shares(with_retry=with_retry), sum(found.values())
        for place in {*found, *shares}:
            share = shares.get(place, 0)
            most = strays + _DEVIATIONS * sqrt(receives * share * (1 - share))
            assert abs(found.get(place, 0) - receives * share) <= most, (self, place, found)

    def simulated(self, receives: int) -> Mapping[str, int]:
        """The same of a simulation, in which no message comes back."""
        rates = tuple(QueueRate("a", queue, Fraction(100_000)) for queue in range(QUEUES))
        scenario = replace(self.scenario, rates=rates, round_trip_us=100_000, messages=2 * QUEUES * receives)
        report = simulate_receive(route(a=QUEUES), scenario, trace=True)
        received = sorted(report.messages or (), key=lambda message: message.received_ms or 0)
        return Counter(str(message.queue_id) for message in received[:receives])


def send_cases() -> Iterator[SendCase]:
    yield SendCase(None, {})
    for text in ("-1", "x", "", " 2", "2147483648"):
        yield SendCase(None, {"priority": text})
    for priority in (*range(WRITE_QUEUES + 3), 2**31 - 1):
        yield SendCase(priority, {"priority": str(priority)})
    yield SendCase(None, {"priority": "0", "key": "order-1"})
    yield SendCase(None, {"priority": "0", "delay": "1"})
    yield SendCase(None, {"priority": "0"}, batch=True)


def receive_cases() -> Iterator[ReceiveCase]:
    for factor in (0, 10, 50, 100):
        yield ReceiveCase(factor)
    yield ReceiveCase(100, retry_percent=30)


def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PRIORITY_VECTORS.read_text(encoding="utf-8"))
    return found
