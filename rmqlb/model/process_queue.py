"""A consumer's report of a queue that it owns, and of a topic that it reads.

Times are milliseconds since 1970 by the consumer's own clock. None is unreported.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from rmqlb.model.message_queue import MessageQueue


class ProcessQueue(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A queue as its consumer has it (`remoting.protocol.body.ProcessQueueInfo`, `ProcessQueue.fillProcessQueueInfo`).

    Attributes:
        cached: messages that were pulled and not yet consumed. What a listener has now is among them, but not in an
            orderly consumer; what a lite-pull consumer has handed out is not.
        cached_mib: size of all bodies in MiB, `consuming` included, rounded down (before 5.3.3: 0 if `cached` is 0).
        commit_offset: the first message that is not consumed, as the consumer will commit it; -1 when the broker has
            none either, -2 when it did not answer the consumer.
        dropped: a rebalance took the queue away, or 120 s passed without a pull. An orderly consumer keeps the entry
            until its listener's call has ended, or 20 s after `last_lock`; others let it go at once, so that it is
            hardly ever seen.
        locked: an orderly consumer thinks that it has the broker's lock; without meaning in any other, where it is true
            (push) or false (lite-pull).
        unlock_tries: failed tries of an orderly consumer to release a dropped queue, its listener being busy.
        last_lock: when a broker last gave the lock, otherwise when the consumer took it; a lock that could not be
            renewed for 30 s is no longer used.
        last_pull: when it last set out to pull, which it does too while it is paused, held back by its limits or
            without the lock; or when it took the queue.
        last_consume: when messages were last consumed (`removeMessage`), last taken to be consumed (an orderly
            consumer: `takeMessages`) or last handed out (lite-pull); or when the consumer took the queue.
    """

    queue: Annotated[MessageQueue, "which one"]
    cached: int | None = None
    cached_mib: int | None = None
    min_offset: Annotated[int | None, "of the first cached message; 0 when none is cached"] = None
    max_offset: Annotated[int | None, "of the last cached message; 0 when none is cached"] = None
    consuming: Annotated[int | None, "messages that the listener of an orderly consumer has now; 0 in any other"] = None
    consuming_min_offset: Annotated[int | None, "of the first of these; 0 when there is none"] = None
    consuming_max_offset: Annotated[int | None, "of the last of these; 0 when there is none"] = None
    commit_offset: int | None = None
    dropped: bool | None = None
    locked: bool | None = None
    unlock_tries: int | None = None
    last_lock: int | None = None
    last_pull: int | None = None
    last_consume: int | None = None


class ConsumeStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How fast a consumer consumes a topic (`remoting.protocol.body.ConsumeStatus`, `ConsumerStatsManager`).

    Figures of the last minute are sampled every 10 s, those of the last hour every 10 minutes. Messages of the retry
    topic count there, not in their original topic.
    """

    consume_ms: Annotated[float | None, "mean time of a listener call, over the last minute, or the last hour"] = None
    consumed_per_s: Annotated[float | None, "messages consumed successfully, per second of the last minute"] = None
    failed_per_s: Annotated[float | None, "messages whose consumption failed, per second of the last minute"] = None
    failed_last_hour: Annotated[int | None, "messages whose consumption failed in the last hour"] = None
    pulled_per_s: Annotated[float | None, "messages pulled, per second of the last minute"] = None


class PullLimits(Struct, frozen=True, rename="camel", omit_defaults=True):
    """From which on a consumer stops pulling a queue (`DefaultMQPushConsumer`, `DefaultLitePullConsumer`).

    It stops when a figure is larger than its limit. What an orderly consumer's listener has now counts as cached there.

    Attributes:
        messages: cached messages of a queue (`pullThresholdForQueue`, 1,000 by default; where `pullThresholdForTopic`
            is set, a client's share of it for each of its queues).
        span: largest minus smallest cached offset, for consumers that are not orderly (`consumeConcurrentlyMaxSpan`, of
            a lite-pull consumer `consumeMaxSpan`; 2,000 by default).
    """

    messages: int | None = None
    mib: Annotated[int | None, "their size in MiB (`pullThresholdSizeForQueue`, 100 by default)"] = None
    span: int | None = None


class ConsumerEvidence(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The parts of a consumer's own report that only a diagnosis needs.

    Attributes:
        queues: its queues, dropped ones included, in the clients' order.
        stacks: the stack traces of its consume threads, one text each: the thread's name and state in the first line,
            then a line per frame; None when they were not asked for.
        filters: topic → which of its messages the consumer takes: `*` for all, sorted tags as `blue || red`, or another
            expression after its type (`SQL92: a > 1`). Brokers send each consumer what the last heartbeat of any of
            them asks for.
    """

    read_at: Annotated[int | None, "when the report came, ms since 1970 by rmqlb's clock"] = None
    queues: tuple[ProcessQueue, ...] | None = None
    statuses: Annotated[dict[str, ConsumeStatus] | None, "topic → consumption, of each subscribed topic"] = None
    limits: Annotated[PullLimits, "from which on it stops pulling"] = PullLimits()
    orderly: Annotated[bool | None, "it consumes in order (`PROP_CONSUMEORDERLY`); None of a pull consumer"] = None
    threads: Annotated[int | None, "consume threads (`PROP_THREADPOOL_CORE_SIZE`)"] = None
    batch: Annotated[int | None, "most messages of a listener call (`consumeMessageBatchMaxSize`)"] = None
    stacks: tuple[str, ...] | None = None
    filters: dict[str, str] | None = None
