"""Many trials of one scenario: random starts of the round robin, latencies and resets, and what they add up to.

Rules of this file:
- A trial is what `simulate_send` makes of it.
- Whether to go on is asked between blocks only, whose lengths are always the same. Sums are made in portions of a
  fixed length, so that they do not depend on blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import fsum
from typing import Annotated

from msgspec import Meta
from msgspec.structs import asdict

from rmqlb.engine.arguments import require
from rmqlb.engine.send.estimates import Mean, quantile, wilson
from rmqlb.engine.send.simulate import check
from rmqlb.engine.send.trial_runner import TrialCounts, TrialRunner
from rmqlb.errors import UsageError
from rmqlb.model.java import sort_key
from rmqlb.model.limits import MOST_SEND_TRIALS
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import SendScenario
from rmqlb.model.send_trials import Estimate, FailureTrials, LongestSend, TimeSpread, TrialsReport

FIRST_BLOCK = 256
LARGEST_BLOCK = 4096


def simulate_trials(
    route: TopicRouteData,
    scenario: SendScenario,
    trials: int,
    *,
    precision: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> TrialsReport:
    """What a RocketMQ producer does with its messages on average, and how much that varies.

    Trial number t, from 0, is what `simulate_send(route, scenario, trial=t)` simulates. Equal arguments give equal
    reports.

    Args:
        route: the topic's route while nothing fails.
        scenario: what is simulated.
        trials: how many times, at least 2.
        precision: stop when 95 % confidence intervals are no wider than this to both sides: of each broker's share of
            stored messages, of the attempts a message, of the share of messages lost; 0.001 is a tenth of a per cent.
        progress: is called now and then with the number of trials run so far.

    Raises:
        DataError: the producer's queue list is empty, or the route's order config is malformed.
        UsageError: the scenario contradicts itself, there are fewer than 2 trials, or the precision is not positive.
    """
    check(scenario)
    require(trials, Annotated[int, Meta(ge=2, le=MOST_SEND_TRIALS)], "trials")
    require(precision, float | None, "precision")
    if precision is not None and not precision > 0:
        raise UsageError(f"precision {precision:g} is not positive")
    runner = TrialRunner(route, scenario)
    summary = _Summary(runner)
    for block in [range(trials)] if precision is None else blocks(trials):
        for trial in block:
            summary.add(runner.run(trial))
            if progress is not None:
                progress(summary.trials)
        if precision is not None and block.start and summary.half_width() <= precision:
            break
    return summary.report(route.topic, trials)


def blocks(trials: int) -> Iterator[range]:
    """Numbers of trials in growing blocks; between two of them a simulation may stop."""
    start, size = 0, FIRST_BLOCK
    while start < trials:
        stop = min(start + size, trials)
        yield range(start, stop)
        start, size = stop, min(2 * size, LARGEST_BLOCK)


_COUNTED = ("messages", "retries", "not_store_ok", "duplicated", "retried")


class _Summary:
    """What the trials so far add up to."""

    def __init__(self, runner: TrialRunner) -> None:
        self._runner = runner
        names, failures = runner.broker_names, runner.scenario.failures
        self.trials = 0
        self._waiting: list[TrialCounts] = []
        self._losing = 0
        self._counted = {name: Mean() for name in _COUNTED}
        self._failing, self._longest, self._attempts, self._lost_messages = Mean(), Mean(), Mean(), Mean()
        self._lost = Mean(high=1.0)
        self._shares = [Mean(high=1.0) for _ in names]
        self._isolations, self._picks, self._attempts_at, self._failed_at = ([Mean() for _ in names] for _ in range(4))
        self._longest_counts: Counter[int] = Counter()
        self._began = [0] * len(failures)
        self._until: list[Counter[int]] = [Counter() for _ in failures]

    def add(self, counts: TrialCounts) -> None:
        self.trials += 1
        self._waiting.append(counts)
        if len(self._waiting) == FIRST_BLOCK:
            self._add(self._waiting)
            self._waiting = []

    def _add(self, counts: list[TrialCounts]) -> None:
        per_ms = self._runner.per_ms
        self._losing += sum(trial.lost > 0 for trial in counts)
        for name, mean in self._counted.items():
            mean.add([getattr(trial, name) for trial in counts])
        self._failing.add([trial.failing / per_ms for trial in counts])
        longest = [trial.longest for trial in counts if trial.attempts]
        self._longest.add([ticks / per_ms for ticks in longest])
        self._longest_counts.update(longest)
        self._attempts.add([trial.attempts / (trial.messages or 1) for trial in counts])
        self._lost.add([trial.lost / (trial.messages or 1) for trial in counts])
        self._lost_messages.add([trial.lost for trial in counts])
        stored = [(trial.stored_by_broker, total) for trial in counts if (total := sum(trial.stored_by_broker))]
        for broker, share in enumerate(self._shares):
            share.add([by_broker[broker] / total for by_broker, total in stored])
            failed = [trial.failed_by_broker[broker] for trial in counts]
            self._failed_at[broker].add(failed)
            self._attempts_at[broker].add([f + t.stored_by_broker[broker] for f, t in zip(failed, counts, strict=True)])
            self._picks[broker].add([trial.picks_by_broker[broker] for trial in counts])
            self._isolations[broker].add([trial.isolations[broker] for trial in counts])
        for failure, until in enumerate(self._until):
            self._began[failure] += sum(trial.began[failure] >= 0 for trial in counts)
            until.update([t.isolated_at[failure] - t.began[failure] for t in counts if t.isolated_at[failure] >= 0])

    def half_width(self) -> float:
        """Of the widest interval that a wanted precision is about; all but the last block end with a portion."""
        shares = [share.estimate() for share in self._shares if share.count]
        return max((each.high - each.low) / 2 for each in (*shares, self._attempts.estimate(), self._lost_estimate()))

    def _lost_estimate(self) -> Estimate:
        if not self._losing:
            return Estimate(0.0, 0.0, min(3 / self.trials, 1.0))
        return self._lost.estimate()

    def _lost_messages_estimate(self) -> Estimate:
        messages = self._counted["messages"].estimate()
        if not self._losing:
            return Estimate(0.0, 0.0, self._lost_estimate().high * messages.mean)
        lost = self._lost_messages.estimate()
        return Estimate(lost.mean, lost.low, min(lost.high, messages.high))

    def report(self, topic: str, wanted: int) -> TrialsReport:
        self._add(self._waiting)
        runner, began_until = self._runner, zip(self._began, self._until, strict=True)
        return TrialsReport(
            topic=topic,
            scenario=runner.scenario,
            profile=runner.profile.name,
            trials=self.trials,
            wanted=wanted,
            stopped_early=self.trials < wanted,
            shares=self._by_broker(self._shares),
            attempts=self._attempts.estimate(),
            lost_messages=self._lost_messages_estimate(),
            lost_share=self._lost_estimate(),
            losing_trials=wilson(self._losing, self.trials),
            failing_ms=self._failing.estimate(),
            longest_send_ms=self._longest_send(),
            isolations=self._by_broker(self._isolations),
            picks=self._by_broker(self._picks),
            attempts_at=self._by_broker(self._attempts_at),
            failed_at=self._by_broker(self._failed_at),
            failures=tuple(
                FailureTrials(
                    broker_name=failure.broker_name,
                    began=began,
                    isolated=until.total(),
                    until_isolated=self._spread(until) if until else None,
                    failure=failure,
                )
                for failure, (began, until) in zip(runner.scenario.failures, began_until, strict=True)
            ),
            **{name: mean.estimate() for name, mean in self._counted.items()},
        )

    def _by_broker(self, means: Sequence[Mean]) -> dict[str, Estimate]:
        named = sorted(zip(self._runner.broker_names, means, strict=True), key=lambda each: sort_key(each[0]))
        return {name: mean.estimate() for name, mean in named if mean.count}

    def _longest_send(self) -> LongestSend | None:
        if not self._longest_counts:
            return None
        spread, mean = self._spread(self._longest_counts), self._longest.estimate()
        return LongestSend(**asdict(mean), **asdict(spread))

    def _spread(self, counts: Counter[int]) -> TimeSpread:
        per_ms = self._runner.per_ms
        return TimeSpread(
            mean_ms=fsum(value * times for value, times in counts.items()) / counts.total() / per_ms,
            p50_ms=quantile(counts, 0.5) / per_ms,
            p95_ms=quantile(counts, 0.95) / per_ms,
            max_ms=max(counts) / per_ms,
        )
