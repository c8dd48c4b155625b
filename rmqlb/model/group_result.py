"""The result of `simulate-rebalance`: groups over time. All times count from the start, in milliseconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import Struct, field

from rmqlb.model.condition import TriedCondition
from rmqlb.model.finding import ERROR, WARNING
from rmqlb.model.group import ConsumerType
from rmqlb.model.group_report import GroupFigures, GroupReport, GroupTrials, OfQueue, QueueTimeline, Step
from rmqlb.model.group_scenario import EventKind
from rmqlb.model.result import Result
from rmqlb.model.sdk_use import SdkUse
from rmqlb.model.simulate_send import SendReport, SendResult, printed_part
from rmqlb.model.times import milliseconds, milliseconds_if_known
from rmqlb.model.unknown import sum_if_known

_SUMMED = ("queues_with_gap", "queues_with_overlap", "queues_with_outage", "queues_unread_at_end")
_LONGEST = ("longest_gap_ms", "longest_overlap_ms", "longest_outage_ms", "unread_ms")
_SENT = ("messages", "lost", "retried")
Shape = TypeVar("Shape", bound=Struct)


class QueueRate(OfQueue, frozen=True, rename="camel"):
    """How much comes to a queue.

    Attributes:
        rate_per_second: messages per second.
    """

    rate_per_second: float


class TimersInMs(Struct, frozen=True, rename="camel"):
    """Every clock of clients, brokers and NameServers; null is what the client version does.

    Attributes:
        rebalance_wait_ms: the longest wait of a client between two looks at its queues.
        rebalance_min_ms: the shortest.
        route_poll_ms: how often a client asks for routes.
        heartbeat_ms: how often it sends heartbeats.
        persist_ms: how often it stores offsets.
        pull_delay_ms: the time from taking a queue to its first pull.
        pull_idle_ms: a queue without a pull for that time is given up and taken again.
        pull_hold_ms: for how long a broker holds a pull that finds nothing.
        lock_renewal_ms: how often orderly consumers renew the broker's locks.
        lock_life_ms: a lock that is not renewed for that time goes to another client.
        lock_retry_ms: a client that got no lock rebalances again after it.
        unlock_delay_ms: delayed unlock, and giving a queue up by force.
        release_wait_ms: how long a client waits for its listener before it gives a queue up.
        channel_expiry_ms: a broker forgets a client without heartbeats after it.
        broker_scan_ms: how often it looks for such clients.
        socket_idle_ms: a broker closes a silent connection after it.
        notify_batch_ms: for how long a broker collects notices of changed consumers.
        rpc_timeout_ms: a client gives a silent broker up after it.
        nameserver_expiry_ms: a NameServer drops a broker without registration after it.
        nameserver_scan_ms: how often it looks for such brokers.
        registration_ms: how often a broker registers.
        start_ms: from the making of a client's instance until it turns to the brokers, at the least.
        connect_ms: what the first request on a new connection takes longer.
        close_ms: until a broker finds the connection of a killed process closed, at the most.
    """

    rebalance_wait_ms: float | None
    rebalance_min_ms: float | None
    route_poll_ms: float | None
    heartbeat_ms: float | None
    persist_ms: float | None
    pull_delay_ms: float | None
    pull_idle_ms: float | None
    pull_hold_ms: float | None
    lock_renewal_ms: float | None
    lock_life_ms: float | None
    lock_retry_ms: float | None
    unlock_delay_ms: float | None
    release_wait_ms: float | None
    channel_expiry_ms: float | None
    broker_scan_ms: float | None
    socket_idle_ms: float | None
    notify_batch_ms: float | None
    rpc_timeout_ms: float | None
    nameserver_expiry_ms: float | None
    nameserver_scan_ms: float | None
    registration_ms: float | None
    start_ms: float | None
    connect_ms: float | None
    close_ms: float | None


class SimulatedGroup(Struct, frozen=True, rename="camel"):
    """What was simulated.

    Attributes:
        client_version: version of the client.
        profile: the stretch of versions whose rules were followed.
        orderly: the listener is orderly, so that queues are locked at the broker.
        broadcasting: BROADCASTING instead of CLUSTERING.
        consume_from_where: where a queue without an offset is begun.
        consumer_type: which of RocketMQ's kinds the consumers are.
        consumer_types: client id → which it is, of those that are known one by one.
        timers: every clock.
        latency_ms: a request's way to a server and back.
        consume_ms: how long the listener takes for a message.
        rates: queues whose rate is known.
        until_ms: where the simulation ends; null when the group has converged.
        patience_ms: how long after the last event it ends at the latest.
        all_new: the consumers start with the simulation.
        seed: of everything random.
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
        subject: client id, broker or topic that it is about.
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
    strategy: str | None
    broker_name: str | None
    read_queues: int | None = field(name="readQueueNums")
    write_queues: int | None = field(name="writeQueueNums")
    with_slaves: bool
    text: str


class ConsumerPart(Struct, frozen=True, rename="camel"):
    """What a client id has of the simulation.

    Attributes:
        client_id: the id.
        queues_at_start: queues that it owns at the beginning.
        queues_at_end: queues that it owns at the end.
        taken: how often it took a queue.
    """

    client_id: str
    queues_at_start: int
    queues_at_end: int
    taken: int


