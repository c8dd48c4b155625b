"""Queue × strategy: who would own each queue under each of several strategies, beside who owns it now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rmqlb.engine.assignment.assign import Members, assign, merged, under, why_idle
from rmqlb.engine.assignment.balance import counts, spread
from rmqlb.model.group import States
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.plan import OwnersReport, StrategyOwners
from rmqlb.model.route import TopicRouteData


def owners_by_strategy(
    group: str | None,
    routes: Sequence[TopicRouteData],
    members: Members,
    strategies: Iterable[str],
    *,
    states: States | None = None,
    explain: bool = False,
) -> OwnersReport:
    """Who owns each queue of the topics under each strategy.

    Args:
        members: the group's members; their strategy is passed over for those asked for.

    Raises:
        AllocationError: every client throws under one of the strategies.
    """
    states = states or {}
    queues = tuple(queue for route in routes for queue in route.subscribe_queues())
    observed = {
        queue: owners for queue in queues if queue in states and (owners := states[queue].sorted_owners) is not None
    }
    return OwnersReport(
        group=group,
        topics=tuple(route.topic for route in routes),
        queues=queues,
        client_ids=tuple(sort_client_ids(members.client_ids)),
        strategies=tuple(_under(strategy, routes, members, observed, explain) for strategy in strategies),
        observed=observed,
        lag={queue: lag for queue in queues if queue in states and (lag := states[queue].lag) is not None},
        explained=explain,
        broadcasting=members.broadcasting,
    )


def _under(
    strategy: str,
    routes: Sequence[TopicRouteData],
    members: Members,
    observed: dict[MessageQueue, tuple[str, ...]],
    explain: bool,
) -> StrategyOwners:
    same = under(members, strategy)
    assignments = [assign(route, same, explain=explain) for route in routes]
    owners = merged(assignments)
    numbers = counts(owners, dict.fromkeys(sort_client_ids(members.client_ids)))
    return StrategyOwners(
        strategy=same.name,
        owners=owners,
        idle={client_id: why_idle(client_id, assignments) for client_id, number in numbers.items() if number == 0},
        counts=numbers,
        spread=spread(owners, members.client_ids, broadcasting=members.broadcasting),
        differs=sum(owners.get(queue) != its_owners for queue, its_owners in observed.items()) if observed else None,
        reasons={queue: reason for a in assignments for queue, reason in a.reasons.items()},
    )
