"""What cases take of one group or topic, as sets of bits: equal sets have equal results.

A group or topic knows of a case only which of its own processes and broker addresses are gone. So cases that take the
same are symmetric, whatever else they take elsewhere: one is computed, the others are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import comb

from msgspec import Struct

from rmqlb.engine.sweep.losses import Address, Process, Taken
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.route import MASTER_ID, TopicRouteData

Takers = Mapping[Process | Address, Sequence[int]]
"""Who and what can be lost → the places of the losses that take it."""


def takers_of(taken: Sequence[Taken]) -> Takers:
    """By which losses each is taken."""
    found: dict[Process | Address, list[int]] = {}
    for place, each in enumerate(taken):
        for thing in (*each.processes, *each.addresses):
            found.setdefault(thing, []).append(place)
    return found


class Effect(Struct, frozen=True):
    """What is gone of a group or topic.

    Attributes:
        places: of its processes, among the sorted client IDs.
        brokers: names of which no address is left.
        masters: names of brokers whose master is gone, and a slave is left.
    """

    places: tuple[int, ...] = ()
    brokers: tuple[str, ...] = ()
    masters: tuple[str, ...] = ()


class Atoms:
    """What of a group or topic can be lost, a bit each."""

    def __init__(self, client_ids: Iterable[str], routes: Iterable[TopicRouteData]) -> None:
        self.client_ids: Sequence[str] = sort_client_ids(client_ids)
        times: Counter[str] = Counter()
        self._processes: dict[Process, int] = {}
        for bit, client_id in enumerate(self.client_ids):
            self._processes[client_id, times[client_id]] = 1 << bit
            times[client_id] += 1
        self._effects: dict[int, Effect] = {}
        self._addresses: dict[Address, int] = {}
        self._brokers: dict[str, int] = {}  # name → bits of all its addresses
        self._masters: dict[str, int] = {}
        for name, numbers in sorted(_numbers(routes).items()):
            for number in (*sorted(numbers),) or (None,):
                bit = 1 << len(self._processes) + len(self._addresses)
                self._addresses[name, number] = bit
                self._brokers[name] = self._brokers.get(name, 0) | bit
                if number == MASTER_ID:
                    self._masters[name] = bit

    @property
    def has_addresses(self) -> bool:
        """Brokers are among them."""
        return bool(self._addresses)

    def mask(self, taken: Taken) -> int:
        """What a loss takes of it; 0 is nothing."""
        found = 0
        for process in taken.processes:
            found |= self._processes.get(process, 0)
        for address in taken.addresses:
            found |= self._addresses.get(address, 0)
        return found

    def touching(self, takers: Takers) -> tuple[tuple[int, int], ...]:
        """The places of the losses that take something of it, in order, each with its mask."""
        found: dict[int, int] = {}
        for thing, bit in (*self._processes.items(), *self._addresses.items()):
            for place in takers.get(thing, ()):
                found[place] = found.get(place, 0) | bit
        return tuple(sorted(found.items()))

    def effect(self, mask: int) -> Effect:
        """What is gone; a slave alone is nothing."""
        if mask not in self._effects:
            self._effects[mask] = self._effect(mask)
        return self._effects[mask]

    def _effect(self, mask: int) -> Effect:
        brokers = tuple(name for name, bits in self._brokers.items() if bits & mask == bits)
        masters = tuple(name for name, bit in self._masters.items() if bit & mask and name not in brokers)
        processes = mask & ((1 << len(self.client_ids)) - 1)
        return Effect(tuple(bit.bit_length() - 1 for bit in bits_of(processes)), brokers, masters)


def _numbers(routes: Iterable[TopicRouteData]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for route in routes:
        known = route.brokers_by_name()
        for data in route.queue_datas:
            broker = known.get(data.broker_name)
            found.setdefault(data.broker_name, set()).update(broker.broker_addrs if broker else ())
    return found


def bits_of(mask: int) -> Iterator[int]:
    """Each bit that is set, the lowest first.

    >>> list(bits_of(0b1101))
    [1, 4, 8]
    """
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


class CaseClass(Struct):
    """All cases that take the same of a group or topic."""

    first: tuple[int, ...]  # the losses of the first of the fewest, by their places in the list of losses
    last: tuple[int, ...]  # of the last of them: with hosts and zones rather than processes
    singles: int = 0
    pairs: int = 0

    @property
    def cases(self) -> int:
        """So many with the fewest losses."""
        return self.singles or self.pairs


def cases_of(touching: Sequence[tuple[int, int]], at_once: int) -> dict[int, CaseClass]:
    """Mask → the cases in which each loss takes something and that take it together; single losses first.

    Pairs whose second loss takes nothing are not among them: they take what the single loss takes.

    Args:
        touching: places of the losses that take something, each with its mask.
        at_once: 1, or 2 for pairs too.
    """
    units: dict[int, list[int]] = {}
    for place, mask in touching:
        units.setdefault(mask, []).append(place)
    found = {mask: CaseClass((places[0],), (places[-1],), len(places)) for mask, places in units.items()}
    if at_once == 1:
        return found
    masks = list(units)
    for at, first in enumerate(masks):
        own = units[first]
        found[first].pairs += comb(len(own), 2)
        for second in masks[at + 1 :]:
            others = units[second]
            both = found.setdefault(first | second, CaseClass((own[0], others[0]), (own[-1], others[-1])))
            both.pairs += len(own) * len(others)
    return found
