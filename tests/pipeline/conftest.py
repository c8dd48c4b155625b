"""The session that Spark tests share, and a fleet with faults that went through the pipeline. Missing Java is an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.synthetic.fleet import FleetShape, generate, put_faults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rmqlb.pipeline.warehouse import Warehouse

# Default tests collect this file where pyspark is not installed: fixtures import what needs it.


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local session for all tests; whatever calls `spark_session` in this process gets it too."""
    from rmqlb.pipeline.spark import SparkSettings, spark_session

    log_file = str(tmp_path_factory.mktemp("spark") / "spark.log")
    with spark_session(SparkSettings("local[2]", {}, log_file)) as session:
        yield session


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "snapshots"
    shape = FleetShape(seed=11, groups=90, days=2, odd_names=0.3, other_clients=0.3, retry_queues=False, churn=0.3)
    generate(shape, str(folder))
    put_faults(folder, every=3)
    return folder


@pytest.fixture(scope="session")
def judged(spark: SparkSession, fleet: Path, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    from rmqlb.pipeline.warehouse import Warehouse

    from .running import ASKED, ingest_files, judge_nights

    warehouse = Warehouse(spark, str(tmp_path_factory.mktemp("judged") / "warehouse"))
    ingest_files(warehouse, fleet)
    judge_nights(warehouse, ASKED)
    return warehouse


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    from rmqlb.pipeline.warehouse import Warehouse

    return Warehouse(spark, str(tmp_path / "warehouse"))
