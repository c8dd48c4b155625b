"""Where brokers store messages with a priority (RocketMQ 5.4.0)."""

from __future__ import annotations


def queue_of_priority(priority: int, write_queues: int) -> int:
    """The queue of a broker that stores a message with this priority (`SendMessageProcessor.sendMessage`).

    The broker ignores the producer's pick and the topic's type. A message without a priority stays in the picked queue.
    So does a message of a batch, and one with a sharding key, a delay or a transaction (`TopicMessageType`).

    >>> [queue_of_priority(priority, 4) for priority in (0, 3, 4, 100)]
    [0, 3, 3, 3]
    """
    return min(priority, write_queues - 1)
