"""FLEET as a sweep looks at it: the groups that are judged, with the topics that are, and in how many parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.row_filter import RowFilter

QUEUES_A_TASK = 1 << 18
"""What one task allocates: some seconds' work, so that none is long in the end, and a cluster's cores get some each."""
_QUEUES_A_PART = 1 << 16
"""Of a group that is too large for one task, where its topics are of one size."""


@dataclass(frozen=True)
class Work:
    """What there is to allocate: cluster → its queues, and how many the largest group has.

    `parts`: of all groups, where those too large for one task are split by topic.
    """

    groups: int
    clusters: Mapping[str, int]
    most: int
    parts: int

    @property
    def large(self) -> dict[str, int]:
        """The clusters that are too large for a task → into how many each is to be spread."""
        parts = {cluster: -(-queues // QUEUES_A_TASK) for cluster, queues in self.clusters.items()}
        return {cluster: number for cluster, number in parts.items() if number > 1}

    @property
    def tasks(self) -> int:
        """Into how many the groups are to be spread; 0 to leave them as they are stored."""
        is_even = max(self.clusters.values(), default=0) <= 4 * QUEUES_A_TASK and self.most <= QUEUES_A_TASK
        return 0 if is_even else -(-sum(self.clusters.values()) // QUEUES_A_TASK)


def judged(fleet: DataFrame, *, include_retry: bool = False, only: RowFilter | None = None) -> DataFrame:
    """Rows of FLEET with the topics that are looked at, without the groups that have none of them."""
    if include_retry:
        fleet = fleet.withColumn("topics", fn.concat("retryTopics", "topics"))
    if only is not None and only.topic:
        fits = fn.filter("topics", lambda topic: only.matches("topic", topic["topic"]))
        fleet = fleet.withColumn("topics", fits)
    return fleet.where(fn.size("topics") > 0).drop("retryTopics")


def work_of(fleet: DataFrame) -> Work:
    """What there is to do; a row comes back for each cluster, and of each group no more than a number is read."""
    of_cluster = fleet.groupBy("cluster").agg(fn.count("*"), fn.sum("queues"), fn.max("queues"), fn.sum(_parts()))
    rows = of_cluster.collect()
    clusters = {row[0]: row[2] for row in rows}
    most = max((row[3] for row in rows), default=0)
    return Work(sum(row[1] for row in rows), clusters, most, sum(row[4] for row in rows))


def spread_out(fleet: DataFrame, work: Work, *, by_topic: bool = True) -> DataFrame:
    """The same groups in as many tasks as their work asks for, those too large for one task split by topic if asked.

    Who owns the queues of a topic depends on no other topic, so parts of a group are allocated like the whole. What is
    counted over a group's topics together (`score`, `what-if`) is not the sum of its parts. A small cluster stays in
    one task, as each task writes a file for each of its clusters.
    """
    if not work.tasks:
        return fleet
    if by_topic and work.most > QUEUES_A_TASK:
        fleet = _by_topic(fleet)
    part = fn.pmod(fn.xxhash64("group", fn.get("topics", fn.lit(0))["topic"]), _parts_of_cluster(work.large))
    # Parts go to tasks by their hash: with as many tasks as parts a third of the tasks would have nothing to do.
    return fleet.repartition(2 * work.tasks, "cluster", part)


def _by_topic(fleet: DataFrame) -> DataFrame:
    """Large groups in a row for some of their topics."""
    at = fn.sequence(fn.lit(0), _parts() - 1)
    parts = fn.transform(at, lambda part: fn.slice("topics", part * _topics_a_part() + 1, _topics_a_part()))
    each = fn.when(fn.col("queues") > QUEUES_A_TASK, parts).otherwise(fn.array("topics"))
    return fleet.select(*(name for name in fleet.columns if name != "topics"), fn.explode(each).alias("topics"))


def _parts() -> Column:
    """In how many rows a group is, if it is split where it is too large."""
    number = ((fn.size("topics") - 1) / _topics_a_part()).cast("int") + 1
    return fn.when(fn.col("queues") > QUEUES_A_TASK, number).otherwise(1)


def _topics_a_part() -> Column:
    return fn.greatest(fn.lit(1), fn.size("topics") * _QUEUES_A_PART / fn.col("queues")).cast("int")


def _parts_of_cluster(large: Mapping[str, int]) -> Column:
    if not large:
        return fn.lit(1)
    literals = [fn.lit(value) for pair in large.items() for value in pair]
    return fn.coalesce(fn.create_map(*literals)[fn.col("cluster")], fn.lit(1))
