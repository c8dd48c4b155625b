"""What came of simulated sends.

Rules of this file:
- Times are milliseconds, from the start of the simulation where they are moments. Message, attempt and thread numbers
  start at 1.
- A Struct that has more than the JSON, for Python alone, inherits from the one that is the JSON's shape.
- What ends a Struct as `name = property(…)` is the former name of a field, for those who use it from Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

from msgspec import Struct

from rmqlb.model.finding import Finding
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import Failure, ReactionKind, SendScenario


class Attempt(Struct, frozen=True, rename="camel"):
    """One attempt to send one message.

    Attributes:
        message: its number, from 1 in the order of first attempts.
        attempt: 1 is the first.
        thread: which thread sent the message, from 1.
        at_ms: when it began, in milliseconds from the start.
        broker_name: to whom.
        queue_id: which queue.
        outcome: SEND_OK, a store status, an error code's name, or the client's exception.
        took_ms: how long it took.
    """

    message: int
    attempt: int
    thread: int
    at_ms: float
    broker_name: str
    queue_id: int
    outcome: str
    took_ms: float


class MessageException(Struct, frozen=True, rename="camel"):
    """What the application gets when a message is lost: thrown by `send`, or handed to its callback.

    Attributes:
        exception_class: the class's simple name, such as MQClientException.
        text: its message, all lines; None where it holds what only a broker or a socket knows.
        response_code: of an MQClientException or MQBrokerException; None of other classes.
        cause: simple name of the class of its cause, or None.
    """

    exception_class: str
    text: str | None = None
    response_code: int | None = None
    cause: str | None = None


class LostMessage(Struct, frozen=True, rename="camel"):
    """One lost message.

    Attributes:
        message: its number.
        thread: which thread sent it, from 1.
        at_ms: when the application was told, in milliseconds from the start; of a message that is lost unnoticed, when
            the client was done with it.
        reason: as in `SendTotals.lost_by`.
        brokers_sent: the brokers of its attempts, in order.
        exception: what the application gets; None when it is told nothing.
    """

    message: int
    thread: int
    at_ms: float
    reason: str
    brokers_sent: tuple[str, ...]
    exception: MessageException | None


class ExceptionKind(Struct, frozen=True, rename="camel"):
    """Messages that ended with exceptions of one kind: of one class, code and cause, after the same brokers.

    Attributes:
        messages: how many.
        exception_class: simple name of the class that the application gets, thrown or in its callback.
        response_code: of an MQClientException or MQBrokerException; null of other classes.
        cause: simple name of the class of its cause; null without.
        brokers_sent: the brokers of the attempts, in order; null for all kinds together after the first hundred.
        first_message: number of the first of these messages.
        text: that message's text; other ones may name other times; null where it holds what only a broker knows.
    """

    messages: int
    exception_class: str
    response_code: int | None
    cause: str | None
    brokers_sent: tuple[str, ...] | None
    first_message: int
    text: str | None


class ExceptionTally(ExceptionKind, frozen=True, kw_only=True):
    """Such messages, with the first of them."""

    first: LostMessage
    exception: MessageException


class QueueCounts(Struct, frozen=True, rename="camel"):
    """What one queue saw.

    Attributes:
        broker_name: its broker.
        queue_id: its number there, from 0.
        picks: how often the producer chose it.
        attempts: picks that led to a request; one after the deadline does not.
        failed: attempts that failed.
        stored: messages stored, with whatever status; one that a retry stored again counts twice.
        share: of all stored messages; null when none was.
    """

    broker_name: str
    queue_id: int
    picks: int
    attempts: int
    failed: int
    stored: int
    share: float | None


class QueueTally(QueueCounts, frozen=True, kw_only=True):
    """What one queue saw, and which it is."""

    queue: MessageQueue


class BrokerTally(Struct, frozen=True, rename="camel"):
    """What one broker saw.

    Attributes:
        broker_name: its name.
        queues: how many of its queues the producer saw at the start.
        picks: how often the producer chose it.
        attempts: picks that led to a request; one after the deadline does not.
        failed: attempts that failed.
        stored: messages stored, with whatever status; one that a retry stored again counts twice.
        share: of all stored messages; null when none was.
        isolations: how often a slow or failed attempt isolated it.
        isolated_ms: for how long it was isolated or not in the producer's list.
    """

    broker_name: str
    queues: int
    picks: int
    attempts: int
    failed: int
    stored: int
    share: float | None
    isolations: int
    isolated_ms: float

    avoided_ms = property(attrgetter("isolated_ms"))


class FailureTaken(Struct, frozen=True, rename="camel"):
    """A failure, and how the producer took it; times count from the start, in milliseconds.

    Attributes:
        broker_name: who failed.
        kind: refused, timeout, slow, read-only, status or code.
        name: RocketMQ's name of a store status or code, otherwise the kind.
        code: the response code, where it is one.
        nameserver_notices_ms: after which the NameServer drops the broker; null when it never does.
        began_ms: when it began; null when the simulation did not come to it.
        ended_ms: when it ended; null when it did not.
        failed: attempts that failed by it while it lasted.
        first_failed_ms: when the first of them began.
        last_failed_ms: when the last of them began.
        isolated_ms: when the broker was first isolated or gone from the producer's list.
        isolated_after_ms: how long after the begin that was.
        isolated_by: isolation or route.
        used_again_ms: when the first attempt after the end succeeded.
        used_again_after_ms: how long after the end that was.
    """

    broker_name: str
    kind: ReactionKind
    name: str
    code: int | None
    nameserver_notices_ms: float | None
    began_ms: float | None
    ended_ms: float | None
    failed: int
    first_failed_ms: float | None
    last_failed_ms: float | None
    isolated_ms: float | None
    isolated_after_ms: float | None
    isolated_by: str | None
    used_again_ms: float | None
    used_again_after_ms: float | None

    avoided_ms = property(attrgetter("isolated_ms"))
    avoided_by = property(attrgetter("isolated_by"))


class FailureReport(FailureTaken, frozen=True, kw_only=True):
    """How the producer took a failure, and what was asked."""

    failure: Failure


class BrokerSlice(Struct, frozen=True, rename="camel"):
    """What a broker saw in a slice of time.

    Attributes:
        broker_name: its name.
        attempts: requests that began in it.
        failed: attempts that failed in it.
        isolated_ms: for how long it was isolated or not in the producer's list.
    """

    broker_name: str
    attempts: int
    failed: int
    isolated_ms: float


class Slice(Struct, frozen=True, rename="camel"):
    """A slice of the simulated time.

    Attributes:
        from_ms: its begin, in milliseconds from the start.
        to_ms: its end, which belongs to the next one.
        lost: messages lost in it.
        brokers: broker by broker.
    """

    from_ms: float
    to_ms: float
    lost: int
    brokers: tuple[BrokerSlice, ...]

    attempts = property(lambda self: {each.broker_name: each.attempts for each in self.brokers})
    failed = property(lambda self: {each.broker_name: each.failed for each in self.brokers})
    avoided_ms = property(lambda self: {each.broker_name: each.isolated_ms for each in self.brokers})


class SendTotals(Struct, frozen=True, rename="camel"):
    """The simulation in numbers.

    Attributes:
        messages: that were sent.
        stored: with whatever status.
        not_store_ok: of these, with another status than SEND_OK.
        duplicated: of these, stored more than once by retries, as far as the producer knows.
        lost: not stored after all attempts, as far as the producer knows.
        lost_by: reason → messages lost by it.
        retried: messages that needed more than one attempt.
        attempts: requests.
        failed_attempts: of these, failed.
        retries: attempts beyond each message's first.
        failing_ms: time in failed attempts, over all threads.
        longest_send_ms: the longest that one message with an attempt took; null when there was no attempt.
        lasted_ms: when the last message was done.
        until_isolated_ms: the longest time until a failed broker was isolated or gone from the producer's list; null
            when none was.
        until_used_again_ms: the longest time until one that was back was used again; null when none was.
    """

    messages: int
    stored: int
    not_store_ok: int
    duplicated: int
    lost: int
    lost_by: Mapping[str, int]
    retried: int
    attempts: int
    failed_attempts: int
    retries: int
    failing_ms: float
    longest_send_ms: float | None
    lasted_ms: float
    until_isolated_ms: float | None
    until_used_again_ms: float | None

    extra_attempts = property(attrgetter("retries"))


class HotKey(Struct, frozen=True, rename="camel"):
    """A message key that many messages have, and its queue while the queue list is whole.

    Attributes:
        key: the key.
        messages: with it.
        broker_name: the broker of its queue; null when the selector throws, or returns none.
        queue_id: its queue's number there; null when the selector throws, or returns none.
    """

    key: str
    messages: int
    broker_name: str | None
    queue_id: int | None


class KeySpread(Struct, frozen=True, rename="camel"):
    """The keys that a selector was given.

    Attributes:
        distinct: different keys.
        messages: keys in all.
        hottest: the most frequent ones.
    """

    distinct: int
    messages: int
    hottest: tuple[HotKey, ...]


class SendReport(Struct, frozen=True):
    """What came of a simulation.

    Attributes:
        topic: to which topic.
        scenario: what was simulated.
        profile: the client's rules by name, such as `5.1.1 to 5.1.3`.
        latency_max: thresholds in ms that were used.
        not_available_duration: isolations in ms that were used.
        failure_isolates_ms: for how long a failed attempt isolates its broker.
        first_poll_ms: when the client first asked for the route again.
        publish_queues: the producer's list at the start.
        queues: a tally for each queue, in the list's order.
        brokers: a tally for each broker, by name.
        totals: all messages together.
        failures: how each failure was taken, in the scenario's order.
        slices: the time line.
        exceptions: what the application gets of lost messages, the most frequent first.
        attempts: each attempt where they were kept, otherwise None.
        lost_messages: each lost message where attempts were kept, otherwise None.
        findings: what is odd about it.
    """

    topic: str
    scenario: SendScenario
    profile: str
    latency_max: tuple[int, ...]
    not_available_duration: tuple[int, ...]
    failure_isolates_ms: int
    first_poll_ms: float
    publish_queues: tuple[MessageQueue, ...]
    queues: tuple[QueueTally, ...]
    brokers: tuple[BrokerTally, ...]
    totals: SendTotals
    failures: tuple[FailureReport, ...]
    slices: tuple[Slice, ...]
    exceptions: tuple[ExceptionTally, ...] = ()
    attempts: tuple[Attempt, ...] | None = None
    lost_messages: tuple[LostMessage, ...] | None = None
    findings: tuple[Finding, ...] = ()
