"""The results of `simulate-rebalance`: consumer groups over time, with producers where brokers of topics fail.

- All times count in milliseconds since the start of the simulation.
- A consumer *owns* a queue while the queue is in its process-queue table. It *reads* the queue from the first pull on,
  which newer clients send half a second later.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Annotated, Generic, Literal, TypeVar, get_type_hints

from msgspec import Struct, defstruct, field

from rmqlb.model.client_versions import SdkUse
from rmqlb.model.group import ConsumerType
from rmqlb.model.group_scenario import EventKind, Timers
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import ERROR, WARNING, Microseconds, RateSource, Result, TriedCondition, milliseconds_if_known
from rmqlb.model.simulate_send import SendResult

OwnerState = Literal["gone", "outage", "unassigned", "one", "duplicate-owners"]
BAD_STATES: Mapping[str, OwnerState] = {"gap": "unassigned", "overlap": "duplicate-owners", "outage": "outage"}
StartRule = Literal["stored", "end", "beginning", "timestamp", "refused", "unknown"]
_Time = TypeVar("_Time")
_Count = TypeVar("_Count")


class StartOffset(Struct, frozen=True):
    """Where a new owner starts to pull."""

    # stored (the group's offset), end (of the queue), beginning (offset 0), timestamp (the broker's offset for
    # consumeTimestamp), refused (the queue is not taken in this pass), unknown (not enough was observed)
    rule: StartRule
    offset: int | None  # the next message to read
    reason: str


class OfQueue(Struct, frozen=True, rename="camel"):
    topic: str
    broker_name: str
    queue_id: int

    @property
    def queue(self) -> MessageQueue:
        return MessageQueue(self.topic, self.broker_name, self.queue_id)


class Takeover(OfQueue, frozen=True, rename="camel"):
    """A consumer takes a queue."""

    client_id: str
    at_ms: Annotated[float, "when the owner takes the queue"]
    reads_from_ms: Annotated[float | None, "its first pull; null if it lost the queue before, or the simulation ended"]
    unread_ms: Annotated[float | None, "time without a reading consumer by then; 0 if one read it, null without a pull"]
    start_rule: Annotated[StartRule, "stored, end, beginning, timestamp (by consumeTimestamp), refused or unknown"]
    start_offset: Annotated[int | None, "the next message that it reads; null if unknown"]
    start_reason: Annotated[str, "the reason, in a line"]
    redelivered_ms: Annotated[float, "longest time by which the stored offset can be behind earlier deliveries"]
    redelivered: Annotated[int | None, "that bound in messages; null if the rate is unknown"]


class Interval(Struct, frozen=True, rename="camel"):
    """A stretch of time in which a queue's owners do not change."""

    from_ms: Annotated[float, "its begin"]
    to_ms: Annotated[float, "its end, which belongs to the next one"]
    state: Annotated[OwnerState, "gone (no such queue), outage (cannot be pulled), unassigned, one or duplicate-owners"]
    owners: Annotated[tuple[str, ...], "client IDs, sorted; a process that shares its ID with another is listed twice"]

    from_us = Microseconds("from_ms")
    to_us = Microseconds("to_ms")


class QueueTimeline(OfQueue, frozen=True, rename="camel"):
    """One queue over the whole simulation."""

    total_gap_ms: Annotated[float, "total time without owner"]
    longest_gap_ms: Annotated[float, "the longest stretch of it"]
    total_overlap_ms: Annotated[float, "total time with duplicate owners; 0 with BROADCASTING"]
    longest_overlap_ms: Annotated[float, "the longest stretch of it"]
    total_outage_ms: Annotated[float, "total time in which its broker cannot be read, until an owner pulls again"]
    longest_outage_ms: Annotated[float, "the longest stretch of it"]
    unread_ms: Annotated[float, "longest time without a reading consumer, outages and unended waits included"]
    unread_at_end: Annotated[bool, "no consumer reads it when the simulation ends"]
    redelivered: Annotated[int | None, "bound of redelivered messages; null if the rate is unknown"]
    intervals: Annotated[tuple[Interval, ...], "they cover the time from 0 to the end; neighbours differ"]
    takeovers: Annotated[tuple[Takeover, ...], "in the order of time"]

    @property
    def longest_bad_ms(self) -> float:
        return max(self.longest_gap_ms, self.longest_overlap_ms, self.longest_outage_ms)


