"""The table of strategies, with all that other code needs to know of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Literal

from msgspec import Struct

from rmqlb.engine.allocate.strategy import Settings, Strategy


class Needs(Struct, frozen=True):
    """Required settings: their options, and their values in `Settings`, None when not given."""

    options: str
    given: Callable[[Settings], object]


class StrategyRule(Struct, frozen=True):
    # the fact of a consumer that decides its share: its place in the sorted list (a plan with placeholders tries each),
    # its ID or zone, the machine, or a hash of the ID (which redacted names change)
    decides: Literal["place", "name", "machine", "hash"]
    java_class: str | None  # the reported simple name; None where RocketMQ has no such class
    needs: Needs | None  # None when it needs nothing; every comparison then has it
    place: str  # MODULE.NAME in this folder, imported when needed
    wraps: bool = False  # its constructor takes an inner class first


_ZONES = Needs(
    "--strategy-option broker-zone=… and --strategy-option client-zone=…",
    lambda given: None if given.client_zones is None else given.broker_zones,
)
_MACHINES = Needs("--strategy-option host=IP or pin=TOPIC=IP", lambda given: given.pins or given.hosts)

RULES: Mapping[str, StrategyRule] = {
    "AVG": StrategyRule("place", "AllocateMessageQueueAveragely", None, place="avg.Averagely"),
    "AVG_BY_CIRCLE": StrategyRule(
        "place", "AllocateMessageQueueAveragelyByCircle", None, place="avg.AveragelyByCircle"
    ),
    "CONFIG": StrategyRule(
        "name",
        "AllocateMessageQueueByConfig",
        Needs("--strategy-option queues=FILE", lambda given: given.config),
        place="avg.ByConfig",
    ),
    "MACHINE_ROOM": StrategyRule(
        "place",
        "AllocateMessageQueueByMachineRoom",
        Needs("--strategy-option idc=ROOM", lambda given: given.consumer_idcs),
        place="machine_room.ByMachineRoom",
    ),
    "CONSISTENT_HASH": StrategyRule(
        "hash", "AllocateMessageQueueConsistentHash", None, place="consistent_hash.ConsistentHash"
    ),
    "MACHINE_ROOM_NEARBY": StrategyRule(
        "name", "AllocateMachineRoomNearby", _ZONES, place="machine_room.MachineRoomNearby", wraps=True
    ),
    "PIN": StrategyRule("machine", None, _MACHINES, place="pin.Pinned", wraps=True),
    "PIN_OVER_ALL": StrategyRule("machine", None, _MACHINES, place="pin.PinnedOverAll", wraps=True),
}  # by RocketMQ's names, in the order of all lists of strategies

NAMES = tuple(RULES)
SIMPLE = tuple(name for name, rule in RULES.items() if not rule.wraps)
WRAPPERS = tuple(name for name, rule in RULES.items() if rule.wraps)
WITHOUT_SETTINGS = tuple(name for name, rule in RULES.items() if rule.needs is None)
PINNED = tuple(name for name, rule in RULES.items() if rule.decides == "machine")
BY_PLACE = tuple(name for name, rule in RULES.items() if rule.decides == "place")
HASHING = tuple(name for name, rule in RULES.items() if rule.decides == "hash")
JAVA_CLASSES = {rule.java_class: name for name, rule in RULES.items() if rule.java_class is not None}


def class_of(name: str) -> Callable[..., Strategy]:
    return class_at(RULES[name].place)


@cache
def class_at(place: str) -> Callable[..., Strategy]:
    module, _, found = place.partition(".")
    made: Callable[..., Strategy] = getattr(import_module(f"rmqlb.engine.allocate.{module}"), found)
    return made
