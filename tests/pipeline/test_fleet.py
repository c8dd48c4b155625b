"""The tables of ingest come together as one row a group."""

from __future__ import annotations

from datetime import date
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from rmqlb.engine.allocate.sdks import sdk_of_connection
from rmqlb.pipeline.groups.fleet import fleet, sdk_of_process
from rmqlb.pipeline.schemas import FLEET, GROUPS, OFFSETS, OWNERS, PROCESSES, SUBSCRIPTIONS, TOPICS, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEY = {"cluster": "c", "date": date(2026, 11, 1), "snapshot": "s"}


def frame(spark: SparkSession, table: Table, *rows: dict[str, Any]) -> DataFrame:
    """Rows of a table; what is not said is null."""
    whole = [tuple({**KEY, **row}.get(column) for column in table.columns) for row in rows]
    return spark.createDataFrame(whole, table.ddl)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, DataFrame]:
    def run(broker: str, queues: int) -> dict[str, Any]:
        return {"brokerName": broker, "queues": queues}

    at = {"group": "g", "topic": "T2", "brokerName": "a"}
    return {
        "topics": frame(
            spark,
            TOPICS,
            {"topic": "T1", "subscribe": [run("a", 2), run("b", 1)]},
            {"topic": "T2", "subscribe": [run("a", 4)]},
            {"topic": "%RETRY%g", "subscribe": [run("a", 1)]},
            {"topic": "unread", "subscribe": [run("a", 1)]},
        ),
        "groups": frame(
            spark,
            GROUPS,
            {"group": "g", "strategy": "AVG"},
            {"group": "nobody", "processes": 0},
            {"group": "told", "problem": "group told is BROADCASTING"},
        ),
        "processes": frame(
            spark,
            PROCESSES,
            {"group": "g", "place": 2, "clientId": "10.0.0.9@1", "language": "GO", "version": "V4_5_2"},
            {"group": "g", "place": 0, "clientId": "10.0.0.10@1"},
            {"group": "g", "place": 1, "clientId": "10.0.0.10@1"},
        ),
        "subscriptions": frame(
            spark,
            SUBSCRIPTIONS,
            {"group": "g", "topic": "T2", "hasRoute": True, "absent": ["10.0.0.9@1"]},
            {"group": "g", "topic": "T1", "hasRoute": True},
            {"group": "g", "topic": "gone", "hasRoute": False},
            {"group": "g", "topic": "%RETRY%g", "hasRoute": True},
            {"group": "nobody", "topic": "T1", "hasRoute": True},
            {"group": "told", "topic": "T1", "hasRoute": True},
        ),
        "owners": frame(
            spark,
            OWNERS,
            {**at, "queueId": 0, "place": 0, "ownersObserved": ["10.0.0.9@1"]},
            {**at, "queueId": 9, "place": None, "ownersObserved": ["10.0.0.9@1"]},
        ),
        "offsets": frame(
            spark,
            OFFSETS,
            {**at, "queueId": 3, "place": 3, "lag": 7},
            {**at, "queueId": 1, "place": 1, "lag": None},
        ),
    }


def read(rows: DataFrame) -> dict[str, dict[str, Any]]:
    return {row["group"]: row.asDict(recursive=True) for row in rows.collect()}


def test_a_group_is_one_row_with_its_client_ids_in_order_and_its_topics(tables: dict[str, DataFrame]) -> None:
    rows = fleet(tables)
    assert rows.columns == list(FLEET.columns)
    found = read(rows)
    assert set(found) == {"g", "nobody"}
    group = found["g"]
    assert group["clientIds"] == ["10.0.0.10@1", "10.0.0.10@1", "10.0.0.9@1"]
    assert group["strategy"] == "AVG"
    assert group["sdks"] == [{"name": "java", "assumed": True}] * 2 + [{"name": "go", "assumed": False}]
    first, second = group["topics"]
    assert (first["topic"], first["absent"], first["lags"], first["owners"]) == ("T1", None, None, None)
    assert [(run["brokerName"], run["queues"]) for run in first["subscribe"]] == [("a", 2), ("b", 1)]
    assert (second["topic"], second["absent"]) == ("T2", ["10.0.0.9@1"])
    assert second["lags"] == [{"place": 3, "lag": 7}]
    assert second["owners"] == [{"place": 0, "owners": ["10.0.0.9@1"]}]


def test_a_process_has_the_library_of_its_connection(spark: SparkSession) -> None:
    languages = (None, "", "JAVA", "GO", "CPP", "PYTHON", "NODE_JS", "RUST", "go")
    versions = (None, "", "V4_5_2", "V3_1_8", "V4_6_0", "V5_5_0")
    pairs = list(product(languages, versions))
    rows = spark.createDataFrame(pairs, "language string, version string")
    found = rows.select("language", "version", sdk_of_process().alias("sdk")).collect()
    guesses = {pair: sdk_of_connection(*pair) for pair in pairs}
    assert {(row[0], row[1]): tuple(row[2]) for row in found} == {
        pair: (guess.sdk.name, guess.assumed) for pair, guess in guesses.items()
    }


def test_a_group_whose_consumers_are_all_known_to_be_javas_says_nothing_of_it(spark: SparkSession) -> None:
    tables = {
        "topics": frame(spark, TOPICS, {"topic": "T", "subscribe": [{"brokerName": "a", "queues": 1}]}),
        "groups": frame(spark, GROUPS, {"group": "g"}),
        "processes": frame(spark, PROCESSES, {"group": "g", "place": 0, "clientId": "x", "language": "JAVA"}),
        "subscriptions": frame(spark, SUBSCRIPTIONS, {"group": "g", "topic": "T", "hasRoute": True}),
        "owners": frame(spark, OWNERS),
        "offsets": frame(spark, OFFSETS),
    }
    assert read(fleet(tables))["g"]["sdks"] is None


def test_a_group_without_consumers_stays_and_owns_nothing(tables: dict[str, DataFrame]) -> None:
    assert read(fleet(tables))["nobody"]["clientIds"] == []


def test_retry_topics_are_taken_when_asked_for(tables: dict[str, DataFrame]) -> None:
    topics = [topic["topic"] for topic in read(fleet(tables, include_retry=True))["g"]["topics"]]
    assert topics == ["%RETRY%g", "T1", "T2"]
