"""What the page shows, as frozen rows: a field is a column of the same name in camelCase.

Rules of this file:
- None is unknown.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass

SKEW_BINS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, math.inf)
"""Bounds of the bins of skew; a bin's lower bound belongs to it. Skew is most / mean, so it is never below 1."""
EVEN, LOPSIDED = 1.25, 2.0
"""Up to the first a group counts as even; from the second on its busiest member has twice its due."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What is known of a cluster: its snapshots, and its groups in the last of them that was scored."""

    cluster: str
    snapshots: int | None
    first_date: dt.date | None
    last_date: dt.date | None
    groups: int | None
    members: int | None
    queues: int | None
    idle: int | None
    unowned: int | None


@dataclass(frozen=True, slots=True)
class Totals:
    """All groups under the strategy that each runs.

    `lopsided`, `with_idle` and so on count groups; `surplus`: idle
    members of groups that have more members than queues; `on_one_member`: groups with more than half of their lag
    waiting for one of several members. `observed`: queues whose holders were looked for; `drift`: those of them that
    others hold than the strategy says; `held_by_nobody` and `held_by_several` are what was seen, None when FLEET does
    not tell.
    """

    groups: int
    lopsided: int
    with_idle: int
    idle: int
    surplus: int
    with_unowned: int
    unowned: int
    with_multiply_owned: int
    multiply_owned: int
    on_one_member: int
    observed: int
    with_drift: int
    drift: int
    held_by_nobody: int | None
    held_by_several: int | None


@dataclass(frozen=True, slots=True)
class GroupScore:
    """A group under the strategy it runs; `lag_share` is the part of its lag that waits for one member."""

    cluster: str
    group: str
    strategy: str
    topics: int | None
    members: int | None
    queues: int | None
    idle: int | None
    unowned: int | None
    multiply_owned: int | None
    most: int | None
    mean: float | None
    skew: float | None
    lag: int | None
    most_lag: int | None
    lag_share: float | None
    first_id_bias: float | None


@dataclass(frozen=True, slots=True)
class SeenGroup:
    """A group as it was seen to hold its queues, beside the strategy it runs; `origin` is how that is known."""

    cluster: str
    group: str
    strategy: str
    origin: str | None
    members: int | None
    observed: int | None
    drift: int | None
    held_by_nobody: int | None
    held_by_several: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class StrategyScores:
    """All groups under one strategy.

    `bins`: groups in each bin of `SKEW_BINS`; `even`: groups up to `EVEN`;
    `refused`: (group, topic) pairs whose clients cannot run it, None when nobody noted them.
    """

    strategy: str
    groups: int
    running: int
    even: int
    median: float | None
    p90: float | None
    worst: float | None
    idle: int | None
    unowned: int | None
    refused: int | None
    bins: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StrategyChange:
    """All groups that do not run a strategy, if they did: in `better` the busiest member gets fewer queues."""

    strategy_after: str
    groups: int
    better: int
    same: int
    worse: int
    queues: int | None
    moved: int | None
    idle_before: int | None
    idle_after: int | None


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A group under the other strategy that suits it best; `gain`: queues that its busiest member has less."""

    cluster: str
    group: str
    strategy: str
    strategy_after: str
    members: int | None
    queues: int | None
    most_before: int | None
    most_after: int | None
    gain: int | None
    moved: int | None
    idle_after: int | None


@dataclass(frozen=True, slots=True)
class MemberChange:
    """All groups that run a strategy, with so many members more or fewer (`subject`: +1, -2, …)."""

    strategy: str
    subject: str
    groups: int
    queues: int | None
    moved: int | None
    idle_before: int | None
    idle_after: int | None


@dataclass(frozen=True, slots=True)
class BrokerLoss:
    """What the loss of a broker does.

    `groups`: with queues moved or removed; `lag_moved`: of those groups whose lag is
    known; `without_write`, `without_read`: topics that had such queues and have none left.
    """

    cluster: str
    broker_name: str
    groups: int | None
    moved: int | None
    removed: int | None
    lag_moved: int | None
    idle_after: int | None
    unowned_after: int | None
    topics: int | None
    without_write: int | None
    without_read: int | None


@dataclass(frozen=True, slots=True)
class Scenario:
    """All topics' producers under a failure schedule, means over the trials.

    `messages`, `extra_attempts` and `lost` are numbers; `losing`: topics that lost a message.
    """

    scenario: str
    latency_fault: bool
    topics: int
    losing: int
    messages: float | None
    extra_attempts: float | None
    lost: float | None
    longest_ms: float | None


@dataclass(frozen=True, slots=True)
class SendTotals:
    """Messages sent and lost in all scenarios, of which the page has the first: numbers."""

    messages: float | None
    lost: float | None


@dataclass(frozen=True, slots=True)
class TopicSends:
    """A topic's producer that loses messages; `lost` with its bounds is a number, `any_lost` a share of the trials."""

    cluster: str
    topic: str
    scenario: str
    latency_fault: bool
    messages: float | None
    lost: float | None
    lost_low: float | None
    lost_high: float | None
    any_lost: float | None


@dataclass(frozen=True, slots=True)
class BrokerSends:
    """Attempts of all topics at one broker; `share` of those at the cluster's brokers."""

    cluster: str
    broker_name: str
    scenario: str
    latency_fault: bool
    attempts: float | None
    failures: float | None
    share: float | None


@dataclass(frozen=True, slots=True)
class MovesDay:
    """Changes of owners on a day, over all groups."""

    date: dt.date
    moved: int
    unassigned: int
    assigned: int
    observed: int


@dataclass(frozen=True, slots=True)
class ChurnDay:
    """Members that came and went on a day, over all groups."""

    date: dt.date
    joined: int
    left: int


@dataclass(frozen=True, slots=True)
class Flapping:
    """A group whose queues go to and fro."""

    cluster: str
    group: str
    moves: int | None
    returns: int | None
    queues: int | None
    days: int | None
    moves_a_day: float | None


@dataclass(frozen=True, slots=True)
class TrendDay:
    """A cluster's groups as they were seen on a day; `p90`: one group in ten is at least so lopsided."""

    cluster: str
    date: dt.date
    groups: int
    median: float | None
    p90: float | None
    idle: int | None
    unowned: int | None


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A document that could not be read."""

    file: str | None
    position: int | None
    bytes: int | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Exported:
    """A table that lies beside the page; `in_csv` is False when it has more rows than a spreadsheet."""

    name: str
    rows: int
    in_csv: bool
