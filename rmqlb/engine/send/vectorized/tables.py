"""A plan of SYNC sends as arrays, made once for all blocks of trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rmqlb.engine.arrays.lanes import Bools, Ints
from rmqlb.engine.send.vectorized.scenario import NEVER, SendPlan

_LAST = np.iinfo(np.int64).max


def ints(values: Iterable[int]) -> Ints:
    """One axis of int64."""
    return np.array(list(values), np.int64)


class SendTables:
    """What a plan says, ready to be looked up by arrays of numbers."""

    def __init__(self, plan: SendPlan) -> None:
        self.plan = plan
        self.per_ms = 1000 * plan.ticks
        self._look_outside(plan)
        self._look_at_lists(plan)
        self._look_at_failures(plan)
        self._look_at_latencies(plan)
        self._durations = [(at, duration * self.per_ms) for at, duration in reversed(plan.thresholds)]
        isolating = [at for at, duration in plan.thresholds if duration > 0]
        # the least ticks of a success that isolates its broker; `NEVER` when none does
        self.isolates_from = min(isolating) * self.per_ms if isolating else NEVER

    def _look_outside(self, plan: SendPlan) -> None:
        segments = plan.segments
        self.starts = ints(segment.start for segment in segments)  # per segment, its first tick
        self.ends = np.append(self.starts[1:], _LAST)  # per segment, the first tick after it
        self.queue_list = ints(segment.queue_list for segment in segments)
        # segment × brokers + broker → reaction or −1
        self.reactions = ints(reaction for segment in segments for reaction in segment.reactions)
        # segments × brokers, whether the detector gets no answer
        self.silent = _bools([segment.silent for segment in segments], plan.brokers)
        # per segment, whether anyone reacts
        self.failing = np.array([any(index >= 0 for index in segment.reactions) for segment in segments])
        self.under_way = _bools([segment.under_way for segment in segments], len(plan.failures))  # segments × failures
        self.unlisted = _bools([segment.unlisted for segment in segments], plan.brokers)  # segments × brokers
        lengths = np.diff(self.starts)[:, None]
        before = np.zeros_like(self.unlisted, np.int64)
        np.cumsum(self.unlisted[:-1] * lengths, axis=0, out=before[1:])
        # segments × brokers, for how many ticks the broker was unlisted before the segment
        self.unlisted_before = before
        self.ever_unlisted = bool(self.unlisted.any())

    def _look_at_lists(self, plan: SendPlan) -> None:
        self.sizes = ints(len(rows) for rows in plan.lists)
        # per queue list, where its places begin in `rows`, which has all lists one after another
        self.bases = np.concatenate(([0], np.cumsum(self.sizes)[:-1])).astype(np.int64)
        self.rows = ints(row for rows in plan.lists for row in rows)
        self.row_brokers = ints(plan.row_brokers)
        self.brokers = self.row_brokers[self.rows]  # the brokers of `rows`
        # per place, how many steps on a queue of another broker comes; the list's length when none does
        self.runs = ints(run for rows in plan.lists for run in _runs([plan.row_brokers[row] for row in rows]))

    def _look_at_failures(self, plan: SendPlan) -> None:
        reactions, outcomes = plan.reactions, plan.outcomes
        self.failure_brokers = ints(failure.broker for failure in plan.failures)
        # per reaction, ticks of a refusal, a slow answer or the lack of an address; `NEVER` for silence
        self.costs = ints(NEVER if reaction.kind == "timeout" else reaction.cost for reaction in reactions)
        # per reaction, whether the broker answers after its own latency
        self.answers = np.array([reaction.kind == "answer" for reaction in reactions], np.bool_)
        # per reaction, whether an attempt that meets it can time out
        self.patient = np.array([reaction.kind not in ("refused", "gone") for reaction in reactions], np.bool_)
        self.gone = np.array([reaction.kind == "gone" for reaction in reactions], np.bool_)
        self.outcomes = np.array([reaction.outcome for reaction in reactions], np.int8)
        # per outcome, as are `lesser`, `retry`, `isolation`, `reachable` and `reason`
        self.failed = np.array([outcome.failed for outcome in outcomes])
        self.lesser = np.array([outcome.lesser for outcome in outcomes])
        self.retry = np.array([outcome.retry for outcome in outcomes])
        self.isolation = np.array([outcome.isolation for outcome in outcomes])
        self.reachable = np.array([outcome.reachable for outcome in outcomes])
        self.reason = ints(outcome.reason for outcome in outcomes)

    def _look_at_latencies(self, plan: SendPlan) -> None:
        tables = [ints(table) * plan.ticks for table, _ in plan.tables]
        finer = [ints(tail) * plan.ticks for _, tail in plan.tables]
        bases = np.concatenate(([0], np.cumsum([len(table) for table in tables])[:-1])).astype(np.int64)
        of = ints(plan.broker_tables)
        self.values = np.concatenate(tables)  # all latency tables in ticks, one after another
        self.value_bases = bases[of]  # per broker, where its table begins
        # per broker, how long it is; uint64
        self.value_counts = ints(len(table) for table in tables)[of].astype(np.uint64)
        # per broker, its finer values in ticks; None without
        self.tails = [finer[index] if len(finer[index]) else None for index in plan.broker_tables]
        self.one_table = len(tables) == 1
        self.longest = max(int(part.max()) for part in (*tables, *finer) if len(part))
        # the longest time that an attempt can take and be answered
        self.slowest = max([self.longest, *(reaction.cost for reaction in plan.reactions)])

    def durations(self, took: Ints) -> Ints:
        """For how many ticks successes isolate their brokers."""
        measured = took // self.per_ms
        isolated = np.zeros_like(took)
        open_ = np.ones(len(took), np.bool_)
        for threshold, duration in self._durations:
            reached = open_ & (measured >= threshold)
            isolated[reached] = duration
            open_ &= ~reached
        return isolated

    def listed_time(self, brokers: Ints, until: Ints) -> Ints:
        """For how many ticks brokers were in the client's list."""
        if not self.ever_unlisted:
            return until
        segment = np.searchsorted(self.starts, until, side="right") - 1
        inside = (until - self.starts[segment]) * self.unlisted[segment, brokers]
        return until - self.unlisted_before[segment, brokers] - inside


def _bools(table: Sequence[Sequence[bool]], width: int) -> Bools:
    return np.array(table, np.bool_).reshape(len(table), width)


def _runs(brokers: Sequence[int]) -> list[int]:
    size = len(brokers)
    runs = [size] * size
    for place in (*range(size - 1, -1, -1), *range(size - 1, -1, -1)):  # twice, for runs across the end
        following = (place + 1) % size
        runs[place] = 1 if brokers[following] != brokers[place] else min(runs[following] + 1, size)
    return runs
