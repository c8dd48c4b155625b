"""Strategies by machine: MACHINE_ROOM reads rooms from brokers' names; MACHINE_ROOM_NEARBY gets zones from the user.

PIN and PIN_OVER_ALL pin topics to machines, as applications do correctly (PIN) or by mistake (PIN_OVER_ALL).
"""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from rmqlb.engine.allocate.avg import ByConfig
from rmqlb.engine.allocate.strategy import Prepared, Settings, Strategy, StrategyClass, Zones
from rmqlb.engine.arguments import require, shown
from rmqlb.errors import AllocationError, UsageError
from rmqlb.model.message_queue import MessageQueue, grouped, sort_key, split
from rmqlb.model.result import counted


def room(broker_name: str) -> str | None:
    """The room in a broker's name, `ROOM@NAME`; None for names of another form."""
    parts = split(broker_name, "@")
    return parts[0] if len(parts) == 2 else None


class ByMachineRoom(Prepared):
    """`AllocateMessageQueueByMachineRoom`: a broker named `room@name` is in `room`; other brokers have no room.

    The listed rooms have k queues, and the group has c consumers. Consumer i, counted from 0, gets k//c queues,
    starting with queue i*(k//c). If i < k % c, it also gets queue c*(k//c)+i. Queues in other rooms stay unassigned.
    The location of the consumers does not matter.
    """

    _room = staticmethod(room)

    def __init__(self, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings) -> None:
        super().__init__(queues, client_ids, settings)
        rooms = settings.consumer_idcs
        self._rooms_missing = rooms is None and any(room(queue.broker_name) is not None for queue in queues)
        self._inside = [queue for queue in queues if self._room(queue.broker_name) in (rooms or ())]
        self._blocks_of: Sequence[MessageQueue] = self._inside

    @cached_property
    def _places(self) -> dict[MessageQueue, int]:
        return {queue: place for place, queue in enumerate(self._blocks_of)}

    def _share(self, client_id: str) -> Sequence[MessageQueue]:
        if self._rooms_missing:
            raise AllocationError("consumeridcs is null")
        index, size, blocks = self._indexes[client_id], *self._sizes()
        return [*self._blocks_of[size * index : size * (index + 1)], *self._inside[blocks:][index : index + 1]]

    def why(self, queue: MessageQueue) -> str:
        place = self._places.get(queue)
        if place is None:
            its_room = room(queue.broker_name)
            return f"room {its_room} is not listed" if its_room is not None else "the broker's name is not ROOM@NAME"
        size, blocks = self._sizes()
        if place >= blocks:
            return f"queue {place} of the listed rooms is part of the remainder, for consumer {place - blocks}"
        return f"queue {place} of the listed rooms is in block {place // size} of {size} queues"

    def why_idle(self, client_id: str) -> str:
        return self._behind(client_id, f"{len(self._inside)} queues in the listed rooms")

    def _sizes(self) -> tuple[int, int]:
        size = len(self._inside) // len(self._client_ids)
        return size, size * len(self._client_ids)


class MachineRoomNearby(Prepared):
    """`AllocateMachineRoomNearby` around an inner strategy.

    The consumers of a zone share the queues of their zone. All consumers share the queues of zones without a consumer,
    one zone after the other, in Java's string order. RocketMQ has no built-in resolver of zones, so you configure the
    zones.
    """

    def __init__(
        self, inner: StrategyClass, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings
    ) -> None:
        if settings.broker_zones is None and settings.client_zones is None:
            raise AllocationError("machineRoomResolver is null")
        super().__init__(queues, client_ids, settings)
        self._inner = inner

    def _share(self, client_id: str) -> Sequence[MessageQueue]:
        own, shared = self._by_zone
        mine = own.get(self._client_zone(client_id))
        parts = ([mine] if mine else []) + list(shared.values())
        return [queue for part in parts for queue in _delegate(part, client_id)]

    def why(self, queue: MessageQueue) -> str:
        own, shared = self._by_zone
        zone = self._broker_zone(queue)
        if zone in own:
            return f"zone {zone} has consumers of its own: {own[zone].why(queue)}"
        return f"zone {zone} has no consumer, so all consumers share it: {shared[zone].why(queue)}"

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
        """Zone → strategy, of zones with consumers and of zones without, in Java's string order."""
        queues = grouped((self._broker_zone(queue), queue) for queue in self._queues)
        members = grouped((self._client_zone(client_id), client_id) for client_id in self._client_ids)
        own: dict[str, Strategy] = {}
        shared: dict[str, Strategy] = {}
        for zone in sorted(queues, key=sort_key):
            ids = members.get(zone, self._client_ids)
            (own if zone in members else shared)[zone] = self._inner(queues[zone], ids, self._settings)
        return own, shared

    def _broker_zone(self, queue: MessageQueue) -> str:
        return _zone(self._settings.broker_zones, queue.broker_name, f"mq {queue}")

    def _client_zone(self, client_id: str) -> str:
        return _zone(self._settings.client_zones, client_id, f"consumer id {client_id}")


