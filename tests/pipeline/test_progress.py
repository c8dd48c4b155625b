"""What is told of a stage's files, groups and tables while they are worked on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.model.progress import Done
from rmqlb.pipeline.groups.assignment_rows import allocated
from rmqlb.pipeline.groups.fleet import judged, spread_out, work_of
from rmqlb.pipeline.pipeline_plan import PipelinePlan
from rmqlb.pipeline.schemas import FLEET
from rmqlb.pipeline.spark.in_workers import in_workers
from rmqlb.pipeline.spark.progress import StageProgress, told
from rmqlb.pipeline.stages import STAGES, StageRun
from rmqlb.pipeline.synthetic.generate import generate
from rmqlb.pipeline.synthetic.shape import FleetShape
from rmqlb.pipeline.warehouse import Warehouse
from tests.pipeline.fleets import Group, Topic, fleet_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]


def slowly(seconds: float) -> Callable[[Iterator[object]], Iterator[object]]:
    """What waits so long for each batch."""

    def slow(batches: Iterator[object]) -> Iterator[object]:
        for batch in batches:
            time.sleep(seconds)
            yield batch

    return slow


def test_rows_that_workers_are_done_with_are_told_until_all_are(spark: SparkSession, tmp_path: Path) -> None:
    heard: list[Done] = []
    progress = StageProgress()
    with told(progress, heard.append, seconds=0.05):
        count = progress.count(spark, "groups", 60)
        rows = in_workers(spark.range(60, numPartitions=6), slowly(0.3), "id long", count)
        rows.write.parquet(str(tmp_path / "table"))
    assert {done.unit for done in heard} == {"groups"}
    assert {done.of for done in heard} == {60}
    numbers = [done.done or 0 for done in heard]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 60
    assert any(0 < number < 60 and number % 10 == 0 for number in numbers)


def test_more_than_all_is_never_told(spark: SparkSession) -> None:
    progress = StageProgress()
    count = progress.count(spark, "files", 5)
    rows = in_workers(spark.range(5), slowly(0), "id long", count)
    assert (rows.count(), rows.count()) == (5, 5)  # as tasks that are run again
    assert progress.done() == Done("files", 5, 5)


def test_things_are_told_one_by_one() -> None:
    progress = StageProgress()
    assert progress.done() is None
    seen = [(table, progress.done()) for table in progress.each("tables", ("moves", "churn"))]
    assert seen == [("moves", Done("tables", 0, 2)), ("churn", Done("tables", 1, 2))]
    assert progress.done() == Done("tables", 2, 2)


def test_nothing_is_told_of_nothing_and_errors_are_not_held_back() -> None:
    heard: list[Done] = []
    with pytest.raises(ValueError, match="odd"), told(StageProgress(), heard.append, seconds=0.01):
        raise ValueError("odd")
    assert heard == []


def test_parts_of_a_group_that_is_split_are_as_many_as_are_counted(spark: SparkSession) -> None:
    ids = [f"10.0.0.{number}@1" for number in range(5)]
    giant = Group("giant", ids, [Topic(f"T{number}", {"a": 1500, "b": 700}) for number in range(150)])
    groups = fleet_rows([giant, Group("few", ids, [Topic("T0", {"a": 8})])]).to_pylist()
    rows = judged(spark.createDataFrame([tuple(row.values()) for row in groups], FLEET.ddl))
    work, progress = work_of(rows), StageProgress()
    spread = spread_out(rows, work)
    assert (work.groups, work.parts, spread.count()) == (2, 7, 7)
    count = progress.count(spark, "parts of groups", work.parts)
    allocated(spread, ("AVG",), Settings(), count).frame().count()
    assert progress.done() == Done("parts of groups", 7, 7)


@pytest.mark.slow
def test_each_stage_ends_with_all_that_it_said_to_have(spark: SparkSession, tmp_path: Path) -> None:
    generate(FleetShape(clusters=2, groups=12, days=1), str(tmp_path / "dumps"))
    plan = PipelinePlan(inputs=(str(tmp_path / "dumps"),), consumers=1)
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    ends: dict[str, Done | None] = {}
    for name in ("ingest", "allocate", "score", "what-if", "size", "sweep", "producers", "history"):
        run = StageRun(spark, warehouse, plan)
        STAGES[name](run)
        ends[name] = run.progress.done()
    assert ends.pop("score") is None
    units = {"ingest": "tables", "producers": "simulations", "history": "tables"}
    for name, end in ends.items():
        assert end is not None
        assert end.unit == units.get(name, "groups")
        assert end.done == end.of > 0
