"""The scenario of a simulated producer. Message, attempt and thread numbers start at 1."""

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
    Priority,
    Seed,
    Threshold,
    Time,
)
from rmqlb.model.message_queue import MessageQueue

Mode = Literal["sync", "async", "oneway"]
ProxyMode = Literal["local", "cluster"]
JAVA = "java"  # the SDK of `client_version`
ReactionKind = Literal["refused", "timeout", "slow", "status", "code", "read-only"]
NEWEST = "5.5.0"  # the newest client whose classes were run; later versions get its rules
STATUSES = ("FLUSH_DISK_TIMEOUT", "SLAVE_NOT_AVAILABLE", "FLUSH_SLAVE_TIMEOUT")
"""`SendStatus` of messages that are stored, but not as safely as wanted."""
MessageNumber = Annotated[int, Meta(ge=1, le=MOST_MESSAGES)]
Position = Annotated[int, Meta(ge=0)]
Thresholds = Annotated[tuple[Threshold, ...], Meta(min_length=1, max_length=1000)]
ROUTE_POLL_US = 30_000_000
SEND_TIMEOUT_MS = 3000
REFUSED_US = 1000  # time of a refused connection
HOST_LOSS_US = 120_000_000  # silence after which a NameServer drops a broker


class Moment(Struct, frozen=True):
    """A time, or the start of a message; one of the two."""

    us: Annotated[Time | None, "microseconds from the start"] = None
    message: Annotated[MessageNumber | None, "number of the message whose first attempt begins then"] = None


START = Moment(us=0)


class Reaction(Struct, frozen=True):
    """A broker's reaction to a send while it fails."""

    kind: Annotated[ReactionKind, "refused, timeout, slow, status (stored, less safely), code or read-only"]
    name: Annotated[str, "the status or code by RocketMQ's name, otherwise the kind"]
    code: Annotated[int, Meta(ge=0, le=2**31 - 1), "the response code of a status or code"] = 0
    cost_us: Annotated[Time, "how long a refusal takes, or the slow answer"] = 0


class Failure(Struct, frozen=True):
    """One broker's failure."""

    broker_name: str
    reaction: Reaction
    start: Moment = START
    end: Annotated[Moment | None, "exclusive; None is never"] = None
    notices_us: Annotated[Time | None, "time from the start until the NameServer drops it; None is never"] = None


class Latency(Struct, frozen=True):
    """How long a healthy broker takes to answer."""

    text: Annotated[str, "as given, for the report"]
    table: Annotated[tuple[Time, ...], Meta(min_length=1), "equally likely microseconds; a single one is a constant"]
    tail: Annotated[tuple[Time, ...], "a finer table that stands for the last entry of `table`, unless empty"] = ()


ASSUMED_LATENCY = Latency("1ms", (1000,))


SelectorFunction = Callable[[list[MessageQueue], Any], MessageQueue | None]
"""A selector that a user writes: the queue of a key, as `MessageQueueSelector.select` of `mqs` and `arg`."""


class Selector(Struct, frozen=True):
    """How an application chooses the queue itself: one attempt, no retry, no fault strategy (`sendSelectImpl`)."""

    kind: Literal["hash", "random", "machine-room", "queue", "function"]
    key_hashes: tuple[JavaInt, ...] = ()  # for hash: `hashCode()` of the key of each message in turn, again and again
    queue: MessageQueue | None = None  # for queue
    function: SelectorFunction | None = None
    keys: tuple[str | int, ...] = ()  # for function, of each message in turn; without any, the message's number
    text: str = ""  # the function's name in results; empty is its own

    @property
    def name(self) -> str:
        return self.text or (self.kind if self.function is None else getattr(self.function, "__name__", "function"))


class ProducerSettings(Struct, frozen=True, rename="camel"):
    """Settings of a producer that its result repeats."""

    client_version: Annotated[str, "version of the Java client whose rules the producer follows"] = NEWEST
    mode: Annotated[Mode, "send mode: sync, async or oneway"] = "sync"
    latency_fault: Annotated[bool, "skip brokers that fail or answer slowly (sendLatencyFaultEnable)"] = False
    detector: Annotated[bool, "startDetectorEnable (5.1.4 and newer)"] = False
    threads: Annotated[int, Meta(ge=1, le=MOST_THREADS), "sending threads, each with a round robin of its own"] = 1
    messages: Annotated[MessageNumber | None, "number of messages; null for as many as fit the duration"] = 1000
    retries: Annotated[int, Meta(ge=0, le=MOST_RETRIES), "retryTimesWhenSendFailed, retryTimesWhenSendAsyncFailed"] = 2
    timeout_ms: Annotated[Milliseconds, "sendMsgTimeout, for all attempts of a message together"] = SEND_TIMEOUT_MS
    timeout_per_request_ms: Annotated[Milliseconds | None, "sendMsgMaxTimeoutPerRequest (5.3.3 and newer)"] = None
    retry_not_store_ok: Annotated[bool, "retryAnotherBrokerWhenNotStoreOK"] = False
    seed: Annotated[int, "random seed"] = 1
    sdk: Annotated[str, "whose producer, such as java, go or go-grpc@5.1.4"] = JAVA
    priorities: Annotated[
        tuple[Priority | None, ...], "priorities of the messages, in turn, for brokers 5.4.0 and newer"
    ] = ()
    proxy_mode: Annotated[ProxyMode, "how a gRPC Proxy runs: local (in brokers) or cluster (separately)"] = "local"


class SendScenario(ProducerSettings, frozen=True):
    """A producer, its load, and the failures of brokers."""

    seed: Seed = 1  # JSON Schema cannot have these bounds
    rate: Annotated[Fraction | None, "messages per second over all threads; default: threads send back to back"] = None
    duration_us: Annotated[PositiveTime | None, "no message starts at or after this time; None without limit"] = None
    failures: Annotated[
        tuple[Failure, ...], Meta(max_length=MOST_FAILURES), "if two overlap, the later one counts"
    ] = ()
    latencies: Annotated[Mapping[str, Latency], "broker name → its latency"] = field(default_factory=dict)
    latency: Annotated[Latency, "latency of all other brokers"] = ASSUMED_LATENCY
    exclude: Annotated[frozenset[str], "brokers whose queues the producer leaves out"] = frozenset()
    start_at: Annotated[Position | None, "queue of the first thread's first pick; default: random"] = None
    first_poll_us: Annotated[Time | None, "first poll of the route; None: at random before poll_us"] = ROUTE_POLL_US
    poll_us: Annotated[PositiveTime, "how often the client polls the route"] = ROUTE_POLL_US
    latency_max: Annotated[Thresholds | None, "thresholds of latency fault in ms, instead of the version's"] = None
    not_available_duration: Annotated[Thresholds | None, "isolation in ms from each threshold on"] = None
    overshoot_us: Annotated[Time | None, "time of a timed-out SYNC attempt beyond its budget; None: as measured"] = None
    selector: Annotated[Selector | SelectorFunction | None, "a function gets the message's number as its key"] = None

    def __post_init__(self) -> None:
        if self.selector is not None and not isinstance(self.selector, Selector):
            force_setattr(self, "selector", Selector("function", function=self.selector))

    @property
    def chosen_by(self) -> Selector | None:
        return self.selector if isinstance(self.selector, Selector) else None
