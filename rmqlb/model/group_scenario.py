"""What a consumer group goes through in a simulation: its events, its timers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from rmqlb.model.group import ConsumerType
from rmqlb.model.limits import MOST_EVENTS, GivenQueues, PositiveTime, Seed, Time
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
)
"""`ConsumeFromWhere`; the last three are deprecated, and mean the first."""
SECOND_US = 1_000_000


def known_consume_from(where: str | None) -> str:
    """What a group's `consumeFromWhere` is, as far as a source tells; a name that no client has is the default."""
    return where if where in CONSUME_FROM else CONSUME_FROM_LAST_OFFSET


class Event(Struct, frozen=True):
    """One thing that happens to the group or to its brokers."""

    # join (a process starts), leave (it ends in good order), crash (it is killed, its sockets close), host-loss (its
    # machine falls silent), broker-down (a master's process ends, its slaves go on), broker-loss (its machine falls
    # silent), broker-up (it starts, or a new one does), route-change (numbers of queues change), pull-stall (a
    # consumer's pull requests are lost: nothing is read although it owns the queues), freeze (a process does nothing
    # from then on, and its connections stay open), unfreeze (it goes on)
    kind: EventKind
    at_us: Time  # when
    subject: str  # the client id; of broker events the broker's name; of route-change the topic
    text: str = ""  # the event as the user wrote it
    # join only: the strategy that this process runs, by name or as a function (group, client id, queues, client ids)
    # → queues, or None for the group's
    strategy: str | Callable[[str, str, list[MessageQueue], list[str]], Sequence[MessageQueue]] | None = None
    broker_name: str | None = None  # route-change only: the broker whose numbers change, or None for all of the topic's
    # broker-up of a new broker and route-change: number of read queues, or None for as before
    read_queues: GivenQueues | None = None
    write_queues: GivenQueues | None = None  # the same for write queues
    # broker-down and broker-loss only: the slaves of the same name are meant as well; so they are where the name has
    # no master
    with_slaves: bool = False
    # broker-down only: the broker and all its queues are taken out of the cluster, which is no outage
    for_good: bool = False

    @property
    def strategy_name(self) -> str | None:
        """The strategy by name."""
        if self.strategy is None or isinstance(self.strategy, str):
            return self.strategy
        return str(getattr(self.strategy, "__name__", type(self.strategy).__name__))


