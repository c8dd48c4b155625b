"""Loads and scores say what the engine's judge says, group by group."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from rmqlb.engine.allocate import full_name
from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.engine.assignment.balance import counts, spread
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.route import QueueData, TopicRouteData
from rmqlb.pipeline.groups.assignment_rows import allocated, assignments_of, refusals_of
from rmqlb.pipeline.groups.score_rows import loads, scores
from rmqlb.pipeline.schemas import FLEET

from .fleets import Group, Topic, fleet_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CONFIG = {"10.0.0.1@1": [MessageQueue("T0", "a", 0)], "10.0.0.2@1": [MessageQueue("T0", "a", 0)]}
SETTINGS = Settings(config=CONFIG)
STRATEGIES = (*WITHOUT_SETTINGS, "CONFIG", "MACHINE_ROOM")


def frame(spark: SparkSession, groups: list[Group]) -> DataFrame:
    rows = [tuple(row.values()) for row in fleet_rows(groups).to_pylist()]
    return spark.createDataFrame(rows, FLEET.ddl)


def random_group(name: str, dice: random.Random) -> Group:
    ids = sort_client_ids(f"10.0.0.{dice.randrange(1, 12)}@1" for _ in range(dice.randrange(0, 9)))
    topics = []
    libraries = dice.choice((("java",), ("java",), ("go",), ("cpp",), ("java", "go"), ("cpp", "go", "java")))
    sdks = {client_id: dice.choice(libraries) for client_id in dict.fromkeys(ids)}
    for index in range(dice.randrange(1, 4)):
        brokers = {broker: dice.randrange(1, 7) for broker in ("a", "b", "r@c")[: dice.randrange(1, 4)]}
        number = sum(brokers.values())
        lags = {place: dice.randrange(100) for place in range(number) if dice.random() < 0.95}
        owners = {place: [dice.choice(ids or ["x"])] for place in range(number) if dice.random() < 0.5}
        topics.append(Topic(f"T{index}", brokers, lags=lags, owners=owners))
    return Group(name, ids, topics, sdks={} if libraries == ("java",) else sdks)


@pytest.fixture(scope="module")
def groups() -> list[Group]:
    dice = random.Random(7)
    return [random_group(f"g{index:02d}", dice) for index in range(60)]


@pytest.fixture(scope="module")
def rows(spark: SparkSession, groups: list[Group]) -> DataFrame:
    return frame(spark, groups)


def under(group: Group, strategy: str) -> dict[MessageQueue, tuple[str, ...]]:
    members = Members(tuple(group.members), strategy, SETTINGS, sdk_of=group.sdks)
    found: dict[MessageQueue, tuple[str, ...]] = {}
    for topic in group.topics:
        datas = tuple(QueueData(broker, number, number, 6) for broker, number in topic.brokers.items())
        found.update(assign(TopicRouteData(topic.topic, datas, ()), members).owners)
    return found


def lag_of(group: Group) -> dict[MessageQueue, int]:
    known = {}
    for topic in group.topics:
        queues = [
            MessageQueue(topic.topic, broker, i) for broker, number in topic.brokers.items() for i in range(number)
        ]
        known.update({queues[place]: lag for place, lag in topic.lags.items()})
    return known


def expected_loads(group: Group, strategy: str) -> list[Any]:
    owners, lags = under(group, strategy), lag_of(group)
    numbers = counts(owners, dict.fromkeys(group.members))
    found = []
    for client_id, queues in numbers.items():
        mine = [lags.get(queue) for queue, ids in owners.items() if client_id in ids]
        lag = None if None in mine else sum(lag or 0 for lag in mine)
        mean = sum(numbers.values()) / len(numbers)
        place, processes = group.members.index(client_id), group.members.count(client_id)
        sdk = group.sdks.get(client_id, "java"), False
        found.append((group.group, strategy, client_id, place, processes, *sdk, queues, lag, round(queues - mean, 9)))
    return found


def refused(group: Group, strategy: str) -> bool:
    """MACHINE_ROOM without rooms throws in Java where a broker is in one; C++ has AVG only."""
    libraries = {group.sdks.get(client_id, "java") for client_id in group.members}
    if libraries == {"cpp"}:
        return strategy != "AVG"
    has_room = strategy == "MACHINE_ROOM" and any("r@c" in t.brokers for t in group.topics)
    return has_room and libraries == {"java"}


def test_every_load_is_the_judges(rows: DataFrame, groups: list[Group]) -> None:
    found = loads(assignments_of(allocated(rows, STRATEGIES, SETTINGS).frame()), rows)
    got = [(*row[3:12], round(row[12], 9)) for row in found.collect()]
    wanted = [row for g in groups for s in STRATEGIES if not refused(g, s) for row in expected_loads(g, full_name(s))]
    partly = {g.group for g in groups if refused(g, "MACHINE_ROOM")}
    got = [row for row in got if not (row[1] == "MACHINE_ROOM" and row[0] in partly)]
    assert sorted(got, key=str) == sorted(wanted, key=str)


def test_every_score_is_the_judges(rows: DataFrame, groups: list[Group]) -> None:
    dealt = assignments_of(allocated(rows, STRATEGIES, SETTINGS).frame())
    found = {(row["group"], row["strategy"]): row for row in scores(dealt, loads(dealt, rows), rows).collect()}
    compared = 0
    for group in groups:
        for strategy in STRATEGIES:
            if refused(group, strategy):
                continue
            row, owners = found[group.group, strategy], under(group, strategy)
            judged = spread(owners, group.members)
            lags = [lag_of(group).get(queue) for queue in owners]
            assert (row["consumers"], row["queues"], row["idle"]) == (judged.consumers, judged.queues, judged.idle)
            assert (row["unassigned"], row["duplicateOwners"]) == (judged.unassigned, judged.duplicate_owners)
            assert (row["queuesOfDuplicateClientIds"], row["minQueuesPerConsumer"], row["maxQueuesPerConsumer"]) == (
                judged.queues_of_duplicate_client_ids,
                judged.fewest,
                judged.most,
            )
            assert row["meanQueuesPerConsumer"] == pytest.approx(judged.mean)
            assert row["imbalance"] == pytest.approx(judged.imbalance)
            assert row["lag"] == (None if None in lags else sum(lag or 0 for lag in lags))
            seen = {
                MessageQueue(t.topic, broker, i): set(t.owners[place])
                for t in group.topics
                for place, (broker, i) in enumerate((b, i) for b, n in t.brokers.items() for i in range(n))
                if place in t.owners
            }
            libraries = Counter(group.sdks.get(client_id, "java") for client_id in set(group.members))
            most = max(("java", "go", "cpp"), key=libraries.__getitem__) if libraries else None
            assert (row["sdk"], row["mixedSdks"], row["assumedSdks"]) == (most, len(libraries) > 1, 0)
            assert row["observed"] == len(seen)
            assert row["mismatches"] == sum(set(owners[queue]) != ids for queue, ids in seen.items())
            compared += 1
    assert compared > 200


def test_refusals_carry_the_clients_own_words(rows: DataFrame, groups: list[Group]) -> None:
    found = refusals_of(allocated(rows, STRATEGIES, SETTINGS).frame()).collect()
    java = [g for g in groups if not g.sdks]
    pairs = [(g.group, t.topic) for g in java for t in g.topics if g.members and "r@c" in t.brokers]
    theirs = [row for row in found if row["group"] in {g.group for g in java}]
    assert sorted((row["group"], row["topic"]) for row in theirs) == sorted(pairs)
    assert {(row["strategy"], row["reason"]) for row in theirs} == {("MACHINE_ROOM", "consumeridcs is null")}
    cpp = [g for g in groups if set(g.sdks.values()) == {"cpp"}]
    refused_by_cpp = Counter((row["group"], row["strategy"]) for row in found if row["group"] in {g.group for g in cpp})
    assert refused_by_cpp == {(g.group, name): len(g.topics) for g in cpp for name in STRATEGIES if name != "AVG"}


def owned(name: str, *ids: str, strategy: str | None = None, members: tuple[str, ...] = ("x", "y")) -> Group:
    """Four queues, held by these."""
    return Group(name, members, [Topic("T", {"a": 4}, owners={i: [who] for i, who in enumerate(ids)})], strategy)


def test_what_a_group_runs_is_reported_or_shown_or_assumed(spark: SparkSession) -> None:
    groups = [
        owned("reports", "x", "x", "x", "x", strategy="AVG_BY_CIRCLE"),
        owned("shows", "x", "y", "x", "y"),
        owned("default", "x", "x", "y", "y"),
        owned("neither", "y", "y", "x", "x"),
        owned("unseen"),
        owned("own", strategy="TheirOwnStrategy"),
    ]
    rows = frame(spark, groups)
    dealt = assignments_of(allocated(rows, WITHOUT_SETTINGS, Settings()).frame())
    found = scores(dealt, loads(dealt, rows), rows).where("runs").collect()
    assert {(row["group"], row["strategy"], row["origin"]) for row in found} == {
        ("reports", "AVG_BY_CIRCLE", "reported"),
        ("shows", "AVG_BY_CIRCLE", "observed"),
        ("default", "AVG", "observed"),
        ("neither", "AVG", "assumed"),
        ("unseen", "AVG", "assumed"),
    }


def test_the_first_ids_bias_adds_up_over_topics(spark: SparkSession) -> None:
    many = Group("g", ("x", "y"), [Topic(f"T{index}", {"a": 1}) for index in range(10)])
    rows = frame(spark, [many])
    dealt = assignments_of(allocated(rows, ("AVG",), Settings()).frame())
    [row] = scores(dealt, loads(dealt, rows), rows).collect()
    assert (row["firstIdBias"], row["imbalance"], row["idle"], row["topics"]) == (5.0, 2.0, 1, 10)
