"""What goes wrong in a group, one kind a group, where a report shows it; the tests know of more."""

from __future__ import annotations

from enum import StrEnum
from random import Random


class Fault(StrEnum):
    """What is wrong with a group; it stays so every night."""

    DRIFT = "drift"
    """Queues are held by another member, or by one that is gone."""
    UNOWNED = "unowned"
    TWO_OWNERS = "two-owners"
    IDLE_MEMBERS = "idle-members"
    """More members than queues."""
    FLAPPING = "flapping"
    """A member comes and goes every other night."""


Owners = frozenset[str]
NOBODY: Owners = frozenset()


def disturb(owners: list[Owners], fault: Fault | None, client_ids: tuple[str, ...], random: Random) -> list[Owners]:
    """The owners of a topic's queues as they are seen where the group's strategy gives these: a quarter differs."""
    if fault not in (Fault.DRIFT, Fault.UNOWNED, Fault.TWO_OWNERS) or not owners:
        return owners
    seen = list(owners)
    for place in random.sample(range(len(seen)), -(-len(seen) // 4)):
        seen[place] = _disturbed(seen[place], fault, client_ids, random)
    return seen


def _disturbed(owners: Owners, fault: Fault, client_ids: tuple[str, ...], random: Random) -> Owners:
    if fault is Fault.UNOWNED:
        return NOBODY
    others = [client_id for client_id in client_ids if client_id not in owners]
    if fault is Fault.DRIFT and random.random() < 0.5:
        others = [f"10.255.0.1@1#{len(client_ids)}"]
    return frozenset({random.choice(others)} | (owners if fault is Fault.TWO_OWNERS else NOBODY))
