"""What-if: members and routes after a change, and changes that make no sense."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rmqlb import MessageQueue, TopicRouteData, UsageError
from rmqlb.engine.plan.changes import (
    Changes,
    NewBroker,
    QueueCount,
    change_members,
    change_route,
    change_routes,
    describe,
    placeholders,
)
from rmqlb.model.route import BrokerData, TopicQueueMappingInfo
from tests.support.builders import route
from tests.support.mismatches import every_case


def counts(data: TopicRouteData) -> dict[str, tuple[int, int]]:
    return {queue.broker_name: (queue.read_queue_nums, queue.write_queue_nums) for queue in data.queue_datas}


def test_members_are_replaced_removed_and_added() -> None:
    changes = Changes(add=("z", 1), remove=("a",), replace=(("b", "y"),))
    assert change_members(["c", "b", "a"], changes) == ("c", "placeholder-01", "y", "z")


def test_a_change_of_brokers_leaves_the_members() -> None:
    assert change_members(["a"], Changes(add_brokers=(NewBroker("x"),), remove_brokers=("y",))) == ("a",)


def test_a_number_removes_from_the_end_of_the_sorted_members() -> None:
    assert change_members(["9", "10", "8", "7"], Changes(remove=(1,))) == ("10", "7", "8")
    assert change_members(["b", "a"], Changes(remove=(2,))) == ()
    assert change_members(["d", "c", "b", "a"], Changes(remove=(1, "a", 1))) == ("b",)


@every_case(
    ("scale_to", "members"),
    [
        (4, ("a", "b", "c", "placeholder-01")),
        (3, ("a", "b", "c")),
        (1, ("a",)),
        (0, ()),
    ],
)
def test_a_group_is_scaled_from_the_end_of_the_sorted_members(scale_to: int, members: tuple[str, ...]) -> None:
    assert change_members(("c", "a", "b"), Changes(scale_to=scale_to)) == members


def test_a_group_is_scaled_when_the_consumers_that_are_named_have_come_and_gone() -> None:
    changes = Changes(add=("z",), remove=("a",), replace=(("b", "y"),), scale_to=4)
    assert change_members(("c", "a", "b"), changes) == ("c", "placeholder-01", "y", "z")
    assert change_members(("c", "a", "b"), replace(changes, scale_to=1)) == ("c",)


def test_two_processes_of_one_id_count_as_two_when_a_group_is_scaled() -> None:
    assert change_members(("a", "a", "b"), Changes(scale_to=2)) == ("a", "a")


def test_placeholder_ids_avoid_those_that_are_there_and_sort_in_their_order() -> None:
    assert placeholders(2, ["placeholder-01"]) == ["placeholder-02", "placeholder-03"]
    assert sorted(placeholders(12)) == placeholders(12)
    assert len(set(placeholders(300))) == 300


def test_removing_one_of_two_processes_with_an_id_leaves_the_other() -> None:
    assert change_members(["a", "a"], Changes(remove=("a",))) == ("a",)
    assert change_members(["a", "b", "a"], Changes(remove=("a", "a"))) == ("b",)


@every_case(
    ("changes", "problem"),
    [
        (Changes(add=("a",)), "--add a: it is already in the group"),
        (Changes(remove=("x",)), "--remove x: it is not in the group"),
        (Changes(replace=(("x", "y"),)), "--replace x: it is not in the group"),
        (Changes(replace=(("a", "b"),)), "--replace a=b: b is already in the group"),
        (Changes(remove=(3,)), "--remove 3: the group has only 2 consumers"),
        (Changes(add=("c",), remove=("c",)), "c is named twice, in --add and --remove: the changes contradict each other"),
        (Changes(add=(1,), scale_to=3), "--scale-to says how many consumers there are in the end, and a number in --add or --remove another"),
        (Changes(remove=(1,), scale_to=0), "--scale-to says how many consumers there are in the end, and a number in --add or --remove another"),
        (Changes(add=("c", "c")), "c is named twice, in --add: the changes contradict each other"),
        (Changes(add=("c", "c"), remove=("a",), replace=(("b", "d"),)), "c is named twice, in --add: the changes contradict each other"),
        (Changes(replace=(("a", "c"),), remove=("a",)), "a is named twice, in --remove and --replace: the changes contradict each other"),
        (Changes(add_brokers=(NewBroker("x"),), remove_brokers=("x",)), "broker x is added or removed twice: the changes contradict each other"),
        (Changes(add_brokers=(NewBroker("x"), NewBroker("y")), remove_brokers=("z", "y")), "broker y is added or removed twice: the changes contradict each other"),
    ],
)  # fmt: skip
def test_changes_that_make_no_sense_are_refused(changes: Changes, problem: str) -> None:
    with pytest.raises(UsageError) as raised:
        change_members(["a", "b"], changes)
    assert raised.value.message == problem


def test_a_lost_broker_is_lost_to_the_topics_that_it_has() -> None:
    """A group's topics need not be on the same brokers: one made automatically is on one, a static one on none."""
    one, other = route("T", a=4, b=4), route("U", a=2)
    static = replace(
        route("S", a=1), topic_queue_mapping_by_broker={"a": TopicQueueMappingInfo("S", None, 1, "a", 1, {})}
    )
    after = change_routes([one, other, static], Changes(remove_brokers=("b",)))
    assert after == (route("T", a=4), other, static)
    with pytest.raises(UsageError, match="topic S is a static topic"):
        change_routes([one, static], Changes(remove_brokers=("a",)))


