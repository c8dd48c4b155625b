"""The answer of `simulate-send`.

Times are milliseconds from the start of the simulation. Messages, attempts and threads are numbered from 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct, field

from rmqlb.model.condition import TriedCondition
from rmqlb.model.finding import Finding
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import ProducerSettings, ReactionKind, SendScenario

Shape = TypeVar("Shape", bound=Struct)


class Attempt(Struct, frozen=True, rename="camel"):
    """One attempt to send one message.

    Attributes:
        message: the message's number, in the order of first attempts.
        attempt: 1 is the first.
        thread: the thread that sent the message.
        at_ms: when it began, in milliseconds from the start.
        broker_name: the broker it went to.
        queue_id: the queue there.
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
    """The exception for a lost message: thrown by `send`, or handed to its callback.

    Attributes:
        exception_class: the class's simple name, such as MQClientException.
        text: its message, all lines; null where it holds what only a broker or a socket knows.
        response_code: of an MQClientException or MQBrokerException; null for other classes.
        cause: simple name of the class of its cause, or null.
    """

    exception_class: str
    text: str | None = None
    response_code: int | None = None
    cause: str | None = None


class LostMessage(Struct, frozen=True, rename="camel"):
    """One lost message.

    Attributes:
        message: its number.
        thread: the thread that sent it.
        at_ms: when the application was told, in milliseconds from the start; if it is lost unnoticed, when the client
            was done with it.
        reason: as in `lostBy` of the totals.
        brokers_sent: the brokers of its attempts, in order.
        exception: the exception that the application gets; null when it gets none.
    """

    message: int
    thread: int
    at_ms: float
    reason: str
    brokers_sent: tuple[str, ...]
    exception: MessageException | None


class ExceptionKind(Struct, frozen=True, rename="camel"):
    """Messages that ended with exceptions of one kind: one class, code and cause, after the same brokers.

    Attributes:
        messages: number of messages.
        exception_class: simple name of the class that the application gets, thrown or in its callback.
        response_code: of an MQClientException or MQBrokerException; null for other classes.
        cause: simple name of the class of its cause; null without.
        brokers_sent: the brokers of the attempts, in order; null for all kinds together after the first hundred.
        first_message: number of the first of these messages.
        text: that message's text; others may name other times; null where it holds what only a broker knows.
    """

    messages: int
    exception_class: str
    response_code: int | None
    cause: str | None
    brokers_sent: tuple[str, ...] | None
    first_message: int
    text: str | None


class QueueTally(Struct, frozen=True, rename="camel"):
    """The sends to one queue.

    Attributes:
        broker_name: its broker.
        queue_id: its number there, from 0.
        picks: how often the producer chose it.
        attempts: picks that led to a request; a pick after the deadline does not.
        failed: attempts that failed.
        stored: messages stored, with whatever status; one that a retry stored again counts twice.
        share: share of all stored messages (0..1); null when none was stored.
    """

    broker_name: str
    queue_id: int
    picks: int
    attempts: int
    failed: int
    stored: int
    share: float | None


class BrokerTally(Struct, frozen=True, rename="camel"):
    """The sends to one broker.

    Attributes:
        broker_name: its name.
        queues: number of its queues in the producer's list at the start.
        picks: how often the producer chose it.
        attempts: picks that led to a request; a pick after the deadline does not.
        failed: attempts that failed.
        stored: messages stored, with whatever status; one that a retry stored again counts twice.
        share: share of all stored messages (0..1); null when none was stored.
        isolations: how often a slow or failed attempt isolated it.
        isolated_ms: how long it was isolated or absent from the producer's list.
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


class FailureTaken(Struct, frozen=True, rename="camel"):
    """A failure and how the producer reacted; times count from the start, in milliseconds.

    Attributes:
        broker_name: the broker that failed.
        kind: refused, timeout, slow, read-only, status or code.
        name: RocketMQ's name of a store status or code, otherwise the kind.
        code: the response code, where it is one.
        nameserver_notices_ms: time after which the NameServer drops the broker; null when it never does.
        began_ms: when it began; null when the simulation did not reach it.
        ended_ms: when it ended; null when it did not.
        failed: attempts that failed because of it.
        first_failed_ms: when the first of them began.
        last_failed_ms: when the last of them began.
        isolated_ms: when the broker was first isolated or gone from the producer's list.
        isolated_after_ms: time from the begin until then.
        isolated_by: isolation or route.
        used_again_ms: when the first attempt after the end succeeded.
        used_again_after_ms: time from the end until then.
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


class BrokerSlice(Struct, frozen=True, rename="camel"):
    """The sends to a broker in a slice of time.

    Attributes:
        broker_name: its name.
        attempts: requests that began in the slice.
        failed: attempts that failed in the slice.
        isolated_ms: how long it was isolated or absent from the producer's list.
    """

    broker_name: str
    attempts: int
    failed: int
    isolated_ms: float


