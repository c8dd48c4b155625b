"""Many rings in one array are those that the engine builds, where entries meet and where an id stands twice too."""

from __future__ import annotations

import subprocess
import sys
from bisect import bisect_left

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine.allocate.consistent_hash import ConsistentHash, ring_hash
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.allocate.vectorized.hash_ring import (
    Hashes,
    Rings,
    build_rings,
    entry_hashes,
    exact_ring,
    owners_on,
    queue_texts,
    ring_hashes,
)
from rmqlb.engine.allocate.vectorized.pairs import Pairs, first_processes
from rmqlb.model.message_queue import MessageQueue
from tests.engine.vectorized.batches import Batch, Group, ints
from tests.support.mismatches import every_case

MEETS_ITSELF = "10.0.104.232@1"  # its entries 13 and 49 have one hash
MEET = ["10.0.57.132@1", "10.0.74.15@1"]  # entry 0 of the one and entry 1 of the other have one hash
QUEUES = [MessageQueue("T", f"b{broker}", i) for broker in range(30) for i in range(20)]


def never_asked(place: int) -> bytes:
    raise AssertionError(place)


def hashes_of(values: list[int]) -> Hashes:
    return np.array(values, np.uint32)


def rings_of(groups: list[list[str]], virtual_nodes: int) -> Rings:
    ids = [client_id for group in groups for client_id in group]
    codes = list(dict.fromkeys(ids))
    owners, processes = first_processes(ints(map(codes.index, ids)), ints(map(len, groups)))
    texts = [client_id.encode() for client_id in ids]
    pairs = Pairs.of(ints([]), ints(map(len, groups)), ints([]), owners)
    return build_rings(pairs, entry_hashes(texts, processes, virtual_nodes), texts.__getitem__)


def engines_ring(client_ids: list[str], virtual_nodes: int) -> dict[int, int]:
    """Position → index of its owner, ascending."""
    ring = ConsistentHash([], client_ids, Settings(virtual_nodes))._ring
    return {position: client_ids.index(ring[position][0]) for position in sorted(ring)}


def test_the_entries_meet_as_the_tests_below_say() -> None:
    assert ring_hash(f"{MEETS_ITSELF}-13") == ring_hash(f"{MEETS_ITSELF}-49")
    assert ring_hash(f"{MEET[0]}-0") == ring_hash(f"{MEET[1]}-1")


@given(st.lists(st.text(), max_size=9))
def test_hashes_are_those_of_the_engine(texts: list[str]) -> None:
    assert ring_hashes(text.encode() for text in texts).tolist() == [ring_hash(text) for text in texts]


def test_many_hashes_are_those_of_the_engine() -> None:
    texts = [f"T-{number}" for number in range(20_000)]
    assert ring_hashes(text.encode() for text in texts).tolist() == [ring_hash(text) for text in texts]


def test_queue_texts_are_those_of_the_queues() -> None:
    topics, brokers, counts = ["T", "😀", "T"], ["a", "\ud800", "é"], [3, 2, 0]
    expected = [
        str(MessageQueue(topic, broker, queue_id)).encode("utf-8", "replace")
        for topic, broker, count in zip(topics, brokers, counts, strict=True)
        for queue_id in range(count)
    ]
    assert list(queue_texts(topics, brokers, counts)) == expected


def test_entries_of_a_second_process_are_numbered_on() -> None:
    hashes = entry_hashes([b"a", b"a", b"b"], ints([0, 1, 0]), 2)
    assert hashes.tolist() == [[ring_hash(f"{i}-{n}") for n in ns] for i, ns in (("a", (0, 1)), ("a", (2, 3)), ("b", (0, 1)))]  # fmt: skip
    assert entry_hashes([b"a"], ints([0]), 0).shape == (1, 0)
    assert entry_hashes([], ints([]), 10).shape == (0, 10)


