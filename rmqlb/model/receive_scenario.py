"""What consumers that receive, instead of owning queues, are asked to do in a simulation.

Rule of this file: times are whole microseconds (`_us`). Consumers and loops have numbers from 1.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from msgspec import Meta, Struct

from rmqlb.model.limits import MOST_EVENTS, MOST_FAILURES, PositiveTime, Seed, Time
from rmqlb.model.send_scenario import NEWEST, Failure

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
