"""The answers of `simulate-send` and `select-queue`.

Times are milliseconds from the start of the simulation. Messages, attempts and threads are numbered from 1.
"""

from collections.abc import Mapping
from typing import Annotated, TypeVar

from msgspec import Struct, field

from rmqlb.model.message_queue import MessageQueue, QueueName
from rmqlb.model.result import Figure, Finding, TriedCondition
from rmqlb.model.send_scenario import ProducerSettings, ProxyMode, ReactionKind, SendScenario

Shape = TypeVar("Shape", bound=Struct)


class Attempt(Struct, frozen=True, rename="camel"):
    """One attempt to send one message."""

    message: Annotated[int, "the message's number, in the order of first attempts"]
    attempt: Annotated[int, "1 is the first"]
    thread: Annotated[int, "the thread that sent the message"]
    at_ms: Annotated[float, "when it began, in milliseconds from the start"]
    broker_name: Annotated[str, "the broker it went to"]
    queue_id: Annotated[int, "the queue there"]
    outcome: Annotated[str, "SEND_OK, a store status, an error code's name, or the client's exception"]
    took_ms: Annotated[float, "how long it took"]


class MessageException(Struct, frozen=True, rename="camel"):
    """The exception for a lost message: thrown by `send`, or handed to its callback."""

    exception_class: Annotated[str, "the class's simple name, such as MQClientException"]
    text: Annotated[str | None, "its message, all lines; null where only a broker or a socket knows it"] = None
    response_code: Annotated[int | None, "of an MQClientException or MQBrokerException; null for other classes"] = None
    cause: Annotated[str | None, "simple name of the class of its cause, or null"] = None


class LostMessage(Struct, frozen=True, rename="camel"):
    """One lost message."""

    message: Annotated[int, "its number"]
    thread: Annotated[int, "the thread that sent it"]
    at_ms: Annotated[float, "when the application got the error, or otherwise when the client gave up"]
    reason: Annotated[str, "as in `lostBy` of the totals"]
    brokers_sent: Annotated[tuple[str, ...], "the brokers of its attempts, in order"]
    exception: Annotated[MessageException | None, "the exception that the application gets; null when it gets none"]


class ExceptionKind(Struct, frozen=True, rename="camel"):
    """Messages that ended with exceptions of one kind: one class, code and cause, after the same brokers."""

    messages: Annotated[int, "number of messages"]
    exception_class: Annotated[str, "simple name of the class that the application gets, thrown or in its callback"]
    response_code: Annotated[int | None, "of an MQClientException or MQBrokerException; null for other classes"]
    cause: Annotated[str | None, "simple name of the class of its cause; null without"]
    brokers_sent: Annotated[tuple[str, ...] | None, "brokers of the attempts; null after the first hundred kinds"]
    first_message: Annotated[int, "number of the first of these messages"]
    text: Annotated[str | None, "text of that message, others may name other times; null where only a broker knows it"]


class QueueTally(Struct, frozen=True, rename="camel"):
    """The sends to one queue."""

    broker_name: Annotated[str, "its broker"]
    queue_id: Annotated[int, "its number there, from 0"]
    picks: Annotated[int, "how often the producer chose it"]
    attempts: Annotated[int, "picks that led to a request; a pick after the deadline does not"]
    failed: Annotated[int, "attempts that failed"]
    stored: Annotated[int, "messages stored, with whatever status; one that a retry stored again counts twice"]
    share: Annotated[float | None, "share of all stored messages (0..1); null when none was stored"]


class BrokerTally(Struct, frozen=True, rename="camel"):
    """The sends to one broker."""

    broker_name: Annotated[str, "its name"]
    queues: Annotated[int, "number of its queues in the producer's list at the start"]
    picks: Annotated[int, Figure("how often the producer chose it")]
    attempts: Annotated[int, "picks that led to a request; a pick after the deadline does not"]
    failed: Annotated[int, Figure("attempts that failed")]
    stored: Annotated[int, "messages stored, with whatever status; one that a retry stored again counts twice"]
    share: Annotated[float | None, Figure("share of all stored messages (0..1)", unknown="when none was stored")]
    isolations: Annotated[int, Figure("how often a slow or failed attempt isolated it")]
    isolated_ms: Annotated[float, Figure("how long it was isolated or absent from the producer's list")]


