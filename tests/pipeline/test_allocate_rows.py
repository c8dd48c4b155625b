"""Every row of ASSIGNMENTS and REFUSALS equals what the engine says of the group by itself; no Spark yet."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.allocate import full_name
from rmqlb.engine.allocate.rules import SIMPLE, WRAPPERS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.engine.user_functions import STRATEGY, FromFile
from rmqlb.errors import AllocationError, UsageError
from rmqlb.model.java import sort_key
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.route import QueueData, TopicRouteData
from rmqlb.pipeline.groups.assignment_rows import PART, allocated_batches
from rmqlb.pipeline.pipeline_plan import EVERY_TOPIC
from rmqlb.pipeline.schemas import ASSIGNMENTS, REFUSALS, Table

from .fleets import Group, Topic, fleet_rows

pytestmark = pytest.mark.spark

STRATEGIES = (
    *SIMPLE,
    *(f"{wrapper}-AVG" for wrapper in WRAPPERS),
    "MACHINE_ROOM_NEARBY-CONSISTENT_HASH",
    "MACHINE_ROOM_NEARBY-MACHINE_ROOM",
    "PIN-AVG_BY_CIRCLE",
    "PIN-MACHINE_ROOM_NEARBY-AVG",
    "PIN_OVER_ALL-CONFIG",
)
NAMES = ("a", "b@x", "r1@b", "r2@b", "\ue000", "\U0001f600", "broker-a", "broker-10", "@", "r1@")
IDS = ("10.0.0.1@1", "10.0.0.1@2", "10.0.0.10@1", "r2x", "", "\U0001f600@1", "\ue000@1", "é", "r1y", "10.0.0.9@1")
CONFIG = {
    "10.0.0.1@1": [MessageQueue("T0", "broker-a", 0), MessageQueue("T1", "nowhere", 7)],
    "r2x": [MessageQueue("T0", "broker-a", 0), MessageQueue("T1", "a", 1)],
}
SETTINGS = (
    Settings(
        virtual_nodes=3,
        consumer_idcs=frozenset({"r1", "b"}),
        config=CONFIG,
        broker_zones={name: name[:1] for name in NAMES},
        client_zones={name: name[:1] or "r" for name in IDS},
        hosts=frozenset({"10.0.0.1", "r2x"}),
    ),
    Settings(pins={"T0": frozenset({"10.0.0.1"}), "T2": frozenset()}, broker_zones="(.)", client_zones="(.)"),
    Settings(
        virtual_nodes=0,
        broker_zones={name: "z" for name in NAMES if name != "a"},
        client_zones=dict.fromkeys(IDS[1:], "z"),
    ),
    Settings(config=[MessageQueue("T0", "a", 0), MessageQueue("T0", "a", 1)], broker_zones="(.)", client_zones="(.)"),
)


def brokers() -> st.SearchStrategy[dict[str, int]]:
    counts = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 9), max_size=4)
    return counts.map(lambda found: {name: found[name] for name in sorted(found, key=sort_key)})


@st.composite
def topics(draw: st.DrawFn, name: str, members: list[str]) -> Topic:
    on = draw(brokers())
    number = sum(on.values())
    places = st.integers(0, number - 1)
    some = st.lists(st.sampled_from(IDS), max_size=3, unique=True)
    return Topic(
        name,
        on,
        absent=draw(st.none() | st.lists(st.sampled_from(members), unique=True)) if members else None,
        lags=draw(st.dictionaries(places, st.integers(0, 10**12))) if number else {},
        owners=draw(st.dictionaries(places, some)) if number else {},
    )


@st.composite
def groups(draw: st.DrawFn, name: str) -> Group:
    members = sort_client_ids(draw(st.lists(st.sampled_from(IDS), max_size=12)))
    number = draw(st.integers(1, 3))
    sdks: dict[str, str] = {}
    if draw(st.booleans()):
        named = draw(st.sampled_from((("go",), ("cpp",), ("java", "go"), ("java", "go", "cpp"))))
        sdks = {client_id: draw(st.sampled_from(named)) for client_id in dict.fromkeys(members)}
    return Group(name, members, [draw(topics(f"T{index}", members)) for index in range(number)], sdks=sdks)


def usual(group: Group) -> str:
    """What most of the distinct client ids run, the first in this order of equals."""
    numbers = Counter(group.sdks.get(client_id, "java") for client_id in set(group.members))
    return max(("java", "go", "cpp"), key=lambda sdk: numbers[sdk])


def cannot_run(group: Group, strategy: str) -> bool:
    """Consumers of the C++ library run AVG only."""
    return strategy != "AVG" and {group.sdks.get(client_id, "java") for client_id in group.members} == {"cpp"}


@st.composite
def fleets(draw: st.DrawFn) -> list[Group]:
    return [draw(groups(f"g{index}")) for index in range(draw(st.integers(1, 5)))]


def expected(fleet: list[Group], strategy: str, with_: Settings) -> tuple[list[Any], list[Any]]:
    """What the engine says: rows of ASSIGNMENTS, and of REFUSALS, from the group's name on."""
    rows, refused = [], []
    name = full_name(strategy, with_)
    for group in fleet:
        for topic in group.topics:
            datas = tuple(QueueData(broker, number, number, 6) for broker, number in topic.brokers.items())
            subscribed: dict[str, frozenset[str]] = {client_id: frozenset() for client_id in topic.absent or ()}
            if cannot_run(group, strategy):
                text = "consumers of apache/rocketmq-client-cpp run AVG, no other strategy can be set"
                refused.append((group.group, topic.topic, name, f"{strategy}: {text}"))
                continue
            members = Members(tuple(group.members), strategy, with_, subscribed=subscribed, sdk_of=group.sdks)
            try:
                found = assign(TopicRouteData(topic.topic, datas, ()), members)
            except AllocationError as error:
                refused.append((group.group, topic.topic, name, error.problem))
                continue
            for place, queue in enumerate(found.queues):
                owners = found.owners[queue]
                seen = place < sum(topic.brokers.values()) and place in topic.owners
                drifts = set(topic.owners[place]) != set(owners) if seen else None
                lag = topic.lags.get(place) if place < sum(topic.brokers.values()) else None
                for owner in owners or (None,):
                    known = (owner, len(owners), lag, drifts)
                    rows.append((group.group, topic.topic, queue.broker_name, queue.queue_id, name, *known))
    return sorted(rows, key=repr), refused


