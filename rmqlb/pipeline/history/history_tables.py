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
from rmqlb.pipeline.schemas import (
    CHURN,
    DOCUMENTS,
    FLAPPING,
    GROUPS,
    MOVES,
    OFFSETS,
    OWNERS,
    PROCESSES,
    SESSIONS,
    TREND,
)

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
        yield {
            SESSIONS.name: held,
            MOVES.name: moves(by_day),
            FLAPPING.name: flapping(by_day, held),
            CHURN.name: churn(order, groups, processes),
            TREND.name: trend(order, owners, groups, processes, tables[OFFSETS.name]),
        }
    finally:
        held.unpersist()
        by_day.unpersist()
