"""What a consumer group goes through in a simulation, and what came of it, from the first event to the last timer.

Rule of this file: times are whole microseconds (`_us`) since the start of the simulation, lengths of time likewise.
A queue is *owned* by a member from when it takes the queue into its process-queue table until it drops it there, or
ends. It is *read* from the first pull on, which newer clients send half a second later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from rmqlb.model.finding import Finding
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
]
OwnerState = Literal["gone", "none", "one", "several"]
StartRule = Literal["stored", "end", "beginning", "timestamp", "refused", "unknown"]

CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"
SECOND_US = 1_000_000


class Event(Struct, frozen=True):
    """One thing that happens to the group or to its brokers.

    Attributes:
        kind: join (a process starts), leave (it ends in good order), crash (it is killed, its sockets close),
            host-loss (its machine falls silent), broker-down (a broker's process ends), broker-loss (its machine falls
            silent), broker-up (it starts, or a new one does), route-change (numbers of queues change), pull-stall (a
            member's pull requests are lost, so that nothing is read although it owns the queues).
        at_us: when.
        subject: the client id; of broker events the broker's name; of route-change the topic.
        text: the event as the user wrote it.
        strategy: join only: the strategy that this process runs, or None for the group's.
        broker_name: route-change only: the broker whose numbers change, or None for all of the topic's.
        read_queues: broker-up of a new broker and route-change: number of read queues, or None for as before.
        write_queues: likewise.
    """

    kind: EventKind
    at_us: int
    subject: str
    text: str = ""
    strategy: str | None = None
    broker_name: str | None = None
    read_queues: int | None = None
    write_queues: int | None = None


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
        notify_batch_us: a broker collects notices of changed members for so long
            (`realTimeNotifyConsumerChange=false`: 15 s); 0 sends each at once.
        rpc_timeout_us: after which a client gives a silent broker up.
        start_us: from the making of a client's instance until it turns to the brokers, at the least: thread pools and
            route look-ups. A process that loads its classes meanwhile takes half a second or more.
        connect_us: what the first request on a new connection takes longer.
        close_us: until a broker finds the connection of a killed process closed, at the most; each broker by itself.
        nameserver_expiry_us: a NameServer drops a broker without registration after it.
        nameserver_scan_us: how often it looks for such brokers.
        registration_us: how often a broker registers.
    """

    rebalance_wait_us: int = 20 * SECOND_US
    rebalance_min_us: int = SECOND_US
    route_poll_us: int = 30 * SECOND_US
    heartbeat_us: int = 30 * SECOND_US
    persist_us: int = 5 * SECOND_US
    pull_delay_us: int | None = None
    pull_idle_us: int = 120 * SECOND_US
    pull_hold_us: int = 15 * SECOND_US
    lock_renewal_us: int = 20 * SECOND_US
    lock_life_us: int = 60 * SECOND_US
    lock_retry_us: int = SECOND_US // 2
    unlock_delay_us: int = 20 * SECOND_US
    release_wait_us: int | None = None
    channel_expiry_us: int = 120 * SECOND_US
    broker_scan_us: int = 10 * SECOND_US
    socket_idle_us: int = 120 * SECOND_US
    notify_batch_us: int = 0
    rpc_timeout_us: int = 3 * SECOND_US
    nameserver_expiry_us: int = 120 * SECOND_US
    nameserver_scan_us: int = 5 * SECOND_US
    registration_us: int = 30 * SECOND_US
    start_us: int = 30_000
    connect_us: int = 20_000
    close_us: int = 20_000


TIMER_NAMES: Mapping[str, str] = {name.removesuffix("_us").replace("_", "-"): name for name in Timers.__struct_fields__}
"""As users write a timer → its field: `rebalance-wait` → `rebalance_wait_us`."""


class GroupScenario(Struct, frozen=True):
    """What a group goes through.

    Attributes:
        events: in any order; those of the same time happen in the order of the list.
        client_version: whose rules the members follow.
        orderly: the listener is a MessageListenerOrderly, so that queues are locked at the broker.
        broadcasting: BROADCASTING instead of CLUSTERING.
        timers: every clock.
        latency_us: a request's way to a server and back, on average; single ones vary as those of real brokers do.
        consume_us: how long the listener takes for a message.
        rates: queue → messages a second; a queue without an entry has an unknown rate.
        consume_from: `consumeFromWhere` of the members.
        until_us: where the simulation ends; None when the group is settled.
        patience_us: how long after the last event it ends at the latest when it does not settle.
        all_new: the members of the beginning start at time 0 instead of having run for a while.
        seed: of all that is random.
    """

    events: tuple[Event, ...] = ()
    client_version: str = "5.5.0"
    orderly: bool = False
    broadcasting: bool = False
    timers: Timers = Timers()
    latency_us: int = 1000
    consume_us: int = 0
    rates: Mapping[MessageQueue, float] = field(default_factory=dict)
    consume_from: str = CONSUME_FROM_LAST_OFFSET
    until_us: int | None = None
    patience_us: int = 600 * SECOND_US
    all_new: bool = False
    seed: int = 1


class StartOffset(Struct, frozen=True):
    """Where a new owner starts to pull.

    Attributes:
        rule: stored (the group's offset), end (of the queue), beginning (offset 0), timestamp (what the broker finds
            for consumeTimestamp), refused (the queue is not taken in this pass), unknown (not enough was observed).
        offset: the next message to read, or None when the source does not tell.
        reason: why, in one line.
    """

    rule: StartRule
    offset: int | None
    reason: str


class Takeover(Struct, frozen=True):
    """A member takes a queue.

    Attributes:
        queue: which.
        client_id: who.
        at_us: when.
        reads_from_us: its first pull; None when it lost the queue before, or the simulation ended.
        unread_us: for how long nobody had read the queue by then; 0 when somebody still did, None without a first pull.
        start: where it starts to pull.
        again_us: how far the stored offset that it starts from is behind what was delivered before, at the most, as a
            length of time; times the queue's rate it bounds the messages that are delivered again.
        again: that bound in messages; None when the rate is unknown.
    """

    queue: MessageQueue
    client_id: str
    at_us: int
    reads_from_us: int | None
    unread_us: int | None
    start: StartOffset
    again_us: int
    again: int | None


class Interval(Struct, frozen=True):
    """A stretch of time in which a queue's owners do not change.

    Attributes:
        from_us: its begin.
        to_us: its end, which belongs to the next one.
        state: gone (the queue's broker is down, or no route has the queue), none, one or several (owners).
        owners: client ids, sorted; a process that shares its id with another is there twice.
    """

    from_us: int
    to_us: int
    state: OwnerState
    owners: tuple[str, ...]


class QueueTimeline(Struct, frozen=True):
    """One queue over the whole simulation.

    Attributes:
        queue: which.
        intervals: they cover the time from 0 to the end exactly, without gap or overlap; neighbours differ.
        takeovers: in the order of time.
        none_us: in all without owner.
        longest_none_us: the longest stretch of it.
        several_us: in all with several owners; 0 with BROADCASTING, where several are the rule.
        longest_several_us: the longest stretch of it.
        unread_us: the longest time until a new owner's first pull, which bounds the added delay of a message.
        again: bound of the messages delivered again, over all takeovers; None when the rate is unknown.
    """

    queue: MessageQueue
    intervals: tuple[Interval, ...]
    takeovers: tuple[Takeover, ...]
    none_us: int
    longest_none_us: int
    several_us: int
    longest_several_us: int
    unread_us: int
    again: int | None


class Step(Struct, frozen=True):
    """Something that happened, and why.

    Attributes:
        at_us: when.
        who: the client id, `broker NAME` or `NameServer`.
        what: one of event, notice, wake, rebalance, keep, drop, take, lock, unlock, pull, heartbeat, route, expire.
        text: one line.
        queues: the queues it is about.
    """

    at_us: int
    who: str
    what: str
    text: str
    queues: tuple[MessageQueue, ...] = ()


class GroupFigures(Struct, frozen=True):
    """A simulation in numbers.

    Attributes:
        settled_us: from the first event to the last change of an owner; None when the group did not settle. 0 when
            nothing changed.
        longest_none_us: the longest time that a queue had no owner.
        none_us: queue-time without owner: the sum over all queues.
        longest_several_us: the longest time that a queue had several owners.
        several_us: the sum over all queues.
        unread_us: the longest time until a new owner's first pull: bound of the added delay.
        again: bound of the messages that are delivered again; None when a rate that it needs is unknown.
        queues_none: queues that had no owner at some time.
        queues_several: queues that had several.
        taken: how often a queue was taken.
        rebalances: how often members went through their queues.
    """

    settled_us: int | None
    longest_none_us: int
    none_us: int
    longest_several_us: int
    several_us: int
    unread_us: int
    again: int | None
    queues_none: int
    queues_several: int
    taken: int
    rebalances: int


class GroupReport(Struct, frozen=True):
    """One simulation of a group.

    Attributes:
        group: its name, or None.
        strategy: RocketMQ's name of the strategy at the beginning.
        profile: the stretch of client versions whose rules were followed.
        scenario: what was asked.
        events: the events in the order of time.
        trial: which of the seed's trials this is, from 0.
        members: client ids that took part at any time, sorted as clients sort them.
        end_us: where the time axis ends.
        timelines: one a queue, in the clients' order.
        steps: what happened in the order of time; empty unless asked for.
        figures: it in numbers.
        findings: what is worth a warning.
    """

    group: str | None
    strategy: str
    profile: str
    scenario: GroupScenario
    events: tuple[Event, ...]
    trial: int
    members: tuple[str, ...]
    end_us: int
    timelines: tuple[QueueTimeline, ...]
    steps: tuple[Step, ...]
    figures: GroupFigures
    findings: tuple[Finding, ...] = ()


class FigureSpread(Struct, frozen=True):
    """One figure over many trials.

    Attributes:
        median: the value that half of the trials do not exceed.
        p95: the value that 95 of 100 trials do not exceed.
        worst: the largest.
        worst_trial: the first trial that has it.
    """

    median: float
    p95: float
    worst: float
    worst_trial: int


class GroupTrials(Struct, frozen=True):
    """Many trials of one scenario, which differ in the random phases of clocks, picks of brokers and latencies.

    Attributes:
        trials: how many.
        settled: how many of them settled; the spread of `settled_us` is over these.
        spreads: name of a field of `GroupFigures` → its spread; a figure that is unknown is absent.
    """

    trials: int
    settled: int
    spreads: Mapping[str, FigureSpread]


class RolloutChoice(Struct, frozen=True):
    """One way to restart a group's members.

    Attributes:
        order: client ids in the order in which they go down.
        order_name: how the order came about: sorted, reversed, least overlap, given, …
        at_once: how many go down together.
        pause_us: from one going down to the next.
        down_us: how long each is away.
        takes_us: from the first going down until the group is settled; None when it does not settle.
        trials: what came of it.
        best: no other choice that was tried is better in what was asked for.
    """

    order: tuple[str, ...]
    order_name: str
    at_once: int
    pause_us: int
    down_us: int
    takes_us: int | None
    trials: GroupTrials
    best: bool = False


class MixedStage(Struct, frozen=True):
    """A stage of a strategy change at rest: some members run the new strategy, the others still the old one.

    Attributes:
        changed: how many members run the new one.
        next_id: the member that changes next; None after the last.
        several: queues that two members own as long as the stage lasts.
        none: queues that nobody owns as long as it lasts.
    """

    changed: int
    next_id: str | None
    several: int
    none: int


class Rollout(Struct, frozen=True):
    """A rolling restart or a change of strategy, planned.

    Attributes:
        group: its name, or None.
        strategy_before: RocketMQ's name.
        strategy_after: likewise; the same for a mere restart.
        members: the client ids that are restarted, sorted.
        choices: what was tried, the best first.
        stages: the mixed stages of the best order; empty for a mere restart.
        overlap: queues with two owners or none, summed over the mixed stages of the best order; no order has fewer
            where `overlap_is_least`. 0 when nothing need overlap.
        overlap_is_least: the best order was searched for exhaustively.
        findings: what is worth a warning.
    """

    group: str | None
    strategy_before: str
    strategy_after: str
    members: tuple[str, ...]
    choices: tuple[RolloutChoice, ...]
    stages: tuple[MixedStage, ...]
    overlap: int
    overlap_is_least: bool
    findings: tuple[Finding, ...] = ()
