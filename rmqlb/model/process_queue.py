"""A consumer's report of a queue that it owns, and of a topic that it reads.

Times are milliseconds since 1970 by the consumer's own clock. None is unreported.
"""

from typing import Annotated

from msgspec import Struct

from rmqlb.model.message_queue import MessageQueue


class ProcessQueue(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A queue as its consumer has it (`remoting.protocol.body.ProcessQueueInfo`, `ProcessQueue.fillProcessQueueInfo`).

    A rebalance drops a queue, or 120 s without a pull do. An orderly consumer keeps the entry until its listener's call
    has ended, or 20 s after `last_lock`; others let it go at once, so that a dropped queue is hardly ever seen.
    """

    queue: Annotated[MessageQueue, "the queue"]
    # A listener's messages count, but not in an orderly consumer; what a lite-pull consumer handed out does not count.
    cached: Annotated[int | None, "messages that were pulled and not yet consumed"] = None
    # Rounded down, with `consuming`; before 5.3.3 it is 0 if `cached` is 0.
    cached_mib: Annotated[int | None, "size of all bodies in MiB"] = None
    min_offset: Annotated[int | None, "of the first cached message; 0 when none is cached"] = None
    max_offset: Annotated[int | None, "of the last cached message; 0 when none is cached"] = None
    consuming: Annotated[int | None, "messages that the listener of an orderly consumer has now; 0 in any other"] = None
    consuming_min_offset: Annotated[int | None, "of the first of these; 0 when there is none"] = None
    consuming_max_offset: Annotated[int | None, "of the last of these; 0 when there is none"] = None
    commit_offset: Annotated[int | None, "the first message not consumed; -1: none stored, -2: no answer"] = None
    dropped: Annotated[bool | None, "a rebalance took the queue away, or 120 s passed without a pull"] = None
    # Without meaning in others than orderly consumers, where it is true (push) or false (lite-pull).
    locked: Annotated[bool | None, "an orderly consumer believes that it has the broker's lock"] = None
    unlock_tries: Annotated[int | None, "failed tries to release a dropped queue whose listener is busy"] = None
    # A lock that could not be renewed for 30 s is no longer used.
    last_lock: Annotated[int | None, "when a broker last gave the lock, otherwise when the queue was taken"] = None
    # It sets out to pull while it is paused, held back by its limits or without the lock, too.
    last_pull: Annotated[int | None, "when it last started a pull, or took the queue"] = None
    # Consumed (`removeMessage`), taken by an orderly consumer (`takeMessages`), or handed out (lite-pull).
    last_consume: Annotated[int | None, "when messages were last consumed, or the queue was taken"] = None


class ConsumeStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How fast a consumer consumes a topic (`remoting.protocol.body.ConsumeStatus`, `ConsumerStatsManager`).

    Figures of the last minute are sampled every 10 s, those of the last hour every 10 minutes. Messages of the retry
    topic count there, not in their original topic.
    """

    consume_ms: Annotated[float | None, "mean time of a listener call, over the last minute or the last hour"] = None
    consumed_per_s: Annotated[float | None, "messages consumed successfully, per second of the last minute"] = None
    failed_per_s: Annotated[float | None, "messages whose consumption failed, per second of the last minute"] = None
    failed_last_hour: Annotated[int | None, "messages whose consumption failed in the last hour"] = None
    pulled_per_s: Annotated[float | None, "messages pulled, per second of the last minute"] = None


class PullLimits(Struct, frozen=True, rename="camel", omit_defaults=True):
    """From which on a consumer stops pulling a queue (`DefaultMQPushConsumer`, `DefaultLitePullConsumer`).

    It stops when a figure is larger than its limit. What an orderly consumer's listener has now counts as cached there.
    Where `pullThresholdForTopic` is set, each queue has its share. `span` is not for orderly consumers.
    """

    messages: Annotated[int | None, "cached messages per queue (`pullThresholdForQueue`, 1,000 by default)"] = None
    mib: Annotated[
        int | None, "size of the cached messages per queue, in MiB (`pullThresholdSizeForQueue`, 100 by default)"
    ] = None
    span: Annotated[
        int | None, "largest minus smallest cached offset (`consumeConcurrentlyMaxSpan`, 2,000 by default)"
    ] = None


class ConsumerEvidence(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The parts of a consumer's own report that only a diagnosis needs.

    A filter is `*` for all messages, sorted tags as `blue || red`, or another expression after its type (`SQL92: a >
    1`). Brokers send each consumer what the last heartbeat of any of them asks for.
    """

    read_at: Annotated[int | None, "arrival time of the report, in ms since 1970 by rmqlb's clock"] = None
    queues: Annotated[
        tuple[ProcessQueue, ...] | None, "queues of the consumer, including dropped ones, in the clients' order"
    ] = None
    statuses: Annotated[dict[str, ConsumeStatus] | None, "topic → consumption, for each subscribed topic"] = None
    limits: Annotated[PullLimits, "limits above which the consumer stops pulling"] = PullLimits()
    orderly: Annotated[
        bool | None, "true if the consumer reads in order (`PROP_CONSUMEORDERLY`); null for a pull consumer"
    ] = None
    threads: Annotated[int | None, "consume threads (`PROP_THREADPOOL_CORE_SIZE`)"] = None
    batch: Annotated[int | None, "most messages per listener call (`consumeMessageBatchMaxSize`)"] = None
    stacks: Annotated[tuple[str, ...] | None, "stack traces of the consume threads, if requested"] = None
    filters: Annotated[dict[str, str] | None, "topic → filter of the consumer"] = None


def threads_of(*reports: ConsumerEvidence) -> int:
    """The fewest consume threads that consumers report, otherwise the default (`consumeThreadMin`)."""
    return min((each.threads for each in reports if each.threads), default=20)
