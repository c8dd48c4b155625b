"""What the kernel of SYNC sends is told: a scenario in plain numbers.

Rules of this file:
- No numpy, so that a plan can be made and looked at without it.
- Times are ticks from the start unless a name ends in `_ms`; brokers, rows (queues), reactions, failures, outcomes,
  reasons and queue lists are numbers from 0; −1 is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NEVER = 1 << 62
OK, REFUSED, TIMEOUT = 0, 1, 2
"""The outcomes that every plan has, by their numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedReaction:
    """What an attempt meets at a broker that is not healthy.

    Attributes:
        kind: refused; timeout; slow; answer: a status or an error after the broker's own latency; gone: there is no
            address to send to.
        cost: how long a refusal, a slow answer or the lack of an address takes.
        outcome: what an attempt ends in that does not time out.
    """

    kind: Literal["refused", "timeout", "slow", "answer", "gone"]
    cost: int
    outcome: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedFailure:
    """One failure of one broker.

    Attributes:
        broker: whose; −1 for a broker without queues.
        began: when it begins.
        unlisted: when the client's list first leaves out the broker while it lasts.
    """

    broker: int
    began: int
    unlisted: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedOutcome:
    """One way for an attempt to end.

    Attributes:
        failed: nothing was stored.
        lesser: it was stored with a lesser status.
        retry: another broker is tried.
        isolation: the fault strategy is told of a failure.
        reachable: what it is told of the broker's reachability.
        reason: which reason a message is counted under that is lost by it.
    """

    failed: bool
    lesser: bool
    retry: bool
    isolation: bool
    reachable: bool
    reason: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """A stretch of time in which nothing happens outside the producer.

    Attributes:
        start: its first tick; it ends where the next begins.
        queue_list: which list a message takes that begins in it.
        reactions: per broker, what an attempt meets, or −1.
        silent: per broker, whether the detector's question gets no answer.
        under_way: per failure, whether it lasts.
        unlisted: per broker, whether the client's list leaves it out.
    """

    start: int
    queue_list: int
    reactions: tuple[int, ...]
    silent: tuple[bool, ...]
    under_way: tuple[bool, ...]
    unlisted: tuple[bool, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SendPlan:
    """A scenario of SYNC sends in plain numbers.

    Attributes:
        seed: of all random numbers.
        threads: sending threads.
        ticks: ticks a microsecond.
        interval: ticks between two messages, or None: a thread goes on when its message is done.
        limit: how many messages; `NEVER` without limit.
        end: no message begins at that time or later; `NEVER` without end.
        start_at: position of the first thread's first pick, or None for a random one.
        attempts: how many a message has at most.
        timeout_ms: for all attempts of a message together.
        cap_ms: for one attempt that is not the last, or None.
        overshoot: how much longer than its budget a timed-out attempt takes.
        empty: how long an attempt takes that has no time at all.
        index_step: what the round robin's index does, as in `ClientProfile`.
        any_start: the index starts at any 32-bit number, else at a magnitude.
        plain_scan: the plain pick passes over the last broker without moving the index on.
        strategy: how a queue is picked: `plain` without latency fault, else `filter` or `scan`.
        scan_last: what a scan makes of the last broker: `ignore` it, `avoid` it, or insist on the `same`.
        needs_reach: a broker that waits for the detector is not available either.
        resets: a retry starts the round robin anew at a random place.
        only_extends: an update never shortens an isolation.
        thresholds: (latency in ms, isolation in ms), by the order of the client's own tables.
        isolation_ms: of a failure.
        detects: the detector is at work.
        brokers: how many there are.
        row_brokers: per row, the queue's broker.
        lists: the queue lists, each a tuple of rows.
        segments: the stretches of time, the first from 0 on.
        reactions: those that occur.
        failures: in the scenario's order.
        outcomes: the first three are `OK`, `REFUSED` and `TIMEOUT`.
        reasons: how many reasons for a loss there are; the last is that the deadline passed between two attempts.
        tables: the latency tables that occur, (equally likely values, finer values of the last) in microseconds.
        broker_tables: per broker, which of them.
    """

    seed: int
    threads: int
    ticks: int
    interval: int | None
    limit: int
    end: int
    start_at: int | None
    attempts: int
    timeout_ms: int
    cap_ms: int | None
    overshoot: int
    empty: int
    index_step: Literal["mask", "wrap", "fold", "clamp"]
    any_start: bool
    plain_scan: bool
    strategy: Literal["plain", "filter", "scan"]
    scan_last: Literal["ignore", "avoid", "same"]
    needs_reach: bool
    resets: bool
    only_extends: bool
    thresholds: tuple[tuple[int, int], ...]
    isolation_ms: int
    detects: bool
    brokers: int
    row_brokers: tuple[int, ...]
    lists: tuple[tuple[int, ...], ...]
    segments: tuple[Segment, ...]
    reactions: tuple[PlannedReaction, ...]
    failures: tuple[PlannedFailure, ...]
    outcomes: tuple[PlannedOutcome, ...]
    reasons: int
    tables: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    broker_tables: tuple[int, ...]
