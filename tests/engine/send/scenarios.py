"""Random topics and scenarios for properties of the simulation."""

from __future__ import annotations

from typing import Any

from rmqlb.engine.send.producer import Producer
from rmqlb.engine.send.simulate import producer_of
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import Failure, Reaction, SendScenario
from tests.support.builders import route

BROKERS = ("a", "b", "c", "d")
VERSIONS = ("4.7.1", "4.8.0", "4.9.3", "4.9.7", "4.9.8", "5.0.0", "5.1.0", "5.1.3", "5.1.4", "5.2.0", "5.3.0", "5.5.0")
REFUSED = Reaction("refused", "refused", 0, 1000)
TIMEOUT = Reaction("timeout", "timeout")
UNSAFE = Reaction("status", "FLUSH_DISK_TIMEOUT", 10)
ERROR = Reaction("code", "SYSTEM_ERROR", 1)
GO_AWAY = Reaction("code", "GO_AWAY", 1500)
READ_ONLY = Reaction("read-only", "read-only")
TWO = route(a=2, b=2)
REACTIONS = (
    REFUSED,
    TIMEOUT,
    Reaction("slow", "slow", 0, 700_000),
    Reaction("slow", "slow", 0, 4_000_000),
    UNSAFE,
    ERROR,
    Reaction("code", "SYSTEM_BUSY", 2),
    Reaction("code", "MESSAGE_ILLEGAL", 13),
    GO_AWAY,
    READ_ONLY,
)


def played(topic: TopicRouteData = TWO, *failures: Failure, **fields: Any) -> Producer:
    """A run at its end, to look at what reports do not say."""
    given: dict[str, Any] = {"messages": 1, "start_at": 0, "failures": failures}
    scenario = SendScenario(**given | fields)
    producer = producer_of(topic, scenario)
    producer.run()
    return producer
