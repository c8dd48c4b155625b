"""Rows that Python processes write as files are those that Spark would write, in the folders that Spark would make."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rmqlb.pipeline.schemas import Table, columns
from rmqlb.pipeline.spark.worked import Worked, partition_folder
from rmqlb.pipeline.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ODD = Table("odd", columns("other boolean, cluster string, date date, name string"), ("other", "cluster", "date"))
OTHER = Table("other", columns("name string"))
OWN = Table("own", columns("cluster string, date date, name string"), ("cluster", "date"))
CLUSTERS = [
    "plain",
    "a/b",
    "a b",
    "x=1",
    "50%",
    "\U0001f600",
    "é",
    "it's",
    'a"b',
    "a:b*?",
    "[x]{y}^",
    "back\\slash",
    None,
]
DAYS = [date(2026, 11, 1), None]
ROWS = [
    (number % 3 == 0, cluster, day, f"n{number}")
    for number, (cluster, day) in enumerate((cluster, day) for cluster in CLUSTERS for day in DAYS)
]


def odd_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows of `ROWS` for each row that comes in."""
    from rmqlb.pipeline.arrow import arrow_schema

    for batch in batches:
        for _ in range(batch.num_rows):
            schema = arrow_schema(ODD.columns)
            arrays = [
                pa.array(column, field.type) for column, field in zip(zip(*ROWS, strict=True), schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield from ()


def leaves_a_file(folder: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As if another attempt at the same task had written some of its rows, and then failed."""
    from pyarrow import parquet

    below = os.path.join(folder, partition_folder({"other": False, "cluster": "plain", "date": None}))
    os.makedirs(below, exist_ok=True)
    parquet.write_table(pa.table({"name": ["twice"]}), os.path.join(below, "part-of-another-attempt.parquet"))
    yield from odd_rows(batches)


def partitions(folder: Path) -> set[str]:
    return {str(path.parent.relative_to(folder)) for path in folder.rglob("*.parquet")}


def test_folders_are_named_as_spark_names_them(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame(ROWS, ODD.ddl).write.partitionBy(*ODD.partitions).parquet(str(tmp_path / "t"))
    ours = {partition_folder(dict(zip(ODD.partitions, row[:3], strict=True))) for row in ROWS}
    assert ours == partitions(tmp_path / "t")


def test_as_a_frame_they_are_the_same_rows(spark: SparkSession) -> None:
    found = Worked(spark.range(1).toDF("id"), odd_rows, ODD).frame().collect()
    assert sorted(map(tuple, found), key=str) == sorted(ROWS, key=str)


def test_a_table_and_the_others_are_written_in_one_pass(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = Warehouse(str(tmp_path / "wh"))
    step = partial(leaves_a_file, str(tmp_path / "wh" / "own_parted" / "run=000001"))
    rows = Worked(spark.range(2, numPartitions=2).toDF("id"), step, ODD)
    with warehouse.writing() as writing:
        others = writing.replace_part(OWN, rows, "other", {"made": "from"})
        assert others is not None
        theirs = [tuple(row) for row in others.collect()]
    expected = sorted([row[1:] for row in ROWS if not row[0]] * 2, key=str)
    found: list[Any] = [tuple(row) for row in warehouse.read(spark, OWN).collect()]
    assert sorted(found, key=str) == expected
    assert sorted(theirs, key=str) == sorted([row for row in ROWS if row[0]] * 2, key=str)
    stored = warehouse.stored("own")
    assert stored is not None
    assert (stored.rows, stored.made_from) == (len(expected), {"made": "from"})
    assert not list((tmp_path / "wh").rglob("own_parted/run=*"))


def test_without_rows_there_is_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = Warehouse(str(tmp_path / "wh"))
    with warehouse.writing() as writing:
        assert writing.replace_part(OWN, Worked(spark.range(1).toDF("id"), nothing, ODD), "other", {}) is None
        writing.replace(OTHER, None, {"made": "from"})
    assert warehouse.read(spark, OTHER).collect() == []
    assert warehouse.read(spark, OWN).collect() == []
    assert warehouse.rows(OWN, OTHER) == {"own": 0, "other": 0}
    assert warehouse.is_made_from(OTHER, {"made": "from"})
