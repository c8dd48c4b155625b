"""Each strategy's reasons, for every queue of one topic: their numbers are those that the shares come from."""

from __future__ import annotations

import pytest

from rmqlb.engine.allocate import prepare
from rmqlb.engine.allocate.consistent_hash import ring_hash
from rmqlb.engine.allocate.strategy import Settings, Strategy
from rmqlb.model.message_queue import MessageQueue
from tests.support.builders import queues

ROOMS = Settings(consumer_idcs=frozenset({"r", "s"}))
MANY = [f"c{place:03}" for place in range(300)]


def reasons(strategy: Strategy, mqs: list[MessageQueue]) -> list[str]:
    return [strategy.why(queue) for queue in mqs]


def test_avg_names_the_block_of_each_queue() -> None:
    mqs = queues(8)
    blocks = ("0..2 of consumer 0", "3..5 of consumer 1", "6..7 of consumer 2")
    expected = [f"queue {place} is in block {blocks[place // 3]}" for place in range(8)]
    assert reasons(prepare("AVG", mqs, ["x", "y", "z"], Settings()), mqs) == expected


def test_circle_counts_each_queue_out() -> None:
    mqs = queues(5)
    assert reasons(prepare("AVG_BY_CIRCLE", mqs, ["x", "y"], Settings()), mqs) == [
        "queue 0, 0 mod 2 = 0, goes to consumer 0",
        "queue 1, 1 mod 2 = 1, goes to consumer 1",
        "queue 2, 2 mod 2 = 0, goes to consumer 0",
        "queue 3, 3 mod 2 = 1, goes to consumer 1",
        "queue 4, 4 mod 2 = 0, goes to consumer 0",
    ]


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE"])
def test_only_the_second_process_of_an_id_is_called_that(strategy: str) -> None:
    mqs = queues(6)
    prepared = prepare(strategy, mqs, ["x", "x", "y"], Settings())
    seconds = [queue for queue in mqs if "the second process with the id x" in prepared.why(queue)]
    owned = {queue for client_id in ("x", "y") for queue in prepared.share(client_id)}
    assert len(seconds) == 2
    assert set(seconds) == set(mqs) - owned


def test_machine_room_names_the_block_or_whom_the_rest_is_for() -> None:
    mqs = queues(8, "r@a") + queues(3, "s@b") + queues(1, "plain") + queues(1, "t@c")
    place = "of the listed rooms is in block"
    assert reasons(prepare("MACHINE_ROOM", mqs, ["x", "y", "z"], ROOMS), mqs) == [
        *(f"queue {number} {place} {number // 3} of 3 queues" for number in range(9)),
        "queue 9 of the listed rooms is left over, for consumer 0",
        "queue 10 of the listed rooms is left over, for consumer 1",
        "the broker's name is not ROOM@NAME",
        "room t is not listed",
    ]


def test_consistent_hash_names_the_next_entry_and_whether_it_is_past_the_end() -> None:
    ids, mqs = ["x", "y"], queues(24)
    prepared = prepare("CONSISTENT_HASH", mqs, ids, Settings(virtual_nodes=3))
    ring = {ring_hash(f"{client_id}-{replica}"): (client_id, replica) for client_id in ids for replica in range(3)}
    passed = []
    for queue in mqs:
        value = ring_hash(str(queue))
        position = min((place for place in ring if place >= value), default=min(ring))
        client_id, replica = ring[position]
        passed.append(position < value)
        wrapped = " (past the end of the ring)" if position < value else ""
        assert prepared.why(queue) == f"hash {value}, next on the ring is {position}{wrapped}, entry {replica} of {client_id}"  # fmt: skip
        assert queue in prepared.share(client_id)
    assert 0 < sum(passed) < len(passed)


def test_an_entry_with_a_queues_own_hash_takes_it_and_is_not_past_the_end() -> None:
    queue, member = MessageQueue("T", "broker-a", 46067), "10.0.0.1@32657"
    assert ring_hash(str(queue)) == ring_hash(f"{member}-0") == 851741760
    prepared = prepare("CONSISTENT_HASH", [queue], [member], Settings(virtual_nodes=1))
    assert prepared.why(queue) == f"hash 851741760, next on the ring is 851741760, entry 0 of {member}"


def test_consistent_hash_counts_the_entries_that_are_a_members_own() -> None:
    prepared = prepare("CONSISTENT_HASH", queues(1), ["x", "y"], Settings(virtual_nodes=7))
    assert prepared.why_idle("y") == "none of 1 queues meets one of its 7 entries on the ring first"


def test_nearby_tells_zones_with_and_without_consumers_apart() -> None:
    mqs = queues(2, "p-a") + queues(2, "q-b")
    prepared = prepare("MACHINE_ROOM_NEARBY", mqs, ["p1", "p2"], Settings(broker_zones="(.)", client_zones="(.)"))
    assert reasons(prepared, mqs) == [
        "zone p has consumers of its own: queue 0 is in block 0..0 of consumer 0",
        "zone p has consumers of its own: queue 1 is in block 1..1 of consumer 1",
        "zone q has no consumer, all share it: queue 0 is in block 0..0 of consumer 0",
        "zone q has no consumer, all share it: queue 1 is in block 1..1 of consumer 1",
    ]


def test_nearby_names_the_inner_reason_of_an_idle_member_of_a_zone_with_queues() -> None:
    mqs = queues(1, "p-a")
    prepared = prepare("MACHINE_ROOM_NEARBY", mqs, ["p1", "p2"], Settings(broker_zones="(.)", client_zones="(.)"))
    assert prepared.why_idle("p2") == "zone p: consumer 1 of 2 (counted from 0), and only 1 queues"


def test_pin_names_the_inner_reason_and_who_is_left_out() -> None:
    mqs, ids = queues(1), ["h@1", "h@2", "other@1"]
    prepared = prepare("PIN", mqs, ids, Settings(hosts=frozenset({"h"})))
    assert prepared.why(mqs[0]) == "among the 2 consumers on chosen machines: queue 0 is in block 0..0 of consumer 0"
    assert prepared.why_idle("h@2") == "consumer 1 of 2 (counted from 0), and only 1 queues"
    assert prepared.why_idle("other@1") == "other is not one of the chosen machines"
    nobody = prepare("PIN", mqs, ids, Settings(hosts=frozenset({"away"})))
    assert nobody.why(mqs[0]) == "no consumer runs on a chosen machine"


def test_config_tells_an_empty_list_from_none() -> None:
    prepared = prepare("CONFIG", queues(1), ["x", "y"], Settings(config={"x": []}))
    assert (prepared.why_idle("x"), prepared.why_idle("y")) == ("its list is empty", "no queue is configured for it")
