"""Many trials of one scenario with random starts of the round robin, latencies and resets: means and intervals.

- A trial equals one `simulate_send`.
- With a precision, the simulation may stop between blocks only, whose lengths are always the same.
- Sums are exact (`math.fsum`): a figure does not depend on the order of its parts.
"""

from array import array
from collections.abc import Callable, Sequence
from math import fsum, inf, pi, sqrt, tan
from statistics import NormalDist
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import asdict

from rmqlb.engine.arguments import require
from rmqlb.engine.kernel import nearest_rank
from rmqlb.engine.send.cluster import NEVER
from rmqlb.engine.send.simulate import check, check_brokers, producer_of, profile_name, rules
from rmqlb.errors import UsageError
from rmqlb.model.limits import MOST_SEND_TRIALS
from rmqlb.model.message_queue import sort_key
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import SendScenario
from rmqlb.model.simulate_send import Estimate, FailureInTrials, LongestSend, TimeSpread, TrialsReport

CONFIDENCE = 0.95
FIRST_BLOCK = 256
LARGEST_BLOCK = 4096
_FIGURES = (
    *("messages", "attempts", "lost", "lost_share", "retries", "retried"),
    *("not_store_ok", "duplicated", "failing_ms", "longest_send_ms"),
)
_AT_BROKERS = ("shares", "picks", "attempts_at", "failed_at", "isolations")


