"""What goes wrong in a group, one kind a group, and how it shows in the owners that are seen."""

from __future__ import annotations

from enum import StrEnum
from random import Random

from rmqlb.model.java import sort_key


class Fault(StrEnum):
    """What is wrong with a group, or not what one expects of it; it stays so every night."""

    DRIFT = "drift"
    """Queues are held by another member, or by one that is gone."""
    UNOWNED = "unowned"
    TWO_OWNERS = "two-owners"
    IDLE_MEMBERS = "idle-members"
    """More members than queues."""
    SHARED_ID = "shared-id"
    """Two processes with one client id."""
    MISSING_SUBSCRIPTION = "missing-subscription"
    """A member does not subscribe to one of the group's topics."""
    SPLIT_VIEW = "split-view"
    MIXED_STRATEGIES = "mixed-strategies"
    BROADCASTING = "broadcasting"
    POP = "pop"
    NO_MEMBERS = "no-members"
    UNSEEN_MEMBERS = "unseen-members"
    """Nobody looked who the members are."""
    SILENT_MEMBER = "silent-member"
    """A member does not answer: what it holds and which strategy it runs is unknown."""
    FOREIGN_STRATEGY = "foreign-strategy"
    """A strategy class that is not RocketMQ's."""
    GRPC = "grpc"
    LOST_TOPIC = "lost-topic"
    """The group subscribes to a topic that has no route."""
    FLAPPING = "flapping"
    """A member comes and goes every other night."""


MORE_THAN_ONE = frozenset(
    {
        Fault.DRIFT,
        Fault.TWO_OWNERS,
        Fault.SHARED_ID,
        Fault.MISSING_SUBSCRIPTION,
        Fault.SPLIT_VIEW,
        Fault.MIXED_STRATEGIES,
        Fault.SILENT_MEMBER,
        Fault.FLAPPING,
    }
)
"""These need two members."""

WITHOUT_OWNERS = frozenset({Fault.POP, Fault.NO_MEMBERS})
"""Somebody looks for owners, and there are none."""

WITHOUT_REPORTS = frozenset({Fault.BROADCASTING, Fault.NO_MEMBERS, Fault.UNSEEN_MEMBERS, Fault.GRPC})

Owners = frozenset[str] | None
NOBODY: frozenset[str] = frozenset()


def disturb(owners: list[Owners], fault: Fault | None, client_ids: list[str], random: Random) -> list[Owners]:
    """The owners as they are seen where the group's strategy gives these.

    Args:
        owners: of each queue of one topic.
        fault: the group's.
        client_ids: its members.
        random: the night's, for this group.
    """
    if fault is Fault.SILENT_MEMBER:
        silent = silent_member(client_ids)
        return [None if silent in (each or ()) else each for each in owners]
    if fault not in (Fault.DRIFT, Fault.UNOWNED, Fault.TWO_OWNERS) or not owners:
        return owners
    seen = list(owners)
    for place in random.sample(range(len(seen)), -(-len(seen) // 4)):
        seen[place] = _disturbed(seen[place] or NOBODY, fault, client_ids, random)
    return seen


def silent_member(client_ids: list[str]) -> str:
    """The one that does not answer."""
    return min(client_ids, key=sort_key)


def _disturbed(owners: frozenset[str], fault: Fault, client_ids: list[str], random: Random) -> frozenset[str]:
    if fault is Fault.UNOWNED:
        return NOBODY
    others = [client_id for client_id in client_ids if client_id not in owners]
    if fault is Fault.DRIFT and random.random() < 0.5:
        others = ["10.255.0.1@1#" + str(len(client_ids))]
    return frozenset({random.choice(others)} | (owners if fault is Fault.TWO_OWNERS else NOBODY))
