"""`rmqlb/plan`."""

from __future__ import annotations

from typing import TypedDict

from rmqlb.model.plan import Change, Origin
from rmqlb.views.shapes.envelope import ConditionData


class MoveData(TypedDict):
    """A queue before and after the change.

    Attributes:
        brokerName: its broker.
        queueId: its number there, from 0.
        ownersBefore: predicted client ids; none when nobody owns it, or when it does not exist before.
        ownersAfter: likewise.
        change: same, moved, assigned (had no owner), unassigned (has none now), added or removed (the queue itself).
        ownersObserved: the owners that the source saw; null when it saw none for this queue.
        lag: messages not yet read.
        reasonBefore: why it goes where it goes before; null without --explain.
        reasonAfter: likewise afterwards.
        startOffset: where a new owner starts to pull; null when it is not known, or nobody else takes the queue.
        startRule: how that comes about: stored, end, beginning, timestamp, refused or unknown; null likewise.
    """

    brokerName: str
    queueId: int
    ownersBefore: list[str]
    ownersAfter: list[str]
    change: Change
    ownersObserved: list[str] | None
    lag: int | None
    reasonBefore: str | None
    reasonAfter: str | None
    startOffset: int | None
    startRule: str | None


class TopicMovesData(TypedDict):
    """The queues of a topic.

    Attributes:
        topic: its name.
        queues: in the clients' order.
    """

    topic: str
    queues: list[MoveData]


class ConsumerPlanData(TypedDict):
    """A client id over all topics of the plan.

    Attributes:
        clientId: the id.
        queuesBefore: number of queues that it owns before.
        queuesAfter: likewise afterwards.
        gained: number of queues that it owns only afterwards.
        lost: number of queues that it owns only before.
        lagGained: messages waiting in the queues gained; null when not known for all of them.
        lagLost: likewise for the queues lost.
        indexBefore: its place among the sorted members, from 0; null when it is not there.
        indexAfter: likewise afterwards.
        processesBefore: how many processes carry the id.
        processesAfter: likewise afterwards.
        madeUp: the id was invented, because only a number was asked for.
        idleReason: why it gets nothing afterwards; null when it gets something or is gone.
        queuesObserved: number of queues that it was seen to own before the change; null when no owner was seen.
    """

    clientId: str
    queuesBefore: int
    queuesAfter: int
    gained: int
    lost: int
    lagGained: int | None
    lagLost: int | None
    indexBefore: int | None
    indexAfter: int | None
    processesBefore: int
    processesAfter: int
    madeUp: bool
    idleReason: str | None
    queuesObserved: int | None


class EvennessData(TypedDict):
    """How evenly queues lie on consumers.

    Attributes:
        queues: queues that exist.
        idle: consumers without a queue.
        unowned: queues without an owner.
        multiplyOwned: queues with several client ids as owners.
        sharedId: queues whose owner's id several processes carry, so that each of them reads the queue.
        min: queues of the consumer with the fewest; null without consumers.
        max: queues of the consumer with the most; null without consumers.
        mean: queues a consumer; null without consumers.
        maxOverMean: 1 is perfectly even; null when there is nothing to divide.
    """

    queues: int
    idle: int
    unowned: int
    multiplyOwned: int
    sharedId: int
    min: int | None
    max: int | None
    mean: float | None
    maxOverMean: float | None


class SpreadData(EvennessData):
    """How evenly queues lie on how many consumers.

    Attributes:
        queues: queues that exist.
        idle: consumers without a queue.
        unowned: queues without an owner.
        multiplyOwned: queues with several client ids as owners.
        sharedId: queues whose owner's id several processes carry, so that each of them reads the queue.
        min: queues of the consumer with the fewest; null without consumers.
        max: queues of the consumer with the most; null without consumers.
        mean: queues a consumer; null without consumers.
        maxOverMean: 1 is perfectly even; null when there is nothing to divide.
        consumers: distinct client ids.
    """

    consumers: int


class MovedRangeData(TypedDict):
    """How many queues move, wherever client ids that are not known yet sort.

    Attributes:
        fewest: in the best order.
        most: in the worst.
        complete: all orders were tried; otherwise others may have fewer or more.
    """

    fewest: int
    most: int
    complete: bool


class ObservedData(TypedDict):
    """The owners that the source saw before the change.

    Attributes:
        queues: queues whose owners it saw.
        unassigned: those of them that nobody owned.
        duplicateOwners: those with several owners.
        mismatches: those whose owners are not the predicted ones.
        moved: those that had an owner and get another one afterwards.
    """

    queues: int
    unassigned: int
    duplicateOwners: int
    mismatches: int
    moved: int


