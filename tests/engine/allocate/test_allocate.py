from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb import AllocationError, MessageQueue, UsageError, allocate, allocate_for
from rmqlb.engine.allocate.consistent_hash import ring_hash
from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from tests.support.builders import queues, short
from tests.support.mismatches import every_case

ids = st.lists(st.text("abc10.@é\U0001f600￮", min_size=1, max_size=8), min_size=1, max_size=12)
some_queues = st.lists(
    st.builds(MessageQueue, st.just("T"), st.sampled_from(["a", "b-10", "b-9", "r@x"]), st.integers(0, 30)),
    min_size=1,
    unique=True,
)


def test_both_lists_are_sorted_as_java_sorts_them_unless_they_are_presorted() -> None:
    shares = allocate("AVG", reversed(queues(3)), ["10.0.0.9@1", "10.0.0.10@1", "10.0.0.1@2"])
    assert [(i, short(share)) for i, share in shares.items()] == [
        ("10.0.0.10@1", ["broker-a0"]),
        ("10.0.0.1@2", ["broker-a1"]),
        ("10.0.0.9@1", ["broker-a2"]),
    ]
    assert list(allocate("AVG", queues(2), ["￮", "\U0001f600"])) == ["\U0001f600", "￮"]
    assert short(allocate("AVG", queues(3)[::-1], ["b", "a"], presorted=True)["b"]) == ["broker-a2", "broker-a1"]


def test_an_entry_that_another_members_entry_displaced_is_made_again_by_a_second_process() -> None:
    one, other = "10.0.0.1@22", "10.0.0.1@107015"
    assert ring_hash(f"{one}-0") == ring_hash(f"{other}-0")
    given = {"presorted": True, "virtual_nodes": 1}
    assert allocate("CONSISTENT_HASH", queues(40), [one, other], **given) == {one: [], other: queues(40)}  # type: ignore[arg-type]
    assert allocate("CONSISTENT_HASH", queues(40), [one, other, one], **given) == {one: queues(40), other: []}  # type: ignore[arg-type]


def test_pin_gives_queues_only_to_members_on_the_chosen_machines() -> None:
    members = ["10.0.0.1@1", "10.0.0.2@1", "10.0.0.2@2", "10.0.0.3@1"]
    shares = allocate("PIN", queues(5), members, hosts=["10.0.0.2"], inner="AVG_BY_CIRCLE")
    assert [len(shares[i]) for i in members] == [0, 3, 2, 0]
    assert allocate("PIN-AVG", queues(5), members, hosts=["10.9.9.9"]) == {i: [] for i in members}


def test_pin_over_all_gives_a_chosen_member_its_share_among_all_and_nobody_the_rest() -> None:
    members = ["10.0.0.1@1", "10.0.0.2@1", "10.0.0.2@2", "10.0.0.3@1"]
    for inner in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"):
        everybodys = allocate(inner, queues(9), members)
        shares = allocate("PIN_OVER_ALL", queues(9), members, hosts=["10.0.0.2"], inner=inner)
        assert shares == {i: everybodys[i] if i.startswith("10.0.0.2@") else [] for i in members}


@pytest.mark.parametrize("strategy", ["PIN", "PIN_OVER_ALL"])
def test_a_pin_of_one_topic_leaves_the_others_to_all(strategy: str) -> None:
    members = ["10.0.0.1@1", "10.0.0.2@1"]
    pinned, other = queues(4, topic="Pinned"), queues(4, topic="Other")
    pins = {"Pinned": ["10.0.0.2"]}
    shares = allocate(strategy, pinned, members, pins=pins)
    assert [len(shares[i]) for i in members] == [0, 4 if strategy == "PIN" else 2]
    assert allocate(strategy, other, members, pins=pins) == allocate("AVG", other, members)
    by_host = allocate(strategy, other, members, pins=pins, hosts=["10.0.0.1"])
    assert by_host == allocate(strategy, other, members, hosts=["10.0.0.1"])
    assert allocate(strategy, pinned, members, pins={"Pinned": []}) == {i: [] for i in members}


def test_config_may_differ_from_member_to_member() -> None:
    lists = {"a": queues(2), "b": queues(2)[1:]}
    assert allocate("CONFIG", queues(9), ["a", "b", "c"], config=lists) == {"a": queues(2), "b": queues(2)[1:], "c": []}


def test_zones_may_be_a_pattern_or_a_function() -> None:
    both = queues(2, "r1-x") + queues(2, "r2-x")
    by_pattern = allocate("MACHINE_ROOM_NEARBY", both, ["r1-a", "r2-a"], broker_zones=r"(\w+)-", client_zones=r"(\w+)-")
    by_function = allocate(
        "MACHINE_ROOM_NEARBY-AVG", both, ["r1-a", "r2-a"], broker_zones=lambda n: n[:2], client_zones=lambda n: n[:2]
    )
    assert by_pattern == by_function == {"r1-a": both[:2], "r2-a": both[2:]}


