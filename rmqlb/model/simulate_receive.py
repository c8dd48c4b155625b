"""What `simulate-receive` simulates, and its result.

Times of a scenario are whole microseconds (`_us`), those of the result milliseconds (`_ms`) from the start. Consumers
and loops have numbers from 1. A message waits from when a broker stores it until a client first receives it; later
deliveries count as redelivered, with times of their own.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Literal

from msgspec import Meta, Struct

from rmqlb.model.limits import MOST_EVENTS, MOST_FAILURES, PositiveTime, Seed, Time
from rmqlb.model.result import Figure, Result, TriedCondition
from rmqlb.model.send_scenario import NEWEST, Failure, ReactionKind

ReceiveClient = Literal["simple", "push", "pop"]
SECOND_US = 1_000_000
AWAIT_US = 20 * SECOND_US
INVISIBLE_US = 60 * SECOND_US
ROUND_TRIP_US = 1000
MOST_BATCH = 32
"""What a POP request may ask for (`ProxyUtils.MAX_MSG_NUMS_FOR_POP_REQUEST`; `PopMessageProcessor` refuses more)."""
MOST_LOOPS = 1000
MOST_RECEIVERS = 1000
MOST_RECEIVED = 1_000_000
MOST_RECEIVE_TRIALS = 1000
MOST_PERCENT = PRIORITY_FACTOR = 100
"""The default `priority.factor` of a group is the largest (`SubscriptionGroupAttributes`, 5.4.0)."""
Percent = Annotated[int, Meta(ge=0, le=MOST_PERCENT)]
Measured = Annotated[int, Meta(ge=1, le=MOST_RECEIVED)]


class QueueRate(Struct, frozen=True):
    """How many messages per second arrive in a queue."""

    broker_name: str
    queue_id: Annotated[int, Meta(ge=0)]
    per_second: Annotated[Fraction, "messages per second"]


class Crash(Struct, frozen=True):
    """A consumer, by its number, whose process dies; its connections are closed at once."""

    consumer: Annotated[int, Meta(ge=1, le=MOST_RECEIVERS)]
    at_us: Annotated[Time, "when it dies"]


class ReceiverSettings(Struct, frozen=True, rename="camel"):
    """Settings of receivers that the result repeats."""

    client: Annotated[ReceiveClient, "gRPC consumer through a Proxy, simple or push, or remoting client, pop"] = (
        "simple"
    )
    consumers: Annotated[int, Meta(ge=1, le=MOST_RECEIVERS), "processes of the group"] = 1
    loops: Annotated[int, Meta(ge=1, le=MOST_LOOPS), "receives in parallel of each; one per broker of push and pop"] = 1
    batch: Annotated[int, Meta(ge=1, le=MOST_BATCH), "most messages of a receive (maxMessageNum)"] = MOST_BATCH
    fifo: Annotated[bool, "the group consumes in order (consumeMessageOrderly)"] = False
    messages: Annotated[Measured | None, "number of measured messages; null for as many as fit the time"] = None
    seed: Annotated[int, "the random seed"] = 1
    broker_version: Annotated[str, "version of the brokers"] = NEWEST
    priority_factor: Annotated[
        Percent | None, "priority.factor of the group, of receives; null if the topic's type is not PRIORITY"
    ] = None
    priority_retry_percent: Annotated[
        Percent, "popFromRetryProbabilityForPriority of the brokers, of receives by priority instead of 20"
    ] = 0


class ReceiveScenario(ReceiverSettings, frozen=True):
    """The clients, their load, and the failures.

    Attributes:
        await_us: `awaitDuration` of a SimpleConsumer; others use the setting of the Proxy or the client.
        invisible_us: `invisibleDuration` of a receive, or `popInvisibleTime`; the Proxy renews that of a PushConsumer.
        rates: messages per second of queues, 0 for others; empty is so rare that each message finds every receive idle.
        duration_us: later messages do not count; None is without limit.
    """

    seed: Seed = 1  # JSON Schema cannot have these bounds
    await_us: PositiveTime = AWAIT_US
    invisible_us: PositiveTime = INVISIBLE_US
    consume_us: Annotated[Time, "how long the application takes for a message, after which it is acknowledged"] = 0
    error_pause_us: Annotated[Time, "how long a SimpleConsumer's loop waits after a receive that failed"] = 0
    round_trip_us: Annotated[Time, "round-trip time of a request"] = ROUND_TRIP_US
    rates: Annotated[tuple[QueueRate, ...], Meta(max_length=MOST_EVENTS)] = ()
    duration_us: PositiveTime | None = None
    failures: Annotated[tuple[Failure, ...], Meta(max_length=MOST_FAILURES)] = ()
    crashes: Annotated[tuple[Crash, ...], Meta(max_length=MOST_RECEIVERS)] = ()

    @property
    def rare(self) -> bool:
        return not self.rates


class WaitTimes(Struct, frozen=True, rename="camel"):
    """How a time is spread over messages, in milliseconds."""

    messages: Annotated[int, "how many there are"]
    mean_ms: Annotated[float, Figure("over all of them")]
    p50_ms: Annotated[float, Figure("the median")]
    p95_ms: Annotated[float, Figure("the 95th percentile")]
    p99_ms: Annotated[float, Figure("the 99th percentile")]
    max_ms: Annotated[float, Figure("the maximum")]


class Quantile(Struct, frozen=True, rename="camel"):
    """A point of the distribution of waits, to hold a measured one against."""

    percent: Annotated[int, "a percentage of the messages, from 0 to 100"]
    wait_ms: Annotated[float, "that percentage of messages waits no longer, in milliseconds"]


class BrokerReceives(Struct, frozen=True, rename="camel"):
    """What receives did at one broker."""

    broker_name: str
    queues: Annotated[int, "its queues that consumers can read"]
    receives: Annotated[int, "requests that were sent to it"]
    share: Annotated[float | None, "its share of all requests; null when there was none"]
    empty: Annotated[int, "of these, receives that ended without a message at their timeout"]
    failed: Annotated[int, "of these, ended with an error"]
    messages: Annotated[int, "messages that clients received from it for the first time"]
    longest_unpolled_ms: Annotated[float, "the longest time in which no receive was waiting at it while it worked"]
    wait: Annotated[WaitTimes | None, "how long its messages waited; null when none was received"]


class QueueWaits(Struct, frozen=True, rename="camel"):
    """How long the messages of one queue waited, in milliseconds."""

    broker_name: str
    queue_id: int
    messages: Annotated[int, "how many of its messages clients received"]
    mean_ms: Annotated[float | None, "over all of them; null without any"]
    p95_ms: Annotated[float | None, "95 of 100 waited no longer; null without any"]
    max_ms: Annotated[float | None, "the longest; null without any"]


class ReceivedMessage(Struct, frozen=True, rename="camel"):
    """One message, where messages are kept."""

    message: Annotated[int, "its number, by arrival, from 1"]
    broker_name: str
    queue_id: int
    stored_ms: Annotated[float, "when the broker stored it"]
    received_ms: Annotated[float | None, "when a client had received it first; null when none had at the end"]
    wait_ms: Annotated[float | None, "the time between the two; null when none had received it"]
    consumer: Annotated[int | None, "number of the consumer that received it first; null without one"]
    deliveries: Annotated[int, "how often it was delivered"]
    done_ms: Annotated[float | None, "when it was acknowledged; null when it was not by the end"]


class ReceiveTotals(Struct, frozen=True, rename="camel"):
    """The simulation in numbers."""

    messages: Annotated[int, "measured messages that were stored"]
    further: Annotated[int, "later messages, which keep up the load and count nowhere else"]
    received: Annotated[int, "of these, received by a client"]
    acknowledged: Annotated[int, "of these, acknowledged by the end"]
    dead_lettered: Annotated[int, Figure("delivered so often that they went to the dead-letter queue", of="messages")]
    left: Annotated[
        int, Figure("neither by the end: their broker does not return, or no consumer receives them", of="messages")
    ]
    not_stored: Annotated[int, Figure("messages that arrived while their broker failed; producers send them elsewhere")]
    redelivered: Annotated[int, Figure("messages delivered more than once", of="messages")]
    receives: Annotated[int, Figure("requests", of="receives")]
    empty_receives: Annotated[
        int, Figure("of these, receives that ended without a message at their timeout", of="receives")
    ]
    failed_receives: Annotated[int, Figure("of these, ended with an error", of="receives")]
    lasted_ms: Annotated[float, "simulated time"]


class FailureReceived(Struct, frozen=True, rename="camel"):
    """A broker's failure, and what receives met."""

    broker_name: str
    kind: Annotated[ReactionKind, "refused or timeout"]
    from_ms: Annotated[float, "when it began"]
    to_ms: Annotated[float | None, "when it ended; null when it never does"]
    failed: Annotated[int, "receives that ended with an error by it"]
    last_failed_ms: Annotated[float | None, "when the last of them ended; null when none did"]
    received_again_ms: Annotated[float | None, "first message received from it after its end; null for none"]
    longest_wait_ms: Annotated[float | None, "longest wait of messages on the broker when it failed; null without any"]
    left: Annotated[int, "messages on the broker that no consumer had received by the end"]


