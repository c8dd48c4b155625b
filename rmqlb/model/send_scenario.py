"""The scenario of a simulated producer.

Rule of this file: times are whole microseconds (`_us`). Message, attempt and thread numbers start at 1; message #45 is
the 45th.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import force_setattr

from rmqlb.model.limits import (
    MOST_FAILURES,
    MOST_MESSAGES,
    MOST_RETRIES,
    MOST_THREADS,
    JavaInt,
    Milliseconds,
    PositiveTime,
    Seed,
    Threshold,
    Time,
)
from rmqlb.model.message_queue import MessageQueue

Mode = Literal["sync", "async", "oneway"]
ProxyMode = Literal["local", "cluster"]
JAVA = "java"
"""The SDK of `client_version`."""
ReactionKind = Literal["refused", "timeout", "slow", "status", "code", "read-only"]
NEWEST = "5.5.0"
"""The newest client whose classes were run; a later version is given its rules, and told so."""
STATUSES = ("FLUSH_DISK_TIMEOUT", "SLAVE_NOT_AVAILABLE", "FLUSH_SLAVE_TIMEOUT")
"""Stored, but not as safely as wanted (`SendStatus`)."""
MessageNumber = Annotated[int, Meta(ge=1, le=MOST_MESSAGES)]
Thresholds = Annotated[tuple[Threshold, ...], Meta(min_length=1, max_length=1000)]
ROUTE_POLL_US = 30_000_000
SEND_TIMEOUT_MS = 3000
REFUSED_US = 1000
"""What a refused connection takes."""
HOST_LOSS_US = 120_000_000
"""After which a NameServer drops a broker that has fallen silent."""


class Moment(Struct, frozen=True):
    """A time, or the start of a message; one of the two.

    Attributes:
        us: microseconds from the start.
        message: number of a message; the moment is when its first attempt begins.
    """

    us: Time | None = None
    message: MessageNumber | None = None


START = Moment(us=0)


class Reaction(Struct, frozen=True):
    """What a broker does to a send while it fails.

    Attributes:
        kind: refused (no process listens), timeout (silence), slow (a late success), status (stored, but not as
            safely as wanted), code (an error response), read-only (it still stores, and leaves the producers' route).
        name: the status or code by RocketMQ's name, otherwise the kind.
        code: the response code of a status or code.
        cost_us: how long a refusal takes, or the slow answer.
    """

    kind: ReactionKind
    name: str
    code: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    cost_us: Time = 0


class Failure(Struct, frozen=True):
    """One broker's failure.

    Attributes:
        broker_name: whose.
        reaction: what it does meanwhile.
        start: from when on.
        end: until when, that moment not included; None is never.
        notices_us: how long after the start the NameServer drops the broker; None is never.
    """

    broker_name: str
    reaction: Reaction
    start: Moment = START
    end: Moment | None = None
    notices_us: Time | None = None


class Latency(Struct, frozen=True):
    """How long a healthy broker takes to answer.

    Attributes:
        text: as given, for the report.
        table: equally likely values in microseconds; a single one is a constant.
        tail: a finer table that stands for the last entry of `table`; empty when that entry is exact.
    """

    text: str
    table: Annotated[tuple[Time, ...], Meta(min_length=1)]
    tail: tuple[Time, ...] = ()


ASSUMED_LATENCY = Latency("1ms", (1000,))
"""What a broker's latency is taken for when nothing is said about it."""


SelectorFunction = Callable[[list[MessageQueue], Any], MessageQueue | None]
"""A selector that a user writes: the queue of a key, as `MessageQueueSelector.select` of `mqs` and `arg`."""


class Selector(Struct, frozen=True):
    """How an application picks the queue itself: one attempt, no retry, no fault strategy (`sendSelectImpl`).

    Attributes:
        kind: hash, random, machine-room, queue, which is one queue by name, or function, which a user wrote.
        key_hashes: `hashCode()` of the key of each message in turn, for hash; from the first again when there are
            fewer keys than messages.
        queue: for the kind of that name.
        function: for the kind of that name: (queues, key) → queue.
        keys: what that function is given with each message in turn; the message's number when there are none.
        text: what results call that function; empty is by its own name.
    """

    kind: Literal["hash", "random", "machine-room", "queue", "function"]
    key_hashes: tuple[JavaInt, ...] = ()
    queue: MessageQueue | None = None
    function: SelectorFunction | None = None
    keys: tuple[str | int, ...] = ()
    text: str = ""

    @property
    def name(self) -> str:
        return self.text or (self.kind if self.function is None else getattr(self.function, "__name__", "function"))


class ProducerSettings(Struct, frozen=True, rename="camel"):
    """Settings of a producer that its result repeats.

    Attributes:
        client_version: version of the Java client whose rules the producer follows.
        mode: sync, async or oneway.
        latency_fault: sendLatencyFaultEnable.
        detector: startDetectorEnable (5.1.4 and newer).
        threads: sending threads; each has its own round robin.
        messages: number of messages; null for as many as the duration has room for.
        retries: retryTimesWhenSendFailed (SYNC) or retryTimesWhenSendAsyncFailed.
        timeout_ms: sendMsgTimeout, for all attempts of a message together.
        timeout_per_request_ms: sendMsgMaxTimeoutPerRequest (5.3.3 and newer), or null.
        retry_not_store_ok: retryAnotherBrokerWhenNotStoreOK.
        seed: random seed.
        sdk: whose producer, such as java, go or go-grpc@5.1.4. For other SDKs than java the timeout is that of one
            attempt, and ONEWAY sends are not simulated.
        proxy_mode: how the Proxy of gRPC producers runs: local, in each broker; cluster, separately.
    """

    client_version: str = NEWEST
    mode: Mode = "sync"
    latency_fault: bool = False
    detector: bool = False
    threads: int = 1
    messages: int | None = 1000
    retries: int = 2
    timeout_ms: int = SEND_TIMEOUT_MS
    timeout_per_request_ms: int | None = None
    retry_not_store_ok: bool = False
    seed: int = 1
    sdk: str = JAVA
    proxy_mode: ProxyMode = "local"


class SendScenario(ProducerSettings, frozen=True):
    """A producer, its load, and the failures of brokers.

    Attributes:
        rate: messages per second over all threads, in turn; None: each thread sends back to back.
        duration_us: no message starts at or after this time; None without limit.
        failures: failures of brokers; where two overlap the later in the list counts.
        latencies: broker name → its latency; other brokers have `latency`.
        latency: latency of brokers without one of their own.
        exclude: brokers whose queues the producer leaves out.
        start_at: position in the queue list of the first thread's first pick; None for a random one.
        first_poll_us: when the client first requests the route again; None for a random time in the first interval.
        poll_us: how often it does so from then on.
        latency_max: thresholds in ms instead of the version's, or None.
        not_available_duration: isolations in ms instead of the version's, or None.
        overshoot_us: how much longer than its budget a timed-out SYNC attempt takes; None for what was measured.
        selector: the application's queue selector, or None. A function (queues, key) → queue gets the message's number
            as its key.
    """

    threads: Annotated[int, Meta(ge=1, le=MOST_THREADS)] = 1
    messages: MessageNumber | None = 1000
    retries: Annotated[int, Meta(ge=0, le=MOST_RETRIES)] = 2
    timeout_ms: Milliseconds = SEND_TIMEOUT_MS
    timeout_per_request_ms: Milliseconds | None = None
    seed: Seed = 1
    rate: Fraction | None = None
    duration_us: PositiveTime | None = None
    failures: Annotated[tuple[Failure, ...], Meta(max_length=MOST_FAILURES)] = ()
    latencies: Mapping[str, Latency] = field(default_factory=dict)
    latency: Latency = ASSUMED_LATENCY
    exclude: frozenset[str] = frozenset()
    start_at: Annotated[int, Meta(ge=0)] | None = None
    first_poll_us: Time | None = ROUTE_POLL_US
    poll_us: PositiveTime = ROUTE_POLL_US
    latency_max: Thresholds | None = None
    not_available_duration: Thresholds | None = None
    overshoot_us: Time | None = None
    selector: Selector | SelectorFunction | None = None

    def __post_init__(self) -> None:
        if self.selector is not None and not isinstance(self.selector, Selector):
            force_setattr(self, "selector", Selector("function", function=self.selector))

    @property
    def chosen_by(self) -> Selector | None:
        return self.selector if isinstance(self.selector, Selector) else None
