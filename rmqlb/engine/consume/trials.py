"""Many trials of one scenario: they differ in the phases of the clocks, the brokers asked, and the latencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from msgspec import Meta

from rmqlb.engine.arguments import require
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.consume.simulate import GroupSimulation
from rmqlb.model.group import States
from rmqlb.model.group_report import FigureSpread, FigureSpreads, GroupFigures, GroupTrials
from rmqlb.model.group_scenario import GroupScenario
from rmqlb.model.limits import MOST_GROUP_TRIALS
from rmqlb.model.route import TopicRouteData


def simulate_group_trials(
    group: str | None,
    members: Members,
    routes: Sequence[TopicRouteData],
    scenario: GroupScenario,
    trials: int,
    *,
    states: States | None = None,
    progress: Callable[[int], None] | None = None,
) -> GroupTrials:
    """Each figure over many trials; trial 0 is the simulation without trials.

    Args:
        group: its name, or None.
        members: the group at the beginning.
        routes: the topics.
        scenario: what happens.
        trials: how many, at least 1.
        states: what was observed of each queue.
        progress: is told how many are done.

    Raises:
        UsageError: as in `simulate_group`, or there is no trial.
    """
    require(trials, Annotated[int, Meta(ge=1, le=MOST_GROUP_TRIALS)], "trials")
    simulation = GroupSimulation(group, members, routes, scenario, states=states)
    found: list[GroupFigures] = []
    for trial in range(trials):
        found.append(simulation.run(trial).figures)
        if progress is not None:
            progress(trial + 1)
    return summarise(found)


def summarise(found: Sequence[GroupFigures]) -> GroupTrials:
    """The spreads of figures, one set a trial; one that is unknown in any trial is unknown, but for the convergence."""
    spreads: dict[str, Any] = {}
    for name in GroupFigures.__struct_fields__:
        values = [(getattr(figures, name), trial) for trial, figures in enumerate(found)]
        known = [(value, trial) for value, trial in values if value is not None]
        is_known = len(known) == len(values) or name == "convergence_ms"
        spreads[name] = _spread(known) if known and is_known else None
    converged = sum(1 for figures in found if figures.convergence_ms is not None)
    return GroupTrials(len(found), converged, FigureSpreads(**spreads))


def _spread(values: Sequence[tuple[float, int]]) -> FigureSpread:
    ordered = sorted(value for value, _ in values)
    largest = ordered[-1]
    return FigureSpread(
        p50=_quantile(ordered, 50),
        p95=_quantile(ordered, 95),
        max=largest,
        max_trial=next(trial for value, trial in values if value == largest),
    )


def _quantile(ordered: Sequence[float], percent: int) -> float:
    """The smallest value that so many of 100, at least one, do not exceed (nearest rank); of one value or more."""
    return ordered[-(-len(ordered) * percent // 100) - 1]
