"""Many trials of one scenario: they differ in the phases of the clocks, the brokers asked, and the latencies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta

from rmqlb.engine.arguments import require
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.plan.changes import Changes
from rmqlb.engine.plan.rebalance import Side
from rmqlb.engine.rebalance.simulate import GroupSimulation
from rmqlb.errors import RmqlbError
from rmqlb.model.group import ConsumerType, States
from rmqlb.model.group_report import FigureSpread, FigureSpreads, GroupFigures, GroupTrials
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario
from rmqlb.model.limits import MOST_GROUP_TRIALS
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.plan import Convergence, RebalancePlan
from rmqlb.model.route import TopicRouteData

TrialCount = Annotated[int, Meta(ge=1, le=MOST_GROUP_TRIALS)]


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
    require(trials, TrialCount, "trials")
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


_TRIALS = 5
_PATIENCE_US = 180 * SECOND_US
_MOST_WORK = 1000  # members × queues up to which the simulations take some 30 ms at most, which nobody notices


def convergence(
    plan: RebalancePlan,
    before: Side,
    after: Side,
    changes: Changes,
    *,
    states: States,
    client_version: str,
    consume_from: str,
    consumer_type: ConsumerType = "push",
    consumer_types: Mapping[str, ConsumerType] | None = None,
) -> Convergence | None:
    """What the members go through when the change happens at one moment, over a few trials.

    None when nothing happens to the members, when nobody is left, when the strategy changes, which takes one
    restart after the other, and when the group is large.
    """
    events = tuple(change_events(before, after, changes))
    if not events or not after.members.client_ids or changes.to_strategy is not None or _work(plan) > _MOST_WORK:
        return None
    scenario = GroupScenario(
        events,
        client_version=client_version,
        broadcasting=before.members.broadcasting,
        consume_from=consume_from,
        consumer_type=consumer_type,
        consumer_types=consumer_types or {},
        patience_us=_PATIENCE_US,
    )
    try:
        simulation = GroupSimulation(None, before.members, before.routes, scenario, states=states, checked=True)
        trials = summarise([simulation.run(trial, gaps_only=True).figures for trial in range(_TRIALS)])
    except RmqlbError:
        return None  # a plan can be of more than a simulation: of a broker without an address, say
    found, all_converged = trials.figures, trials.converged == trials.trials
    ends = (plan.summary.before, plan.summary.after)
    unassigned = any(end.unassigned for end in ends)
    doubly = any(end.duplicate_owners or end.queues_of_duplicate_client_ids for end in ends)
    return Convergence(
        trials=trials.trials,
        converged=trials.converged,
        convergence_ms=None if found.convergence_ms is None else found.convergence_ms.p50,
        max_convergence_ms=found.convergence_ms.max if found.convergence_ms and all_converged else None,
        longest_gap_ms=None if unassigned else found.longest_gap_ms.max,
        longest_overlap_ms=None if doubly else found.longest_overlap_ms.max,
        unread_ms=found.unread_ms.max,
    )


def _work(plan: RebalancePlan) -> int:
    ends = (plan.summary.before, plan.summary.after)
    return max(end.consumers for end in ends) * max(end.queues for end in ends)


def change_events(before: Side, after: Side, changes: Changes) -> Iterator[Event]:
    """The change as events, all at the beginning: members go before others come. Write queues are the producers'."""
    ids, ids_after = Counter(before.members.client_ids), Counter(after.members.client_ids)
    yield from (Event("leave", 0, client_id) for client_id in sort_client_ids((ids - ids_after).elements()))
    yield from (Event("join", 0, client_id) for client_id in sort_client_ids((ids_after - ids).elements()))
    yield from (Event("broker-down", 0, name, for_good=True) for name in changes.remove_brokers)
    left = {data.broker_name for route in after.routes for data in route.queue_datas}
    yield from (Event("broker-down", 0, name, for_good=name not in left) for name in changes.remove_masters)
    for broker in changes.add_brokers:
        reads = broker.read_queue_nums
        writes = reads if broker.write_queue_nums is None else broker.write_queue_nums
        yield Event("broker-up", 0, broker.name, read_queues=reads, write_queues=writes)
    for route in before.routes:
        for count in changes.read_queues:
            yield Event("route-change", 0, route.topic, broker_name=count.broker_name, read_queues=count.number)
