"""Who owns each queue under each of several strategies."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Struct, field

from rmqlb.model.client_versions import SdkUse
from rmqlb.model.group import BROADCASTING
from rmqlb.model.message_queue import MessageQueue, QueueName
from rmqlb.model.result import Result

Basis = Literal["observed", "predicted", "assumed"]  # of owners
Origin = Literal["given", "reported", "observed", "assumed"]  # of a strategy
Change = Literal["same", "moved", "assigned", "unassigned", "added", "removed"]
"""How a queue's owner differs from the one before."""


class Assignment(Struct, frozen=True):
    """Who owns each queue of a topic once every consumer has run its strategy."""

    topic: str
    strategy: str
    queues: tuple[MessageQueue, ...]  # in the clients' order, then queues that only a CONFIG list names
    client_ids: tuple[str, ...]
    owners: Mapping[MessageQueue, tuple[str, ...]]  # queue → client IDs, sorted; empty when it is unassigned
    reasons: Mapping[MessageQueue, str] = field(default_factory=dict)  # queue → why it goes there, if requested
    idle: Mapping[str, str] = field(default_factory=dict)  # consumer without a queue of this topic → why
    failures: Mapping[str, str] = field(default_factory=dict)  # consumer that keeps its queues → text that it throws


class QueuesPerConsumer(Struct, frozen=True):
    """How many queues consumers own; one that several own counts for each of them."""

    min: Annotated[int, "of the consumer with the fewest"]
    mean: Annotated[float, "of all consumers"]
    max: Annotated[int, "of the consumer with the most"]


class Evenness(Struct, frozen=True, rename="camel"):
    """How evenly queues lie on consumers; the judge's measure of any assignment."""

    queues: Annotated[int, "queues that exist, and those that only a CONFIG list names"]
    idle: Annotated[int, "consumers without a queue"]
    unassigned: Annotated[int, "queues without an owner"]
    duplicate_owners: Annotated[int, "queues with several client IDs as owners"]
    queues_of_duplicate_client_ids: Annotated[int, "queues whose owner's client ID belongs to several processes"]
    queues_per_consumer: Annotated[QueuesPerConsumer | None, "fewest, mean and most; null without consumers"]
    imbalance: Annotated[float | None, "most queues of one consumer over the mean; null without owned queues"]

    @property
    def fewest(self) -> int | None:
        return None if self.queues_per_consumer is None else self.queues_per_consumer.min

    @property
    def mean(self) -> float | None:
        return None if self.queues_per_consumer is None else self.queues_per_consumer.mean

    @property
    def most(self) -> int | None:
        return None if self.queues_per_consumer is None else self.queues_per_consumer.max


class Spread(Evenness, frozen=True):
    """How evenly queues lie on how many consumers."""

    consumers: Annotated[int, "distinct client IDs"]


PopShares = Annotated[tuple[int, ...], "popShareQueueNum of the brokers, several where they differ; none by Proxy"]
AssumedShare = Annotated[bool, "popShareQueueNum is unknown, and the brokers' default is assumed"]
ByProxy = Annotated[bool, "its consumers are behind a Proxy, which gives each of them any queue of each broker"]
REPORTED = "strategy → number of consumers that report it; empty where none does"


class QueueOwners(MessageQueue, frozen=True, rename="camel"):
    """A queue and its owners."""

    owners_observed: Annotated[tuple[str, ...] | None, "observed owners; null when none was observed for this queue"]
    lag: Annotated[int | None, "messages not yet read"]
    owners: Annotated[Mapping[str, tuple[str, ...]], "strategy → client IDs, sorted"]
    reasons: Annotated[Mapping[str, str | None], "strategy → why it goes there; null without --explain"]


class ConsumerQueues(Struct, frozen=True, rename="camel"):
    """What a client id gets under a strategy."""

    client_id: str
    queues: Annotated[int, "number of its queues"]
    idle_reason: Annotated[str | None, "why it gets no queue; null when it gets some"]


class StrategyOwners(Evenness, frozen=True):
    """What consumers get under a strategy, and how even that is."""

    strategy: str
    consumers: Annotated[tuple[ConsumerQueues, ...], "what each client ID gets, in the clients' order"]
    mismatches: Annotated[
        int | None, "queues whose observed owners differ from the prediction; null when none was observed"
    ]


class PopQueue(Struct, frozen=True, rename="camel"):
    """A queue, or a broker's queues, and who may read there."""

    broker_name: str
    queue_id: Annotated[int, "its number there; -1 is any queue of the broker"]
    consumers: Annotated[tuple[str, ...] | None, "client IDs, sorted; null behind a Proxy that was not queried"]


