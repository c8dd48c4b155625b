from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb import AllocationError, MessageQueue, UsageError, allocate, allocate_for
from rmqlb.engine.allocate import full_name, prepare
from rmqlb.engine.allocate.consistent_hash import ring_hash
from rmqlb.engine.allocate.rules import JAVA_CLASSES, SDKS, WITHOUT_SETTINGS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.model.message_queue import sort_client_ids, sort_queues
from tests.support.builders import queues
from tests.support.mismatches import assert_recorded, every_case, refusal, vectors

ids = st.lists(st.text("abc10.@é\U0001f600￮", min_size=1, max_size=8), min_size=1, max_size=12)
BROKERS = st.sampled_from(["a", "b-10", "b-9", "r@x"])
some_queues = st.lists(st.builds(MessageQueue, st.just("T"), BROKERS, st.integers(0, 30)), min_size=1, unique=True)


def test_client_ids_are_sorted_as_java_sorts_them_and_a_displaced_entry_is_made_again() -> None:
    assert list(allocate("AVG", queues(2), ["￮", "\U0001f600"])) == ["\U0001f600", "￮"]
    one, other = "10.0.0.1@22", "10.0.0.1@107015"
    assert ring_hash(f"{one}-0") == ring_hash(f"{other}-0")
    given = {"presorted": True, "virtual_nodes": 1}
    assert allocate("CONSISTENT_HASH", queues(40), [one, other], **given) == {one: [], other: queues(40)}  # type: ignore[arg-type]
    assert allocate("CONSISTENT_HASH", queues(40), [one, other, one], **given) == {one: queues(40), other: []}  # type: ignore[arg-type]


MEMBERS = ["10.0.0.1@1", "10.0.0.2@1", "10.0.0.2@2", "10.0.0.3@1"]


def test_pin_gives_queues_only_to_members_on_the_chosen_machines() -> None:
    shares = allocate("PIN", queues(5), MEMBERS, hosts=["10.0.0.2"], inner="AVG_BY_CIRCLE")
    assert [len(shares[i]) for i in MEMBERS] == [0, 3, 2, 0]
    assert allocate("PIN-AVG", queues(5), MEMBERS, hosts=["10.9.9.9"]) == {i: [] for i in MEMBERS}
    for inner in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"):
        everybodys = allocate(inner, queues(9), MEMBERS)
        shares = allocate("PIN_OVER_ALL", queues(9), MEMBERS, hosts=["10.0.0.2"], inner=inner)
        assert shares == {i: everybodys[i] if i.startswith("10.0.0.2@") else [] for i in MEMBERS}


@every_case(("strategy", "taken"), [("PIN", 4), ("PIN_OVER_ALL", 2)])
def test_a_pin_of_one_topic_leaves_the_others_to_all(strategy: str, taken: int) -> None:
    members, pinned, other = MEMBERS[:2], queues(4, topic="Pinned"), queues(4, topic="Other")
    pins = {"Pinned": ["10.0.0.2"]}
    assert [len(share) for share in allocate(strategy, pinned, members, pins=pins).values()] == [0, taken]
    assert allocate(strategy, other, members, pins=pins) == allocate("AVG", other, members)
    by_host = allocate(strategy, other, members, pins=pins, hosts=["10.0.0.1"])
    assert by_host == allocate(strategy, other, members, hosts=["10.0.0.1"])
    assert allocate(strategy, pinned, members, pins={"Pinned": []}) == {i: [] for i in members}


def test_lists_may_differ_and_zones_may_be_a_pattern_or_a_function() -> None:
    lists = {"a": queues(2), "b": queues(2)[1:]}
    assert allocate("CONFIG", queues(9), ["a", "b", "c"], config=lists) == {"a": queues(2), "b": queues(2)[1:], "c": []}
    both = queues(2, "r1-x") + queues(2, "r2-x")
    arguments: tuple[Any, ...] = "MACHINE_ROOM_NEARBY-AVG", both, ["r1-a", "r2-a"]
    by_pattern = allocate(*arguments, broker_zones=r"(\w+)-", client_zones=r"(\w+)-")
    by_function = allocate(*arguments, broker_zones=lambda name: name[:2], client_zones=lambda name: name[:2])
    assert by_pattern == by_function == {"r1-a": both[:2], "r2-a": both[2:]}


@every_case(("strategy", "given", "text"), [
    ("CONSISTENT_HASH", {"virtual_nodes": -1}, "illegal virtualNodeCnt :-1"),
    ("MACHINE_ROOM_NEARBY", {}, "machineRoomResolver is null"),
    ("MACHINE_ROOM", {}, "consumeridcs is null"),
])  # fmt: skip
def test_errors_have_rocketmqs_text(strategy: str, given: dict[str, Any], text: str) -> None:
    assert text in refusal(AllocationError, allocate, strategy, queues(1, "r@x"), ["c"], **given).message


