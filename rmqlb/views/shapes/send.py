"""`rmqlb/send`; the shapes of attempts and lost messages are those of `model.send_report` themselves."""

from __future__ import annotations

from typing import TypedDict

from rmqlb.model.send_report import Attempt, LostMessage
from rmqlb.views.shapes.envelope import ConditionData
from rmqlb.views.shapes.send_scenario import SendScenarioData
from rmqlb.views.shapes.send_trials import TrialsData


class SendCountsData(TypedDict):
    """What a queue or a broker saw.

    Attributes:
        picks: how often the producer chose it.
        attempts: picks that led to a request; one after the deadline does not.
        failed: attempts that failed.
        stored: messages stored, with whatever status; one that a retry stored again counts twice.
        share: of all stored messages; null when none was.
    """

    picks: int
    attempts: int
    failed: int
    stored: int
    share: float | None


class SendQueueData(SendCountsData):
    """What a queue saw.

    Attributes:
        picks: how often the producer chose it.
        attempts: picks that led to a request; one after the deadline does not.
        failed: attempts that failed.
        stored: messages stored, with whatever status; one that a retry stored again counts twice.
        share: of all stored messages; null when none was.
        brokerName: its broker.
        queueId: its number there, from 0.
    """

    brokerName: str
    queueId: int


class SendBrokerData(SendCountsData):
    """What a broker saw.

    Attributes:
        picks: how often the producer chose it.
        attempts: picks that led to a request; one after the deadline does not.
        failed: attempts that failed.
        stored: messages stored, with whatever status; one that a retry stored again counts twice.
        share: of all stored messages; null when none was.
        brokerName: its name.
        queues: how many of its queues the producer saw at the start.
        isolations: how often a slow or failed attempt isolated it.
        avoidedMs: for how long it was isolated or not in the producer's list.
    """

    brokerName: str
    queues: int
    isolations: int
    avoidedMs: float


class SendTotalsData(TypedDict):
    """The simulation in numbers.

    Attributes:
        messages: that were sent.
        stored: with whatever status.
        notStoreOk: of these, with another status than SEND_OK.
        duplicated: of these, stored more than once by retries, as far as the producer knows.
        lost: not stored after all attempts, as far as the producer knows.
        lostBy: reason → messages lost by it.
        retried: messages that needed more than one attempt.
        attempts: requests.
        failedAttempts: of these, failed.
        extraAttempts: requests beyond each message's first.
        failingMs: time in failed attempts, over all threads.
        longestSendMs: the longest that one message with an attempt took; null when there was no attempt.
        lastedMs: when the last message was done.
        untilAvoidedMs: the longest time until a failed broker was avoided; null when none was.
        untilUsedAgainMs: the longest time until one that was back was used again; null when none was.
    """

    messages: int
    stored: int
    notStoreOk: int
    duplicated: int
    lost: int
    lostBy: dict[str, int]
    retried: int
    attempts: int
    failedAttempts: int
    extraAttempts: int
    failingMs: float
    longestSendMs: float | None
    lastedMs: float
    untilAvoidedMs: float | None
    untilUsedAgainMs: float | None


class ExceptionData(TypedDict):
    """Messages that ended with exceptions of one kind.

    Attributes:
        messages: how many.
        exceptionClass: simple name of the class that the application gets, thrown or in its callback.
        responseCode: of an MQClientException or MQBrokerException; null of other classes.
        cause: simple name of the class of its cause; null without.
        brokersSent: the brokers of the attempts, in order; null for all kinds together after the first hundred.
        firstMessage: number of the first of these messages.
        text: that message's text; other ones may name other times; null where it holds what only a broker knows.
    """

    messages: int
    exceptionClass: str
    responseCode: int | None
    cause: str | None
    brokersSent: list[str] | None
    firstMessage: int
    text: str | None


