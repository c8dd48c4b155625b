"""How many consumers a group should have: what is asked of a size, and what each size gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from rmqlb.model.condition import TriedCondition
from rmqlb.model.limits import Seed
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import Result

Limit = Literal[
    "unassigned", "duplicate-owners", "max-imbalance", "no-idle", "max-utilisation", "survive", "survive-broker"
]
MOST_SIZE = 1000
"""Consumers of the largest group that is looked at."""
MOST_QUEUES_PER_BROKER = 1024
MOST_ID_TRIALS = 1000
MOST_SIZES = 200_000
"""Points of all curves of one question."""


class SizeLimits(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a group of the right size keeps to; what is null or false is not asked for.

    Asked for always: each readable queue has one owner. Strategies that look at rooms, machines or lists may miss that.

    Attributes:
        max_imbalance: most queues of one consumer over the mean, at most.
        max_utilisation: of a consumer's threads, the share that consumes, at most (0..1).
        survive: the same holds after any so many consumers are lost, and after any fewer.
        share: of the sets of client IDs, the share for which all of this holds, at least (0..1).
    """

    max_imbalance: Annotated[float, Meta(ge=1)] | None = None
    no_idle: Annotated[bool, "every consumer has a queue"] = False
    max_utilisation: Annotated[float, Meta(gt=0, le=1)] | None = None
    survive: Annotated[int, Meta(ge=0, lt=MOST_SIZE)] = 0
    survive_broker: Annotated[bool, "the same holds after any one broker is lost"] = False
    share: Annotated[float, Meta(gt=0, le=1)] = 1.0


class SizeQuestion(Struct, frozen=True, kw_only=True):
    """Which sizes are looked at, and what is asked of them.

    Attributes:
        consumers: the fewest and the most consumers that are looked at.
        queues_per_broker: the fewest and the most read queues of each topic on each of its brokers; None leaves them as
            they are.
        strategies: RocketMQ's names; of those that need as few consumers and queues, the first is the answer.
        work: queue → for how many seconds listeners consume what comes into it in a second, by one thread; without
            `max_utilisation` it may be empty.
        work_of_topics: topic without a readable queue → the work of all its messages, in the unit of `work`; the queues
            that `queues_per_broker` gives it share that evenly.
        threads: consume threads of a consumer (`consumeThreadMin`, 20 in a client that was not configured).
        present: client IDs of the group now; the machines of future ones are taken from them, for strategies that look
            at machines or zones.
        subscribed: present client ID → its topics, of the consumers that do not read all topics. Then sizes are made of
            the present consumers, as `plan-rebalance --scale-to` has them, and further ones read all topics.
        trials: sets of client IDs that are tried where IDs decide.
    """

    limits: Annotated[SizeLimits, "what they keep to"] = SizeLimits()
    consumers: tuple[Annotated[int, Meta(ge=1)], Annotated[int, Meta(ge=1, le=MOST_SIZE)]] = (1, 100)
    queues_per_broker: (
        tuple[Annotated[int, Meta(ge=1)], Annotated[int, Meta(ge=1, le=MOST_QUEUES_PER_BROKER)]] | None
    ) = None
    strategies: tuple[str, ...] = ("AVG",)
    work: Mapping[MessageQueue, float] = field(default_factory=dict)
    work_of_topics: Mapping[str, float] = field(default_factory=dict)
    threads: Annotated[int, Meta(ge=1, le=10_000)] = 20
    orderly: Annotated[bool, "a queue is consumed by one thread at a time, as `MessageListenerOrderly` has it"] = False
    present: tuple[str, ...] = ()
    subscribed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    sdk: Annotated[str, "the client library that all consumers run, `java`, `go` or `cpp`"] = "java"
    trials: Annotated[int, Meta(ge=1, le=MOST_ID_TRIALS)] = 100
    seed: Annotated[Seed, "of these"] = 1


class AfterLoss(Struct, frozen=True, rename="camel"):
    """What is left after the loss that is worst."""

    lost_consumers: Annotated[int, "how many are lost; 0 when a broker is"]
    lost_broker: Annotated[str | None, "the broker that is lost; null when consumers are"]
    imbalance: Annotated[float | None, "afterwards; null when no queue or no consumer is left"]
    idle: Annotated[int, "consumers without a queue afterwards"]
    utilisation: Annotated[float | None, "of the busiest consumer afterwards; null when no work is given"]
    fails: Annotated[tuple[Limit, ...], "what does not hold any more"]
    unassigned: Annotated[int, "queues without an owner afterwards"] = 0
    duplicate_owners: Annotated[int, "queues with two or more owners afterwards"] = 0
    exact: Annotated[bool, "every loss was tried; false: some were drawn at random, and a worse one may exist"] = True