class CrashReceived(Struct, frozen=True, rename="camel"):
    """A consumer's death, and when what it had not acknowledged was received again."""

    consumer: Annotated[int, "its number"]
    at_ms: Annotated[float, "when it died"]
    unacknowledged: Annotated[int, "messages that it had received or was being sent, and did not acknowledge"]
    again: Annotated[int, "of these, received by another consumer"]
    after: Annotated[WaitTimes | None, "how long after the death that was; null when none was"]
    again_earliest_ms: Annotated[float, "closed form: earliest redelivery after the death"]
    again_latest_ms: Annotated[float, "closed form: time from which it only waits for a receive"]


class ClosedForms(Struct, frozen=True, rename="camel"):
    """Figures that need no simulation."""

    receive_ms: Annotated[float, "the longest that an empty receive takes, with its way there and back"]
    cycle_ms: Annotated[float | None, "time in which receives visit all queues once; null without turns"]
    wait_ms: Annotated[float, "longest wait of a rare message: turns over the longest row of other brokers' queues"]
    unpolled_ms: Annotated[float | None, "longest time without a receive at a working broker; null without a bound"]
    always_polled: Annotated[int, "number of parallel receives with which every broker always has one waiting"]


class TargetWait(Struct, frozen=True, rename="camel"):
    """How many receives in parallel keep waits within a time."""

    wait_ms: Annotated[float, "the longest wait that is allowed"]
    receives: Annotated[int | None, "number of parallel receives that keep it; null when a thousand are too few"]
    rare: Annotated[int | None, "closed form: that number when messages are rare"]
    simulated: Annotated[bool, "found by simulation at the given rates, otherwise by the closed form"]
    trials: Annotated[int, "simulations of each number that was tried; 0 without simulation"]
    max_ms: Annotated[float | None, "longest wait with that number, simulated or closed form; null without number"]


