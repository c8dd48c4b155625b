"""The rows of some snapshots, found by partitions: what lies in other clusters and nights is not read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

_SEPARATOR = "\n"
_MOST = 10_000
"""Snapshots that a plan names; of more, they are joined."""


def of_snapshots(frame: DataFrame, chosen: Sequence[Any]) -> DataFrame:
    """The rows of these snapshots (`cluster`, `date` and `snapshot` of each), of which there is one a cluster."""
    if len(chosen) > _MOST:
        pairs = [(row["cluster"], row["snapshot"]) for row in chosen]
        known = frame.sparkSession.createDataFrame(pairs, "cluster string, snapshot string")
        return frame.where(_in(frame, chosen, "date")).join(known, ["cluster", "snapshot"], "left_semi")
    # Two clusters may have one snapshot, when a file was ingested as both.
    names = [f"{row['cluster']}{_SEPARATOR}{row['snapshot']}" for row in chosen]
    snapshot = fn.concat_ws(_SEPARATOR, "cluster", "snapshot").isin(names)
    return frame.where(_in(frame, chosen, "cluster") & _in(frame, chosen, "date") & snapshot)


def _in(frame: DataFrame, chosen: Sequence[Any], name: str) -> Column:
    """One of their values of a column by which tables are divided; null is one too."""
    column, values = frame[name], {row[name] for row in chosen}
    known = column.isin(sorted(value for value in values if value is not None))
    return known | column.isNull() if None in values else known
