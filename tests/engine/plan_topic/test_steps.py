from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.plan.changes import NewBroker
from rmqlb.engine.plan_topic import TopicRequest, check, check_step, commands_between, plan_topic, routes_of
from rmqlb.errors import DataError, UsageError
from rmqlb.model.group import ConsumerGroup, QueueState, Seen
from rmqlb.model.message_queue import MessageQueue, QueueName
from rmqlb.model.plan_topic import TopicChangePlan, WaitFor, WaitKind
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread
from tests.support.builders import HERE, group, queues, route
from tests.support.mismatches import every_case

ADDRESSES = {"a": "10.0.0.1:10911", "b": "10.0.0.2:10911"}


def topic(a: tuple[int, int, int], b: tuple[int, int, int] | None = None, conf: str | None = None) -> TopicRouteData:
    """Read queues, write queues and perm of broker a, and of b."""
    datas = {"a": a} | ({} if b is None else {"b": b})
    return TopicRouteData(
        "T",
        tuple(QueueData(name, *numbers) for name, numbers in datas.items()),
        tuple(BrokerData("c", name, {0: ADDRESSES[name]}) for name in datas),
        order_topic_conf=conf,
    )


def numbers(of: TopicRouteData) -> dict[str, tuple[int, int, int]]:
    return {data.broker_name: (data.read_queue_nums, data.write_queue_nums, data.perm) for data in of.queue_datas}


def plan(of: TopicRouteData, request: TopicRequest, *known: BrokerData) -> TopicChangePlan:
    return plan_topic(routes_of(of, request, known), request, [])


def texts(found: TopicChangePlan) -> list[list[str]]:
    return [[one.text for one in step.commands] for step in found.steps]


def test_an_expansion_reads_before_it_writes() -> None:
    found = plan(topic((4, 4, 6)), TopicRequest(queues=8))
    assert texts(found) == [
        ["mqadmin updateTopic -b 10.0.0.1:10911 -t T -r 8 -w 4 -p 6"],
        [],
        ["mqadmin updateTopic -b 10.0.0.1:10911 -t T -r 8 -w 8 -p 6"],
        *([], [], []),
    ]
    assert [step.done for step in found.steps] == [False, False, False, False, True, True]
    assert found.steps[2].uniform_share == 0.5
    assert found.next_step == 1


def test_a_shrinkage_writes_less_drains_and_reads_less() -> None:
    found = plan(topic((8, 8, 6)), TopicRequest(queues=2))
    assert texts(found) == [
        *([], []),
        ["mqadmin updateTopic -b 10.0.0.1:10911 -t T -r 8 -w 2 -p 6"],
        *([], []),
        ["mqadmin updateTopic -b 10.0.0.1:10911 -t T -r 2 -w 2 -p 6"],
    ]
    assert found.next_step == 2
    drain = found.steps[4].wait_for[-1]
    assert (drain.kind, [queue.queue_id for queue in drain.queues]) == ("drained", [2, 3, 4, 5, 6, 7])
    assert found.steps[4].estimated_ms == 0.0  # producers were held until nothing was unread


def test_unordered_leaves_out_the_steps_that_hold_producers() -> None:
    found = plan(topic((4, 4, 6)), TopicRequest(queues=8, ordered=False))
    kinds = [step.kind for step in found.steps]
    assert kinds == ["add-read-queues", "change-write-queues", "drain-queues", "remove-read-queues"]
    assert [step.number for step in found.steps] == [1, 2, 3, 4]
    assert found.steps[1].order_broken_ms == 30_000  # nothing is unread: the producers' polls alone


def test_a_move_opens_the_new_cluster_before_it_closes_the_old_one() -> None:
    known = BrokerData("new", "n", {0: "10.1.0.1:10911"})
    found = plan(topic((4, 4, 6)), TopicRequest(move_to_cluster="new"), known)
    assert texts(found) == [
        ["mqadmin updateTopic -b 10.1.0.1:10911 -t T -r 4 -w 4 -p 4"],
        [],
        [
            "mqadmin updateTopic -b 10.1.0.1:10911 -t T -r 4 -w 4 -p 6",
            "mqadmin updateTopic -b 10.0.0.1:10911 -t T -r 4 -w 4 -p 4",
        ],
        *([], []),
        ["mqadmin updateTopic -b 10.0.0.1:10911 -t T -r 0 -w 0 -p 4"],
    ]
    assert found.steps[2].uniform_share == 1.0


def test_an_order_configuration_changes_with_the_write_queues() -> None:
    found = plan(topic((4, 4, 6), (4, 4, 6), "b:4;a:4"), TopicRequest(queues=8, drain_brokers=("b",)))
    assert texts(found)[2][-1] == "mqadmin updateOrderConf -t T -m put -v a:8"
    assert not any("updateOrderConf" in text for text in (*texts(found)[0], *texts(found)[5]))


