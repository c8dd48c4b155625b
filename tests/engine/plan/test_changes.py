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
)
from rmqlb.model.route import BrokerData, TopicQueueMappingInfo
from tests.support.builders import route
from tests.support.mismatches import every_case

NAMED = Changes(add=("z", 1), remove=("a",), replace=(("b", "y"),))
ON_BROKERS = [
    Changes(remove_brokers=("z",)),
    Changes(remove_masters=("z",)),
    Changes(add_brokers=(NewBroker("a", 1),)),
    Changes(read_queues=(QueueCount(1, "z"),)),
    Changes(write_queues=(QueueCount(1, "z"),)),
]


@every_case(("members", "changes", "after"), [
    ("c b a", NAMED, "c placeholder-01 y z"),
    ("a", Changes(add_brokers=(NewBroker("x"),), remove_brokers=("y",)), "a"),
    ("9 10 8 7", Changes(remove=(1,)), "10 7 8"),
    ("b a", Changes(remove=(2,)), ""),
    ("d c b a", Changes(remove=(1, "a", 1)), "b"),
    ("a a", Changes(remove=("a",)), "a"),
    ("a b a", Changes(remove=("a", "a")), "b"),
    ("c a b", Changes(scale_to=4), "a b c placeholder-01"),
    ("c a b", Changes(scale_to=3), "a b c"),
    ("c a b", Changes(scale_to=1), "a"),
    ("c a b", Changes(scale_to=0), ""),
    ("a a b", Changes(scale_to=2), "a a"),
    ("c a b", replace(NAMED, add=("z",), scale_to=4), "c placeholder-01 y z"),
    ("c a b", replace(NAMED, add=("z",), scale_to=1), "c"),
    ("placeholder-01", Changes(add=(2,)), "placeholder-01 placeholder-02 placeholder-03"),
])  # fmt: skip
def test_members_are_replaced_removed_added_and_scaled(members: str, changes: Changes, after: str) -> None:
    assert change_members(members.split(), changes) == tuple(after.split())


TWICE = "the changes contradict each other"
SCALED = "--scale-to says how many consumers there are in the end, and a number in --add or --remove another"


@every_case(("changes", "problem"), [
    (Changes(add=("a",)), "--add a: it is already in the group"),
    (Changes(remove=("x",)), "--remove x: it is not in the group"),
    (Changes(replace=(("x", "y"),)), "--replace x: it is not in the group"),
    (Changes(replace=(("a", "b"),)), "--replace a=b: b is already in the group"),
    (Changes(remove=(3,)), "--remove 3: the group has only 2 consumers"),
    (Changes(add=("c",), remove=("c",)), f"c is named twice, in --add and --remove: {TWICE}"),
    (Changes(add=(1,), scale_to=3), SCALED),
    (Changes(remove=(1,), scale_to=0), SCALED),
    (Changes(add=("c", "c"), remove=("a",), replace=(("b", "d"),)), f"c is named twice, in --add: {TWICE}"),
    (Changes(replace=(("a", "c"),), remove=("a",)), f"a is named twice, in --remove and --replace: {TWICE}"),
    (Changes(add_brokers=(NewBroker("x"),), remove_brokers=("x",)), f"broker x is added or removed twice: {TWICE}"),
    (Changes(add_brokers=(NewBroker("x"), NewBroker("y")), remove_brokers=("z", "y")), f"broker y is added or removed twice: {TWICE}"),
])  # fmt: skip
def test_changes_that_make_no_sense_are_refused(changes: Changes, problem: str) -> None:
    with pytest.raises(UsageError) as raised:
        change_members(["a", "b"], changes)
    assert raised.value.message == problem