def written(table: Table, fleet: list[Group], strategy: str, with_: Settings) -> list[Any]:
    """Rows of a table, from the group's name on."""
    batches: Iterator[Any] = allocated_batches((strategy,), with_, iter([fleet_rows(fleet)]))
    rows = [row for batch in batches for row in batch.to_pylist() if row[PART] == (table is REFUSALS)]
    if table is REFUSALS:
        rows = [{**row, "reason": row["owner"]} for row in rows]
    return [tuple(row[name] for name in table.columns)[3:] for row in rows]


@pytest.mark.parametrize("with_", SETTINGS, ids=("all", "pins", "none", "lists"))
@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=60)
@given(fleet=fleets())
def test_every_cell_is_the_engines(strategy: str, with_: Settings, fleet: list[Group]) -> None:
    rows, refused = expected(fleet, strategy, with_)
    assert sorted(written(ASSIGNMENTS, fleet, strategy, with_), key=repr) == rows
    assert written(REFUSALS, fleet, strategy, with_) == refused


def test_a_config_entry_without_a_topic_is_meant_for_each() -> None:
    fleet = [Group("g", ["x"], [Topic("T0", {"a": 1}), Topic("T1", {"a": 2})])]
    config = Settings(config={"x": [MessageQueue(EVERY_TOPIC, "a", 1)]})
    rows = [(row[1], row[3], row[5]) for row in written(ASSIGNMENTS, fleet, "CONFIG", config)]
    assert rows == [("T0", 0, None), ("T0", 1, "x"), ("T1", 0, None), ("T1", 1, "x")]


CIRCLE = """
def circle(group, client_id, queues, client_ids):
    assert group == "g0", group
    if not client_id or not queues:
        raise ValueError("nothing to share")
    return queues[client_ids.index(client_id) :: len(client_ids)]
"""


@settings(max_examples=60)
@given(fleet=fleets())
def test_a_strategy_that_a_user_wrote_goes_to_executors_as_its_text(fleet: list[Group]) -> None:
    name = "circle (rules.py)"
    fleet = [replace(fleet[0], sdks={})]
    own = pickle.loads(pickle.dumps(Settings(custom={name: FromFile(CIRCLE, "rules.py", "circle", STRATEGY)})))
    ours = written(ASSIGNMENTS, fleet, name, own)
    javas = written(ASSIGNMENTS, fleet, "AVG_BY_CIRCLE", Settings())
    assert [(*row[:4], *row[5:]) for row in ours] == [(*row[:4], *row[5:]) for row in javas]
    assert {row[4] for row in ours} <= {name}
    for row in written(REFUSALS, fleet, name, own):
        assert row[3] == "ValueError: nothing to share (rules.py:5)"


def members_of(number: int) -> list[str]:
    return [f"10.0.0.1@{client}" for client in range(number)]


def test_a_ring_of_a_fleet_has_a_million_entries_at_the_most() -> None:
    """The same bound and the same words as for one group; without CONSISTENT_HASH no ring is made."""
    fleet = [Group("g0", members_of(2), [Topic("T", {"a": 1})]), Group("g1", members_of(12), [Topic("T", {"a": 1})])]
    large = Settings(virtual_nodes=83_334)
    assert len(written(ASSIGNMENTS, fleet, "AVG", large)) == 2
    with pytest.raises(UsageError, match="12 consumers would have 1000008 entries on the ring") as raised:
        written(ASSIGNMENTS, fleet, "CONSISTENT_HASH", large)
    assert raised.value.code == "ring-too-large"
    assert raised.value.hint == "for so many consumers, at most --strategy-option virtual-nodes=83333"


def test_the_rings_of_a_batch_have_twenty_million_entries_at_the_most() -> None:
    fleet = [Group(f"g{number}", members_of(10), [Topic("T", {"a": 1})]) for number in range(21)]
    with pytest.raises(UsageError, match="210 consumers of a batch of groups would have 21000000 entries") as raised:
        written(ASSIGNMENTS, fleet, "CONSISTENT_HASH", Settings(virtual_nodes=100_000))
    assert raised.value.code == "ring-too-large"
    assert "arrow.maxRecordsPerBatch" in str(raised.value.hint)
