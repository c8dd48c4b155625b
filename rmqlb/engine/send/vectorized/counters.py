"""What the kernel of SYNC sends counts."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from rmqlb.engine.arrays.lanes import Bools, Codes, Ints, PerLane
from rmqlb.engine.send.vectorized.fault_lanes import FaultLanes
from rmqlb.engine.send.vectorized.scenario import NEVER, SendPlan
from rmqlb.engine.send.vectorized.tables import SendTables

_BUFFERED = 64


@dataclass(frozen=True, kw_only=True)
class SendCounts:
    """What came of each trial. Arrays are int64 but for `flagged`, and their first axis is the trial.

    `picks`, `failed` and `stored` are per queue, `lost` per reason, others with a second axis per broker or failure.
    """

    flagged: Bools  # the trial left what is reproduced here, and its figures mean nothing
    picks: Ints
    failed: Ints
    stored: Ints
    stored_by_broker: Ints
    failed_by_broker: Ints
    picks_by_broker: Ints
    attempts: Ints
    messages: Ints
    not_store_ok: Ints
    duplicated: Ints
    lost: Ints
    retries: Ints  # beyond each message's first
    retried: Ints
    failing: Ints  # ticks in failed attempts
    longest: Ints  # ticks of the longest send
    last_done: Ints  # the tick at which the last message was done
    isolations: Ints
    isolated_ticks: Ints  # ticks for which a broker was isolated or not listed
    began: Ints  # when a failure began, −1 when no message came to it
    isolated_at: Ints  # when its broker was first isolated or unlisted while it lasted, or −1

    @classmethod
    def none(cls, plan: SendPlan, trials: int) -> SendCounts:
        rows, brokers, failures = len(plan.row_brokers), plan.brokers, len(plan.failures)
        width = {"picks": rows, "failed": rows, "stored": rows, "lost": plan.reasons, "began": failures}
        by_broker = ("stored_by_broker", "failed_by_broker", "picks_by_broker", "isolations", "isolated_ticks")
        width |= dict.fromkeys(by_broker, brokers)
        width["isolated_at"] = failures
        arrays = {
            field.name: np.zeros((trials, width[field.name]) if field.name in width else trials, np.int64)
            for field in fields(cls)
            if field.name != "flagged"
        }
        return cls(flagged=np.zeros(trials, np.bool_), **arrays)


class LaneCounters(PerLane):
    """Counts while lanes are under way."""

    def __init__(self, tables: SendTables, lanes: int) -> None:
        super().__init__(lanes)
        self._tables = tables
        rows = len(tables.row_brokers)
        # the results; a trial's are there when its lane is at its end
        self.counts = SendCounts.none(tables.plan, lanes)
        self._ids = np.arange(lanes)
        self._attempts = np.zeros(2 * rows * lanes, np.int64)
        self._empty = np.zeros(rows * lanes, np.int64)
        self._buffer = np.empty(_BUFFERED * lanes, np.int64)
        self._filled = 0
        self.started = np.zeros(lanes, np.int64)
        self.not_store_ok = np.zeros(lanes, np.int64)
        self.duplicated = np.zeros(lanes, np.int64)
        self.lost = np.zeros(tables.plan.reasons * lanes, np.int64)  # reason × lanes + lane
        self.retries = np.zeros(lanes, np.int64)
        self.retried = np.zeros(lanes, np.int64)
        self.failing = np.zeros(lanes, np.int64)
        self.longest = np.zeros(lanes, np.int64)
        self.last_done = np.zeros(lanes, np.int64)  # per lane; kept by the caller

    def attempt(self, rows: Ints, lanes: Ints, outcome: Codes | None, took: Ints) -> None:
        cells = rows * (2 * self.lanes)
        cells += lanes
        if outcome is not None:
            failed = self._tables.failed[outcome]
            cells += failed * self.lanes
            lost = failed.nonzero()[0]
            self.failing[lanes[lost]] += took[lost]
        filled = self._filled + len(cells)
        if filled > len(self._buffer):
            self._count()
            filled = len(cells)
        self._buffer[self._filled : filled] = cells
        self._filled = filled

    def pass_deadline(self, rows: Ints, lanes: Ints) -> None:
        """Count picks after the deadline, which lead to no attempt."""
        self._empty[rows * self.lanes + lanes] += 1

    def lose(self, reasons: Ints, lanes: Ints) -> None:
        self.lost[reasons * self.lanes + lanes] += 1

    def keep(self, lanes: Ints) -> None:
        self._count()
        super().keep(lanes)

    def note(self, lanes: Ints, flagged: Bools, end: int, faults: FaultLanes) -> None:
        """Lanes end with their last message, or with the time that they were given: write down their counts."""
        counts, ids, plan = self.counts, self._ids[lanes], self._tables.plan
        self._note_attempts(lanes, ids)
        counts.messages[ids] = self.started[lanes]
        counts.lost[ids] = self.lost.reshape(-1, self.lanes)[:, lanes].T
        for name in ("not_store_ok", "duplicated", "retries", "retried", "failing", "longest", "last_done"):
            getattr(counts, name)[ids] = getattr(self, name)[lanes]
        done = counts.last_done[ids]
        ends = np.where(counts.messages[ids] < plan.limit, np.maximum(done, end), done)
        counts.flagged[ids] = flagged[lanes]
        counts.isolations[ids] = faults.isolations.reshape(-1, self.lanes)[:, lanes].T
        counts.isolated_ticks[ids] = faults.isolated_until(lanes, ends)
        for index, failure in enumerate(plan.failures):
            unlisted = np.where(ends >= failure.unlisted, failure.unlisted, NEVER)
            first = np.minimum(faults.first.reshape(-1, self.lanes)[index, lanes], unlisted)
            counts.began[ids, index] = np.where(ends >= failure.began, failure.began, -1)
            counts.isolated_at[ids, index] = np.where(first < NEVER, first, -1)

    def _note_attempts(self, lanes: Ints, ids: Ints) -> None:
        self._count()
        counts = self.counts
        attempts = self._attempts.reshape(-1, 2, self.lanes)[:, :, lanes]
        counts.stored[ids], counts.failed[ids] = attempts[:, 0].T, attempts[:, 1].T
        picks = self._empty.reshape(-1, self.lanes)[:, lanes] + attempts.sum(axis=1)
        counts.picks[ids] = picks.T
        for broker in range(self._tables.plan.brokers):
            rows = self._tables.row_brokers == broker
            counts.stored_by_broker[ids, broker] = attempts[rows, 0].sum(axis=0)
            counts.failed_by_broker[ids, broker] = attempts[rows, 1].sum(axis=0)
            counts.picks_by_broker[ids, broker] = picks[rows].sum(axis=0)
        counts.attempts[ids] = attempts.sum(axis=(0, 1))

    def _count(self) -> None:
        """Cells of many steps are counted at once: a `bincount` costs as much as there are cells in all."""
        self._attempts += np.bincount(self._buffer[: self._filled], minlength=len(self._attempts))
        self._filled = 0
