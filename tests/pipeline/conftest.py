"""Spark tests are asked for by ``--spark`` and deselected without it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    with suppress(ValueError):
        parser.addoption("--spark", action="store_true", help="also run the tests that start Spark")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    if ours and not config.getoption("--spark", default=False):
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if HERE not in item.path.parents]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Provisional: the session's own module replaces this."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