def _zone(zones: Zones | None, name: str, what: str) -> str:
    zone = None if zones is None else resolve(zones, name)
    if not zone:
        raise AllocationError(f"Machine room is null for {what}")
    return zone


def resolve(zones: Zones, name: str) -> str | None:
    if isinstance(zones, Mapping):
        return zones.get(name)
    if isinstance(zones, str | re.Pattern):
        match = re.match(zones, name)
        if match and not match.re.groups:
            raise UsageError(
                f"the pattern {match.re.pattern!r} does not mark the zone", hint="put the zone in brackets: '([^-]+)-'"
            )
        return match[1] if match else None
    zone = zones(name)
    require(zone, str | None, f"the zone of {shown(name)}")
    return zone


def _delegate(strategy: Strategy, client_id: str) -> Sequence[MessageQueue]:
    """The inner strategy's result; Java throws an exception if an inner CONFIG returns null."""
    if isinstance(strategy, ByConfig) and strategy.configured(client_id) is None:
        raise AllocationError("java.lang.NullPointerException")
    return strategy.share(client_id)


class Pinned(Prepared):
    """A topic pinned to machines: an inner strategy divides it among the consumers on these machines.

    RocketMQ has no such class: users write this wrapper around its strategies. A consumer's machine is the text before
    the first `@` of its client ID. If no consumer runs on a chosen machine, every queue is unassigned. You can pin only
    some topics; all consumers share the other topics.
    """

    asks_all = False

    def __init__(
        self, inner: StrategyClass, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings
    ) -> None:
        super().__init__(queues, client_ids, settings)
        hosts = chosen_hosts(queues, settings)
        self._is_pinned = hosts is not None
        self._chosen = [client_id for client_id in client_ids if hosts is None or host(client_id) in hosts]
        self._is_chosen = frozenset(self._chosen)
        self._inner = inner(queues, client_ids if self.asks_all else self._chosen, settings)

    def share(self, client_id: str) -> Sequence[MessageQueue]:
        return super().share(client_id) if self._is_pinned else self._inner.share(client_id)

    def _share(self, client_id: str) -> Sequence[MessageQueue]:
        return self._inner.share(client_id) if client_id in self._is_chosen else []

    def why(self, queue: MessageQueue) -> str:
        if self._is_pinned and not self._chosen:
            return "no consumer runs on a chosen machine"
        among = f"among the {counted(len(self._chosen), 'consumer')} on chosen machines: " if self._is_pinned else ""
        return f"{among}{self._inner.why(queue)}"

    def why_idle(self, client_id: str) -> str:
        if client_id in self._is_chosen or not self._is_pinned:
            return self._inner.why_idle(client_id)
        return f"{host(client_id)} is not one of the chosen machines"


class PinnedOverAll(Pinned):
    """A topic pinned to machines, where the inner strategy still counts all consumers.

    RocketMQ has no such class: users write it by mistake instead of PIN. A consumer on a chosen machine calls the inner
    strategy with the list of all consumers and takes its own share. A consumer on another machine takes no queue, so
    its share stays unassigned. All consumers share a topic that is not pinned.
    """

    asks_all = True

    def why(self, queue: MessageQueue) -> str:
        if not self._is_pinned:
            return self._inner.why(queue)
        reason = f"among all {len(self._client_ids)} consumers: {self._inner.why(queue)}"
        owner = self._fallen_to.get(queue)
        return reason if owner is None else f"{reason}; {owner} is not on a chosen machine, so it takes nothing"

    @cached_property
    def _fallen_to(self) -> dict[MessageQueue, str]:
        others = [client_id for client_id in self._indexes if client_id and client_id not in self._is_chosen]
        return {queue: client_id for client_id in others for queue in self._inner.share(client_id)}


def chosen_hosts(queues: Sequence[MessageQueue], settings: Settings) -> frozenset[str] | None:
    """The machines for the topic of these queues; None if the topic is not pinned.

    A topic without its own machines has those of all topics; where only single topics are pinned, None.
    """
    if queues and queues[0].topic in settings.pins:
        return settings.pins[queues[0].topic]
    return None if settings.hosts is None and settings.pins else settings.hosts or frozenset()


def host(client_id: str) -> str:
    """The machine of a client ID (`ClientConfig.buildMQClientId`): the text before the first `@`, without brackets."""
    return client_id.partition("@")[0].strip("[]")
