"""Sizes under CONSISTENT_HASH for many sets of client IDs at once.

The owner of a queue is the consumer with the next entry on the ring at or after the queue's hash. So each consumer has
a distance to each queue, the smallest is the owner's, and when that one is lost, the second smallest. A consumer that
joins is put among them; no ring is made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rmqlb.engine.allocate.vectorized.hash_ring import entry_hashes, ring_hashes
from rmqlb.engine.arrays.lanes import Bits, Ints

Sums = npt.NDArray[Any]  # whole numbers of queues, or floats of work

_LOWER = np.uint64(16)
_LARGEST = (1 << 16) - 1
_FAR = 0xFFFFFFFF
_NONE = np.uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the queues, and the work of each."""

    rows: slice | Ints
    work: npt.NDArray[np.float64] | None


class GrowingRings:
    """For each set of IDs and each queue the nearest consumers, as many as can be lost and one more.

    A distance stands in the upper 48 bits, the consumer's place in its sorted set in the lower 16: of two entries with
    one hash that of the later ID counts (`ConsistentHashRouter.addNode`), so places are counted down from the largest.
    """

    def __init__(
        self,
        ordered: Sequence[Sequence[bytes]],  # each set of IDs, as UTF-8, sorted as clients sort them
        ranks: Sequence[Sequence[int]],  # of each set, the places in it in the order in which consumers join
        queues: Sequence[bytes],  # the texts of the queues
        virtual_nodes: int,
        losses: int,  # consumers that are lost at once, at most
    ) -> None:
        self.trials, self._members = len(ordered), len(ordered[0])
        texts = [client_id for ids in ordered for client_id in ids]
        entries = entry_hashes(texts, np.zeros(len(texts), np.int64), virtual_nodes)
        self._entries = entries.reshape(self.trials, self._members, virtual_nodes)
        self._ranks = np.array(ranks, np.int64)
        self._queues = ring_hashes(queues)
        self._nearest = np.full((losses + 1, len(queues), self.trials), _NONE)
        self._trials = np.arange(self.trials)
        self._joined = 0
        self._known: tuple[int, tuple[int, ...]] | None = None
        self._owners: Ints = np.empty(0, np.int64)
        self._counted: tuple[Ints, int, Sums] = self._owners, 0, self._owners

    @staticmethod
    def part(rows: Sequence[int], work: Sequence[float]) -> Part:
        """The queues in these places, and their work, or none."""
        places = np.array(rows, np.int64)
        order = np.argsort(places)
        ascending = places[order]
        is_all_up_to = bool((ascending == np.arange(len(ascending))).all())
        return Part(
            slice(len(ascending)) if is_all_up_to else ascending,
            np.array(work, np.float64)[order, None] if work else None,
        )

    def measured(
        self, consumers: int, lost: Sequence[int], part: Part
    ) -> tuple[list[int], list[int], list[float] | None]:
        """Of each set of IDs: most queues of a consumer, consumers without one, the work of the busiest.

        Of the first so many consumers to join but those that joined in the places that are lost; never of fewer than
        before.
        """
        owners = self._owners_of(consumers, tuple(lost))
        numbers = self._numbers(owners, part.rows)
        busiest = None if part.work is None else self._summed(owners[part.rows], part.work).max(axis=1).tolist()
        idle = consumers - len(lost) - np.count_nonzero(numbers, axis=1)
        return numbers.max(axis=1).tolist(), idle.tolist(), busiest

    def bounded(self, consumers: int, losses: int, part: Part) -> tuple[list[int], list[int], list[float] | None]:
        """The same after any loss of so many consumers, or more; and consumers without a queue, or more.

        A consumer owns at most its queues and those of the lost ones, and at most the queues to which no more than the
        lost ones are nearer.
        """
        own = self._owners_of(consumers, ())[part.rows]
        levels = [_places(level[part.rows]) + self._trials * self._members for level in self._nearest[1 : losses + 1]]
        numbers = self._summed(own, None)
        most = self._at_most(numbers, levels, losses, None)
        busiest: list[float] | None = None
        if part.work is not None:
            busiest = self._at_most(self._summed(own, part.work), levels, losses, part.work).tolist()
        # A consumer without a queue may get none when others are lost; no survivor loses one.
        idle = consumers - np.count_nonzero(numbers, axis=1)
        return most.tolist(), np.minimum(idle, consumers - losses).tolist(), busiest

    def _at_most(self, own: Sums, levels: Sequence[Ints], losses: int, work: npt.NDArray[np.float64] | None) -> Sums:
        """Of each set of IDs what no consumer exceeds."""
        largest = np.sort(own, axis=1)[:, -(losses + 1) :].sum(axis=1)
        within = own.copy()
        for level in levels:
            within += self._summed(level, work)
        found: Sums = np.minimum(largest, within.max(axis=1))
        return found

    def _numbers(self, owners: Ints, rows: slice | Ints) -> Sums:
        """How many of the queues each consumer has; of the first queues those that were counted last are known."""
        if not isinstance(rows, slice):
            return self._summed(owners[rows], None)
        whose, known, numbers = self._counted
        if whose is owners and known <= rows.stop:
            numbers = numbers + self._summed(owners[known : rows.stop], None)
        else:
            numbers = self._summed(owners[rows], None)
        self._counted = owners, rows.stop, numbers
        return numbers

    def _summed(self, owners: Ints, work: npt.NDArray[np.float64] | None) -> Sums:
        """How many queues, or how much of their work, each consumer has; shape (trials, members)."""
        whole = self.trials * self._members
        weights = None if work is None else np.broadcast_to(work, owners.shape).ravel()
        found: Sums = np.bincount(owners.ravel(), weights, whole).reshape(self.trials, -1)
        return found

    def _owners_of(self, consumers: int, lost: tuple[int, ...]) -> Ints:
        """Of every queue, as trial × members + the place in the sorted set; shape (queues, trials)."""
        while self._joined < consumers:
            self._join(self._ranks[:, self._joined])
            self._joined += 1
        if self._known != (consumers, lost):
            self._known = consumers, lost
            self._owners = self._after(lost) + self._trials * self._members
        return self._owners

    def _join(self, ranks: Ints) -> None:
        entries = self._entries[self._trials, ranks]
        distances = np.full((len(self._queues), self.trials), _FAR, np.uint32)
        for entry in entries.T:
            np.minimum(distances, entry - self._queues[:, None], out=distances)
        keys = distances.astype(np.uint64) << _LOWER
        keys |= (_LARGEST - ranks).astype(np.uint64)
        for level in self._nearest:
            keys, level[:] = np.maximum(level, keys), np.minimum(level, keys)

    def _after(self, lost: tuple[int, ...]) -> Ints:
        found = _places(self._nearest[0])
        if not lost:
            return found
        gone = np.zeros((self.trials, self._members), np.bool_)
        np.put_along_axis(gone, self._ranks[:, list(lost)], values=True, axis=1)
        for level in self._nearest[1 : len(lost) + 1]:
            found = np.where(gone[self._trials, found], _places(level), found)
        return found


def _places(keys: Bits) -> Ints:
    return _LARGEST - (keys & np.uint64(_LARGEST)).astype(np.int64)