def test_units_keep_their_flags_and_name_servers_are_quoted() -> None:
    old = topic((4, 4, 6))
    flagged = replace(old, queue_datas=(QueueData("a", 4, 4, 6, 3),))
    new = replace(old, queue_datas=(QueueData("a", 8, 4, 6, 3),))
    text = commands_between(flagged, new, "h1:9876;h2:9876")[0].text
    assert text == "mqadmin updateTopic -n 'h1:9876;h2:9876' -b 10.0.0.1:10911 -t T -r 8 -w 4 -p 6 -u true -s true"


def test_a_broker_that_gets_the_topic_is_told_its_type_once() -> None:
    """`updateTopic` creates a topic with the attributes in the command, and keeps them when it updates one."""
    request = TopicRequest(add_brokers=(NewBroker("n"),))
    routes = routes_of(topic((4, 4, 6)), request)
    new = "mqadmin updateTopic -b ADDRESS-OF-n -t T -r 4 -w {} -p {}"
    for message_type, more in (("FIFO", " -a +message.type=FIFO"), ("NORMAL", ""), (None, "")):
        found = texts(plan_topic(routes, request, [], message_type=message_type))
        assert (found[0], found[2]) == ([new.format(4, 4) + more], [new.format(4, 6)])


@every_case(("of", "request_", "problem", "hint"), [
    (topic((3, 8, 6)), TopicRequest(add_brokers=(NewBroker("n"),)), "--add-broker n: producers", "more: n:8"),
    (topic((3, 8, 6)), TopicRequest(add_brokers=(NewBroker("n", 2, 4),)), "--add-broker n:2:4: prod", "more: n:4"),
    (topic((3, 8, 6)), TopicRequest(move_to_cluster="west"), "--move-to-cluster west: .* of n ", "--queues 8"),
    (topic((4, 4, 6), (4, 4, 2)), TopicRequest(queues=8), "--queues 8: .* of b that consumers", "--add-broker b"),
])  # fmt: skip
def test_unreadable_write_queues_fail(of: TopicRouteData, request_: TopicRequest, problem: str, hint: str) -> None:
    with pytest.raises(UsageError, match=problem) as raised:
        routes_of(of, request_, [BrokerData("west", "n", {0: "10.0.0.9:10911"})])
    assert hint in (raised.value.hint or "")


def test_the_hints_of_such_a_refusal_lead_to_a_plan() -> None:
    west = [BrokerData("west", "n", {0: "10.0.0.9:10911"})]
    for of, request in (
        (topic((3, 8, 6)), TopicRequest(add_brokers=(NewBroker("n", 8),))),
        (topic((3, 8, 6)), TopicRequest(queues=8, move_to_cluster="west")),
        (topic((4, 4, 6), (4, 4, 2)), TopicRequest(queues=8, add_brokers=(NewBroker("b"),))),
        (topic((4, 4, 6), (4, 4, 2)), TopicRequest(queues=8, drain_brokers=("b",))),
    ):
        target = routes_of(of, request, west).target
        unread = set(target.publish_queues()).difference(target.subscribe_queues())
        assert unread <= set(of.publish_queues()), "what was so before stays, with a finding of its own"


REQUESTS = st.builds(
    TopicRequest,
    queues=st.none() | st.integers(1, 6),
    add_brokers=st.sampled_from([(), (NewBroker("n", 3),)]),
    drain_brokers=st.sampled_from([(), ("a",)]),
)
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


@every_case(("request_", "problem"), [
    (TopicRequest(drain_brokers=("x",)), "--drain-broker x: topic T has no such broker"),
    (TopicRequest(drain_brokers=("a",)), "topic T would have no queue left"),
    (TopicRequest(drain_brokers=("a",), add_brokers=(NewBroker("a"),)), "broker a is added and drained"),
])  # fmt: skip
def test_what_cannot_be_is_refused(request_: TopicRequest, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        routes_of(route(a=4), request_)


def test_a_cluster_that_nobody_knows_is_missing_data() -> None:
    with pytest.raises(DataError, match="no broker of that cluster is in the source"):
        routes_of(route(a=4), TopicRequest(move_to_cluster="west"))


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


def test_no_queue_has_unread_messages() -> None:
    assert check(WaitFor("drained", ()), UNREAD, "T", ["g"]).holds is True


def test_what_earlier_steps_wait_for_must_still_hold() -> None:
    request = TopicRequest(queues=2)
    now = TopicRouteData("T", (QueueData("a", 4, 4, 6),), route(a=4).broker_datas)
    steps = plan_topic(routes_of(now, request), request, []).steps
    found = check_step(steps, 5, seen(now, ALL_READ), "T", ["g"])
    assert (found.holds, [(each.kind, each.holds) for each in found.conditions]) == (
        False,
        [("readable", True), ("writable", False), ("drained", True)],
    )
    switched = replace(now, queue_datas=(QueueData("a", 4, 2, 6),))
    assert check_step(steps, 5, seen(switched, ALL_READ), "T", ["g"]).holds is True
