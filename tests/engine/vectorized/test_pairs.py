"""What is known of pairs besides who owns what: shared ids, parts, and how much each member gets."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine.allocate.strategy import first_indexes
from rmqlb.engine.allocate.vectorized.pairs import Pairs, among, by_zone, counts, first_processes, in_pairs
from rmqlb.engine.allocate.vectorized.strategies import avg, avg_by_circle
from tests.engine.vectorized.batches import bools, ints

LISTS = st.lists(st.lists(st.integers(0, 4), max_size=7), max_size=5)


@given(LISTS)
def test_the_first_process_with_an_id_is_javas_first_index(groups: list[list[int]]) -> None:
    owners, processes = first_processes(ints(code for ids in groups for code in ids), ints(map(len, groups)))
    expected_owners: list[int] = []
    expected_processes: list[int] = []
    for ids in groups:
        begin, first = len(expected_owners), first_indexes([str(code) for code in ids])
        expected_owners += [begin + first[str(code)] for code in ids]
        expected_processes += [ids[:index].count(code) for index, code in enumerate(ids)]
    assert (owners.tolist(), processes.tolist()) == (expected_owners, expected_processes)


def test_what_falls_to_the_empty_id_is_nobodys() -> None:
    owners, processes = first_processes(ints([-1, -1, 3]), ints([3]))
    assert (owners.tolist(), processes.tolist()) == ([-1, -1, 2], [0, 1, 0])
    assert avg(Pairs.of(ints([3]), ints([3]), owners=owners)).tolist() == [-1, -1, 2]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=6),
    st.lists(st.integers(0, 5), min_size=4, max_size=4),
)
def test_counts_are_those_of_each_pairs_members(topics: list[tuple[int, int]], members: list[int]) -> None:
    pairs = Pairs.of(ints(count for count, _ in topics), ints(members), ints(group for _, group in topics))
    places = iter(avg_by_circle(pairs).tolist())
    expected = []
    for count, group in topics:
        got = Counter(next(places) for _ in range(count))
        begin = sum(members[:group])
        expected += [got[place] for place in range(begin, begin + members[group])]
    assert counts(pairs, avg_by_circle(pairs)).tolist() == expected


def test_owners_are_found_in_the_lists_of_a_part_too() -> None:
    pairs = Pairs.of(ints([3, 2]), ints([2, 3]), ints([1, 1]))
    part = among(pairs, bools([True, True, True, False, True]))
    assert avg(part).tolist() == [2, 2, 4, 2, 4]
    assert in_pairs(part, ints([2, -1, 4, 2, 4])).tolist() == [0, -1, 1, 2, 3]
    assert counts(part, avg(part)).tolist() == [2, 1, 1, 1]


def test_nobodys_queues_are_counted_for_nobody() -> None:
    assert counts(Pairs.of(ints([2, 1]), ints([0, 1])), ints([-1, -1, 0])).tolist() == [1]


def test_a_zone_with_members_keeps_its_queues_and_the_others_are_dealt_to_all() -> None:
    pairs = Pairs.of(ints([5]), ints([3]))
    part, at = by_zone(pairs, queue_zones=ints([7, 8, 7, 9, 8]), member_zones=ints([8, 5, 8]))
    assert part.queues.tolist() == [2, 2, 1]
    assert at.tolist() == part.rows.tolist() == [0, 2, 1, 4, 3]
    lists = [part.places[sum(part.members[:g]) : sum(part.members[: g + 1])].tolist() for g in part.groups]
    assert lists == [[0, 1, 2], [0, 2], [0, 1, 2]]


def test_a_zone_with_members_of_another_group_only_is_dealt_to_all() -> None:
    pairs = Pairs.of(ints([1, 1]), ints([1, 1]))
    part, _ = by_zone(pairs, queue_zones=ints([0, 0]), member_zones=ints([1, 5]))
    assert part.places[part.groups].tolist() == [0, 1]


def test_a_pair_whose_zones_are_not_all_known_has_no_part() -> None:
    pairs = Pairs.of(ints([1, 1, 1]), ints([1, 1]), ints([0, 0, 1]))
    part, at = by_zone(pairs, queue_zones=ints([1, -1, 1]), member_zones=ints([1, -1]))
    assert (part.queues.tolist(), at.tolist()) == ([1], [0])
