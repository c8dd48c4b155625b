"""The fleet benchmark's parts that run Spark, on fleets of a thousand queues."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import fleet, fleet_pairs
from benchmarks.fleet_jvm import Stage
from benchmarks.fleet_parts import Parts
from benchmarks.fleet_run import CONF
from rmqlb.pipeline.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def parts(folder: Path) -> Parts:
    return Parts(str(folder), turns=1, queues=1000, days=2, strategies=("AVG",), run=0.0, conf=CONF)


def test_the_stages_run_in_a_process_of_their_own_and_are_watched(tmp_path: Path) -> None:
    section = parts(tmp_path).stages()
    assert [row[0] for row in section.rows] == ["ingest", "allocate", "score", "together"]
    assert {len(row) for row in section.rows} == {len(section.headers)}
    assert 0.02 < section.ratios["memory", "stages"].median < 1
    assert set(section.ratios) <= set(fleet.HOLDS)
    warehouse = Warehouse(os.path.join(tmp_path, "stages"))
    groups = fleet_pairs.groups_of_a_fleet(warehouse)
    stored = warehouse.stored("fleet")
    assert stored is not None
    assert fleet_pairs.sizes(groups)["groups"] == stored.rows


def test_allocate_and_its_peers_write_the_same_rows(tmp_path: Path) -> None:
    section = parts(tmp_path).plain()
    assert [row[0] for row in section.rows] == ["allocate", "trial", "duckdb"]
    assert set(section.ratios) == {("plain", "CPU"), ("plain", "seconds")}
    [warehouse] = tmp_path.glob("*.warehouse")
    assignments, *peers = (
        sorted(rows_below(warehouse / name)) for name in ("assignments", "plain-trial", "plain-duckdb")
    )
    assert len(assignments) == int(str(section.rows[0][3]).replace(",", ""))
    assert peers == [assignments, assignments]


def rows_below(folder: Path) -> list[tuple[object, ...]]:
    """Of an assignment what decides: group, topic, broker, queue, strategy and owner."""
    import duckdb

    names = '"group", topic, brokerName, queueId, strategy, owner, owners'
    with duckdb.connect() as connection:
        query = f"SELECT {names} FROM read_parquet('{folder}/**/*.parquet')"
        return connection.execute(query).fetchall()


def test_a_giant_group_and_nights_go_through_the_stages(tmp_path: Path) -> None:
    giant = replace(parts(tmp_path), queues=3 * 256).giant()
    assert [row[0] for row in giant.rows] == ["ingest", "allocate", "score", "what-if"]
    assert giant.rows[1][3] == f"{2 * 3 * 256:,}"
    nights = parts(tmp_path).nights()
    assert [row[:2] for row in nights.rows[:2]] == [("ingest", 2), ("ingest", 2)]
    assert {len(row) for row in nights.rows} == {len(nights.headers)}
    assert set(giant.ratios) | set(nights.ratios) <= set(fleet.HOLDS)
    assert all(int(str(row[2])) > 0 for row in nights.rows)


def test_the_stage_beside_the_jvm_deals_out_what_it_is_given(spark: SparkSession, tmp_path: Path) -> None:
    groups = fleet_pairs.groups_of_one_size(16, 3, 64)
    stage = Stage(spark, str(tmp_path), groups)
    assert stage.rate("AVG") > 0
    stored = Warehouse(os.path.join(tmp_path, "warehouse")).stored("assignments")
    assert stored is not None
    assert stored.rows == fleet_pairs.sizes(groups)["queues"]
