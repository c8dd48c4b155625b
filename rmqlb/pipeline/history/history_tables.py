"""Stage 6: what many snapshots tell together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from rmqlb.pipeline.history.churn import churn
from rmqlb.pipeline.history.moves import days, flapping, moves
from rmqlb.pipeline.history.sessions import sessions
from rmqlb.pipeline.history.snapshot_timeline import timeline
from rmqlb.pipeline.history.trend import trend
from rmqlb.pipeline.schemas import DOCUMENTS, GROUPS, HISTORY, OFFSETS, OWNERS, PROCESSES

READS = (DOCUMENTS, OWNERS, GROUPS, PROCESSES, OFFSETS)
"""The tables that `history` is made from."""


@contextmanager
def history(tables: Mapping[str, DataFrame]) -> Iterator[dict[str, DataFrame]]:
    """The tables of the history by name, to be written inside the block in this order.

    Several are made from sessions and days, which take long: Spark keeps these on disk until the block ends.
    """
    order = timeline(tables[DOCUMENTS.name])
    owners, groups, processes = (tables[table.name] for table in (OWNERS, GROUPS, PROCESSES))
    held = sessions(order, owners).persist(StorageLevel.DISK_ONLY)
    by_day = days(order, owners, groups).persist(StorageLevel.DISK_ONLY)
    try:
        joined = churn(order, groups, processes)
        balance = trend(order, owners, groups, processes, tables[OFFSETS.name])
        frames = (held, moves(by_day), flapping(by_day, held), joined, balance)
        yield {table.name: frame for table, frame in zip(HISTORY, frames, strict=True)}
    finally:
        held.unpersist()
        by_day.unpersist()