class Timers(Struct, frozen=True):
    """Every clock that takes part, with the defaults of clients, brokers and NameServers in microseconds.

    Attributes:
        rebalance_wait_us: between two rebalances of a client (`rocketmq.client.rebalance.waitInterval`).
        rebalance_min_us: at least between two of them, and after an unbalanced one
            (`rocketmq.client.rebalance.minInterval`; clients before 5.2.0 have none).
        route_poll_us: `pollNameServerInterval`.
        heartbeat_us: `heartbeatBrokerInterval`.
        persist_us: `persistConsumerOffsetInterval`.
        pull_delay_us: from taking a queue to its first pull; None is what the client version does.
        pull_idle_us: after which a queue that is not pulled is given up (`rocketmq.client.pull.pullMaxIdleTime`).
        pull_hold_us: for how long a broker holds a pull that finds nothing.
        lock_renewal_us: orderly: between two renewals of the broker's locks (`rocketmq.client.rebalance.lockInterval`).
        lock_life_us: orderly: after which a broker gives a lock to another client
            (`rocketmq.broker.rebalance.lockMaxLiveTime`).
        lock_retry_us: orderly: after which a client that got no lock rebalances again (5.0.0 and newer).
        unlock_delay_us: orderly: the delayed unlock, and after which a queue is given up by force
            (`rocketmq.client.unlockDelayTimeMills`).
        release_wait_us: orderly: for how long a client waits for its listener before it gives a queue up later; None is
            what the client version does.
        channel_expiry_us: a broker forgets a client without heartbeats after it (`channelExpiredTimeout`).
        broker_scan_us: how often a broker looks for such clients.
        socket_idle_us: a broker closes a silent connection after it (`serverChannelMaxIdleTimeSeconds`).
        notify_batch_us: for how long a broker collects notices of changed consumers
            (`realTimeNotifyConsumerChange=false`: 15 s); 0 sends each at once.
        rpc_timeout_us: after which a client gives a silent broker up.
        nameserver_expiry_us: a NameServer drops a broker without registration after it.
        nameserver_scan_us: how often it looks for such brokers.
        registration_us: how often a broker registers.
        start_us: from the making of a client's instance until it turns to the brokers, at the least: thread pools and
            route look-ups. A process that loads its classes meanwhile takes half a second or more.
        connect_us: what the first request on a new connection takes longer.
        close_us: until a broker finds the connection of a killed process closed, at the most; each broker by itself.
    """

    rebalance_wait_us: Time = 20 * SECOND_US
    rebalance_min_us: Time = SECOND_US
    route_poll_us: PositiveTime = 30 * SECOND_US
    heartbeat_us: PositiveTime = 30 * SECOND_US
    persist_us: PositiveTime = 5 * SECOND_US
    pull_delay_us: Time | None = None
    pull_idle_us: Time = 120 * SECOND_US
    pull_hold_us: Time = 15 * SECOND_US
    lock_renewal_us: PositiveTime = 20 * SECOND_US
    lock_life_us: Time = 60 * SECOND_US
    lock_retry_us: Time = SECOND_US // 2
    unlock_delay_us: Time = 20 * SECOND_US
    release_wait_us: Time | None = None
    channel_expiry_us: Time = 120 * SECOND_US
    broker_scan_us: PositiveTime = 10 * SECOND_US
    socket_idle_us: Time = 120 * SECOND_US
    notify_batch_us: Time = 0
    rpc_timeout_us: Time = 3 * SECOND_US
    nameserver_expiry_us: Time = 120 * SECOND_US
    nameserver_scan_us: Time = 5 * SECOND_US
    registration_us: Time = 30 * SECOND_US
    start_us: Time = 30_000
    connect_us: Time = 20_000
    close_us: Time = 20_000


TIMER_NAMES: Mapping[str, str] = {name.removesuffix("_us").replace("_", "-"): name for name in Timers.__struct_fields__}
"""As users write a timer → its field: `rebalance-wait` → `rebalance_wait_us`."""


class GroupScenario(Struct, frozen=True):
    """What a group goes through."""

    # in any order; those of the same time happen in the order of the list
    events: Annotated[tuple[Event, ...], Meta(max_length=MOST_EVENTS)] = ()
    client_version: str = "5.5.0"  # whose rules the consumers follow
    orderly: bool = False  # the listener is a MessageListenerOrderly, so that queues are locked at the broker
    broadcasting: bool = False  # BROADCASTING instead of CLUSTERING
    timers: Timers = Timers()  # every clock
    # a request's way to a server and back, on average; single ones vary as those of real brokers do
    latency_us: Time = 1000
    consume_us: Time = 0  # how long the listener takes for a message
    # queue → messages a second; a queue without an entry has an unknown rate
    rates: Mapping[MessageQueue, float] = field(default_factory=dict)
    consume_from: str = CONSUME_FROM_LAST_OFFSET  # `consumeFromWhere` of the consumers
    until_us: PositiveTime | None = None  # where the simulation ends; None when the group has converged
    patience_us: Time = 600 * SECOND_US  # how long after the last event it ends at the latest when it does not converge
    all_new: bool = False  # the consumers of the beginning start at time 0 instead of having run for a while
    seed: Seed = 1  # of all that is random
    consumer_type: ConsumerType = "push"  # which of RocketMQ's kinds a consumer is that `consumer_types` does not name
    consumer_types: Mapping[str, ConsumerType] = field(default_factory=dict)  # client id → which it is
