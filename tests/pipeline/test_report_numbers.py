"""The numbers of a page: how much work they are, and the rows behind each of them."""

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from rmqlb.pipeline.report.contents import facts, figures, sections
from rmqlb.pipeline.report.export import export
from rmqlb.pipeline.report.frames import Tables
from rmqlb.pipeline.report.page import Fact, Grid, line
from rmqlb.pipeline.report.write import write_report
from rmqlb.pipeline.schemas import TREND
from rmqlb.pipeline.warehouse import Warehouse
from tests.pipeline.report_rows import DAY, HOSTILE, KEY, fleet, score, what_if, write
from tests.pipeline.spark_costs import costs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Answers = list[dict[str, Any]]
Ask = Callable[[str], Answers]
MOST_JOBS = 8
"""One for what was ingested, one for the snapshots, one for the figures, one for groups over time, one for all tables;
and what Spark adds where it broadcasts a table of a row or two."""
ODD = tuple(name for name in HOSTILE if len(name) < 100)


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A warehouse with every table, of groups with names that would break a query."""
    warehouse = Warehouse(str(tmp_path_factory.mktemp("numbers") / "warehouse"))
    tables = fleet("order-svc", *ODD)
    more = score("even", "AVG", observed=4, mismatches=0)
    gains = what_if("order-svc", "strategy", "AVG_BY_CIRCLE", "AVG_BY_CIRCLE", moved=9, maxQueuesPerConsumerAfter=1)
    tables["scores"] = (tables["scores"][0], [*tables["scores"][1], more])
    tables["what_if"] = (tables["what_if"][0], [*tables["what_if"][1], gains])
    write(spark, warehouse, tables)
    return warehouse


@pytest.fixture(scope="module")
def shown(spark: SparkSession, whole: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The figures of a page, in the folder that has the tables."""
    folder = tmp_path_factory.mktemp("shown")
    tables = Tables(spark, whole)
    found = figures(tables, 5, ())
    exported = export(tables, found.clusters, str(folder))
    yield found.__class__(**{**{n: getattr(found, n) for n in found.__struct_fields__}, "tables": exported}), folder
    tables.close()


def test_a_report_is_few_jobs_whatever_it_has_tables(spark: SparkSession, whole: Warehouse, tmp_path: Path) -> None:
    with costs(spark) as found:
        write_report(spark, whole, str(tmp_path / "report"))
    assert found.jobs <= MOST_JOBS


def test_an_unchanged_report_is_not_rewritten(spark: SparkSession, tmp_path: Path) -> None:
    warehouse, folder = Warehouse(str(tmp_path / "warehouse")), tmp_path / "report"
    write(spark, warehouse, fleet())
    first = write_report(spark, warehouse, str(folder))
    written = os.stat(folder).st_ino
    with costs(spark) as found:
        second = write_report(spark, warehouse, str(folder))
    assert (first.unchanged, second.unchanged, found.jobs) == (False, True, 0)
    assert (second.facts, second.tables) == (first.facts, first.tables)
    assert os.stat(folder).st_ino == written
    assert not write_report(spark, warehouse, str(folder), top=5).unchanged
    assert not write_report(spark, warehouse, str(folder), top=5, force=True).unchanged
    assert write_report(spark, warehouse, str(folder), top=5).unchanged
    write(spark, warehouse, {"moves": fleet()["moves"]})
    assert not write_report(spark, warehouse, str(folder), top=5).unchanged


def test_a_warehouse_that_was_made_anew_of_other_documents_is_another_report(
    spark: SparkSession, tmp_path: Path
) -> None:
    for hash_ in ("aa", "bb"):
        tables = fleet()
        tables["documents"] = (tables["documents"][0], [{**row, "hash": hash_} for row in tables["documents"][1]])
        warehouse = Warehouse(str(tmp_path / hash_))
        write(spark, warehouse, tables)
        assert not write_report(spark, warehouse, str(tmp_path / "report")).unchanged


def test_the_rows_behind_each_figure_and_table_are_found_in_duckdb(shown: Any) -> None:
    found, folder = shown
    with duckdb.connect() as connection, inside(folder):
        for name in (one.name for one in found.tables):
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('parquet/{name}/*.parquet')")

        def ask(query: str) -> Answers:
            answered = connection.execute(query)
            names = [one[0] for one in answered.description or ()]
            return [dict(zip(names, row, strict=True)) for row in answered.fetchall()]

        hold(found, ask)


