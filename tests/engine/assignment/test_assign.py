"""All members at once: own strategies, failures, subscriptions, reasons."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rmqlb import AllocationError, MessageQueue
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, assign, why_idle
from rmqlb.engine.assignment.owners import owners_by_strategy
from tests.support.builders import route


def owners(members: Members, **brokers: int) -> dict[str, str]:
    assignment = assign(route("T", 6, True, **brokers), members)
    return {f"{q.broker_name}{q.queue_id}": " ".join(ids) for q, ids in assignment.owners.items()}


def test_each_member_runs_its_own_strategy_when_they_differ() -> None:
    members = Members(("x", "y"), "AVG", strategy_of={"x": "AVG", "y": "AVG_BY_CIRCLE"})
    assert owners(members, a=4) == {"a0": "x", "a1": "x y", "a2": "", "a3": "y"}


def test_a_member_that_does_not_subscribe_takes_its_place_and_reads_nothing() -> None:
    members = Members(("x", "y"), "AVG", subscribed={"y": {"Other"}})
    assert owners(members, a=2) == {"a0": "x", "a1": ""}
    assert assign(route(a=2), members).idle.keys() == {"y"}


def test_a_member_whose_client_throws_is_told_apart_from_one_that_gets_nothing() -> None:
    settings = Settings(inner="CONFIG", broker_zones={"a": "z"}, client_zones={"near": "z", "far": "y"})
    assignment = assign(route(a=1), Members(("near", "far"), "MACHINE_ROOM_NEARBY", settings))
    assert assignment.failures.keys() == {"near"}
    assert assignment.idle.keys() == {"far"}


def test_when_every_client_throws_there_is_no_assignment() -> None:
    with pytest.raises(AllocationError, match=r"topic T: Machine room is null for mq MessageQueue \[topic=T") as raised:
        assign(route(a=1), Members(("x",), "MACHINE_ROOM_NEARBY", Settings(broker_zones={})))
    options = "--broker-zone and --client-zone"
    assert raised.value.hint == f"say with {options} what the application constructs MACHINE_ROOM_NEARBY with"


@pytest.mark.parametrize(
    ("strategy", "settings", "error", "hint"),
    [
        (
            "MACHINE_ROOM_NEARBY",
            Settings(),
            "machineRoomResolver is null",
            "say with --broker-zone and --client-zone what the application constructs MACHINE_ROOM_NEARBY with",
        ),
        (
            "CONSISTENT_HASH",
            Settings(virtual_nodes=-1),
            "illegal virtualNodeCnt :-1",
            "CONSISTENT_HASH cannot run with these settings; real clients would log this and keep their queues",
        ),
    ],
)
def test_what_a_constructor_throws_has_a_hint(strategy: str, settings: Settings, error: str, hint: str) -> None:
    with pytest.raises(AllocationError) as raised:
        assign(route(a=1), Members(("x",), strategy, settings))
    assert (raised.value.message, raised.value.hint) == (error, hint)


def test_a_topic_without_readable_queues_leaves_everybody_idle() -> None:
    assignment = assign(route(perm=2, a=4), Members(("x", "y"), "AVG"))
    assert assignment.queues == ()
    assert assignment.idle == dict.fromkeys("xy", "the topic has no readable queue")


def test_a_group_without_members_leaves_every_queue_without_owner() -> None:
    assert owners(Members((), "AVG"), a=2) == {"a0": "", "a1": ""}


def test_queues_that_only_a_config_list_names_come_last() -> None:
    ghost = MessageQueue("T", "gone", 7)
    config = {"x": [MessageQueue("T", "a", 0), ghost, MessageQueue("Other", "a", 0)]}
    assignment = assign(route(a=1), Members(("x",), "CONFIG", Settings(config=config)))
    assert assignment.queues == (MessageQueue("T", "a", 0), ghost)


@pytest.mark.parametrize(
    ("strategy", "settings", "reason"),
    [
        ("AVG", Settings(), "queue 2 is in block 2..2 of consumer 1"),
        ("AVG_BY_CIRCLE", Settings(), "queue 2, 2 mod 2 = 0, is dealt to consumer 0"),
        ("CONFIG", Settings(config=[]), "by configuration"),
        ("MACHINE_ROOM", Settings(consumer_idcs=frozenset()), "the broker's name is not ROOM@NAME"),
        ("CONSISTENT_HASH", Settings(virtual_nodes=0), "hash 3766250058, and the ring is empty"),
        (
            "MACHINE_ROOM_NEARBY",
            Settings(broker_zones="(.)", client_zones="(.)"),
            "zone a has no consumer, all share it: queue 2 is in block 2..2 of consumer 1",
        ),
        (
            "PIN",
            Settings(hosts=frozenset({"y"})),
            "among the 1 consumers on chosen machines: queue 2 is in block 0..2 of consumer 0",
        ),
        (
            "PIN_OVER_ALL",
            Settings(hosts=frozenset({"x"})),
            "among all 2 consumers: queue 2 is in block 2..2 of consumer 1; y is not on a chosen machine, and takes nothing",
        ),
    ],
)
def test_every_strategy_explains_itself(strategy: str, settings: Settings, reason: str) -> None:
    assignment = assign(route(a=3), Members(("x", "y"), strategy, settings), explain=True)
    assert assignment.reasons[MessageQueue("T", "a", 2)] == reason


def test_the_second_process_of_an_id_is_named_as_the_reason_for_a_queue_without_owner() -> None:
    for strategy in ("AVG", "AVG_BY_CIRCLE"):
        assignment = assign(route(a=3), Members(("x", "x", "y"), strategy), explain=True)
        unowned = [queue for queue, ids in assignment.owners.items() if not ids]
        assert [queue.queue_id for queue in unowned] == [1]
        assert "the second process with the id x" in assignment.reasons[unowned[0]]


@pytest.mark.parametrize(
    ("strategy", "settings", "reason"),
    [
        ("AVG", Settings(), "consumer 1 of 2 (counted from 0), and only 1 queues"),
        ("AVG_BY_CIRCLE", Settings(), "consumer 1 of 2 (counted from 0), and only 1 queues"),
        ("CONFIG", Settings(config={"x": []}), "no queue is configured for it"),
        ("MACHINE_ROOM", Settings(consumer_idcs=frozenset({"r"})), "consumer 1 of 2 (counted from 0), and only 0 queues in the listed rooms"),
        ("CONSISTENT_HASH", Settings(virtual_nodes=0), "none of 1 queues meets one of its 0 entries on the ring first"),
        ("PIN", Settings(hosts=frozenset({"x"})), "y is not one of the chosen machines"),
        ("PIN_OVER_ALL", Settings(hosts=frozenset({"x"})), "y is not one of the chosen machines"),
        ("PIN_OVER_ALL", Settings(hosts=frozenset({"y"})), "consumer 1 of 2 (counted from 0), and only 1 queues"),
        ("MACHINE_ROOM_NEARBY", Settings(broker_zones={"a": "x"}, client_zones="(.)"), "zone y has no queue, and every other zone has consumers of its own"),
        ("MACHINE_ROOM_NEARBY", Settings(broker_zones={"a": "z"}, client_zones="(.)"), "zone y has no queue, and the zones without consumers have too few"),
    ],
)  # fmt: skip
def test_every_strategy_says_why_a_member_is_idle(strategy: str, settings: Settings, reason: str) -> None:
    assignment = assign(route(a=1), Members(("x", "y"), strategy, settings))
    assert assignment.idle["y"] == reason


def test_in_a_broadcasting_group_only_who_does_not_subscribe_is_idle() -> None:
    members = Members(("x", "y"), "AVG", subscribed={"y": {"Other"}}, broadcasting=True)
    assert assign(route(a=2), members).idle == {"y": "this consumer does not subscribe to the topic"}
    assert assign(route(perm=2, a=2), members).idle == dict.fromkeys("xy", "the topic has no readable queue")


def test_reasons_are_given_only_when_asked_for() -> None:
    assert assign(route(a=2), Members(("x",), "AVG")).reasons == {}
    everybody = Members(("x",), "AVG", broadcasting=True)
    assert assign(route(a=1), everybody).reasons == {}
    told = assign(route(a=1), everybody, explain=True).reasons
    assert told == {MessageQueue("T", "a", 0): "BROADCASTING: every consumer reads every queue"}


def test_members_name_their_strategy_as_rocketmq_does() -> None:
    members = Members(("x",), "MACHINE_ROOM_NEARBY", Settings(inner="AVG_BY_CIRCLE"))
    assert members.name == "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE"
    assert replace(members, strategy="AVG").name == "AVG"


def test_a_queue_goes_where_its_owners_own_strategy_puts_it() -> None:
    members = Members(("x", "y"), "AVG", strategy_of={"y": "AVG_BY_CIRCLE"})
    assignment = assign(route(a=4), members, explain=True)
    assert [(assignment.owners[queue], assignment.reasons[queue]) for queue in assignment.queues] == [
        (("x",), "queue 0 is in block 0..1 of consumer 0"),
        (
            ("x", "y"),
            "AVG: queue 1 is in block 0..1 of consumer 0; AVG_BY_CIRCLE: queue 1, 1 mod 2 = 1, is dealt to consumer 1",
        ),
        (
            (),
            "AVG: queue 2 is in block 2..3 of consumer 1; AVG_BY_CIRCLE: queue 2, 2 mod 2 = 0, is dealt to consumer 0",
        ),
        (("y",), "queue 3, 3 mod 2 = 1, is dealt to consumer 1"),
    ]


def test_a_member_without_queues_has_a_reason_for_each_topic() -> None:
    """One topic's reason is not that of the others: who has no readable queue is not too late for the last one."""
    members = Members(("a", "b"), "AVG", subscribed={"b": {"T", "U"}})
    too_few = "consumer 1 of 2 (counted from 0), and only 1 queues"
    routes = [route("U", perm=2, x=4), route("T", x=1), route("V", x=1), route("W", x=2)]
    assignments = [assign(one, members) for one in routes]
    assert why_idle("b", assignments[1:2]) == too_few
    assert why_idle("b", assignments) == (
        f"U: the topic has no readable queue; T, V: {too_few}; "
        "W: this consumer does not subscribe to the topic, so that its share stays unassigned"
    )
    owners = owners_by_strategy(None, routes[:2], members, ["AVG"])
    reasons = {each.client_id: each.idle_reason for each in owners.strategies[0].consumers}
    assert reasons == {"a": None, "b": f"U: the topic has no readable queue; T: {too_few}"}
