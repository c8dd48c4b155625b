"""A snapshot's rows of FLEET: each group with everything that decides who owns its queues. No Spark here.

They are made where the whole snapshot is at hand: to bring them together from the other tables takes joins that cost
more than all that is done with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rmqlb.engine.allocate.sdks import JAVA, sdk_of_connection
from rmqlb.model.group import RETRY_PREFIX, ConsumerGroup
from rmqlb.model.java import sort_key

Row = tuple[Any, ...]
Runs = Sequence[Mapping[str, Any]]
Placed = list[tuple[int, Any]]
"""A queue's index in the clients' order, and what is known of it."""


def fleet_row(
    group: ConsumerGroup,
    strategy: str | None,
    processes: Sequence[tuple[str, str | None, str | None]],
    absent: Mapping[str, Sequence[str]],
    subscribe: Mapping[str, Runs],
    places: Mapping[str, Mapping[str, tuple[int, int]]],
) -> Row | None:
    """A group's row; None when no topic of it has a route.

    Args:
        group: one whose consumers allocate its queues.
        strategy: what they report.
        processes: client id, language and version of each that the others count, in their order.
        absent: each topic that they consume → the client ids that report not to.
        subscribe: each topic that has a route → its queues in runs, in the clients' order.
        places: the same as places, as `snapshot_rows` has them.
    """
    lags, owners = _known(group, absent, places)
    topics = sorted(topic for topic in absent if topic in subscribe)
    if not topics:
        return None
    rows = [(name, subscribe[name], absent[name], lags.get(name), owners.get(name)) for name in topics]
    own = [row for row in rows if not row[0].startswith(RETRY_PREFIX)]
    retry = [row for row in rows if row[0].startswith(RETRY_PREFIX)]
    queues = sum(run["queues"] for row in own for run in row[1])
    return group.group, strategy, queues, [each[0] for each in processes], _sdks(processes), own, retry


def weight(row: Row) -> int:
    """How much a row holds, in things that are known of a queue, a topic or a consumer."""
    topics = (*row[5], *row[6])
    return len(row[3]) + sum(1 + len(topic[3] or ()) + len(topic[4] or ()) for topic in topics)


def _sdks(processes: Iterable[tuple[str, str | None, str | None]]) -> list[tuple[str, bool]] | None:
    guesses = [sdk_of_connection(language, version) for _, language, version in processes]
    if all(guess.sdk is JAVA and not guess.assumed for guess in guesses):
        return None
    return [(guess.sdk.name, guess.assumed) for guess in guesses]


def _known(
    group: ConsumerGroup, topics: Mapping[str, Any], places: Mapping[str, Mapping[str, tuple[int, int]]]
) -> tuple[dict[str, Placed], dict[str, Placed]]:
    """Topic → the lags of its queues, and topic → their observed owners; what the route does not have is left out."""
    lags: dict[str, Placed] = {}
    owners: dict[str, Placed] = {}
    for place, topic, lag, held in _placed(group, topics, places):
        if lag is not None:
            lags.setdefault(topic, []).append((place, lag))
        if held is not None:
            owners.setdefault(topic, []).append((place, sorted(held, key=sort_key)))
    return lags, owners


def _placed(
    group: ConsumerGroup, topics: Mapping[str, Any], places: Mapping[str, Mapping[str, tuple[int, int]]]
) -> Iterator[tuple[int, str, int | None, frozenset[str] | None]]:
    for queue, state in group.queues.items():
        if queue.topic in topics:
            start, count = places.get(queue.topic, {}).get(queue.broker_name, (0, 0))
            if 0 <= queue.queue_id < count:
                yield start + queue.queue_id, queue.topic, state.lag, state.owners
