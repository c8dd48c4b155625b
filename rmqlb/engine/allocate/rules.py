"""The table of strategies: with each, all that others have to know of it. Leaving something out is an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Literal

from msgspec import Struct

from rmqlb.engine.allocate.strategy import Settings, Strategy


class Needs(Struct, frozen=True):
    """What a strategy cannot go without: the options that say it, and what settings have of it, None when not given."""

    options: str
    given: Callable[[Settings], object]


class StrategyRule(Struct, frozen=True):
    # what of a consumer decides what it gets: its place in the sorted list (a plan with placeholders is then made for
    # each place that they can have), its id or zone by name, its machine, or a hash of its id (which redacted names
    # change)
    decides: Literal["place", "name", "machine", "hash"]
    java_class: str | None  # the simple name that its clients report; None where RocketMQ has none
    needs: Needs | None  # None when it needs nothing; it is then compared wherever strategies are
    # its class, as MODULE.NAME of this folder: a command runs one or two of them, and imports no others
    place: str
    wraps: bool = False  # its class takes another strategy's, and then what that one takes


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
}
"""By RocketMQ's own names, in the order of every list of strategies."""

NAMES = tuple(RULES)
SIMPLE = tuple(name for name, rule in RULES.items() if not rule.wraps)
WRAPPERS = tuple(name for name, rule in RULES.items() if rule.wraps)
WITHOUT_SETTINGS = tuple(name for name, rule in RULES.items() if rule.needs is None)
PINNED = tuple(name for name, rule in RULES.items() if rule.decides == "machine")
"""Those that look at a consumer's machine."""
BY_PLACE = tuple(name for name, rule in RULES.items() if rule.decides == "place")
"""Those for which of a consumer only its place in the list counts."""
HASHING = tuple(name for name, rule in RULES.items() if rule.decides == "hash")
"""Those for which other names are other owners."""
JAVA_CLASSES = {rule.java_class: name for name, rule in RULES.items() if rule.java_class is not None}


def class_of(name: str) -> Callable[..., Strategy]:
    return class_at(RULES[name].place)


@cache
def class_at(place: str) -> Callable[..., Strategy]:
    module, _, found = place.partition(".")
    made: Callable[..., Strategy] = getattr(import_module(f"rmqlb.engine.allocate.{module}"), found)
    return made
