"""What else can do the work of allocate under AVG and AVG_BY_CIRCLE: the plain trial on Spark, and DuckDB.

Both read the table of the fleet from Parquet, in one folder and one row a group, and write the rows of ASSIGNMENTS,
which are counted and held against those of the pipeline when both are there.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from benchmarks import fleet_trial

if TYPE_CHECKING:
    from rmqlb.model.stage import StageReport
    from rmqlb.pipeline.stages import StageRun

TRIAL, DUCKDB = "trial", "duckdb"
_FILES = 4

ALLOCATE_SQL = """
CREATE OR REPLACE TEMP VIEW pairs AS
SELECT cluster, date, snapshot, "group", clientIds AS ids, len(clientIds) AS members, t.topic, t.subscribe AS runs,
    coalesce(list_sum(list_transform(t.subscribe, lambda run: run.queues)), 0)::BIGINT AS queues
FROM (SELECT * EXCLUDE topics, unnest(topics) AS t FROM read_parquet('{groups}/*.parquet'));
CREATE OR REPLACE TEMP VIEW runs AS
SELECT * EXCLUDE (runs, nth), runs[nth].brokerName AS brokerName, runs[nth].queues AS here,
    coalesce(list_sum(list_transform(runs[:nth - 1], lambda run: run.queues)), 0)::BIGINT AS first
FROM (SELECT *, unnest(range(1, len(runs) + 1)) AS nth FROM pairs);
CREATE OR REPLACE TEMP VIEW placed AS
SELECT * EXCLUDE here, first + queueId AS place FROM (SELECT *, unnest(range(here)) AS queueId FROM runs);
COPY (
    SELECT cluster, date, snapshot, "group", topic, brokerName, queueId::INTEGER AS queueId, strategy,
        ids[nth + 1] AS owner, (members > 0)::INTEGER AS owners, NULL::BIGINT AS lag, NULL::BOOLEAN AS mismatch
    FROM (
        SELECT *, 'AVG' AS strategy, CASE
            WHEN members = 0 THEN NULL
            WHEN place < queues % members * (queues // members + 1) THEN place // (queues // members + 1)
            ELSE queues % members + (place - queues % members * (queues // members + 1)) // (queues // members)
        END AS nth FROM placed
        UNION ALL
        SELECT *, 'AVG_BY_CIRCLE' AS strategy, CASE WHEN members > 0 THEN place % members END AS nth FROM placed
    )
) TO '{to}' (FORMAT parquet);
"""
"""The two strategies once more, in SQL."""


def peer(name: str, run: StageRun) -> Callable[[StageRun], StageReport]:
    """The peer of that name; what it reads is made now, before anything is measured."""
    from rmqlb.pipeline.schemas import FLEET

    groups = os.path.join(run.warehouse.folder, "plain-groups")
    if not os.path.isdir(groups):
        run.warehouse.read(run.spark, FLEET).repartition(_FILES).write.parquet(groups)
    return PEERS[name]


def _trial(run: StageRun) -> StageReport:
    from rmqlb.model.stage import stage_report
    from rmqlb.pipeline.schemas import FLEET

    began = time.monotonic()
    groups, to = (os.path.join(run.warehouse.folder, name) for name in ("plain-groups", "plain-trial"))
    fleet_trial.write_trial(run.spark, groups, FLEET.ddl, to)
    return stage_report(TRIAL, time.monotonic() - began, {"rows": rows_in(to)})


def _duckdb(run: StageRun) -> StageReport:
    import duckdb
    from rmqlb.model.stage import stage_report

    began = time.monotonic()
    groups, to = (os.path.join(run.warehouse.folder, name) for name in ("plain-groups", "plain-duckdb"))
    shutil.rmtree(to, ignore_errors=True)
    os.makedirs(to)
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.execute(ALLOCATE_SQL.format(groups=groups, to=os.path.join(to, "rows.parquet")))
    return stage_report(DUCKDB, time.monotonic() - began, {"rows": rows_in(to)})


def rows_in(folder: str) -> int:
    """Of all Parquet files below a folder, by what they say at their ends."""
    from pyarrow.parquet import read_metadata

    paths = (os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)
    return sum(read_metadata(path).num_rows for path in paths if path.endswith(".parquet"))


PEERS: Mapping[str, Callable[[StageRun], StageReport]] = {TRIAL: _trial, DUCKDB: _duckdb}
"""By name, like the pipeline's own stages."""
