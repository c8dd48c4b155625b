"""What a step waits for holds, does not hold, or is unknown, as a snapshot says."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.engine.plan_topic import TopicRequest, check, check_step, plan_topic, routes_of
from rmqlb.model.group import ConsumerGroup, QueueState, Seen
from rmqlb.model.message_queue import QueueName
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
    """A group with these ends of the queues of a, and these offsets."""
    states = {queue: QueueState(None, *pair) for queue, pair in zip(queues(len(pairs), "a"), pairs, strict=True)}
    return ConsumerGroup("g", Seen("a test"), queues=states)


def outcome(kind: WaitKind, snapshot: ClusterSnapshot) -> tuple[bool | None, str]:
    found = check(WaitFor(kind, FOUR), snapshot, "T", [*snapshot.groups])
    return found.holds, found.found


@every_case(
    ("kind", "of", "expected"),
    [
        ("readable", route(a=4), (True, "")),
        ("readable", route(a=6), (True, "")),
        ("readable", route(a=2), (False, "consumers cannot read a 2, a 3")),
        ("readable", route(a=4, perm=2), (False, "consumers cannot read a 0, a 1, a 2 and 1 more")),
        ("writable", route(a=4), (True, "")),
        ("writable", route(a=5), (False, "producers have 5 queues: a 0, a 1, a 2 and 2 more")),
        ("writable", route(a=4, masters=False), (False, "producers have 0 queues: ")),
        ("not-readable", route(b=4), (True, "")),
        ("not-readable", route(a=1), (False, "consumers can still read a 0")),
    ],
)
def test_routes(kind: WaitKind, of: TopicRouteData, expected: tuple[bool | None, str]) -> None:
    assert outcome(kind, seen(of)) == expected


@every_case(
    ("of", "expected"),
    [
        (offsets((5, 5), (0, 0), (7, 7), (9, 9)), (True, "")),
        (offsets((5, 5), (0, -1), (7, 7), (9, 9)), (True, "")),
        (offsets((5, 5), (3, -1), (7, 6), (9, 9)), (False, "group g has 4 unread messages in a 1, a 2")),
        (offsets((5, 5), (3, None), (7, 6), (9, 9)), (False, "group g has 1 unread message in a 2")),
        (offsets((5, 5), (3, None), (7, 7)), (None, "unknown: group g: lag of 2 queues")),
    ],
)
def test_drained(of: ConsumerGroup, expected: tuple[bool | None, str]) -> None:
    assert outcome("drained", seen(route(a=4), of)) == expected


def test_groups_that_could_not_be_read_may_have_unread_messages() -> None:
    snapshot = seen(route(a=4), offsets(*[(5, 5)] * 4))
    snapshot = replace(snapshot, unread=(Unread("groups", "a", "timed out"),))
    assert outcome("drained", snapshot) == (None, "unknown: groups of broker a")
    assert outcome("drained", seen(route(a=4))) == (None, "unknown: the source has no group of the topic")
    assert check(WaitFor("drained", ()), snapshot, "T", ["g"]).holds is True


def test_owned() -> None:
    four = queues(4, "a")
    whole = group("c1 c2", owners=dict.fromkeys(four, "c1"))
    assert outcome("owned", seen(route(a=4), whole)) == (True, "")
    partly = group("c1 c2", owners={**dict.fromkeys(four, "c1"), four[3]: ""})
    assert outcome("owned", seen(route(a=4), partly)) == (False, "group g: a 3 without an owner")
    assert outcome("owned", seen(route(a=4), group("c1", owners={}))) == (None, "unknown: group g: owners of 4 queues")
    for unowned in (
        group("", owners={}),
        group("c1", message_model="BROADCASTING"),
        group("c1", consume_type="CONSUME_POP"),
    ):
        assert outcome("owned", seen(route(a=4), unowned)) == (True, "")


def test_what_earlier_steps_wait_for_must_still_hold() -> None:
    request = TopicRequest(queues=2)
    now = TopicRouteData("T", (QueueData("a", 4, 4, 6),), route(a=4).broker_datas)
    steps = plan_topic(routes_of(now, request), request, []).steps
    read = offsets(*[(5, 5)] * 4)
    found = check_step(steps, 5, seen(now, read), "T", ["g"])
    assert (found.holds, [(each.kind, each.holds) for each in found.conditions]) == (
        False,
        [("readable", True), ("writable", False), ("drained", True)],
    )
    switched = replace(now, queue_datas=(QueueData("a", 4, 2, 6),))
    assert check_step(steps, 5, seen(switched, read), "T", ["g"]).holds is True
