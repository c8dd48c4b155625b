"""What is told of the tasks of jobs that run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqlb.pipeline.spark.progress import stage_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def slowly(seconds: float) -> Callable[[Iterator[object]], Iterator[object]]:
    """What waits so long for each batch."""

    def slow(batches: Iterator[object]) -> Iterator[object]:
        for batch in batches:
            time.sleep(seconds)
            yield batch

    return slow


def test_tasks_are_told_until_all_are_done(spark: SparkSession, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    with stage_progress(spark, lambda done, total: told.append((done, total)), seconds=0.05):
        spark.range(6, numPartitions=6).mapInArrow(slowly(0.3), "id long").write.parquet(str(tmp_path / "table"))
    assert told[-1] == (6, 6)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert any(0 < done < total for done, total in told)


def test_without_a_job_nothing_is_told(spark: SparkSession) -> None:
    told: list[tuple[int, int]] = []
    with stage_progress(spark, lambda done, total: told.append((done, total)), seconds=0.01):
        pass
    assert told == []


def test_an_error_in_the_block_is_not_held_back(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="odd"), stage_progress(spark, lambda *_: None):
        raise ValueError("odd")


def test_a_job_that_began_before_is_not_told(spark: SparkSession, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    earlier = threading.Thread(
        target=lambda: spark.range(2, numPartitions=2).mapInArrow(slowly(2), "id long").collect()
    )
    earlier.start()
    tracker = spark.sparkContext.statusTracker()
    while not tracker.getActiveJobsIds():
        time.sleep(0.01)
    with stage_progress(spark, lambda done, total: told.append((done, total)), seconds=0.05):
        earlier.join()
        spark.range(3, numPartitions=3).write.parquet(str(tmp_path / "table"))
    assert {total for _, total in told} == {3}
