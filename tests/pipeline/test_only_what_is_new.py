"""A night more costs one night: what is read, written and computed when most of it is there already."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rmqlb.pipeline import schemas
from rmqlb.pipeline.ingest.ingest_stage import _Ingest, ingest
from rmqlb.pipeline.ingest.input_files import Found
from rmqlb.pipeline.pipeline_plan import PipelinePlan
from rmqlb.pipeline.producers.send_rows import SendSchedule
from rmqlb.pipeline.row_filter import RowFilter
from rmqlb.pipeline.spark.progress import StageProgress
from rmqlb.pipeline.stages import STAGES, StageRun
from rmqlb.pipeline.warehouse import Warehouse
from tests.pipeline.documents import connections, progress, route, snapshot, write
from tests.pipeline.spark_costs import costs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MOST_JOBS = 16  # one of them looks for two files of one cluster and time


def night(day: int, *, topics: int = 1, hour: int = 2, cluster: str = "c1") -> str:
    """A snapshot with a route for each topic and a group on the first."""
    queues = [{"topic": "T0", "brokerName": "a", "queueId": 0, "owners": ["x"], "brokerOffset": 9}]
    group = {"clientIds": ["x", "y"], "messageModel": "CLUSTERING", "topics": ["T0"], "queues": queues}
    routes = {f"T{number}": route(cluster, a=2) for number in range(topics)}
    return snapshot(f"2026-11-{day:02}T{hour:02}:00:00Z", routes, group=group)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(str(tmp_path / "warehouse"))


def column(frame: DataFrame, *names: str) -> list[Any]:
    return sorted((tuple(row) for row in frame.select(*names).collect()), key=repr)


def test_a_small_ingest_takes_few_jobs_the_first_night_and_each_later_one(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    dumps = tmp_path / "dumps"
    for day in (1, 2, 3):
        root = write(dumps, {f"{day}.json": night(day), f"bad-{day}.json": "{" * day})
        with costs(spark) as spent:
            assert ingest(spark, warehouse, [root]).ingested == 1
        assert 5 < spent.jobs <= MOST_JOBS
    with costs(spark) as spent:
        report = ingest(spark, warehouse, [root])
    assert (report.found, report.known, report.quarantined) == (6, 3, 3)
    assert (spent.jobs, spent.rows_written) == (1, 0)
    assert column(warehouse.read(spark, schemas.CLUSTERS), "cluster", "snapshots") == [("c1", 3)]


def test_files_are_known_by_name_size_and_time_without_a_look_into_them(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    root = write(tmp_path / "dumps", {"1.json": night(1), "2.json": night(2), "bad.json": "{"})
    ingest(spark, warehouse, [root])
    path = tmp_path / "dumps" / "1.json"
    state = path.stat()
    path.write_text("x" * state.st_size)  # as nobody does: it is not looked at
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    report = ingest(spark, warehouse, [root])
    assert (report.files, report.found, report.known, report.quarantined) == (3, 3, 2, 1)
    again = ingest(spark, warehouse, [root], again=True)
    assert (again.files, again.found, again.known, again.quarantined) == (3, 3, 1, 2)
    path.write_text(night(1))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1000))
    report = ingest(spark, warehouse, [root])
    assert (report.found, report.known, report.quarantined, report.ingested) == (3, 2, 1, 0)
    other = ingest(spark, warehouse, [root], cluster="other")
    assert (other.found, other.known, other.quarantined) == (3, 2, 1)


def test_what_was_left_out_or_could_not_be_opened_is_tried_again(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    root = write(tmp_path / "dumps", {"1.json": night(1, cluster="c1"), "2.json": night(2, cluster="c2")})
    (tmp_path / "dumps" / "3.json").symlink_to("later.txt")
    report = ingest(spark, warehouse, [root], only=RowFilter(cluster=("c1",)))
    assert (report.found, report.ingested, report.skipped, report.quarantined) == (3, 1, 1, 1)
    (tmp_path / "dumps" / "later.txt").write_text(night(3))
    report = ingest(spark, warehouse, [root])
    assert (report.found, report.ingested, report.known) == (4, 2, 2)


def test_a_file_that_says_something_else_about_its_night_takes_the_place_of_what_it_said(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    root = write(tmp_path / "dumps", {"1.json": night(1), "2.json": night(2), "latest.json": night(3)})
    ingest(spark, warehouse, [root])
    write(tmp_path / "dumps", {"1.json": night(1, topics=3), "latest.json": night(4)})
    report = ingest(spark, warehouse, [root])
    assert (report.found, report.ingested, report.known) == (3, 2, 1)
    topics = column(warehouse.read(spark, schemas.TOPICS), "date", "topic")
    assert [(day.day, topic) for day, topic in topics] == [
        (1, "T0"),
        (1, "T1"),
        (1, "T2"),
        (2, "T0"),
        (3, "T0"),  # a file that is written anew each night replaces no other night
        (4, "T0"),
    ]
    found = column(warehouse.read(spark, schemas.CLUSTERS), "cluster", "snapshots", "untimed", "late")
    assert found == [("c1", 4, 0, 1)]


def test_each_cluster_has_its_last_snapshot_and_late_ones_are_counted(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    def add(name: str, text: str) -> list[Any]:
        ingest(spark, warehouse, [write(tmp_path / name, {"x.json": text})])
        rows = column(warehouse.read(spark, schemas.CLUSTERS), "cluster", "date", "snapshots", "untimed", "late")
        return [(cluster, date and date.day, *counts) for cluster, date, *counts in rows]

    assert add("a", night(5)) == [("c1", 5, 1, 0, 0)]
    assert add("b", night(6)) == [("c1", 6, 2, 0, 0)]
    assert add("c", night(4, cluster="c2")) == [("c1", 6, 2, 0, 0), ("c2", 4, 1, 0, 0)]
    assert add("d", night(4)) == [("c1", 6, 3, 0, 1), ("c2", 4, 1, 0, 0)]
    assert add("e", night(6, topics=2)) == [("c1", 6, 4, 0, 2), ("c2", 4, 1, 0, 0)]
    undated = snapshot(None, {"T": route("c2", a=1)})
    assert add("f", undated) == [("c1", 6, 4, 0, 2), ("c2", 4, 1, 1, 0)]


def test_more_pieces_of_a_night_change_the_revision_of_its_snapshot(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    dumps = tmp_path / "dumps"
    root = write(dumps, {"date=2026-11-20/1.json": connections("g", "x")})
    ingest(spark, warehouse, [root])
    before = column(warehouse.read(spark, schemas.CLUSTERS), "cluster", "snapshot", "revision", "late")
    write(dumps, {"date=2026-11-20/2.json": progress("g", b="y")})
    assert ingest(spark, warehouse, [root]).ingested == 1
    after = column(warehouse.read(spark, schemas.CLUSTERS), "cluster", "snapshot", "revision", "late")
    assert [row[:2] for row in after] == [row[:2] for row in before]
    assert after[0][2] != before[0][2]
    assert after[0][3] > before[0][3]
    write(dumps, {"date=2026-11-20/2.json": progress("g", b="z")})
    assert ingest(spark, warehouse, [root]).ingested == 1
    owners = column(warehouse.read(spark, schemas.OWNERS), "brokerName", "ownersObserved")
    assert owners == [("b", ["z"])]


def test_files_at_urls_are_known_by_name_size_and_time_too(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    def again() -> tuple[int, int, int]:
        with warehouse.writing() as writing:
            found = Found((), (), 0, (f"file:{tmp_path}/dumps",))
            report = _Ingest(spark, warehouse, writing, StageProgress()).run(found, None, RowFilter())
        return report.files, report.ingested, report.known

    write(tmp_path / "dumps", {"cluster=a b%2Fc/1.json": night(1)})
    assert again() == (1, 1, 0)
    assert again() == (1, 0, 1)
    write(tmp_path / "dumps", {"cluster=a b%2Fc/2.json": night(2)})
    with costs(spark) as spent:
        assert again() == (2, 1, 1)
    assert spent.jobs <= MOST_JOBS + 5
    assert warehouse.rows(schemas.FILES) == {"files": 2}


SWEEPS = ("allocate", "score", "what-if", "size", "sweep", "producers")
WITHOUT_ROWS = (schemas.REFUSALS, schemas.BROKEN_LIMITS)
SWEPT = [table for name in SWEEPS for table in schemas.WRITTEN_BY[name] if table not in WITHOUT_ROWS]


def test_a_cluster_without_a_new_snapshot_keeps_its_files(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    def run(name: str, text: str) -> tuple[dict[str, str], dict[Path, int]]:
        dumps = write(tmp_path / name, {"x.json": text})
        asked = PipelinePlan(inputs=(dumps,), strategies=("AVG",), consumers=1, schedule=SendSchedule(trials=2))
        stages = StageRun(spark, warehouse, asked)
        states: dict[str, str] = {stage: STAGES[stage](stages).state for stage in ("ingest", *SWEEPS)}
        files = [file for table in SWEPT for file in Path(warehouse.folder, table.name).rglob("*.parquet")]
        return states, {file: file.stat().st_mtime_ns for file in files}

    def of(cluster: str, files: dict[Path, int]) -> dict[Path, int]:
        return {file: at for file, at in files.items() if f"/cluster={cluster}/" in str(file)}

    run("a", night(1, cluster="a"))
    _, before = run("b", night(1, cluster="b"))
    states, after = run("c", night(2, cluster="b"))
    assert set(states.values()) == {"written"}
    assert of("a", after) == of("a", before) != {}
    assert not of("b", after).keys() & of("b", before).keys()
    for table in SWEPT:
        days = {(row["cluster"], row["date"].day) for row in warehouse.read(spark, table).collect()}
        assert days == {("a", 1), ("b", 2)}, table.name
    states, late = run("d", night(1, cluster="b", hour=1))
    assert states == {"ingest": "written", **dict.fromkeys(SWEEPS, "unchanged")}
    assert late == after


def test_pieces_take_few_jobs_too(spark: SparkSession, warehouse: Warehouse, tmp_path: Path) -> None:
    files = {"1.json": connections("g", "x"), "2.json": progress("g", a="x"), "topic=T/3.json": json.dumps(route(a=1))}
    root = write(tmp_path / "dumps", {f"date=2026-11-20/{name}": text for name, text in files.items()})
    with costs(spark) as spent:
        assert ingest(spark, warehouse, [root]).ingested == 3
    assert spent.jobs <= MOST_JOBS + 5