class SizePoint(Struct, frozen=True, rename="camel"):
    """A group of one size.

    Attributes:
        imbalance: most queues of one consumer over the mean. Where client IDs decide, the figures are those that the
            share of ID sets asked for does not exceed.
        after_loss: after the worst loss of consumers; null when none is asked for, or when without one something fails
            already with every set of client IDs.
    """

    consumers: Annotated[int, "how many"]
    imbalance: float | None
    idle: Annotated[int, "consumers without a queue"]
    utilisation: Annotated[float | None, "consuming share of the busiest consumer's threads; null without work"]
    satisfied: Annotated[bool, "all limits hold"]
    fails: Annotated[tuple[Limit, ...], "those that do not"]
    share: Annotated[float, "share of the sets of client IDs for which all hold (0..1)"]
    unassigned: Annotated[int, "queues without an owner"] = 0
    duplicate_owners: Annotated[int, "queues with two or more owners"] = 0
    after_loss: AfterLoss | None = None
    after_broker_loss: Annotated[AfterLoss | None, "after the worst loss of a broker; null in the same cases"] = None


class ReplicaCounts(Struct, frozen=True):
    """Sizes for an autoscaler."""

    min: Annotated[int | None, "the fewest consumers that satisfy all limits; null when none do"]
    max: Annotated[int | None, "the most"]
    allowed: Annotated[tuple[int, ...], "all that do, of those looked at"]


class SizeCandidate(Struct, frozen=True, rename="camel"):
    """A strategy with a number of queues."""

    strategy: str
    queues_per_broker: Annotated[int | None, "read queues of each topic on each broker; null for those that there are"]
    consumers: Annotated[int | None, "the fewest that satisfy all limits; null when none do"]
    allowed: Annotated[int, "how many of the sizes looked at do"]
    best: Annotated[SizePoint, "of the answer, or of the size that comes nearest"]


class SizedTopic(Struct, frozen=True, rename="camel"):
    """A topic of the group."""

    topic: str
    queues: Annotated[int, "its readable queues, as they would be"]
    queues_now: Annotated[int, "its readable queues now"]
    rate_per_second: Annotated[float | None, "messages that come into them; null when no rate is given"] = None
    consume_ms: Annotated[float | None, "listener time of one of its messages; null without a rate"] = None


class GroupSize(Result, frozen=True):
    """How many consumers a group should have.

    Attributes:
        consumers_now: how many consumers the group has; null when that is unknown, or when they share client IDs or run
            several strategies or libraries, which no size describes.
        every_order: the figures hold for every order of client IDs, because only the place in it decides; false: they
            come from trials with different IDs.
        losses: counted, every loss of consumers was tried in every size; drawn, where `afterLoss.exact` is false some
            were drawn at random, and a worse one may exist.
        mixed_subscriptions: present consumers read different topics: each size keeps as many of them as it has, and
            further consumers read all topics.
    """

    group: Annotated[str | None, "its name; null when the source names none"]
    consumers: Annotated[int | None, "the fewest that satisfy all limits; null when none of those looked at do"]
    strategy: Annotated[str, "the strategy of that answer, or of what comes nearest"]
    queues_per_broker: Annotated[int | None, "read queues per topic and broker; null when they stay as they are"]
    curve: Annotated[tuple[SizePoint, ...], "size by size, under that strategy with those queues"]
    replica_counts: Annotated[ReplicaCounts, "the sizes that satisfy all limits, for an autoscaler"]
    best: Annotated[SizePoint, "the answer, or the size that comes nearest; its `fails` are what blocks it"]
    limits: Annotated[SizeLimits, "what was asked for"]
    topics: Annotated[tuple[SizedTopic, ...], "the topics, by name"]
    consumers_now: int | None
    candidates: Annotated[tuple[SizeCandidate, ...], "each strategy and number of queues that was looked at"]
    every_order: bool
    trials: Annotated[int, "how many sets of client IDs were tried; 0 where they do not matter"]
    losses: Literal["counted", "drawn"]
    threads: Annotated[int | None, "consume threads of a consumer; null when no work is given"] = None
    orderly: Annotated[bool, "a queue is consumed by one thread at a time"] = False
    sdk: Annotated[str, "the client library that all consumers are taken to run"] = "java"
    mixed_subscriptions: bool = False
    conditions: tuple[TriedCondition, ...] = ()

    def at(self, consumers: int) -> SizePoint | None:
        """The point of that size; None when it was not looked at."""
        return next((point for point in self.curve if point.consumers == consumers), None)
