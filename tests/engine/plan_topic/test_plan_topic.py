from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from rmqlb import BrokerData, DataError, QueueData, TopicRouteData, UsageError
from rmqlb.engine.plan.changes import Edits, NewBroker, QueueCount, change_routes
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.plan_topic import (
    Keys,
    PlannedGroup,
    TopicRequest,
    check,
    check_step,
    commands_between,
    consumed_per_ms,
    plan_topic,
    routes_of,
)
from rmqlb.engine.send.profile import sdk
from rmqlb.engine.send.select_queue import key_queues
from rmqlb.model.group import ConsumerGroup, QueueState, Seen
from rmqlb.model.message_queue import MessageQueue, QueueName, queue_ranges
from rmqlb.model.plan_topic import PlanStep, TopicChangePlan, WaitFor, WaitKind
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread
from tests.support.builders import HERE, group, queues, route, side
from tests.support.mismatches import assert_recorded, every_case

ADDRESSES = {"a": "10.0.0.1:10911", "b": "10.0.0.2:10911"}


def topic(a: tuple[int, int, int], b: tuple[int, int, int] | None = None, conf: str | None = None) -> TopicRouteData:
    """Read queues, write queues and perm of broker a, and of b."""
    datas = {"a": a} | ({} if b is None else {"b": b})
    queue_datas = tuple(QueueData(name, *numbers) for name, numbers in datas.items())
    addresses = tuple(BrokerData("c", name, {0: ADDRESSES[name]}) for name in datas)
    return TopicRouteData("T", queue_datas, addresses, order_topic_conf=conf)


def numbers(of: TopicRouteData) -> dict[str, tuple[int, int, int]]:
    return {data.broker_name: (data.read_queue_nums, data.write_queue_nums, data.perm) for data in of.queue_datas}


def plan(of: TopicRouteData, request: TopicRequest, *known: BrokerData) -> TopicChangePlan:
    return plan_topic(routes_of(of, request, known), request, [])


WEST, NEW = BrokerData("west", "n", {0: "10.0.0.9:10911"}), NewBroker("m")
EIGHT, MOVE = TopicRequest(queues=8), TopicRequest(move_to_cluster="west")
FEWER_READ = topic((3, 8, 6))
FLAGS = replace(topic((4, 4, 6)), queue_datas=(QueueData("a", 4, 4, 6, 3),))
KEYS = tuple(f"order-{number}" for number in range(200))
SDKS = tuple(sdk(name) for name in ("java", "go"))


def stored(end: int, offset: int, first: int) -> QueueState:
    return QueueState(broker_offset=end, consumer_offset=offset, stored_offset=offset, min_offset=first)


NEW_QUEUE: Mapping[str, QueueState | None] = {
    "begins at the end": stored(90, -1, 60), "of expired messages": stored(90, -1, 90), "is empty": stored(0, -1, 0),
    "has its first message in memory": stored(90, 0, 0), "was read before": stored(90, 70, 60),
    "has an unknown start": QueueState(broker_offset=90, consumer_offset=0), "is unknown": None,
}  # fmt: skip


def new_queue(state: QueueState | None) -> PlannedGroup:
    """A consumer of the topic's two queues, to which a third one comes."""
    states = {queue: QueueState(broker_offset=50, consumer_offset=50) for queue in queues(2, "a")}
    states |= {} if state is None else {queues(3, "a")[2]: state}
    return PlannedGroup("g", side("c1", route(a=2)).members, states)


def lagging(per_second: float = 0, **lags: int) -> PlannedGroup:
    states = {queue: QueueState(None, 100, 100) for queue in queues(4, "a") + queues(4, "b")}
    for broker, lag in lags.items():
        states[queues(1, broker)[0]] = QueueState(None, 100, 100 - lag)
    return PlannedGroup("g", None, states, consumed_per_ms={queues(1, "a")[0]: per_second / 1000} if per_second else {})


