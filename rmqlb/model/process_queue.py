"""What a consumer says of a queue that it has, and of a topic that it reads.

Times are milliseconds since 1970 by the consumer's own clock. What the consumer does not report is None.
"""

from __future__ import annotations

from msgspec import Struct

from rmqlb.model.message_queue import MessageQueue


class ProcessQueue(Struct, frozen=True, rename="camel"):
    """A queue as its consumer has it (`remoting.protocol.body.ProcessQueueInfo`).

    Attributes:
        queue: which one.
        cached: messages that were pulled and not yet consumed.
        cached_mib: their size, in MiB, rounded down.
        min_offset: of the first cached message; 0 when none is cached.
        max_offset: of the last cached message; 0 when none is cached.
        commit_offset: the next message to consume, as the consumer has it; below 0 when it knows none.
        dropped: a rebalance took the queue away; the entry stays until its messages are consumed.
        locked: an orderly consumer thinks that it has the broker's lock.
        last_lock: when it last got the lock.
        last_pull: when it last sent a pull request.
        last_consume: when it last ended consuming messages, or began to have the queue.
    """

    queue: MessageQueue
    cached: int | None = None
    cached_mib: int | None = None
    min_offset: int | None = None
    max_offset: int | None = None
    commit_offset: int | None = None
    dropped: bool | None = None
    locked: bool | None = None
    last_lock: int | None = None
    last_pull: int | None = None
    last_consume: int | None = None


class ConsumeStatus(Struct, frozen=True, rename="camel"):
    """How fast a consumer consumes a topic (`remoting.protocol.body.ConsumeStatus`).

    Attributes:
        consume_ms: mean time that its listener takes for a call, over the last hour or minute.
        consumed_per_s: messages whose consumption succeeded, per second of the last minute.
        failed_per_s: messages whose consumption failed, per second of the last minute.
        failed_last_hour: messages whose consumption failed in the last hour.
        pulled_per_s: messages pulled, per second of the last minute.
    """

    consume_ms: float | None = None
    consumed_per_s: float | None = None
    failed_per_s: float | None = None
    failed_last_hour: int | None = None
    pulled_per_s: float | None = None


class PullLimits(Struct, frozen=True, rename="camel"):
    """From which on a push consumer stops pulling a queue (`DefaultMQPushConsumer`).

    Attributes:
        messages: cached messages of a queue (`pullThresholdForQueue`, 1,000 by default).
        mib: their size in MiB (`pullThresholdSizeForQueue`, 100 by default).
        span: largest minus smallest cached offset, for consumers that are not orderly
            (`consumeConcurrentlyMaxSpan`, 2,000 by default).
    """

    messages: int | None = None
    mib: int | None = None
    span: int | None = None


class ConsumerEvidence(Struct, frozen=True, rename="camel"):
    """What of a consumer's own report only a diagnosis needs.

    Attributes:
        read_at: when the report was received, in milliseconds since 1970 by rmqlb's clock.
        queues: that it has, dropped ones too that are not yet gone, as clients sort them.
        statuses: topic → how fast it consumes.
        limits: from which on it stops pulling.
        orderly: it consumes in order (`PROP_CONSUMEORDERLY`).
        stacks: the stack traces of its consume threads, one text each; None when they were not asked for.
    """

    read_at: int | None = None
    queues: tuple[ProcessQueue, ...] | None = None
    statuses: dict[str, ConsumeStatus] | None = None
    limits: PullLimits = PullLimits()
    orderly: bool | None = None
    stacks: tuple[str, ...] | None = None
