"""A fleet with all faults, held against DuckDB's SQL over the raw documents, row by row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rmqlb.pipeline.tables import Assignments, Figures, WhatIf
from rmqlb.pipeline.warehouse import Warehouse

from . import told_by_sql
from .running import rows

pytestmark = pytest.mark.spark

LAST = date(2026, 11, 2)
QUEUE = ("cluster", "group", "strategy", "topic", "brokerName", "queueId", "owner", "owners", "lag", "mismatch")
FIGURES = (
    *("cluster", "group", "strategy", "topics", "consumers", "queues", "idle", "unassigned", "duplicateOwners"),
    *("minQueuesPerConsumer", "meanQueuesPerConsumer", "maxQueuesPerConsumer", "imbalance", "maxLagPerConsumer"),
)


@pytest.fixture(scope="module")
def told(fleet: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(told_by_sql.SCRIPT.format(dumps=f"{fleet}/*/date={LAST}"))
        yield connection


def tuples(found: list[dict[str, Any]], names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return sorted((tuple(_rounded(row[name]) for name in names) for row in found), key=repr)


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def ask(told: duckdb.DuckDBPyConnection, query: str, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    cursor = told.execute(query)
    columns = [column[0] for column in cursor.description or ()]
    return tuples([dict(zip(columns, row, strict=True)) for row in cursor.fetchall()], names)


@pytest.fixture(scope="module")
def refused(judged: Warehouse) -> set[tuple[Any, ...]]:
    """Groups of which the engine answers nothing: no consumer is visible, or a topic has no route."""
    asked = [row for row in rows(judged, Figures, LAST) if not row["runs"]]
    found = [row for row in asked if row["problem"] is not None and row["code"] == "data"]
    assert all(re.search("no consumer is visible|the route of topic", row["problem"]) for row in found)
    assert len(found) < len(asked) / 5
    return {(row["cluster"], row["group"]) for row in found}


def test_assignments(judged: Warehouse, told: duckdb.DuckDBPyConnection, refused: set[tuple[Any, ...]]) -> None:
    mine = tuples([row for row in rows(judged, Assignments, LAST) if not row["runs"]], QUEUE)
    theirs = ask(told, "SELECT * FROM assignments", QUEUE)
    assert mine == [row for row in theirs if row[:2] not in refused]
    assert len(mine) > 1000


def test_figures(judged: Warehouse, told: duckdb.DuckDBPyConnection, refused: set[tuple[Any, ...]]) -> None:
    mine = [row for row in rows(judged, Figures, LAST) if not row["runs"] and row["code"] is None]
    theirs = ask(told, "SELECT * FROM scores", FIGURES)
    assert tuples(mine, FIGURES) == [row for row in theirs if row[:2] not in refused]
    assert len(mine) > 80


def test_lost_brokers_and_one_more_consumer(judged: Warehouse, told: duckdb.DuckDBPyConnection) -> None:
    key = ("cluster", "group", "strategy", "change", "subject")
    names = (*key, "consumers", "queues", "unassigned", "duplicateOwners", "idle", "moved", "lagMoved")
    asked = [row for row in rows(judged, WhatIf, LAST) if row["change"] in ("broker", "consumer-added")]
    mine = tuples([row for row in asked if row["strategy"] in ("AVG", "AVG_BY_CIRCLE")], names)
    theirs = {row[: len(key)]: row for row in ask(told, "SELECT * FROM what_if", names)}
    assert mine == [theirs.get(row[: len(key)]) for row in mine]
    assert len(mine) > 100
