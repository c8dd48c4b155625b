from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from rmqlb.engine.plan.changes import Changes, QueueCount, change_routes
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.plan_topic import Keys, PlannedGroup, TopicRequest, consumed_per_ms, plan_topic, routes_of
from rmqlb.engine.send.sdk import sdk
from rmqlb.engine.send.select_queue import key_queues
from rmqlb.errors import DataError
from rmqlb.model.group import ConsumerGroup, QueueState, Seen
from rmqlb.model.message_queue import QueueName
from rmqlb.model.plan_topic import Step, TopicChangePlan
from rmqlb.model.route import QueueData, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot
from tests.support.builders import queues, route, side
from tests.support.mismatches import every_case

KEYS = tuple(f"order-{number}" for number in range(200))
SDKS = tuple(sdk(name) for name in ("java", "go"))


def plan(request: TopicRequest, *groups: PlannedGroup, keys: Keys | None = None) -> TopicChangePlan:
    return plan_topic(routes_of(route(a=4, b=4), request), request, groups, keys)


def change(found: TopicChangePlan) -> Step:
    return next(step for step in found.steps if step.kind == "change-write-queues")


@every_case("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
@every_case("number", [1, 2, 3, 7, 16])
def test_owners_are_those_of_plan_rebalance(strategy: str, number: int) -> None:
    before = side("c1 c2 c3", route(a=4, b=4), strategy=strategy)
    found = plan(TopicRequest(queues=number), PlannedGroup("g", before.members, {}))
    after = change_routes(before.routes, Changes(read_queues=(QueueCount(number),)))
    summary = plan_rebalance("g", before, Side(before.members, after)).summary
    step = found.steps[0 if number > 4 else 5]
    effect = step.groups[0]
    assert (effect.moved, effect.added, effect.removed) == (summary.moved, summary.added, summary.removed)
    assert (effect.unassigned, effect.idle, effect.imbalance) == (summary.unassigned, summary.idle, summary.imbalance)


@every_case("number", [1, 3, 4, 8, 16])
def test_keys_are_those_of_select_queue(number: int) -> None:
    found = plan(TopicRequest(queues=number), keys=Keys(KEYS, SDKS))
    told = key_queues(route(a=4, b=4), KEYS, SDKS, after=route(a=number, b=number))
    expected = [] if number == 4 else [(each.sdk, each.moved) for each in told.sdks]
    assert [(each.sdk, each.moved) for each in change(found).keys] == expected
    for each in change(found).keys:
        rows = [(key.key, key.queues[each.sdk], (key.queues_after or {})[each.sdk]) for key in told.keys]
        assert [(key.key, key.queue, key.queue_after) for key in each.keys] == [row for row in rows if row[1] != row[2]]


def stored(end: int, offset: int, first: int) -> QueueState:
    return QueueState(broker_offset=end, consumer_offset=offset, stored_offset=offset, min_offset=first)


@every_case(("state", "expected"), [
    (stored(90, -1, 60), ("end", 30, 1)),
    (stored(90, -1, 90), ("end", 0, 1)),  # all are expired
    (stored(0, -1, 0), ("end", 0, 0)),
    (stored(90, 0, 0), ("stored", 0, 0)),  # the first is in memory
    (stored(90, 70, 60), ("stored", 0, 0)),
    (QueueState(broker_offset=90, consumer_offset=0), ("unknown", None, None)),
    (None, ("unknown", None, None)),
])  # fmt: skip
def test_messages_lost_before_an_owner(state: QueueState | None, expected: tuple[str, int | None, int | None]) -> None:
    now = TopicRouteData("T", (QueueData("a", 2, 3, 6),), route(a=2).broker_datas)
    states = {queue: QueueState(broker_offset=50, consumer_offset=50) for queue in queues(2, "a")}
    states |= {} if state is None else {queues(3, "a")[2]: state}
    group = PlannedGroup("g", side("c1", now).members, states)
    effect = plan_topic(routes_of(now, TopicRequest(queues=3)), TopicRequest(queues=3), [group]).steps[0].groups[0]
    (start,) = effect.starts
    assert (start.rule, effect.skipped, effect.first_lost) == expected


@every_case(("number", "keys", "late"), [
    (8, None, 30),  # 8 queues become 16: of each queue half of the hashes leave
    (4, None, 0),
    (3, None, 60),  # of 0, 8 and 16 the first stays in a 0; 4, 12 and 20 leave b 0, the fourth queue of six
    (8, Keys(KEYS, SDKS[:1]), None),
])  # fmt: skip
def test_messages_of_leaving_keys_come_late(number: int, keys: Keys | None, late: int | None) -> None:
    lags = {queues(4, "a")[0]: 60, queues(4, "b")[0]: 20 if number == 3 else 0}
    states = {
        queue: QueueState(broker_offset=100, consumer_offset=100 - lags.get(queue, 0))
        for queue in queues(4, "a") + queues(4, "b")
    }
    found = change(plan(TopicRequest(queues=number), PlannedGroup("g", None, states), keys=keys)).groups[0]
    if late is None:
        told = key_queues(route(a=4, b=4), KEYS, SDKS[:1], after=route(a=8, b=8)).keys
        first = [key for key in told if key.queues["java"] == QueueName("a", 0)]
        late = round(60 * sum(key.queues["java"] != (key.queues_after or {})["java"] for key in first) / len(first))
    assert found.out_of_order_unheld == late


def lagging(lag: int, per_second: float) -> PlannedGroup:
    states = {queue: QueueState(broker_offset=100, consumer_offset=100) for queue in queues(4, "a") + queues(4, "b")}
    first = queues(1, "a")[0]
    states[first] = QueueState(broker_offset=100, consumer_offset=100 - lag)
    return PlannedGroup("g", None, states, consumed_per_ms={first: per_second / 1000})


def test_held_producers_wait_until_the_slowest_queue_is_read() -> None:
    found = plan(TopicRequest(queues=8), lagging(60, per_second=2))
    assert [step.estimated_ms for step in found.steps] == [50_000, 30_000, 30_000, 0, 0, 0]
    assert found.estimated_ms == 110_000
    step = change(found)
    assert (step.order_broken_ms, step.order_broken_unheld_ms) == (0, 60_000)  # polls, then what is unread


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def snapshot(consumer_offset: int, at: datetime | None) -> ClusterSnapshot:
    states = {queues(1)[0]: QueueState(broker_offset=100, consumer_offset=consumer_offset)}
    group = ConsumerGroup("g", Seen("a test"), queues=states)
    return ClusterSnapshot("dump", "a test", taken_at=at, groups={"g": group})


def test_rates_are_what_was_read_between_two_snapshots() -> None:
    now, then = snapshot(90, NOON), snapshot(30, NOON - timedelta(seconds=30))
    assert consumed_per_ms(now, then, "g", "then") == {queues(1)[0]: 0.002}
    assert consumed_per_ms(now, replace(then, groups={}), "g", "then") == {}


@every_case(("now", "then", "problem"), [
    (NOON, NOON, "then is not earlier than the source"),
    (NOON, None, "then does not report when"),
    (None, NOON, "the source does not report when"),
])  # fmt: skip
def test_rates_need_two_moments(now: datetime | None, then: datetime | None, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        consumed_per_ms(snapshot(90, now), snapshot(30, then), "g", "then")