class FailureData(TypedDict):
    """A failure, and how the producer took it; times count from the start, in milliseconds.

    Attributes:
        brokerName: who failed.
        kind: refused, timeout, slow, read-only, status or code.
        name: RocketMQ's name of a store status or code, else the kind.
        code: the response code, where it is one.
        nameserverNoticesMs: after which the NameServer drops the broker; null when it never does.
        beganMs: when it began; null when the simulation did not come to it.
        endedMs: when it ended; null when it did not.
        failed: attempts that failed by it.
        firstFailedMs: when the first of them began.
        avoidedMs: when the broker was first isolated or gone from the producer's list.
        avoidedAfterMs: how long after the begin that was.
        avoidedBy: isolation or route.
        usedAgainMs: when the first attempt after the end succeeded.
        usedAgainAfterMs: how long after the end that was.
    """

    brokerName: str
    kind: str
    name: str
    code: int | None
    nameserverNoticesMs: float | None
    beganMs: float | None
    endedMs: float | None
    failed: int
    firstFailedMs: float | None
    avoidedMs: float | None
    avoidedAfterMs: float | None
    avoidedBy: str | None
    usedAgainMs: float | None
    usedAgainAfterMs: float | None


class SliceBrokerData(TypedDict):
    """What a broker saw in a slice of time.

    Attributes:
        brokerName: its name.
        attempts: requests that began in it.
        failed: of these, failed.
        avoidedMs: for how long it was avoided.
    """

    brokerName: str
    attempts: int
    failed: int
    avoidedMs: float


class SliceData(TypedDict):
    """A slice of the time line.

    Attributes:
        fromMs: its begin, in milliseconds from the start.
        toMs: its end, which belongs to the next one.
        lost: messages lost in it.
        brokers: broker by broker.
    """

    fromMs: float
    toMs: float
    lost: int
    brokers: list[SliceBrokerData]


class HotKeyData(TypedDict):
    """A key and its queue.

    Attributes:
        key: the key.
        messages: with it.
        brokerName: the broker of its queue; null when the selector throws, or returns none.
        queueId: its queue's number there, likewise.
    """

    key: str
    messages: int
    brokerName: str | None
    queueId: int | None


class KeysData(TypedDict):
    """How keys lie on queues.

    Attributes:
        distinct: different keys.
        messages: keys in all.
        hottest: the most frequent ones.
    """

    distinct: int
    messages: int
    hottest: list[HotKeyData]


class BriefSendData(TypedDict):
    """The same scenario with another setting, in short.

    Attributes:
        clientVersion: version of the client.
        profile: the stretch of versions whose rules were followed.
        latencyFault: sendLatencyFaultEnable.
        totals: in numbers.
        brokers: broker by broker.
        failures: how each failure was taken.
    """

    clientVersion: str
    profile: str
    latencyFault: bool
    totals: SendTotalsData
    brokers: list[SendBrokerData]
    failures: list[FailureData]


class SendData(TypedDict):
    """Where a producer's messages go while brokers fail.

    Attributes:
        topic: to which they are sent.
        scenario: what was simulated.
        attempts: every attempt; null for more than 1,000 messages without --trace.
        lostMessages: every lost message and what the application is told of it; null where attempts is.
        exceptions: what the application gets of lost messages, the most frequent first.
        queues: queue by queue, in the producer's order.
        brokers: broker by broker.
        totals: in numbers.
        failures: how each failure was taken.
        timeline: slice by slice.
        keys: how keys lie on queues; null without --keys.
        comparison: latency fault off and on; empty without --compare.
        clients: other client versions; empty without --compare-clients.
        trials: what many trials say; null without --trials.
        conditions: what --fail-on asked for.
    """

    topic: str
    scenario: SendScenarioData
    attempts: list[Attempt] | None
    lostMessages: list[LostMessage] | None
    exceptions: list[ExceptionData]
    queues: list[SendQueueData]
    brokers: list[SendBrokerData]
    totals: SendTotalsData
    failures: list[FailureData]
    timeline: list[SliceData]
    keys: KeysData | None
    comparison: list[BriefSendData]
    clients: list[BriefSendData]
    trials: TrialsData | None
    conditions: list[ConditionData]
