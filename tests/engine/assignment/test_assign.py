import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import AllocationError, MessageQueue, UsageError, allocate
from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, assign, owners_at_rest, runnable, under, why_idle
from rmqlb.engine.assignment.detect import fitting_strategies
from rmqlb.engine.assignment.owners import owners_by_strategy
from rmqlb.model.group import QueueState
from rmqlb.model.owners import ConsumerQueues, OwnersReport, QueueOwners, QueuesPerConsumer, StrategyOwners
from tests.support.builders import route
from tests.support.mismatches import every_case

IDS = tuple(f"10.0.0.{number}@1" for number in range(1, 5))
NO_QUEUE = "the topic has no readable queue"


def test_a_member_that_does_not_subscribe_takes_its_place_and_reads_nothing() -> None:
    members = Members(("x", "y"), "AVG", subscribed={"y": {"Other"}})
    found = assign(route(a=2), members)
    assert ([*found.owners.values()], [*found.idle]) == ([("x",), ()], ["y"])
    everybody = replace(members, broadcasting=True)
    assert assign(route(a=2), everybody).idle == {"y": "this consumer does not subscribe to the topic"}
    assert assign(route(perm=2, a=2), everybody).idle == dict.fromkeys("xy", NO_QUEUE)


def test_a_member_behind_one_whose_client_throws_has_its_share() -> None:
    """Both brokers are in zone z; only x is there, and CONFIG, which has no list, throws for it."""
    settings = Settings(inner="CONFIG", broker_zones={"a": "z"}, client_zones={"x": "z", "y": "y", "z": "w"})
    found = assign(route(a=1), Members(("x", "y", "z"), "MACHINE_ROOM_NEARBY", settings), explain=True)
    assert (set(found.failures), set(found.idle)) == ({"x"}, {"y", "z"})
    mixed = Members(("x", "y", "z"), "AVG", settings, strategy_of={"x": "MACHINE_ROOM_NEARBY"})
    found = assign(route(a=3), mixed, explain=True)
    assert ([*found.owners.values()], [*found.failures]) == ([(), ("y",), ("z",)], ["x"])
    assert found.reasons[found.queues[0]] == "queue 0 is in block 0..0 of consumer 0"


@every_case(("ids", "strategy", "settings", "error", "hint"), [
    ("x x", "MACHINE_ROOM_NEARBY", Settings(broker_zones={}), "topic T: Machine room is null", "say with --strategy"),
    ("x", "MACHINE_ROOM_NEARBY", Settings(), "machineRoomResolver is null", "say with --strategy-option broker-zone"),
    ("x", "CONSISTENT_HASH", Settings(virtual_nodes=-1), "illegal virtualNodeCnt :-1", "CONSISTENT_HASH cannot run"),
])  # fmt: skip
def test_no_assignment_if_all_clients_throw(ids: str, strategy: str, settings: Settings, error: str, hint: str) -> None:
    with pytest.raises(AllocationError) as raised:
        assign(route(a=1), Members(tuple(ids.split()), strategy, settings))
    assert raised.value.message.startswith(error)
    assert (raised.value.hint or "").startswith(hint)


def test_nothing_to_share_and_nobody_to_share_it() -> None:
    found = assign(route(perm=2, a=4), Members(("x", "y"), "AVG"))
    assert (found.queues, found.idle) == ((), dict.fromkeys("xy", NO_QUEUE))
    assert [*assign(route(a=2), Members((), "AVG")).owners.values()] == [(), ()]
    ghost = MessageQueue("T", "gone", 7)  # queues that only a CONFIG list names come last
    config = {"x": [MessageQueue("T", "a", 0), ghost, MessageQueue("Other", "a", 0)]}
    found = assign(route(a=1), Members(("x",), "CONFIG", Settings(config=config)))
    assert found.queues == (MessageQueue("T", "a", 0), ghost)


def test_owners_by_strategy_come_queue_by_queue_and_strategy_by_strategy() -> None:
    """Nobody has seen who owns queue 3, and queue 9, which only CONFIG's list names, is none of the topic's."""
    q = [MessageQueue("T", "a", number) for number in (0, 1, 2, 3, 9)]
    members = Members(("y", "x", "x"), "AVG_BY_CIRCLE", Settings(config={"x": [q[3], q[4]]}))
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


def test_reasons_of_owners_and_of_idle_members_are_the_strategys() -> None:
    found = assign(route(a=1), Members(("x", "y"), "AVG"), explain=True)
    assert found.reasons == {MessageQueue("T", "a", 0): "queue 0 is in block 0..0 of consumer 0"}
    assert found.idle == {"y": "consumer 1 of 2 (counted from 0), and only 1 queues"}


