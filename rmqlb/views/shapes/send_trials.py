"""What many trials of `simulate-send` say."""

from __future__ import annotations

from typing import TypedDict


class EstimateData(TypedDict):
    """A mean over trials with its interval of 95 %.

    Attributes:
        mean: over the trials.
        low: lower end of the interval.
        high: upper end.
    """

    mean: float
    low: float
    high: float


class TrialsSpreadData(TypedDict):
    """How a time is spread over trials, in milliseconds.

    Attributes:
        meanMs: over the trials.
        p50Ms: half of them have no more.
        p95Ms: 95 of 100 have no more.
        maxMs: the most in any.
    """

    meanMs: float
    p50Ms: float
    p95Ms: float
    maxMs: float


class EstimateAndSpreadData(EstimateData, TrialsSpreadData):
    """A mean with its interval, and how single trials are spread.

    Attributes:
        mean: over the trials.
        low: lower end of the interval.
        high: upper end.
        meanMs: over the trials.
        p50Ms: half of them have no more.
        p95Ms: 95 of 100 have no more.
        maxMs: the most in any.
    """


class FailureTrialsData(TypedDict):
    """How the producers of many trials took a failure.

    Attributes:
        brokerName: who failed.
        began: in how many trials a message came to it.
        avoided: in how many of these the broker was left out.
        untilAvoidedMs: over these, how long after the begin that was; null when there are none.
    """

    brokerName: str
    began: int
    avoided: int
    untilAvoidedMs: TrialsSpreadData | None


class TrialsData(TypedDict):
    """What many trials of a scenario say.

    Attributes:
        trials: how many were run.
        wanted: how many were asked for.
        stoppedEarly: the wanted precision was reached before all of them.
        messages: sent in a trial.
        share: broker name → its share of the stored messages.
        attemptsPerMessage: requests for each message.
        lost: share of messages lost, as lostShare.
        lostShare: share of messages lost, 0 to 1.
        lostMessages: messages lost in a trial, a number.
        losingTrials: share of trials that lost a message.
        extraAttempts: requests of a trial beyond each message's first.
        failingMs: time of a trial in failed attempts.
        notStoreOk: messages of a trial stored with another status than SEND_OK.
        duplicated: messages of a trial stored more than once.
        retried: messages of a trial that needed more than one attempt.
        longestSendMs: the longest that one message took in a trial; null when no trial made an attempt.
        isolations: broker name → how often a trial isolated it.
        failures: how each failure was taken.
    """

    trials: int
    wanted: int
    stoppedEarly: bool
    messages: EstimateData
    share: dict[str, EstimateData]
    attemptsPerMessage: EstimateData
    lost: EstimateData
    lostShare: EstimateData
    lostMessages: EstimateData
    losingTrials: EstimateData
    extraAttempts: EstimateData
    failingMs: EstimateData
    notStoreOk: EstimateData
    duplicated: EstimateData
    retried: EstimateData
    longestSendMs: EstimateAndSpreadData | None
    isolations: dict[str, EstimateData]
    failures: list[FailureTrialsData]