def test_a_lost_broker_is_lost_to_the_topics_that_it_has() -> None:
    """A group's topics need not be on the same brokers: one made automatically is on one, a static one on none."""
    one, other = route("T", a=4, b=4), route("U", a=2)
    mapping = {"a": TopicQueueMappingInfo("S", None, 1, "a", 1, {})}
    static = replace(route("S", a=1), topic_queue_mapping_by_broker=mapping)
    after = change_routes([one, other, static], Changes(remove_brokers=("b",)))
    assert after == (route("T", a=4), other, static)
    with pytest.raises(UsageError, match="topic S is a static topic"):
        change_routes([one, static], Changes(remove_brokers=("a",)))
    for topics, named in (
        ("T", "topic T has"),
        ("A B C D E F G H", "topics A, B, C, D, E, F, G, H have"),
        ("A B C D E F G H I", "topics A, B, C, D, E, F, G, H, … have"),
    ):
        with pytest.raises(UsageError) as raised:
            change_routes([route(topic, a=1, b=1) for topic in topics.split()], Changes(remove_brokers=("a", "c")))
        assert raised.value.message == f"--remove-broker c: {named} no such broker"
        assert raised.value.hint == "there are the brokers a, b"


@every_case(("before", "changes", "after"), [
    ({"c": 8, "a": 4, "b": 4}, Changes(add_brokers=(NewBroker("d"), NewBroker("e", 2, 1), NewBroker("f", 3), NewBroker("g", None, 0))), {"c": (8, 8), "a": (4, 4), "b": (4, 4), "d": (4, 4), "e": (2, 1), "f": (3, 3), "g": (4, 0)}),
    ({"a": 4, "b": 2}, Changes(remove_brokers=("a",)), {"b": (2, 2)}),
    ({"a": 4, "b": 2}, Changes(remove_masters=("a",)), {"b": (2, 2)}),
    ({"a": 4, "b": 4}, Changes(read_queues=(QueueCount(6, "a"),), write_queues=(QueueCount(1),)), {"a": (6, 1), "b": (4, 1)}),
])  # fmt: skip
def test_brokers_and_counts_change(before: dict[str, int], changes: Changes, after: dict[str, tuple[int, int]]) -> None:
    changed = change_route(route(**before), changes)  # type: ignore[arg-type]
    assert {each.broker_name: (each.read_queue_nums, each.write_queue_nums) for each in changed.queue_datas} == after
    assert {(q.broker_name, q.queue_id) for q in changed.publish_queues()} == {
        (name, number) for name, (_, writes) in after.items() for number in range(writes)
    }


def test_without_its_master_a_broker_is_read_and_not_written() -> None:
    slaves = replace(
        route(a=4, b=2), broker_datas=(BrokerData("c", "a", {0: "m:1", 1: "s:1"}), *route(b=2).broker_datas)
    )
    left = change_route(slaves, Changes(remove_masters=("a",)))
    assert left.broker_datas[0].broker_addrs == {1: "s:1"}
    assert left.publish_queues() == [MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)]
    assert left.subscribe_queues() == slaves.subscribe_queues()


def test_a_broker_must_fit_the_route() -> None:
    for changes in ON_BROKERS:
        with pytest.raises(UsageError):
            change_route(route(a=4), changes)
    with pytest.raises(UsageError, match="broker a of topic T has no master"):
        change_route(route(masters=False, a=4), Changes(remove_masters=("a",)))
    with pytest.raises(UsageError, match="no other broker"):
        change_route(route(), Changes(add_brokers=(NewBroker("a"),)))


def test_a_static_topic_does_not_follow_brokers() -> None:
    info = TopicQueueMappingInfo("T", "__global__", 4, "a", 1, {0: 0})
    static = TopicRouteData("T", (), (), None, {"a": info})
    assert change_route(static, Changes(add=(1,))) is static
    for changes in ON_BROKERS:
        with pytest.raises(UsageError, match="static topic"):
            change_route(static, changes)


def test_a_change_reads_as_words() -> None:
    changes = Changes(
        add=("x", 2), remove=(1,), replace=(("a", "b"),), to_strategy="AVG", add_brokers=(NewBroker("n"),),
        remove_brokers=("o",), remove_masters=("m",), read_queues=(QueueCount(4),),
        write_queues=(QueueCount(2, "n"),), scale_to=1,
    )  # fmt: skip
    assert "; ".join(describe(changes)) == (
        "a is replaced by b; remove the last consumer; add x; add 2 placeholder consumers; scale to 1 consumer; "
        "remove broker o; remove the master of broker m; add broker n; 4 read queues on every broker; "
        "2 write queues on n; to strategy AVG"
    )
