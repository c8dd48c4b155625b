"""Reading files at just the paths that are said."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_OF_PATTERNS = re.compile(r"[\\{}\[\]*?]")


def read_parquet(spark: SparkSession, schema: str | StructType, *paths: str, base: str | None = None) -> DataFrame:
    """Parquet with these columns; partitions are folders below `base`, by default below each path."""
    reader = spark.read.schema(schema)
    if base is not None:
        reader = reader.option("basePath", base)
    return reader.parquet(*map(literal, paths))


def literal(path: str) -> str:
    r"""A path in which Spark finds no pattern.

    >>> literal("file:///warehouse [1]")
    'file:///warehouse \\[1\\]'
    """
    return _OF_PATTERNS.sub(r"\\\g<0>", path)