class PopTopic(Struct, frozen=True, rename="camel"):
    """A topic that is consumed by POP: no consumer owns a queue of it."""

    topic: str
    strategy: Annotated[str | None, "strategy by which brokers assign; null behind a Proxy, where none decides"]
    pop_share_queue_nums: PopShares
    assumed: AssumedShare
    queues: Annotated[tuple[PopQueue, ...] | None, "consumers by queue; null where brokers lack the strategy"]
    by_proxy: ByProxy = False


class QueueOffsets(MessageQueue, frozen=True, rename="camel"):
    """How far a group has read a queue."""

    broker_offset: Annotated[int | None, "the next message to be stored; null when it is not known"]
    consumer_offset: Annotated[int | None, "next message to finish, -1 when none is stored; null when unknown"]
    lag: Annotated[int | None, "messages not yet read; null when it is not known"]


class AssignmentMismatch(Struct, frozen=True, rename="camel"):
    """A broker's answer for a consumer that is not the predicted one."""

    client_id: str
    queues_answered: Annotated[tuple[QueueName, ...] | None, "null where the broker assigns nothing"]
    queues_predicted: Annotated[tuple[QueueName, ...] | None, "null where no answer is predicted"]


class BrokerAssignments(Struct, frozen=True, rename="camel"):
    """What a broker answers consumers that ask it for their queues of a topic (QUERY_ASSIGNMENT)."""

    topic: str
    broker_name: str
    modes: Annotated[tuple[str, ...], "PULL or POP, according to its answers; empty where none has a queue"]
    consumers: Annotated[int, "for how many consumers it answered"]
    mismatches: Annotated[tuple[AssignmentMismatch, ...], "its answers that differ from the prediction"]


class OwnersReport(Result, frozen=True):
    """Who owns each queue under each strategy."""

    group: Annotated[str | None, "the group; null when the source names none"]
    topics: Annotated[tuple[str, ...], "their names"]
    sorted_consumers: tuple[str, ...]
    queues: Annotated[tuple[QueueOwners, ...], "in the clients' order, then those that only a CONFIG list names"]
    strategies: Annotated[tuple[StrategyOwners, ...], "strategy by strategy"]
    strategies_reported: Annotated[Mapping[str, int], REPORTED] = {}
    mixed_mismatches: Annotated[int | None, "mismatches with the different strategies together; null if one"] = None
    pop_topics: Annotated[tuple[PopTopic, ...], "topics consumed by POP, whose queues have no owner"] = ()
    offsets: Annotated[tuple[QueueOffsets, ...], "offsets of each queue, of a group behind a Proxy"] = ()
    hidden: Annotated[Literal["certain", "likely"] | None, "consumers behind a Proxy that was not queried"] = None
    sdks: Annotated[tuple[SdkUse, ...], "client libraries of the consumers; none in Python"] = ()
    broker_assignments: Annotated[tuple[BrokerAssignments, ...], "brokers' answers for each consumer"] = ()

    @property
    def observed_queues(self) -> list[QueueOwners]:
        return [queue for queue in self.queues if queue.owners_observed is not None]

    @property
    def bad_owners(self) -> tuple[int, int]:
        """The numbers of queues observed without an owner and, except in BROADCASTING, with duplicate owners."""
        observed = self.observed_queues
        several = sum(len(queue.owners_observed or ()) > 1 for queue in observed)
        return sum(not queue.owners_observed for queue in observed), 0 if self.broadcasting else several

    @property
    def by_proxy(self) -> bool:
        return any(topic.by_proxy for topic in self.pop_topics)

    @property
    def broadcasting(self) -> bool:
        """Each consumer reads every queue, so duplicate owners are right."""
        return any(each.strategy == BROADCASTING for each in self.strategies)


class OwnersSummary(Struct, frozen=True, rename="camel"):
    """All groups in numbers."""

    groups: Annotated[int, "number of groups"]
    queues: Annotated[int, "number of their queues"]
    queues_observed: Annotated[int, "queues whose owners the source reports"]
    observed_unassigned: Annotated[int, "of these, queues without an owner"]
    observed_duplicate_owners: Annotated[int, "of these, queues with duplicate owners"]


class OwnersOfGroups(Result, frozen=True):
    """Who owns each queue of several groups under each strategy."""

    groups: Annotated[tuple[OwnersReport, ...], "each group's owners, as rmqlb/owners has them"]
    summary: Annotated[OwnersSummary, "all groups in numbers"]


def owners_of_groups(reports: Sequence[OwnersReport]) -> OwnersOfGroups:
    numbers = [report.bad_owners for report in reports]
    summary = OwnersSummary(
        groups=len(reports),
        queues=sum(len(report.queues) for report in reports),
        queues_observed=sum(len(report.observed_queues) for report in reports),
        observed_unassigned=sum(unassigned for unassigned, _ in numbers),
        observed_duplicate_owners=sum(several for _, several in numbers),
    )
    return OwnersOfGroups(tuple(reports), summary)
