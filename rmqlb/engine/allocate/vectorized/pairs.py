"""Many groups on many topics at once, and parts of them.

A *pair* is a group on a topic. A batch of pairs stands in flat arrays: the queues of pair 0, then those of pair 1, and
so on, each pair's in the order in which clients sort them (`MessageQueue.compareTo`); and the member lists of the
groups in the same way, each in the order in which clients sort them, an id that two processes share standing twice.
A *row* is the place of a queue among all queues of the batch, a *place* that of a member among all members of the
batch; −1 is nobody. Arguments named `queue_…` have a value for each queue of the batch, `member_…` and `chosen` one for
each of its members, `places` the owner of each row. A zone is a number, negative where it is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rmqlb.engine.arrays.lanes import Bools, Ints
from rmqlb.engine.arrays.ragged import elements, numbers, offsets, runs, starts


@dataclass(frozen=True, slots=True)
class Pairs:
    """Groups on topics: a whole batch, or what a wrapping strategy hands to the one inside.

    A part of a batch has fewer or other pairs and member lists, and still names queues by their rows and members by
    their places in the batch.
    """

    queues: Ints  # how many queues each pair has; shape (pairs,)
    groups: Ints  # the number of each pair's member list; shape (pairs,)
    members: Ints  # how long each member list is; shape (groups,)
    rows: Ints  # the queues, pair by pair; shape (sum(queues),)
    places: Ints  # the members, list by list, ascending within a list; shape (sum(members),)
    # for each member of the batch the place of the one that gets what falls to its id, as by `first_processes`; None
    # when every id of a list is different
    owners: Ints | None

    @classmethod
    def of(cls, queues: Ints, members: Ints, groups: Ints | None = None, owners: Ints | None = None) -> Pairs:
        """A whole batch; without `groups` each pair has a member list of its own."""
        groups = np.arange(len(queues)) if groups is None else groups
        return cls(queues, groups, members, np.arange(queues.sum()), np.arange(members.sum()), owners)


def first_processes(codes: Ints, members: Ints) -> tuple[Ints, Ints]:
    """Per member the place of the first one of its group with its id (`List.indexOf`), and how many stand before it.

    −1 for the empty id, whose client throws. Codes are a number for each distinct id, −1 for the empty one; shape
    (sum(members),). Members are how many each group has; shape (groups,).
    """
    groups = numbers(members)
    order = np.lexsort((codes, groups))
    ids = np.stack((groups[order], codes[order]), axis=1)
    same = np.concatenate(([False], (ids[1:] == ids[:-1]).all(axis=1)))[: len(codes)]
    lengths = runs(np.cumsum(~same))[1]
    owners, processes = np.empty_like(codes), np.empty_like(codes)
    owners[order] = np.repeat(order[~same], lengths)
    processes[order] = offsets(lengths)
    owners[codes < 0] = -1
    return owners, processes


def without_zone(pairs: Pairs, queue_zones: Ints, member_zones: Ints) -> Bools:
    """Which pairs have a queue or member of unknown zone, where every client throws and keeps its queues; (pairs,)."""
    queues = numbers(pairs.queues)[queue_zones[pairs.rows] < 0]
    members = numbers(pairs.members)[member_zones[pairs.places] < 0]
    of_groups = np.bincount(members, minlength=len(pairs.members)) > 0
    return (np.bincount(queues, minlength=len(pairs.queues)) > 0) | of_groups[pairs.groups]


def by_zone(pairs: Pairs, queue_zones: Ints, member_zones: Ints) -> tuple[Pairs, Ints]:
    """What MACHINE_ROOM_NEARBY hands to the strategy inside: a pair for each zone of a pair's queues.

    The zone's own members share them, or, when there are none, all members of the pair. A pair `without_zone` is left
    out. Returns the parts, and where each of their rows stands in `pairs.rows`.
    """
    width = 1 + max(queue_zones.max(initial=0), member_zones.max(initial=0))
    failing = without_zone(pairs, queue_zones, member_zones)
    at = np.flatnonzero(~np.repeat(failing, pairs.queues))
    keys = numbers(pairs.queues)[at] * width + queue_zones[pairs.rows[at]]
    order = np.argsort(keys, kind="stable")
    begins, queues = runs(keys[order])
    outer, zones = np.divmod(keys[order[begins]], width)
    groups = pairs.groups[outer]
    lists = _with_lists_by_zone(pairs, member_zones, width)
    own = np.searchsorted(lists.keys, groups * width + zones)
    has_own = np.append(lists.keys, -1)[own] == groups * width + zones
    used, renumbered = np.unique(np.where(has_own, len(pairs.members) + own, groups), return_inverse=True)
    part = replace(
        pairs,
        queues=queues,
        groups=renumbered,
        members=lists.members[used],
        rows=pairs.rows[at[order]],
        places=lists.places[elements(lists.members, used)],
    )
    return part, at[order]


def among(pairs: Pairs, chosen: Bools) -> Pairs:
    """The same pairs with only the chosen members; processes that share an id are to be chosen together."""
    keep = chosen[pairs.places]
    members = np.bincount(numbers(pairs.members)[keep], minlength=len(pairs.members))
    return replace(pairs, members=members, places=pairs.places[keep])


def in_pairs(pairs: Pairs, places: Ints) -> Ints:
    """Where owners, −1 for nobody, stand when every pair's member list is written down, one pair after another.

    That is an index into arrays of shape (sum(members[groups]),), which have a value for each member of each pair.
    """
    width = 1 + pairs.places.max(initial=0)
    keys = numbers(pairs.members) * width + pairs.places
    at = np.searchsorted(keys, np.repeat(pairs.groups * width, pairs.queues) + places)
    shifts = starts(pairs.members[pairs.groups])[:-1] - starts(pairs.members)[pairs.groups]
    return np.where(places < 0, -1, at + np.repeat(shifts, pairs.queues))


def counts(pairs: Pairs, places: Ints) -> Ints:
    """How many queues each member of each pair gets, member list by member list; shape (sum(members[groups]),)."""
    at = in_pairs(pairs, places)
    return np.bincount(at[at >= 0], minlength=int(pairs.members[pairs.groups].sum()))


@dataclass(frozen=True, slots=True)
class _Lists:
    """Member lists: those of `pairs`, then one for each key, which is group × width + zone, ascending."""

    keys: Ints
    members: Ints
    places: Ints


def _with_lists_by_zone(pairs: Pairs, member_zones: Ints, width: int) -> _Lists:
    zones = member_zones[pairs.places]
    known = np.flatnonzero(zones >= 0)
    keys = numbers(pairs.members)[known] * width + zones[known]
    order = np.argsort(keys, kind="stable")
    begins, members = runs(keys[order])
    return _Lists(
        keys[order[begins]],
        np.concatenate((pairs.members, members)),
        np.concatenate((pairs.places, pairs.places[known[order]])),
    )
