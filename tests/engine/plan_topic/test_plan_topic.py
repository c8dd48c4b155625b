from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import BrokerData, DataError, QueueData, TopicRouteData, UsageError
from rmqlb.engine.plan.changes import Changes, NewBroker, QueueCount, change_routes
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
from rmqlb.engine.send.sdk import sdk
from rmqlb.engine.send.select_queue import key_queues
from rmqlb.model.group import ConsumerGroup, QueueState, Seen
from rmqlb.model.message_queue import MessageQueue, QueueName
from rmqlb.model.plan_topic import Step, TopicChangePlan, WaitFor, WaitKind
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread
from tests.support.builders import HERE, group, queues, route, side
from tests.support.mismatches import every_case

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


def texts(found: TopicChangePlan) -> list[list[str]]:
    return [[one.text for one in step.commands] for step in found.steps]


def test_an_expansion_reads_before_it_writes_and_a_shrinkage_drains_before_it_reads_less() -> None:
    found = plan(topic((4, 4, 6)), TopicRequest(queues=8))
    update = "mqadmin updateTopic -b 10.0.0.1:10911 -t T -r 8 -w {} -p 6"
    assert texts(found) == [[update.format(4)], [], [update.format(8)], [], [], []]
    assert [step.done for step in found.steps] == [False, False, False, False, True, True]
    assert (found.steps[2].uniform_share, found.next_step) == (0.5, 1)
    found = plan(topic((8, 8, 6)), TopicRequest(queues=2))
    update = "mqadmin updateTopic -b 10.0.0.1:10911 -t T -r {} -w 2 -p 6"
    assert texts(found) == [[], [], [update.format(8)], [], [], [update.format(2)]]
    assert found.next_step == 2
    drain = found.steps[4].wait_for[-1]
    assert (drain.kind, [queue.queue_id for queue in drain.queues]) == ("drained", [2, 3, 4, 5, 6, 7])
    assert found.steps[4].estimated_ms == 0.0  # producers were held until nothing was unread
    found = plan(topic((4, 4, 6)), TopicRequest(queues=8, ordered=False))
    kinds = ["add-read-queues", "change-write-queues", "drain-queues", "remove-read-queues"]
    assert [(step.number, step.kind) for step in found.steps] == list(enumerate(kinds, 1))
    assert found.steps[1].order_broken_ms == 30_000  # nothing is unread: the producers' polls alone


def test_a_move_opens_the_new_cluster_first_and_commands_change_the_order_configuration_and_keep_flags() -> None:
    known = BrokerData("new", "n", {0: "10.1.0.1:10911"})
    found = plan(topic((4, 4, 6)), TopicRequest(move_to_cluster="new"), known)
    new, old = "mqadmin updateTopic -b 10.1.0.1:10911 -t T -r 4 -w 4 -p ", "mqadmin updateTopic -b 10.0.0.1:10911 -t T "
    assert texts(found) == [[f"{new}4"], [], [f"{new}6", f"{old}-r 4 -w 4 -p 4"], [], [], [f"{old}-r 0 -w 0 -p 4"]]
    assert found.steps[2].uniform_share == 1.0
    found = plan(topic((4, 4, 6), (4, 4, 6), "b:4;a:4"), TopicRequest(queues=8, drain_brokers=("b",)))
    assert texts(found)[2][-1] == "mqadmin updateOrderConf -t T -m put -v a:8"
    assert not any("updateOrderConf" in text for text in (*texts(found)[0], *texts(found)[5]))
    was, becomes = (replace(topic((4, 4, 6)), queue_datas=(QueueData("a", reads, 4, 6, 3),)) for reads in (4, 8))
    text = commands_between(was, becomes, "h1:9876;h2:9876")[0].text
    assert text == "mqadmin updateTopic -n 'h1:9876;h2:9876' -b 10.0.0.1:10911 -t T -r 8 -w 4 -p 6 -u true -s true"


def test_a_broker_that_gets_the_topic_is_told_its_type_once() -> None:
    """`updateTopic` creates a topic with the attributes in the command, and keeps them when it updates one."""
    request = TopicRequest(add_brokers=(NewBroker("n"),))
    routes = routes_of(topic((4, 4, 6)), request)
    new = "mqadmin updateTopic -b ADDRESS-OF-n -t T -r 4 -w {} -p {}"
    for message_type, more in (("FIFO", " -a +message.type=FIFO"), ("NORMAL", ""), (None, "")):
        found = texts(plan_topic(routes, request, [], message_type=message_type))
        assert (found[0], found[2]) == ([new.format(4, 4) + more], [new.format(4, 6)])


WEST = [BrokerData("west", "n", {0: "10.0.0.9:10911"})]
ADD = TopicRequest(add_brokers=(NewBroker("n"),))
MOVE, EIGHT = TopicRequest(move_to_cluster="west"), TopicRequest(queues=8)
FEWER_READ, NOT_READ = topic((3, 8, 6)), topic((4, 4, 6), (4, 4, 2))


