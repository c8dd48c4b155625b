"""All members at once: own strategies, failures, subscriptions, reasons."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rmqlb import AllocationError, MessageQueue
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, assign, why_idle
from rmqlb.engine.assignment.owners import owners_by_strategy
from rmqlb.model.evenness import QueuesPerConsumer
from rmqlb.model.group import QueueState
from rmqlb.model.owners import ConsumerQueues, OwnersReport, QueueOwners, StrategyOwners
from tests.support.builders import route
from tests.support.mismatches import every_case


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


def test_a_member_behind_one_whose_client_throws_has_its_share() -> None:
    """Both brokers are in zone z; only x is there, and CONFIG, which has no list, throws for it."""
    settings = Settings(inner="CONFIG", broker_zones={"a": "z"}, client_zones={"x": "z", "y": "y", "z": "w"})
    assignment = assign(route(a=1), Members(("x", "y", "z"), "MACHINE_ROOM_NEARBY", settings), explain=True)
    assert (set(assignment.failures), set(assignment.idle)) == ({"x"}, {"y", "z"})
    mixed = Members(("x", "y", "z"), "AVG", settings, strategy_of={"x": "MACHINE_ROOM_NEARBY"})
    assignment = assign(route(a=3), mixed, explain=True)
    assert [assignment.owners[queue] for queue in assignment.queues] == [(), ("y",), ("z",)]
    assert assignment.failures.keys() == {"x"}
    assert assignment.reasons[assignment.queues[0]] == "queue 0 is in block 0..0 of consumer 0"


def test_when_every_client_throws_there_is_no_assignment() -> None:
    with pytest.raises(AllocationError, match=r"topic T: Machine room is null for mq MessageQueue \[topic=T") as raised:
        assign(route(a=1), Members(("x",), "MACHINE_ROOM_NEARBY", Settings(broker_zones={})))
    with pytest.raises(AllocationError, match="topic T: "):  # two processes that share an id are one client id
        assign(route(a=1), Members(("x", "x"), "MACHINE_ROOM_NEARBY", Settings(broker_zones={})))
    options = "--strategy-option broker-zone=… and --strategy-option client-zone=…"
    assert raised.value.hint == f"say with {options} what the application constructs MACHINE_ROOM_NEARBY with"


@pytest.mark.parametrize(
    ("strategy", "settings", "error", "hint"),
    [
        (
            "MACHINE_ROOM_NEARBY",
            Settings(),
            "machineRoomResolver is null",
            "say with --strategy-option broker-zone=… and --strategy-option client-zone=… what the application constructs MACHINE_ROOM_NEARBY with",
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


def test_owners_by_strategy_are_told_queue_by_queue_and_strategy_by_strategy() -> None:
    """Nobody has seen who owns queue 3, and queue 9, which only CONFIG's list names, is none of the topic's."""
    q = [MessageQueue("T", "a", number) for number in (0, 1, 2, 3, 9)]
    config = {"x": [q[3], q[4]]}
    members = Members(("y", "x", "x"), "AVG_BY_CIRCLE", Settings(config=config))
    seen = {q[0]: "x", q[1]: "", q[2]: "z", q[4]: "x"}
    states = {queue: QueueState(frozenset(ids.split()), 9, queue.queue_id) for queue, ids in seen.items()}
    report = owners_by_strategy("g", [route(a=4)], members, ["AVG", "CONFIG"], states=states)
    no_reasons = {"AVG": None, "CONFIG": None}
    assert report == OwnersReport(
        "g",
        ("T",),
        ("x", "x", "y"),
        (
            QueueOwners("T", "a", 0, ("x",), 9, {"AVG": ("x",), "CONFIG": ()}, no_reasons),
            QueueOwners("T", "a", 1, (), 8, {"AVG": ("x",), "CONFIG": ()}, no_reasons),
            QueueOwners("T", "a", 2, ("z",), 7, {"AVG": (), "CONFIG": ()}, no_reasons),
            QueueOwners("T", "a", 3, None, None, {"AVG": ("y",), "CONFIG": ("x",)}, no_reasons),
            QueueOwners("T", "a", 9, None, None, {"AVG": (), "CONFIG": ("x",)}, no_reasons),
        ),
        (
            StrategyOwners(
                *(4, 0, 1, 0, 2, QueuesPerConsumer(1, 1.5, 2), 4 / 3),
                strategy="AVG",
                consumers=(ConsumerQueues("x", 2, None), ConsumerQueues("y", 1, None)),
                mismatches=2,
            ),
            StrategyOwners(
                *(5, 1, 3, 0, 2, QueuesPerConsumer(0, 1.0, 2), 2.0),
                strategy="CONFIG",
                consumers=(ConsumerQueues("x", 2, None), ConsumerQueues("y", 0, "no queue is configured for it")),
                mismatches=2,
            ),
        ),
    )
    explained = owners_by_strategy("g", [route(a=4)], members, ["AVG", "CONFIG"], explain=True)
    assert [each.mismatches for each in explained.strategies] == [None, None]
    assert [queue.reasons["CONFIG"] for queue in explained.queues] == ["by configuration"] * 4 + [None]


@every_case(
    ("strategy", "settings", "reason"),
    [
        ("AVG", Settings(), "queue 2 is in block 2..2 of consumer 1"),
        ("AVG_BY_CIRCLE", Settings(), "queue 2, 2 mod 2 = 0, goes to consumer 0"),
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
            "among the 1 consumer on chosen machines: queue 2 is in block 0..2 of consumer 0",
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


@every_case(
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
            "AVG: queue 1 is in block 0..1 of consumer 0; AVG_BY_CIRCLE: queue 1, 1 mod 2 = 1, goes to consumer 1",
        ),
        (
            (),
            "AVG: queue 2 is in block 2..3 of consumer 1; AVG_BY_CIRCLE: queue 2, 2 mod 2 = 0, goes to consumer 0",
        ),
        (("y",), "queue 3, 3 mod 2 = 1, goes to consumer 1"),
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
