"""Night 365 costs what night 2 costs: jobs, bytes read and rows written, by Spark's own account.

A fleet of one size, night after night. The nights before the one that is looked at come in one run, which costs less
than as many runs; what a later night reads of them is the same, but for the number of files.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rmqlb.pipeline import schemas
from rmqlb.pipeline.pipeline_plan import PipelinePlan
from rmqlb.pipeline.producers.send_rows import SendSchedule
from rmqlb.pipeline.stages import STAGES, StageRun
from rmqlb.pipeline.synthetic.generate import generate
from rmqlb.pipeline.synthetic.shape import FleetShape
from rmqlb.pipeline.warehouse import Warehouse
from tests.pipeline.spark_costs import Costs, costs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FLEET = FleetShape(clusters=1, brokers=3, topics=8, groups=12, days=365, faults=0, odd_names=0, other_clients=0)
MOST = 1.2
NAMES = ("ingest", "allocate", "score", "what-if", "size", "sweep", "producers", "history")


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nights") / "dumps"
    generate(FLEET, str(folder))
    return folder


def plan(folder: Path) -> PipelinePlan:
    return PipelinePlan(inputs=(str(folder),), strategies=("AVG", "AVG_BY_CIRCLE"), schedule=SendSchedule(trials=2))


def link(dumps: Path, folder: Path, nights: range) -> None:
    """These nights' files, from 1, in a folder."""
    for number in nights:
        source = sorted(dumps.glob("cluster=*/date=*"))[number - 1]
        target = folder / source.relative_to(dumps)
        target.mkdir(parents=True)
        for file in source.iterdir():
            os.link(file, target / file.name)


def of_night(spark: SparkSession, dumps: Path, root: Path, number: int) -> dict[str, Costs]:
    """Stage → what the so many-th night costs it."""
    folder, warehouse = root / f"dumps-{number}", Warehouse(str(root / f"warehouse-{number}"))
    run = StageRun(spark, warehouse, plan(folder))
    link(dumps, folder, range(1, number))
    for name in NAMES:
        STAGES[name](run)
    link(dumps, folder, range(number, number + 1))
    found = {}
    for name in NAMES:
        with costs(spark) as found[name]:
            assert STAGES[name](run).state == "written"
    return found


def test_a_later_night_costs_what_the_second_costs(spark: SparkSession, dumps: Path, tmp_path: Path) -> None:
    second, last = (of_night(spark, dumps, tmp_path, number) for number in (2, FLEET.days))
    for name in NAMES:
        assert last[name].jobs <= MOST * second[name].jobs, name
    for what in ("bytes_read", "rows_written", "tasks"):
        before, after = (sum(getattr(its, what) for its in found.values()) for found in (second, last))
        assert after <= MOST * before, (what, second, last)


def rows(run: StageRun) -> dict[str, list[Any]]:
    return {
        table.name: sorted(map(repr, run.warehouse.read(run.spark, table).collect()))
        for table in (*schemas.ALL, *schemas.SO_FAR)
        if table is not schemas.CLUSTERS
    }


def test_nights_one_by_one_come_to_what_all_at_once_come_to(spark: SparkSession, dumps: Path, tmp_path: Path) -> None:
    """Also when one of them is late; and only the history of its cluster is computed anew for it, which is said."""
    folder = tmp_path / "dumps"
    run = StageRun(spark, Warehouse(str(tmp_path / "one-by-one")), plan(folder))
    for number in (1, 2, 4, 3):
        link(dumps, folder, range(number, number + 1))
        found = {name: STAGES[name](run) for name in NAMES}
    assert [finding.code for finding in found["history"].findings] == ["late-snapshots"]
    assert {name: its.state for name, its in found.items() if its.state == "unchanged"} == dict.fromkeys(
        NAMES[1:-1], "unchanged"
    )
    once = StageRun(spark, Warehouse(str(tmp_path / "at-once")), plan(folder))
    for name in NAMES:
        STAGES[name](once)
    assert rows(run) == rows(once)