class FailureTaken(Struct, frozen=True, rename="camel"):
    """A failure and how the producer reacted; times count from the start, in milliseconds."""

    broker_name: Annotated[str, "the broker that failed"]
    kind: Annotated[ReactionKind, "refused, timeout, slow, read-only, status or code"]
    name: Annotated[str, "RocketMQ's name of a store status or code, otherwise the kind"]
    code: Annotated[int | None, "the response code, where it is one"]
    nameserver_notices_ms: Annotated[float | None, "until the NameServer drops the broker; null when it never does"]
    began_ms: Annotated[float | None, "when it began; null when the simulation did not reach it"]
    ended_ms: Annotated[float | None, "when it ended; null when it did not"]
    failed: Annotated[int, "attempts that failed because of it"]
    first_failed_ms: Annotated[float | None, "when the first of them began"]
    last_failed_ms: Annotated[float | None, "when the last of them began"]
    isolated_ms: Annotated[float | None, "when the broker was first isolated or gone from the producer's list"]
    isolated_after_ms: Annotated[float | None, "time from the begin until then"]
    isolated_by: Annotated[str | None, "isolation or route"]
    used_again_ms: Annotated[float | None, "when the first attempt after the end succeeded"]
    used_again_after_ms: Annotated[float | None, "time from the end until then"]


class BrokerSlice(Struct, frozen=True, rename="camel"):
    """The sends to a broker in a slice of time."""

    broker_name: Annotated[str, "its name"]
    attempts: Annotated[int, "requests that began in the slice"]
    failed: Annotated[int, "attempts that failed in the slice"]
    isolated_ms: Annotated[float, "how long it was isolated or absent from the producer's list"]


class Slice(Struct, frozen=True, rename="camel"):
    """A slice of the simulated time."""

    from_ms: Annotated[float, "its begin, in milliseconds from the start"]
    to_ms: Annotated[float, "its end, which belongs to the next slice"]
    lost: Annotated[int, "messages lost in it"]
    brokers: Annotated[tuple[BrokerSlice, ...], "broker by broker"]


class SendTotals(Struct, frozen=True, rename="camel"):
    """The simulation in numbers."""

    messages: Annotated[int, "messages sent"]
    stored: Annotated[int, Figure("messages stored, with whatever status", of="messages")]
    not_store_ok: Annotated[int, Figure("of these, stored with another status than SEND_OK", of="messages")]
    duplicated: Annotated[int, Figure("of these, stored more than once, as far as known", of="messages")]
    lost: Annotated[int, Figure("messages not stored after all attempts, as far as the producer knows", of="messages")]
    lost_by: Annotated[Mapping[str, int], "reason → messages lost by it"]
    retried: Annotated[int, Figure("messages that needed more than one attempt", of="messages")]
    attempts: Annotated[int, Figure("requests")]
    failed_attempts: Annotated[int, Figure("of these, failed", of="attempts")]
    retries: Annotated[int, Figure("attempts beyond each message's first", of="attempts")]
    failing_ms: Annotated[float, Figure("time in failed attempts, over all threads")]
    longest_send_ms: Annotated[float | None, Figure("longest send of a message", unknown="without an attempt")]
    lasted_ms: Annotated[float, "when the last message was done"]
    until_isolated_ms: Annotated[float | None, "the longest time until a failed broker left the producer's list"]
    until_used_again_ms: Annotated[float | None, "the longest time until a recovered broker was used again"]


class HotKey(Struct, frozen=True, rename="camel"):
    """A frequent message key, and its queue while the queue list is complete."""

    key: Annotated[str, "the key"]
    messages: Annotated[int, "number of messages with it"]
    broker_name: Annotated[str | None, "the broker of its queue; null when the selector throws or returns null"]
    queue_id: Annotated[int | None, "its queue's number there; null when the selector throws or returns null"]


class KeySpread(Struct, frozen=True, rename="camel"):
    """The keys that a selector was given."""

    distinct: Annotated[int, "different keys"]
    messages: Annotated[int, "keys in all"]
    hottest: Annotated[tuple[HotKey, ...], "the most frequent ones"]


class SimulatedProducer(ProducerSettings, frozen=True, rename="camel", kw_only=True):
    """The producer and its load."""

    profile: Annotated[str, "the client versions whose rules were followed"]
    latency_max_ms: Annotated[tuple[int, ...], "thresholds of the latency fault table, in milliseconds"]
    not_available_duration_ms: Annotated[tuple[int, ...], "isolation time of each threshold, in milliseconds"]
    failure_isolates_ms: Annotated[int, "how long a failed attempt isolates, in milliseconds"]
    rate_per_second: Annotated[float | None, "messages per second; null for back to back"]
    duration_ms: Annotated[float | None, "no message starts after it; null without limit"]
    latency: Annotated[Mapping[str, str], "broker name → its latency as text; default is that of the others"]
    exclude: Annotated[tuple[str, ...], "brokers whose queues the producer leaves out"]
    selector: Annotated[str | None, "kind of the queue selector, for a function its name; null without one"]
    first_poll_ms: Annotated[float, "when the producer first requests the route again"]
    poll_ms: Annotated[float, "interval between later requests"]


