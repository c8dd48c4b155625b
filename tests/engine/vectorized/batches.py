"""Groups on topics as the kernel takes them, made from the engine's values, and its answers turned back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from rmqlb.engine.allocate.machine_room import room
from rmqlb.engine.allocate.machine_room_nearby import resolve
from rmqlb.engine.allocate.pin import host
from rmqlb.engine.allocate.strategy import Settings, Zones
from rmqlb.engine.allocate.vectorized import strategies as allocation
from rmqlb.engine.allocate.vectorized.hash_ring import build_rings, entry_hashes, ring_hashes
from rmqlb.engine.allocate.vectorized.pairs import Pairs, first_processes
from rmqlb.engine.arrays.lanes import Ints
from rmqlb.engine.arrays.ragged import numbers
from rmqlb.model.message_queue import MessageQueue


@dataclass(frozen=True)
class Group:
    """A group, its members and the queues of its topics in the clients' order."""

    client_ids: Sequence[str]
    topics: Sequence[Sequence[MessageQueue]]
    settings: Settings = Settings()


class Batch:
    """All groups on their topics.

    Attributes:
        pairs: in arrays.
        queues: by row.
        client_ids: by place.
    """

    def __init__(self, groups: Iterable[Group]) -> None:
        self._groups = list(groups)
        self.client_ids = [client_id for group in self._groups for client_id in group.client_ids]
        topics = [(number, topic) for number, group in enumerate(self._groups) for topic in group.topics]
        self.queues = [queue for _, topic in topics for queue in topic]
        members = ints(len(group.client_ids) for group in self._groups)
        codes = {client_id: code for code, client_id in enumerate(dict.fromkeys(self.client_ids))} | {"": -1}
        owners, self._processes = first_processes(ints(codes[client_id] for client_id in self.client_ids), members)
        sizes = ints(len(topic) for _, topic in topics)
        self.pairs = Pairs.of(sizes, members, ints(number for number, _ in topics), owners)
        self._by_row = self._settings(self.pairs.groups[numbers(sizes)])
        self._by_place = self._settings(numbers(members))

    def allocate(self, strategy: str) -> Ints:
        """The owners' places by a strategy; a wrapper's name ends in the inner one's."""
        return self._strategy(strategy)(self.pairs)

    def shares(self, places: Ints) -> list[dict[str, list[MessageQueue]]]:
        """For each pair, client id → its queues."""
        shares: list[dict[str, list[MessageQueue]]] = [{} for _ in self.pairs.queues]
        pairs = numbers(self.pairs.queues).tolist()
        for pair, queue, place in zip(pairs, self.queues, places.tolist(), strict=True):
            if place >= 0:
                shares[pair].setdefault(self.client_ids[place], []).append(queue)
        return shares

    def zones(self) -> tuple[Ints, Ints]:
        """Numbers of the zones of queues and of members."""
        codes: dict[str | None, int] = {None: -1, "": -1}

        def code(zones: Zones | None, name: str) -> int:
            return codes.setdefault(resolve(zones, name), len(codes))

        brokers = zip(self._by_row, self.queues, strict=True)
        clients = zip(self._by_place, self.client_ids, strict=True)
        return (
            ints(code(settings.broker_zones, queue.broker_name) for settings, queue in brokers),
            ints(code(settings.client_zones, client_id) for settings, client_id in clients),
        )

    def _settings(self, groups: Ints) -> list[Settings]:
        return [self._groups[group].settings for group in groups.tolist()]

    def _strategy(self, name: str) -> allocation.Allocate:
        outer, _, inner = name.partition("-")
        match outer:
            case "PIN" | "PIN_OVER_ALL":
                members = zip(self._by_place, self.client_ids, strict=True)
                chosen = bools(host(client_id) in (settings.hosts or ()) for settings, client_id in members)
                kernel = allocation.pin if outer == "PIN" else allocation.pin_over_all
                return partial(kernel, chosen=chosen, inner=self._strategy(inner))
            case "MACHINE_ROOM_NEARBY":
                queue_zones, member_zones = self.zones()
                return partial(
                    allocation.machine_room_nearby,
                    queue_zones=queue_zones,
                    member_zones=member_zones,
                    inner=self._strategy(inner),
                )
            case "MACHINE_ROOM":
                brokers = zip(self._by_row, self.queues, strict=True)
                inside = bools(room(queue.broker_name) in (settings.consumer_idcs or ()) for settings, queue in brokers)
                return partial(allocation.machine_room, inside=inside)
            case "CONSISTENT_HASH":
                return self._consistent_hash
            case _:
                return {"AVG": allocation.avg, "AVG_BY_CIRCLE": allocation.avg_by_circle}[name]

    def _consistent_hash(self, pairs: Pairs) -> Ints:
        (virtual_nodes,) = {group.settings.virtual_nodes for group in self._groups} or {10}
        client_ids = [client_id.encode("utf-8", "replace") for client_id in self.client_ids]
        rings = build_rings(pairs, entry_hashes(client_ids, self._processes, virtual_nodes), client_ids.__getitem__)
        hashes = ring_hashes(str(queue).encode("utf-8", "replace") for queue in self.queues)
        return allocation.consistent_hash(pairs, rings, hashes)


def ints(values: Iterable[int]) -> Ints:
    """Numbers as an array."""
    return np.array(list(values), np.int64)


def bools(values: Iterable[bool]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Truths as an array."""
    return np.array(list(values), np.bool_)
