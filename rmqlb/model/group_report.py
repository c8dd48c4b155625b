"""What came of a simulated consumer group, from the first event to the last timer.

Rules of this file:
- Times count in milliseconds since the start of the simulation, lengths of time too; `_us` gives whole
  microseconds, which the engine and the pictures count in.
- A queue is *owned* by a consumer from when it takes the queue into its process-queue table until it drops it there, or
  ends. It is *read* from the first pull on, which newer clients send half a second later.
- What ends a Struct as `name = …` is the former name of a field, for those who use it from Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Literal, TypeVar

from msgspec import Struct

from rmqlb.model.finding import Finding
from rmqlb.model.group_scenario import Event, GroupScenario
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.sdk_use import SdkUse
from rmqlb.model.times import Former, Microseconds, MicrosecondsIfKnown

OwnerState = Literal["gone", "outage", "unassigned", "one", "duplicate-owners"]
_Time = TypeVar("_Time")
_Count = TypeVar("_Count")
StartRule = Literal["stored", "end", "beginning", "timestamp", "refused", "unknown"]


class StartOffset(Struct, frozen=True):
    """Where a new owner starts to pull."""

    # stored (the group's offset), end (of the queue), beginning (offset 0), timestamp (what the broker finds for
    # consumeTimestamp), refused (the queue is not taken in this pass), unknown (not enough was observed)
    rule: StartRule
    offset: int | None  # the next message to read, or None when the source does not tell
    reason: str  # why, in one line


class OfQueue(Struct, frozen=True, rename="camel"):
    """What is said of one queue.

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
        client_id: who.
        at_ms: when.
        reads_from_ms: its first pull; null when it lost the queue before, or the simulation ended.
        unread_ms: for how long no consumer had read the queue by then; 0 when one still did, null without a first pull.
        start_rule: where it starts to pull: stored (the group's offset), end (of the queue), beginning (offset 0),
            timestamp (what the broker finds for consumeTimestamp), refused (the queue is not taken in this pass),
            unknown (not enough was observed).
        start_offset: the next message that it reads; null when it is unknown.
        start_reason: why, in a line.
        redelivered_ms: how far the stored offset that it starts from is behind what was delivered before, at the most,
            as a length of time; times the queue's rate it bounds the messages that are redelivered.
        redelivered: that bound in messages; null when the rate is unknown.
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

    at_us = Microseconds("at_ms")
    reads_from_us = MicrosecondsIfKnown("reads_from_ms")
    unread_us = MicrosecondsIfKnown("unread_ms")
    again_us = Microseconds("redelivered_ms")
    again = Former("redelivered")
    start = property(lambda self: StartOffset(self.start_rule, self.start_offset, self.start_reason))


class Interval(Struct, frozen=True, rename="camel"):
    """A stretch of time in which a queue's owners do not change.

    Attributes:
        from_ms: its begin.
        to_ms: its end, which belongs to the next one.
        state: gone (the queue is not there yet, or was removed), outage (its broker is down, or no owner has an address
            to pull it from), unassigned, one (owner) or duplicate-owners.
        owners: client ids, sorted; a process that shares its id with another is there twice.
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
        total_gap_ms: in all without owner.
        longest_gap_ms: the longest stretch of it.
        total_overlap_ms: in all with duplicate owners; 0 with BROADCASTING, where several are the rule.
        longest_overlap_ms: the longest stretch of it.
        total_outage_ms: in all with a broker that cannot be read, until an owner pulls again.
        longest_outage_ms: the longest stretch of it.
        unread_ms: the longest time in which no consumer reads it, outages included: the longest wait of a message. A
            wait that is not over lasts until the simulation ends.
        unread_at_end: no consumer reads it when the simulation ends.
        redelivered: bound of the messages redelivered, over all takeovers; null when the rate is unknown.
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

    none_us = Microseconds("total_gap_ms")
    longest_none_us = Microseconds("longest_gap_ms")
    several_us = Microseconds("total_overlap_ms")
    longest_several_us = Microseconds("longest_overlap_ms")
    outage_us = Microseconds("total_outage_ms")
    longest_outage_us = Microseconds("longest_outage_ms")
    unread_us = Microseconds("unread_ms")
    again = Former("redelivered")

    @property
    def longest_bad_ms(self) -> float:
        """The longest time that it had no owner, or several, or was in an outage."""
        return max(self.longest_gap_ms, self.longest_overlap_ms, self.longest_outage_ms)


class Step(Struct, frozen=True, rename="camel"):
    """Something that happened, and why.

    Attributes:
        at_ms: when.
        who: the client id, `broker NAME` or `NameServer`.
        what: one of event, notice, wake, rebalance, keep, drop, take, lock, unlock, pull, heartbeat, route, expire.
        text: in a line.
        queues: the queues it is about.
    """

    at_ms: float
    who: str
    what: str
    text: str
    queues: tuple[MessageQueue, ...] = ()

    at_us = Microseconds("at_ms")


class FiguresOf(Struct, Generic[_Time, _Count], frozen=True, rename="camel"):
    """The figures of a simulation, or over many.

    Attributes:
        convergence_ms: from the first event to the last change of an owner; null when the group did not converge, or
            in no trial. 0 when nothing changed.
        longest_gap_ms: the longest time that a queue had no owner.
        total_gap_ms: queue-time without owner: the sum over all queues.
        longest_overlap_ms: the longest time that a queue had duplicate owners.
        total_overlap_ms: the sum of it over all queues.
        longest_outage_ms: the longest time that a queue's broker could not be read.
        total_outage_ms: the sum of it over all queues.
        unread_ms: the longest time in which no consumer read a queue, outages included: the longest wait of a message.
            What is not over, as an outage may be, lasts until the simulation ends.
        redelivered: bound of the messages that are redelivered; null when a rate that it needs is unknown.
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

    settled_us = MicrosecondsIfKnown("convergence_ms")
    longest_none_us = Microseconds("longest_gap_ms")
    none_us = Microseconds("total_gap_ms")
    longest_several_us = Microseconds("longest_overlap_ms")
    several_us = Microseconds("total_overlap_ms")
    longest_outage_us = Microseconds("longest_outage_ms")
    total_outage_us = Microseconds("total_outage_ms")
    unread_us = Microseconds("unread_ms")
    again = Former("redelivered")
    queues_none = Former("queues_with_gap")
    queues_several = Former("queues_with_overlap")
    queues_outage = Former("queues_with_outage")
    queues_none_at_end = Former("queues_with_gap_at_end")
    queues_several_at_end = Former("queues_with_overlap_at_end")
    queues_outage_at_end = Former("queues_with_outage_at_end")


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
        end_us: where the time axis ends, in microseconds.
        timelines: one a queue, in the clients' order.
        steps: what happened in the order of time; empty unless asked for.
        figures: it in numbers.
        findings: what is odd about it.
        sdks: the client libraries of the consumers, of those that join too, and how well their rules are known; none
            in Python.
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
    sdks: tuple[SdkUse, ...] = ()

    @property
    def broadcasting(self) -> bool:
        """Each consumer reads every queue, so that several owners are as it should be."""
        return self.scenario.broadcasting


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

    median = Former("p50")
    worst = Former("max")
    worst_trial = Former("max_trial")


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

    settled = Former("converged")

    @property
    def spreads(self) -> Mapping[str, FigureSpread]:
        """The spreads of what is known by the former names of the figures, times in microseconds."""
        former = {name: given for name, given in _FORMER.items() if getattr(self.figures, given) is not None}
        return {name: _in_microseconds(name, getattr(self.figures, given)) for name, given in former.items()}


_FORMER = {
    **{former: alias.name for former, alias in vars(GroupFigures).items() if isinstance(alias, Former)},
    **{name: name for name in ("queues_unread_at_end", "taken", "rebalances")},
}
"""Former names of figures → their names."""


def _in_microseconds(name: str, spread: FigureSpread) -> FigureSpread:
    if not name.endswith("_us"):
        return spread
    return FigureSpread(round(spread.p50 * 1000), round(spread.p95 * 1000), round(spread.max * 1000), spread.max_trial)