def named_plans() -> Iterator[tuple[str, TopicRouteData, TopicRequest, dict[str, Any]]]:
    four, both = topic((4, 4, 6)), route(a=4, b=4)
    for request in (EIGHT, replace(EIGHT, ordered=False)):
        yield f"more queues, ordered: {request.ordered}", four, request, {}
    yield "fewer queues", topic((8, 8, 6)), TopicRequest(queues=2), {}
    yield "another cluster", four, MOVE, {}
    ordered = topic((4, 4, 6), (4, 4, 6), "b:4;a:4")
    yield "an order configuration", ordered, replace(EIGHT, drain_brokers=("b",)), {}
    yield "NameServers and flags", FLAGS, EIGHT, {"name_servers": "h1:9876;h2:9876"}
    for kind in ("FIFO", "NORMAL", None):  # `updateTopic` creates a topic with the attributes in the command
        yield f"a new broker, message type {kind}", four, TopicRequest(add_brokers=(NEW,)), {"message_type": kind}
    for request in (TopicRequest(add_brokers=(NEW,)), TopicRequest(add_brokers=(NewBroker("n", 2, 4),)), MOVE):
        yield f"unreadable queues to write, {request}", FEWER_READ, request, {}
    yield "unreadable queues to write on b", topic((4, 4, 6), (4, 4, 2)), EIGHT, {}
    for wrong in (
        *(TopicRequest(drain_brokers=(name,)) for name in ("x", "a")),
        TopicRequest(drain_brokers=("a",), add_brokers=(NewBroker("a"),)),
        TopicRequest(move_to_cluster="east"),
    ):
        yield f"{wrong}", route(a=4), wrong, {}
    for name, state in NEW_QUEUE.items():
        new = TopicRouteData("T", (QueueData("a", 2, 3, 6),), route(a=2).broker_datas)
        yield f"a new queue {name}", new, TopicRequest(queues=3), {"groups": [new_queue(state)]}
    # 8 queues become 16: half of the hashes leave each queue. With 3, of 0, 8 and 16 the first stays in a 0; 4, 12 and
    # 20 leave b 0, the fourth queue of six.
    for number, lags in ((8, {"a": 60}), (4, {"a": 60}), (3, {"a": 60, "b": 20})):
        late = [lagging(**lags)]
        yield f"unread messages whose keys leave, {number} queues", both, TopicRequest(queues=number), {"groups": late}
    keys = {"groups": [lagging(a=60)], "keys": Keys(KEYS, SDKS[:1])}
    yield "unread messages of keys", both, EIGHT, keys
    for request in (EIGHT, replace(EIGHT, ordered=False)):  # polls, then the unread messages
        yield f"a slow queue, ordered: {request.ordered}", both, request, {"groups": [lagging(2, a=60)]}


def lines_of(now: TopicRouteData, request: TopicRequest, groups: Sequence[PlannedGroup] = (), **more: Any) -> list[str]:
    try:
        found = plan_topic(routes_of(now, request, [WEST]), request, groups, **more)
    except (DataError, UsageError) as error:
        return [f"{error.message} [{error.hint}]"]
    done = [step.number for step in found.steps if step.done]
    lines = [f"next step {found.next_step}, takes {found.estimated_ms} ms, done {done}"]
    for step in (each for each in found.steps if not each.done):
        lines.append(f"{step.number} {step.kind}, {step.estimated_ms} ms")
        lines += [f"  {command.text}" for command in step.commands]
        for wait in step.wait_for:
            lines.append(
                f"  until {wait.kind} {queue_ranges(MessageQueue('T', *astuple(each)) for each in wait.queues)}"
            )
        if step.uniform_share:
            lines.append(f"  {step.uniform_share:.3f} of keys move, out of order for {step.order_broken_ms} ms")
            lines.append(f"  if producers are not held, for {step.order_broken_unheld_ms} ms")
        for each in step.groups:
            starts = [(start.rule, start.queues) for start in each.starts]
            late = f"{each.skipped} skipped, {each.first_lost} lose the first, {each.out_of_order_unheld} out of order"
            lines.append(f"  group {each.group}: {each.added} added, {starts}, {late}")
    return lines


def test_named_plans_are_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {name: lines_of(now, asked, **more) for name, now, asked, more in named_plans()}
    assert_recorded(Path(__file__).with_name("plans.txt"), answers, request)


def test_a_hint_about_unreadable_queues_leads_to_a_plan() -> None:
    for now, asked, name in ((FEWER_READ, MOVE, "n"), (topic((4, 4, 6), (4, 4, 2)), EIGHT, "b")):
        target = routes_of(now, replace(asked, add_brokers=(NewBroker(name, 8),)), [WEST]).target
        unread = set(target.publish_queues()).difference(target.subscribe_queues())
        assert unread <= set(now.publish_queues()), "what was so before stays, with a finding of its own"


ADDED, DRAINED = st.sampled_from([(), (NewBroker("n", 3),)]), st.sampled_from([(), ("a",)])
REQUESTS = st.builds(TopicRequest, queues=st.none() | st.integers(1, 6), add_brokers=ADDED, drain_brokers=DRAINED)
DATAS = st.tuples(st.integers(0, 6), st.integers(0, 6), st.sampled_from([2, 4, 6, 7]))