@every_case("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM"])
def test_an_empty_client_id_is_refused_first_and_an_empty_group_has_no_shares(strategy: str) -> None:
    with pytest.raises(AllocationError, match="currentCID is empty"):
        allocate_for("", strategy, [], [], consumer_idcs=["r"])
    with pytest.raises(AllocationError, match="cidAll is null or cidAll empty"):
        allocate(strategy, queues(1), [], consumer_idcs=["r"])


@given(some_queues, ids, st.randoms(use_true_random=False))
def test_queues_with_distinct_ids_have_one_owner(mqs: list[MessageQueue], members: list[str], random: Random) -> None:
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


def test_what_cannot_be_meant_or_would_be_too_large_is_refused() -> None:
    assert (refusal(UsageError, allocate, "AVGE", queues(1), ["a"]).hint or "").startswith("did you mean AVG")
    assert allocate("PIN-" * 16 + "AVG", queues(2), ["x@1"], hosts=["x"])["x@1"]
    with pytest.raises(UsageError, match=r"strategy PIN-PIN-.*: more than 16 nested strategies"):
        allocate("PIN-" * 2000 + "AVG", queues(2), ["x@1"], hosts=["x"])
    with pytest.raises(UsageError, match="the pattern 'x' does not mark the zone"):
        allocate("MACHINE_ROOM_NEARBY", queues(2), ["x"], broker_zones="(.*)", client_zones="x")
    members = [f"c{number}" for number in range(12)]
    with pytest.raises(
        UsageError, match=r"--strategy-option virtual-nodes=83334: 12 consumers would have 1000008 entries"
    ) as raised:
        allocate("CONSISTENT_HASH", queues(4), members, virtual_nodes=83_334)
    assert raised.value.hint == "with so many consumers, pass at most --strategy-option virtual-nodes=83333"
    with pytest.raises(UsageError, match="entries on the ring"):
        allocate_for("c0", "PIN-CONSISTENT_HASH", queues(4), members, virtual_nodes=10**6, hosts=["c0", "c1"])
    assert allocate("AVG", queues(4), members, virtual_nodes=10**6)["c0"]


ZONES = Settings(broker_zones="(.)", client_zones="(.)")
PIN, OF_X, OF_Y = (Settings(hosts=frozenset({host})) for host in "hxy")
ROOMS = queues(8, "r@a") + queues(3, "s@b") + queues(1, "plain") + queues(1, "t@c")
REASONS: Mapping[str, tuple[str, list[MessageQueue], str, Settings]] = {
    "blocks": ("AVG", queues(8), "x y z", Settings()),
    "blocks, an ID twice": ("AVG", queues(2), "x x", Settings()),
    "blocks, fewer queues": ("AVG", queues(1), "x y", Settings()),
    "a circle": ("AVG_BY_CIRCLE", queues(5), "x y", Settings()),
    "a circle, an ID twice": ("AVG_BY_CIRCLE", queues(2), "x x", Settings()),
    "a circle, fewer queues": ("AVG_BY_CIRCLE", queues(1), "x y", Settings()),
    "rooms": ("MACHINE_ROOM", ROOMS, "x y z", Settings(consumer_idcs=frozenset({"r", "s"}))),
    "rooms, none has a queue": ("MACHINE_ROOM", queues(1), "x y", Settings(consumer_idcs=frozenset({"r"}))),
    "zones": ("MACHINE_ROOM_NEARBY", queues(2, "p-a") + queues(2, "q-b"), "p1 p2", ZONES),
    "zones, fewer queues": ("MACHINE_ROOM_NEARBY", queues(1, "p-a"), "p1 p2", ZONES),
    "zones, y without a queue": ("MACHINE_ROOM_NEARBY", queues(1, "x"), "x y", ZONES),
    "zones, one without consumers": ("MACHINE_ROOM_NEARBY", queues(1, "z"), "x y", ZONES),
    "pinned": ("PIN", queues(1), "h@1 h@2 other@1", PIN),
    "pinned, no consumer there": ("PIN", queues(1), "other@1", PIN),
    "pinned over all": ("PIN_OVER_ALL", queues(3), "x y", OF_X),
    "pinned over all, fewer queues": ("PIN_OVER_ALL", queues(1), "x y", OF_Y),
    # an entry with a queue's own hash takes the queue, and is not past the end
    "a ring, equal hashes": ("CONSISTENT_HASH", [MessageQueue("T", "broker-a", 46067)], "10.0.0.1@32657", Settings(virtual_nodes=1)),
    "a ring": ("CONSISTENT_HASH", queues(4), "x y", Settings(virtual_nodes=3)),
    "a ring, fewer queues": ("CONSISTENT_HASH", queues(1), "x y", Settings(virtual_nodes=7)),
    "an empty ring": ("CONSISTENT_HASH", queues(3, "a")[2:], "x y", Settings(virtual_nodes=0)),
    "a list": ("CONFIG", queues(1), "x y", Settings(config={"x": []})),
}  # fmt: skip


