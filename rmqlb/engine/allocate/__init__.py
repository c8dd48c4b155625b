"""The allocation strategies, keyed by RocketMQ's own names, one strategy a file.

`allocate` answers for the whole group, `allocate_for` for one member exactly as that member's client computes it; both
ask the same strategy object, so the cost of a whole group is not members × queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rmqlb.engine.allocate.avg import Averagely
from rmqlb.engine.allocate.avg_by_circle import AveragelyByCircle
from rmqlb.engine.allocate.config import ByConfig
from rmqlb.engine.allocate.consistent_hash import ConsistentHash
from rmqlb.engine.allocate.machine_room import ByMachineRoom
from rmqlb.engine.allocate.machine_room_nearby import MachineRoomNearby
from rmqlb.engine.allocate.pin import Pin
from rmqlb.engine.allocate.strategy import (
    DEFAULT_VIRTUAL_NODES,
    ConfigLists,
    Settings,
    Strategy,
    StrategyClass,
    Zones,
)
from rmqlb.errors import UsageError
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues

SIMPLE: dict[str, StrategyClass] = {
    "AVG": Averagely,
    "AVG_BY_CIRCLE": AveragelyByCircle,
    "CONFIG": ByConfig,
    "MACHINE_ROOM": ByMachineRoom,
    "CONSISTENT_HASH": ConsistentHash,
}
WRAPPERS: dict[str, type[MachineRoomNearby | Pin]] = {"MACHINE_ROOM_NEARBY": MachineRoomNearby, "PIN": Pin}
NAMES = (*SIMPLE, *WRAPPERS)
_MOST_WRAPPERS = 16
WITHOUT_SETTINGS = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
JAVA_CLASSES = {
    "AllocateMessageQueueAveragely": "AVG",
    "AllocateMessageQueueAveragelyByCircle": "AVG_BY_CIRCLE",
    "AllocateMessageQueueByConfig": "CONFIG",
    "AllocateMessageQueueByMachineRoom": "MACHINE_ROOM",
    "AllocateMachineRoomNearby": "MACHINE_ROOM_NEARBY",
    "AllocateMessageQueueConsistentHash": "CONSISTENT_HASH",
}


def full_name(strategy: str, inner: str = "AVG") -> str:
    """RocketMQ's `getName()`: a wrapper's name ends in the inner strategy's.

    >>> full_name("MACHINE_ROOM_NEARBY", "AVG_BY_CIRCLE"), full_name("AVG")
    ('MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE', 'AVG')

    Raises:
        UsageError: there is no such strategy.
    """
    if strategy in WRAPPERS:
        return f"{strategy}-{full_name(inner)}"
    strategy_class(strategy)
    return strategy


def strategy_class(name: str, inner: str = "AVG") -> StrategyClass:
    """The class behind a strategy's name, or behind `WRAPPER-INNER`; `inner` is for a bare wrapper's name.

    Raises:
        UsageError: there is no such strategy, or more wrappers are nested than anybody writes.
    """
    if name in SIMPLE:
        return SIMPLE[name]
    outer, dash, rest = name.partition("-")
    if outer not in WRAPPERS:
        raise UsageError(f"unknown strategy {name}", hint=_similar(name), code="unknown-strategy")
    if name.count("-") > _MOST_WRAPPERS:
        raise UsageError(f"strategy {name[:40]}…: more than {_MOST_WRAPPERS} strategies around another")
    return WRAPPERS[outer](strategy_class(rest if dash else inner))


def unset_options(strategy: str, settings: Settings) -> tuple[str, str] | None:
    """What a prediction lacks: the settings that decide what a strategy does are the application's, and unknown.

    Args:
        strategy: a strategy's name, or `WRAPPER-INNER`.
        settings: those that were given.

    Returns:
        The first strategy, of it and those inside it, that cannot go without what was not given, and the options
        that say it; None when nothing is missing.

    >>> unset_options("MACHINE_ROOM_NEARBY", Settings(broker_zones={}, client_zones={}, inner="CONFIG"))
    ('CONFIG', '--config')
    """
    needed: dict[str, tuple[str, object]] = {
        "MACHINE_ROOM": ("--idc", settings.consumer_idcs),
        "CONFIG": ("--config", settings.config),
        "MACHINE_ROOM_NEARBY": (
            "--broker-zone and --client-zone",
            None if settings.client_zones is None else settings.broker_zones,
        ),
        "PIN": ("--host", settings.hosts),
    }
    outer, dash, rest = strategy.partition("-")
    inside = (rest if dash else settings.inner).split("-") if outer in WRAPPERS else ()
    for name in (outer, *inside):
        options, given = needed.get(name, ("", True))
        if given is None:
            return name, options
    return None


def prepare(strategy: str, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings) -> Strategy:
    """A strategy ready to be asked, for lists in the order in which the client passes them.

    Raises:
        AllocationError: the strategy object cannot be constructed.
        UsageError: there is no such strategy.
    """
    return strategy_class(strategy, settings.inner)(queues, client_ids, settings)


def allocate(
    strategy: str,
    queues: Iterable[MessageQueue],
    client_ids: Iterable[str],
    *,
    presorted: bool = False,
    virtual_nodes: int = DEFAULT_VIRTUAL_NODES,
    consumer_idcs: Iterable[str] | None = None,
    config: ConfigLists | None = None,
    inner: str = "AVG",
    broker_zones: Zones | None = None,
    client_zones: Zones | None = None,
    hosts: Iterable[str] | None = None,
) -> dict[str, list[MessageQueue]]:
    """Who owns which queue once every member of the group has run its strategy.

    Args:
        strategy: RocketMQ's name: AVG, AVG_BY_CIRCLE, CONFIG, MACHINE_ROOM, MACHINE_ROOM_NEARBY, CONSISTENT_HASH;
            or PIN. A wrapper may name its inner strategy: `MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE`.
        queues: the read queues of one topic, in any order.
        client_ids: the group's members, in any order; an id that two processes share stands twice.
        presorted: take both lists as they stand instead of sorting them as clients do.
        virtual_nodes: CONSISTENT_HASH, ring entries a member.
        consumer_idcs: MACHINE_ROOM, the rooms whose queues are taken.
        config: CONFIG, one list for all members, or a list by client id.
        inner: the strategy inside MACHINE_ROOM_NEARBY or PIN.
        broker_zones: MACHINE_ROOM_NEARBY, broker name → zone: a mapping, a function, or a pattern with one group.
        client_zones: MACHINE_ROOM_NEARBY, client id → zone, likewise.
        hosts: PIN, the machines that take part, as they stand before the `@` of a client id.

    Returns:
        Client id → its queues, for each distinct id, in the order of the sorted ids.

    Raises:
        AllocationError: a member's client throws; the text is RocketMQ's.
        UsageError: there is no such strategy.
    """
    settings = _settings(virtual_nodes, consumer_idcs, config, inner, broker_zones, client_zones, hosts)
    prepared, ids = _prepared(strategy, queues, client_ids, presorted, settings)
    if not ids:
        prepared.share("nobody")  # every client would throw; so does this
    return {client_id: list(prepared.share(client_id)) for client_id in ids}


def allocate_for(
    client_id: str,
    strategy: str,
    queues: Iterable[MessageQueue],
    client_ids: Iterable[str],
    *,
    presorted: bool = False,
    virtual_nodes: int = DEFAULT_VIRTUAL_NODES,
    consumer_idcs: Iterable[str] | None = None,
    config: ConfigLists | None = None,
    inner: str = "AVG",
    broker_zones: Zones | None = None,
    client_zones: Zones | None = None,
    hosts: Iterable[str] | None = None,
) -> list[MessageQueue]:
    """One member's queues exactly as its own client computes them (`AllocateMessageQueueStrategy.allocate`).

    A member that is not in `client_ids` gets nothing, as in RocketMQ. The other arguments are those of `allocate`.

    Raises:
        AllocationError: this member's client throws; the text is RocketMQ's.
        UsageError: there is no such strategy.
    """
    settings = _settings(virtual_nodes, consumer_idcs, config, inner, broker_zones, client_zones, hosts)
    prepared, _ = _prepared(strategy, queues, client_ids, presorted, settings)
    return list(prepared.share(client_id))


def _prepared(
    strategy: str, queues: Iterable[MessageQueue], client_ids: Iterable[str], presorted: bool, settings: Settings
) -> tuple[Strategy, list[str]]:
    ordered = list(queues) if presorted else sort_queues(queues)
    ids = list(client_ids) if presorted else sort_client_ids(client_ids)
    return prepare(strategy, ordered, ids, settings), ids


def _settings(
    virtual_nodes: int,
    consumer_idcs: Iterable[str] | None,
    config: ConfigLists | None,
    inner: str,
    broker_zones: Zones | None,
    client_zones: Zones | None,
    hosts: Iterable[str] | None,
) -> Settings:
    return Settings(
        virtual_nodes=virtual_nodes,
        consumer_idcs=None if consumer_idcs is None else frozenset(consumer_idcs),
        config=config,
        inner=inner,
        broker_zones=broker_zones,
        client_zones=client_zones,
        hosts=None if hosts is None else frozenset(hosts),
    )


def _similar(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name.upper(), NAMES, n=1, cutoff=0.4)
    return (f"did you mean {close[0]}? " if close else "") + "strategies: " + ", ".join(NAMES)
