"""Who owns each queue of one topic, as computed for a list of consumers; and how evenly queues lie on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Struct, field

from rmqlb.model.message_queue import MessageQueue

Basis = Literal["observed", "predicted", "assumed"]
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
    duplicate_owners: Annotated[int, "queues with several client ids as owners"]
    queues_of_duplicate_client_ids: Annotated[int, "queues whose owner's client ID several processes carry"]
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

    consumers: Annotated[int, "distinct client ids"]
