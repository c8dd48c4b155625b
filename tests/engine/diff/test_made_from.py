"""The fingerprint of what a result is made from, and what has changed since an earlier one."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.engine.diff.made_from import made_from, since
from rmqlb.model.group import QueueState, States
from rmqlb.model.made_from import MadeFrom
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, TopicQueueMappingInfo, TopicRouteData
from tests.support.builders import route

T = route("T", a=4, b=4)
AVG = Members(("y", "x", "z"), "AVG")


def made(routes: list[TopicRouteData], members: Members, states: States | None = None) -> MadeFrom:
    return made_from(routes, group="g", members=members, states=states)


def with_lag(lag: int, owner: str = "x") -> States:
    return {queue: QueueState(frozenset([owner]), 100, 100 - lag) for queue in T.subscribe_queues()}


def test_lag_owners_and_order_leave_the_fingerprint_alone() -> None:
    one = made([T, route("U", a=1)], AVG, states=with_lag(0))
    other = made([route("U", a=1), T], Members(("z", "y", "x"), "AVG"), states=with_lag(7, "y"))
    assert one.fingerprint == other.fingerprint
    assert one.offsets_fingerprint != other.offsets_fingerprint
    assert one.owners_fingerprint != other.owners_fingerprint
    against = since(one, other, "f")
    assert (against.same, against.same_owners, against.same_offsets) == (True, False, False)
    assert (against.group, against.topics) == (None, ())


def test_what_is_not_reported_has_no_fingerprint() -> None:
    used = made([T], AVG)
    assert (used.owners_fingerprint, used.offsets_fingerprint) == (None, None)
    against = since(used, made([T], AVG, states=with_lag(0)), "f")
    assert (against.same_owners, against.same_offsets) == (None, None)


def test_addresses_of_brokers_leave_the_fingerprint_alone() -> None:
    brokers = tuple(BrokerData("c", each.broker_name, {0: "192.0.2.9:10911"}) for each in T.broker_datas)
    assert made([replace(T, broker_datas=brokers)], AVG).fingerprint == made([T], AVG).fingerprint


@pytest.mark.parametrize(
    "now",
    [
        made([T], replace(AVG, client_ids=("x", "y"))),
        made([T], replace(AVG, client_ids=("x", "y", "z", "z"))),
        made([T], replace(AVG, strategy="AVG_BY_CIRCLE")),
        made([T], replace(AVG, strategy_of={"x": "AVG_BY_CIRCLE"})),
        made([T], replace(AVG, sdk_of={"x": "go"})),
        made([T], replace(AVG, broadcasting=True)),
        made([T], replace(AVG, subscribed={"x": frozenset(["T"])})),
        made([route("T", a=5, b=4)], AVG),
        made([route("T", perm=4, a=4, b=4)], AVG),
        made([route("T", masters=False, a=4, b=4)], AVG),
        made([replace(T, order_topic_conf="a:4;b:4")], AVG),
        made([T, route("U", a=1)], AVG),
    ],
)
def test_whatever_decides_owners_or_picks_changes_the_fingerprint(now: MadeFrom) -> None:
    assert now.fingerprint != made([T], AVG).fingerprint
    assert not since(made([T], AVG), now, "f").same


def test_a_static_topics_queues_are_those_of_its_route() -> None:
    def static(total: int) -> TopicRouteData:
        info = TopicQueueMappingInfo("T", "__global__", total, "a", 7, {0: 3, 1: 4})
        return replace(T, topic_queue_mapping_by_broker={"a": info})

    against = since(made([static(4)], AVG), made([static(6)], AVG), "f")
    assert against.group is not None
    assert [queue.change for queue in against.group.queues].count("added") == 2


def test_what_changed_is_told_with_the_queues_that_it_moves() -> None:
    now = made([T], Members(("x", "y", "z", "zz"), "AVG"))
    group = since(made([T], AVG), now, "f").group
    assert group is not None
    assert (group.joined, group.left) == (("zz",), ())
    assert {(queue.how, queue.causes) for queue in group.queues} == {("predicted", ("consumers",))}


def test_of_a_producer_routes_alone_count() -> None:
    one, other = made_from([T]), made_from([route("T", a=4, b=5)], taken_at=datetime(2026, 11, 21, tzinfo=UTC))
    against = since(one, other, "f")
    assert (against.same, against.group) == (False, None)
    assert [topic.topic for topic in against.topics] == ["T"]


def test_an_earlier_result_without_client_libraries_was_of_java() -> None:
    used = made([T], AVG)
    written = msgspec.to_builtins(used)
    for consumer in written["consumers"]:
        assert consumer.pop("sdk") == "java"
    earlier = msgspec.convert(written, MadeFrom)
    assert (earlier, since(earlier, used, "f").same) == (used, True)


def test_another_client_library_is_said_and_predicted_with() -> None:
    hashing = replace(AVG, strategy="CONSISTENT_HASH")
    before, after = made([T], hashing), made([T], replace(hashing, sdk="go", sdk_of={"y": "java", "z": "cpp"}))
    against = since(before, after, "f")
    assert against.group is not None
    assert [(each.name, each.before, each.after) for each in against.group.settings] == [
        ("sdk of x", "java", "go"),
        ("sdk of z", "java", "cpp"),
    ]
    assert {queue.causes for queue in against.group.queues} == {("consumers",)}
    predicted = owners_at_rest([T], replace(hashing, sdk_of={"x": "go", "z": "cpp"}))
    changed = {(each.broker_name, each.queue_id): each.predicted_after for each in against.group.queues}
    assert changed
    assert all(predicted[MessageQueue("T", *place)] == owners for place, owners in changed.items())
    back = since(after, before, "f")
    assert back.group is not None
    assert len(back.group.queues) == len(against.group.queues)