def reasons(strategy: str, mqs: list[MessageQueue], client_ids: str, settings: Settings) -> Iterator[str]:
    prepared = prepare(strategy, mqs, client_ids.split(), settings)
    yield from (f"{queue.broker_name} {queue.queue_id}: {prepared.why(queue)}" for queue in mqs)
    idle = [each for each in dict.fromkeys(client_ids.split()) if not prepared.share(each)]
    yield from (f"{client_id} is idle: {prepared.why_idle(client_id)}" for client_id in idle)


def test_reasons_of_queues_and_idle_consumers_are_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {f"{name}, {case[0]}": [*reasons(*case)] for name, case in REASONS.items()}
    assert_recorded(Path(__file__).with_name("reasons.txt"), answers, request)


FILES = {"java": "allocate", "go": "go-allocate", "cpp": "cpp-allocate"}
VECTORS = {sdk: list(vectors(file)) for sdk, file in FILES.items()}
STRATEGIES = {sdk: Counter(vector["strategy"] for vector in found) for sdk, found in VECTORS.items()}
SETTINGS = {
    "virtualNodeCnt": "virtual_nodes", "consumeridcs": "consumer_idcs", "delegate": "inner",
    "brokerZones": "broker_zones", "consumerZones": "client_zones",
}  # fmt: skip


def queues_of(rows: list[list[Any]]) -> list[MessageQueue]:
    return [MessageQueue(*row) for row in rows]


def settings(vector: dict[str, Any]) -> dict[str, Any]:
    given = {name: vector[key] for key, name in SETTINGS.items() if key in vector}
    given |= {"config": queues_of(vector["config"])} if "config" in vector else {}
    return given | {"presorted": not vector.get("sort", True)}


def expected_of(vector: dict[str, Any]) -> dict[str, list[MessageQueue] | str]:
    expected = vector["expected"].items()
    return {i: queues_of(own) if isinstance(own, list) else own.get("message", own["error"]) for i, own in expected}


def test_there_are_vectors_of_every_strategy_of_each_library() -> None:
    assert (STRATEGIES["java"].total(), STRATEGIES["java"].keys()) == (1500, set(JAVA_CLASSES.values()))
    assert STRATEGIES["go"] == dict.fromkeys(JAVA_CLASSES.values(), 100)
    assert STRATEGIES["cpp"] == {"AVG": 320}
    for vector in VECTORS["java"]:
        assert full_name(vector["strategy"], Settings(inner=vector.get("delegate", "AVG"))) == vector["name"]


@every_case("sdk", ["go", "cpp"])
def test_lists_are_sorted_as_the_client_sorts_them(sdk: str) -> None:
    order = SDKS[sdk].order
    for vector in VECTORS[sdk]:
        assert sort_queues(queues_of(vector["mqAll"]), order) == queues_of(vector["sortedMqAll"]), vector["id"]
        assert sort_client_ids(vector["cidAll"], order) == vector["sortedCidAll"], vector["id"]
    assert any(vector["sortedCidAll"] != sort_client_ids(vector["cidAll"]) for vector in VECTORS[sdk])


@every_case(("sdk", "strategy"), [(sdk, name) for sdk, names in STRATEGIES.items() for name in names])
def test_each_consumer_and_the_whole_group_get_what_its_client_gives_them(sdk: str, strategy: str) -> None:
    for vector in (each for each in VECTORS[sdk] if each["strategy"] == strategy):
        lists = strategy, queues_of(vector["mqAll"]), vector["cidAll"]
        for client_id, expected in expected_of(vector).items():
            found: object
            try:
                found = allocate_for(client_id, *lists, sdk=sdk, **settings(vector))
            except AllocationError as error:
                found = str(error)
            assert found == expected, (vector["id"], client_id)
        own = {i: share for i, share in expected_of(vector).items() if i in vector["cidAll"]}
        try:
            shares = allocate(*lists, sdk=sdk, **settings(vector))
        except AllocationError as error:
            assert all(share == str(error) for share in own.values()), vector["id"]
        else:
            assert list(shares) == list(dict.fromkeys(vector.get("sortedCidAll", shares))), vector["id"]
            assert (shares.keys(), own.items() <= shares.items()) == (set(vector["cidAll"]), True), vector["id"]