@every_case(
    "client_ids",
    [
        [MEETS_ITSELF],
        [MEETS_ITSELF, MEETS_ITSELF],
        ["a", MEETS_ITSELF, MEETS_ITSELF, MEETS_ITSELF, "z"],
        MEET,
        MEET[::-1],
        [MEET[0], *MEET],
        [*MEET, MEET[1]],
        [*MEET, MEET[0]],
        ["a", "a"],
        [],
    ],
)
@every_case("virtual_nodes", [0, 1, 2, 50])
def test_rings_whose_entries_meet_are_those_of_the_engine(client_ids: list[str], virtual_nodes: int) -> None:
    expected = engines_ring(client_ids, virtual_nodes)
    positions, indexes = exact_ring([client_id.encode() for client_id in client_ids], virtual_nodes)
    assert dict(zip(positions.tolist(), indexes.tolist(), strict=True)) == expected

    rings = rings_of([["x", "y"], client_ids, ["z"]], virtual_nodes)
    begin, size = int(rings.sizes[0]), int(rings.sizes[1])
    mine = slice(begin, begin + size)
    assert (rings.keys[mine] - np.uint64(1 << 32)).tolist() == list(expected)
    assert (rings.owners[mine] - 2).tolist() == list(expected.values())
    assert (rings.keys[1:] > rings.keys[:-1]).all()
    assert rings.keys[begin + size :].tolist() == [
        (2 << 32) + position for position in engines_ring(["z"], virtual_nodes)
    ]


@every_case("client_ids", [MEET, [*MEET, MEET[1]], [MEETS_ITSELF, MEETS_ITSELF]])
def test_queues_go_to_the_owners_of_entries_that_meet_as_in_the_engine(client_ids: list[str]) -> None:
    settings = Settings(virtual_nodes=50)
    batch = Batch([Group(["x"], [QUEUES], settings), Group(client_ids, [QUEUES], settings)])
    strategy = ConsistentHash(QUEUES, client_ids, settings)
    assert batch.shares(batch.allocate("CONSISTENT_HASH"))[1] == {i: strategy.share(i) for i in client_ids}


def test_what_falls_to_the_empty_id_is_nobodys_where_entries_meet_too() -> None:
    client_ids = ["", MEETS_ITSELF, MEETS_ITSELF]
    batch = Batch([Group(client_ids, [QUEUES], Settings(virtual_nodes=50))])
    (shares,) = batch.shares(batch.allocate("CONSISTENT_HASH"))
    assert shares == {MEETS_ITSELF: ConsistentHash(QUEUES, client_ids, Settings(virtual_nodes=50)).share(MEETS_ITSELF)}
    assert 0 < len(shares[MEETS_ITSELF]) < len(QUEUES)


def test_an_interpreter_without_its_own_md5_hashes_the_same() -> None:
    code = (
        "import sys; sys.modules['_md5'] = None\n"
        "from rmqlb.engine.allocate.vectorized.hash_ring import ring_hashes; print(ring_hashes([b'10.0.0.1@2-0']).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[3774039039]\n"


FEW = st.integers(0, 15) | st.sampled_from([2**32 - 1, 2**31])


@given(
    st.integers(0, 3).flatmap(
        lambda width: st.lists(
            st.tuples(st.lists(st.lists(FEW, min_size=width, max_size=width), max_size=4), st.lists(FEW, max_size=6)),
            max_size=4,
        )
    )
)
def test_chosen_hashes_lead_to_the_next_entry_and_the_later_of_two_equal_ones_wins(
    groups: list[tuple[list[list[int]], list[int]]],
) -> None:
    """Each group: the positions of each member's entries, and the hashes of its queues."""
    members = ints(len(entries) for entries, _ in groups)
    queues = ints(len(hashes) for _, hashes in groups)
    width = max((len(positions) for entries, _ in groups for positions in entries), default=0)
    entries = hashes_of([p for entries, _ in groups for positions in entries for p in positions])
    pairs = Pairs.of(queues, members)
    rings = build_rings(pairs, entries.reshape(int(members.sum()), width), never_asked)
    found = owners_on(rings, pairs.groups, queues, hashes_of([h for _, hashes in groups for h in hashes]))

    expected: list[int] = []
    begin = 0
    for positions_of, hashes in groups:
        ring = {p: begin + index for index, positions in enumerate(positions_of) for p in positions}
        ordered = sorted(ring)
        at = (bisect_left(ordered, value) % len(ordered) if ordered else -1 for value in hashes)
        expected += [-1 if index < 0 else ring[ordered[index]] for index in at]
        begin += len(positions_of)
    assert found.tolist() == expected
