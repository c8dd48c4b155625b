"""Who owns each queue of each group under each strategy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.engine.allocate import full_name
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.arrays.lanes import Bools, Ints
from rmqlb.pipeline.arrow import Batches, batch_of, names_of, null_unless, take_rows
from rmqlb.pipeline.groups.batch_allocator import BatchAllocator, is_vectorized
from rmqlb.pipeline.groups.by_engine import PairAllocation, allocate_by_engine
from rmqlb.pipeline.groups.group_batch import GroupBatch, in_slices, read_batch
from rmqlb.pipeline.schemas import ASSIGNMENTS, GROUP, REFUSALS, Table
from rmqlb.pipeline.spark.progress import Count
from rmqlb.pipeline.spark.worked import Worked

_Parts = Iterator[dict[str, Any]]

PART = "isRefusal"
ALLOCATED = Table("allocated", {**ASSIGNMENTS.columns, PART: "boolean"}, (PART, *ASSIGNMENTS.partitions))
"""Rows of ASSIGNMENTS, and of REFUSALS: these have the reason as `owner`, and nulls where REFUSALS has no column."""


def allocated(fleet: DataFrame, strategies: Sequence[str], settings: Settings, count: Count | None = None) -> Worked:
    """FLEET → ALLOCATED: the rows of ASSIGNMENTS and of REFUSALS, made in one pass."""
    return Worked(fleet, partial(allocated_batches, tuple(strategies), settings), ALLOCATED, count)


def assignments_of(rows: DataFrame) -> DataFrame:
    """ALLOCATED → ASSIGNMENTS: the owners of all queues; a pair whose clients refuse a strategy has none."""
    return rows.where(~fn.col(PART)).select(*ASSIGNMENTS.columns)


def refusals_of(rows: DataFrame) -> DataFrame:
    """ALLOCATED → REFUSALS: the pairs whose clients throw under a strategy."""
    reason = fn.col("owner").alias("reason")
    return rows.where(PART).select(*GROUP, "topic", "strategy", reason).select(*REFUSALS.columns)


def allocated_batches(strategies: Sequence[str], settings: Settings, batches: Batches) -> Batches:
    """Rows of ALLOCATED, some groups at a time, strategy by strategy; pairs that arrays compute come first."""
    for rows in in_slices(batches):
        batch = read_batch(rows)
        allocator = BatchAllocator(batch, settings)
        whole = _Whole(rows, batch)
        for strategy in strategies:
            name = full_name(strategy, settings)
            for columns in _owners(batch, allocator, strategy, settings):
                yield whole.rows(columns, name, is_refusal=False)
            refused = _reasons(batch, allocator, strategy, settings)
            if len(refused["pair"]):
                yield whole.rows(refused, name, is_refusal=True)


class _Whole:
    """Rows of ALLOCATED from columns about pairs, which name each by its number in the batch."""

    def __init__(self, rows: pa.RecordBatch, batch: GroupBatch) -> None:
        self._rows = rows
        self._group_of = batch.group_of
        self._topics = pa.array(batch.topics, pa.string())

    def rows(self, columns: dict[str, Any], strategy: str, *, is_refusal: bool) -> pa.RecordBatch:
        """The columns, and those that follow from the pair; what is not among them is null."""
        pairs = columns.pop("pair")
        known = {
            **take_rows(self._rows, GROUP, self._group_of[pairs]),
            "topic": self._topics.take(pa.array(pairs)),
            "strategy": pa.repeat(strategy, len(pairs)),
            PART: pa.repeat(is_refusal, len(pairs)),
            **columns,
        }
        unknown = {name: pa.nulls(len(pairs)) for name in ALLOCATED.columns if name not in known}
        return batch_of({**known, **unknown}, ALLOCATED)


def _owners(batch: GroupBatch, allocator: BatchAllocator, strategy: str, settings: Settings) -> _Parts:
    if not is_vectorized(strategy, settings):
        yield _by_engine(batch, strategy, settings)
        return
    java = batch.is_java(full_name(strategy, settings))[batch.group_of]
    yield _vectorized(batch, allocator, strategy, java)
    if not java.all():
        yield _by_engine(batch, strategy, settings, np.flatnonzero(~java).tolist())


def _reasons(batch: GroupBatch, allocator: BatchAllocator, strategy: str, settings: Settings) -> dict[str, Any]:
    refused: Sequence[int] | None = None
    java = batch.is_java(full_name(strategy, settings))[batch.group_of]
    if strategy == "CONFIG":
        refused = np.flatnonzero(~java).tolist()  # Java's class looks at nothing, and so never throws
    elif is_vectorized(strategy, settings):
        refused = np.flatnonzero(~java | allocator.refused(strategy, allocator.pairs)).tolist()
    # The text is the engine's; a setting that is missing makes all pairs refuse, so it is asked for those only.
    found = [pair for pair in allocate_by_engine(batch, strategy, settings, refused) if pair.reason is not None]
    reasons = pa.array([pair.reason for pair in found], pa.string())
    return {"pair": np.array([pair.pair for pair in found], np.int64), "owner": reasons}


def _vectorized(batch: GroupBatch, allocator: BatchAllocator, strategy: str, among: Bools) -> dict[str, Any]:
    """Of the pairs that are marked."""
    pairs = allocator.pairs
    owners = batch.ids_at(allocator.places(strategy, pairs))
    kept = np.flatnonzero((among & ~allocator.refused(strategy, pairs))[batch.pair_of])
    return {
        "pair": batch.pair_of[kept],
        "brokerName": names_of(batch.brokers, batch.broker_of[kept]),
        "queueId": batch.queue_ids[kept],
        "owner": names_of(batch.client_ids, owners[kept]),
        "owners": (owners >= 0)[kept],
        "lag": null_unless(batch.lags[kept], batch.lag_known[kept]),
        "mismatch": null_unless(_mismatches(batch, owners)[kept], batch.seen[kept]),
    }


def _mismatches(batch: GroupBatch, owners: Ints) -> Bools:
    """Where the observed owners of a queue are others than its one owner; shape (sum of queues,)."""
    holders = np.bincount(batch.held[:, 0], minlength=len(owners))
    same = np.zeros(len(owners), np.bool_)
    same[batch.held[batch.held[:, 1] == owners[batch.held[:, 0]], 0]] = True
    as_predicted: Bools = np.where(owners < 0, holders == 0, same & (holders == 1))
    return ~as_predicted


def _by_engine(
    batch: GroupBatch, strategy: str, settings: Settings, pairs: Iterable[int] | None = None
) -> dict[str, Any]:
    rows = [row for pair in allocate_by_engine(batch, strategy, settings, pairs) for row in _rows(batch, pair)]
    columns = list(zip(*rows, strict=True)) if rows else [()] * 7
    kinds = (pa.int64(), pa.string(), pa.int32(), pa.string(), pa.int32(), pa.int64(), pa.bool_())
    names = ("pair", "brokerName", "queueId", "owner", "owners", "lag", "mismatch")
    arrays = {name: pa.array(values, kind) for name, values, kind in zip(names, columns, kinds, strict=True)}
    return {**arrays, "pair": np.asarray(arrays["pair"])}


def _rows(batch: GroupBatch, allocated: PairAllocation) -> Iterator[tuple[Any, ...]]:
    """A pair's rows: pair, broker name, queue id, owner, owners, lag, mismatch."""
    seen = _seen(batch, allocated.pair)
    for index, (queue, owners) in enumerate(allocated.owners.items()):
        lag, holders = seen[index] if index < len(seen) else (None, None)
        mismatch = None if holders is None else holders != set(owners)
        for owner in owners or (None,):
            yield allocated.pair, queue.broker_name, queue.queue_id, owner, len(owners), lag, mismatch


def _seen(batch: GroupBatch, pair: int) -> list[tuple[int | None, set[str] | None]]:
    """The lag of each of a pair's queues, and its observed owners; None where nothing is known."""
    end = int(batch.ends[pair])
    rows = slice(end - int(batch.queues[pair]), end)
    cuts = np.searchsorted(batch.held[:, 0], np.arange(rows.start, rows.stop + 1)).tolist()
    held = [batch.client_ids[number] for number in batch.held[cuts[0] : cuts[-1], 1].tolist()]
    lags, lag_known, seen = (values[rows].tolist() for values in (batch.lags, batch.lag_known, batch.seen))
    return [
        (lag if known else None, set(held[begin - cuts[0] : stop - cuts[0]]) if looked else None)
        for lag, known, looked, (begin, stop) in zip(lags, lag_known, seen, pairwise(cuts), strict=True)
    ]
