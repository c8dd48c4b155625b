"""What Spark did in a block, by its own account: no clock.

Rules of this file: jobs by the status tracker, the rest by the status store that Spark keeps with or without its pages.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GROUPS = count(1)


@dataclass
class Costs:
    """Jobs, their tasks, bytes read from files, and rows written to them."""

    jobs: int = 0
    tasks: int = 0
    bytes_read: int = 0
    rows_written: int = 0


@contextmanager
def costs(spark: SparkSession) -> Iterator[Costs]:
    """Filled in when the block ends."""
    context: Any = spark.sparkContext
    group = f"costs-{next(_GROUPS)}"
    found = Costs()
    context.setJobGroup(group, group)
    try:
        yield found
    finally:
        context.setJobGroup("", "")
        tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
        while tracker.getActiveJobsIds():  # Spark hears of a job's end a little after whoever waited for it
            time.sleep(0.05)
        time.sleep(0.2)
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        found.jobs = len(jobs)
        for stage in {stage for job in jobs if job is not None for stage in job.stageIds}:
            done = store.lastStageAttempt(stage)
            found.tasks += done.numCompleteTasks()
            found.bytes_read += done.inputBytes()
            found.rows_written += done.outputRecords()
