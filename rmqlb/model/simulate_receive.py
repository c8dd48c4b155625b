"""What `simulate-receive` simulates, and its result.

Times of a scenario are whole microseconds (`_us`), those of the result milliseconds (`_ms`) from the start. Consumers
and loops have numbers from 1. A message waits from when a broker stores it until a client first receives it; what comes
back later counts as redelivered, and has times of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Literal

from msgspec import Meta, Struct

from rmqlb.model.condition import TriedCondition
from rmqlb.model.limits import MOST_EVENTS, MOST_FAILURES, PositiveTime, Seed, Time
from rmqlb.model.result import Result
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


class QueueRate(Struct, frozen=True):
    """How many messages per second arrive in a queue.

    Attributes:
        broker_name: its broker.
        queue_id: its number there, from 0.
        per_second: messages per second.
    """

    broker_name: str
    queue_id: Annotated[int, Meta(ge=0)]
    per_second: Fraction


class Crash(Struct, frozen=True):
    """A consumer whose process dies; its connections are closed at once.

    Attributes:
        consumer: its number, from 1.
        at_us: when.
    """

    consumer: Annotated[int, Meta(ge=1, le=MOST_RECEIVERS)]
    at_us: Time


class ReceiveScenario(Struct, frozen=True):
    """What is simulated.

    Attributes:
        client: simple (gRPC SimpleConsumer through a Proxy), push (gRPC PushConsumer through a Proxy) or pop (a
            remoting client in POP mode).
        consumers: processes of the group.
        loops: receives in parallel of each SimpleConsumer; the others have one per broker.
        await_us: `awaitDuration` of a SimpleConsumer; the others take theirs from the Proxy or the client.
        invisible_us: `invisibleDuration` of a receive, or `popInvisibleTime`; the Proxy renews that of a PushConsumer.
        batch: `maxMessageNum`, how many messages a receive takes at the most.
        fifo: the group consumes in order (`consumeMessageOrderly`).
        consume_us: how long the application takes for a message, after which it is acknowledged.
        error_pause_us: how long a SimpleConsumer's loop waits after a receive that failed.
        round_trip_us: how long a request and its answer are under way.
        rates: messages per second of queues; a queue that is not there gets none. Empty is so rare that each message
            finds every receive idle.
        messages: how many are measured, or None for as many as `duration_us` has room for.
        duration_us: none is measured that arrives at or after this time; None without limit.
        failures: which brokers fail, when, and whether they refuse or are silent.
        crashes: which consumers die, and when.
        seed: of all random parts.
        broker_version: whose rules the brokers follow.
    """

    client: ReceiveClient = "simple"
    consumers: Annotated[int, Meta(ge=1, le=MOST_RECEIVERS)] = 1
    loops: Annotated[int, Meta(ge=1, le=MOST_LOOPS)] = 1
    await_us: PositiveTime = AWAIT_US
    invisible_us: PositiveTime = INVISIBLE_US
    batch: Annotated[int, Meta(ge=1, le=MOST_BATCH)] = MOST_BATCH
    fifo: bool = False
    consume_us: Time = 0
    error_pause_us: Time = 0
    round_trip_us: Time = ROUND_TRIP_US
    rates: Annotated[tuple[QueueRate, ...], Meta(max_length=MOST_EVENTS)] = ()
    messages: Annotated[int, Meta(ge=1, le=MOST_RECEIVED)] | None = None
    duration_us: PositiveTime | None = None
    failures: Annotated[tuple[Failure, ...], Meta(max_length=MOST_FAILURES)] = ()
    crashes: Annotated[tuple[Crash, ...], Meta(max_length=MOST_RECEIVERS)] = ()
    seed: Seed = 1
    broker_version: str = NEWEST

    @property
    def rare(self) -> bool:
        """Messages are so rare that each finds every receive idle."""
        return not self.rates


class WaitTimes(Struct, frozen=True, rename="camel"):
    """How a time is spread over messages, in milliseconds.

    Attributes:
        messages: how many there are.
        mean_ms: over all of them.
        p50_ms: half of them have no more.
        p95_ms: 95 of 100 have no more.
        p99_ms: 99 of 100 have no more.
        max_ms: the most of any.
    """

    messages: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


class Quantile(Struct, frozen=True, rename="camel"):
    """A point of the distribution of waits, to hold a measured one against.

    Attributes:
        percent: of the messages, from 0 to 100.
        wait_ms: so many of them wait no longer, in milliseconds.
    """

    percent: int
    wait_ms: float


class BrokerReceives(Struct, frozen=True, rename="camel"):
    """What receives did at one broker.

    Attributes:
        broker_name: its name.
        queues: its queues that consumers can read.
        receives: requests that were sent to it.
        share: of all requests; null when there was none.
        empty: of these, ended without a message when their time was over.
        failed: of these, ended with an error.
        messages: messages that clients received from it for the first time.
        longest_unpolled_ms: the longest time in which no receive was waiting at it while it worked.
        wait: how long its messages waited; null when none was received.
    """

    broker_name: str
    queues: int
    receives: int
    share: float | None
    empty: int
    failed: int
    messages: int
    longest_unpolled_ms: float
    wait: WaitTimes | None


class QueueWaits(Struct, frozen=True, rename="camel"):
    """How long the messages of one queue waited, in milliseconds.

    Attributes:
        broker_name: its broker.
        queue_id: its number there.
        messages: how many of it clients received.
        mean_ms: over all of them; null without any.
        p95_ms: 95 of 100 waited no longer; null without any.
        max_ms: the longest; null without any.
    """

    broker_name: str
    queue_id: int
    messages: int
    mean_ms: float | None
    p95_ms: float | None
    max_ms: float | None


class ReceivedMessage(Struct, frozen=True, rename="camel"):
    """One message, where messages are kept.

    Attributes:
        message: its number, by arrival, from 1.
        broker_name: its broker.
        queue_id: its queue there.
        stored_ms: when the broker stored it.
        received_ms: when a client had received it first; null when none had at the end.
        wait_ms: the time between the two; null when none had received it.
        consumer: number of the consumer that received it first; null without one.
        deliveries: how often it was delivered.
        done_ms: when it was acknowledged; null when it was not by the end.
    """

    message: int
    broker_name: str
    queue_id: int
    stored_ms: float
    received_ms: float | None
    wait_ms: float | None
    consumer: int | None
    deliveries: int
    done_ms: float | None


class ReceiveTotals(Struct, frozen=True, rename="camel"):
    """The simulation in numbers.

    Attributes:
        messages: that were stored, of those that are measured.
        further: that were stored after these until they were received; they keep the load up and count nowhere else.
        received: of these, received by a client.
        acknowledged: of these, acknowledged by the end.
        dead_lettered: delivered so often that they went to the dead-letter queue.
        left: neither by the end: on a broker that stays away, or without a consumer to receive them.
        not_stored: messages that came while their broker failed, so that producers send them elsewhere.
        redelivered: messages delivered more than once.
        receives: requests.
        empty_receives: of these, ended without a message when their time was over.
        failed_receives: of these, ended with an error.
        lasted_ms: how long was simulated.
    """

    messages: int
    further: int
    received: int
    acknowledged: int
    dead_lettered: int
    left: int
    not_stored: int
    redelivered: int
    receives: int
    empty_receives: int
    failed_receives: int
    lasted_ms: float


class FailureReceived(Struct, frozen=True, rename="camel"):
    """A broker's failure, and what receives met.

    Attributes:
        broker_name: who failed.
        kind: refused or timeout.
        from_ms: when it began.
        to_ms: when it ended; null when it never does.
        failed: receives that ended with an error by it.
        last_failed_ms: when the last of them ended; null when none did.
        received_again_ms: when the first message was received from it after its end; null when none was.
        longest_wait_ms: the longest that a message waited that was on it when it failed; null when none was, or none
            was received.
        left: messages of it that no consumer had received by the end.
    """

    broker_name: str
    kind: ReactionKind
    from_ms: float
    to_ms: float | None
    failed: int
    last_failed_ms: float | None
    received_again_ms: float | None
    longest_wait_ms: float | None
    left: int


class CrashReceived(Struct, frozen=True, rename="camel"):
    """A consumer's death, and when what it had not acknowledged was received again.

    Attributes:
        consumer: its number.
        at_ms: when it died.
        unacknowledged: messages that it had received or was being sent, and did not acknowledge.
        again: of these, received by another consumer.
        after: how long after the death that was; null when none was.
        again_earliest_ms: closed form: how long after the death a message can be received again at the earliest.
        again_latest_ms: closed form: and from when on it only waits for a receive.
    """

    consumer: int
    at_ms: float
    unacknowledged: int
    again: int
    after: WaitTimes | None
    again_earliest_ms: float
    again_latest_ms: float


class ClosedForms(Struct, frozen=True, rename="camel"):
    """What needs no simulation.

    Attributes:
        receive_ms: the longest that an empty receive takes, with its way there and back.
        cycle_ms: how long receives take for all queues once, when no message comes; null of clients that wait at all
            brokers at once.
        wait_ms: the longest that a message waits when messages are rare: whole turns of the receives in the longest
            row of queues of other brokers.
        unpolled_ms: the longest that no receive waits at a working broker, whatever the rates; null where consumption
            has no bound.
        always_polled: receives in parallel from which on a receive waits at every broker at all times, when messages
            are rare.
    """

    receive_ms: float
    cycle_ms: float | None
    wait_ms: float
    unpolled_ms: float | None
    always_polled: int


class TargetWait(Struct, frozen=True, rename="camel"):
    """How many receives in parallel keep waits within a time.

    Attributes:
        wait_ms: the time.
        receives: the number; null when up to a thousand do not.
        rare: closed form: the number when messages are rare.
        simulated: the number was found by simulation at the rates given, otherwise it is the closed form's.
        trials: simulations per number tried; 0 without simulation.
        max_ms: the longest wait with that number, simulated or by closed form; null without number.
    """

    wait_ms: float
    receives: int | None
    rare: int | None
    simulated: bool
    trials: int
    max_ms: float | None


class TrialWaits(Struct, frozen=True, rename="camel"):
    """Waits of many trials of the scenario with other random parts.

    Attributes:
        trials: how many.
        wait: over the messages of all of them.
        lowest_max_ms: the longest wait of the trial where it is shortest.
        lowest_p95_ms: the 95th percentile of the trial where it is lowest.
        highest_p95_ms: and where it is highest.
        left: messages that no consumer received, of all of them.
        redelivered: messages delivered more than once, of all of them.
    """

    trials: int
    wait: WaitTimes | None
    lowest_max_ms: float | None
    lowest_p95_ms: float | None
    highest_p95_ms: float | None
    left: int
    redelivered: int


class SimulatedReceivers(Struct, frozen=True, rename="camel"):
    """What was simulated.

    Attributes:
        client: simple, push or pop.
        broker_version: version of the brokers.
        rules: versions of broker, Proxy and client whose rules were followed.
        consumers: processes of the group.
        loops: receives in parallel of each; one per broker of push and pop.
        await_ms: how long a receive waits for a message, as the server takes it.
        invisible_ms: invisibleDuration or popInvisibleTime.
        batch: most messages of a receive.
        fifo: in order.
        consume_ms: what the application takes for a message.
        error_pause_ms: what a SimpleConsumer's loop waits after an error.
        round_trip_ms: of a request and its answer.
        rate_per_second: messages per second of all queues; null when they are rare.
        rates: broker name → messages per second of its queues.
        messages: how many were to be measured; null for as many as the time has room for.
        duration_ms: until when those arrive that are measured; null without limit.
        seed: of everything random.
    """

    client: ReceiveClient
    broker_version: str
    rules: str
    consumers: int
    loops: int
    await_ms: float
    invisible_ms: float
    batch: int
    fifo: bool
    consume_ms: float
    error_pause_ms: float
    round_trip_ms: float
    rate_per_second: float | None
    rates: Mapping[str, float]
    messages: int | None
    duration_ms: float | None
    seed: int


class ReceiveReport(Result, frozen=True):
    """How long messages wait for consumers that receive: gRPC SimpleConsumer and PushConsumer, and POP clients.

    Attributes:
        topic: from which they receive.
        scenario: what was simulated.
        wait: how long messages waited until they were received first; null when none was.
        back: how long after their first delivery messages were redelivered; null when none was.
        quantiles: the distribution of waits; empty when no message was received.
        brokers: broker by broker, in the route's order.
        queue_waits: queue by queue, in the same order.
        totals: in numbers.
        closed_forms: what needs no simulation.
        target: how many receives keep waits within --target-wait; null without it.
        failures: how each broker's failure was met.
        crashes: what each consumer's death did.
        trials: what many trials say; null without --trials.
        messages: every message; null without --trace.
        conditions: what --fail-on asked for.
    """

    topic: str
    scenario: SimulatedReceivers
    wait: WaitTimes | None
    back: WaitTimes | None
    quantiles: tuple[Quantile, ...]
    brokers: tuple[BrokerReceives, ...]
    queue_waits: tuple[QueueWaits, ...]
    totals: ReceiveTotals
    closed_forms: ClosedForms
    target: TargetWait | None = None
    failures: tuple[FailureReceived, ...] = ()
    crashes: tuple[CrashReceived, ...] = ()
    trials: TrialWaits | None = None
    messages: tuple[ReceivedMessage, ...] | None = None
    conditions: tuple[TriedCondition, ...] = ()