class OtherProducer(Struct, frozen=True, rename="camel"):
    """The same scenario with another setting, in short."""

    sdk: Annotated[str, "whose producer, such as java or go-grpc"]
    client_version: Annotated[str, "version of the client"]
    profile: Annotated[str, "the client versions whose rules were followed"]
    latency_fault: Annotated[bool, "sendLatencyFaultEnable"]
    totals: Annotated[SendTotals, "the simulation in numbers"]
    brokers: Annotated[tuple[BrokerTally, ...], "broker by broker"]
    failures: Annotated[tuple[FailureTaken, ...], "each failure and how the producer reacted"]


class Estimate(Struct, frozen=True):
    """A mean over trials with its 95 % interval."""

    mean: Annotated[float, "mean over the trials"]
    low: Annotated[float, "lower end of the interval"]
    high: Annotated[float, "upper end"]


class TimeSpread(Struct, frozen=True, rename="camel"):
    """How a time varies over trials, in milliseconds."""

    mean_ms: Annotated[float, "mean over the trials"]
    p50_ms: Annotated[float, "the median"]
    p95_ms: Annotated[float, "the 95th percentile"]
    max_ms: Annotated[float, "the largest of any trial"]


class LongestSend(Estimate, frozen=True, rename="camel"):
    """The longest that one message takes in a trial: its mean with the interval, and how single trials vary."""

    mean_ms: Annotated[float, "mean over the trials"]
    p50_ms: Annotated[float, "the median"]
    p95_ms: Annotated[float, "the 95th percentile"]
    max_ms: Annotated[float, "the largest of any trial"]


class FailureInTrials(Struct, frozen=True, rename="camel"):
    """How the producers of many trials reacted to a failure."""

    broker_name: Annotated[str, "the broker that failed"]
    began: Annotated[int, "trials that reached the failure"]
    isolated: Annotated[int, "of these, trials in which the broker was isolated or left the producer's list"]
    until_isolated: Annotated[TimeSpread | None, "time until then; null without any"] = field(name="untilIsolatedMs")


class SendTrials(Struct, frozen=True, rename="camel"):
    """The results of many trials of one scenario.

    An interval is that of the mean over trials, by Student's t. A mean leaves out trials without the figure: a trial
    that stores nothing has no shares.
    """

    trials: Annotated[int, "trials that ran"]
    wanted: Annotated[int, "trials that were requested"]
    stopped_early: Annotated[bool, "the wanted precision was reached before all of them"]
    messages: Annotated[Estimate, "messages of a trial"]
    shares: Annotated[Mapping[str, Estimate], "broker name → its share of stored messages"] = field(name="share")
    attempts: Annotated[Estimate, "requests per message"] = field(name="attemptsPerMessage")
    lost_messages: Annotated[Estimate, "messages of a trial that no attempt stored"] = field(name="lost")
    lost_share: Annotated[Estimate, "share of lost messages; up to 3 / trials if none is lost (rule of three)"]
    losing_trials: Annotated[Estimate, "share of trials that lost a message, with Wilson's interval"]
    retries: Annotated[Estimate, "attempts of a trial beyond each message's first"]
    failing_ms: Annotated[Estimate, "time of a trial in failed attempts, over all threads"]
    not_store_ok: Annotated[Estimate, "messages of a trial stored with another status than SEND_OK"]
    duplicated: Annotated[Estimate, "messages of a trial stored more than once"]
    retried: Annotated[Estimate, "messages of a trial that needed more than one attempt"]
    longest_send_ms: Annotated[LongestSend | None, "longest send in a trial; null without any attempt"]
    isolations: Annotated[Mapping[str, Estimate], "broker name → how often a trial isolated it"]
    failures: Annotated[tuple[FailureInTrials, ...], "each failure, in the scenario's order"]


class TrialsReport(SendTrials, frozen=True, kw_only=True):
    """The results of many trials, with figures that Python alone gets."""

    topic: Annotated[str, "the topic"]
    scenario: Annotated[SendScenario, "the simulated scenario"]
    profile: Annotated[str, "the client versions whose rules were followed"]
    picks: Annotated[Mapping[str, Estimate], "broker name → how often the producer chose it in a trial"]
    attempts_at: Annotated[Mapping[str, Estimate], "broker name → of these, those that led to a request"]
    failed_at: Annotated[Mapping[str, Estimate], "broker name → of these requests, failed"]


