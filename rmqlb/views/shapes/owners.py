"""`rmqlb/owners`."""

from __future__ import annotations

from typing import TypedDict

from rmqlb.views.shapes.plan import EvennessData


class QueueOwnersData(TypedDict):
    """A queue and its owners.

    Attributes:
        topic: its topic.
        brokerName: its broker.
        queueId: its number there, from 0.
        ownersObserved: the owners that the source saw; null when it saw none for this queue.
        lag: messages not yet read.
        owners: strategy → client ids.
        reasons: strategy → why it goes there; null without --explain.
    """

    topic: str
    brokerName: str
    queueId: int
    ownersObserved: list[str] | None
    lag: int | None
    owners: dict[str, list[str]]
    reasons: dict[str, str | None]


class ConsumerOwnsData(TypedDict):
    """What a client id gets under a strategy.

    Attributes:
        clientId: the id.
        queues: how many.
        idleReason: why none; null when it gets some.
    """

    clientId: str
    queues: int
    idleReason: str | None


class StrategyData(EvennessData):
    """How even a strategy is.

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
        strategy: RocketMQ's name.
        consumers: what each client id gets.
        differsFromObserved: queues whose owners seen are others; null when none was seen.
    """

    strategy: str
    consumers: list[ConsumerOwnsData]
    differsFromObserved: int | None


class OwnersData(TypedDict):
    """Who owns each queue under each strategy.

    Attributes:
        group: the group; null when the source names none.
        topics: their names.
        sortedConsumers: the members in the clients' order, duplicates kept.
        queues: queue by queue, in the clients' order.
        strategies: strategy by strategy.
    """

    group: str | None
    topics: list[str]
    sortedConsumers: list[str]
    queues: list[QueueOwnersData]
    strategies: list[StrategyData]


class GroupsSummaryData(TypedDict):
    """All groups in numbers.

    Attributes:
        groups: how many.
        queues: how many queues they have.
        queuesObserved: queues of which the source saw the owners.
        observedUnassigned: those of them that nobody owned.
        observedDuplicateOwners: those with several owners.
    """

    groups: int
    queues: int
    queuesObserved: int
    observedUnassigned: int
    observedDuplicateOwners: int


class OwnersOfGroupsData(TypedDict):
    """Who owns each queue of several groups under each strategy.

    Attributes:
        groups: each group's owners, as rmqlb/owners has them.
        summary: of all of them.
    """

    groups: list[OwnersData]
    summary: GroupsSummaryData