@every_case(
    ("topics", "problem"),
    [
        ("T", "--remove-broker c: topic T has no such broker"),
        ("T U", "--remove-broker c: topics T, U have no such broker"),
        ("A B C D E F G H", "--remove-broker c: topics A, B, C, D, E, F, G, H have no such broker"),
        (" ".join("ABCDEFGHI"), "--remove-broker c: topics A, B, C, D, E, F, G, H, … have no such broker"),
    ],
)
def test_a_broker_that_no_topic_has_cannot_be_lost(topics: str, problem: str) -> None:
    with pytest.raises(UsageError) as raised:
        change_routes([route(topic, a=1, b=1) for topic in topics.split()], Changes(remove_brokers=("a", "c")))
    assert (raised.value.message, raised.value.hint) == (problem, "there are the brokers a, b")


def test_an_added_broker_has_as_many_queues_as_most_others_and_serves_producers() -> None:
    changed = change_route(
        route(c=8, a=4, b=4),
        Changes(add_brokers=(NewBroker("d"), NewBroker("e", 2, 1), NewBroker("f", 3), NewBroker("g", None, 0))),
    )
    added = {"d": (4, 4), "e": (2, 1), "f": (3, 3), "g": (4, 0)}
    assert counts(changed) == {"c": (8, 8), "a": (4, 4), "b": (4, 4), **added}
    assert MessageQueue("T", "d", 3) in changed.publish_queues()


def test_a_removed_broker_takes_its_queues_along() -> None:
    assert counts(change_route(route(a=4, b=2), Changes(remove_brokers=("a",)))) == {"b": (2, 2)}


def test_without_its_master_a_broker_is_read_and_not_written() -> None:
    slaves = replace(
        route(a=4, b=2), broker_datas=(BrokerData("c", "a", {0: "m:1", 1: "s:1"}), *route(b=2).broker_datas)
    )
    left = change_route(slaves, Changes(remove_masters=("a",)))
    assert left.broker_datas[0].broker_addrs == {1: "s:1"}
    assert {queue.broker_name for queue in left.publish_queues()} == {"b"}
    assert left.subscribe_queues() == slaves.subscribe_queues()
    assert describe(Changes(remove_masters=("a",))) == ("remove the master of broker a",)


def test_a_broker_is_gone_with_its_last_address() -> None:
    assert counts(change_route(route(a=4, b=2), Changes(remove_masters=("a",)))) == {"b": (2, 2)}
    with pytest.raises(UsageError, match="broker a of topic T has no master"):
        change_route(route(masters=False, a=4), Changes(remove_masters=("a",)))


def test_queue_counts_change_for_one_broker_or_all() -> None:
    changes = Changes(read_queues=(QueueCount(6, "a"),), write_queues=(QueueCount(1),))
    assert counts(change_route(route(a=4, b=4), changes)) == {"a": (6, 1), "b": (4, 1)}


@every_case(
    "changes",
    [
        Changes(remove_brokers=("z",)),
        Changes(remove_masters=("z",)),
        Changes(add_brokers=(NewBroker("a"),)),
        Changes(read_queues=(QueueCount(1, "z"),)),
        Changes(write_queues=(QueueCount(1, "z"),)),
    ],
)
def test_a_broker_must_fit_the_route(changes: Changes) -> None:
    with pytest.raises(UsageError):
        change_route(route(a=4), changes)


def test_a_first_broker_needs_its_number_of_queues() -> None:
    with pytest.raises(UsageError, match="no other broker"):
        change_route(route(), Changes(add_brokers=(NewBroker("a"),)))


def test_a_static_topic_does_not_follow_brokers() -> None:
    info = TopicQueueMappingInfo("T", "__global__", 4, "a", 1, {0: 0})
    static = TopicRouteData("T", (), (), None, {"a": info})
    assert change_route(static, Changes(add=(1,))) is static
    for changes in (
        Changes(remove_brokers=("a",)),
        Changes(remove_masters=("a",)),
        Changes(add_brokers=(NewBroker("b", 1),)),
        Changes(read_queues=(QueueCount(1),)),
        Changes(write_queues=(QueueCount(1),)),
    ):
        with pytest.raises(UsageError, match="static topic"):
            change_route(static, changes)


def test_a_change_reads_as_words() -> None:
    changes = Changes(
        add=("x", 2), remove=(1,), replace=(("a", "b"),), to_strategy="AVG", add_brokers=(NewBroker("n"),),
        remove_brokers=("o",), read_queues=(QueueCount(4),), write_queues=(QueueCount(2, "n"),),
    )  # fmt: skip
    assert describe(Changes(scale_to=1)) == ("scale to 1 consumer",)
    assert describe(changes) == (
        "a is replaced by b",
        "remove the last consumer",
        "add x",
        "add 2 placeholder consumers",
        "remove broker o",
        "add broker n",
        "4 read queues on every broker",
        "2 write queues on n",
        "to strategy AVG",
    )
