"""What every allocation strategy looks like, and the checks that RocketMQ makes before most of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Protocol

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from rmqlb.errors import AllocationError
from rmqlb.model.limits import MOST_VIRTUAL_NODES
from rmqlb.model.message_queue import MessageQueue

BROKER_STRATEGIES = ("AVG", "AVG_BY_CIRCLE")
"""Those that brokers have, whatever a client is set to (`QueryAssignmentProcessor`, 5.5.0)."""
DEFAULT_VIRTUAL_NODES = 10
VirtualNodes = Annotated[int, Meta(ge=-(2**31), le=MOST_VIRTUAL_NODES)]
"""Below 0, the strategy's own constructor throws."""

Zones = Mapping[str, str | None] | Callable[[str], str | None] | str | re.Pattern[str]
"""Where brokers or clients are: a mapping by name, a function of the name, or a pattern with the zone as its group."""

ConfigLists = Sequence[MessageQueue] | Mapping[str, Sequence[MessageQueue]]
"""What CONFIG was given: one list for every consumer, or a list by client id."""


StrategyFunction = Callable[[str, str, list[MessageQueue], list[str]], Sequence[MessageQueue]]
"""A strategy that a user writes: of the group, the own client id, all queues and all client ids, the own queues.

The arguments are those of `AllocateMessageQueueStrategy.allocate`, both lists sorted as clients sort them.
"""


class Settings(Struct, frozen=True):
    """What the members' strategy objects were constructed with."""

    virtual_nodes: VirtualNodes = DEFAULT_VIRTUAL_NODES  # CONSISTENT_HASH, ring entries a consumer
    # MACHINE_ROOM, the rooms whose queues are taken (`consumeridcs`); None when never set
    consumer_idcs: frozenset[str] | None = None
    config: ConfigLists | None = None  # CONFIG, the configured queues; None when never set
    inner: str = "AVG"  # MACHINE_ROOM_NEARBY, PIN and PIN_OVER_ALL, name of the strategy inside
    broker_zones: Zones | None = None  # MACHINE_ROOM_NEARBY, broker name → zone
    client_zones: Zones | None = None  # MACHINE_ROOM_NEARBY, client id → zone
    # PIN and PIN_OVER_ALL, the machines that take part, as they stand before the `@` of a client id
    hosts: frozenset[str] | None = None
    # the same for single topics; one that is not in it has `hosts`, or without these all machines
    pins: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # name → the function behind it, of strategies that users write
    custom: Mapping[str, StrategyFunction] = field(default_factory=dict)
    group: str = ""  # the group's name, which such a function is given


def with_function(strategy: str | StrategyFunction, settings: Settings) -> tuple[str, Settings]:
    """The strategy by name, and settings that know the function behind it (raises UsageError)."""
    if isinstance(strategy, str):
        return strategy, settings
    from rmqlb.engine.user_functions import STRATEGY, as_function, name_for

    function = as_function(strategy, STRATEGY)
    name = name_for(strategy, settings.custom, function)
    return name, replace(settings, custom={**settings.custom, name: function})


class Strategy(Protocol):
    """One strategy, prepared once for a topic's queues and a group's consumers, then asked consumer by consumer.

    The constructor takes `(queues, client_ids, settings)`, both lists in the order in which the client passes them.
    """

    # the queues that this consumer's own call returns (raises AllocationError)
    def share(self, client_id: str) -> Sequence[MessageQueue]: ...
    def why(self, queue: MessageQueue) -> str: ...  # one line: the place of the queue in the rule
    def why_idle(self, client_id: str) -> str: ...  # one line: why this consumer gets nothing


StrategyClass = Callable[[Sequence[MessageQueue], Sequence[str], Settings], Strategy]
"""What makes a strategy of queues, client ids and settings: its class, or a wrapper around another one's."""


def first_indexes(client_ids: Sequence[str]) -> dict[str, int]:
    """Client id → its first place in the list, as Java's `List.indexOf`; a second process with the id has no place."""
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
        """Where places in the list decide, the consumer's is behind the last queue."""
        return self._behind(client_id, f"{len(self._queues)} queues")

    def _behind(self, client_id: str, queues: str) -> str:
        return f"consumer {self._indexes[client_id]} of {len(self._client_ids)} (counted from 0), and only {queues}"
