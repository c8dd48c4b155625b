"""What came of a simulated consumer group, from the first event to the last timer.

Rule of this file: times are whole microseconds (`_us`) since the start of the simulation, lengths of time likewise.
A queue is *owned* by a member from when it takes the queue into its process-queue table until it drops it there, or
ends. It is *read* from the first pull on, which newer clients send half a second later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from rmqlb.model.finding import Finding
from rmqlb.model.group_scenario import Event, GroupScenario
from rmqlb.model.message_queue import MessageQueue

OwnerState = Literal["gone", "outage", "none", "one", "several"]
StartRule = Literal["stored", "end", "beginning", "timestamp", "refused", "unknown"]


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
        state: gone (the queue is not there yet, or was removed), outage (its broker is down, or no owner has an address
            to pull it from), none, one or several (owners).
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
        unread_us: the longest time in which nobody reads it, outages included: so long a message waits at the most. A
            wait that is not over lasts until the simulation ends.
        again: bound of the messages delivered again, over all takeovers; None when the rate is unknown.
        outage_us: in all with a broker that cannot be read, until an owner pulls again.
        longest_outage_us: the longest stretch of it.
        unread_at_end: nobody reads it when the simulation ends.
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
    outage_us: int = 0
    longest_outage_us: int = 0
    unread_at_end: bool = False


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
        unread_us: the longest time in which nobody read a queue, outages included: so long a message waits at the most.
            What is not over, as an outage may be, lasts until the simulation ends.
        again: bound of the messages that are delivered again; None when a rate that it needs is unknown.
        queues_none: queues that had no owner at some time.
        queues_several: queues that had several.
        taken: how often a queue was taken.
        rebalances: how often members went through their queues.
        longest_outage_us: the longest time that a queue's broker could not be read.
        total_outage_us: the sum over all queues.
        queues_outage: queues whose broker could not be read at some time.
        queues_none_at_end: queues that have no owner when the simulation ends.
        queues_several_at_end: queues that have several then.
        queues_outage_at_end: queues whose broker cannot be read then.
        queues_unread_at_end: queues that nobody reads then, for one reason or another.
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
    longest_outage_us: int = 0
    total_outage_us: int = 0
    queues_outage: int = 0
    queues_none_at_end: int = 0
    queues_several_at_end: int = 0
    queues_outage_at_end: int = 0
    queues_unread_at_end: int = 0


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