class SendResult(Struct, frozen=True, rename="camel"):
    """Where a producer's messages go while brokers fail."""

    topic: Annotated[str, "the topic"]
    producer: Annotated[SimulatedProducer, "the producer and its load"] = field(name="scenario")
    attempts: Annotated[tuple[Attempt, ...] | None, "every attempt; null for more than 1,000 messages without --trace"]
    lost_messages: Annotated[tuple[LostMessage, ...] | None, "every lost message; null where attempts is null"]
    exceptions: Annotated[tuple[ExceptionKind, ...], "exceptions of lost messages, the most frequent first"]
    queues: Annotated[tuple[QueueTally, ...], "queue by queue, in the producer's order"]
    brokers: Annotated[tuple[BrokerTally, ...], "broker by broker, by name"]
    totals: Annotated[SendTotals, "the simulation in numbers"]
    failures: Annotated[tuple[FailureTaken, ...], "each failure, in the scenario's order"]
    timeline: Annotated[tuple[Slice, ...], "slice by slice"]
    keys: Annotated[KeySpread | None, "the keys and their queues; null without --keys"] = None
    comparison: Annotated[tuple[OtherProducer, ...], "latency fault off and on; empty if not compared"] = ()
    clients: Annotated[tuple[OtherProducer, ...], "other client versions; empty without --compare clients"] = ()
    sdks: Annotated[tuple[OtherProducer, ...], "producers of each SDK; empty without --compare sdks"] = ()
    trials: Annotated[SendTrials | None, "the results of many trials; null without --trials"] = None
    conditions: Annotated[tuple[TriedCondition, ...], "the conditions of --fail-on"] = ()

    @property
    def in_short(self) -> OtherProducer:
        of = self.producer
        settings = of.sdk, of.client_version, of.profile, of.latency_fault
        return OtherProducer(*settings, self.totals, self.brokers, self.failures)


class SendReport(SendResult, frozen=True, kw_only=True):
    """The result with what Python alone gets."""

    scenario: Annotated[SendScenario, "the simulated scenario"] = field(name="asked")
    publish_queues: Annotated[tuple[MessageQueue, ...], "the producer's list at the start"]
    findings: Annotated[tuple[Finding, ...], "findings about the simulation, the worst first"] = ()

    @property
    def profile(self) -> str:
        return self.producer.profile


def printed_part(value: Struct, shape: type[Shape]) -> Shape:
    """The printed part of a Python answer: the fields of its base `shape`."""
    return shape(*(getattr(value, name) for name in shape.__struct_fields__))


class KeyedSdk(Struct, frozen=True, rename="camel"):
    """An SDK whose producers send the keys."""

    sdk: Annotated[str, "as it was asked for, such as go-grpc or go-grpc@5.1.4"]
    mirrors: Annotated[str, "the version whose rules are followed, with the SDK where that is another one"]
    vectors: Annotated[int, "answers of the SDK itself that confirm the rules; 0 where its source was read"]
    live: Annotated[bool, "the rules were also compared with a running producer"]
    assumed: Annotated[bool, "the rules of the requested SDK or version are unknown; those of `mirrors` apply"]
    grpc: Annotated[bool, "its messages go to a Proxy, which picks the queue"]
    note: Annotated[str | None, "further assumptions of the rules; null when there are none"]
    unknown: Annotated[str | None, "why the queues of its keys are unknown; null when they are known"]
    queues_used: Annotated[int | None, "queues that at least one key goes to; null when that cannot be known"]
    most_keys: Annotated[int | None, "keys of the queue that gets the most; null in the same case"]
    moved: Annotated[int | None, "keys that change their queue; null without a change, or when unknown"]
    moved_share: Annotated[float | None, "the same as a share of the keys (0..1)"]


class SdkPair(Struct, frozen=True, rename="camel"):
    """Two SDKs compared."""

    sdk: Annotated[str, "the first SDK"]
    other_sdk: Annotated[str, "the second SDK"]
    differ: Annotated[int, "keys that they send to different queues"]
    differ_share: Annotated[float, "the same as a share of the keys (0..1)"]


class KeyQueue(Struct, frozen=True, rename="camel"):
    """A key and where it goes."""

    key: Annotated[str, "a message group or sharding key"]
    picks: Annotated[Mapping[str, QueueName | None], "SDK → the queue that the SDK picks; null when unknown"]
    queues: Annotated[Mapping[str, QueueName | None], "SDK → the queue that stores it; null when unknown or none"]
    queues_after: Annotated[Mapping[str, QueueName | None] | None, "the same after the change; null without a change"]


class KeyQueues(Struct, frozen=True, rename="camel"):
    """Where the keys of a topic go."""

    topic: Annotated[str, "its name"]
    writable_queues: Annotated[int, "its queues that producers can write"]
    proxy_mode: Annotated[ProxyMode, "mode of the gRPC producers' Proxy: local (in each broker) or cluster"]
    sdks: Annotated[tuple[KeyedSdk, ...], "in the order asked for"]
    pairs: Annotated[tuple[SdkPair, ...], "pairs of SDKs whose queues are known, the most different first"]
    changes: Annotated[tuple[str, ...], "what changes, in words; empty when nothing does"]
    keys: Annotated[tuple[KeyQueue, ...], "key by key, as given, each once"]