@every_case(("of", "request_", "name", "number"), [
    (FEWER_READ, ADD, "n", 8),
    (FEWER_READ, TopicRequest(add_brokers=(NewBroker("n", 2, 4),)), "n", 4),
    (FEWER_READ, MOVE, "n", 8),
    (NOT_READ, EIGHT, "b", 8),
])  # fmt: skip
def test_unreadable_write_queues_fail_and_the_hint_leads_to_a_plan(
    of: TopicRouteData, request_: TopicRequest, name: str, number: int
) -> None:
    with pytest.raises(UsageError, match=f"producers would write queues of {name} that consumers cannot") as raised:
        routes_of(of, request_, WEST)
    assert raised.value.hint == f"make them readable: --add-broker {name}:{number}"
    target = routes_of(of, replace(request_, add_brokers=(NewBroker(name, number),)), WEST).target
    unread = set(target.publish_queues()).difference(target.subscribe_queues())
    assert unread <= set(of.publish_queues()), "what was so before stays, with a finding of its own"


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


@every_case(("request_", "error", "problem"), [
    (TopicRequest(drain_brokers=("x",)), DataError, "--drain-broker x: topic T has no such broker"),
    (TopicRequest(drain_brokers=("a",)), UsageError, "topic T would have no queue left"),
    (TopicRequest(drain_brokers=("a",), add_brokers=(NewBroker("a"),)), UsageError, "broker a is added and drained"),
    (MOVE, DataError, "the source has no broker of that cluster"),
])  # fmt: skip
def test_what_cannot_be_is_refused(request_: TopicRequest, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        routes_of(route(a=4), request_)


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


KEYS = tuple(f"order-{number}" for number in range(200))
SDKS = tuple(sdk(name) for name in ("java", "go"))


def planned(request: TopicRequest, *groups: PlannedGroup, keys: Keys | None = None) -> TopicChangePlan:
    return plan_topic(routes_of(route(a=4, b=4), request), request, groups, keys)


def change(found: TopicChangePlan) -> Step:
    return next(step for step in found.steps if step.kind == "change-write-queues")


@every_case("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
@every_case("number", [1, 2, 3, 7, 16])
def test_owners_are_those_of_plan_rebalance(strategy: str, number: int) -> None:
    before = side("c1 c2 c3", route(a=4, b=4), strategy=strategy)
    found = planned(TopicRequest(queues=number), PlannedGroup("g", before.members, {}))
    after = change_routes(before.routes, Changes(read_queues=(QueueCount(number),)))
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
    states = {queue: QueueState(None, 100, 100 - lags.get(queue, 0)) for queue in queues(4, "a") + queues(4, "b")}
    found = change(planned(TopicRequest(queues=number), PlannedGroup("g", None, states), keys=keys)).groups[0]
    if late is None:
        told = key_queues(route(a=4, b=4), KEYS, SDKS[:1], after=route(a=8, b=8)).keys
        first = [key for key in told if key.queues["java"] == QueueName("a", 0)]
        late = round(60 * sum(key.queues["java"] != (key.queues_after or {})["java"] for key in first) / len(first))
    assert found.out_of_order_unheld == late


def lagging(lag: int, per_second: float) -> PlannedGroup:
    states = {queue: QueueState(None, 100, 100) for queue in queues(4, "a") + queues(4, "b")}
    (first,) = queues(1, "a")
    states[first] = QueueState(None, 100, 100 - lag)
    return PlannedGroup("g", None, states, consumed_per_ms={first: per_second / 1000})


def test_held_producers_wait_until_the_slowest_queue_is_read() -> None:
    found = planned(TopicRequest(queues=8), lagging(60, per_second=2))
    assert [step.estimated_ms for step in found.steps] == [50_000, 30_000, 30_000, 0, 0, 0]
    assert found.estimated_ms == 110_000
    step = change(found)
    assert (step.order_broken_ms, step.order_broken_unheld_ms) == (0, 60_000)  # polls, then what is unread


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def snapshot(consumer_offset: int, at: datetime) -> ClusterSnapshot:
    states = {queues(1)[0]: QueueState(broker_offset=100, consumer_offset=consumer_offset)}
    group = ConsumerGroup("g", Seen("a test"), queues=states)
    return ClusterSnapshot("dump", "a test", taken_at=at, groups={"g": group})


def test_rates_are_what_was_read_between_two_snapshots() -> None:
    now, then = snapshot(90, NOON), snapshot(30, NOON - timedelta(seconds=30))
    assert consumed_per_ms(now, then, "g", "then") == {queues(1)[0]: 0.002}
    assert consumed_per_ms(now, replace(then, groups={}), "g", "then") == {}
    with pytest.raises(DataError, match="then is not earlier than the source"):
        consumed_per_ms(now, snapshot(30, NOON), "g", "then")
