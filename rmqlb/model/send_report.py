"""What came of simulated sends.

Rule of this file: times are milliseconds (`_ms`), for reading, where they are not said to be microseconds (`_us`).
Message, attempt and thread numbers start at 1.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from rmqlb.model.finding import Finding
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import Failure, SendScenario


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


class ExceptionTally(Struct, frozen=True):
    """Messages that ended with exceptions of one kind: of one class, code and cause, after the same brokers.

    Attributes:
        messages: how many.
        brokers_sent: the brokers of their attempts, in order; None for all kinds together that came after the first
            hundred.
        first: the first of the messages.
        exception: its exception; the other ones' texts may name other times.
    """

    messages: int
    brokers_sent: tuple[str, ...] | None
    first: LostMessage
    exception: MessageException


class QueueTally(Struct, frozen=True):
    """What one queue saw.

    Attributes:
        queue: which.
        picks: how often the producer chose it.
        attempts: picks that led to a request; a pick after the deadline does not.
        failed: attempts that failed.
        stored: messages that were stored, SEND_OK or with a lesser status.
    """

    queue: MessageQueue
    picks: int
    attempts: int
    failed: int
    stored: int


class BrokerTally(Struct, frozen=True):
    """What one broker saw.

    Attributes:
        broker_name: which.
        queues: how many of its queues the producer saw at the start.
        picks: as for queues.
        attempts: likewise.
        failed: likewise.
        stored: likewise.
        avoided_ms: how long it was isolated or not in the producer's list.
        isolations: how often a slow or failed attempt isolated it.
    """

    broker_name: str
    queues: int
    picks: int
    attempts: int
    failed: int
    stored: int
    avoided_ms: float
    isolations: int


class FailureReport(Struct, frozen=True):
    """How the producer took one failure.

    Attributes:
        failure: which.
        began_ms: when it began; None when no message came to it.
        ended_ms: when it ended; None when the simulation ended before.
        failed: attempts that failed at the broker while it lasted.
        first_failed_ms: when the first of them began.
        avoided_ms: when the broker was first isolated or gone from the list after the failure began.
        avoided_by: `isolation` or `route`.
        used_again_ms: when the first attempt after its end succeeded.
    """

    failure: Failure
    began_ms: float | None = None
    ended_ms: float | None = None
    failed: int = 0
    first_failed_ms: float | None = None
    avoided_ms: float | None = None
    avoided_by: str | None = None
    used_again_ms: float | None = None


class Slice(Struct, frozen=True):
    """A stretch of the simulated time.

    Attributes:
        from_ms: its start.
        to_ms: its end.
        attempts: broker name → attempts that began in it.
        failed: broker name → attempts that failed in it.
        avoided_ms: broker name → how much of it the broker was avoided.
        lost: messages lost in it.
    """

    from_ms: float
    to_ms: float
    attempts: Mapping[str, int]
    failed: Mapping[str, int]
    avoided_ms: Mapping[str, float]
    lost: int


class SendTotals(Struct, frozen=True):
    """All messages together.

    Attributes:
        messages: how many were sent.
        stored: stored, with whatever status.
        not_store_ok: of these, with another status than SEND_OK.
        duplicated: of these, stored more than once by retries, as far as the producer knows.
        lost: not stored after all attempts, as far as the producer knows.
        lost_by: reason → messages.
        attempts: requests.
        failed_attempts: of these, failed.
        extra_attempts: beyond each message's first.
        retried: messages that needed more than one attempt.
        failing_ms: time spent in failed attempts.
        longest_send_ms: the longest that one message with an attempt took; None when there was no attempt.
        lasted_ms: when the last message was done.
    """

    messages: int
    stored: int
    not_store_ok: int
    duplicated: int
    lost: int
    lost_by: Mapping[str, int]
    attempts: int
    failed_attempts: int
    extra_attempts: int
    retried: int
    failing_ms: float
    longest_send_ms: float | None
    lasted_ms: float


class HotKey(Struct, frozen=True):
    """A message key that many messages have.

    Attributes:
        key: the key.
        messages: how many have it.
        queue: where the selector sends them while the queue list is whole; None when it sends them nowhere.
    """

    key: str
    messages: int
    queue: MessageQueue | None


class KeySpread(Struct, frozen=True):
    """The keys that a selector was given.

    Attributes:
        distinct: how many different ones.
        messages: how many in all.
        hottest: the most frequent, first.
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
        brokers: likewise, by name.
        totals: all messages together.
        failures: how each failure was taken.
        slices: the time line.
        exceptions: what the application gets of lost messages, the most frequent first.
        attempts: each attempt where they were kept, else None.
        lost_messages: each lost message where attempts were kept, else None.
        findings: what is worth a warning.
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


