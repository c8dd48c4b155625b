"""How long a planned change takes until all queues have their final owners: a plan's two ends joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from rmqlb.engine.consume.trials import simulate_group_trials
from rmqlb.engine.plan.changes import Changes
from rmqlb.engine.plan.rebalance import Side
from rmqlb.errors import RmqlbError
from rmqlb.model.group import ConsumerType, States
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.plan import Convergence, RebalancePlan

_TRIALS = 5
_PATIENCE_US = 180 * SECOND_US
_MOST_WORK = 1000
"""Members × queues up to which the simulations take some 30 ms at most, which nobody notices."""


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
        trials = simulate_group_trials(None, before.members, before.routes, scenario, _TRIALS, states=states)
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
    for broker in changes.add_brokers:
        reads = broker.read_queue_nums
        writes = reads if broker.write_queue_nums is None else broker.write_queue_nums
        yield Event("broker-up", 0, broker.name, read_queues=reads, write_queues=writes)
    for route in before.routes:
        for count in changes.read_queues:
            yield Event("route-change", 0, route.topic, broker_name=count.broker_name, read_queues=count.number)
