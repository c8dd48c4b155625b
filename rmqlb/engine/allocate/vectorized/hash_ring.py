"""The rings of CONSISTENT_HASH: many at once, and the MD5 that puts queues and members on them.

A position is a hash in [0, 2^32). All rings stand in one ascending array of uint64, the number of the member list in
the upper half of each value and the position in the lower.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from rmqlb.engine.allocate.vectorized.pairs import Pairs
from rmqlb.engine.arrays.lanes import Bits, Bools, Ints
from rmqlb.engine.arrays.ragged import elements, numbers, starts

Hashes = npt.NDArray[np.uint32]

_UPPER = np.uint64(32)
_AT_ONCE = 8192  # texts whose digests stand in the processor's cache until they are cut to four bytes


@dataclass(frozen=True, slots=True)
class Rings:
    """The ring of each member list."""

    keys: Bits  # list × 2^32 + position, ascending; shape (n,)
    owners: Ints  # the place of the member that gets what falls to the entry, or −1; shape (n,)
    sizes: Ints


def ring_hashes(texts: Iterable[bytes]) -> Hashes:
    """`ConsistentHashRouter.MD5Hash`: the first four bytes of the MD5, big-endian.

    >>> ring_hashes([b"10.0.0.1@2-0", b"10.0.0.1@2-9"]).tolist()
    [3774039039, 3963307019]

    The texts are UTF-8, with `?` for what cannot be encoded.
    """
    start, digest = _MD5
    rest = iter(texts)
    parts = []
    while part := b"".join(map(digest, map(start, islice(rest, _AT_ONCE)))):
        parts.append(np.frombuffer(part, ">u4")[::4].astype(np.uint32))
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)


def queue_texts(topics: Iterable[str], broker_names: Iterable[str], counts: Iterable[int]) -> Iterator[bytes]:
    """What is hashed of the queues of topics on brokers: `MessageQueue.toString`.

    >>> list(queue_texts(["T"], ["a"], [2]))[1]
    b'MessageQueue [topic=T, brokerName=a, queueId=1]'

    A topic stands once for each of its brokers, with how many queues it has there, whose ids are 0, 1, …. The texts,
    as UTF-8, are those of the first broker's queues, then those of the second's, and so on.
    """
    ends: list[bytes] = []
    for topic, broker_name, count in zip(topics, broker_names, counts, strict=True):
        ends += [b"%d]" % queue_id for queue_id in range(len(ends), count)]
        begin = f"MessageQueue [topic={topic}, brokerName={broker_name}, queueId=".encode("utf-8", "replace")
        yield from [begin + end for end in ends[:count]]


def entry_hashes(client_ids: Sequence[bytes], processes: Ints, virtual_nodes: int) -> Hashes:
    """The positions of members' entries, `CLIENTID-0`, `CLIENTID-1`, …; shape (n, virtual_nodes).

    `processes` is how many members with the same id stand before it in its group, as by `first_processes`; shape (n,).
    """
    replicas = range(virtual_nodes)
    ends = [
        [b"-%d" % (process * virtual_nodes + replica) for replica in replicas]
        for process in range(1 + int(processes.max(initial=0)))
    ]
    which = zip(client_ids, processes.tolist(), strict=True)
    texts = (client_id + end for client_id, process in which for end in ends[process])
    return ring_hashes(texts).reshape(len(client_ids), virtual_nodes)


def build_rings(pairs: Pairs, entries: Hashes, client_id: Callable[[int], bytes]) -> Rings:
    """The rings of all member lists (`ConsistentHashRouter.addNode`); of two entries with one hash the later wins.

    Entries are as by `entry_hashes`, of all members of the batch. Client ids (place → UTF-8) are asked for only where
    entries of an id that several processes share meet others.
    """
    virtual_nodes = entries.shape[1]
    sizes = pairs.members * virtual_nodes
    keys = _keys(numbers(sizes), entries[pairs.places].ravel())
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    last = np.concatenate((ordered[1:] != ordered[:-1], [True]))[: len(keys)]
    lost = np.bincount((ordered[~last] >> _UPPER).astype(np.int64), minlength=len(sizes))
    owners = _owners(pairs, pairs.places[order[last] // max(virtual_nodes, 1)])
    rings = Rings(ordered[last], owners, sizes - lost)
    odd = np.flatnonzero((lost > 0) & _shared_ids(pairs))
    return _redone(rings, pairs, odd, virtual_nodes, client_id) if len(odd) else rings


def exact_ring(client_ids: Sequence[bytes], virtual_nodes: int) -> tuple[Hashes, Ints]:
    """One ring entry by entry, as `ConsistentHashRouter` makes it, for ids that stand twice and hashes that meet.

    The entries of an id's next process are numbered from how many entries the id has then, and one that was overtaken
    by another entry no longer counts. Returns the positions, ascending, and the index of each entry's id, that of its
    first process; both of shape (n,).
    """
    ring: dict[int, bytes] = {}
    entries: Counter[bytes] = Counter()
    for client_id in client_ids:
        existing = entries[client_id]
        replicas = range(existing, existing + virtual_nodes)
        for position in ring_hashes([b"%s-%d" % (client_id, replica) for replica in replicas]).tolist():
            if position in ring:
                entries[ring[position]] -= 1
            ring[position] = client_id
            entries[client_id] += 1
    first = {client_id: index for index, client_id in reversed(list(enumerate(client_ids)))}
    positions = sorted(ring)
    owners = [first[ring[position]] for position in positions]
    return np.array(positions, np.uint32), np.array(owners, np.int64)


def owners_on(rings: Rings, groups: Ints, queues: Ints, hashes: Hashes) -> Ints:
    """Who stands at or next after each queue's hash, else first on the ring (`ConsistentHashRouter.routeNode`).

    Places, −1 on a ring without entries; as the hashes of shape (sum(queues),). Groups and queues are as in `Pairs`.
    """
    begins = starts(rings.sizes)
    firsts = np.where(rings.sizes > 0, begins[:-1], len(rings.keys))
    at = np.searchsorted(rings.keys, _keys(np.repeat(groups, queues), hashes))
    beyond = at == np.repeat(begins[1:][groups], queues)
    np.copyto(at, np.repeat(firsts[groups], queues), where=beyond)
    return np.append(rings.owners, -1)[at]


def _keys(groups: Ints, hashes: Hashes) -> Bits:
    keys = groups.astype(np.uint64)
    keys <<= _UPPER
    keys |= hashes
    return keys


def _owners(pairs: Pairs, places: Ints) -> Ints:
    return places if pairs.owners is None else pairs.owners[places]


def _shared_ids(pairs: Pairs) -> Bools:
    if pairs.owners is None:
        return np.zeros(len(pairs.members), np.bool_)
    second = numbers(pairs.members)[pairs.owners[pairs.places] != pairs.places]
    return np.bincount(second, minlength=len(pairs.members)) > 0


def _redone(rings: Rings, pairs: Pairs, which: Ints, virtual_nodes: int, client_id: Callable[[int], bytes]) -> Rings:
    others = np.flatnonzero(~np.isin(rings.keys >> _UPPER, which.astype(np.uint64)))
    keys, owners, sizes = [rings.keys[others]], [rings.owners[others]], rings.sizes.copy()
    for group in which:
        places = pairs.places[elements(pairs.members, np.array([group]))]
        positions, indexes = exact_ring([client_id(place) for place in places.tolist()], virtual_nodes)
        keys.append(_keys(np.full(len(positions), group), positions))
        owners.append(_owners(pairs, places[indexes]))
        sizes[group] = len(positions)
    order = np.argsort(np.concatenate(keys))
    return Rings(np.concatenate(keys)[order], np.concatenate(owners)[order], sizes)


def _md5() -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    """To begin an MD5 and to end it: CPython's own where it has one, which is quicker on short texts than OpenSSL's."""
    try:
        start: Callable[[bytes], Any] = import_module("_md5").md5
    except ImportError:
        start = partial(hashlib.md5, usedforsecurity=False)
    return start, type(start(b"")).digest


_MD5 = _md5()
