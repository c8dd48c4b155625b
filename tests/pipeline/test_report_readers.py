"""The queries of a page, as they stand on it, over the warehouse itself: in DuckDB and in Spark SQL, of a folder and at a URI."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from rmqlb.pipeline.pipeline_plan import PipelinePlan
from rmqlb.pipeline.schemas import ALL, DERIVED
from rmqlb.pipeline.stages import STAGES, StageRun
from rmqlb.pipeline.synthetic.generate import generate
from rmqlb.pipeline.synthetic.shape import FleetShape
from rmqlb.pipeline.warehouse import Warehouse
from tests.generate.faults import put_faults
from tests.pipeline import storages
from tests.pipeline.page_queries import hold, shown_on
from tests.pipeline.spark_costs import costs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NIGHTS, MOST_JOBS = 3, 30
COUNTED = ("unassigned queues predicted", "idle consumers", "mismatches", "unassigned queues observed")


def made(folder: Path) -> Path:
    """Night by night in a folder of its own."""
    shape = FleetShape(seed=3, clusters=2, groups=24, topics=12, days=NIGHTS, odd_names=0.2, retry_queues=False)
    generate(shape, str(folder / "whole"))
    put_faults(folder / "whole", every=3)
    for path in sorted((folder / "whole").glob("cluster=*/date=*")):
        shutil.copytree(path, folder / path.name / path.parent.name / path.name)
    return folder


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("nights"))


@pytest.fixture(scope="module")
def run(spark: SparkSession, snapshots: Path, tmp_path_factory: pytest.TempPathFactory) -> StageRun:
    """A warehouse after some nights, so that some folders hold rows that count no more; the report is beside it.

    Its folder is named as Spark and DuckDB name patterns.
    """
    root = tmp_path_factory.mktemp("readers")
    plan = PipelinePlan(consumers=1, report_to=str(root / "report"))
    run = StageRun(spark, Warehouse(str(root / "warehouse [1]{a,b}?*")), plan)
    for night in sorted(snapshots.glob("date=*")):
        ingest = replace(run, plan=replace(plan, inputs=(str(night),)))
        for name in ("ingest", "allocate", "score", "history"):
            STAGES[name](ingest)
    with costs(spark) as found:
        STAGES["report"](run)
    assert found.jobs <= MOST_JOBS
    return run


def page_of(run: StageRun) -> str:
    return Path(run.plan.report_to or "", "index.html").read_text(encoding="utf-8")


@contextmanager
def inside(folder: str | None) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder or "")
    try:
        yield
    finally:
        os.chdir(before)


def asked_in(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    answered = connection.execute(query)
    names = [one[0] for one in answered.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answered.fetchall()]


def must_count(found: dict[str, int]) -> None:
    """There is something to be found of each, or nothing was tried."""
    assert all(found[what] > 0 for what in COUNTED), found


def test_queries_of_a_page_hold_in_duckdb(run: StageRun) -> None:
    with inside(run.plan.report_to), duckdb.connect() as connection:
        connection.execute(Path("warehouse-duckdb.sql").read_text())
        must_count(hold(page_of(run), lambda query: asked_in(connection, query)))
        for name, rows in run.warehouse.rows(*ALL).items():
            assert asked_in(connection, f'SELECT count(*) AS n FROM "{name}"') == [{"n": rows}], name


def test_queries_of_a_page_hold_in_spark_sql(run: StageRun) -> None:
    def ask(query: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in run.spark.sql(query).collect()]

    with inside(run.plan.report_to):
        script = Path("warehouse-spark.sql").read_text().replace("'parquet/", f"'{os.getcwd()}/parquet/")
    statements = [text for text in script.split(";\n") if text.strip()]
    try:
        for statement in statements:
            run.spark.sql(statement)
        must_count(hold(page_of(run), ask))
        for name, rows in run.warehouse.rows(*ALL).items():
            assert ask(f"SELECT count(*) AS n FROM `{name}`") == [{"n": rows}], name
    finally:
        for name in ["_state", *(f"{mark}{table.name}" for table in (*ALL, *DERIVED) for mark in ("", "_"))]:
            run.spark.catalog.dropTempView(name)


def test_a_page_of_an_earlier_state_is_not_answered(run: StageRun, tmp_path: Path) -> None:
    shutil.copytree(run.warehouse.folder, tmp_path / "warehouse")
    later = Warehouse(str(tmp_path / "warehouse"))
    scripts = later.reader_scripts(ALL)
    with later.writing():
        pass
    with duckdb.connect() as connection:
        connection.execute(scripts["warehouse-duckdb.sql"])
        with pytest.raises(duckdb.Error, match="the warehouse has changed"):
            connection.execute("SELECT count(*) FROM scores").fetchall()


def test_queries_of_a_page_hold_at_a_uri(snapshots: Path, tmp_path: Path) -> None:
    uri, report = f"file://{tmp_path}/warehouse", tmp_path / "report"
    local = ("-w", uri, "--master", "local[2]", "--log-file", "log")
    for night in sorted(snapshots.glob("date=*"))[:2]:
        storages.rmqlb("run", str(night), *local, "--to", str(report), "--trials", "2", cwd=tmp_path)
    page = (report / "index.html").read_text(encoding="utf-8")
    with inside(str(report)), duckdb.connect() as connection:
        script = Path("warehouse-duckdb.py").read_text().replace("import duckdb\n", "")
        exec(compile(script, "warehouse-duckdb.py", "exec"), {"duckdb": _Registered(connection)})
        counted = hold(page, lambda query: asked_in(connection, query))
    must_count(counted)
    queries = [query for one in shown_on(page) for query in (one.query, one.each) if query]
    (tmp_path / "queries.json").write_text(json.dumps(queries))
    answers = storages.said("tests.pipeline.programs.rows_in_spark_sql", "queries.json", str(report), cwd=tmp_path)
    by_query = dict(zip(queries, answers, strict=True))
    assert hold(page, lambda query: by_query[query]) == counted


class _Registered:
    """What the script asks of the module: the same of one connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.register, self.sql = connection.register, connection.execute
