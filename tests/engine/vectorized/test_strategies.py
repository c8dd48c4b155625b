"""Vectorized strategies give each queue the owner that the engine and Java give it."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import groupby
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rmqlb import AllocationError, MessageQueue
from rmqlb.engine.allocate.strategy import Settings, first_indexes
from rmqlb.engine.allocate.vectorized.pairs import (
    Pairs,
    among,
    by_zone,
    counts,
    first_processes,
    in_pairs,
    without_zone,
)
from rmqlb.engine.allocate.vectorized.strategies import avg, avg_by_circle, machine_room, machine_room_nearby, pin
from rmqlb.engine.arrays.ragged import elements, runs
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.model.message_queue import sort_client_ids, sort_queues
from rmqlb.model.route import QueueData, TopicRouteData
from tests.engine.vectorized.batches import Batch, Group, bools, ints
from tests.support.mismatches import every_case
from tests.support.vectors import vectors

SIZES = st.lists(st.integers(0, 4), max_size=8)


@given(SIZES.filter(bool), st.data())
def test_the_elements_of_chosen_lists_are_found(sizes: list[int], data: st.DataObject) -> None:
    which = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=6))
    expected = [sum(sizes[:number]) + offset for number in which for offset in range(sizes[number])]
    assert elements(ints(sizes), ints(which)).tolist() == expected


@given(st.lists(st.integers(0, 3), max_size=12))
def test_runs_are_stretches_of_equal_values(values: list[int]) -> None:
    lengths = [len(list(equal)) for _, equal in groupby(values)]
    assert [part.tolist() for part in runs(ints(values))] == [[sum(lengths[:i]) for i in range(len(lengths))], lengths]


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


Topics = dict[str, dict[str, int]]
"""Topic → broker → how many queues."""

INNER = ("AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM", "CONSISTENT_HASH")
STRATEGIES = (
    *INNER,
    *(f"{outer}-{inner}" for outer in ("MACHINE_ROOM_NEARBY", "PIN", "PIN-MACHINE_ROOM_NEARBY") for inner in INNER),
    *(f"PIN_OVER_ALL-{inner}" for inner in INNER),
    "MACHINE_ROOM_NEARBY-PIN-AVG",
    "MACHINE_ROOM_NEARBY-PIN_OVER_ALL-AVG_BY_CIRCLE",
    "MACHINE_ROOM_NEARBY-MACHINE_ROOM_NEARBY-CONSISTENT_HASH",
)
ODD = ["", "a", "b-10", "b-9", "r@b", "r@c", "q@b", "@b", "r@", "r@b@c", "r@b@", "é", "\ue000", "\U0001f600", "\ud800"]
CLIENT_IDS = st.sampled_from([*ODD, "10.0.0.1@1", "10.0.0.1@2", "10.0.0.10@1", "10.0.0.2@1#7"]) | st.text(max_size=3)
BROKERS = st.dictionaries(st.sampled_from(ODD), st.integers(0, 9), max_size=5)
TOPICS = st.dictionaries(st.sampled_from(["T", "%RETRY%g", "\U0001f600", "é"]), BROKERS, max_size=3)
GROUPS = st.lists(st.tuples(st.lists(CLIENT_IDS, max_size=12), TOPICS), max_size=5)


def zones(salt: int, unknown: str | None) -> dict[str, Any]:
    """Three zones that depend on the name, and a name that is in none."""

    def zone(name: str) -> str | None:
        return None if name == unknown else f"z{sum(map(ord, name)) * salt % 3}"

    return {"broker_zones": zone, "client_zones": zone}


SETTINGS = st.builds(
    lambda virtual_nodes, rooms, hosts, zoned: Settings(virtual_nodes, rooms, hosts=hosts, **zoned),
    st.integers(0, 12),
    st.frozensets(st.sampled_from(["r", "q", ""])),
    st.frozensets(st.sampled_from(["10.0.0.1", "10.0.0.2", "r", "a", "é"])),
    st.builds(zones, st.integers(0, 5), st.none() | st.sampled_from(ODD)),
)


def route(topic: str, brokers: dict[str, int]) -> TopicRouteData:
    return TopicRouteData(topic, tuple(QueueData(name, count, count, 6) for name, count in brokers.items()), ())


def owned(topic: str, brokers: dict[str, int], members: Members) -> dict[str, list[MessageQueue]]:
    """Client id → its queues, as the engine says; nothing where every client throws."""
    shares: dict[str, list[MessageQueue]] = {}
    try:
        assignment = assign(route(topic, brokers), members)
    except AllocationError:
        return {}
    for queue in sort_queues(assignment.owners):
        for client_id in assignment.owners[queue]:
            shares.setdefault(client_id, []).append(queue)
    return shares


def both(groups: list[tuple[list[str], Topics]], strategy: str, settings: Settings) -> tuple[object, object]:
    """Pair by pair who owns what, by the kernel and by the engine."""
    batch = Batch(
        Group(sort_client_ids(ids), [route(*topic).subscribe_queues() for topic in topics.items()], settings)
        for ids, topics in groups
    )
    by_engine = [
        owned(topic, brokers, Members(tuple(ids), strategy, settings))
        for ids, topics in groups
        for topic, brokers in topics.items()
    ]
    return batch.shares(batch.allocate(strategy)), by_engine


@settings(max_examples=200)
@given(groups=GROUPS, strategy=st.sampled_from(STRATEGIES), configured=SETTINGS)
def test_every_queue_goes_where_the_engine_sends_it(
    groups: list[tuple[list[str], Topics]], strategy: str, configured: Settings
) -> None:
    by_kernel, by_engine = both(groups, strategy, configured)
    assert by_kernel == by_engine


@every_case("strategy", STRATEGIES)
def test_a_large_batch_goes_where_the_engine_sends_it(strategy: str) -> None:
    random = np.random.default_rng(len(strategy))
    groups: list[tuple[list[str], Topics]] = [
        (
            [f"10.0.0.{random.integers(30)}@{number}" for _ in range(random.integers(24))],
            {
                f"T{topic}": {f"r{broker % 3}@b{broker}": int(random.integers(17)) for broker in range(5)}
                for topic in range(random.integers(4))
            },
        )
        for number in range(100)
    ]
    hosts = frozenset(f"10.0.0.{host}" for host in range(0, 30, 2))
    by_kernel, by_engine = both(groups, strategy, Settings(10, frozenset({"r0", "r2"}), hosts=hosts, **zones(1, None)))
    assert by_kernel == by_engine


def recorded() -> dict[tuple[str, int], list[dict[str, Any]]]:
    """The vectors by name and virtual nodes; without CONFIG, which allocates nothing."""
    alike: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for vector in vectors("allocate"):
        if vector["name"] != "CONFIG":
            alike[vector["name"], vector.get("virtualNodeCnt", 10)].append(vector)
    return alike


RECORDED = recorded()


def as_group(vector: dict[str, Any]) -> Group:
    ids, queues = vector["cidAll"], [MessageQueue(*queue) for queue in vector["mqAll"]]
    settings = Settings(
        vector.get("virtualNodeCnt", 10),
        frozenset(vector.get("consumeridcs", ())),
        broker_zones=vector.get("brokerZones"),
        client_zones=vector.get("consumerZones"),
    )
    if vector["sort"]:
        ids, queues = sort_client_ids(ids), sort_queues(queues)
    return Group(ids, [queues], settings)


def shares_in_java(vector: dict[str, Any]) -> dict[str, list[MessageQueue]]:
    """Client id → its queues, sorted, for the members that were asked; nothing where the call threw."""
    return {
        client_id: sort_queues(MessageQueue(*queue) for queue in share) if isinstance(share, list) else []
        for client_id, share in vector["expected"].items()
        if client_id in vector["cidAll"]
    }


def test_all_vectors_but_those_of_config_are_asked() -> None:
    assert sum(map(len, RECORDED.values())) == 1349
    assert {name for name, _ in RECORDED} == {
        *INNER,
        *(f"MACHINE_ROOM_NEARBY-{i}" for i in INNER if i != "MACHINE_ROOM"),
    }


@every_case("alike", RECORDED, ids=str)
def test_a_batch_of_all_vectors_is_answered_as_java_answers_each(alike: tuple[str, int]) -> None:
    batch = Batch(map(as_group, RECORDED[alike]))
    for vector, shares in zip(RECORDED[alike], batch.shares(batch.allocate(alike[0])), strict=True):
        java = shares_in_java(vector)
        assert {client_id: sort_queues(shares.get(client_id, ())) for client_id in java} == java, vector["id"]


def test_pairs_without_zone_are_those_where_java_says_so() -> None:
    nearby = [vector for (name, _), alike in RECORDED.items() if "NEARBY" in name for vector in alike]
    asked = [vector for vector in nearby if shares_in_java(vector)]
    batch = Batch(map(as_group, asked))
    unknown = without_zone(batch.pairs, *batch.zones()) & (batch.pairs.queues > 0)
    in_java = ["Machine room is null" in str(vector["expected"]) for vector in asked]
    assert unknown.tolist() == in_java
    assert 0 < sum(in_java) < len(asked)


EMPTY = Pairs.of(ints([]), ints([]))
ODD_PAIRS = Pairs.of(ints([3, 0, 2, 2]), ints([0, 2, 3, 0, 1]), ints([0, 1, 2, 4]))


def test_pairs_without_members_are_nobodys_and_pairs_without_queues_give_nothing() -> None:
    assert avg(ODD_PAIRS).tolist() == [-1, -1, -1, 2, 3, 5, 5]
    assert avg_by_circle(ODD_PAIRS).tolist() == [-1, -1, -1, 2, 3, 5, 5]
    assert machine_room(ODD_PAIRS, bools([True] * 7)).tolist() == [-1, -1, -1, 2, 3, 5, 5]
    assert machine_room(ODD_PAIRS, bools([False] * 7)).tolist() == [-1] * 7


def test_no_queue_behind_the_listed_ones_leads_past_the_last_member() -> None:
    assert machine_room(Pairs.of(ints([2]), ints([0])), bools([True, False])).tolist() == [-1, -1]
    assert machine_room(Pairs.of(ints([2]), ints([1])), bools([True, False])).tolist() == [0, -1]


def test_an_empty_batch_is_answered_by_an_empty_one() -> None:
    none = ints([])
    assert avg(EMPTY).tolist() == avg_by_circle(EMPTY).tolist() == machine_room(EMPTY, bools([])).tolist() == []
    assert machine_room_nearby(EMPTY, none, none, avg).tolist() == pin(EMPTY, bools([]), avg).tolist() == []


def test_the_second_process_with_an_id_takes_nothing_under_avg() -> None:
    pairs = Pairs.of(ints([8]), ints([3]), owners=ints([0, 0, 2]))
    assert avg(pairs).tolist() == [0, 0, 0, -1, -1, -1, 2, 2]
    assert avg_by_circle(pairs).tolist() == [0, -1, 2, 0, -1, 2, 0, -1]


def test_no_strategy_changes_what_it_is_given() -> None:
    before = [ODD_PAIRS.queues.copy(), ODD_PAIRS.members.copy(), ODD_PAIRS.rows.copy(), ODD_PAIRS.places.copy()]
    machine_room_nearby(ODD_PAIRS, ints([0] * 7), ints([0, 1] * 3), avg)
    pin(ODD_PAIRS, bools([True, False] * 3), avg_by_circle)
    after = [ODD_PAIRS.queues, ODD_PAIRS.members, ODD_PAIRS.rows, ODD_PAIRS.places]
    assert [values.tolist() for values in after] == [values.tolist() for values in before]
