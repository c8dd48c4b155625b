"""The groups of FLEET that a sweep looks at, and the tasks that they are spread over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.pipeline.groups.assignment_rows import allocated, assignments_of
from rmqlb.pipeline.groups.fleet import QUEUES_A_TASK, Work, judged, spread_out, work_of
from rmqlb.pipeline.row_filter import RowFilter
from rmqlb.pipeline.schemas import FLEET

from .fleets import Group, Topic, fleet_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GROUPS = [
    Group("few", ["x", "y"], [Topic("pay", {"a": 4}), Topic("order", {"a": 3, "b": 2})]),
    Group("one", ["x"], [Topic("order", {"a": 3, "b": 2}, lags={4: 7}, owners={0: ["x"]})]),
    Group("retries", ["x"], []),
]


def frame(spark: SparkSession, groups: list[Group]) -> DataFrame:
    rows = fleet_rows(groups).to_pylist()
    for row in rows:
        row["retryTopics"] = [
            {"topic": f"%RETRY%{row['group']}", "subscribe": [{"brokerName": "a", "queues": 1}], "absent": []}
        ]
    columns = [tuple(row[name] for name in FLEET.columns) for row in rows]
    return spark.createDataFrame(columns, FLEET.ddl)


def topics(rows: DataFrame) -> dict[str, list[str]]:
    return {row["group"]: [topic["topic"] for topic in row["topics"]] for row in rows.collect()}


def test_retry_topics_are_looked_at_when_asked_for(spark: SparkSession) -> None:
    rows = frame(spark, GROUPS)
    assert topics(judged(rows)) == {"few": ["pay", "order"], "one": ["order"]}
    assert topics(judged(rows, include_retry=True)) == {
        "few": ["%RETRY%few", "pay", "order"],
        "one": ["%RETRY%one", "order"],
        "retries": ["%RETRY%retries"],
    }


def test_a_group_of_which_no_topic_is_looked_at_is_not_there(spark: SparkSession) -> None:
    only = RowFilter(topic=("p*", "none"))
    assert topics(judged(frame(spark, GROUPS), only=only)) == {"few": ["pay"]}


def test_small_groups_stay_as_they_are_stored(spark: SparkSession) -> None:
    rows = judged(frame(spark, GROUPS))
    work = work_of(rows)
    assert (work, work.tasks) == (Work(2, {"c": 14}, 9, 2), 0)
    assert spread_out(rows, work) is rows
    assert work_of(rows.limit(0)) == Work(0, {}, 0, 0)


def test_many_queues_are_spread_over_tasks(spark: SparkSession) -> None:
    rows = judged(frame(spark, GROUPS))
    spread = spread_out(rows, Work(2, {"c": 5 * QUEUES_A_TASK}, 9, 2))
    assert spread.rdd.getNumPartitions() == 10
    assert topics(spread) == topics(rows)


def test_a_group_too_large_for_a_task_is_allocated_by_topic_to_the_same_owners(spark: SparkSession) -> None:
    """What a topic's queues get depends on no other topic, strategies with absent members and hashes included."""
    ids = [f"10.0.0.{number}@1" for number in range(5)]
    of_many = [Topic(f"T{number}", {"a": 1500, "b": 700}, absent=ids[:1]) for number in range(150)]
    groups = [Group("giant", ids, of_many), *GROUPS]
    rows = judged(frame(spark, groups))
    work = work_of(rows)
    assert work.most > QUEUES_A_TASK
    assert work.tasks == 2
    spread = spread_out(rows, work)
    parts = [len(row["topics"]) for row in spread.where("group = 'giant'").collect()]
    assert len(parts) == 6
    assert sum(parts) == 150
    strategies = ("AVG", "CONSISTENT_HASH")
    whole, split = (assignments_of(allocated(some, strategies, Settings()).frame()) for some in (rows, spread))
    assert whole.count() == 2 * (150 * 2200 + 14)
    assert whole.exceptAll(split).isEmpty()
    assert split.exceptAll(whole).isEmpty()
