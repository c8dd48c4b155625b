"""One trial after the other: the counts that the report needs of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rmqlb.engine.send.counters import FAILED, PICKS, STORED, Total
from rmqlb.engine.send.profile import ClientProfile
from rmqlb.engine.send.simulate import check_brokers, no_queues, play, rules
from rmqlb.engine.send.simulation import SendSimulation
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import SendScenario


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

    def run(self, trial: int) -> TrialCounts:
        """The counts of one trial, numbered from 0."""
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
