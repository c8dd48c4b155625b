"""`--only` on tables."""

from __future__ import annotations

from datetime import date
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pytest

from rmqlb.pipeline.row_filter import RowFilter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NAMES = [
    "a",
    "A",
    "ab",
    "a.b",
    "a\nb",
    "a]",
    "a-b",
    "^",
    "%RETRY%g",
    "",
    "[",
    "b\\",
    "\U0001f600",
    "é",
    "a\n",
    "x$",
    "a b",
]
GLOBS = [
    "a",
    "a*",
    "?",
    "*b",
    "[a]",
    "[!a]",
    "[ab-]*",
    "a.b",
    "[]]",
    "a[]]",
    "[",
    "[a",
    "*%*",
    "[a-c]",
    "b\\",
    "\U0001f600",
    "[\U0001f600é]",
    "$",
    "[!^]",
    "[^a]",
    "*$",
    "**",
    "a?b",
    "[z-a]",
    "[!z-a]",
    "[z-ab]*",
    "[a-c-^]",
    "[--a]?b",
]


def test_patterns_are_the_shells(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(name,) for name in NAMES], "topic string").coalesce(1)
    found = {glob: [row[0] for row in RowFilter(topic=(glob,)).filter(frame).collect()] for glob in GLOBS}
    assert found == {glob: [name for name in NAMES if fnmatchcase(name, glob)] for glob in GLOBS}


@pytest.mark.parametrize(
    ("only", "left"),
    [
        (RowFilter(), "abcd"),
        (RowFilter(cluster=("x", "y")), "abc"),
        (RowFilter(cluster=("x", "y"), group=("g",)), "ac"),
        (RowFilter(topic=("none",)), "abcd"),
        (RowFilter(date=(date(2026, 1, 1), date(2026, 1, 2))), "ab"),
    ],
)
def test_keys_stand_together_and_those_without_a_column_do_not_bear(
    spark: SparkSession, only: RowFilter, left: str
) -> None:
    rows = [
        ("a", "x", "g", date(2026, 1, 1)),
        ("b", "x", "h", date(2026, 1, 2)),
        ("c", "y", "g", None),
        ("d", "z", "g", date(2026, 1, 3)),
    ]
    frame = spark.createDataFrame(rows, "name string, cluster string, group string, date date").coalesce(1)
    assert "".join(row["name"] for row in only.filter(frame).collect()) == left