class TrialWaits(Struct, frozen=True, rename="camel"):
    """Waits of many trials of the scenario with other random parts."""

    trials: Annotated[int, "number of trials"]
    wait: Annotated[WaitTimes | None, "over the messages of all trials"]
    lowest_max_ms: Annotated[float | None, "the longest wait of the trial where it is shortest"]
    lowest_p95_ms: Annotated[float | None, "the 95th percentile of the trial where it is lowest"]
    highest_p95_ms: Annotated[float | None, "the 95th percentile of the trial where it is highest"]
    left: Annotated[int, "messages that no consumer received, in all trials"]
    redelivered: Annotated[int, "messages delivered more than once, in all trials"]


class SimulatedReceivers(ReceiverSettings, frozen=True, kw_only=True):
    """What was simulated."""

    rules: Annotated[str, "versions of broker, Proxy and client whose rules were followed"]
    await_ms: Annotated[float, "how long a receive waits for a message, as the server takes it"]
    invisible_ms: Annotated[float, "invisibleDuration or popInvisibleTime"]
    consume_ms: Annotated[float, "what the application takes for a message"]
    error_pause_ms: Annotated[float, "what a SimpleConsumer's loop waits after an error"]
    round_trip_ms: Annotated[float, "time of a request and its answer"]
    rate_per_second: Annotated[float | None, "messages per second of all queues; null when they are rare"]
    rates: Annotated[Mapping[str, float], "broker name → messages per second of its queues"]
    duration_ms: Annotated[float | None, "time until which measured messages arrive; null without limit"]


class ReceiveReport(Result, frozen=True):
    """How long messages wait for consumers that receive: gRPC SimpleConsumer and PushConsumer, and POP clients."""

    topic: str
    scenario: Annotated[SimulatedReceivers, "what was simulated"]
    wait: Annotated[WaitTimes | None, "how long messages waited until they were received first; null when none was"]
    back: Annotated[WaitTimes | None, "time from first delivery to redelivery; null when none was"]
    quantiles: Annotated[tuple[Quantile, ...], "the distribution of waits; empty when no message was received"]
    brokers: Annotated[tuple[BrokerReceives, ...], "broker by broker, in the route's order"]
    queue_waits: Annotated[tuple[QueueWaits, ...], "queue by queue, in the same order"]
    totals: Annotated[ReceiveTotals, "the simulation in numbers"]
    closed_forms: Annotated[ClosedForms, "results in closed form, without simulation"]
    target: Annotated[TargetWait | None, "how many receives keep waits within --target-wait; null without it"] = None
    failures: Annotated[tuple[FailureReceived, ...], "the effect of each broker's failure"] = ()
    crashes: Annotated[tuple[CrashReceived, ...], "the effect of each consumer's death"] = ()
    trials: Annotated[TrialWaits | None, "the results of many trials; null without --trials"] = None
    messages: Annotated[tuple[ReceivedMessage, ...] | None, "every message; null without --trace"] = None
    conditions: tuple[TriedCondition, ...] = ()
