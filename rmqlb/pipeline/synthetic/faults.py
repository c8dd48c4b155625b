"""What goes wrong in a group, one kind a group, where a report shows it; the tests know of more."""

from __future__ import annotations

from enum import StrEnum
from random import Random


class Fault(StrEnum):
    """What is wrong with a group; it stays so every night."""

    MISMATCHES = "mismatches"
    """Queues are held by another consumer, or by one that is gone."""
    UNASSIGNED = "unassigned"
    DUPLICATE_OWNERS = "duplicate-owners"
    IDLE_CONSUMERS = "idle-consumers"
    """More consumers than queues."""
    FLAPPING = "flapping"
    """A consumer comes and goes every other night."""


Owners = frozenset[str]
NOBODY: Owners = frozenset()


def disturb(owners: list[Owners], fault: Fault | None, client_ids: tuple[str, ...], random: Random) -> list[Owners]:
    """The owners of a topic's queues as they are seen where the group's strategy gives these: a quarter differs."""
    if fault not in (Fault.MISMATCHES, Fault.UNASSIGNED, Fault.DUPLICATE_OWNERS) or not owners:
        return owners
    seen = list(owners)
    for place in random.sample(range(len(seen)), -(-len(seen) // 4)):
        seen[place] = _disturbed(seen[place], fault, client_ids, random)
    return seen


def _disturbed(owners: Owners, fault: Fault, client_ids: tuple[str, ...], random: Random) -> Owners:
    if fault is Fault.UNASSIGNED:
        return NOBODY
    others = [client_id for client_id in client_ids if client_id not in owners]
    if fault is Fault.MISMATCHES and random.random() < 0.5:
        others = [f"10.255.0.1@1#{len(client_ids)}"]
    return frozenset({random.choice(others)} | (owners if fault is Fault.DUPLICATE_OWNERS else NOBODY))
