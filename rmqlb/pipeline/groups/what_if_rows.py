"""What would happen to every group: with more or fewer consumers, without a broker, under another strategy.

A sweep is the same batch with other members or queues (`Pairs`), allocated once more; nothing is joined or rebuilt.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from rmqlb.engine.allocate import full_name
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.allocate.vectorized.pairs import among
from rmqlb.engine.arrays.lanes import Bools
from rmqlb.model.route import LOGICAL_PREFIX
from rmqlb.pipeline.arrow import Batches, batch_of, names_of, null_unless, take_rows
from rmqlb.pipeline.groups.batch_allocator import BatchAllocator, is_vectorized
from rmqlb.pipeline.groups.group_batch import GroupBatch, in_slices, read_batch
from rmqlb.pipeline.groups.plans_by_engine import changes_of, plans_by_engine
from rmqlb.pipeline.groups.sweep import Cases, every_broker, every_group, queue_counts, roster, spreads
from rmqlb.pipeline.schemas import BROKER_LOSSES, GROUP, KEY, WHAT_IF
from rmqlb.pipeline.spark.progress import Count
from rmqlb.pipeline.spark.worked import Worked


def what_if(
    fleet: DataFrame, strategies: Sequence[str], settings: Settings, consumers: int = 2, count: Count | None = None
) -> Worked:
    """FLEET → WHAT_IF: every group after every change.

    Members are taken from the end of the sorted list. Where a broker is lost, the queues of static topics stay.
    Strategies that are not vectorized and pairs that refuse one are left out.
    """
    return Worked(fleet, partial(_sweep, tuple(strategies), settings, consumers), WHAT_IF, count)


def broker_losses(topics: DataFrame) -> DataFrame:
    """TOPICS → BROKER_LOSSES: what each topic has left when a broker is lost; static topics have no row."""
    none = fn.array().cast("array<string>")
    reads, writes = (fn.coalesce(f"{name}.brokerName", none) for name in ("subscribe", "publish"))
    each = topics.select(
        *KEY, "topic", "subscribe", "publish", fn.explode(fn.array_union(reads, writes)).alias("broker")
    )
    return (
        each.where(~fn.startswith("broker", fn.lit(LOGICAL_PREFIX)))
        .select(
            *KEY,
            fn.col("broker").alias("brokerName"),
            "topic",
            _total("subscribe").alias("readableQueuesBefore"),
            _left("subscribe").alias("readableQueuesAfter"),
            _total("publish").alias("writableQueuesBefore"),
            _left("publish").alias("writableQueuesAfter"),
        )
        .select(*BROKER_LOSSES.columns)
    )


def _total(column: str | Column) -> Column:
    """Queues in all runs; null when the list is not known."""
    return fn.aggregate(column, fn.lit(0), lambda total, run: total + run["queues"])


def _left(column: str) -> Column:
    """Queues in the runs of other brokers; null when the list is not known."""
    return _total(fn.filter(column, lambda run: run["brokerName"] != fn.col("broker")))


def _sweep(strategies: Sequence[str], settings: Settings, consumers: int, batches: Batches) -> Batches:
    names = [full_name(name, settings) for name in strategies if is_vectorized(name, settings)]
    for rows in in_slices(batches):
        batch = read_batch(rows)
        yield from _Swept(rows, batch, names, settings, consumers).results()
        if batch.sdks:
            yield plans_by_engine(rows, batch, names, settings, consumers)


class _Swept:
    """The groups in a batch of FLEET that Java's rules compute, under every strategy (by its full name) and change."""

    def __init__(
        self, rows: pa.RecordBatch, batch: GroupBatch, strategies: Sequence[str], settings: Settings, consumers: int
    ) -> None:
        self._rows = rows
        self._strategies = strategies
        self._changes = changes_of(consumers)
        self._roster = roster(batch, consumers)
        self._batch = self._roster.batch
        self._allocator = BatchAllocator(self._batch, settings)
        self._now = every_group(among(self._allocator.pairs, self._roster.present(0)), self._batch.groups)
        self._before = {name: self._allocator.places(name, self._now.pairs) for name in strategies}
        self._spread = {name: spreads(self._now, places, self._roster.is_id) for name, places in self._before.items()}
        self._java = {name: batch.is_java(name) for name in strategies}
        self._refused = {name: self._refuses(name, self._now) for name in strategies}

    def results(self) -> Batches:
        real = self._roster.real()
        for name in self._strategies:
            for change in self._changes:
                pairs = among(self._allocator.pairs, self._roster.present(change))
                subject = pa.repeat(f"{change:+d}", self._batch.groups)
                cases = every_group(pairs, self._batch.groups)
                yield self._case(name, name, "consumers", subject, cases, real >= -change)
            for brokers, lost in every_broker(self._batch, self._now.pairs):
                yield self._case(name, name, "broker-lost", names_of(self._batch.brokers, lost), brokers)
            for other in self._strategies:
                if other != name:
                    subject = pa.repeat(other, self._batch.groups)
                    yield self._case(name, other, "strategy", subject, self._now)

    def _case(
        self, name: str, other: str, change: str, subject: Any, cases: Cases, possible: Bools | bool = True
    ) -> pa.RecordBatch:
        after = self._before[other] if cases is self._now else self._allocator.places(other, cases.pairs)
        was, becomes = self._spread[name], spreads(cases, after, self._roster.is_id)
        some = becomes.members > 0
        columns = {
            "strategy": pa.repeat(name, len(cases.groups)),
            "change": pa.repeat(change, len(cases.groups)),
            "subject": subject,
            "strategyAfter": pa.repeat(other, len(cases.groups)),
            "consumersBefore": was.members[cases.groups],
            "consumersAfter": becomes.members,
            "idleBefore": was.idle[cases.groups],
            "idleAfter": becomes.idle,
            "minQueuesPerConsumerAfter": null_unless(becomes.least, some),
            "maxQueuesPerConsumerAfter": null_unless(becomes.most, some),
            "meanQueuesPerConsumerAfter": null_unless(becomes.owned / np.maximum(becomes.members, 1), some),
            **queue_counts(self._batch, cases, self._before[name], after),
        }
        whole = batch_of({**take_rows(self._rows, GROUP, cases.groups), **columns}, WHAT_IF)
        keep = ~(self._refused[name][cases.groups] | self._refuses(other, cases)) & possible
        keep &= (self._java[name] & self._java[other])[cases.groups]
        return whole.filter(pa.array(keep))

    def _refuses(self, name: str, cases: Cases) -> Bools:
        """The cases in which some pair's clients throw."""
        return cases.having(self._allocator.refused(name, cases.pairs))