@every_case(
    ("strategy", "given", "text"),
    [
        ("CONSISTENT_HASH", {"virtual_nodes": -1}, "illegal virtualNodeCnt :-1"),
        ("MACHINE_ROOM_NEARBY", {}, "machineRoomResolver is null"),
        ("MACHINE_ROOM_NEARBY", {"broker_zones": {}, "client_zones": {}}, "Machine room is null for mq MessageQueue [topic=T, brokerName=r@x, queueId=0]"),
        ("MACHINE_ROOM_NEARBY", {"broker_zones": {"r@x": "z"}, "client_zones": {"c": ""}}, "Machine room is null for consumer id c"),
        ("MACHINE_ROOM", {}, "consumeridcs is null"),
    ],
)  # fmt: skip
def test_errors_have_rocketmqs_text(strategy: str, given: dict[str, object], text: str) -> None:
    with pytest.raises(AllocationError) as raised:
        allocate(strategy, queues(1, "r@x"), ["c"], **given)  # type: ignore[arg-type]
    assert str(raised.value) == text


@every_case("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM"])
def test_preconditions_are_checked_in_rocketmqs_order(strategy: str) -> None:
    def text(client_id: str, mqs: list[MessageQueue], cids: list[str]) -> str:
        with pytest.raises(AllocationError) as raised:
            allocate_for(client_id, strategy, mqs, cids, consumer_idcs=["r"])
        return str(raised.value)

    assert text("", [], []) == "currentCID is empty"
    assert text("a", [], []) == "mqAll is null or mqAll empty"
    assert text("a", queues(1), []) == "cidAll is null or cidAll empty"
    assert allocate_for("stranger", strategy, queues(1), ["a"], consumer_idcs=["r"]) == []
    with pytest.raises(AllocationError, match="cidAll is null or cidAll empty"):
        allocate(strategy, queues(1), [], consumer_idcs=["r"])


def test_an_inner_config_without_a_list_throws_only_where_java_calls_it() -> None:
    zones = {"broker_zones": {"broker-a": "z1"}, "client_zones": {"near": "z1", "far": "z2"}}
    arguments = ("MACHINE_ROOM_NEARBY", queues(2), ["near", "far"])
    assert allocate_for("far", *arguments, inner="CONFIG", **zones) == []  # type: ignore[arg-type]
    with pytest.raises(AllocationError):
        allocate_for("near", *arguments, inner="CONFIG", **zones)  # type: ignore[arg-type]


@given(some_queues, ids, st.randoms(use_true_random=False))
def test_a_queue_has_one_owner_unless_an_id_is_shared_in_whatever_order_the_lists_are(
    mqs: list[MessageQueue], members: list[str], random: Random
) -> None:
    mixed, others = random.sample(mqs, len(mqs)), random.sample(members, len(members))
    for strategy in WITHOUT_SETTINGS:
        shares = allocate(strategy, mqs, members)
        assert shares == allocate(strategy, mixed, others)
        assert all(allocate_for(i, strategy, mqs, members) == share for i, share in shares.items())
        owned = Counter(queue for share in shares.values() for queue in share)
        assert set(owned) <= set(mqs)
        assert not owned or max(owned.values()) == 1
        if len(set(members)) == len(members) or strategy == "CONSISTENT_HASH":
            assert set(owned) == set(mqs)


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        allocate("AVGE", queues(1), ["a"])
    assert (raised.value.hint or "").startswith("did you mean AVG")
    assert allocate("PIN-" * 16 + "AVG", queues(2), ["x@1"], hosts=["x"])["x@1"]
    with pytest.raises(UsageError, match=r"strategy PIN-PIN-.*: more than 16 strategies around another"):
        allocate("PIN-" * 2000 + "AVG", queues(2), ["x@1"], hosts=["x"])
    with pytest.raises(UsageError, match="the pattern 'x' says no zone"):
        allocate("MACHINE_ROOM_NEARBY", queues(2), ["x"], broker_zones="(.*)", client_zones="x")


def test_a_ring_has_a_million_entries_at_the_most() -> None:
    members = [f"c{number}" for number in range(12)]
    with pytest.raises(
        UsageError, match=r"--strategy-option virtual-nodes=83334: 12 consumers would have 1000008 entries"
    ) as raised:
        allocate("CONSISTENT_HASH", queues(4), members, virtual_nodes=83_334)
    assert raised.value.hint == "for so many consumers, at most --strategy-option virtual-nodes=83333"
    with pytest.raises(UsageError, match="entries on the ring"):
        allocate_for("c0", "PIN-CONSISTENT_HASH", queues(4), members, virtual_nodes=10**6, hosts=["c0", "c1"])
    assert allocate("AVG", queues(4), members, virtual_nodes=10**6)["c0"]
