"""The queue whose lag goes last, and the one that no number of consumers makes faster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import get_args

from rmqlb.engine.allocate import prepare
from rmqlb.engine.allocate.rules import Sdk
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.backlog import Flow, Pool, backlog
from rmqlb.engine.size_group.sizes import Layout
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.size_group import SizedBacklog, SizePoint, TimeLimit


def backlogs_of(
    layout: Layout, point: SizePoint, owners: Mapping[MessageQueue, tuple[str, ...]]
) -> Iterator[SizedBacklog]:
    queues, of_all = layout.queues, layout.backlogs(layout.loads)
    times: dict[TimeLimit, float | None] = {"catch-up": point.catch_up_ms, "drain-in": point.drain_ms}
    for limit in (limit for limit in get_args(TimeLimit) if limit in of_all):
        loads = dict(zip(queues, of_all[limit], strict=True))
        alone = {queue: layout.drain_s([load]) for queue, load in loads.items()}
        slowest = max(alone, key=lambda queue: alone[queue])
        # In thread time: a message takes a second.
        flows = {q: Flow(load.work, 1.0, load.lag, owners.get(q, ())) for q, load in loads.items() if load.lag < inf}
        pools = {owner: Pool(layout.threads, layout.orderly) for own in owners.values() for owner in own}
        last = slowest if len(flows) < len(loads) else backlog(flows, pools).last
        alone_ms = None if alone[slowest] == inf else 1000 * alone[slowest]
        of_topic = [load.work for queue, load in loads.items() if queue.topic == slowest.topic]
        mean = sum(of_topic) / len(of_topic)
        over_mean = loads[slowest].work / mean if mean else 1.0
        yield SizedBacklog(limit, times[limit], last, alone_ms, slowest, over_mean)


def owners_in(
    layout: Layout,
    strategy: str,
    client_ids: Sequence[str],
    settings: Settings,
    sdk: Sdk,
    subscribed: Mapping[str, frozenset[str]],
) -> dict[MessageQueue, tuple[str, ...]]:
    ids, owners = sort_client_ids(client_ids, sdk.order), dict[MessageQueue, tuple[str, ...]]()
    for topic in layout.topics:
        queues = sort_queues(topic.queues, sdk.order)
        allocated = prepare(strategy, queues, ids, settings, sdk)
        for client_id in ids:
            if queues[0].topic in subscribed.get(client_id, (queues[0].topic,)):
                for queue in allocated.share(client_id):
                    owners[queue] = (*owners.get(queue, ()), client_id)
    return owners
