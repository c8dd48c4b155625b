"""Who owns each queue of each group under each strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from rmqlb.engine.allocate import full_name
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.arrays.lanes import Bools, Ints
from rmqlb.pipeline.arrow import Batches, batch_of, names_of, null_unless, take_rows
from rmqlb.pipeline.groups.batch_allocator import BatchAllocator, is_vectorized
from rmqlb.pipeline.groups.by_engine import PairAllocation, allocate_by_engine
from rmqlb.pipeline.groups.group_batch import GroupBatch, read_batch
from rmqlb.pipeline.schemas import ASSIGNMENTS, GROUP, REFUSALS, Table
from rmqlb.pipeline.spark.in_workers import in_workers

_Parts = Iterator[dict[str, Any]]
_PartsOf = Callable[[GroupBatch, BatchAllocator, str, Settings], _Parts]


def assignments(fleet: DataFrame, strategies: Sequence[str], settings: Settings) -> DataFrame:
    """FLEET → ASSIGNMENTS: the owners of all queues; a pair whose clients refuse a strategy has none."""
    return in_workers(fleet, partial(assignment_batches, strategies, settings), ASSIGNMENTS.ddl)


def refusals(fleet: DataFrame, strategies: Sequence[str], settings: Settings) -> DataFrame:
    """FLEET → REFUSALS: the pairs whose clients throw under a strategy."""
    return in_workers(fleet, partial(refusal_batches, strategies, settings), REFUSALS.ddl)


def _under_each(
    parts_of: _PartsOf, table: Table, strategies: Sequence[str], settings: Settings, batches: Batches
) -> Batches:
    """Rows of the table, strategy by strategy, from columns about pairs, which name each by its number in the batch.

    Pairs that arrays compute come before those that the engine does.
    """
    for rows in batches:
        batch = read_batch(rows)
        allocator = BatchAllocator(batch, settings)
        for strategy in strategies:
            for columns in parts_of(batch, allocator, strategy, settings):
                pairs = columns.pop("pair")
                of_pairs = {
                    **take_rows(rows, GROUP, batch.group_of[pairs]),
                    "topic": pa.array(batch.topics, pa.string()).take(pa.array(pairs)),
                    "strategy": pa.repeat(full_name(strategy, settings), len(pairs)),
                }
                yield batch_of({**of_pairs, **columns}, table)


def _owners(batch: GroupBatch, allocator: BatchAllocator, strategy: str, settings: Settings) -> _Parts:
    if not is_vectorized(strategy, settings):
        yield _by_engine(batch, strategy, settings)
        return
    java = batch.is_java(full_name(strategy, settings))[batch.group_of]
    yield _vectorized(batch, allocator, strategy, java)
    if not java.all():
        yield _by_engine(batch, strategy, settings, np.flatnonzero(~java).tolist())


def _reasons(batch: GroupBatch, allocator: BatchAllocator, strategy: str, settings: Settings) -> _Parts:
    refused: Sequence[int] | None = None
    java = batch.is_java(full_name(strategy, settings))[batch.group_of]
    if strategy == "CONFIG":
        refused = np.flatnonzero(~java).tolist()  # Java's class looks at nothing, and so never throws
    elif is_vectorized(strategy, settings):
        refused = np.flatnonzero(~java | allocator.refused(strategy, allocator.pairs)).tolist()
    # The text is the engine's; a setting that is missing makes all pairs refuse, so it is asked for those only.
    found = [pair for pair in allocate_by_engine(batch, strategy, settings, refused) if pair.reason is not None]
    reasons = pa.array([pair.reason for pair in found], pa.string())
    yield {"pair": np.array([pair.pair for pair in found], np.int64), "reason": reasons}


assignment_batches = partial(_under_each, _owners, ASSIGNMENTS)
refusal_batches = partial(_under_each, _reasons, REFUSALS)


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