def test_the_rows_behind_each_figure_and_table_are_found_in_spark_sql(spark: SparkSession, shown: Any) -> None:
    found, folder = shown
    for one in found.tables:
        spark.read.parquet(str(folder / "parquet" / one.name)).createOrReplaceTempView(one.name)
    try:
        hold(found, lambda query: [row.asDict() for row in spark.sql(query).collect()])
    finally:
        for one in found.tables:
            spark.catalog.dropTempView(one.name)


def test_views_of_the_tables_are_made_by_the_files_beside_the_page(
    spark: SparkSession, whole: Warehouse, tmp_path: Path
) -> None:
    write_report(spark, whole, str(tmp_path / "report"))
    script = (tmp_path / "report" / "duckdb.sql").read_text()
    with duckdb.connect() as connection, inside(tmp_path / "report"):
        connection.execute(script)
        assert connection.execute("SELECT count(*) FROM overview").fetchall() == [(2 + len(ODD),)]
    assert (tmp_path / "report" / "spark.sql").read_text().count("USING parquet OPTIONS (path 'parquet/") == (
        script.count("CREATE VIEW")
    )


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def hold(found: Any, ask: Ask) -> None:
    """Every figure is what its rows sum up to, and every table of the page has the values of its rows."""
    queries = 0
    for fact in facts(found):
        queries += bool(fact.query)
        assert number_of(fact, ask) == (fact.value or None) or fact.value == 0, fact
    for section in sections(found):
        for grid in section.grids:
            if grid.queries and grid.rows:
                queries += 1
                has_rows(grid, [ask(query) for query in grid.queries])
    assert queries > 30


def number_of(fact: Fact, ask: Ask) -> Any:
    (answer,) = ask(f"SELECT {fact.number} AS number FROM ({fact.query}) AS behind")
    return answer["number"] or None


def has_rows(grid: Grid, answers: Sequence[Answers]) -> None:
    """Row by row where a query gives as many; otherwise each value is somewhere in the rows behind the table."""
    together = {known(value) for answer in answers for row in answer for value in row.values()}
    is_alike = len(answers) == 1 and len(answers[0]) == len(grid.rows)
    for number, row in enumerate(grid.rows):
        there = {known(value) for value in answers[0][number].values()} if is_alike else together
        for (title, kind), value in zip(grid.columns, row, strict=True):
            if kind in ("name", "word", "count", "figure", "ms") and title not in COMPUTED and value is not None:
                assert known(value) in there, (grid.caption, title, value, grid.queries)


COMPUTED = ("latency fault", "to another", "table", "files", "nights", "imbalance by", "moved by")
"""What the page makes of a value, or of several."""


def known(value: Any) -> Any:
    """A value as both give it."""
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, float | int) and not isinstance(value, bool):
        return round(float(value), 6)
    return value


def test_groups_are_followed_over_their_nights(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    nights = [
        {
            **KEY,
            "group": group,
            "date": DAY + dt.timedelta(days=night),
            "snapshot": f"s{night}{late}",
            "takenAt": dt.datetime(2026, 3, 2, late, tzinfo=dt.UTC) + dt.timedelta(days=night),
            "imbalance": 1.0 + night + late,
            "lag": None if night == 1 else 10 * night,
            "idle": night,
            "unassigned": 0,
        }
        for group in ("a", "b", "elsewhere")
        for night in range(3)
        for late in (0, 1)
    ]
    scores = [score("a", idle=1), score("b"), score("new")]
    write(spark, warehouse, {"trend": (TREND, nights), "scores": (fleet()["scores"][0], scores)})
    with_tables = Tables(spark, warehouse)
    found = figures(with_tables, 20, ())
    with_tables.close()
    assert found.group_trends is not None
    assert [(one.group, one.line("imbalance"), one.line("lag")) for one in found.group_trends] == [
        ("a", (2.0, 3.0, 4.0), (0, None, 20)),
        ("b", (2.0, 3.0, 4.0), (0, None, 20)),
    ]
    (section,) = [one for one in sections(found) if one.name == "group-trends"]
    assert section.grids[0].rows[0][:6] == ("east", "a", 3, (2.0, 3.0, 4.0), 2.0, 4.0)
    assert math.isclose(found.trend[-1].p50 if found.trend and found.trend[-1].p50 else 0, 4.0)


def test_a_line_is_drawn_between_its_own_ends() -> None:
    assert "▁▁▁" in line([5, 5, 5])
    assert "▁·█" in line([0, None, 7])
    assert line([None]) == "?"
