from rmqlb.engine.allocate import prepare
from rmqlb.engine.allocate.consistent_hash import ring_hash
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.model.message_queue import MessageQueue
from tests.support.builders import queues
from tests.support.mismatches import every_case

ZONES = Settings(broker_zones="(.)", client_zones="(.)")
PIN = Settings(hosts=frozenset({"h"}))
BLOCKS = ("0..2 of consumer 0", "3..5 of consumer 1", "6..7 of consumer 2")
BEHIND = "consumer 1 of 2 (counted from 0), and only 1 queues"
OWN, SHARED = "zone p has consumers of its own", "zone q has no consumer, all share it"


@every_case(
    ("strategy", "mqs", "ids", "settings", "reasons"),
    [
        ("AVG", queues(8), "x y z", Settings(), [f"queue {n} is in block {BLOCKS[n // 3]}" for n in range(8)]),
        ("AVG_BY_CIRCLE", queues(5), "x y", Settings(), [f"queue {n}, {n} mod 2 = {n % 2}, goes to consumer {n % 2}" for n in range(5)]),
        (
            "MACHINE_ROOM",
            queues(8, "r@a") + queues(3, "s@b") + queues(1, "plain") + queues(1, "t@c"),
            "x y z",
            Settings(consumer_idcs=frozenset({"r", "s"})),
            [
                *(f"queue {n} of the listed rooms is in block {n // 3} of 3 queues" for n in range(9)),
                "queue 9 of the listed rooms is left over, for consumer 0",
                "queue 10 of the listed rooms is left over, for consumer 1",
                "the broker's name is not ROOM@NAME",
                "room t is not listed",
            ],
        ),
        (
            "MACHINE_ROOM_NEARBY",
            queues(2, "p-a") + queues(2, "q-b"),
            "p1 p2",
            ZONES,
            [f"{zone}: queue {n} is in block {n}..{n} of consumer {n}" for zone in (OWN, SHARED) for n in range(2)],
        ),
        ("PIN", queues(1), "h@1 h@2 other@1", PIN, ["among the 2 consumers on chosen machines: queue 0 is in block 0..0 of consumer 0"]),
        ("PIN", queues(1), "other@1", PIN, ["no consumer runs on a chosen machine"]),
        (
            "CONSISTENT_HASH",  # an entry with a queue's own hash takes it, and is not past the end
            [MessageQueue("T", "broker-a", 46067)],
            "10.0.0.1@32657",
            Settings(virtual_nodes=1),
            ["hash 851741760, next on the ring is 851741760, entry 0 of 10.0.0.1@32657"],
        ),
        ("CONSISTENT_HASH", queues(3, "a")[2:], "x y", Settings(virtual_nodes=0), ["hash 3766250058, and the ring is empty"]),
        ("CONFIG", queues(1), "x y", Settings(config=[]), ["by configuration"]),
        ("PIN_OVER_ALL", queues(3), "x y", Settings(hosts=frozenset({"x"})), [*(f"among all 2 consumers: queue {n} is in block 0..1 of consumer 0" for n in (0, 1)), "among all 2 consumers: queue 2 is in block 2..2 of consumer 1; y is not on a chosen machine, and takes nothing"]),
    ],
)  # fmt: skip
def test_each_queue_has_its_reason(
    strategy: str, mqs: list[MessageQueue], ids: str, settings: Settings, reasons: list[str]
) -> None:
    prepared = prepare(strategy, mqs, ids.split(), settings)
    assert [prepared.why(queue) for queue in mqs] == reasons


@every_case(
    ("strategy", "mqs", "ids", "settings", "client_id", "reason"),
    [
        ("CONSISTENT_HASH", queues(1), "x y", Settings(virtual_nodes=7), "y", "none of 1 queues meets one of its 7 entries on the ring first"),
        ("MACHINE_ROOM_NEARBY", queues(1, "p-a"), "p1 p2", ZONES, "p2", f"zone p: {BEHIND}"),
        ("PIN", queues(1), "h@1 h@2 other@1", PIN, "h@2", BEHIND),
        ("PIN", queues(1), "h@1 h@2 other@1", PIN, "other@1", "other is not one of the chosen machines"),
        ("AVG", queues(1), "x y", Settings(), "y", BEHIND),
        ("AVG_BY_CIRCLE", queues(1), "x y", Settings(), "y", BEHIND),
        ("MACHINE_ROOM", queues(1), "x y", Settings(consumer_idcs=frozenset({"r"})), "y", "consumer 1 of 2 (counted from 0), and only 0 queues in the listed rooms"),
        ("MACHINE_ROOM_NEARBY", queues(1, "x"), "x y", ZONES, "y", "zone y has no queue, and every other zone has consumers of its own"),
        ("MACHINE_ROOM_NEARBY", queues(1, "z"), "x y", ZONES, "y", "zone y has no queue, and the zones without consumers have too few"),
        ("PIN_OVER_ALL", queues(1), "x y", Settings(hosts=frozenset({"x"})), "y", "y is not one of the chosen machines"),
        ("PIN_OVER_ALL", queues(1), "x y", Settings(hosts=frozenset({"y"})), "y", BEHIND),
        ("CONFIG", queues(1), "x y", Settings(config={"x": []}), "x", "its list is empty"),
        ("CONFIG", queues(1), "x y", Settings(config={"x": []}), "y", "no queue is configured for it"),
    ],
)  # fmt: skip
def test_an_idle_consumer_has_its_reason(
    strategy: str, mqs: list[MessageQueue], ids: str, settings: Settings, client_id: str, reason: str
) -> None:
    assert prepare(strategy, mqs, ids.split(), settings).why_idle(client_id) == reason


@every_case("strategy", ["AVG", "AVG_BY_CIRCLE"])
def test_only_the_second_process_of_an_id_is_called_that(strategy: str) -> None:
    mqs = queues(6)
    prepared = prepare(strategy, mqs, ["x", "x", "y"], Settings())
    seconds = [queue for queue in mqs if "the second process with the id x" in prepared.why(queue)]
    owned = {queue for client_id in ("x", "y") for queue in prepared.share(client_id)}
    assert len(seconds) == 2
    assert set(seconds) == set(mqs) - owned


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
