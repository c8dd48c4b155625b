"""`rmqlb/simulate-rebalance`: a group over time. All times count from the start, in milliseconds."""

from __future__ import annotations

from typing import TypedDict

from rmqlb.model.group_report import OwnerState, StartRule
from rmqlb.views.shapes.envelope import ConditionData
from rmqlb.views.shapes.group_scenario import EventData, GroupScenarioData, TopicQueueData


class GroupFiguresData(TypedDict):
    """A simulation in numbers.

    Attributes:
        settledMs: from the first event to the last change of an owner; null when the group did not settle.
        longestNoneMs: the longest time that a queue had no owner.
        noneMs: the sum of it over all queues.
        longestSeveralMs: the longest time that a queue had several owners.
        severalMs: the sum of it over all queues.
        longestOutageMs: the longest time that a queue's broker could not be read.
        totalOutageMs: the sum of it over all queues.
        unreadMs: the longest time in which nobody read a queue, outages included: so long a message waits at the most.
        again: bound of the messages that are delivered again; null when a rate that it needs is unknown.
        queuesNone: queues that had no owner at some time.
        queuesSeveral: queues that had several.
        queuesOutage: queues whose broker could not be read at some time.
        queuesNoneAtEnd: queues that have no owner when the simulation ends; their times above are not over then.
        queuesSeveralAtEnd: queues that have several then.
        queuesOutageAtEnd: queues whose broker cannot be read then.
        queuesUnreadAtEnd: queues that nobody reads then, for one reason or another.
        taken: how often a queue was taken.
        rebalances: how often members went through their queues.
    """

    settledMs: float | None
    longestNoneMs: float
    noneMs: float
    longestSeveralMs: float
    severalMs: float
    longestOutageMs: float
    totalOutageMs: float
    unreadMs: float
    again: int | None
    queuesNone: int
    queuesSeveral: int
    queuesOutage: int
    queuesNoneAtEnd: int
    queuesSeveralAtEnd: int
    queuesOutageAtEnd: int
    queuesUnreadAtEnd: int
    taken: int
    rebalances: int


class FigureSpreadData(TypedDict):
    """A figure over many trials.

    Attributes:
        median: half of the trials do not exceed it.
        p95: 95 of 100 do not exceed it.
        worst: the largest.
        worstTrial: the first trial that has it, from 0.
    """

    median: float
    p95: float
    worst: float
    worstTrial: int


class FigureSpreadsData(TypedDict):
    """Every figure over many trials; null is unknown.

    Attributes:
        settledMs: over the trials that settled.
        longestNoneMs: as of one simulation.
        noneMs: likewise.
        longestSeveralMs: likewise.
        severalMs: likewise.
        longestOutageMs: likewise.
        totalOutageMs: likewise.
        unreadMs: likewise.
        again: likewise.
        queuesNone: likewise.
        queuesSeveral: likewise.
        queuesOutage: likewise.
        queuesNoneAtEnd: likewise.
        queuesSeveralAtEnd: likewise.
        queuesOutageAtEnd: likewise.
        queuesUnreadAtEnd: likewise.
        taken: likewise.
        rebalances: likewise.
    """

    settledMs: FigureSpreadData | None
    longestNoneMs: FigureSpreadData | None
    noneMs: FigureSpreadData | None
    longestSeveralMs: FigureSpreadData | None
    severalMs: FigureSpreadData | None
    longestOutageMs: FigureSpreadData | None
    totalOutageMs: FigureSpreadData | None
    unreadMs: FigureSpreadData | None
    again: FigureSpreadData | None
    queuesNone: FigureSpreadData | None
    queuesSeveral: FigureSpreadData | None
    queuesOutage: FigureSpreadData | None
    queuesNoneAtEnd: FigureSpreadData | None
    queuesSeveralAtEnd: FigureSpreadData | None
    queuesOutageAtEnd: FigureSpreadData | None
    queuesUnreadAtEnd: FigureSpreadData | None
    taken: FigureSpreadData | None
    rebalances: FigureSpreadData | None


