"""Who runs a trial: the kernel many at once, or the engine one by one.

Rules of this file:
- The kernel runs what it covers, and the engine what is left: the trials that the kernel flags, other scenarios, and
  those whose trials it shortens by more than the kernel gains. The counts are the same either way.
- numpy stays in the kernels: what comes from there is turned into lists at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rmqlb.engine.send.counters import FAILED, PICKS, STORED, Total
from rmqlb.engine.send.encode_scenario import lanes_of
from rmqlb.engine.send.profile import ClientProfile
from rmqlb.engine.send.simulate import check_brokers, no_queues, play, rules
from rmqlb.engine.send.simulation import SendSimulation
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import SendScenario

if TYPE_CHECKING:
    from rmqlb.engine.send.vectorized.simulation import SendKernel

_EVENT_US, _MESSAGE_US, _STEP_US = 10, 0.1, 150
"""About what the engine takes for an event, the kernel for a message in many lanes, and for a step of any lanes."""
_MOST_EVENTS = 20_000


class TrialCounts(NamedTuple):
    """What the report needs of one trial; times are ticks, and −1 where `began` and `isolated_at` never came."""

    messages: int
    attempts: int
    lost: int
    not_store_ok: int
    duplicated: int
    retried: int
    retries: int
    failing: int
    longest: int
    stored_by_broker: Sequence[int]
    failed_by_broker: Sequence[int]
    picks_by_broker: Sequence[int]
    isolations: Sequence[int]
    began: Sequence[int]
    isolated_at: Sequence[int]


class TrialRunner:
    """A scenario, ready for any of its trials; raises DataError, UsageError."""

    def __init__(self, route: TopicRouteData, scenario: SendScenario) -> None:
        check_brokers(route, scenario)
        self._route = route
        self.scenario = scenario  # what is simulated
        self.profile: ClientProfile = rules(scenario)  # the client's rules, overrides applied
        simulation = SendSimulation(route, scenario, self.profile)
        if not simulation.publish_queues:
            raise no_queues(route)
        self.per_ms = simulation.per_ms  # ticks in a millisecond
        self.broker_names = list(simulation.recorder.counts.isolated_ticks)  # the order of brokers in counts
        chosen = None if scenario.chosen_by is None else scenario.chosen_by.queue
        if chosen is not None and chosen.broker_name not in self.broker_names:
            self.broker_names.append(chosen.broker_name)
        self._kernel: SendKernel | None = None
        lanes = lanes_of(simulation)
        if lanes is not None:
            from rmqlb.engine.send.vectorized.simulation import SendKernel

            self._kernel = SendKernel(lanes.plan)
        self._events_of: tuple[int, int] | None = None
        self._given_up = 0

    def together(self, trials: int) -> bool:
        """So many trials are run together; the engine then runs only those that leave what the kernel covers."""
        return self._kernel is not None and not self._engine_is_faster(min(trials, self._kernel.lanes))

    def run(self, trials: range) -> Iterator[list[TrialCounts]]:
        """The counts of these trials in turn, some at a time."""
        kernel = self._kernel
        if kernel is None or not self.together(len(trials)):
            yield from ([self.by_engine(trial)] for trial in trials)
            return
        for start in range(trials.start, trials.stop, kernel.lanes):
            yield self._together(kernel, range(start, min(start + kernel.lanes, trials.stop)))

    def _engine_is_faster(self, lanes: int) -> bool:
        """It is where it can jump over most messages: where little is random, and messages are many."""
        tables = (self.scenario.latency, *self.scenario.latencies.values())
        if any(len(latency.table) > 1 for latency in tables):
            return False
        message_us = _MESSAGE_US + _STEP_US / lanes
        most = _MOST_EVENTS
        if self.scenario.messages is not None:
            most = min(most, int(self.scenario.messages * message_us / _EVENT_US))
        if self._events_of is None and most > self._given_up:
            first = SendSimulation(self._route, self.scenario, self.profile)
            events = play(first, skip=True, most_events=most)
            if events is None:
                self._given_up = most
            else:
                self._events_of = events, first.clock.started
        if self._events_of is None:
            return False
        taken, messages = self._events_of
        return taken * _EVENT_US < messages * message_us

    def _together(self, kernel: SendKernel, trials: range) -> list[TrialCounts]:
        lanes = kernel.run(trials)
        columns = [lanes.lost.sum(axis=1) if name == "lost" else getattr(lanes, name) for name in TrialCounts._fields]
        counts = [TrialCounts(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]
        for lane in lanes.flagged.nonzero()[0].tolist():
            counts[lane] = self.by_engine(trials[lane])
        return counts

    def by_engine(self, trial: int) -> TrialCounts:
        simulation = SendSimulation(self._route, self.scenario, self.profile, trial)
        play(simulation, skip=True)
        counters, counts = simulation.recorder.counters, simulation.recorder.counts
        stored, failed, picks = (dict.fromkeys(self.broker_names, 0) for _ in range(3))
        for queue, row in counters.row_of.items():
            stored[queue.broker_name] += counts.rows[row + STORED]
            failed[queue.broker_name] += counts.rows[row + FAILED]
            picks[queue.broker_name] += counts.rows[row + PICKS]
        totals = {total.name.lower(): counts.totals[total] for total in Total}
        return TrialCounts(
            longest=counters.longest,
            stored_by_broker=list(stored.values()),
            failed_by_broker=list(failed.values()),
            picks_by_broker=list(picks.values()),
            isolations=[counts.isolations.get(name, 0) for name in self.broker_names],
            began=[-1 if at is None else at for at in simulation.cluster.began],
            isolated_at=[-1 if at is None else at for at in simulation.recorder.failures.isolated_at],
            **{name: totals[name] for name in TrialCounts._fields if name in totals},
        )