class Estimate(Struct, frozen=True):
    """A mean over trials and how sure it is.

    Attributes:
        mean: over the trials.
        low: the lower end of the 95 % confidence interval.
        high: the upper end.
    """

    mean: float
    low: float
    high: float


_NONE = Estimate(0.0, 0.0, 0.0)


class TimeSpread(Struct, frozen=True):
    """How a time is spread over trials, in milliseconds.

    Attributes:
        mean_ms: over the trials.
        p50_ms: half of the trials have no more.
        p95_ms: 95 of 100 trials have no more.
        max_ms: the most in any trial.
    """

    mean_ms: float
    p50_ms: float
    p95_ms: float
    max_ms: float


class FailureTrials(Struct, frozen=True):
    """How the producers of many trials took one failure.

    Attributes:
        failure: which.
        began: in how many trials a message came to it.
        avoided: in how many of these its broker was isolated or left the producer's list while it lasted.
        until_avoided: over these, how long after the failure began that was; None when there are none.
    """

    failure: Failure
    began: int
    avoided: int
    until_avoided: TimeSpread | None = None


class TrialsReport(Struct, frozen=True):
    """What came of many trials of one scenario.

    An interval is that of the mean over trials, by Student's t. What a trial cannot say is left out of a mean: a trial
    that stores nothing has no shares.

    Attributes:
        topic: to which topic.
        scenario: what was simulated.
        profile: the client's rules by name.
        trials: how many trials were run.
        wanted: how many were asked for.
        stopped_early: the wanted precision was reached before all of them.
        messages: messages sent in a trial.
        shares: broker name → messages stored there, as a share of all stored ones; empty when no trial stored any.
        attempts: requests for each message.
        lost: share of messages lost. When no trial lost any, the upper end is 3 / trials (the rule of three: were a
            trial more likely than that to lose a message, one would have, in 95 of 100 cases).
        losing_trials: share of trials that lost a message, with Wilson's interval.
        extra_attempts: requests of a trial beyond each message's first.
        failing_ms: time of a trial in failed attempts, over all threads.
        longest_send_ms: the longest that one message took in a trial; None when no trial made an attempt.
        longest_send: how that is spread over trials; likewise.
        isolations: broker name → how often a trial isolated it.
        attempts_at: broker name → requests of a trial to it.
        failed_at: broker name → of these, failed.
        lost_messages: messages of a trial that no attempt stored: a number, where `lost` is a share. When no trial lost
            any, the upper end is that of the share, in messages.
        failures: how each failure was taken, in the scenario's order.
        not_store_ok: messages of a trial stored with another status than SEND_OK.
        duplicated: messages of a trial stored more than once.
        retried: messages of a trial that needed more than one attempt.
    """

    topic: str
    scenario: SendScenario
    profile: str
    trials: int
    wanted: int
    stopped_early: bool
    messages: Estimate
    shares: Mapping[str, Estimate]
    attempts: Estimate
    lost: Estimate
    losing_trials: Estimate
    extra_attempts: Estimate
    failing_ms: Estimate
    longest_send_ms: Estimate | None
    longest_send: TimeSpread | None
    isolations: Mapping[str, Estimate]
    attempts_at: Mapping[str, Estimate]
    failed_at: Mapping[str, Estimate]
    lost_messages: Estimate
    failures: tuple[FailureTrials, ...] = ()
    not_store_ok: Estimate = _NONE
    duplicated: Estimate = _NONE
    retried: Estimate = _NONE
