"""The allocation strategies over many groups and topics at once; `rmqlb.engine.allocate` says each rule at length.

A strategy takes pairs and gives, for each of their rows, the place of the queue's owner, −1 for nobody: the owner is
the member whose own client takes the queue, so what falls to the second process with an id belongs to nobody or to the
first, as the rule has it. Clients that throw (an empty list of rooms, a zone that is unknown) are not seen here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rmqlb.engine.allocate.vectorized.hash_ring import Hashes, Rings, owners_on
from rmqlb.engine.allocate.vectorized.pairs import Pairs, among, by_zone
from rmqlb.engine.arrays.lanes import Bools, Ints
from rmqlb.engine.arrays.ragged import offsets, starts

Allocate = Callable[[Pairs], Ints]  # a strategy with its settings: pairs → the owners' places, shape (sum(queues),)


def avg(pairs: Pairs) -> Ints:
    """AVG (`AllocateMessageQueueAveragely`): blocks of neighbouring queues, the first members' one queue longer.

    >>> avg(Pairs.of(np.array([7]), np.array([3]))).tolist()
    [0, 0, 0, 1, 1, 2, 2]
    """
    size, extra = np.divmod(pairs.queues, _divisors(pairs))
    # Divided as if all blocks were long, and as if only the first `extra` were: the larger answer is the right one.
    place = offsets(pairs.queues)
    short = place - np.repeat(extra, pairs.queues)
    place //= np.repeat(size + 1, pairs.queues)
    short //= np.repeat(np.maximum(size, 1), pairs.queues)
    return _of_places(pairs, np.maximum(place, short, out=place))


def avg_by_circle(pairs: Pairs) -> Ints:
    """AVG_BY_CIRCLE (`AllocateMessageQueueAveragelyByCircle`): the queues are dealt to the members like cards.

    >>> avg_by_circle(Pairs.of(np.array([7]), np.array([3]))).tolist()
    [0, 1, 2, 0, 1, 2, 0]
    """
    place = offsets(pairs.queues)
    place %= np.repeat(_divisors(pairs), pairs.queues)
    return _of_places(pairs, place)


def machine_room(pairs: Pairs, inside: Bools) -> Ints:
    """MACHINE_ROOM (`AllocateMessageQueueByMachineRoom`): blocks of the queues in listed rooms, the rest from the tail.

    >>> machine_room(Pairs.of(np.array([6]), np.array([2])), np.array([True] * 5 + [False])).tolist()
    [0, 0, 1, 1, 0, -1]

    `inside` says of each queue of the batch whether its broker is in a listed room.
    """
    listed = inside[pairs.rows]
    begins, before = starts(pairs.queues), starts(listed.astype(np.int64))
    members = _divisors(pairs)
    size = np.diff(before[begins]) // members
    rank = before[:-1] - np.repeat(before[begins[:-1]], pairs.queues)
    rest = rank - np.repeat(size * members, pairs.queues)
    rank //= np.repeat(np.maximum(size, 1), pairs.queues)
    places = _of_places(pairs, np.where(rest < 0, rank, rest))
    places[~listed] = -1
    return places


def consistent_hash(pairs: Pairs, rings: Rings, hashes: Hashes) -> Ints:
    """CONSISTENT_HASH (`AllocateMessageQueueConsistentHash`): each queue goes to the next member on the ring.

    The rings are those of these pairs' member lists, the hashes those of the texts of all queues of the batch.
    """
    return owners_on(rings, pairs.groups, pairs.queues, hashes[pairs.rows])


def machine_room_nearby(pairs: Pairs, queue_zones: Ints, member_zones: Ints, inner: Allocate) -> Ints:
    """MACHINE_ROOM_NEARBY (`AllocateMachineRoomNearby`): a zone with members keeps its queues, all share the others.

    >>> queue_zones, member_zones = np.array([1, 1, 2, 2]), np.array([1, 3])
    >>> machine_room_nearby(Pairs.of(np.array([4]), np.array([2])), queue_zones, member_zones, avg).tolist()
    [0, 0, 0, 1]

    A pair that is `without_zone` has −1 all over.
    """
    part, at = by_zone(pairs, queue_zones, member_zones)
    places = np.full(len(pairs.rows), -1)
    places[at] = inner(part)
    return places


def pin(pairs: Pairs, chosen: Bools, inner: Allocate) -> Ints:
    """PIN: only chosen members take part; without any, the queues belong to nobody.

    >>> pin(Pairs.of(np.array([2]), np.array([3])), np.array([False, True, True]), avg).tolist()
    [1, 2]
    """
    return inner(among(pairs, chosen))


def pin_over_all(pairs: Pairs, chosen: Bools, inner: Allocate) -> Ints:
    """PIN_OVER_ALL: all members are counted, and only chosen ones take their share.

    >>> pin_over_all(Pairs.of(np.array([3]), np.array([3])), np.array([False, True, True]), avg).tolist()
    [-1, 1, 2]
    """
    places = inner(pairs)
    return np.where((places >= 0) & np.append(chosen, values=False)[places], places, -1)


def _divisors(pairs: Pairs) -> Ints:
    return np.maximum(pairs.members[pairs.groups], 1)


def _of_places(pairs: Pairs, indexes: Ints) -> Ints:
    """Indexes in each pair's member list → places in the batch; −1 for the second process with an id, or no members.

    The indexes, 0 where the pair has no members, are changed.
    """
    takers = np.append(pairs.places, -1)
    if pairs.owners is not None:
        takers[:-1][pairs.owners[pairs.places] != pairs.places] = -1
    begins = np.where(pairs.members > 0, starts(pairs.members)[:-1], len(pairs.places))
    indexes += np.repeat(begins[pairs.groups], pairs.queues)
    return takers[indexes]
