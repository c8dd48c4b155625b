"""The engine itself over a batch of groups, pair by pair: for strategies without a vectorized form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.errors import AllocationError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import PERM_READ, PERM_WRITE, QueueData, TopicRouteData
from rmqlb.pipeline.groups.group_batch import GroupBatch
from rmqlb.pipeline.pipeline_plan import EVERY_TOPIC


@dataclass(frozen=True)
class PairAllocation:
    """A pair by number; `owners` by queue, those that only CONFIG names last; `reason`: what every client throws."""

    pair: int
    owners: dict[MessageQueue, tuple[str, ...]]
    reason: str | None = None


def allocate_by_engine(
    batch: GroupBatch, strategy: str, settings: Settings, pairs: Iterable[int] | None = None
) -> Iterator[PairAllocation]:
    """Pairs of the batch, in order; all of them by default."""
    for pair in range(len(batch.queues)) if pairs is None else pairs:
        route = route_of(batch, pair)
        try:
            assigned = assign(route, members(batch, pair, strategy, settings))
        except AllocationError as error:
            yield PairAllocation(pair, {}, error.problem)
        else:
            yield PairAllocation(pair, {queue: tuple(assigned.owners[queue]) for queue in assigned.queues})


def route_of(batch: GroupBatch, pair: int) -> TopicRouteData:
    """A pair's topic as a route from which clients make just the pair's queues."""
    end = int(batch.ends[pair])
    brokers, numbers = np.unique(batch.broker_of[end - int(batch.queues[pair]) : end], return_counts=True)
    datas = (
        QueueData(batch.brokers[broker], number, number, PERM_READ | PERM_WRITE)
        for broker, number in zip(brokers.tolist(), numbers.tolist(), strict=True)
    )
    return TopicRouteData(batch.topics[pair], tuple(datas), ())


def members(batch: GroupBatch, pair: int, strategy: str, settings: Settings) -> Members:
    """A pair's members; those that do not subscribe to its topic say so."""
    group = int(batch.group_of[pair])
    end = int(batch.member_ends[group])
    ids = batch.ids[end - int(batch.members[group]) : end].tolist()
    absent = batch.absent[batch.absent[:, 0] == pair, 1].tolist()
    client_ids = tuple(batch.client_ids[number] for number in ids)
    return Members(
        client_ids,
        strategy,
        replace(_on_topic(settings, batch.topics[pair], client_ids), group=batch.names[group]),
        subscribed={batch.client_ids[number]: frozenset() for number in absent},
    )


def _on_topic(settings: Settings, topic: str, client_ids: Iterable[str]) -> Settings:
    """The settings with CONFIG lists for this topic and these members only."""
    config = settings.config
    if config is None:
        return settings
    if not isinstance(config, Mapping):
        return replace(settings, config=_for_topic(config, topic))
    mine = {name: _for_topic(config[name], topic) for name in dict.fromkeys(client_ids) if name in config}
    return replace(settings, config=mine)


def _for_topic(queues: Iterable[MessageQueue], topic: str) -> list[MessageQueue]:
    return [replace(queue, topic=topic) if queue.topic == EVERY_TOPIC else queue for queue in queues]