class Slice(Struct, frozen=True, rename="camel"):
    """A slice of the simulated time.

    Attributes:
        from_ms: its begin, in milliseconds from the start.
        to_ms: its end, which belongs to the next slice.
        lost: messages lost in it.
        brokers: broker by broker.
    """

    from_ms: float
    to_ms: float
    lost: int
    brokers: tuple[BrokerSlice, ...]


class SendTotals(Struct, frozen=True, rename="camel"):
    """The simulation in numbers.

    Attributes:
        messages: messages sent.
        stored: messages stored, with whatever status.
        not_store_ok: of these, stored with another status than SEND_OK.
        duplicated: of these, stored more than once by retries, as far as the producer knows.
        lost: messages not stored after all attempts, as far as the producer knows.
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
        until_used_again_ms: the longest time until a recovered broker was used again; null when none was.
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


class HotKey(Struct, frozen=True, rename="camel"):
    """A frequent message key, and its queue while the queue list is complete.

    Attributes:
        key: the key.
        messages: number of messages with it.
        broker_name: the broker of its queue; null when the selector throws or returns null.
        queue_id: its queue's number there; null when the selector throws or returns null.
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


class SimulatedProducer(ProducerSettings, frozen=True, rename="camel", kw_only=True):
    """The producer and its load.

    Attributes:
        profile: the client versions whose rules were followed.
        latency_max_ms: thresholds of the latency fault table, in milliseconds.
        not_available_duration_ms: how long each of them isolates, in milliseconds.
        failure_isolates_ms: how long a failed attempt isolates, in milliseconds.
        rate_per_second: messages per second; null for back to back.
        duration_ms: no message starts after it; null without limit.
        latency: broker name → its latency as text; default is that of the others.
        exclude: brokers whose queues the producer leaves out.
        selector: kind of the queue selector, for a function its name; null without one.
        first_poll_ms: when the producer first requests the route again.
        poll_ms: how often it does so from then on.
    """

    profile: str
    latency_max_ms: tuple[int, ...]
    not_available_duration_ms: tuple[int, ...]
    failure_isolates_ms: int
    rate_per_second: float | None
    duration_ms: float | None
    latency: Mapping[str, str]
    exclude: tuple[str, ...]
    selector: str | None
    first_poll_ms: float
    poll_ms: float


class OtherProducer(Struct, frozen=True, rename="camel"):
    """The same scenario with another setting, in short.

    Attributes:
        sdk: whose producer, such as java or go-grpc.
        client_version: version of the client.
        profile: the client versions whose rules were followed.
        latency_fault: sendLatencyFaultEnable.
        totals: in numbers.
        brokers: broker by broker.
        failures: each failure and how the producer reacted.
    """

    sdk: str
    client_version: str
    profile: str
    latency_fault: bool
    totals: SendTotals
    brokers: tuple[BrokerTally, ...]
    failures: tuple[FailureTaken, ...]


class Estimate(Struct, frozen=True):
    """A mean over trials with its 95 % interval.

    Attributes:
        mean: mean over the trials.
        low: lower end of the interval.
        high: upper end.
    """

    mean: float
    low: float
    high: float


class TimeSpread(Struct, frozen=True, rename="camel"):
    """How a time varies over trials, in milliseconds.

    Attributes:
        mean_ms: mean over the trials.
        p50_ms: the median.
        p95_ms: the 95th percentile.
        max_ms: the largest of any trial.
    """

    mean_ms: float
    p50_ms: float
    p95_ms: float
    max_ms: float


class LongestSend(Estimate, frozen=True, rename="camel"):
    """The longest that one message takes in a trial: its mean with the interval, and how single trials vary.

    Attributes:
        mean_ms: mean over the trials.
        p50_ms: the median.
        p95_ms: the 95th percentile.
        max_ms: the largest of any trial.
    """

    mean_ms: float
    p50_ms: float
    p95_ms: float
    max_ms: float


class FailureInTrials(Struct, frozen=True, rename="camel"):
    """How the producers of many trials reacted to a failure.

    Attributes:
        broker_name: the broker that failed.
        began: trials that reached the failure.
        isolated: of these, trials in which the broker was isolated or left the producer's list while it lasted.
        until_isolated: over these, the time from the begin until then; null when there are none.
    """

    broker_name: str
    began: int
    isolated: int
    until_isolated: TimeSpread | None = field(name="untilIsolatedMs")