@settings(max_examples=200)
@given(a=DATAS, b=DATAS, request=REQUESTS)
def test_on_the_way_of_any_change(a: tuple[int, int, int], b: tuple[int, int, int], request: TopicRequest) -> None:
    try:
        found = routes_of(topic(a, b), request)
    except UsageError:
        return
    on_the_way = [found.now, found.opened, found.switched, found.target]
    # No step takes a queue that is still written or unread.
    reads = [set(each.subscribe_queues()) for each in on_the_way]
    writes = [each.publish_queues() for each in on_the_way]
    assert (writes[0], writes[2]) == (writes[1], writes[3])
    assert reads[0] <= reads[1] == reads[2] >= reads[3]
    assert set(writes[3]) & reads[2] == set(writes[3]) & reads[3]
    # Between two commands of a step producers have queues.
    datas = {data.broker_name: data for data in found.opened.queue_datas}
    becomes = {data.broker_name: data for data in found.switched.queue_datas}
    for command in commands_between(found.opened, found.switched, None):
        datas[command.broker_name or ""] = becomes[command.broker_name or ""]
        queues = replace(found.opened, queue_datas=tuple(datas.values())).publish_queues()
        assert queues or not writes[0]
    # Planned again, the same steps are left.
    plans = [plan(each, request) for each in on_the_way]
    assert all(numbers(routes_of(each, request).target) == numbers(found.target) for each in on_the_way)
    for earlier, later in pairwise(plans):
        assert [step.kind for step in later.steps] == [step.kind for step in earlier.steps]
        assert all(then.done or not now.done for now, then in zip(earlier.steps, later.steps, strict=True))
    assert plans[-1].next_step is None


FOUR = tuple(QueueName("a", number) for number in range(4))


def seen(of: TopicRouteData, *groups: ConsumerGroup, others: tuple[TopicRouteData, ...] = ()) -> ClusterSnapshot:
    sighting = RouteSighting(of, HERE, tuple(RouteSighting(other, HERE) for other in others))
    return ClusterSnapshot("dump", "a test", routes={of.topic: sighting}, groups={each.group: each for each in groups})


def offsets(*pairs: tuple[int | None, int | None]) -> ConsumerGroup:
    states = {queue: QueueState(None, *pair) for queue, pair in zip(queues(len(pairs), "a"), pairs, strict=True)}
    return ConsumerGroup("g", Seen("a test"), queues=states)


def read(*pairs: tuple[int | None, int | None]) -> ClusterSnapshot:
    return seen(route(a=4), offsets(*pairs))


HELD = dict.fromkeys(queues(4, "a"), "c1")
ALL_READ = offsets(*[(5, 5)] * 4)
UNREAD = replace(seen(route(a=4), ALL_READ), unread=(Unread("groups", "a", "timed out"),))


def owned(*client_ids: str, owners: dict[MessageQueue, str] = {}, **more: Any) -> ClusterSnapshot:  # noqa: B006
    return seen(route(a=4), group(*client_ids, owners=owners, **more))


@every_case(("kind", "snapshot", "holds", "found"), [
    ("readable", seen(route(a=4)), True, ""),
    ("readable", seen(route(a=6)), True, ""),
    ("readable", seen(route(a=2)), False, "consumers cannot read a 2, a 3"),
    ("readable", seen(route(a=4, perm=2)), False, "consumers cannot read a 0, a 1, a 2 and 1 more"),
    ("readable", seen(route(a=4), others=(route(a=3),)), False, "consumers cannot read a 3"),
    ("writable", seen(route(a=4)), True, ""),
    ("writable", seen(route(a=5)), False, "producers have 5 queues: a 0, a 1, a 2 and 2 more"),
    ("writable", seen(route(a=4, masters=False)), False, "producers have 0 queues: "),
    ("not-readable", seen(route(b=4)), True, ""),
    ("not-readable", seen(route(a=1)), False, "consumers can still read a 0"),
    ("drained", seen(route(a=4), ALL_READ), True, ""),
    ("drained", read((5, 5), (0, -1), (7, 7), (9, 9)), True, ""),
    ("drained", read((5, 5), (3, -1), (7, 6), (9, 9)), False, "group g has 4 unread messages in a 1, a 2"),
    ("drained", read((5, 5), (3, None), (7, 6), (9, 9)), False, "group g has 1 unread message in a 2"),
    ("drained", read((5, 5), (3, None), (7, 7)), None, "unknown: group g: lag of 2 queues"),
    ("drained", UNREAD, None, "unknown: groups of broker a"),
    ("drained", seen(route(a=4)), None, "unknown: the source has no group of the topic"),
    ("owned", owned("c1 c2", owners=HELD), True, ""),
    ("owned", owned("c1 c2", owners={**HELD, queues(4, "a")[3]: ""}), False, "group g: a 3 without an owner"),
    ("owned", owned("c1"), None, "unknown: group g: owners of 4 queues"),
    ("owned", owned(""), True, ""),
    ("owned", owned("c1", message_model="BROADCASTING"), True, ""),
    ("owned", owned("c1", consume_type="CONSUME_POP"), True, ""),
])  # fmt: skip
def test_what_is_waited_for(kind: WaitKind, snapshot: ClusterSnapshot, holds: bool | None, found: str) -> None:
    checked = check(WaitFor(kind, FOUR), snapshot, "T", [*snapshot.groups])
    assert (checked.holds, checked.found) == (holds, found)
    assert check(WaitFor("drained", ()), snapshot, "T", [*snapshot.groups]).holds is True


