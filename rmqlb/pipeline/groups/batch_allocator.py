"""A strategy with its settings over a batch of groups: the engine's rules, vectorized.

Names become numbers here (rooms, zones, hashes); `rmqlb.engine.allocate.vectorized.strategies` decides who gets what.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rmqlb.engine.allocate import full_name
from rmqlb.engine.allocate.consistent_hash import MOST_ENTRIES, check_ring
from rmqlb.engine.allocate.machine_room import room
from rmqlb.engine.allocate.machine_room_nearby import resolve
from rmqlb.engine.allocate.pin import host
from rmqlb.engine.allocate.rules import PINNED, WRAPPERS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.allocate.vectorized import strategies as allocation
from rmqlb.engine.allocate.vectorized.hash_ring import Hashes, build_rings, entry_hashes, queue_texts, ring_hashes
from rmqlb.engine.allocate.vectorized.pairs import Pairs, first_processes, without_zone
from rmqlb.engine.arrays.lanes import Bools, Ints
from rmqlb.engine.arrays.ragged import elements, numbers
from rmqlb.errors import UsageError
from rmqlb.pipeline.groups.group_batch import GroupBatch

VECTORIZED = ("AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM", "CONSISTENT_HASH")
"""Those that `BatchAllocator` runs by themselves and inside a wrapper; the engine runs all others."""
_VECTORIZED_WRAPPERS = ("MACHINE_ROOM_NEARBY", "PIN", "PIN_OVER_ALL")

_MOST_ENTRIES = 20 * MOST_ENTRIES
"""Of a batch; an entry takes some 50 bytes while the rings are made."""


def is_vectorized(strategy: str, settings: Settings) -> bool:
    """Whether arrays can run the strategy: one that gives a queue to one member, or one wrapper around such a one."""
    outer, _, inner = full_name(strategy, settings).partition("-")
    if outer not in WRAPPERS:
        return outer in VECTORIZED
    if outer not in _VECTORIZED_WRAPPERS or (outer in PINNED and settings.pins):
        return False  # with pins, the chosen members differ from topic to topic
    return inner in VECTORIZED and (inner != "MACHINE_ROOM" or settings.consumer_idcs is not None)


class BatchAllocator:
    """A batch of groups, ready to be allocated under any strategy that `is_vectorized`.

    `pairs` are all of the batch, with all their members; `first` is, per member, the place of the first process with
    its client id, −1 for an empty id.
    """

    def __init__(self, batch: GroupBatch, settings: Settings) -> None:
        self._batch = batch
        self._settings = settings
        empty = np.array([not client_id for client_id in [*batch.client_ids, ""]], np.bool_)
        self.first, self._processes = first_processes(np.where(empty[batch.ids], -1, batch.ids), batch.members)
        self.pairs = Pairs.of(batch.queues, batch.members, batch.group_of, self.first)
        self._pair_of = batch.pair_of
        self._absent = self._keys(batch.absent[:, 0], batch.absent[:, 1])

    def places(self, strategy: str, pairs: Pairs) -> Ints:
        """The place of each queue's owner, −1 for none and all over a `refused` pair; shape (queues of the pairs,)."""
        places = self._strategy(full_name(strategy, self._settings))(pairs)
        if len(self._absent):
            keys = self._keys(self._pair_of[pairs.rows], self._batch.ids_at(places))
            places = np.where(np.isin(keys, self._absent), -1, places)
        return places

    def refused(self, strategy: str, pairs: Pairs) -> Bools:
        """The pairs where every client throws, and so keeps what it holds; shape (pairs,)."""
        name = full_name(strategy, self._settings)
        groups = numbers(pairs.members)
        named = np.bincount(groups[self.first[pairs.places] >= 0], minlength=len(pairs.members))
        refused: Bools = (named == 0)[pairs.groups]  # only empty ids
        if name == "MACHINE_ROOM" and self._settings.consumer_idcs is None:
            has_room = self._of_brokers([room(name) is not None for name in self._batch.brokers])
            refused |= np.bincount(numbers(pairs.queues)[has_room[pairs.rows]], minlength=len(pairs.queues)) > 0
        if name.startswith("MACHINE_ROOM_NEARBY-"):
            refused |= without_zone(pairs, *self._zones)
        return refused & (pairs.queues > 0) & (pairs.members[pairs.groups] > 0)

    def _strategy(self, name: str) -> allocation.Allocate:
        outer, _, inner = name.partition("-")
        if outer == "AVG":
            return allocation.avg
        if outer == "AVG_BY_CIRCLE":
            return allocation.avg_by_circle
        if outer == "MACHINE_ROOM":
            rooms = self._settings.consumer_idcs or frozenset()
            inside_rooms = self._of_brokers([room(name) in rooms for name in self._batch.brokers])
            return lambda pairs: allocation.machine_room(pairs, inside_rooms)
        if outer == "CONSISTENT_HASH":
            return self._consistent_hash
        inside = self._strategy(inner)
        if outer == "PIN":
            return lambda pairs: allocation.pin(pairs, self._chosen, inside)
        if outer == "PIN_OVER_ALL":
            return lambda pairs: allocation.pin_over_all(pairs, self._chosen, inside)
        return lambda pairs: allocation.machine_room_nearby(pairs, *self._zones, inside)

    def _consistent_hash(self, pairs: Pairs) -> Ints:
        batch = self._batch
        rings = build_rings(pairs, self._entries, lambda place: _utf8(batch.client_ids[batch.ids[place]]))
        return allocation.consistent_hash(pairs, rings, self._hashes)

    @cached_property
    def _hashes(self) -> Hashes:
        """Of each queue's text; a topic that many groups read is hashed once."""
        batch = self._batch
        begins = (np.diff(self._pair_of, prepend=-1) != 0) | (np.diff(batch.broker_of, prepend=-1) != 0)
        new_run = np.flatnonzero(begins)
        sizes = np.diff(np.append(new_run, len(batch.broker_of)))
        pairs, brokers = self._pair_of[new_run].tolist(), batch.broker_of[new_run].tolist()
        topics, names = batch.topics, batch.brokers
        found: dict[tuple[str, int, int], int] = {}
        which = np.array(
            [
                found.setdefault((topics[pair], broker, size), len(found))
                for pair, broker, size in zip(pairs, brokers, sizes.tolist(), strict=True)
            ],
            np.int64,
        )
        counts = [size for _, _, size in found]
        texts = queue_texts((topic for topic, _, _ in found), (names[broker] for _, broker, _ in found), counts)
        return ring_hashes(texts)[elements(np.array(counts, np.int64), which)]

    @cached_property
    def _entries(self) -> Hashes:
        """Of each member's ring entries; shape (members, virtual nodes)."""
        batch, nodes = self._batch, self._settings.virtual_nodes
        check_ring(int(self.pairs.members.max(initial=0)), nodes)
        if len(batch.ids) * nodes > _MOST_ENTRIES:
            raise UsageError(
                f"--strategy-option virtual-nodes={nodes}: {len(batch.ids)} consumers of a batch of groups would have "
                f"{len(batch.ids) * nodes} entries on rings of CONSISTENT_HASH, and at most {_MOST_ENTRIES} are "
                "simulated",
                hint="give fewer, or smaller batches: --conf spark.sql.execution.arrow.maxRecordsPerBatch=N",
                code="ring-too-large",
            )
        single = self._processes == 0
        used, where = np.unique(batch.ids, return_inverse=True)
        names = [_utf8(batch.client_ids[number]) for number in used.tolist()]
        entries = entry_hashes(names, np.zeros(len(names), np.int64), nodes)[where]
        if not single.all():
            others = np.flatnonzero(~single)
            texts = [_utf8(batch.client_ids[number]) for number in batch.ids[others].tolist()]
            entries[others] = entry_hashes(texts, self._processes[others], nodes)
        return entries

    def _of_brokers(self, flags: list[bool]) -> Bools:
        flagged: Bools = np.array(flags, np.bool_)[self._batch.broker_of]
        return flagged

    @cached_property
    def _chosen(self) -> Bools:
        hosts = self._settings.hosts or frozenset()
        return np.array([host(name) in hosts for name in self._batch.client_ids], np.bool_)[self._batch.ids]

    @cached_property
    def _zones(self) -> tuple[Ints, Ints]:
        """The zones of queues and of members by number, −1 for none."""
        batch, settings = self._batch, self._settings
        codes: dict[str, int] = {}
        of_brokers = [resolve(settings.broker_zones, name) for name in batch.brokers]
        of_clients = [resolve(settings.client_zones, name) for name in batch.client_ids]
        brokers, clients = (
            np.array([codes.setdefault(zone, len(codes)) if zone else -1 for zone in zones], np.int64)
            for zones in (of_brokers, of_clients)
        )
        return brokers[batch.broker_of], clients[batch.ids]

    def _keys(self, pairs: Ints, client_ids: Ints) -> Ints:
        """A pair and a client id in one number; an owner that is nobody equals no key."""
        return np.where(client_ids < 0, -1, pairs * (len(self._batch.client_ids) + 1) + client_ids)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")
