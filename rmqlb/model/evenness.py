"""How evenly queues lie on consumers."""

from __future__ import annotations

from msgspec import Struct


class QueuesPerConsumer(Struct, frozen=True):
    """How many queues consumers own; one that several own counts for each of them.

    Attributes:
        min: of the consumer with the fewest.
        mean: of all consumers.
        max: of the consumer with the most.
    """

    min: int
    mean: float
    max: int


class Evenness(Struct, frozen=True, rename="camel"):
    """How evenly queues lie on consumers; the judge's measure of any assignment.

    Attributes:
        queues: queues that exist, and those that only a CONFIG list names.
        idle: consumers without a queue.
        unassigned: queues without an owner.
        duplicate_owners: queues with several client ids as owners.
        queues_of_duplicate_client_ids: queues whose owner's id several processes carry, so that each of them reads the
            queue.
        queues_per_consumer: the fewest, the mean and the most; null without consumers.
        imbalance: most queues of one consumer over the mean, 1 is perfectly even; null when there is nothing to divide.
    """

    queues: int
    idle: int
    unassigned: int
    duplicate_owners: int
    queues_of_duplicate_client_ids: int
    queues_per_consumer: QueuesPerConsumer | None
    imbalance: float | None

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
    """How evenly queues lie on how many consumers.

    Attributes:
        consumers: distinct client ids.
    """

    consumers: int
