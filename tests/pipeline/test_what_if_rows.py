"""Every row of WHAT_IF equals the summary of `plan-rebalance`'s engine; no Spark yet."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from rmqlb.engine.allocate import full_name
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.plan.changes import Changes, change_members, change_route
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.errors import AllocationError, UsageError
from rmqlb.model.group import QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.plan import Summary
from rmqlb.model.route import QueueData, TopicRouteData
from rmqlb.pipeline.groups.what_if_rows import _sweep

from .fleets import Group, Topic, fleet_rows
from .test_allocate_rows import SETTINGS, fleets, usual

pytestmark = pytest.mark.spark

STRATEGIES = ("AVG", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY", "PIN-AVG_BY_CIRCLE")
COLUMNS = 20


def route(topic: Topic) -> TopicRouteData:
    datas = tuple(QueueData(broker, number, number, 6) for broker, number in topic.brokers.items())
    return TopicRouteData(topic.topic, datas, ())


def lags(group: Group) -> dict[MessageQueue, QueueState]:
    known = {}
    for topic in group.topics:
        queues = route(topic).subscribe_queues()
        known.update({queues[place]: QueueState(None, lag, 0) for place, lag in topic.lags.items()})
    return known


def sides(group: Group, name: str, with_: Settings) -> Side:
    absent = {client_id for topic in group.topics for client_id in topic.absent or ()}
    subscribed = {
        client_id: frozenset(topic.topic for topic in group.topics if client_id not in (topic.absent or ()))
        for client_id in absent
    }
    members = Members(
        tuple(group.members), name, with_, subscribed=subscribed, sdk=usual(group), sdk_of=all_sdks(group)
    )
    return Side(members, tuple(route(topic) for topic in group.topics))


def all_sdks(group: Group) -> dict[str, str]:
    return {client_id: group.sdks.get(client_id, "java") for client_id in group.members}


def after(side: Side, change: str, subject: str, strategy: str) -> Side | None:
    if change == "consumers":
        number = int(subject)
        if -number > len(side.members.client_ids):
            return None
        asked = Changes(add=(number,)) if number > 0 else Changes(remove=(-number,))
        return replace(side, members=replace(side.members, client_ids=change_members(side.members.client_ids, asked)))
    if change == "strategy":
        return replace(side, members=replace(side.members, strategy=strategy))
    routes = (
        change_route(found, Changes(remove_brokers=(subject,)))
        if any(data.broker_name == subject for data in found.queue_datas)
        else found
        for found in side.routes
    )
    return replace(side, routes=tuple(routes))


def expected(group: Group, with_: Settings) -> list[Any]:
    names = [full_name(name) for name in STRATEGIES]
    brokers = dict.fromkeys(broker for topic in group.topics for broker in topic.brokers)
    rows: list[Any] = []
    for name in names:
        cases = [("consumers", f"{change:+d}", name) for change in (-2, -1, 1, 2)]
        cases += [("broker-lost", broker, name) for broker in brokers]
        cases += [("strategy", other, other) for other in names if other != name]
        before = sides(group, name, with_)
        for change, subject, other in cases:
            becomes = after(before, change, subject, other)
            if becomes is None:
                continue
            try:
                plan = plan_rebalance(group.group, before, becomes, states=lags(group))
            except (AllocationError, UsageError):  # a usage error: no library of the group has the strategy
                continue
            rows.append((group.group, name, change, subject, other, *summed(plan.summary)))
    return sorted(rows)


def summed(summary: Summary) -> tuple[Any, ...]:
    was, becomes = summary.before, summary.after
    return (
        *(was.consumers, becomes.consumers, was.queues, becomes.queues),
        *(summary.moved, summary.newly_assigned, summary.newly_unassigned, summary.removed),
        *(was.idle, becomes.idle, becomes.unassigned, becomes.duplicate_owners),
        *(becomes.fewest, becomes.mean, becomes.most, summary.lag_moved),
    )


def test_the_logical_broker_of_a_static_topic_is_none_that_can_be_lost() -> None:
    topics = [Topic("plain", {"a": 2}), Topic("static", {"__syslo__global__": 4})]
    rows = fleet_rows([Group("g", ["x", "y"], topics), Group("only static", ["x"], topics[1:])])
    found = [row for batch in _sweep(("AVG",), Settings(), 0, iter([rows])) for row in batch.to_pylist()]
    assert [(row["group"], row["subject"], row["removed"], row["queuesAfter"]) for row in found] == [("g", "a", 2, 4)]


@pytest.mark.parametrize("with_", SETTINGS[::2], ids=("all", "none"))
@settings(max_examples=40)
@given(fleet=fleets())
def test_every_row_is_a_plans_summary(with_: Settings, fleet: list[Group]) -> None:
    batches = list(_sweep(STRATEGIES, with_, 2, iter([fleet_rows(fleet)])))
    rows = sorted(tuple(row.values())[3:] for batch in batches for row in batch.to_pylist())
    assert all(len(row) == COLUMNS + 1 for row in rows)
    assert rows == [row for group in fleet for row in expected(group, with_)]
