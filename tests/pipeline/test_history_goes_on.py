"""The stage `history` from one night to the next: what goes on, what is computed anew, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rmqlb.pipeline import schemas
from rmqlb.pipeline.pipeline_plan import PipelinePlan
from rmqlb.pipeline.stages import STAGES, StageRun
from rmqlb.pipeline.warehouse import Warehouse
from tests.pipeline.documents import route, snapshot, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rmqlb.model.stage import StageReport
    from rmqlb.pipeline.schemas import Table

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def night(day: int | None, owner: str, *, cluster: str = "c1", model: str = "CLUSTERING") -> str:
    """The group has one queue, with this owner."""
    queues = [{"topic": "T", "brokerName": "a", "queueId": 0, "owners": [owner]}]
    group = {"clientIds": [owner], "messageModel": model, "topics": ["T"], "queues": queues}
    at = None if day is None else f"2026-11-{day:02}T02:00:00Z"
    return snapshot(at, {"T": route(cluster, a=1)}, group=group)


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> StageRun:
    return StageRun(spark, Warehouse(str(tmp_path / "warehouse")), PipelinePlan(inputs=(str(tmp_path / "dumps"),)))


def more(run: StageRun, tmp_path: Path, files: dict[str, str]) -> StageReport:
    write(tmp_path / "dumps", dict(files))
    STAGES["ingest"](run)
    return STAGES["history"](run)


def rows(run: StageRun, table: Table, *columns: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in run.warehouse.read(run.spark, table).select(*columns).collect()), key=repr)


def test_a_replaced_night_is_told_anew_and_said_and_other_clusters_go_on(run: StageRun, tmp_path: Path) -> None:
    first = more(run, tmp_path, {"c1-1": night(1, "x"), "c1-2": night(2, "y"), "c2-1": night(1, "x", cluster="c2")})
    assert (first.state, first.findings) == ("written", ())
    assert rows(run, schemas.FLAPPING, "cluster", "moved", "returns") == [("c1", 1, 0), ("c2", 0, 0)]
    done = more(run, tmp_path, {"c1-1": night(1, "y"), "c2-2": night(2, "y", cluster="c2")})
    assert [finding.code for finding in done.findings] == ["late-snapshots"]
    assert done.findings[0].message.endswith("late or were replaced: c1")
    assert rows(run, schemas.SESSIONS, "cluster", "owner", "snapshots", "endedBy", "isOpen") == [
        ("c1", "y", 2, None, True),
        ("c2", "x", 1, "moved", False),
        ("c2", "y", 1, None, True),
    ]
    assert rows(run, schemas.FLAPPING, "cluster", "moved", "returns") == [("c1", 0, 0), ("c2", 1, 0)]
    third = more(run, tmp_path, {"c2-3": night(3, "x", cluster="c2")})
    assert third.findings == ()
    assert rows(run, schemas.FLAPPING, "cluster", "moved", "returns") == [("c1", 0, 0), ("c2", 2, 1)]
    assert more(run, tmp_path, {}).state == "unchanged"


def test_a_group_that_turns_out_to_be_broadcasting_moves_nothing_not_even_before(run: StageRun, tmp_path: Path) -> None:
    more(run, tmp_path, {"1": night(1, "x"), "2": night(2, "y")})
    assert [row[0].day for row in rows(run, schemas.MOVES, "date")] == [2]
    more(run, tmp_path, {"3": night(3, "x", model="BROADCASTING")})
    assert rows(run, schemas.MOVES, "date") == rows(run, schemas.FLAPPING, "group") == []
    more(run, tmp_path, {"4": night(4, "y")})
    assert rows(run, schemas.MOVES, "date") == []
    assert [row[0].day for row in rows(run, schemas.CHURN, "date")] == [1, 2, 3, 4]


def test_a_snapshot_without_a_time_is_left_out_and_named_each_time(run: StageRun, tmp_path: Path) -> None:
    more(run, tmp_path, {"1": night(1, "x")})
    for _ in range(2):
        done = more(run, tmp_path, {"undated": night(None, "y")})
        assert [finding.message for finding in done.findings] == [
            "1 snapshots say no time; the history leaves them out"
        ]
    assert rows(run, schemas.SESSIONS, "owner") == [("x",)]