class PlanSummaryData(TypedDict):
    """A plan in numbers; but for `observed` all of it is predicted.

    Attributes:
        moved: queues that go from one owner to another.
        leastMoves: the fewest moves of any plan that leaves each topic even; null without a consumer afterwards.
        assigned: queues that had no owner and get one.
        unassigned: queues that lose their owner and get none.
        added: queues that exist only afterwards.
        removed: queues that exist only before.
        lagMoved: messages waiting in the queues that move; null when not known for all of them.
        publishQueuesBefore: queues that producers see before.
        publishQueuesAfter: likewise afterwards.
        idle: consumers without a queue afterwards.
        unowned: queues without an owner afterwards.
        multiplyOwned: queues with several owners afterwards.
        maxOverMean: of the queues a consumer afterwards.
        before: the spread before.
        after: the spread afterwards.
        movedRange: moved over the orders of client ids that are not known yet; null when the ids themselves decide.
        duplicateOwners: queues with several owners afterwards, as multiplyOwned.
        lagUnassigned: messages waiting in the queues without an owner afterwards; null when not known for all of them.
        lagRemoved: likewise in the queues that exist only before.
        observed: what was seen of the owners; null when nothing was.
    """

    moved: int
    leastMoves: int | None
    assigned: int
    unassigned: int
    added: int
    removed: int
    lagMoved: int | None
    publishQueuesBefore: int
    publishQueuesAfter: int
    idle: int
    unowned: int
    multiplyOwned: int
    maxOverMean: float | None
    before: SpreadData
    after: SpreadData
    movedRange: MovedRangeData | None
    duplicateOwners: int
    lagUnassigned: int | None
    lagRemoved: int | None
    observed: ObservedData | None


class SettlingData(TypedDict):
    """What the group goes through in between, over a few simulations; times in milliseconds.

    Attributes:
        trials: how many simulations.
        settled: how many of them settled.
        settledMs: the median time until the group is settled, of those that settled; null when none did.
        worstSettledMs: the longest; null when one did not settle.
        longestNoneMs: the longest time that a queue had no owner; null when one has none at either end of the plan.
        longestSeveralMs: likewise with several owners.
        unreadMs: the longest time until a new owner's first pull.
    """

    trials: int
    settled: int
    settledMs: float | None
    worstSettledMs: float | None
    longestNoneMs: float | None
    longestSeveralMs: float | None
    unreadMs: float | None


class ComparisonData(TypedDict):
    """The same change under one strategy.

    Attributes:
        strategy: before.
        strategyAfter: afterwards.
        summary: the plan in numbers.
    """

    strategy: str
    strategyAfter: str
    summary: PlanSummaryData


class PlanData(TypedDict):
    """What a change of consumers, strategy or route does to a group.

    Attributes:
        group: the group; null when the source names none.
        strategy: before, by RocketMQ's name.
        strategyAfter: afterwards.
        strategyOrigin: how the strategy before is known: given, reported (by members), observed (it fits the owners
            seen) or assumed.
        changes: the changes asked for, a line each.
        topics: queue by queue.
        consumers: client id by client id, sorted as clients sort them.
        sortedConsumersBefore: the members in the clients' order, duplicates kept.
        sortedConsumersAfter: likewise afterwards.
        summary: in numbers.
        settling: what the members go through in between; null when that was not simulated.
        comparison: the same change under each strategy asked for.
        conditions: what --fail-on asked for.
    """

    group: str | None
    strategy: str
    strategyAfter: str
    strategyOrigin: Origin
    changes: list[str]
    topics: list[TopicMovesData]
    consumers: list[ConsumerPlanData]
    sortedConsumersBefore: list[str]
    sortedConsumersAfter: list[str]
    summary: PlanSummaryData
    settling: SettlingData | None
    comparison: list[ComparisonData]
    conditions: list[ConditionData]


class PlansSummaryData(TypedDict):
    """What the change does to all groups together.

    Attributes:
        groups: how many.
        queues: queues afterwards.
        moved: queues that go from one owner to another.
        movedRange: moved over the orders of client ids that are not known yet; null when the ids themselves decide.
        assigned: queues that had no owner and get one.
        unassigned: queues that lose their owner and get none.
        added: queues that exist only afterwards.
        removed: queues that exist only before.
        unowned: queues without an owner afterwards.
        duplicateOwners: queues with several owners afterwards.
        lagUnassigned: messages waiting in the queues without an owner afterwards; null when not known for all of them.
        lagRemoved: likewise in the queues that exist only before.
    """

    groups: int
    queues: int
    moved: int
    movedRange: MovedRangeData | None
    assigned: int
    unassigned: int
    added: int
    removed: int
    unowned: int
    duplicateOwners: int
    lagUnassigned: int | None
    lagRemoved: int | None


class PlansData(TypedDict):
    """What a change does to several groups.

    Attributes:
        groups: each group's plan, as rmqlb/plan has it.
        summary: of all of them.
    """

    groups: list[PlanData]
    summary: PlansSummaryData
