"""The order of snapshots, and the history as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rmqlb.pipeline.history.history_tables import READS, history
from rmqlb.pipeline.history.snapshot_timeline import SIGHTINGS, TIMELINE, sightings, timeline, untimed
from rmqlb.pipeline.schemas import HISTORY, SO_FAR
from tests.pipeline.pasts import Shot, day, night, nights, rows, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_snapshots_are_placed_by_time_and_equal_times_are_one_moment(spark: SparkSession) -> None:
    shots = [Shot(night(2), name="late"), Shot(night(1), name="x"), Shot(night(1), name="y")]
    found = timeline(tables(spark, [*shots, Shot(night(9), name="other", cluster="d")])["documents"])
    assert rows(found, *TIMELINE.columns) == [
        ("c", "late", day(2), night(2), 2, False),
        ("c", "x", day(1), night(1), 1, True),
        ("c", "y", day(1), night(1), 1, True),
        ("d", "other", day(9), night(9), 1, False),
    ]


def test_a_snapshot_without_a_time_is_left_out_and_named(spark: SparkSession) -> None:
    documents = tables(spark, [Shot(None, name="when", pieces=3), Shot(night(1), name="then", pieces=2)])["documents"]
    assert rows(timeline(documents), "snapshot", "takenAt") == [("then", night(1))]
    assert rows(untimed(documents), "cluster", "snapshot", "documents") == [("c", "when", 3)]


def test_owners_of_one_moment_are_put_together(spark: SparkSession) -> None:
    shots = [Shot(night(1), {"g": {0: "BA", 1: "C"}}, name="x"), Shot(night(1), {"g": {0: "BD", 2: ""}}, name="y")]
    past = tables(spark, shots)
    found = sightings(timeline(past["documents"]), past["owners"])
    assert dict(found.dtypes) == dict(SIGHTINGS.columns)
    assert rows(found, "queueId", "index", "owners") == [(0, 1, ["A", "B", "D"]), (1, 1, ["C"]), (2, 1, [])]


@pytest.mark.parametrize("shots", [[], nights("A", "B", "A")], ids=["nothing", "something"])
def test_the_history_has_every_table_with_its_schema(spark: SparkSession, shots: list[Shot]) -> None:
    past = tables(spark, shots)
    assert {table.name for table in READS} == set(past)
    with history(past) as made:
        assert {name: dict(frame.dtypes) for name, frame in made.items()} == {
            table.name: dict(spark.createDataFrame([], table.ddl).dtypes) for table in (*HISTORY, *SO_FAR)
        }
        assert (made["sessions"].count(), made["flapping"].count()) == ((3, 1) if shots else (0, 0))
        assert kept(spark) == 3
    assert kept(spark) == 0


def kept(spark: SparkSession) -> int:
    """How many frames Spark keeps."""
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())
