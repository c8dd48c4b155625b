"""The interface of allocation strategies, and RocketMQ's common checks."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Protocol

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from rmqlb.errors import AllocationError
from rmqlb.model.limits import MOST_VIRTUAL_NODES
from rmqlb.model.message_queue import MessageQueue

BROKER_STRATEGIES = ("AVG", "AVG_BY_CIRCLE")  # those of brokers (`QueryAssignmentProcessor`, 5.5.0)
DEFAULT_VIRTUAL_NODES = 10
VirtualNodes = Annotated[int, Meta(ge=-(2**31), le=MOST_VIRTUAL_NODES)]  # below 0, the constructor throws

Zones = Mapping[str, str | None] | Callable[[str], str | None] | str | re.Pattern[str]
"""Zones of brokers or clients: a mapping by name, a function of the name, or a pattern with the zone as its group."""

ConfigLists = Sequence[MessageQueue] | Mapping[str, Sequence[MessageQueue]]
"""The setting of CONFIG: one list for every consumer, or a list by client ID."""


StrategyFunction = Callable[[str, str, list[MessageQueue], list[str]], Sequence[MessageQueue]]
"""A user's strategy, `AllocateMessageQueueStrategy.allocate`: (group, client ID, sorted queues, sorted client IDs)."""


class Settings(Struct, frozen=True):
    """Constructor arguments of the consumers' strategy objects."""

    virtual_nodes: VirtualNodes = DEFAULT_VIRTUAL_NODES  # CONSISTENT_HASH: ring entries per consumer
    consumer_idcs: frozenset[str] | None = None  # MACHINE_ROOM: the listed rooms (`consumeridcs`); None when never set
    config: ConfigLists | None = None  # CONFIG: the configured queues; None when never set
    inner: str = "AVG"  # MACHINE_ROOM_NEARBY, PIN, PIN_OVER_ALL: name of the inner strategy
    broker_zones: Zones | None = None  # MACHINE_ROOM_NEARBY: broker name → zone
    client_zones: Zones | None = None  # MACHINE_ROOM_NEARBY: client ID → zone
    hosts: frozenset[str] | None = None  # PIN, PIN_OVER_ALL: the machines, as before the `@` of a client ID
    pins: Mapping[str, frozenset[str]] = field(default_factory=dict)  # topic → its own machines instead of `hosts`
    custom: Mapping[str, StrategyFunction] = field(default_factory=dict)  # name → user's function
    group: str = ""  # argument of such a function


def with_function(strategy: str | StrategyFunction, settings: Settings) -> tuple[str, Settings]:
    """The strategy by name, and settings with the function (raises UsageError)."""
    if isinstance(strategy, str):
        return strategy, settings
    from rmqlb.engine.arguments import STRATEGY, as_function, name_for

    function = as_function(strategy, STRATEGY)
    name = name_for(strategy, settings.custom, function)
    return name, replace(settings, custom={**settings.custom, name: function})


class Strategy(Protocol):
    """One strategy, prepared once for a topic's queues and a group's consumers.

    The constructor takes `(queues, client_ids, settings)`, both lists in the order of the client's call.
    """

    # the queues that this consumer's own call returns (raises AllocationError)
    def share(self, client_id: str) -> Sequence[MessageQueue]: ...
    def why(self, queue: MessageQueue) -> str: ...  # one line: the place of the queue in the rule
    def why_idle(self, client_id: str) -> str: ...  # one line: why this consumer gets nothing


StrategyClass = Callable[[Sequence[MessageQueue], Sequence[str], Settings], Strategy]


def first_indexes(client_ids: Sequence[str]) -> dict[str, int]:
    """Client ID → its first place in the list, as Java's `List.indexOf`."""
    indexes: dict[str, int] = {}
    for index, client_id in enumerate(client_ids):
        indexes.setdefault(client_id, index)
    return indexes


class Prepared:
    """The lists that most strategies are prepared with, and RocketMQ's checks of them."""

    _empty = ("currentCID is empty", "mqAll is null or mqAll empty", "cidAll is null or cidAll empty")

    def __init__(self, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings) -> None:
        self._queues = queues
        self._client_ids = client_ids
        self._indexes = first_indexes(client_ids)
        self._settings = settings

    def share(self, client_id: str) -> Sequence[MessageQueue]:
        return self._share(client_id) if self._takes_part(client_id) else []

    def _share(self, client_id: str) -> Sequence[MessageQueue]:
        raise NotImplementedError

    @cached_property
    def _places(self) -> dict[MessageQueue, int]:
        return {queue: place for place, queue in enumerate(self._queues)}

    def _takes_part(self, client_id: str) -> bool:
        """`AbstractAllocateMessageQueueStrategy.check`, in its order: False when the consumer is not in the list."""
        for given, text in zip((client_id, self._queues, self._client_ids), self._empty, strict=True):
            if not given:
                raise AllocationError(text)
        return client_id in self._indexes

    def why_idle(self, client_id: str) -> str:
        """The reason under strategies that go by place: the consumer's place is after the last queue."""
        return self._behind(client_id, f"{len(self._queues)} queues")

    def _behind(self, client_id: str, queues: str) -> str:
        return f"consumer {self._indexes[client_id]} of {len(self._client_ids)} (counted from 0), and only {queues}"
