"""What `simulate-rebalance` sees of a group, and of producers when it looks at several."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common.each_group import Parts
from rmqlb.cli.common.group_simulation.inputs import Gathered, gather
from rmqlb.cli.common.group_simulation.options import GroupSimulationOptions
from rmqlb.cli.common.options import GroupOptions
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.engine.consume.simulate import simulate_group
from rmqlb.engine.fail_on_figures.conditions import Condition
from rmqlb.engine.fail_on_figures.of_simulation import try_on_group, try_on_group_trials
from rmqlb.model.finding import Finding
from rmqlb.model.group_report import GroupReport, GroupTrials
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.system_names import is_system_topic
from rmqlb.verbs.strategies import Strategies
from rmqlb.views.group.view import group_report
from rmqlb.views.report import Report


class Question(Struct, frozen=True):
    """What is asked of each group."""

    options: GroupSimulationOptions
    strategy: str | None
    strategies: Strategies
    trials: int | None
    trial: int
    asked: Sequence[Condition]


class Looks:
    """The simulations of groups, one after the other, and then those of producers."""

    def __init__(
        self,
        question: Question,
        snapshot: ClusterSnapshot,
        terminal: Terminal,
        *,
        several: bool,
        everything: bool,  # producers of topics that no group reads too
    ) -> None:
        self.simulations: list[GroupReport] = []
        self.findings: list[Finding] = []  # about producers
        self._question, self._snapshot, self._terminal = question, snapshot, terminal
        routes = [sighting.route for sighting in snapshot.routes.values()]
        self._elsewhere = routes if several else []
        self._routes: dict[str, TopicRouteData] = {}  # topics of which producers are looked at
        self._take(routes if everything else ())

    def one(self, which: GroupOptions) -> SnapshotView:
        """A group, as if there were no others."""
        asked, terminal = self._question, self._terminal
        found = gather(
            *(asked.options, which, self._snapshot, asked.strategy, asked.strategies, terminal),
            elsewhere=self._elsewhere,
        )
        report, spread = self._simulated(found, explain=which.explain)
        tried = tuple(
            try_on_group(condition, report) if spread is None else try_on_group_trials(condition, spread)
            for condition in asked.asked
        )
        shown = group_report(report, trials=spread, explain=which.explain, conditions=tried)
        self.simulations.append(report)
        self._take(found.on_topics.pulled_routes)
        findings = tuple(dict.fromkeys((*found.findings, *report.findings)))
        return SnapshotView(shown, found.snapshot, findings, tried)

    def joined(self, parts: Parts) -> Report:
        """All of the groups, and producers of their topics on brokers that fail."""
        from rmqlb.cli.simulate_rebalance.producers import producers
        from rmqlb.views.group.several import simulations_report

        found = producers(self._question.options, list(self._routes.values()), self._elsewhere, self._terminal)
        self.findings += found.findings
        return simulations_report(parts, self.simulations, found.reports)

    def _take(self, routes: Sequence[TopicRouteData]) -> None:
        self._routes |= {route.topic: route for route in routes if not is_system_topic(route.topic)}

    def _simulated(self, found: Gathered, *, explain: bool) -> tuple[GroupReport, GroupTrials | None]:
        group, trials = found.on_topics, self._question.trials
        asked, states = (group.name, found.members, group.pulled_routes, found.scenario), group.states
        with self._terminal.progress(verb="simulating") as progress:
            progress(group.title, 0, 0)
            report = simulate_group(*asked, states=states, trial=self._question.trial, explain=explain)
            report = replace(report, sdks=found.sdks)
            if trials is None:
                return report, None
            from rmqlb.engine.consume.trials import simulate_group_trials

            count = partial(progress, "trials", total=trials)
            return report, simulate_group_trials(*asked, trials, states=states, progress=count)
