"""The result of `simulate-rebalance`: consumer groups over time.

- All times count in milliseconds since the start of the simulation.
- A queue is *owned* by a consumer from when it takes the queue into its process-queue table until it drops it there, or
  ends. It is *read* from the first pull on, which newer clients send half a second later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from msgspec import Struct, defstruct, field

from rmqlb.model.condition import TriedCondition
from rmqlb.model.finding import ERROR, WARNING
from rmqlb.model.group import ConsumerType
from rmqlb.model.group_scenario import EventKind, Timers
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import Result
from rmqlb.model.sdk_use import SdkUse
from rmqlb.model.simulate_send import SendResult
from rmqlb.model.times import Microseconds, milliseconds_if_known

OwnerState = Literal["gone", "outage", "unassigned", "one", "duplicate-owners"]
StartRule = Literal["stored", "end", "beginning", "timestamp", "refused", "unknown"]
_Time = TypeVar("_Time")
_Count = TypeVar("_Count")


class StartOffset(Struct, frozen=True):
    """Where a new owner starts to pull."""

    # stored (the group's offset), end (of the queue), beginning (offset 0), timestamp (what the broker finds for
    # consumeTimestamp), refused (the queue is not taken in this pass), unknown (not enough was observed)
    rule: StartRule
    offset: int | None  # the next message to read
    reason: str


class OfQueue(Struct, frozen=True, rename="camel"):
    """A fact about one queue.

    Attributes:
        topic: its topic.
        broker_name: its broker.
        queue_id: its number there, from 0.
    """

    topic: str
    broker_name: str
    queue_id: int

    @property
    def queue(self) -> MessageQueue:
        return MessageQueue(self.topic, self.broker_name, self.queue_id)


class Takeover(OfQueue, frozen=True, rename="camel"):
    """A consumer takes a queue.

    Attributes:
        client_id: the consumer.
        at_ms: when.
        reads_from_ms: its first pull; null if it lost the queue before, or the simulation ended.
        unread_ms: for how long no consumer had read the queue by then; 0 if one still did, null without a first pull.
        start_rule: where it starts to pull: stored (the group's offset), end (of the queue), beginning (offset 0),
            timestamp (what the broker finds for consumeTimestamp), refused (the queue is not taken in this pass),
            unknown (not enough was observed).
        start_offset: the next message that it reads; null if unknown.
        start_reason: the reason, in a line.
        redelivered_ms: how far the stored offset is behind what was delivered before, at most, as a length of time;
            times the queue's rate it bounds the messages that are redelivered.
        redelivered: that bound in messages; null if the rate is unknown.
    """

    client_id: str
    at_ms: float
    reads_from_ms: float | None
    unread_ms: float | None
    start_rule: StartRule
    start_offset: int | None
    start_reason: str
    redelivered_ms: float
    redelivered: int | None


class Interval(Struct, frozen=True, rename="camel"):
    """A stretch of time in which a queue's owners do not change.

    Attributes:
        from_ms: its begin.
        to_ms: its end, which belongs to the next one.
        state: gone (the queue does not exist yet, or was removed), outage (its broker is down, or no owner has an
            address to pull it from), unassigned, one (owner) or duplicate-owners.
        owners: client IDs, sorted; a process that shares its ID with another is listed twice.
    """

    from_ms: float
    to_ms: float
    state: OwnerState
    owners: tuple[str, ...]

    from_us = Microseconds("from_ms")
    to_us = Microseconds("to_ms")


class QueueTimeline(OfQueue, frozen=True, rename="camel"):
    """One queue over the whole simulation.

    Attributes:
        total_gap_ms: total time without owner.
        longest_gap_ms: the longest stretch of it.
        total_overlap_ms: total time with duplicate owners; 0 with BROADCASTING, where several are the rule.
        longest_overlap_ms: the longest stretch of it.
        total_outage_ms: total time in which its broker cannot be read, until an owner pulls again.
        longest_outage_ms: the longest stretch of it.
        unread_ms: the longest time in which no consumer reads it, outages included: the longest wait of a message. A
            wait that is not over lasts until the simulation ends.
        unread_at_end: no consumer reads it when the simulation ends.
        redelivered: bound of the messages redelivered, over all takeovers; null if the rate is unknown.
        intervals: they cover the time from 0 to the end exactly, without gap or overlap; neighbours differ.
        takeovers: in the order of time.
    """

    total_gap_ms: float
    longest_gap_ms: float
    total_overlap_ms: float
    longest_overlap_ms: float
    total_outage_ms: float
    longest_outage_ms: float
    unread_ms: float
    unread_at_end: bool
    redelivered: int | None
    intervals: tuple[Interval, ...]
    takeovers: tuple[Takeover, ...]

    @property
    def longest_bad_ms(self) -> float:
        return max(self.longest_gap_ms, self.longest_overlap_ms, self.longest_outage_ms)


class Step(Struct, frozen=True, rename="camel"):
    """Something that happened, and why.

    Attributes:
        at_ms: when.
        who: the client ID, `broker NAME` or `NameServer`.
        what: one of event, notice, wake, rebalance, keep, drop, take, lock, unlock, pull, heartbeat, route, expire.
        text: in a line.
        queues: the queues it is about.
    """

    at_ms: float
    who: str
    what: str
    text: str
    queues: tuple[MessageQueue, ...] = ()


class FiguresOf(Struct, Generic[_Time, _Count], frozen=True, rename="camel"):
    """The figures of a simulation, or their spreads over many.

    Attributes:
        convergence_ms: from the first event to the last change of an owner; null if the group did not converge, or
            in no trial. 0 if nothing changed.
        longest_gap_ms: the longest time that a queue had no owner.
        total_gap_ms: queue-time without owner: the sum over all queues.
        longest_overlap_ms: the longest time that a queue had duplicate owners.
        total_overlap_ms: the sum of it over all queues.
        longest_outage_ms: the longest time that a queue's broker could not be read.
        total_outage_ms: the sum of it over all queues.
        unread_ms: the longest time in which no consumer read a queue, outages included: the longest wait of a message.
            What is not over, as an outage may be, lasts until the simulation ends.
        redelivered: bound of the messages that are redelivered; null if a rate that it needs is unknown.
        queues_with_gap: queues that had no owner at some time.
        queues_with_overlap: queues that had several.
        queues_with_outage: queues whose broker could not be read at some time.
        queues_with_gap_at_end: queues that have no owner when the simulation ends; their times above are not over then.
        queues_with_overlap_at_end: queues that have several then.
        queues_with_outage_at_end: queues whose broker cannot be read then.
        queues_unread_at_end: queues that no consumer reads then, for any reason.
        taken: how often a queue was taken.
        rebalances: how often consumers went through their queues.
    """

    convergence_ms: _Time | None
    longest_gap_ms: _Time
    total_gap_ms: _Time
    longest_overlap_ms: _Time
    total_overlap_ms: _Time
    longest_outage_ms: _Time
    total_outage_ms: _Time
    unread_ms: _Time
    redelivered: _Count | None
    queues_with_gap: _Count
    queues_with_overlap: _Count
    queues_with_outage: _Count
    queues_with_gap_at_end: _Count
    queues_with_overlap_at_end: _Count
    queues_with_outage_at_end: _Count
    queues_unread_at_end: _Count
    taken: _Count
    rebalances: _Count


class GroupFigures(FiguresOf[float, int], frozen=True, rename="camel"):
    """A simulation in numbers."""


class FigureSpread(Struct, frozen=True, rename="camel"):
    """One figure over many trials.

    Attributes:
        p50: the value that half of the trials do not exceed.
        p95: the value that 95 of 100 trials do not exceed.
        max: the largest.
        max_trial: the first trial that has it, from 0.
    """

    p50: float
    p95: float
    max: float
    max_trial: int


class FigureSpreads(FiguresOf[FigureSpread, FigureSpread], frozen=True, rename="camel"):
    """Every figure of a simulation over many trials; null is unknown in one of them."""


class GroupTrials(Struct, frozen=True, rename="camel"):
    """Many trials of one scenario, which differ in the random phases of clocks, picks of brokers and latencies.

    Attributes:
        trials: how many.
        converged: how many of them converged.
        figures: figure by figure.
    """

    trials: int
    converged: int
    figures: FigureSpreads


class QueueRate(OfQueue, frozen=True, rename="camel"):
    """The inflow of a queue.

    Attributes:
        rate_per_second: messages per second.
    """

    rate_per_second: float


if TYPE_CHECKING:
    TimersInMs = Struct
else:
    TimersInMs = defstruct(
        "TimersInMs",
        [(f"{name[:-3]}_ms", float | None) for name in Timers.__struct_fields__],
        namespace={"__doc__": (Timers.__doc__ or "").replace("_us: ", "_ms: ").replace("in microseconds", "in ms")},
        frozen=True,
        rename="camel",
    )


def timers_in_ms(timers: Timers) -> TimersInMs:
    """Every clock of clients, brokers and NameServers as results have it; null is what the client version does."""
    return TimersInMs(*(milliseconds_if_known(getattr(timers, name)) for name in timers.__struct_fields__))


class SimulatedGroup(Struct, frozen=True, rename="camel"):
    """What was simulated.

    Attributes:
        client_version: version of the client.
        profile: the stretch of versions whose rules were followed.
        orderly: the listener is orderly, so queues are locked at the broker.
        broadcasting: BROADCASTING instead of CLUSTERING.
        consume_from_where: where a queue without an offset is begun.
        consumer_type: which of RocketMQ's kinds the consumers are.
        consumer_types: client ID → its kind, of those that are known one by one.
        timers: every clock.
        latency_ms: a request's way to a server and back.
        consume_ms: how long the listener takes for a message.
        rates: queues whose rate is known.
        until_ms: where the simulation ends; null if it ends when the group has converged.
        patience_ms: how long after the last event it ends at the latest.
        all_new: the consumers start with the simulation.
        seed: the random seed.
    """

    client_version: str
    profile: str
    orderly: bool
    broadcasting: bool
    consume_from_where: str
    consumer_type: ConsumerType
    consumer_types: Mapping[str, ConsumerType]
    timers: TimersInMs
    latency_ms: float
    consume_ms: float
    rates: tuple[QueueRate, ...]
    until_ms: float | None
    patience_ms: float
    all_new: bool
    seed: int


class SimulatedEvent(Struct, frozen=True, rename="camel"):
    """Something that happens to the group or its brokers.

    Attributes:
        at_ms: when.
        kind: what.
        subject: client ID, broker or topic that it is about.
        strategy: of a process that joins; null for the group's.
        broker_name: of a route change; null for all brokers of the topic.
        read_queues: new number of read queues; null for as before.
        write_queues: new number of write queues; null for as before.
        with_slaves: the broker's slaves are meant as well.
        text: as typed.
    """

    at_ms: float
    kind: EventKind
    subject: str
    strategy: str | None = None
    broker_name: str | None = None
    read_queues: int | None = field(name="readQueueNums", default=None)
    write_queues: int | None = field(name="writeQueueNums", default=None)
    with_slaves: bool = False
    text: str = ""

    at_us = Microseconds("at_ms")


class ConsumerPart(Struct, frozen=True, rename="camel"):
    """A client ID's part in the simulation.

    Attributes:
        client_id: the ID.
        queues_at_start: queues that it owns at the beginning.
        queues_at_end: queues that it owns at the end.
        taken: how often it took a queue.
    """

    client_id: str
    queues_at_start: int
    queues_at_end: int
    taken: int


class RebalanceResult(Result, frozen=True):
    """A consumer group over time.

    Attributes:
        group: the group; null if the source names none.
        strategy: at the beginning, by RocketMQ's name.
        scenario: what was simulated.
        events: in the order of time.
        trial: which of the seed's trials this is, from 0.
        end_ms: where the time axis ends.
        figures: in numbers.
        queues: queue by queue, in the clients' order.
        consumers: client ID by client ID, as clients sort them.
        steps: what happened; null without --explain.
        trials: the spreads over many trials; null without --trials.
        conditions: what --fail-on asked for.
        sdks: the client libraries of the consumers, of those that join too, and how well their rules are known; none
            in Python.
    """

    group: str | None
    strategy: str
    scenario: SimulatedGroup
    events: tuple[SimulatedEvent, ...]
    trial: int
    end_ms: float
    figures: GroupFigures
    queues: tuple[QueueTimeline, ...]
    consumers: tuple[ConsumerPart, ...]
    steps: tuple[Step, ...] | None = None
    trials: GroupTrials | None = None
    conditions: tuple[TriedCondition, ...] = ()
    sdks: tuple[SdkUse, ...] = ()

    end_us = Microseconds("end_ms")

    @property
    def client_ids(self) -> list[str]:
        return [consumer.client_id for consumer in self.consumers]

    @property
    def broadcasting(self) -> bool:
        return self.scenario.broadcasting

    @property
    def gravity(self) -> str:
        """Error if something stays bad in any trial, warning if something bad passes, otherwise inOrder."""
        f = self.figures
        overlaps = (0, 0) if self.broadcasting else (f.queues_with_overlap_at_end, f.queues_with_overlap)
        if self.trials is not None and self.trials.converged < self.trials.trials:
            return ERROR
        if f.convergence_ms is None or f.queues_unread_at_end or f.queues_with_gap_at_end or overlaps[0]:
            return ERROR
        return WARNING if f.queues_with_outage or f.queues_with_gap or overlaps[1] else "inOrder"

    @property
    def misassigned_throughout(self) -> int:
        """Queues without an owner, or with duplicate owners, when the simulation begins and when it ends."""
        bad = {"unassigned"} if self.broadcasting else {"unassigned", "duplicate-owners"}
        return sum(
            one.intervals[0].state in bad and one.intervals[-1].state in bad for one in self.queues if one.intervals
        )


class SimulationsSummary(Struct, frozen=True, rename="camel"):
    """All groups together, and the producers.

    Attributes:
        groups: how many.
        groups_affected: groups of which a queue is in an outage, has a gap, an overlap or is unread at the end, or that
            do not converge.
        queues: of all groups; one that two groups read counts twice.
        queues_with_gap: queues that had no owner at some time.
        queues_with_overlap: queues that had several.
        queues_with_outage: queues whose broker could not be read at some time.
        queues_unread_at_end: queues that no consumer reads at the end.
        queues_misassigned_throughout: queues that are unassigned or have duplicate owners at the beginning and at the
            end: the events are not why.
        longest_gap_ms: of any group.
        longest_overlap_ms: of any group.
        longest_outage_ms: of any group.
        unread_ms: the longest time in which no consumer read a queue: the longest wait of a message.
        redelivered: bound of the messages that are redelivered; null if a rate that it needs is unknown.
        convergence_ms: from the first event until the last group has converged; null if one has not.
        topics: topics of which producers were simulated.
        messages: that these sent.
        lost: of these, lost.
        retried: of these, with more than one attempt.
        longest_send_ms: the longest that a message took; null without producers.
    """

    groups: int
    groups_affected: int
    queues: int
    queues_with_gap: int
    queues_with_overlap: int
    queues_with_outage: int
    queues_unread_at_end: int
    queues_misassigned_throughout: int
    longest_gap_ms: float
    longest_overlap_ms: float
    longest_outage_ms: float
    unread_ms: float
    redelivered: int | None
    convergence_ms: float | None
    topics: int
    messages: int
    lost: int
    retried: int
    longest_send_ms: float | None


class RebalanceResults(Result, frozen=True):
    """Several consumer groups over time, and producers while brokers fail.

    Attributes:
        groups: each group's simulation, as rmqlb/simulate-rebalance has it.
        producers: a producer of each topic that a failing broker has queues of, as rmqlb/send has it.
        summary: of all of them.
    """

    groups: tuple[RebalanceResult, ...]
    producers: tuple[SendResult, ...]
    summary: SimulationsSummary
