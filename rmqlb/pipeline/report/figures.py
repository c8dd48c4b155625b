"""All that the page shows, in one value."""

from __future__ import annotations

from dataclasses import dataclass

from rmqlb.pipeline.report.values import (
    BrokerLoss,
    BrokerSends,
    ChurnDay,
    Cluster,
    Exported,
    Flapping,
    GroupChange,
    GroupScore,
    MemberChange,
    MovesDay,
    Quarantined,
    Scenario,
    SeenGroup,
    SendTotals,
    StrategyChange,
    StrategyScores,
    TopicSends,
    Totals,
    TrendDay,
)


@dataclass(frozen=True, slots=True)
class Worst:
    """The first groups by each kind of fault, under the strategy that each runs; `drift`: as they were seen."""

    totals: Totals
    unowned: tuple[GroupScore, ...]
    lopsided: tuple[GroupScore, ...]
    idle: tuple[GroupScore, ...]
    one_member: tuple[GroupScore, ...]
    drift: tuple[SeenGroup, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """All that the page shows: None is a table that is not there, an empty tuple one without rows.

    `flaps` and `quarantined` count all rows, of which the page has the first.
    """

    clusters: tuple[Cluster, ...] = ()
    worst: Worst | None = None
    strategies: tuple[StrategyScores, ...] | None = None
    strategy_changes: tuple[StrategyChange, ...] | None = None
    gains: tuple[GroupChange, ...] = ()
    member_changes: tuple[MemberChange, ...] | None = None
    brokers: tuple[BrokerLoss, ...] | None = None
    scenarios: tuple[Scenario, ...] | None = None
    send_totals: SendTotals = SendTotals(None, None)
    losing: tuple[TopicSends, ...] = ()
    broker_sends: tuple[BrokerSends, ...] = ()
    moves: tuple[MovesDay, ...] | None = None
    flapping: tuple[Flapping, ...] | None = None
    flaps: int = 0
    churn: tuple[ChurnDay, ...] | None = None
    trend: tuple[TrendDay, ...] | None = None
    quarantine: tuple[Quarantined, ...] | None = None
    quarantined: int = 0
    tables: tuple[Exported, ...] = ()
