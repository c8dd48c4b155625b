"""Groups of a batch as the engine takes them: for strategies and client libraries that arrays do not compute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from rmqlb.engine.allocate import must_have
from rmqlb.engine.allocate.sdks import JAVA
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.engine.assignment.consumers import usual_sdk
from rmqlb.errors import AllocationError, UsageError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import PERM_READ, PERM_WRITE, QueueData, TopicRouteData
from rmqlb.pipeline.groups.group_batch import GroupBatch
from rmqlb.pipeline.pipeline_plan import EVERY_TOPIC


@dataclass(frozen=True)
class PairAllocation:
    """A pair by number; `owners` by queue, those that only CONFIG names last; `reason`: why no client can allocate."""

    pair: int
    owners: dict[MessageQueue, tuple[str, ...]]
    reason: str | None = None


def allocate_by_engine(
    batch: GroupBatch, strategy: str, settings: Settings, pairs: Iterable[int] | None = None
) -> Iterator[PairAllocation]:
    """Pairs of the batch, in order; all of them by default."""
    for pair in range(len(batch.queues)) if pairs is None else pairs:
        members = members_of(batch, int(batch.group_of[pair]), [pair], strategy, on_topic(settings, batch, pair))
        reason = not_in_sdks(members)
        if reason is not None:
            yield PairAllocation(pair, {}, reason)
            continue
        try:
            assigned = assign(route_of(batch, pair), members)
        except AllocationError as error:
            yield PairAllocation(pair, {}, error.problem)
        else:
            yield PairAllocation(pair, {queue: tuple(assigned.owners[queue]) for queue in assigned.queues})


def not_in_sdks(members: Members) -> str | None:
    """Why no member can run the strategy, when the libraries of none of them have it."""
    try:
        must_have(members.group_strategy, members.sdks)
    except UsageError as error:
        return error.problem
    return None


def route_of(batch: GroupBatch, pair: int) -> TopicRouteData:
    """A pair's topic as a route from which clients make just the pair's queues."""
    end = int(batch.ends[pair])
    brokers, numbers = np.unique(batch.broker_of[end - int(batch.queues[pair]) : end], return_counts=True)
    datas = (
        QueueData(batch.brokers[broker], number, number, PERM_READ | PERM_WRITE)
        for broker, number in zip(brokers.tolist(), numbers.tolist(), strict=True)
    )
    return TopicRouteData(batch.topics[pair], tuple(datas), ())


def members_of(batch: GroupBatch, group: int, pairs: Iterable[int], strategy: str, settings: Settings) -> Members:
    """A group's members; those that do not subscribe to topics of these pairs say so."""
    end = int(batch.member_ends[group])
    ids = batch.ids[end - int(batch.members[group]) : end].tolist()
    client_ids = tuple(batch.client_ids[number] for number in ids)
    subscribed: dict[str, set[str]] = {}
    topics = {pair: batch.topics[pair] for pair in pairs}
    for pair, number in batch.absent[np.isin(batch.absent[:, 0], list(topics))].tolist():
        subscribed.setdefault(batch.client_ids[number], set(topics.values())).discard(topics[pair])
    sdks = batch.sdks.get(group, {})
    usual = usual_sdk(Counter(sdks.values())) if sdks else JAVA.name
    return Members(
        client_ids,
        strategy,
        replace(settings, group=batch.names[group]),
        subscribed=subscribed,
        sdk=usual,
        sdk_of={client_id: sdk for client_id, sdk in sdks.items() if sdk != usual},
    )


def on_topic(settings: Settings, batch: GroupBatch, pair: int) -> Settings:
    """The settings with CONFIG lists for the pair's topic and members only."""
    config = settings.config
    if config is None:
        return settings
    topic, group = batch.topics[pair], int(batch.group_of[pair])
    if not isinstance(config, Mapping):
        return replace(settings, config=_for_topic(config, topic))
    end = int(batch.member_ends[group])
    ids = batch.ids[end - int(batch.members[group]) : end].tolist()
    names = dict.fromkeys(batch.client_ids[number] for number in ids)
    return replace(settings, config={name: _for_topic(config[name], topic) for name in names if name in config})


def _for_topic(queues: Iterable[MessageQueue], topic: str) -> list[MessageQueue]:
    return [replace(queue, topic=topic) if queue.topic == EVERY_TOPIC else queue for queue in queues]
