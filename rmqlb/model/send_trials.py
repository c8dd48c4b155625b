"""What came of many trials of simulated sends; times are milliseconds. Rules as in `send_report`."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

from msgspec import Struct, field

from rmqlb.model.send_scenario import Failure, SendScenario


class Estimate(Struct, frozen=True):
    """A mean over trials with its interval of 95 %.

    Attributes:
        mean: over the trials.
        low: lower end of the interval.
        high: upper end.
    """

    mean: float
    low: float
    high: float


class TimeSpread(Struct, frozen=True, rename="camel"):
    """How a time is spread over trials, in milliseconds.

    Attributes:
        mean_ms: over the trials.
        p50_ms: half of them have no more.
        p95_ms: 95 of 100 have no more.
        max_ms: the most in any.
    """

    mean_ms: float
    p50_ms: float
    p95_ms: float
    max_ms: float


class LongestSend(Estimate, frozen=True, rename="camel"):
    """The longest that one message takes in a trial: its mean with the interval, and how single trials are spread.

    Attributes:
        mean_ms: over the trials.
        p50_ms: half of them have no more.
        p95_ms: 95 of 100 have no more.
        max_ms: the most in any.
    """

    mean_ms: float
    p50_ms: float
    p95_ms: float
    max_ms: float


class FailureInTrials(Struct, frozen=True, rename="camel"):
    """How the producers of many trials took a failure.

    Attributes:
        broker_name: who failed.
        began: in how many trials a message came to it.
        isolated: in how many of these the broker was isolated or left the producer's list while it lasted.
        until_isolated: over these, how long after the begin that was; null when there are none.
    """

    broker_name: str
    began: int
    isolated: int
    until_isolated: TimeSpread | None = field(name="untilIsolatedMs")

    avoided = property(attrgetter("isolated"))
    until_avoided = property(attrgetter("until_isolated"))


class FailureTrials(FailureInTrials, frozen=True, kw_only=True):
    """How the producers of many trials took a failure, and what was asked."""

    failure: Failure


class SendTrials(Struct, frozen=True, rename="camel"):
    """What many trials of a scenario say.

    An interval is that of the mean over trials, by Student's t. What a trial cannot say is left out of a mean: a trial
    that stores nothing has no shares.

    Attributes:
        trials: how many were run.
        wanted: how many were asked for.
        stopped_early: the wanted precision was reached before all of them.
        messages: sent in a trial.
        shares: broker name → its share of the stored messages; empty when no trial stored any.
        attempts: requests for each message.
        lost_messages: messages of a trial that no attempt stored. When no trial lost any, the upper end is that of
            lostShare, in messages.
        lost_share: share of messages lost, 0 to 1. When no trial lost any, the upper end is 3 / trials (the rule of
            three: were a trial more likely than that to lose a message, one would have, in 95 of 100 cases).
        losing_trials: share of trials that lost a message, with Wilson's interval.
        retries: attempts of a trial beyond each message's first.
        failing_ms: time of a trial in failed attempts, over all threads.
        not_store_ok: messages of a trial stored with another status than SEND_OK.
        duplicated: messages of a trial stored more than once.
        retried: messages of a trial that needed more than one attempt.
        longest_send_ms: the longest that one message took in a trial; null when no trial made an attempt.
        isolations: broker name → how often a trial isolated it.
        failures: how each failure was taken, in the scenario's order.
    """

    trials: int
    wanted: int
    stopped_early: bool
    messages: Estimate
    shares: Mapping[str, Estimate] = field(name="share")
    attempts: Estimate = field(name="attemptsPerMessage")
    lost_messages: Estimate = field(name="lost")
    lost_share: Estimate
    losing_trials: Estimate
    retries: Estimate
    failing_ms: Estimate
    not_store_ok: Estimate
    duplicated: Estimate
    retried: Estimate
    longest_send_ms: LongestSend | None
    isolations: Mapping[str, Estimate]
    failures: tuple[FailureInTrials, ...]


class TrialsReport(SendTrials, frozen=True, kw_only=True):
    """What came of many trials of one scenario.

    Attributes:
        topic: to which topic.
        scenario: what was simulated.
        profile: the client's rules by name.
        picks: broker name → how often the producer chose it in a trial.
        attempts_at: broker name → of these, those that led to a request.
        failed_at: broker name → of these requests, failed.
        failures: how each failure was taken, in the scenario's order.
    """

    topic: str
    scenario: SendScenario
    profile: str
    picks: Mapping[str, Estimate]
    attempts_at: Mapping[str, Estimate]
    failed_at: Mapping[str, Estimate]
    failures: tuple[FailureTrials, ...]

    lost = property(attrgetter("lost_share"))
    extra_attempts = property(attrgetter("retries"))
    longest_send = property(attrgetter("longest_send_ms"))
