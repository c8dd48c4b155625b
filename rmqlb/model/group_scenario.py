"""What a consumer group goes through in a simulation: its events, its timers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from rmqlb.model.group import ConsumerType
from rmqlb.model.limits import MOST_EVENTS, MOST_THREADS, GivenQueues, PositiveTime, Seed, Time
from rmqlb.model.message_queue import MessageQueue

EventKind = Literal[
    "join",
    "leave",
    "crash",
    "host-loss",
    "broker-down",
    "broker-loss",
    "broker-up",
    "route-change",
    "pull-stall",
    "freeze",
    "unfreeze",
]
CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"
CONSUME_FROM = (
    CONSUME_FROM_LAST_OFFSET,
    CONSUME_FROM_FIRST_OFFSET,
    CONSUME_FROM_TIMESTAMP,
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
)  # `ConsumeFromWhere`; the last three are deprecated, and mean the first
SECOND_US = 1_000_000


def known_consume_from(where: str | None) -> str:
    """A valid `consumeFromWhere`; unknown names mean the default."""
    return where if where in CONSUME_FROM else CONSUME_FROM_LAST_OFFSET


class Event(Struct, frozen=True):
    """One thing that happens to the group or to its brokers."""

    # join (a process starts), leave (it shuts down), crash (it is killed, its sockets close), host-loss (its machine
    # falls silent), broker-down (a master's process ends, its slaves go on), broker-loss (its machine falls silent),
    # broker-up (it starts, or a new one does), route-change (numbers of queues change), pull-stall (a consumer's pull
    # requests are lost), freeze (a process does nothing, its connections stay open), unfreeze (it goes on)
    kind: EventKind
    at_us: Time
    subject: str  # the client ID; of broker events the broker's name; of route-change the topic
    text: str = ""  # the event as the user wrote it
    # join only: the process's strategy, a name or a function (group, client id, queues, client ids) → queues
    strategy: str | Callable[[str, str, list[MessageQueue], list[str]], Sequence[MessageQueue]] | None = None
    broker_name: str | None = None  # route-change only: the broker whose numbers change; None is all of the topic's
    read_queues: GivenQueues | None = None  # broker-up of a new broker, and route-change; None is no change
    write_queues: GivenQueues | None = None
    with_slaves: bool = False  # broker-down and broker-loss only; also implied where the name has no master
    for_good: bool = False  # broker-down only: the broker leaves the cluster with its queues, which is no outage

    @property
    def strategy_name(self) -> str | None:
        if self.strategy is None or isinstance(self.strategy, str):
            return self.strategy
        return str(getattr(self.strategy, "__name__", type(self.strategy).__name__))


class Timers(Struct, frozen=True):
    """Every clock, with the defaults of clients, brokers and NameServers in microseconds."""

    rebalance_wait_us: Annotated[Time, "between rebalances (`rocketmq.client.rebalance.waitInterval`)"] = 20 * SECOND_US
    rebalance_min_us: Annotated[Time, "the same after an unbalanced one (`minInterval`, from 5.2.0 on)"] = SECOND_US
    route_poll_us: Annotated[PositiveTime, "`pollNameServerInterval`"] = 30 * SECOND_US
    heartbeat_us: Annotated[PositiveTime, "`heartbeatBrokerInterval`"] = 30 * SECOND_US
    persist_us: Annotated[PositiveTime, "`persistConsumerOffsetInterval`"] = 5 * SECOND_US
    pull_delay_us: Annotated[Time | None, "from taking a queue to its first pull; null: by client version"] = None
    pull_idle_us: Annotated[Time, "age of a pull at which the queue is dropped (`pullMaxIdleTime`)"] = 120 * SECOND_US
    pull_hold_us: Annotated[Time, "for how long a broker holds a pull that finds nothing"] = 15 * SECOND_US
    lock_renewal_us: Annotated[PositiveTime, "orderly: between renewals of locks (`lockInterval`)"] = 20 * SECOND_US
    lock_life_us: Annotated[Time, "orderly: time after which a broker frees a lock (`lockMaxLiveTime`)"] = (
        60 * SECOND_US
    )
    lock_retry_us: Annotated[Time, "orderly: from a refused lock to a rebalance (5.0.0 and newer)"] = SECOND_US // 2
    unlock_delay_us: Annotated[Time, "orderly: until a forced drop (`unlockDelayTimeMills`)"] = 20 * SECOND_US
    release_wait_us: Annotated[Time | None, "orderly: wait for the listener before a drop; null: by version"] = None
    channel_expiry_us: Annotated[Time, "until a broker forgets a silent client"] = 120 * SECOND_US
    broker_scan_us: Annotated[PositiveTime, "how often a broker looks for such clients"] = 10 * SECOND_US
    socket_idle_us: Annotated[Time, "until a broker closes a silent connection"] = 120 * SECOND_US
    notify_batch_us: Annotated[Time, "how long a broker collects notices; 15 s if they are not sent at once"] = 0
    rpc_timeout_us: Annotated[Time, "time after which a client gives up on a silent broker"] = 3 * SECOND_US
    nameserver_expiry_us: Annotated[Time, "silence after which a NameServer drops a broker"] = 120 * SECOND_US
    nameserver_scan_us: Annotated[Time, "how often it looks for such brokers"] = 5 * SECOND_US
    registration_us: Annotated[Time, "how often a broker registers"] = 30 * SECOND_US
    start_us: Annotated[Time, "from a client's construction to its first request, at least"] = 30_000
    connect_us: Annotated[Time, "extra time of the first request on a new connection"] = 20_000
    close_us: Annotated[Time, "until a broker notices a killed process, at most"] = 20_000


TIMER_NAMES: Mapping[str, str] = {name.removesuffix("_us").replace("_", "-"): name for name in Timers.__struct_fields__}
"""As users write a timer → its field: `rebalance-wait` → `rebalance_wait_us`."""


class GroupScenario(Struct, frozen=True):
    """The events of a group, its settings and its clocks."""

    # in any order; simultaneous events happen in the order of the list
    events: Annotated[tuple[Event, ...], Meta(max_length=MOST_EVENTS)] = ()
    client_version: str = "5.5.0"  # whose rules the consumers follow
    orderly: bool = False  # MessageListenerOrderly, so queues are locked at the broker
    broadcasting: bool = False
    timers: Timers = Timers()
    latency_us: Time = 1000  # mean round trip of a request; single ones vary as those of real brokers do
    consume_us: Time = 0  # listener time of a message
    consume_threads: Annotated[int, Meta(ge=1, le=MOST_THREADS)] = 20  # of each consumer (`consumeThreadMin`)
    rates: Mapping[MessageQueue, float] = field(default_factory=dict)  # messages per second; unknown without an entry
    consume_from: str = CONSUME_FROM_LAST_OFFSET  # `consumeFromWhere` of the consumers
    until_us: PositiveTime | None = None  # end of the simulation; None is at convergence
    patience_us: Time = 600 * SECOND_US  # latest end after the last event
    all_new: bool = False  # the first consumers start at time 0 instead of having run for a while
    seed: Seed = 1
    consumer_type: ConsumerType = "push"
    consumer_types: Mapping[str, ConsumerType] = field(default_factory=dict)  # client ID → a type of its own
