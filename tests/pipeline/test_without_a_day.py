"""A snapshot that says no time, in no folder that says a date: all stages but the history take it like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rmqlb.pipeline import schemas
from rmqlb.pipeline.pipeline_plan import PipelinePlan
from rmqlb.pipeline.report.contents import figures
from rmqlb.pipeline.report.frames import Tables
from rmqlb.pipeline.stages import STAGES, StageRun
from rmqlb.pipeline.warehouse import Warehouse
from tests.pipeline.documents import route, snapshot, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GROUP = {
    "clientIds": ["x", "y"],
    "topics": ["T"],
    "queues": [{"topic": "T", "brokerName": "a", "queueId": 0, "owners": []}],
}
STRATEGIES = 3


@pytest.fixture(scope="module")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> StageRun:
    root = tmp_path_factory.mktemp("undated")
    dumps = write(root / "dumps", {"hand.json": snapshot(None, {"T": route(a=3, b=1)}, group=GROUP)})
    run = StageRun(spark, Warehouse(str(root / "warehouse")), PipelinePlan(inputs=(dumps,), consumers=1))
    for name in ("ingest", "allocate", "score", "what-if"):
        STAGES[name](run)
    return run


def test_no_row_is_lost(run: StageRun) -> None:
    rows = run.warehouse.rows(*schemas.ALL, schemas.FLEET)
    assert (rows["fleet"], rows["assignments"], rows["loads"], rows["scores"]) == (1, 4 * STRATEGIES, 6, STRATEGIES)
    of_a_strategy = 2 + 2 + (STRATEGIES - 1)  # consumers, brokers, strategies
    assert (rows["what_if"], rows["broker_losses"]) == (STRATEGIES * of_a_strategy, 2)
    undated = {name: run.warehouse.read(run.spark, table).where("date is null").count() for name, table in TABLES}
    assert undated == {name: rows[name] for name, _ in TABLES}


def test_the_page_tells_of_it(run: StageRun) -> None:
    shown = figures(Tables(run.spark, run.warehouse), 20, ())
    assert shown.worst is not None
    assert (shown.worst.totals.groups, shown.worst.totals.observed_unassigned) == (1, 1)
    assert shown.strategy_changes is not None
    assert [one.groups for one in shown.strategy_changes] == [1] * (STRATEGIES - 1)
    assert [(one.cluster, one.groups, one.first_date) for one in shown.clusters] == [("c1", 1, None)]


TABLES = [
    (table.name, table)
    for table in (schemas.ASSIGNMENTS, schemas.LOADS, schemas.SCORES, schemas.WHAT_IF, schemas.BROKER_LOSSES)
]