class LagPoint(Struct, frozen=True, rename="camel"):
    """The lag at a time."""

    at_ms: Annotated[float, "time of the point"]
    messages: Annotated[float, "messages that are not consumed yet"]


class LagCurve(Struct, frozen=True, rename="camel"):
    """Lag over time, beyond the end of the simulation too."""

    points: Annotated[tuple[LagPoint, ...], "points joined by straight lines; two at the same time are a jump"]
    peak: Annotated[LagPoint | None, "the first highest point; null if the lag grows without end"]
    gone_ms: Annotated[float | None, "time from which there is no lag; null is never"]
    growth_per_second: Annotated[float, "messages per second after the last point"]

    @property
    def lasts_ms(self) -> float:
        return inf if self.gone_ms is None else self.gone_ms

    def most(self, from_ms: float, to_ms: float) -> float:
        """The most messages within a span of time."""
        inside = (point.messages for point in self.points if from_ms <= point.at_ms < to_ms)
        return max(self.at(from_ms), self.at(to_ms - 0.001), *inside)

    def at(self, ms: float) -> float:
        before = [point for point in self.points if point.at_ms <= ms][-1:] or [self.points[0]]
        after = next((point for point in self.points if point.at_ms > ms), None)
        begin, passed = before[0], ms - before[0].at_ms
        if after is None:
            return begin.messages + self.growth_per_second * passed / 1000
        return begin.messages + (after.messages - begin.messages) * passed / (after.at_ms - begin.at_ms)


class QueueLag(OfQueue, frozen=True, rename="camel"):
    """The lag of a queue."""

    lag: Annotated[LagCurve, "its lag over time"]


class LagOverTime(Struct, frozen=True, rename="camel"):
    """The lag of a group, by the fluid model of `docs/explanation/sizes.md`."""

    group: Annotated[LagCurve, "of all queues together"]
    queues: Annotated[tuple[QueueLag, ...], "queue by queue, in the clients' order"]
    consume_threads: Annotated[int, "consume threads of each consumer"]

    def figures(self, first_ms: float) -> dict[str, float | None]:
        """The figures of `FiguresOf` for lag, from the first event on."""
        peak, gone_ms = self.group.peak, self.group.gone_ms
        return {
            "peak_lag": None if peak is None else round(peak.messages),
            "lag_gone_ms": None if gone_ms is None else round(max(gone_ms - first_ms, 0), 3),
            "queues_never_drained": sum(each.lag.gone_ms is None for each in self.queues),
        }


class Step(Struct, frozen=True, rename="camel"):
    """Something that happened, and why."""

    at_ms: Annotated[float, "when it happened"]
    who: Annotated[str, "the client ID, `broker NAME` or `NameServer`"]
    what: Annotated[
        str, "event, notice, wake, rebalance, keep, drop, take, lock, unlock, pull, heartbeat, route or expire"
    ]
    text: Annotated[str, "what happened and why, in a line"]
    queues: Annotated[tuple[MessageQueue, ...], "the queues it is about"] = ()


class FiguresOf(Struct, Generic[_Time, _Count], frozen=True, rename="camel"):
    """The figures of a simulation, or their spreads over many."""

    convergence_ms: Annotated[_Time | None, "first event to last owner change; 0 without any, null if not converged"]
    longest_gap_ms: Annotated[_Time, "the longest time that a queue had no owner"]
    total_gap_ms: Annotated[_Time, "queue-time without owner: the sum over all queues"]
    longest_overlap_ms: Annotated[_Time, "the longest time that a queue had duplicate owners"]
    total_overlap_ms: Annotated[_Time, "the sum of it over all queues"]
    longest_outage_ms: Annotated[_Time, "the longest time that a queue's broker could not be read"]
    total_outage_ms: Annotated[_Time, "the sum of it over all queues"]
    unread_ms: Annotated[_Time, "longest time without a reading consumer, outages and unended waits included"]
    redelivered: Annotated[_Count | None, "bound of redelivered messages; null if a rate is unknown"]
    queues_with_gap: Annotated[_Count, "queues that had no owner at some time"]
    queues_with_overlap: Annotated[_Count, "queues that had several"]
    queues_with_outage: Annotated[_Count, "queues whose broker could not be read at some time"]
    queues_with_gap_at_end: Annotated[_Count, "queues without an owner at the end, whose times are not over"]
    queues_with_overlap_at_end: Annotated[_Count, "queues that have several owners at the end"]
    queues_with_outage_at_end: Annotated[_Count, "queues whose broker cannot be read at the end"]
    queues_unread_at_end: Annotated[_Count, "queues that no consumer reads at the end, for any reason"]
    taken: Annotated[_Count, "how often a queue was taken"]
    rebalances: Annotated[_Count, "how often consumers rebalanced"]
    peak_lag: Annotated[_Count | None, "most messages of lag; null if it grows without end, or is unknown"] = None
    lag_gone_ms: Annotated[_Time | None, "first event until there is no lag; null if never, or unknown"] = None
    queues_never_drained: Annotated[_Count | None, "queues with a lag that is never gone; null if unknown"] = None