def simulate_trials(
    route: TopicRouteData,
    scenario: SendScenario,
    trials: int,
    *,
    precision: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> TrialsReport:
    """Simulate a RocketMQ producer many times: its figures on average, and how much they vary.

    Trial number t, from 0, is `simulate_send(route, scenario, trial=t)`. Equal arguments give equal reports.

    Args:
        route: the topic's route while nothing fails.
        scenario: the producer, its load, and the failures.
        trials: number of trials, at least 2.
        precision: stop when 95 % confidence intervals are no wider than this to both sides: of each broker's share of
            stored messages, of the attempts per message, of the share of messages lost; 0.001 is a tenth of a per cent.
        progress: called with the number of trials run so far.

    Raises:
        DataError: the producer's queue list is empty, or the route's order config is malformed.
        UsageError: the scenario contradicts itself, there are fewer than 2 trials, or the precision is not positive.
    """
    check(scenario)
    require(trials, Annotated[int, Meta(ge=2, le=MOST_SEND_TRIALS)], "trials")
    require(precision, float | None, "precision")
    if precision is not None and not precision > 0:
        raise UsageError(f"precision {precision:g} is not positive")
    check_brokers(route, scenario)
    summary = _Summary(route, scenario)
    block, block_ends = FIRST_BLOCK, FIRST_BLOCK
    for trial in range(trials):
        if precision is not None and trial == block_ends:
            if trial > FIRST_BLOCK and summary.half_width() <= precision:
                break
            block = min(2 * block, LARGEST_BLOCK)
            block_ends += block
        summary.add(trial)
        if progress is not None:
            progress(summary.trials)
    return summary.report(trials)


class _Summary:
    """The figures of the trials so far, each a column of numbers; figures at brokers have a column per broker."""

    def __init__(self, route: TopicRouteData, scenario: SendScenario) -> None:
        self._route, self._scenario = route, scenario
        first = producer_of(route, scenario)
        self._per_ms = first.per_ms
        names = set(first.recorder.isolated)
        if scenario.chosen_by is not None and scenario.chosen_by.queue is not None:
            names.add(scenario.chosen_by.queue.broker_name)
        self._names = sorted(names, key=sort_key)
        self._columns = {name: array("d") for name in _FIGURES}
        self._at = {figure: {name: array("d") for name in self._names} for figure in _AT_BROKERS}
        self._longest = list[int]()  # in ticks, as all spreads
        self._began = [0] * len(scenario.failures)
        self._until_isolated = [list[int]() for _ in scenario.failures]

    @property
    def trials(self) -> int:
        return len(self._columns["lost"])

    @property
    def _losing(self) -> int:
        return sum(map(bool, self._columns["lost"]))

    def add(self, trial: int) -> None:
        producer = producer_of(self._route, self._scenario, trial)
        recorder = producer.recorder
        recorder.next_slice = NEVER  # no timeline
        producer.run()
        totals = recorder.totals(())
        messages = totals.messages or 1
        own = {"attempts": totals.attempts / messages, "lost_share": totals.lost / messages}
        for name, column in self._columns.items():
            value = own[name] if name in own else getattr(totals, name)
            if value is not None:
                column.append(value)
        if totals.longest_send_ms is not None:
            self._longest.append(recorder.longest)
        picks, failed, stored = map(recorder.by_broker, ("picks", "failed", "stored"))
        whole = stored.total()
        for name in self._names:
            if whole:  # a trial that stores nothing has no shares
                self._at["shares"][name].append(stored[name] / whole)
            self._at["picks"][name].append(picks[name])
            self._at["attempts_at"][name].append(failed[name] + stored[name])
            self._at["failed_at"][name].append(failed[name])
            self._at["isolations"][name].append(recorder.isolations[name])
        for place, course in enumerate(producer.cluster.courses):
            self._began[place] += course.began is not None
            if course.began is not None and course.isolated is not None:
                self._until_isolated[place].append(course.isolated - course.began)

    def half_width(self) -> float:
        estimates = (*self._estimates("shares").values(), estimate(self._columns["attempts"]), self._lost_share())
        return max((each.high - each.low) / 2 for each in estimates)

    def _estimates(self, figure: str) -> dict[str, Estimate]:
        highest = 1.0 if figure == "shares" else inf
        return {name: estimate(values, highest) for name, values in self._at[figure].items() if values}

    def _lost_share(self) -> Estimate:
        none_lost = Estimate(0.0, 0.0, min(3 / self.trials, 1.0))
        return estimate(self._columns["lost_share"], 1.0) if self._losing else none_lost

    def _lost_messages(self, messages: Estimate) -> Estimate:
        none_lost = Estimate(0.0, 0.0, self._lost_share().high * messages.mean)
        return estimate(self._columns["lost"], messages.high) if self._losing else none_lost

    def report(self, wanted: int) -> TrialsReport:
        scenario = self._scenario
        found: dict[str, Any] = {name: estimate(column) for name, column in self._columns.items() if column}
        found |= {figure: self._estimates(figure) for figure in _AT_BROKERS}
        longest, spread = found.pop("longest_send_ms", None), self._spread(self._longest)
        del found["lost"]
        return TrialsReport(
            topic=self._route.topic,
            scenario=scenario,
            profile=profile_name(scenario, rules(scenario)),
            trials=self.trials,
            wanted=wanted,
            stopped_early=self.trials < wanted,
            lost_messages=self._lost_messages(found["messages"]),
            losing_trials=wilson(self._losing, self.trials),
            longest_send_ms=LongestSend(**asdict(longest), **asdict(spread)) if longest and spread else None,
            failures=tuple(
                FailureInTrials(failure.broker_name, began, len(until), self._spread(until))
                for failure, began, until in zip(scenario.failures, self._began, self._until_isolated, strict=True)
            ),
            **found | {"lost_share": self._lost_share()},
        )

    def _spread(self, values: Sequence[int]) -> TimeSpread | None:
        if not values:
            return None
        ordered = sorted(values)
        spread = (fsum(ordered) / len(ordered), *(nearest_rank(ordered, percent) for percent in (50, 95, 100)))
        return TimeSpread(*(value / self._per_ms for value in spread))


# -- intervals that hold the true value in 95 of 100 cases -------------------------------------------------------------


def estimate(values: Sequence[float], highest: float = inf) -> Estimate:
    """The mean with Student's interval, from 0 to the highest; a single value leaves the interval open."""
    count, origin = len(values), values[0]
    # Relative to the first value, equal values have no spread at all, and close values lose no digits.
    total = fsum(value - origin for value in values)
    mean = origin + total / count
    if count == 1:
        return Estimate(mean, 0.0, highest)
    squares = fsum((value - origin) ** 2 for value in values)
    variance = max(squares - total * total / count, 0.0) / (count - 1)
    half = student(count - 1) * sqrt(variance / count)
    return Estimate(mean, max(mean - half, 0.0), min(mean + half, highest))


def student(degrees: int, confidence: float = CONFIDENCE) -> float:
    """Student's t: half of the interval of that confidence, in standard errors.

    Exact for one and two degrees of freedom, else the expansion around the normal quantile (Abramowitz and Stegun,
    26.7.5), which is off by 0.004 at three and by less than 0.001 from four on.
    """
    if degrees == 1:
        return tan(pi * confidence / 2)
    if degrees == 2:
        return confidence * sqrt(2 / (1 - confidence**2))
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    correction = 0.0
    for term in reversed(terms):
        correction = (correction + term) / degrees
    return z + correction


def wilson(hits: int, trials: int, confidence: float = CONFIDENCE) -> Estimate:
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, spread = hits / trials, z * z / trials
    middle = (share + spread / 2) / (1 + spread)
    half = sqrt(share * (1 - share) * spread + spread * spread / 4) / (1 + spread)
    low = 0.0 if hits == 0 else max(middle - half, 0.0)
    return Estimate(share, low, 1.0 if hits == trials else min(middle + half, 1.0))