def test_what_earlier_steps_wait_for_must_still_hold() -> None:
    request = TopicRequest(queues=2)
    now = TopicRouteData("T", (QueueData("a", 4, 4, 6),), route(a=4).broker_datas)
    steps = plan_topic(routes_of(now, request), request, []).steps
    found = check_step(steps, 5, seen(now, ALL_READ), "T", ["g"])
    conditions = [(each.kind, each.holds) for each in found.conditions]
    assert conditions == [("readable", True), ("writable", False), ("drained", True)]
    assert found.holds is False
    switched = replace(now, queue_datas=(QueueData("a", 4, 2, 6),))
    assert check_step(steps, 5, seen(switched, ALL_READ), "T", ["g"]).holds is True


def planned(request: TopicRequest, *groups: PlannedGroup, keys: Keys | None = None) -> TopicChangePlan:
    return plan_topic(routes_of(route(a=4, b=4), request), request, groups, keys)


def change(found: TopicChangePlan) -> PlanStep:
    return next(step for step in found.steps if step.kind == "change-write-queues")


@every_case("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
@every_case("number", [1, 2, 3, 7, 16])
def test_owners_are_those_of_plan_rebalance(strategy: str, number: int) -> None:
    before = side("c1 c2 c3", route(a=4, b=4), strategy=strategy)
    found = planned(TopicRequest(queues=number), PlannedGroup("g", before.members, {}))
    after = change_routes(before.routes, Edits(read_queues=(QueueCount(number),)))
    summary = plan_rebalance("g", before, Side(before.members, after)).summary
    step = found.steps[0 if number > 4 else 5]
    effect = step.groups[0]
    assert (effect.moved, effect.added, effect.removed) == (summary.moved, summary.added, summary.removed)
    assert (effect.unassigned, effect.idle, effect.imbalance) == (summary.unassigned, summary.idle, summary.imbalance)


@every_case("number", [1, 3, 4, 8, 16])
def test_keys_are_those_of_select_queue(number: int) -> None:
    found = planned(TopicRequest(queues=number), keys=Keys(KEYS, SDKS))
    told = key_queues(route(a=4, b=4), KEYS, SDKS, after=route(a=number, b=number))
    expected = [] if number == 4 else [(each.sdk, each.moved) for each in told.sdks]
    assert [(each.sdk, each.moved) for each in change(found).keys] == expected
    for each in change(found).keys:
        rows = [(key.key, key.queues[each.sdk], (key.queues_after or {})[each.sdk]) for key in told.keys]
        assert [(key.key, key.queue, key.queue_after) for key in each.keys] == [row for row in rows if row[1] != row[2]]


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def snapshot(consumer_offset: int, at: datetime) -> ClusterSnapshot:
    states = {queues(1)[0]: QueueState(broker_offset=100, consumer_offset=consumer_offset)}
    group = ConsumerGroup("g", Seen("a test"), queues=states)
    return ClusterSnapshot("dump", "a test", taken_at=at, groups={"g": group})


def test_rates_are_what_was_read_between_two_snapshots() -> None:
    for consumed, before in ((90, 30), (60, -1)):  # -1: no offset was stored
        now, then = snapshot(consumed, NOON), snapshot(before, NOON - timedelta(seconds=30))
        assert consumed_per_ms(now, then, "g", "then") == {queues(1)[0]: 0.002}
    assert consumed_per_ms(now, replace(then, groups={}), "g", "then") == {}
    with pytest.raises(DataError, match="then is not earlier than the source"):
        consumed_per_ms(now, snapshot(30, NOON), "g", "then")
