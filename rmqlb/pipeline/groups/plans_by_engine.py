"""What-if of groups that Java's rules do not compute, planned one by one as `plan-rebalance` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.plan.changes import Changes, change_members, change_routes
from rmqlb.engine.plan.rebalance import Side, assignments, summary_of
from rmqlb.errors import AllocationError
from rmqlb.model.assignment import Assignment
from rmqlb.model.group import QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.plan import Summary
from rmqlb.model.route import LOGICAL_PREFIX, TopicRouteData
from rmqlb.pipeline.arrow import arrow_schema
from rmqlb.pipeline.groups.by_engine import members_of, not_in_sdks, route_of
from rmqlb.pipeline.groups.group_batch import GroupBatch
from rmqlb.pipeline.schemas import GROUP, WHAT_IF


def changes_of(consumers: int) -> list[int]:
    """How many consumers more or fewer there are, up to this number."""
    return [change for change in range(-consumers, consumers + 1) if change]


def plans_by_engine(
    rows: pa.RecordBatch, batch: GroupBatch, strategies: Sequence[str], settings: Settings, consumers: int
) -> pa.RecordBatch:
    """Rows of WHAT_IF; a new consumer's library is that of most of the group.

    What Java's rules compute is left to arrays. A strategy that none of the libraries has, or that all clients refuse,
    is left out.
    """
    found = []
    java = {name: batch.is_java(name) for name in strategies}
    for group in batch.sdks:
        by_arrays = frozenset(name for name in strategies if java[name][group])
        key = {name: rows.column(name)[group].as_py() for name in GROUP}
        found += [{**key, **plan} for plan in _Planned(batch, group, settings).rows(strategies, consumers, by_arrays)]
    return pa.RecordBatch.from_pylist(found, schema=arrow_schema(WHAT_IF.columns))


class _Planned:
    """One group under every strategy and change."""

    def __init__(self, batch: GroupBatch, group: int, settings: Settings) -> None:
        pairs = np.flatnonzero(batch.group_of == group).tolist()
        self._routes = tuple(route_of(batch, pair) for pair in pairs)
        self._members = members_of(batch, group, pairs, "AVG", settings)
        self._states = dict(_lags(batch, pairs, self._routes))

    def rows(self, strategies: Sequence[str], consumers: int, by_arrays: Set[str]) -> Iterator[dict[str, Any]]:
        sides = {name: Side(replace(self._members, strategy=name), self._routes) for name in strategies}
        for name, before in sides.items():
            was = _assignments(before)
            if was is None:
                continue
            for change, subject, other, after in self._changes(sides, name, consumers):
                if {name, other} <= by_arrays:
                    continue
                summary = self._summary(was, before, after)
                if summary is not None:
                    told = {"strategy": name, "change": change, "subject": subject, "strategyAfter": other}
                    yield told | _figures(summary)

    def _changes(self, sides: dict[str, Side], name: str, consumers: int) -> Iterator[tuple[str, str, str, Side]]:
        side, ids = sides[name], self._members.client_ids
        for change in changes_of(consumers):
            if -change <= len(ids):
                asked = Changes(add=(change,)) if change > 0 else Changes(remove=(-change,))
                members = replace(side.members, client_ids=change_members(ids, asked))
                yield "consumers", f"{change:+d}", name, replace(side, members=members)
        for broker in sorted({data.broker_name for route in self._routes for data in route.queue_datas}):
            if not broker.startswith(LOGICAL_PREFIX):
                lost = Changes(remove_brokers=(broker,))
                yield "broker-lost", broker, name, replace(side, routes=change_routes(self._routes, lost))
        yield from (("strategy", other, other, after) for other, after in sides.items() if other != name)

    def _summary(self, was: list[Assignment], before: Side, after: Side) -> Summary | None:
        if not_in_sdks(after.members) is not None:
            return None
        try:
            return summary_of(was, before, after, self._states)
        except AllocationError:
            return None


def _assignments(side: Side) -> list[Assignment] | None:
    """None when no consumer's library has the strategy, or all refuse it."""
    if not_in_sdks(side.members) is not None:
        return None
    try:
        return assignments(side)
    except AllocationError:
        return None


def _lags(
    batch: GroupBatch, pairs: Sequence[int], routes: Sequence[TopicRouteData]
) -> Iterator[tuple[MessageQueue, QueueState]]:
    for pair, route in zip(pairs, routes, strict=True):
        first = int(batch.ends[pair]) - int(batch.queues[pair])
        for row, queue in enumerate(route.subscribe_queues(), first):
            if batch.lag_known[row]:
                yield queue, QueueState(None, int(batch.lags[row]), 0)


def _figures(summary: Summary) -> dict[str, Any]:
    was, becomes = summary.before, summary.after
    return {
        "consumersBefore": was.consumers,
        "consumersAfter": becomes.consumers,
        "queuesBefore": was.queues,
        "queuesAfter": becomes.queues,
        "moved": summary.moved,
        "newlyAssigned": summary.newly_assigned,
        "newlyUnassigned": summary.newly_unassigned,
        "removed": summary.removed,
        "idleBefore": was.idle,
        "idleAfter": becomes.idle,
        "unassignedAfter": becomes.unassigned,
        "duplicateOwnersAfter": becomes.duplicate_owners,
        "minQueuesPerConsumerAfter": becomes.fewest,
        "meanQueuesPerConsumerAfter": becomes.mean,
        "maxQueuesPerConsumerAfter": becomes.most,
        "lagMoved": summary.lag_moved,
    }