def test_a_queue_goes_where_its_owners_own_strategy_puts_it() -> None:
    members = Members(("x", "y"), "AVG", strategy_of={"y": "AVG_BY_CIRCLE"})
    found = assign(route(a=4), members, explain=True)
    avg, circle = "AVG: queue {0} is in block", "AVG_BY_CIRCLE: queue {0}, {0} mod 2"
    for queue, ids, parts in zip(
        found.queues,
        (("x",), ("x", "y"), (), ("y",)),
        (("queue 0 is in",), (avg, circle), (avg, circle), ("queue 3, 3 mod",)),
        strict=True,
    ):
        texts = found.reasons[queue].split("; ")
        assert (found.owners[queue], len(texts)) == (ids, len(parts))
        assert all(text.startswith(part.format(queue.queue_id)) for text, part in zip(texts, parts, strict=True))
    nearby = Members(("x",), "MACHINE_ROOM_NEARBY", Settings(inner="AVG_BY_CIRCLE"))
    assert nearby.name == "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE"


def test_a_member_without_queues_has_a_reason_for_each_topic() -> None:
    members = Members(("a", "b"), "AVG", subscribed={"b": {"T", "U"}})
    too_few = "consumer 1 of 2 (counted from 0), and only 1 queues"
    routes = [route("U", perm=2, x=4), route("T", x=1), route("V", x=1), route("W", x=2)]
    assignments = [assign(one, members) for one in routes]
    assert why_idle("b", assignments[1:2]) == too_few
    assert why_idle("b", assignments) == (
        f"U: {NO_QUEUE}; T, V: {too_few}; "
        "W: this consumer does not subscribe to the topic, so that its share stays unassigned"
    )


def test_consumers_whose_strategy_brokers_do_not_have_own_nothing() -> None:
    """Of a group in which only `b` computes its share itself, that one keeps its place and its share."""
    asking = Members(("a", "b", "c"), "CONSISTENT_HASH", by_broker=True, by_broker_of={"b": False})
    themselves = Members(("a", "b", "c"), "CONSISTENT_HASH")
    found, usual = (assign(route(x=8), members, explain=True) for members in (asking, themselves))
    assert found.owners == {queue: tuple({"b"} & set(ids)) for queue, ids in usual.owners.items()}
    assert {*found.idle} == {"a", "c"}
    nobody = assign(route(x=8), replace(asking, by_broker_of={}), explain=True)
    assert (set(nobody.owners.values()), set(nobody.reasons.values())) == ({()}, {found.idle["a"]})
    one, other = (assign(route(x=8), replace(members, strategy="AVG")).owners for members in (asking, themselves))
    assert one == other


@given(
    st.sampled_from(WITHOUT_SETTINGS),
    st.dictionaries(st.sampled_from(["￮@1", "\U0001f600@1", *IDS]), st.sampled_from(["java", "go", "cpp"]), min_size=1),
    st.sampled_from(["java", "go"]),
    st.integers(1, 9),
)
def test_owners_of_a_mixed_group(strategy: str, sdks: dict[str, str], usual: str, number: int) -> None:
    topic = route(a=number, b=number)
    ids = (*sdks, "z@1")
    assignment = assign(topic, Members(ids, strategy, sdk=usual, sdk_of=sdks), explain=True)
    shares = allocate(strategy, topic.subscribe_queues(), ids, sdk=usual, sdks=sdks)
    assert {i: {q for q, its in assignment.owners.items() if i in its} for i in ids} == {
        i: set(share) for i, share in shares.items()
    }
    assert assignment.reasons.keys() == assignment.owners.keys()
    assert set(assignment.idle) == {i for i, share in shares.items() if not share}


def test_reasons_name_the_library_where_they_differ() -> None:
    for strategy, differ in (("CONSISTENT_HASH", True), ("AVG", False)):
        reasons = assign(route(a=8), Members(IDS, strategy, sdk_of={IDS[1]: "go"}), explain=True).reasons.values()
        both = [f"{strategy} of go" in reason and f"{strategy} of java" in reason for reason in reasons]
        assert any(both) is differ


def test_cpp_runs_one_strategy_and_go_its_own_ring() -> None:
    members = Members(IDS, "AVG", sdk="cpp")
    assert runnable(WITHOUT_SETTINGS, members) == ["AVG"]
    assert runnable(WITHOUT_SETTINGS, Members(IDS, "AVG", sdk_of={IDS[0]: "cpp"})) == list(WITHOUT_SETTINGS)
    with pytest.raises(UsageError, match="no other strategy can be set"):
        owners_at_rest([route(a=4)], under(members, "AVG_BY_CIRCLE"))
    with pytest.raises(UsageError, match="unknown SDK"):
        Members(IDS, "AVG", sdk="perl")
    go = Members(IDS, "CONSISTENT_HASH", sdk="go")
    states = {queue: QueueState(frozenset(ids)) for queue, ids in owners_at_rest([route(a=8)], go).items()}
    assert fitting_strategies([route(a=8)], go, states) == ("CONSISTENT_HASH",)
    assert fitting_strategies([route(a=8)], Members(IDS, "AVG"), states) == ()
