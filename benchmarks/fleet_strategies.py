"""The six strategies over a generated fleet: what their objects are constructed with.

Zones are chosen so that the brokers' are a few of the members': some zones have members, others share everybody.
"""

from __future__ import annotations

from rmqlb.pipeline.pipeline_plan import EVERY_TOPIC

from rmqlb import MessageQueue
from rmqlb.engine.allocate.strategy import Settings
from tests.support.synthetic.names import broker_name

NEARBY = "MACHINE_ROOM_NEARBY-AVG"
WITH_CLASS = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM", NEARBY)
"""Those of which RocketMQ's class has something to compute: that of CONFIG hands out the list it was given."""

ALL = (*WITH_CLASS, "CONFIG")
_BROKERS = 4
_NAMES = {
    broker_name(number, rooms=rooms, odd=odd): number
    for number in range(_BROKERS)
    for rooms in (False, True)
    for odd in (False, True)
}

SETTINGS = Settings(
    consumer_idcs=frozenset({"r1", "r2"}),
    config=[MessageQueue(EVERY_TOPIC, broker_name(0, rooms=False, odd=False), queue_id) for queue_id in range(2)],
    broker_zones={name: str(number) for name, number in _NAMES.items()},
    client_zones=r".*?([0-9])@",
)
"""Rooms are those of generated brokers, zones numbers: a broker's its own, a client's the digit before an `@`."""