class GroupFigures(FiguresOf[float, int], frozen=True, rename="camel"):
    """A simulation in numbers."""


class FigureSpread(Struct, frozen=True, rename="camel"):
    """One figure over many trials."""

    p50: Annotated[float, "the value that half of the trials do not exceed"]
    p95: Annotated[float, "the value that 95 of 100 trials do not exceed"]
    max: Annotated[float, "the largest"]
    max_trial: Annotated[int, "the first trial that has it, from 0"]


class FigureSpreads(FiguresOf[FigureSpread, FigureSpread], frozen=True, rename="camel"):
    """Every figure of a simulation over many trials; null is unknown in one of them."""


class GroupTrials(Struct, frozen=True, rename="camel"):
    """Many trials of one scenario, which differ in the random phases of clocks, picks of brokers and latencies."""

    trials: Annotated[int, "number of trials"]
    converged: Annotated[int, "how many of them converged"]
    figures: Annotated[FigureSpreads, "figure by figure"]


class QueueFlow(OfQueue, frozen=True, rename="camel"):
    """The inflow of a queue."""

    rate_per_second: Annotated[float, "messages per second"]


if TYPE_CHECKING:
    TimersInMs = Struct
else:
    TimersInMs = defstruct(
        "TimersInMs",
        [
            (f"{name[:-3]}_ms", Annotated[float | None, hint.__metadata__[-1]])
            for name, hint in get_type_hints(Timers, include_extras=True).items()
        ],
        namespace={"__doc__": (Timers.__doc__ or "").replace("in microseconds", "in ms")},
        frozen=True,
        rename="camel",
    )


def timers_in_ms(timers: Timers) -> TimersInMs:
    """Every clock in milliseconds; null is the default of the client version."""
    return TimersInMs(*(milliseconds_if_known(getattr(timers, name)) for name in timers.__struct_fields__))


class SimulatedGroup(Struct, frozen=True, rename="camel"):
    """What was simulated."""

    client_version: Annotated[str, "version of the client"]
    profile: Annotated[str, "the range of versions whose rules were followed"]
    orderly: Annotated[bool, "the listener is orderly, so queues are locked at the broker"]
    broadcasting: Annotated[bool, "BROADCASTING instead of CLUSTERING"]
    consume_from_where: Annotated[str, "where a consumer begins a queue without an offset"]
    consumer_type: Annotated[ConsumerType, "the consumers' type"]
    consumer_types: Annotated[Mapping[str, ConsumerType], "client ID → its type, if known individually"]
    timers: Annotated[TimersInMs, "timers"]
    latency_ms: Annotated[float, "a request's way to a server and back"]
    consume_ms: Annotated[float, "how long the listener takes for a message"]
    rates: Annotated[tuple[QueueFlow, ...], "queues whose rate is known"]
    until_ms: Annotated[float | None, "where the simulation ends; null if it ends when the group has converged"]
    patience_ms: Annotated[float, "longest time after the last event until it ends"]
    all_new: Annotated[bool, "the consumers start with the simulation"]
    seed: Annotated[int, "the random seed"]


class SimulatedEvent(Struct, frozen=True, rename="camel"):
    """Something that happens to the group or its brokers."""

    at_ms: Annotated[float, "when it happens"]
    kind: Annotated[EventKind, "kind of event"]
    subject: Annotated[str, "client ID, broker or topic that it is about"]
    strategy: str | None = None
    broker_name: str | None = None
    read_queues: Annotated[int | None, "new number; null for no change"] = field(name="readQueueNums", default=None)
    write_queues: Annotated[int | None, "new number; null for no change"] = field(name="writeQueueNums", default=None)
    with_slaves: Annotated[bool, "also applies to the broker's slaves"] = False
    text: Annotated[str, "as typed"] = ""

    at_us = Microseconds("at_ms")


