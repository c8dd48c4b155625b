"""What attempts end in, and after how long: `SyncSender._ends` (`rmqlb.engine.send.sync`) over lanes.

Rules of this file:
- Settled means drawn too: the order of random numbers is the engine's, a latency before the phase of a time-out, and
  who is not asked draws none.
- What cannot happen in a scenario is not looked at: None stands for "no attempt at all", and saves the arrays.
"""

from __future__ import annotations

import numpy as np

from rmqlb.engine.arrays.lanes import Bits, Bools, Codes, Ints, PerLane, Streams
from rmqlb.engine.send.vectorized.scenario import TIMEOUT
from rmqlb.engine.send.vectorized.tables import SendTables

_NONE: Ints = np.zeros(0, np.int64)
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


class Attempts(PerLane):
    """Settles attempts when they begin."""

    def __init__(self, tables: SendTables, streams: Streams) -> None:
        super().__init__(streams.lanes)
        plan = tables.plan
        self._tables, self._plan, self._streams = tables, plan, streams
        first = plan.timeout_ms
        if plan.cap_ms is not None and plan.attempts > 1:
            first = min(first, plan.cap_ms)
        self._first_ms = first
        self._may_be_late = tables.slowest > first * tables.per_ms or first == 0
        self._may_isolate = plan.strategy != "plain" and tables.slowest >= tables.isolates_from
        # per thread, how far into a millisecond its message began, known after a time-out
        self.phase = np.zeros(plan.threads * self.lanes, np.int64)

    def settle(
        self, places: Ints | None, row: Ints, budget: Ints | None, segments: Ints | None
    ) -> tuple[Codes | None, Ints]:
        """What attempts end in, and how long they take.

        Returns outcomes, None when all end in SEND_OK, and ticks; shape (n,).
        """
        tables = self._tables
        brokers = None if tables.one_table and segments is None else tables.row_brokers[row]
        empty: Bools | None = None
        if budget is not None:
            empty = budget == 0
        elif self._first_ms == 0:
            empty = np.ones(len(row), np.bool_)
        met, reaction = self._met(brokers, segments)
        asks: Bools | None = None
        if empty is not None and empty.any():
            empty[met[tables.gone[reaction]]] = False
            asks = ~empty
        outcome: Codes | None = None
        if met.size:
            outcome = np.zeros(len(row), np.int8)
            outcome[met] = tables.outcomes[reaction]
            answers = tables.answers[reaction]
            if not answers.all():
                asks = np.ones(len(row), np.bool_) if asks is None else asks
                asks[met] &= answers
        took = self._latencies(places, brokers, asks, len(row))
        if met.size:
            took[met] = np.where(tables.answers[reaction], took[met], tables.costs[reaction])
        if self._may_be_late or outcome is not None or budget is not None:
            patient = None
            if met.size:
                patient = np.ones(len(row), np.bool_)
                patient[met] = tables.patient[reaction]
            outcome = self._cut(places, outcome, took, budget, patient, empty)
        return outcome, took

    def isolations(self, outcome: Codes | None, took: Ints) -> Ints | None:
        """For how many ticks attempts will isolate their brokers; returns shape (n,); None when no one does."""
        tables = self._tables
        isolates: Ints | None = None
        if self._may_isolate:
            slow = (took >= tables.isolates_from).nonzero()[0]
            if slow.size:
                isolates = np.zeros(len(took), np.int64)
                isolates[slow] = tables.durations(took[slow])
        if outcome is not None:
            isolates = np.zeros(len(took), np.int64) if isolates is None else isolates
            isolates[tables.isolation[outcome]] = self._plan.isolation_ms * tables.per_ms
        return isolates

    def _met(self, brokers: Ints | None, segments: Ints | None) -> tuple[Ints, Ints]:
        """Which attempts meet a broker that is not healthy, and how it reacts."""
        if brokers is None or segments is None:
            return _NONE, _NONE
        reaction = self._tables.reactions[segments * self._plan.brokers + brokers]
        met: Ints = (reaction >= 0).nonzero()[0]
        return met, reaction[met]

    def _cut(
        self,
        places: Ints | None,
        outcome: Codes | None,
        took: Ints,
        budget: Ints | None,
        patient: Bools | None,
        empty: Bools | None,
    ) -> Codes | None:
        """Attempts whose time is over before an answer comes, or at once; `took` is corrected for them."""
        plan, tables = self._plan, self._tables
        # Who refuses or has no address says so whatever the budget is; an attempt without any time writes no request.
        room = self._first_ms * tables.per_ms if budget is None else budget * tables.per_ms
        late = took > room
        if patient is not None:
            late &= patient
        if empty is not None:
            late &= ~empty
        which = late.nonzero()[0]
        if which.size:
            outcome = np.zeros(len(took), np.int8) if outcome is None else outcome
            outcome[which] = TIMEOUT
            took[which] = (room if isinstance(room, int) else room[which]) + plan.overshoot
            if budget is None and plan.cap_ms is None:
                at = which if places is None else places[which]
                bits = self._streams.draw(at) >> _HALF
                self.phase[at] = (bits * np.uint64(tables.per_ms) >> _HALF).astype(np.int64)
        if empty is not None and empty.any():
            outcome = np.zeros(len(took), np.int8) if outcome is None else outcome
            outcome[empty] = TIMEOUT
            took[empty] = plan.empty
        return outcome

    def _latencies(self, places: Ints | None, brokers: Ints | None, asks: Bools | None, count: int) -> Ints:
        """Ticks until healthy brokers answer; lanes that do not ask draw no number, and get 0."""
        if asks is None:
            return self._latency(places, brokers, count)
        took = np.zeros(count, np.int64)
        which = asks.nonzero()[0]
        if which.size:
            at = which if places is None else places[which]
            took[which] = self._latency(at, None if brokers is None else brokers[which], which.size)
        return took

    def _latency(self, places: Ints | None, brokers: Ints | None, count: int) -> Ints:
        tables = self._tables
        if tables.one_table or brokers is None:
            if len(tables.values) == 1:
                return np.full(count, tables.values[0])
            bits = self._streams.draw(places)
            cell = ((bits >> _HALF) * tables.value_counts[0] >> _HALF).astype(np.int64)
            took: Ints = tables.values[cell]
            tail = tables.tails[0]
            if tail is not None:
                _refine(took, bits, cell == len(tables.values) - 1, tail)
            return took
        took = tables.values[tables.value_bases[brokers]]
        drawing = (tables.value_counts[brokers] > 1).nonzero()[0]
        if drawing.size:
            bits = self._streams.draw(drawing if places is None else places[drawing])
            took[drawing] = self._drawn(bits, brokers[drawing])
        return took

    def _drawn(self, bits: Bits, brokers: Ints) -> Ints:
        tables = self._tables
        lengths = tables.value_counts[brokers]
        cell = ((bits >> _HALF) * lengths >> _HALF).astype(np.int64)
        drawn: Ints = tables.values[tables.value_bases[brokers] + cell]
        for broker, tail in enumerate(tables.tails):
            if tail is not None:
                _refine(drawn, bits, (brokers == broker) & (cell == lengths.astype(np.int64) - 1), tail)
        return drawn


def _refine(took: Ints, bits: Bits, last: Bools, tail: Ints) -> None:
    """The last entry of a table stands for a finer one."""
    which = last.nonzero()[0]
    if which.size:
        cell = (bits[which] & _LOW) * np.uint64(len(tail)) >> _HALF
        took[which] = tail[cell.astype(np.int64)]
