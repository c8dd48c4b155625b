"""How many jobs Spark runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def jobs_of(spark: SparkSession) -> Iterator[list[int]]:
    """The numbers of the jobs that begin in the block, known when it ends."""
    tracker = spark.sparkContext.statusTracker()
    before = {*tracker.getJobIdsForGroup(None)}
    found: list[int] = []
    yield found
    found += sorted({*tracker.getJobIdsForGroup(None)} - before)
