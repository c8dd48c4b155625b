"""FLEET as a sweep looks at it: the groups that are judged, with the topics that are, and in how many parts."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.row_filter import RowFilter

QUEUES_A_TASK = 1 << 18
"""What one task allocates: some seconds' work, so that none is long in the end, and a cluster's cores get some each."""
_QUEUES_A_PART = 1 << 16
"""Of a group that is too large for one task, where its topics are of one size."""


@dataclass(frozen=True)
class Work:
    """How many groups there are, how many queues they have, and how many the largest of them has."""

    groups: int
    queues: int
    most: int

    @property
    def tasks(self) -> int:
        """Into how many the groups are to be spread; 0 to leave them as they are stored."""
        is_small = self.queues <= 4 * QUEUES_A_TASK and self.most <= QUEUES_A_TASK
        return 0 if is_small else -(-self.queues // QUEUES_A_TASK)


def judged(fleet: DataFrame, *, include_retry: bool = False, only: RowFilter | None = None) -> DataFrame:
    """Rows of FLEET with the topics that are looked at, without the groups that have none of them."""
    if include_retry:
        fleet = fleet.withColumn("topics", fn.concat("retryTopics", "topics"))
    if only is not None and only.topic:
        fits = fn.filter("topics", lambda topic: only.matches("topic", topic["topic"]))
        fleet = fleet.withColumn("topics", fits)
    return fleet.where(fn.size("topics") > 0).drop("retryTopics")


def work_of(fleet: DataFrame) -> Work:
    """What there is to do; no more than a number of each group is read."""
    row = fleet.agg(fn.count("*"), fn.coalesce(fn.sum("queues"), fn.lit(0)), fn.coalesce(fn.max("queues"), fn.lit(0)))
    return Work(*row.collect()[0])


def spread_out(fleet: DataFrame, work: Work) -> DataFrame:
    """The same groups in as many tasks as their work asks for, those too large for one task split by topic.

    Who owns the queues of a topic depends on no other topic, so parts of a group are allocated like the whole. What is
    counted over a group's topics together (`score`, `what-if`) is not the sum of its parts.
    """
    if not work.tasks:
        return fleet
    if work.most > QUEUES_A_TASK:
        length = fn.size("topics")
        size = fn.greatest(fn.lit(1), length * _QUEUES_A_PART / fn.col("queues")).cast("int")
        at = fn.sequence(fn.lit(0), ((length - 1) / size).cast("int"))
        parts = fn.transform(at, lambda part: fn.slice("topics", part * size + 1, size))
        whole = fn.array("topics")
        part = fn.explode(fn.when(fn.col("queues") > QUEUES_A_TASK, parts).otherwise(whole)).alias("topics")
        fleet = fleet.select(*(name for name in fleet.columns if name != "topics"), part)
    return fleet.repartition(work.tasks)
