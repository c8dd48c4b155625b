"""Sizes by brute force: every consumer's queues as `rmqlb.allocate` gives them, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from rmqlb import MessageQueue, TopicRouteData, allocate
from rmqlb.model.size_group import SizeLimits

Topics = Sequence[Sequence[MessageQueue]]


def owned(strategy: str, topics: Topics, client_ids: Sequence[str]) -> Counter[str]:
    """How many queues each consumer owns over all topics, 0 included."""
    found = Counter(dict.fromkeys(client_ids, 0))
    for queues in topics:
        if queues:
            for client_id, share in allocate(strategy, queues, client_ids).items():
                found[client_id] += len(share)
    return found


def imbalance(numbers: Mapping[str, int]) -> float | None:
    held = sum(numbers.values())
    return max(numbers.values()) * len(numbers) / held if held else None


def busiest(strategy: str, topics: Topics, client_ids: Sequence[str], work: Mapping[MessageQueue, float]) -> float:
    """Seconds of listening per second of the consumer that has the most."""
    found = dict.fromkeys(client_ids, 0.0)
    for queues in topics:
        if queues:
            for client_id, share in allocate(strategy, queues, client_ids).items():
                found[client_id] += sum(work[queue] for queue in share)
    return max(found.values())


def fails(
    strategy: str,
    topics: Topics,
    client_ids: Sequence[str],
    limits: SizeLimits,
    work: Mapping[MessageQueue, float] | None = None,
    threads: int = 20,
) -> set[str]:
    """What does not hold without any loss."""
    if not client_ids or not any(topics):
        return {"nothing left"}
    numbers = owned(strategy, topics, client_ids)
    found = set()
    uneven = imbalance(numbers)
    if limits.max_imbalance is not None and (uneven is None or uneven > limits.max_imbalance):
        found.add("max-imbalance")
    if limits.no_idle and 0 in numbers.values():
        found.add("no-idle")
    if limits.max_utilisation is not None and work is not None:
        used = busiest(strategy, topics, client_ids, work) / threads
        if float(f"{used:.9g}") > limits.max_utilisation:
            found.add("max-utilisation")
    return found


def all_fails(strategy: str, topics: Topics, client_ids: Sequence[str], limits: SizeLimits) -> set[str]:
    """What does not hold, after losses too; of each loss of consumers and each of a broker."""
    found = fails(strategy, topics, client_ids, limits)
    if any(fails(strategy, topics, left, limits) for left in _after_losses(client_ids, limits.survive)):
        found.add("survive")
    if limits.survive_broker:
        brokers = {queue.broker_name for queues in topics for queue in queues}
        left = [[[q for q in queues if q.broker_name != broker] for queues in topics] for broker in brokers]
        if any(fails(strategy, each, client_ids, limits) for each in left):
            found.add("survive-broker")
    return found


def _after_losses(client_ids: Sequence[str], survive: int) -> Iterator[list[str]]:
    for number in range(1, survive + 1):
        if number >= len(client_ids):
            yield []
            return
        for lost in combinations(client_ids, number):
            yield [each for each in client_ids if each not in lost]


def queues_of(routes: Sequence[TopicRouteData]) -> list[list[MessageQueue]]:
    return [route.subscribe_queues() for route in routes]