class SendTrials(Struct, frozen=True, rename="camel"):
    """The results of many trials of one scenario.

    An interval is that of the mean over trials, by Student's t. A mean leaves out trials without the figure: a trial
    that stores nothing has no shares.

    Attributes:
        trials: trials that ran.
        wanted: trials that were requested.
        stopped_early: the wanted precision was reached before all of them.
        messages: messages of a trial.
        shares: broker name → its share of the stored messages; empty when no trial stored any.
        attempts: requests per message.
        lost_messages: messages of a trial that no attempt stored. When no trial lost any, the upper end is that of
            lostShare, in messages.
        lost_share: share of messages lost, 0 to 1. When no trial lost any, the upper end is 3 / trials (the rule of
            three: were a trial more likely than that to lose a message, one would have, in 95 of 100 cases).
        losing_trials: share of trials that lost a message, with Wilson's interval.
        retries: attempts of a trial beyond each message's first.
        failing_ms: time of a trial in failed attempts, over all threads.
        not_store_ok: messages of a trial stored with another status than SEND_OK.
        duplicated: messages of a trial stored more than once.
        retried: messages of a trial that needed more than one attempt.
        longest_send_ms: the longest that one message took in a trial; null when no trial made an attempt.
        isolations: broker name → how often a trial isolated it.
        failures: each failure, in the scenario's order.
    """

    trials: int
    wanted: int
    stopped_early: bool
    messages: Estimate
    shares: Mapping[str, Estimate] = field(name="share")
    attempts: Estimate = field(name="attemptsPerMessage")
    lost_messages: Estimate = field(name="lost")
    lost_share: Estimate
    losing_trials: Estimate
    retries: Estimate
    failing_ms: Estimate
    not_store_ok: Estimate
    duplicated: Estimate
    retried: Estimate
    longest_send_ms: LongestSend | None
    isolations: Mapping[str, Estimate]
    failures: tuple[FailureInTrials, ...]


class TrialsReport(SendTrials, frozen=True, kw_only=True):
    """The results of many trials, with figures that Python alone gets.

    Attributes:
        topic: the topic.
        scenario: the simulated scenario.
        profile: the client versions whose rules were followed.
        picks: broker name → how often the producer chose it in a trial.
        attempts_at: broker name → of these, those that led to a request.
        failed_at: broker name → of these requests, failed.
    """

    topic: str
    scenario: SendScenario
    profile: str
    picks: Mapping[str, Estimate]
    attempts_at: Mapping[str, Estimate]
    failed_at: Mapping[str, Estimate]


class SendResult(Struct, frozen=True, rename="camel"):
    """Where a producer's messages go while brokers fail.

    Attributes:
        topic: the topic.
        producer: the producer and its load.
        attempts: every attempt; null for more than 1,000 messages without --trace.
        lost_messages: every lost message and its exception; null where attempts is.
        exceptions: exceptions of lost messages, the most frequent first.
        queues: queue by queue, in the producer's order.
        brokers: broker by broker, by name.
        totals: in numbers.
        failures: each failure, in the scenario's order.
        timeline: slice by slice.
        keys: the keys and their queues; null without --keys.
        comparison: latency fault off and on; empty without --compare.
        clients: other client versions; empty without --compare-clients.
        sdks: producers of each SDK; empty without --compare-sdks.
        trials: the results of many trials; null without --trials.
        conditions: the conditions of --fail-on.
    """

    topic: str
    producer: SimulatedProducer = field(name="scenario")
    attempts: tuple[Attempt, ...] | None
    lost_messages: tuple[LostMessage, ...] | None
    exceptions: tuple[ExceptionKind, ...]
    queues: tuple[QueueTally, ...]
    brokers: tuple[BrokerTally, ...]
    totals: SendTotals
    failures: tuple[FailureTaken, ...]
    timeline: tuple[Slice, ...]
    keys: KeySpread | None = None
    comparison: tuple[OtherProducer, ...] = ()
    clients: tuple[OtherProducer, ...] = ()
    sdks: tuple[OtherProducer, ...] = ()
    trials: SendTrials | None = None
    conditions: tuple[TriedCondition, ...] = ()

    @property
    def in_short(self) -> OtherProducer:
        """The result as one of several that are compared."""
        producer = self.producer
        return OtherProducer(
            producer.sdk,
            producer.client_version,
            producer.profile,
            producer.latency_fault,
            self.totals,
            self.brokers,
            self.failures,
        )


class SendReport(SendResult, frozen=True, kw_only=True):
    """The result with what Python alone gets.

    Attributes:
        scenario: the simulated scenario.
        publish_queues: the producer's list at the start.
        findings: findings about the simulation, the worst first.
    """

    scenario: SendScenario = field(name="asked")
    publish_queues: tuple[MessageQueue, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def profile(self) -> str:
        return self.producer.profile


def printed_part(value: Struct, shape: type[Shape]) -> Shape:
    """The part of a Python answer that is printed as JSON: its fields of that shape, a base of its own."""
    return shape(*(getattr(value, name) for name in shape.__struct_fields__))
