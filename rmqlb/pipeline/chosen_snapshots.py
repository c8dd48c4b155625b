"""The rows of some snapshots, one a cluster, found by partitions: those of other clusters and nights are not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rmqlb.pipeline.storage.storage import Where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SEPARATOR = "\n"
_MOST = 10_000
"""Snapshots that a plan names; of more, they are joined."""


def partitions(chosen: Mapping[str, Any]) -> Where:
    """Where the rows of these snapshots (`cluster` → its `date` and `snapshot`) are, with those of others."""
    return {"cluster": frozenset(chosen), "date": frozenset(one.date for one in chosen.values())}


def of_snapshots(frame: DataFrame, chosen: Mapping[str, Any]) -> DataFrame:
    """The rows of these snapshots (`cluster` → its `date` and `snapshot`)."""
    from pyspark.sql import functions as fn

    pairs = [(cluster, one.snapshot) for cluster, one in chosen.items()]
    if len(pairs) > _MOST:
        known = frame.sparkSession.createDataFrame(pairs, "cluster string, snapshot string")
        return frame.join(known, ["cluster", "snapshot"], "left_semi")
    # Two clusters may have one snapshot, when a file was ingested as both.
    names = [f"{cluster}{_SEPARATOR}{snapshot}" for cluster, snapshot in pairs]
    return frame.where(fn.concat_ws(_SEPARATOR, "cluster", "snapshot").isin(names))