class GroupResult(Result, frozen=True):
    """A consumer group over time.

    Attributes:
        group: the group; null when the source names none.
        strategy: at the beginning, by RocketMQ's name.
        scenario: what was simulated.
        events: in the order of time.
        trial: which of the seed's trials this is, from 0.
        end_ms: where the time axis ends.
        figures: in numbers.
        queues: queue by queue, in the clients' order.
        consumers: client id by client id.
        steps: what happened; null without --explain.
        trials: what many trials say; null without --trials.
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
    steps: tuple[Step, ...] | None
    trials: GroupTrials | None
    conditions: tuple[TriedCondition, ...]
    sdks: tuple[SdkUse, ...] = ()


class SimulationsSummary(Struct, frozen=True, rename="camel"):
    """What happens to all groups, and to producers.

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
        redelivered: bound of the messages that are redelivered; null when a rate that it needs is unknown.
        convergence_ms: from the first event until the last group has converged; null when one has not.
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


class SimulationOfGroups(Result, frozen=True):
    """Several consumer groups over time, and producers while brokers fail.

    Attributes:
        groups: each group's simulation, as rmqlb/simulate-rebalance has it.
        producers: a producer of each topic that a failing broker has queues of, as rmqlb/send has it.
        summary: of all of them.
    """

    groups: tuple[GroupResult, ...]
    producers: tuple[SendResult, ...]
    summary: SimulationsSummary


def group_result(
    report: GroupReport, trials: GroupTrials | None, conditions: Sequence[TriedCondition], *, explain: bool
) -> GroupResult:
    """The whole result."""
    return GroupResult(
        group=report.group,
        strategy=report.strategy,
        scenario=_scenario(report),
        events=tuple(in_ms(each, SimulatedEvent, strategy=each.strategy_name) for each in report.events),
        trial=report.trial,
        end_ms=milliseconds(report.end_us),
        figures=report.figures,
        queues=report.timelines,
        consumers=tuple(consumer_parts(report)),
        steps=report.steps if explain else None,
        trials=trials,
        conditions=tuple(conditions),
        sdks=report.sdks,
    )


def simulation_of_groups(
    groups: Sequence[GroupResult], simulations: Sequence[GroupReport], producers: Sequence[SendReport]
) -> SimulationOfGroups:
    """The result of several groups, whose simulations are these."""
    sent = tuple(printed_part(each, SendResult) for each in producers)
    return SimulationOfGroups(tuple(groups), sent, _summary(simulations, producers))


def gravity(report: GroupReport, trials: GroupTrials | None = None) -> str:
    """How grave a simulation is: error of what stays bad, in any trial, warning of what passes, else in order."""
    f = report.figures
    overlaps = (0, 0) if report.scenario.broadcasting else (f.queues_with_overlap_at_end, f.queues_with_overlap)
    if trials is not None and trials.converged < trials.trials:
        return ERROR
    if f.convergence_ms is None or f.queues_unread_at_end or f.queues_with_gap_at_end or overlaps[0]:
        return ERROR
    return WARNING if f.queues_with_outage or f.queues_with_gap or overlaps[1] else "inOrder"


def misassigned_throughout(report: GroupReport) -> int:
    """Queues without an owner, or with duplicate owners, when the simulation begins and when it ends."""
    bad = {"unassigned"} if report.scenario.broadcasting else {"unassigned", "duplicate-owners"}
    ends = [(one.intervals[0].state, one.intervals[-1].state) for one in report.timelines if one.intervals]
    return sum(first in bad and last in bad for first, last in ends)


def consumer_parts(report: GroupReport) -> list[ConsumerPart]:
    """What each member has of the simulation, in the clients' order."""
    owned = [(one.intervals[0].owners, one.intervals[-1].owners) for one in report.timelines if one.intervals]
    at_start = Counter(owner for owners, _ in owned for owner in set(owners))
    at_end = Counter(owner for _, owners in owned for owner in set(owners))
    taken = Counter(takeover.client_id for one in report.timelines for takeover in one.takeovers)
    return [ConsumerPart(each, at_start[each], at_end[each], taken[each]) for each in dict.fromkeys(report.members)]


def in_ms(value: Struct, shape: type[Shape], **more: object) -> Shape:
    """A Struct as another one, whose `x_ms` is the first one's `x_us`; and what the first one does not have."""
    fields = {
        name: milliseconds_if_known(getattr(value, f"{name[:-3]}_us")) if name.endswith("_ms") else getattr(value, name)
        for name in shape.__struct_fields__
        if name not in more
    }
    return shape(**fields, **more)


def _scenario(report: GroupReport) -> SimulatedGroup:
    s = report.scenario
    rates = sorted(s.rates.items())
    return in_ms(
        s,
        SimulatedGroup,
        profile=report.profile,
        consume_from_where=s.consume_from,
        timers=in_ms(s.timers, TimersInMs),
        rates=tuple(QueueRate(queue.topic, queue.broker_name, queue.queue_id, rate) for queue, rate in rates),
    )


def _summary(simulations: Sequence[GroupReport], producers: Sequence[SendReport]) -> SimulationsSummary:
    figures = [report.figures for report in simulations]
    converged = [each.convergence_ms for each in figures]
    sends = [report.totals for report in producers]
    return SimulationsSummary(
        groups=len(simulations),
        groups_affected=sum(gravity(report) != "inOrder" for report in simulations),
        queues=sum(len(report.timelines) for report in simulations),
        queues_misassigned_throughout=sum(map(misassigned_throughout, simulations)),
        redelivered=sum_if_known(each.redelivered for each in figures),
        convergence_ms=None if None in converged else max(each or 0 for each in converged),
        topics=len(sends),
        longest_send_ms=max((each.longest_send_ms or 0 for each in sends), default=None),
        **{name: sum(getattr(each, name) for each in figures) for name in _SUMMED},
        **{name: max(getattr(each, name) for each in figures) for name in _LONGEST},
        **{name: sum(getattr(each, name) for each in sends) for name in _SENT},
    )
