"""How many consumers a group should have: what is asked of a size, and what each size gives."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from rmqlb.model.limits import Seed
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import RateSource, Result, TriedCondition

Limit = Literal[
    "unassigned",
    "duplicate-owners",
    "max-imbalance",
    "no-idle",
    "max-utilisation",
    "catch-up",
    "drain-in",
    "survive",
    "survive-host",
    "survive-broker",
]
TimeLimit = Literal["catch-up", "drain-in"]
MOST_SIZE = 1000  # consumers
MOST_QUEUES_PER_BROKER = 1024
MOST_ID_TRIALS = 1000
MOST_SIZES = 200_000  # points of all curves of one question


class SizeLimits(Struct, frozen=True, kw_only=True, rename="camel"):
    """The limits of a group of the right size; null or false is no limit.

    In every size each readable queue has one owner. Strategies by rooms, machines or lists may leave some without.
    """

    max_imbalance: Annotated[Annotated[float, Meta(ge=1)] | None, "limit of most queues over the mean"] = None
    no_idle: Annotated[bool, "every consumer has a queue"] = False
    max_utilisation: Annotated[Annotated[float, Meta(gt=0, le=1)] | None, "limit of consuming threads (0..1)"] = None
    outage_ms: Annotated[Annotated[float, Meta(gt=0)] | None, "outage: messages come, none is consumed"] = None
    catch_up_ms: Annotated[Annotated[float, Meta(gt=0)] | None, "limit of the time until its backlog is gone"] = None
    drain_in_ms: Annotated[Annotated[float, Meta(gt=0)] | None, "limit of the time until today's lag is gone"] = None
    survive: Annotated[int, Meta(ge=0, lt=MOST_SIZE), "all limits hold after the loss of any so many consumers"] = 0
    survive_host: Annotated[bool, "all limits hold after the loss of any one host of consumers"] = False
    survive_broker: Annotated[bool, "all limits hold after the loss of any one broker"] = False
    share: Annotated[float, Meta(gt=0, le=1), "least share of ID sets for which all of this holds (0..1)"] = 1.0


class SizeQuestion(Struct, frozen=True, kw_only=True):
    """The sizes to try, and their limits.

    Attributes:
        consumers: the fewest and the most consumers.
        queues_per_broker: the fewest and the most read queues of each topic on each broker; None changes none.
        strategies: RocketMQ's names; of those that need as few consumers and queues, the first is the answer.
        work: queue → seconds that one thread works on its messages of one second; needed for `max_utilisation`.
        lag: queue → seconds that one thread works on the messages that wait now; needed for `drain_in_ms`.
        work_of_topics: topic without a readable queue → its work, spread evenly over the queues that it gets.
        threads: consume threads of a consumer (`consumeThreadMin`, by default 20).
        batch: mean messages of a full listener call; work is that of messages that come alone (`engine/backlog.py`).
        ahead: topic → work of the messages of a queue that a consumer pulls ahead; needed where `batch` is above 1.
        present: client IDs of the group now; future ones are on their machines, for strategies that use machines and
            for `survive_host`, where each host gets the share of consumers that it has now.
        subscribed: present client ID → its topics, if it does not read all. Sizes then keep the present consumers as
            `plan-rebalance --scale-to` does, and further ones read all topics.
        trials: sets of client IDs to try where IDs decide.
    """

    limits: Annotated[SizeLimits, "the strategy of the consumers"] = SizeLimits()
    consumers: tuple[Annotated[int, Meta(ge=1)], Annotated[int, Meta(ge=1, le=MOST_SIZE)]] = (1, 100)
    queues_per_broker: (
        tuple[Annotated[int, Meta(ge=1)], Annotated[int, Meta(ge=1, le=MOST_QUEUES_PER_BROKER)]] | None
    ) = None
    strategies: tuple[str, ...] = ("AVG",)
    work: Mapping[MessageQueue, float] = field(default_factory=dict)
    lag: Mapping[MessageQueue, float] = field(default_factory=dict)
    work_of_topics: Mapping[str, float] = field(default_factory=dict)
    threads: Annotated[int, Meta(ge=1, le=10_000)] = 20
    batch: Annotated[float, Meta(ge=1)] = 1.0
    ahead: Mapping[str, float] = field(default_factory=dict)
    orderly: Annotated[bool, "a queue is consumed by one thread at a time, as `MessageListenerOrderly` has it"] = False
    present: tuple[str, ...] = ()
    subscribed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    sdk: Annotated[str, "the client library that all consumers run, `java`, `go` or `cpp`"] = "java"
    trials: Annotated[int, Meta(ge=1, le=MOST_ID_TRIALS)] = 100
    seed: Annotated[Seed, "random seed of these trials"] = 1


class AfterLoss(Struct, frozen=True, rename="camel"):
    """What is left after the loss that is worst."""

    lost_consumers: Annotated[int, "how many are lost, with their host or without; 0 when a broker is"]
    lost_broker: Annotated[str | None, "the broker that is lost; null when consumers are"]
    imbalance: Annotated[float | None, "afterwards; null when no queue or no consumer is left"]
    idle: Annotated[int, "consumers without a queue afterwards"]
    utilisation: Annotated[float | None, "of the busiest consumer afterwards; null when no work is given"]
    fails: Annotated[tuple[Limit, ...], "limits that no longer hold"]
    unassigned: Annotated[int, "queues without an owner afterwards"] = 0
    duplicate_owners: Annotated[int, "queues with two or more owners afterwards"] = 0
    exact: Annotated[bool, "every loss was tried; false: some were drawn at random, and a worse one may exist"] = True
    lost_host: Annotated[str | None, "the lost host of consumers; null when something else is lost"] = None
    catch_up_ms: Annotated[float | None, "until the backlog of the outage is gone; null: never, or no outage"] = None
    drain_ms: Annotated[float | None, "until the current lag is gone; null is never, or not requested"] = None


class SizePoint(Struct, frozen=True, rename="camel"):
    """A group of one size; where client IDs decide, figures that the wanted share of ID sets does not exceed."""

    consumers: Annotated[int, "number of consumers"]
    imbalance: Annotated[float | None, "most queues of one consumer over the mean; null when no queue has an owner"]
    idle: Annotated[int, "consumers without a queue"]
    utilisation: Annotated[float | None, "consuming share of the busiest consumer's threads; null without work"]
    satisfied: Annotated[bool, "all limits hold"]
    fails: Annotated[tuple[Limit, ...], "limits that do not hold"]
    share: Annotated[float, "share of the sets of client IDs for which all hold (0..1)"]
    unassigned: Annotated[int, "queues without an owner"] = 0
    duplicate_owners: Annotated[int, "queues with two or more owners"] = 0
    after_loss: Annotated[AfterLoss | None, "after the worst loss of consumers; null when none was tried"] = None
    after_broker_loss: Annotated[AfterLoss | None, "after the worst loss of a broker; null in the same cases"] = None
    after_host_loss: Annotated[AfterLoss | None, "after the worst loss of a host; null in the same cases"] = None
    catch_up_ms: Annotated[float | None, "until the backlog of the outage is gone; null: never, or no outage"] = None
    drain_ms: Annotated[float | None, "until the current lag is gone; null is never, or not requested"] = None


class ReplicaCounts(Struct, frozen=True):
    """Sizes for an autoscaler."""

    min: Annotated[int | None, "the fewest consumers that satisfy all limits; null when none do"]
    max: Annotated[int | None, "the most consumers that satisfy all limits"]
    allowed: Annotated[tuple[int, ...], "all tried sizes that satisfy all limits"]


class SizeCandidate(Struct, frozen=True, rename="camel"):
    """A strategy with a number of queues."""

    strategy: str
    queues_per_broker: Annotated[int | None, "read queues of each topic on each broker; null for those that there are"]
    consumers: Annotated[int | None, "the fewest that satisfy all limits; null when none do"]
    allowed: Annotated[int, "how many of the tried sizes satisfy all limits"]
    best: Annotated[SizePoint, "of the answer, or of the size that comes nearest"]


class SizedBacklog(Struct, frozen=True, rename="camel"):
    """How the lag after an outage, or the present lag, goes with the consumers of the answer."""

    limit: Annotated[TimeLimit, "the limit that requires it"]
    ms: Annotated[float | None, "until the lag is gone, including messages that arrive meanwhile; null is never"]
    last_queue: Annotated[MessageQueue, "the queue whose lag goes last, with the first set of client IDs"]
    alone_ms: Annotated[float | None, "the least time with any number of consumers; null: never"]
    slowest_queue: Annotated[MessageQueue, "the queue that takes that time with a consumer of its own"]
    inflow_over_mean: Annotated[float, "inflow of that queue over the mean of its topic's queues"]
    messages: Annotated[float | None, "at the beginning; null when the engine is asked directly"] = None


class SizedTopic(Struct, frozen=True, rename="camel"):
    """A topic of the group."""

    topic: str
    queues: Annotated[int, "its readable queues, as they would be"]
    queues_now: Annotated[int, "its readable queues now"]
    rate_per_second: Annotated[float | None, "their inflow; null when no rate is given"] = None
    consume_ms: Annotated[float | None, "listener time of one of its messages; null without a rate"] = None


class GroupSize(Result, frozen=True):
    """How many consumers a group should have."""

    group: Annotated[str | None, "its name; null when the source names none"]
    consumers: Annotated[int | None, "the fewest that satisfy all limits; null when none of the tried sizes do"]
    strategy: Annotated[str, "the strategy of that answer, or of what comes nearest"]
    queues_per_broker: Annotated[int | None, "read queues per topic and broker; null when they stay as they are"]
    curve: Annotated[tuple[SizePoint, ...], "size by size, under that strategy with those queues"]
    replica_counts: Annotated[ReplicaCounts, "the sizes that satisfy all limits, for an autoscaler"]
    best: Annotated[SizePoint, "the answer, or the size that comes nearest; its `fails` are what blocks it"]
    limits: Annotated[SizeLimits, "the request"]
    topics: Annotated[tuple[SizedTopic, ...], "the topics, by name"]
    consumers_now: Annotated[int | None, "consumers of the group; null when unknown, or when no size describes them"]
    candidates: Annotated[tuple[SizeCandidate, ...], "each strategy and number of queues that was tried"]
    every_order: Annotated[bool, "the figures hold for every order of client IDs; false: they come from trials"]
    trials: Annotated[int, "how many sets of client IDs were tried; 0 where they do not matter"]
    losses: Annotated[
        Literal["counted", "drawn"], "counted, all were tried; drawn, some where afterLoss.exact is false"
    ]
    threads: Annotated[int | None, "consume threads of a consumer; null when no work is given"] = None
    threads_reported: Annotated[bool, "that is the fewest that a consumer reports"] = False
    orderly: Annotated[bool, "a queue is consumed by one thread at a time"] = False
    sdk: Annotated[str, "the client library assumed for all consumers"] = "java"
    mixed_subscriptions: Annotated[bool, "current consumers read different topics; further ones read all"] = False
    backlogs: Annotated[tuple[SizedBacklog, ...], "after the outage and now, as requested"] = ()
    rates: Annotated[RateSource | None, "where the rates come from; null without rates"] = None
    conditions: tuple[TriedCondition, ...] = ()

    def at(self, consumers: int) -> SizePoint | None:
        return next((point for point in self.curve if point.consumers == consumers), None)

    @property
    def now(self) -> SizePoint | None:
        """The present size; if IDs matter, its figures belong to other consumers, unless the present ones were kept."""
        known = self.consumers_now is not None and (self.every_order or self.mixed_subscriptions)
        return self.at(self.consumers_now or 0) if known else None


class SizesSummary(Struct, frozen=True, rename="camel"):
    """All groups in numbers."""

    groups: Annotated[int, "number of groups"]
    satisfied_now: Annotated[int, "groups whose current consumers satisfy all limits"]
    unsatisfied_now: Annotated[int, "groups whose current consumers do not"]
    without_answer: Annotated[int, "groups that no size tried satisfies"]


class SizesOfGroups(Result, frozen=True):
    """How many consumers several groups should have."""

    groups: Annotated[tuple[GroupSize, ...], "each group's size, as rmqlb/group-size has it"]
    summary: Annotated[SizesSummary, "all groups in numbers"]


def sizes_of_groups(sizes: Sequence[GroupSize]) -> SizesOfGroups:
    now = [size.now.satisfied for size in sizes if size.now is not None]
    without = sum(size.consumers is None for size in sizes)
    return SizesOfGroups(tuple(sizes), SizesSummary(len(sizes), now.count(True), now.count(False), without))
