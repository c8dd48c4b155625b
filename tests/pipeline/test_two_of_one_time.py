"""What ingest refuses of clusters and times, and what `compact --keep` keeps of each cluster."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqlb.errors import DataError
from rmqlb.pipeline.compact import compact_tables
from rmqlb.pipeline.ingest.ingest_stage import ingest
from rmqlb.pipeline.schemas import DOCUMENTS
from rmqlb.pipeline.warehouse import Warehouse
from tests.pipeline.documents import route, snapshot, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def night(cluster: str, day: str, queues: int = 1) -> str:
    return snapshot(f"{day}T02:00:00Z", {"T": route(cluster, a=queues)})


def nights(spark: SparkSession, warehouse: Warehouse) -> list[tuple[str, date]]:
    rows = warehouse.read(spark, DOCUMENTS).select("cluster", "date").collect()
    return sorted((row["cluster"], row["date"]) for row in rows)


def test_two_files_of_one_cluster_and_time_are_refused_with_both_paths(spark: SparkSession, tmp_path: Path) -> None:
    one, two, other = (night("DefaultCluster", "2026-11-20", number) for number in (1, 2, 3))
    root = write(tmp_path / "dumps", {"east.json": one, "west.json": two})
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    with pytest.raises(DataError) as raised:
        ingest(spark, warehouse, [root])
    assert raised.value.message == (
        "cluster DefaultCluster at 2026-11-20T02:00:00Z is in two files that differ: "
        f"{root}/east.json and {root}/west.json"
    )
    assert warehouse.stored(DOCUMENTS.name) is None
    assert ingest(spark, warehouse, [f"{root}/east.json"]).ingested == 1
    with pytest.raises(DataError, match=re.escape(f"{root}/west.json and {root}/east.json")):
        ingest(spark, warehouse, [f"{root}/west.json"])
    assert ingest(spark, warehouse, [f"{root}/west.json"], cluster="west").ingested == 1
    write(tmp_path / "dumps", {"east.json": other})
    assert ingest(spark, warehouse, [f"{root}/east.json"]).ingested == 1
    write(tmp_path / "dumps", {"copy.json": other})
    assert ingest(spark, warehouse, [f"{root}/copy.json"]).known == 1
    assert nights(spark, warehouse) == [("DefaultCluster", date(2026, 11, 20)), ("west", date(2026, 11, 20))]


def test_each_cluster_keeps_its_own_last_days_and_a_date_in_the_future_is_rejected(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = {f"a{day}.json": night("a", f"2026-11-{day}") for day in ("01", "09", "10")}
    files |= {f"b{day}.json": night("b", f"2026-01-{day}") for day in ("01", "02")}
    root = write(tmp_path / "dumps", {**files, "future.json": night("b", "2126-01-01")})
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    report = ingest(spark, warehouse, [root])
    assert (report.ingested, report.quarantined) == (5, 1)
    assert compact_tables(spark, warehouse, 2)[1] == 1
    assert [(cluster, day.isoformat()) for cluster, day in nights(spark, warehouse)] == [
        ("a", "2026-11-09"),
        ("a", "2026-11-10"),
        ("b", "2026-01-01"),
        ("b", "2026-01-02"),
    ]
    assert compact_tables(spark, warehouse, 0)[1] == 2
    assert [cluster for cluster, _ in nights(spark, warehouse)] == ["a", "b"]
