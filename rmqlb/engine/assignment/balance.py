"""Measures of any assignment, however it came about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rmqlb.model.assignment import QueuesPerConsumer, Spread
from rmqlb.model.message_queue import MessageQueue

Owners = Mapping[MessageQueue, tuple[str, ...]]


def counts(owners: Owners, client_ids: Iterable[str]) -> dict[str, int]:
    """Client ID → number of its queues, 0 included."""
    owned = Counter(client_id for its_owners in owners.values() for client_id in its_owners)
    return {client_id: owned[client_id] for client_id in client_ids}


def spread(owners: Owners, client_ids: Sequence[str], *, broadcasting: bool = False) -> Spread:
    """How evenly consumers own the queues; in BROADCASTING duplicate owners are right and not counted."""
    processes = Counter(client_ids)
    numbers = list(counts(owners, processes).values())
    held = sum(numbers)
    return Spread(
        queues=len(owners),
        idle=numbers.count(0),
        unassigned=sum(not its_owners for its_owners in owners.values()),
        duplicate_owners=0 if broadcasting else sum(len(its_owners) > 1 for its_owners in owners.values()),
        queues_of_duplicate_client_ids=0
        if broadcasting
        else sum(any(processes[client_id] > 1 for client_id in its_owners) for its_owners in owners.values()),
        queues_per_consumer=QueuesPerConsumer(min(numbers), held / len(numbers), max(numbers)) if numbers else None,
        # One division, so that 3 over 15/7 is exactly the 1.4 that a user writes as a limit.
        imbalance=max(numbers) * len(numbers) / held if held else None,
        consumers=len(processes),
    )


def minimum_moves(before: Owners, after_queues: Iterable[MessageQueue], client_ids: Iterable[str]) -> int | None:
    """The fewest moves after which consumers own a topic's queues evenly; None without a consumer.

    Even means that every queue has one owner and no consumer has two queues more than another: with q queues and c
    consumers, q % c consumers may keep q // c + 1 of theirs, the others q // c. A move is from one owner to another.
    """
    members, queues = set(client_ids), list(after_queues)
    if not members:
        return None
    owned = [before[queue] for queue in queues if before.get(queue)]
    kept = Counter(owners[0] for owners in owned if len(owners) == 1 and owners[0] in members)
    size, extra = divmod(len(queues), len(members))
    keep = sum(min(number, size) for number in kept.values())
    keep += min(extra, sum(number > size for number in kept.values()))
    return len(owned) - keep
