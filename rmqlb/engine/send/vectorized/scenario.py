"""What the kernel of SYNC sends is told: a scenario in plain numbers.

Rules of this file:
- No numpy, so that a plan can be made and looked at without it.
- Times are ticks from the start unless a name ends in `_ms`; brokers, rows (queues), reactions, failures, outcomes,
  reasons and queue lists are numbers from 0; −1 is none.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

NEVER = 1 << 62
OK, REFUSED, TIMEOUT = 0, 1, 2
"""The outcomes that every plan has, by their numbers."""


class PlannedReaction(Struct, frozen=True, kw_only=True):
    """What an attempt meets at a broker that is not healthy; `outcome` is what it ends in if it does not time out.

    `answer` is a status or an error after the broker's own latency; with `gone` there is no address to send to.
    """

    kind: Literal["refused", "timeout", "slow", "answer", "gone"]
    cost: int
    outcome: int


class PlannedFailure(Struct, frozen=True, kw_only=True):
    """One failure; `unlisted` is when the client's list first leaves out the broker while it lasts."""

    broker: int
    began: int
    unlisted: int


class PlannedOutcome(Struct, frozen=True, kw_only=True):
    """One way for an attempt to end, as `Outcome` says; `lesser` is a status below SEND_OK."""

    failed: bool
    lesser: bool
    retry: bool
    isolation: bool
    reachable: bool
    reason: int


class Segment(Struct, frozen=True, kw_only=True):
    """A stretch of time in which nothing happens outside the producer; it ends where the next begins.

    `reactions`, `silent` (the detector gets no answer) and `unlisted` are per broker, `under_way` per failure.
    """

    start: int
    queue_list: int
    reactions: tuple[int, ...]
    silent: tuple[bool, ...]
    under_way: tuple[bool, ...]
    unlisted: tuple[bool, ...]


class SendPlan(Struct, frozen=True, kw_only=True):
    """A scenario of SYNC sends in plain numbers; rules are named as in `ClientProfile`."""

    seed: int
    threads: int
    ticks: int  # per microsecond
    interval: int | None  # ticks between two messages, or None: a thread goes on when its message is done
    limit: int  # how many messages; `NEVER` without limit
    end: int  # no message begins at that time or later; `NEVER` without end
    start_at: int | None  # position of the first thread's first pick, or None for a random one
    attempts: int  # how many a message has at most
    timeout_ms: int
    cap_ms: int | None  # for one attempt that is not the last, or None
    overshoot: int  # how much longer than its budget a timed-out attempt takes
    empty: int  # how long an attempt takes that has no time at all
    index_step: Literal["mask", "wrap", "fold", "clamp"]
    any_start: bool
    plain_scan: bool  # the plain pick passes over the last broker without moving the index on
    strategy: Literal["plain", "filter", "scan"]  # `plain` without latency fault
    scan_last: Literal["ignore", "avoid", "same"]
    needs_reach: bool  # a broker that waits for the detector is not available either
    resets: bool
    only_extends: bool
    thresholds: tuple[tuple[int, int], ...]  # (latency in ms, isolation in ms), by the order of the client's own tables
    isolation_ms: int  # of a failure
    detects: bool
    brokers: int
    row_brokers: tuple[int, ...]  # per row, the queue's broker
    lists: tuple[tuple[int, ...], ...]  # the queue lists, each a tuple of rows
    segments: tuple[Segment, ...]  # the first from 0 on
    reactions: tuple[PlannedReaction, ...]
    failures: tuple[PlannedFailure, ...]
    outcomes: tuple[PlannedOutcome, ...]  # the first three are `OK`, `REFUSED` and `TIMEOUT`
    reasons: int  # how many reasons for a loss there are; the last is that the deadline passed between two attempts
    # the latency tables that occur, (equally likely values, finer values of the last) in microseconds
    tables: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    broker_tables: tuple[int, ...]  # per broker, which of them
