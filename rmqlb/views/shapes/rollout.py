"""`rmqlb/plan-rollout`."""

from __future__ import annotations

from typing import TypedDict

from rmqlb.views.shapes.envelope import ConditionData
from rmqlb.views.shapes.group import GroupTrialsData


class RolloutChoiceData(GroupTrialsData):
    """A way to restart the group's members.

    Attributes:
        trials: how many.
        settled: how many of them settled.
        figures: figure by figure.
        order: client ids in the order in which they go down.
        orderName: how the order came about.
        atOnce: how many go down together.
        pauseMs: from one going down to the next.
        downMs: how long each is away.
        takesMs: until the group is settled, in 95 % of trials; null when it does not always settle.
        best: no other way that was tried is better in what was asked for.
    """

    order: list[str]
    orderName: str
    atOnce: int
    pauseMs: float
    downMs: float
    takesMs: float | None
    best: bool


class MixedStageData(TypedDict):
    """A stage at rest: some members run the new strategy, the others still the old one.

    Attributes:
        changed: how many members run the new one.
        nextId: the member that changes next; null after the last.
        several: queues that two members own as long as it lasts.
        none: queues that nobody owns as long as it lasts.
    """

    changed: int
    nextId: str | None
    several: int
    none: int


class RolloutData(TypedDict):
    """A rolling restart or a change of strategy, planned.

    Attributes:
        group: the group; null when the source names none.
        strategyBefore: by RocketMQ's name.
        strategyAfter: likewise; the same for a mere restart.
        consumers: client ids that are restarted, sorted as clients sort them.
        choices: the ways that were tried, the best first.
        stages: the mixed stages of the best order; empty for a mere restart.
        overlap: queues with several owners or none, summed over these stages.
        overlapIsLeast: no order has fewer.
        conditions: what --fail-on asked for.
    """

    group: str | None
    strategyBefore: str
    strategyAfter: str
    consumers: list[str]
    choices: list[RolloutChoiceData]
    stages: list[MixedStageData]
    overlap: int
    overlapIsLeast: bool
    conditions: list[ConditionData]
