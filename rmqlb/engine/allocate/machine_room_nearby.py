"""MACHINE_ROOM_NEARBY: a zone with consumers keeps its queues to itself; other zones' queues are shared by all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from rmqlb.engine.allocate.config import ByConfig
from rmqlb.engine.allocate.strategy import Prepared, Settings, Strategy, StrategyClass, Zones
from rmqlb.engine.arguments import require, shown
from rmqlb.errors import AllocationError, UsageError
from rmqlb.model.java import sort_key
from rmqlb.model.message_queue import MessageQueue


class MachineRoomNearby(Prepared):
    """`AllocateMachineRoomNearby` around an inner strategy.

    A consumer first shares its own zone's queues with the consumers of that zone, then, zone by zone in Java's string
    order, the queues of zones without any consumer, with all. RocketMQ ships no resolver of zones, so they are
    given.

    >>> from rmqlb.engine.allocate.avg import Averagely
    >>> queues = [MessageQueue("T", broker, i) for broker in ("r1-b", "r2-b") for i in range(2)]
    >>> settings = Settings(broker_zones="([^-]+)-", client_zones={"x": "r1", "y": "r3"})
    >>> strategy = MachineRoomNearby(Averagely, queues, ["x", "y"], settings)
    >>> [[str(q.broker_name) for q in strategy.share(id)] for id in ("x", "y")]
    [['r1-b', 'r1-b', 'r2-b'], ['r2-b']]
    """

    def __init__(
        self, inner: StrategyClass, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings
    ) -> None:
        if settings.broker_zones is None and settings.client_zones is None:
            raise AllocationError("machineRoomResolver is null")
        super().__init__(queues, client_ids, settings)
        self._inner = inner

    def share(self, client_id: str) -> Sequence[MessageQueue]:
        if not self._takes_part(client_id):
            return []
        own, shared = self._by_zone
        mine = own.get(self._client_zone(client_id))
        parts = ([mine] if mine else []) + list(shared.values())
        return [queue for part in parts for queue in _delegate(part, client_id)]

    def why(self, queue: MessageQueue) -> str:
        own, shared = self._by_zone
        zone = self._broker_zone(queue)
        if zone in own:
            return f"zone {zone} has consumers of its own: {own[zone].why(queue)}"
        return f"zone {zone} has no consumer, all share it: {shared[zone].why(queue)}"

    def why_idle(self, client_id: str) -> str:
        own, shared = self._by_zone
        zone = self._client_zone(client_id)
        if zone in own:
            return f"zone {zone}: {own[zone].why_idle(client_id)}"
        if shared:
            return f"zone {zone} has no queue, and the zones without consumers have too few"
        return f"zone {zone} has no queue, and every other zone has consumers of its own"

    @cached_property
    def _by_zone(self) -> tuple[dict[str, Strategy], dict[str, Strategy]]:
        """Zone → strategy: of zones with consumers, and of those without; both in Java's string order of zones."""
        queues: dict[str, list[MessageQueue]] = {}
        for queue in self._queues:
            queues.setdefault(self._broker_zone(queue), []).append(queue)
        members: dict[str, list[str]] = {}
        for client_id in self._client_ids:
            members.setdefault(self._client_zone(client_id), []).append(client_id)
        own: dict[str, Strategy] = {}
        shared: dict[str, Strategy] = {}
        for zone in sorted(queues, key=sort_key):
            if zone in members:
                own[zone] = self._inner(queues[zone], members[zone], self._settings)
            else:
                shared[zone] = self._inner(queues[zone], self._client_ids, self._settings)
        return own, shared

    def _broker_zone(self, queue: MessageQueue) -> str:
        zone = resolve(self._settings.broker_zones, queue.broker_name)
        if not zone:
            raise AllocationError(f"Machine room is null for mq {queue}")
        return zone

    def _client_zone(self, client_id: str) -> str:
        zone = resolve(self._settings.client_zones, client_id)
        if not zone:
            raise AllocationError(f"Machine room is null for consumer id {client_id}")
        return zone


def resolve(zones: Zones | None, name: str) -> str | None:
    """The zone of a broker name or client id; None when it has none (raises UsageError)."""
    if zones is None:
        return None
    if isinstance(zones, Mapping):
        return zones.get(name)
    if isinstance(zones, str | re.Pattern):
        match = re.match(zones, name)
        if match and not match.re.groups:
            raise UsageError(f"the pattern {match.re.pattern!r} says no zone", hint="put it in brackets: '([^-]+)-'")
        return match[1] if match else None
    zone = zones(name)
    require(zone, str | None, f"the zone of {shown(name)}")
    return zone


def _delegate(strategy: Strategy, client_id: str) -> Sequence[MessageQueue]:
    """The inner strategy's answer; Java throws when a CONFIG inside returns null."""
    if isinstance(strategy, ByConfig) and strategy.configured(client_id) is None:
        raise AllocationError("java.lang.NullPointerException")
    return strategy.share(client_id)