class ConsumerPart(Struct, frozen=True, rename="camel"):
    """A client ID's part in the simulation."""

    client_id: str
    queues_at_start: Annotated[int, "queues that it owns at the beginning"]
    queues_at_end: Annotated[int, "queues that it owns at the end"]
    taken: Annotated[int, "how often it took a queue"]


class RebalanceResult(Result, frozen=True):
    """A consumer group over time."""

    group: Annotated[str | None, "the group; null if the source names none"]
    strategy: str
    scenario: Annotated[SimulatedGroup, "what was simulated"]
    events: Annotated[tuple[SimulatedEvent, ...], "in the order of time"]
    trial: Annotated[int, "the number of this trial of the seed, from 0"]
    end_ms: Annotated[float, "where the time axis ends"]
    figures: Annotated[GroupFigures, "the simulation in numbers"]
    queues: Annotated[tuple[QueueTimeline, ...], "queue by queue, in the clients' order"]
    consumers: Annotated[tuple[ConsumerPart, ...], "client ID by client ID, as clients sort them"]
    steps: Annotated[tuple[Step, ...] | None, "what happened; null without --explain"] = None
    trials: Annotated[GroupTrials | None, "the spreads over many trials; null without --trials"] = None
    conditions: tuple[TriedCondition, ...] = ()
    sdks: Annotated[tuple[SdkUse, ...], "client libraries of all consumers; none in Python"] = ()
    lag: Annotated[LagOverTime | None, "lag over time; null if a rate or the consume time is unknown"] = None
    rates: Annotated[RateSource | None, "where the rates come from; null without rates"] = None

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
        if self.lag is not None and self.lag.group.gone_ms is None:
            return ERROR
        if f.convergence_ms is None or f.queues_unread_at_end or f.queues_with_gap_at_end or overlaps[0]:
            return ERROR
        return WARNING if f.queues_with_outage or f.queues_with_gap or overlaps[1] else "inOrder"

    @property
    def misassigned_throughout(self) -> int:
        """Queues with no or duplicate owners when the simulation begins and when it ends."""
        bad = {"unassigned"} if self.broadcasting else {"unassigned", "duplicate-owners"}
        return sum(
            one.intervals[0].state in bad and one.intervals[-1].state in bad for one in self.queues if one.intervals
        )


class SimulationsSummary(Struct, frozen=True, rename="camel"):
    """All groups together, and the producers."""

    groups: Annotated[int, "number of groups"]
    groups_affected: Annotated[int, "groups with an outage, a gap, an overlap or no convergence"]
    queues: Annotated[int, "queues of all groups; one that two groups read counts twice"]
    queues_with_gap: Annotated[int, "queues that had no owner at some time"]
    queues_with_overlap: Annotated[int, "queues that had several"]
    queues_with_outage: Annotated[int, "queues whose broker could not be read at some time"]
    queues_unread_at_end: Annotated[int, "queues that no consumer reads at the end"]
    queues_misassigned_throughout: Annotated[int, "queues that are misassigned at the beginning and at the end"]
    longest_gap_ms: Annotated[float, "the longest gap of any group"]
    longest_overlap_ms: Annotated[float, "the longest overlap of any group"]
    longest_outage_ms: Annotated[float, "the longest outage of any group"]
    unread_ms: Annotated[float, "the longest time in which no consumer read a queue: the longest wait of a message"]
    redelivered: Annotated[int | None, "bound of redelivered messages; null if a rate is unknown"]
    convergence_ms: Annotated[float | None, "from the first event until all groups have converged; null otherwise"]
    topics: Annotated[int, "topics of which producers were simulated"]
    messages: Annotated[int, "messages that these producers sent"]
    lost: Annotated[int, "of these, lost"]
    retried: Annotated[int, "of these, messages with more than one attempt"]
    longest_send_ms: Annotated[float | None, "the longest that a message took; null without producers"]


class RebalanceResults(Result, frozen=True):
    """Several consumer groups over time, and producers while brokers fail."""

    groups: Annotated[tuple[RebalanceResult, ...], "each group's simulation, as rmqlb/simulate-rebalance has it"]
    producers: Annotated[tuple[SendResult, ...], "a producer of each topic on a failing broker, as rmqlb/send has it"]
    summary: Annotated[SimulationsSummary, "all groups and producers in numbers"]
