"""A fleet with all oddities through the stages, held against DuckDB's SQL over the raw documents, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from rmqlb.pipeline import schemas
from rmqlb.pipeline.pipeline_plan import PipelinePlan
from rmqlb.pipeline.schemas import Table
from rmqlb.pipeline.stages import STAGES, StageRun
from rmqlb.pipeline.synthetic.generate import generate
from rmqlb.pipeline.synthetic.shape import FleetShape
from rmqlb.pipeline.warehouse import Warehouse
from tests.generate.faults import put_faults
from tests.pipeline import told_by_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROUNDED = ("meanQueuesPerConsumer", "imbalance", "firstIdBias", "meanQueuesPerConsumerAfter")


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd") / "dumps"
    shape = FleetShape(seed=11, groups=500, days=1, odd_names=0.3, other_clients=0.3, retry_queues=False)
    generate(shape, str(folder))
    put_faults(folder, every=5)
    return folder


@pytest.fixture(scope="module")
def run(spark: SparkSession, dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> StageRun:
    plan = PipelinePlan(inputs=(str(dumps),), consumers=1, strategies=told_by_sql.STRATEGIES)
    run = StageRun(spark, Warehouse(str(tmp_path_factory.mktemp("warehouse"))), plan)
    for name in ("ingest", "allocate", "score", "what-if"):
        STAGES[name](run)
    return run


@pytest.fixture(scope="module")
def told(dumps: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(told_by_sql.SCRIPT.format(dumps=dumps))
        yield connection


@pytest.mark.parametrize("table", [schemas.ASSIGNMENTS, schemas.SCORES, schemas.WHAT_IF], ids=lambda table: table.name)
def test_the_stages_tell_what_sql_tells(run: StageRun, told: duckdb.DuckDBPyConnection, table: Table) -> None:
    names = [column[0] for column in told.execute(f"SELECT * FROM {table.name} LIMIT 0").description]
    assert set(table.columns) - set(names) <= {"date", "snapshot", "assumedSdks"}
    shown = ", ".join(f'round("{name}", 6)' if name in ROUNDED else f'"{name}"' for name in names)
    theirs = run.read(table).select(*names).toArrow()
    told.register("theirs", theirs)
    differ = f"""
        SELECT 'pipeline' AS by, * FROM (SELECT {shown} FROM theirs EXCEPT ALL SELECT * FROM {table.name})
        UNION ALL
        SELECT 'sql', * FROM (SELECT * FROM {table.name} EXCEPT ALL SELECT {shown} FROM theirs)
        ORDER BY ALL LIMIT 10
    """
    assert told.execute(differ).fetchall() == []
    assert theirs.num_rows > 500


def test_the_fleet_has_the_oddities(told: duckdb.DuckDBPyConnection) -> None:
    """Otherwise nothing would be held by the comparison."""

    def number(query: str) -> int:
        [(found,)] = told.execute(f"SELECT count(*) FROM {query}").fetchall()
        return int(found)

    for query in (
        'all_groups ANTI JOIN groups USING (cluster, "group")',
        "scores WHERE mixedSdks",
        "scores WHERE sdk = 'cpp'",
        "scores WHERE sdk = 'go'",
        "scores WHERE consumers = 0",
        "scores WHERE idle > 0",
        "scores WHERE duplicateOwners > 0",
        "scores WHERE queuesOfDuplicateClientIds > 0",
        "scores WHERE mismatches > 0",
        "scores WHERE runs AND origin = 'observed'",
        "refusing",
        "assignments WHERE starts_with(brokerName, '__syslo__')",
        "assignments WHERE owner IS NULL AND lag IS NOT NULL",
        'reports JOIN pairs USING (cluster, "group") WHERE NOT list_contains(topics, topic)',
        "what_if WHERE change = 'broker-lost' AND moved > 0",
        "what_if WHERE subject = '-1' AND consumersAfter = 0",
        "what_if WHERE lagMoved IS NULL",
    ):
        assert number(query) > 0, query