class GroupTrialsData(TypedDict):
    """Many trials of one scenario.

    Attributes:
        trials: how many.
        settled: how many of them settled.
        figures: figure by figure.
    """

    trials: int
    settled: int
    figures: FigureSpreadsData


class IntervalData(TypedDict):
    """A stretch in which a queue's owners do not change.

    Attributes:
        fromMs: its begin.
        toMs: its end, which belongs to the next one.
        state: gone (it is not there yet, or was removed), outage (its broker cannot be read), none, one or several
            (owners).
        owners: client ids; a process that shares its id with another is there twice.
    """

    fromMs: float
    toMs: float
    state: OwnerState
    owners: list[str]


class TakeoverData(TypedDict):
    """A member takes a queue.

    Attributes:
        clientId: who.
        atMs: when.
        readsFromMs: its first pull; null when it lost the queue before, or the simulation ended.
        unreadMs: for how long nobody had read the queue by then.
        startRule: which rule says where it starts.
        startOffset: the next message that it reads; null when it is unknown.
        startReason: why, in a line.
        againMs: how far what was stored is behind what was delivered, at the most, as a length of time.
        again: the same in messages; null when the rate is unknown.
    """

    clientId: str
    atMs: float
    readsFromMs: float | None
    unreadMs: float | None
    startRule: StartRule
    startOffset: int | None
    startReason: str
    againMs: float
    again: int | None


class QueueTimelineData(TopicQueueData):
    """A queue over the whole simulation.

    Attributes:
        topic: its topic.
        brokerName: its broker.
        queueId: its number there, from 0.
        noneMs: in all without owner.
        longestNoneMs: the longest stretch of it.
        severalMs: in all with several owners.
        longestSeveralMs: the longest stretch of it.
        outageMs: in all with a broker that cannot be read.
        longestOutageMs: the longest stretch of it.
        unreadMs: the longest time in which nobody reads it, outages included.
        again: bound of the messages delivered again; null when the rate is unknown.
        intervals: from the start to the end, without gap or overlap.
        takeovers: in the order of time.
    """

    noneMs: float
    longestNoneMs: float
    severalMs: float
    longestSeveralMs: float
    outageMs: float
    longestOutageMs: float
    unreadMs: float
    again: int | None
    intervals: list[IntervalData]
    takeovers: list[TakeoverData]


class GroupConsumerData(TypedDict):
    """What a client id has of the simulation.

    Attributes:
        clientId: the id.
        queuesAtStart: queues that it owns at the beginning.
        queuesAtEnd: queues that it owns at the end.
        taken: how often it took a queue.
    """

    clientId: str
    queuesAtStart: int
    queuesAtEnd: int
    taken: int


class StepData(TypedDict):
    """Something that happened, and why.

    Attributes:
        atMs: when.
        who: client id, `broker NAME` or `NameServer`.
        what: the kind, in a word.
        text: in a line.
        queues: that it is about.
    """

    atMs: float
    who: str
    what: str
    text: str
    queues: list[TopicQueueData]


class GroupData(TypedDict):
    """A consumer group over time.

    Attributes:
        group: the group; null when the source names none.
        strategy: at the beginning, by RocketMQ's name.
        scenario: what was simulated.
        events: in the order of time.
        trial: which of the seed's trials this is, from 0.
        endMs: where the time axis ends.
        figures: in numbers.
        queues: queue by queue, in the clients' order.
        consumers: client id by client id.
        steps: what happened; null without --explain.
        trials: what many trials say; null without --trials.
        conditions: what --fail-on asked for.
    """

    group: str | None
    strategy: str
    scenario: GroupScenarioData
    events: list[EventData]
    trial: int
    endMs: float
    figures: GroupFiguresData
    queues: list[QueueTimelineData]
    consumers: list[GroupConsumerData]
    steps: list[StepData] | None
    trials: GroupTrialsData | None
    conditions: list[ConditionData]
