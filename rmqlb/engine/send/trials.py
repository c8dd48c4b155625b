"""Many trials of one scenario: random starts of the round robin, latencies and resets, and what they add up to.

Rules of this file:
- A trial is what `simulate_send` makes of it. The kernel runs them together where it covers the scenario; the engine
  runs the others one by one, and the trials that the kernel flags.
- numpy stays in the kernels: what comes from there is turned into lists at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

from rmqlb.engine.send.estimates import Mean, quantile, wilson
from rmqlb.engine.send.lanes import lanes_of
from rmqlb.engine.send.profile import ClientProfile
from rmqlb.engine.send.run import Run
from rmqlb.engine.send.simulate import check, no_queues, play, rules
from rmqlb.engine.send.steady import Steady
from rmqlb.engine.send.tally import STORED, Total
from rmqlb.errors import UsageError
from rmqlb.model.java import sort_key
from rmqlb.model.route import TopicRouteData
from rmqlb.model.sending import Estimate, FailureTrials, SendScenario, Spread, TrialsReport

if TYPE_CHECKING:
    from rmqlb.kernels.send import SendKernel

FIRST_BLOCK = 256
LARGEST_BLOCK = 4096


class TrialCounts(NamedTuple):
    """What the report needs of one trial; times are ticks.

    Attributes:
        messages: sent.
        attempts: requests.
        lost: messages lost.
        extra_attempts: beyond each message's first.
        failing: time in failed attempts.
        longest: of the longest send.
        stored: per broker, messages stored there.
        isolations: per broker.
        began: per failure, when it began, or −1.
        avoided_at: per failure, when its broker was first avoided while it lasted, or −1.
    """

    messages: int
    attempts: int
    lost: int
    extra_attempts: int
    failing: int
    longest: int
    stored: Sequence[int]
    isolations: Sequence[int]
    began: Sequence[int]
    avoided_at: Sequence[int]


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
    if trials < 2:
        raise UsageError(f"{trials} trials: at least 2 are needed to tell how much they vary")
    if precision is not None and not precision > 0:
        raise UsageError(f"precision {precision:g} is not positive")
    runner = TrialRunner(route, scenario)
    summary = _Summary(runner)
    for block in blocks(trials):
        for counts in runner.run(block):
            summary.add(counts)
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


class TrialRunner:
    """A scenario, ready for any of its trials.

    Args:
        route: the topic's route while nothing fails.
        scenario: what is simulated, `check`ed.

    Attributes:
        scenario: what is simulated.
        profile: the client's rules, overrides applied.
        per_ms: ticks in a millisecond.
        broker_names: the order of brokers in counts.

    Raises:
        DataError: the producer's queue list is empty, or the route's order config is malformed.
        UsageError: thresholds and isolations do not fit each other, or there is no such client version.
    """

    def __init__(self, route: TopicRouteData, scenario: SendScenario) -> None:
        self._route = route
        self.scenario = scenario
        self.profile: ClientProfile = rules(scenario)
        run = Run(route, scenario, self.profile, 0, None)
        if not run.publish_queues:
            raise no_queues(route, scenario)
        self.per_ms = run.per_ms
        self.broker_names = list(run.tally.avoided)
        chosen = None if scenario.selector is None else scenario.selector.queue
        if chosen is not None and chosen.broker_name not in self.broker_names:
            self.broker_names.append(chosen.broker_name)
        self._kernel: SendKernel | None = None
        lanes = lanes_of(run)
        if lanes is not None:
            from rmqlb.kernels.send import SendKernel

            self._kernel = SendKernel(lanes.plan)

    @property
    def in_kernel(self) -> bool:
        """Trials run together; the engine runs only those that leave what the kernel covers."""
        return self._kernel is not None

    def run(self, trials: range) -> Iterator[list[TrialCounts]]:
        """The counts of these trials in turn, some at a time."""
        kernel = self._kernel
        if kernel is None:
            yield from ([self.by_engine(trial)] for trial in trials)
            return
        for start in range(trials.start, trials.stop, kernel.lanes):
            yield self._together(kernel, range(start, min(start + kernel.lanes, trials.stop)))

    def _together(self, kernel: SendKernel, trials: range) -> list[TrialCounts]:
        lanes = kernel.run(trials)
        columns = (
            lanes.messages,
            lanes.attempts,
            lanes.lost.sum(axis=1),
            lanes.extra_attempts,
            lanes.failing,
            lanes.longest,
            lanes.stored_by_broker,
            lanes.isolations,
            lanes.began,
            lanes.avoided_at,
        )
        counts = [TrialCounts(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]
        for lane in lanes.flagged.nonzero()[0].tolist():
            counts[lane] = self.by_engine(trials[lane])
        return counts

    def by_engine(self, trial: int) -> TrialCounts:
        """One trial by itself."""
        run = Run(self._route, self.scenario, self.profile, trial, None)
        play(run, Steady(run))
        tally, totals = run.tally, run.tally.totals
        stored = dict.fromkeys(self.broker_names, 0)
        for queue, row in tally.row_of.items():
            stored[queue.broker_name] += tally.rows[row + STORED]
        return TrialCounts(
            messages=totals[Total.MESSAGES],
            attempts=totals[Total.ATTEMPTS],
            lost=totals[Total.LOST],
            extra_attempts=totals[Total.EXTRA],
            failing=totals[Total.FAILING],
            longest=tally.longest,
            stored=list(stored.values()),
            isolations=[tally.isolations.get(name, 0) for name in self.broker_names],
            began=[-1 if at is None else at for at in run.world.began],
            avoided_at=[-1 if at is None else at for at in run.marks.avoided_at],
        )


class _Summary:
    """What the trials so far add up to."""

    def __init__(self, runner: TrialRunner) -> None:
        self._runner = runner
        names, failures = runner.broker_names, runner.scenario.failures
        self.trials = 0
        self._losing = 0
        self._messages, self._extra, self._failing, self._longest = Mean(), Mean(), Mean(), Mean()
        self._attempts, self._lost = Mean(), Mean(high=1.0)
        self._shares = [Mean(high=1.0) for _ in names]
        self._isolations = [Mean() for _ in names]
        self._longest_counts: Counter[int] = Counter()
        self._began = [0] * len(failures)
        self._until: list[Counter[int]] = [Counter() for _ in failures]

    def add(self, counts: list[TrialCounts]) -> None:
        """Take in some trials."""
        per_ms = self._runner.per_ms
        self.trials += len(counts)
        self._losing += sum(trial.lost > 0 for trial in counts)
        self._messages.add([trial.messages for trial in counts])
        self._extra.add([trial.extra_attempts for trial in counts])
        self._failing.add([trial.failing / per_ms for trial in counts])
        self._longest.add([trial.longest / per_ms for trial in counts])
        self._longest_counts.update([trial.longest for trial in counts])
        self._attempts.add([trial.attempts / (trial.messages or 1) for trial in counts])
        self._lost.add([trial.lost / (trial.messages or 1) for trial in counts])
        stored = [(trial.stored, total) for trial in counts if (total := sum(trial.stored))]
        for broker, (share, isolations) in enumerate(zip(self._shares, self._isolations, strict=True)):
            share.add([by_broker[broker] / total for by_broker, total in stored])
            isolations.add([trial.isolations[broker] for trial in counts])
        for failure, until in enumerate(self._until):
            self._began[failure] += sum(trial.began[failure] >= 0 for trial in counts)
            until.update([t.avoided_at[failure] - t.began[failure] for t in counts if t.avoided_at[failure] >= 0])

    def half_width(self) -> float:
        """Of the widest interval that a wanted precision is about."""
        shares = [share.estimate() for share in self._shares if share.count]
        return max((each.high - each.low) / 2 for each in (*shares, self._attempts.estimate(), self._lost_estimate()))

    def _lost_estimate(self) -> Estimate:
        if not self._losing:
            return Estimate(0.0, 0.0, min(3 / self.trials, 1.0))
        return self._lost.estimate()

    def report(self, topic: str, wanted: int) -> TrialsReport:
        """The report of at least two trials."""
        runner = self._runner
        places = sorted(range(len(runner.broker_names)), key=lambda place: sort_key(runner.broker_names[place]))
        return TrialsReport(
            topic=topic,
            scenario=runner.scenario,
            profile=runner.profile.name,
            trials=self.trials,
            wanted=wanted,
            stopped_early=self.trials < wanted,
            messages=self._messages.estimate(),
            shares={runner.broker_names[i]: self._shares[i].estimate() for i in places if self._shares[i].count},
            attempts=self._attempts.estimate(),
            lost=self._lost_estimate(),
            losing_trials=wilson(self._losing, self.trials),
            extra_attempts=self._extra.estimate(),
            failing_ms=self._failing.estimate(),
            longest_send_ms=self._longest.estimate(),
            longest_send=self._spread(self._longest_counts),
            isolations={runner.broker_names[i]: self._isolations[i].estimate() for i in places},
            failures=tuple(
                FailureTrials(failure, began, until.total(), self._spread(until) if until else None)
                for failure, began, until in zip(runner.scenario.failures, self._began, self._until, strict=True)
            ),
        )

    def _spread(self, counts: Counter[int]) -> Spread:
        per_ms = self._runner.per_ms
        return Spread(
            mean_ms=fsum(value * times for value, times in counts.items()) / counts.total() / per_ms,
            p50_ms=quantile(counts, 0.5) / per_ms,
            p95_ms=quantile(counts, 0.95) / per_ms,
            max_ms=max(counts) / per_ms,
        )
