"""A `RebalancePlan` for machines: the `data` of the JSON, whose keys are fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmqlb.model.plan import (
    Comparison,
    ConsumerPlan,
    Move,
    ObservedOwners,
    RebalancePlan,
    Spread,
    Summary,
    TriedCondition,
)
from rmqlb.views.plan.settling import settling_data
from rmqlb.views.report import conditions_data

if TYPE_CHECKING:
    from rmqlb.views.shapes.plan import (
        ComparisonData,
        ConsumerPlanData,
        EvennessData,
        MoveData,
        ObservedData,
        PlanData,
        PlanSummaryData,
        SpreadData,
    )


def plan_data(plan: RebalancePlan, conditions: Sequence[TriedCondition]) -> PlanData:
    """The whole result."""
    return {
        "group": plan.group,
        "strategy": plan.strategy_before,
        "strategyAfter": plan.strategy_after,
        "strategyOrigin": plan.strategy_origin,
        "changes": list(plan.changes),
        "topics": [
            {"topic": topic.topic, "queues": [move_data(move) for move in topic.moves]} for topic in plan.topics
        ],
        "consumers": [_consumer(consumer) for consumer in plan.consumers],
        "sortedConsumersBefore": list(plan.sorted_before),
        "sortedConsumersAfter": list(plan.sorted_after),
        "summary": _summary_data(plan.summary),
        "settling": settling_data(plan.settling),
        "comparison": [_comparison(comparison) for comparison in plan.comparisons],
        "conditions": conditions_data(conditions),
    }


def move_data(move: Move) -> MoveData:
    """What happens to one queue."""
    return {
        "brokerName": move.queue.broker_name,
        "queueId": move.queue.queue_id,
        "ownersBefore": list(move.owners_before or ()),
        "ownersAfter": list(move.owners_after or ()),
        "change": move.change,
        "ownersObserved": None if move.observed is None else list(move.observed),
        "lag": move.lag,
        "reasonBefore": move.reason_before,
        "reasonAfter": move.reason_after,
        "startOffset": move.start_offset,
        "startRule": move.start_rule,
    }


def _consumer(consumer: ConsumerPlan) -> ConsumerPlanData:
    return {
        "clientId": consumer.client_id,
        "queuesBefore": consumer.queues_before,
        "queuesAfter": consumer.queues_after,
        "gained": consumer.gained,
        "lost": consumer.lost,
        "lagGained": consumer.lag_gained,
        "lagLost": consumer.lag_lost,
        "indexBefore": consumer.index_before,
        "indexAfter": consumer.index_after,
        "processesBefore": consumer.processes_before,
        "processesAfter": consumer.processes_after,
        "madeUp": consumer.made_up,
        "idleReason": consumer.idle_reason,
        "queuesObserved": consumer.queues_observed,
    }


def _comparison(comparison: Comparison) -> ComparisonData:
    return {
        "strategy": comparison.strategy,
        "strategyAfter": comparison.strategy_after,
        "summary": _summary_data(comparison.summary),
    }


def _summary_data(summary: Summary) -> PlanSummaryData:
    over = summary.moved_range
    return {
        "moved": summary.moved,
        "leastMoves": summary.least_moves,
        "assigned": summary.assigned,
        "unassigned": summary.unassigned,
        "added": summary.added,
        "removed": summary.removed,
        "lagMoved": summary.lag_moved,
        "publishQueuesBefore": summary.publish_before,
        "publishQueuesAfter": summary.publish_after,
        "idle": summary.after.idle,
        "unowned": summary.after.unowned,
        "multiplyOwned": summary.after.multiply_owned,
        "maxOverMean": summary.after.max_over_mean,
        "before": spread_data(summary.before),
        "after": spread_data(summary.after),
        "movedRange": None if over is None else {"fewest": over.fewest, "most": over.most, "complete": over.complete},
        "duplicateOwners": summary.after.multiply_owned,
        "lagUnassigned": summary.lag_unassigned,
        "lagRemoved": summary.lag_removed,
        "observed": _observed(summary.observed),
    }


def _observed(seen: ObservedOwners | None) -> ObservedData | None:
    if seen is None:
        return None
    return {
        "queues": seen.queues,
        "unassigned": seen.unassigned,
        "duplicateOwners": seen.duplicate_owners,
        "mismatches": seen.mismatches,
        "moved": seen.moved,
    }


def spread_data(spread: Spread) -> SpreadData:
    """A spread's keys, the same wherever one is shown."""
    return {"consumers": spread.consumers, **evenness_data(spread)}


def evenness_data(spread: Spread) -> EvennessData:
    """A spread's keys but for the number of consumers."""
    return {
        "queues": spread.queues,
        "idle": spread.idle,
        "unowned": spread.unowned,
        "multiplyOwned": spread.multiply_owned,
        "sharedId": spread.shared_id,
        "min": spread.least,
        "max": spread.most,
        "mean": spread.mean,
        "maxOverMean": spread.max_over_mean,
    }
