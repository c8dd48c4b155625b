from typing import Any

from msgspec.structs import replace

from rmqlb.engine.plan_topic import TopicRequest, check, check_step, plan_topic, routes_of
from rmqlb.model.group import ConsumerGroup, QueueState, Seen
from rmqlb.model.message_queue import MessageQueue, QueueName
from rmqlb.model.plan_topic import WaitFor, WaitKind
from rmqlb.model.route import QueueData, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread
from tests.support.builders import HERE, group, queues, route
from tests.support.mismatches import every_case

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
