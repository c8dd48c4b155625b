"""One queue of a topic on one broker, and the order in which clients sort queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby, islice
from typing import Annotated

from msgspec import Struct

from rmqlb.model.java import sort_key
from rmqlb.model.words import runs, span


class MessageQueue(Struct, frozen=True, rename="camel"):
    """A queue (`org.apache.rocketmq.common.message.MessageQueue`); CONSISTENT_HASH hashes its `str()`."""

    topic: Annotated[str, "full topic name, namespace prefix included"]
    broker_name: Annotated[str, "name of the broker group, not an address"]
    queue_id: Annotated[int, "from 0; −1 only in POP assignments, where it means any queue of the broker"]

    def __str__(self) -> str:
        return f"MessageQueue [topic={self.topic}, brokerName={self.broker_name}, queueId={self.queue_id}]"

    def __lt__(self, other: MessageQueue) -> bool:
        return queue_order(self) < queue_order(other)


class QueueName(Struct, frozen=True, rename="camel"):
    """A queue of the topic at hand."""

    broker_name: Annotated[str, "its broker"]
    queue_id: Annotated[int, "its number there, from 0"]


def queue_order(queue: MessageQueue) -> tuple[bytes, bytes, int]:
    """Sort key of `MessageQueue.compareTo`: topic, broker name (both by UTF-16 unit), queue ID.

    Java subtracts queue IDs in 32 bits, which differs only for IDs more than 2^31 apart.
    """
    return sort_key(queue.topic), sort_key(queue.broker_name), queue.queue_id


def sort_queues(queues: Iterable[MessageQueue], order: Callable[[str], bytes] = sort_key) -> list[MessageQueue]:
    """The queues as a client sorts them before it allocates (`RebalanceImpl.rebalanceByTopic`)."""
    keys: dict[str, bytes] = {}

    def key(queue: MessageQueue) -> tuple[bytes, bytes, int]:
        for name in (queue.topic, queue.broker_name):
            if name not in keys:
                keys[name] = order(name)
        return keys[queue.topic], keys[queue.broker_name], queue.queue_id

    return sorted(queues, key=key)


def sort_client_ids(client_ids: Iterable[str], order: Callable[[str], bytes] = sort_key) -> list[str]:
    """The client IDs as a client sorts them before it allocates; duplicates are kept."""
    return sorted(client_ids, key=order)


def queue_ranges(queues: Iterable[MessageQueue], most: int = 4) -> str:
    """Queues in short, with ranges of IDs and the number of further queues.

    >>> a, b = ([MessageQueue("T", name, number) for number in (0, 1, 2, 5)] for name in "ab")
    >>> queue_ranges(a), queue_ranges([*b, *a], most=3)
    ('T a 0-2,5', 'T a 0-2,5, b 0-2 and 1 more')
    """
    shown: dict[str, dict[str, list[str]]] = {}
    found = (
        (*where, run)
        for where, own in groupby(sort_queues(queues), key=lambda queue: (queue.topic, queue.broker_name))
        for run in runs(queue.queue_id for queue in own)
    )
    for topic, broker, run in islice(found, most):
        shown.setdefault(topic, {}).setdefault(broker, []).append(span(run))
    left = sum(len(run) for *_, run in found)
    texts = (
        f"{topic} " + ", ".join(f"{broker} {','.join(ids)}" for broker, ids in brokers.items())
        for topic, brokers in shown.items()
    )
    return "; ".join(texts) + (f" and {left} more" if left else "")
