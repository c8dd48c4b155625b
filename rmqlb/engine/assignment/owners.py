"""Queue × strategy: who would own each queue under each of several strategies, beside who owns it now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import asdict

from rmqlb.engine.assignment.assign import Members, assign, merged, under, why_idle
from rmqlb.engine.assignment.balance import Owners, counts, spread
from rmqlb.model.assignment import Assignment
from rmqlb.model.group import States
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.owners import ConsumerQueues, OwnersReport, QueueOwners, StrategyOwners
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
    """Who owns each queue under each strategy, whatever strategy the members have (raises AllocationError)."""
    states = states or {}
    queues = [queue for route in routes for queue in route.subscribe_queues()]
    observed = {
        queue: seen for queue in queues if queue in states and (seen := states[queue].sorted_owners) is not None
    }
    each_under = [under(members, name) for name in strategies]
    dealt = {its.name: [assign(route, its, explain=explain) for route in routes] for its in each_under}
    owners = {name: merged(assignments) for name, assignments in dealt.items()}
    reasons = {
        name: {queue: reason for each in assignments for queue, reason in each.reasons.items()}
        for name, assignments in dealt.items()
    }
    known = set(queues)
    everything = dict.fromkeys((*queues, *(queue for its_owners in owners.values() for queue in its_owners)))
    return OwnersReport(
        group=group,
        topics=tuple(route.topic for route in routes),
        sorted_consumers=tuple(sort_client_ids(members.client_ids)),
        queues=tuple(
            QueueOwners(
                queue.topic,
                queue.broker_name,
                queue.queue_id,
                observed.get(queue),
                states[queue].lag if queue in states and queue in known else None,
                {name: its_owners.get(queue, ()) for name, its_owners in owners.items()},
                {name: why.get(queue) for name, why in reasons.items()},
            )
            for queue in everything
        ),
        strategies=tuple(
            _strategy(name, assignments, owners[name], members, observed) for name, assignments in dealt.items()
        ),
    )


def _strategy(
    name: str, assignments: list[Assignment], owners: Owners, members: Members, observed: Owners
) -> StrategyOwners:
    numbers = counts(owners, dict.fromkeys(sort_client_ids(members.client_ids)))
    even = asdict(spread(owners, members.client_ids, broadcasting=members.broadcasting))
    even["consumers"] = tuple(
        ConsumerQueues(client_id, number, None if number else why_idle(client_id, assignments))
        for client_id, number in numbers.items()
    )
    differ = sum(owners.get(queue) != its_owners for queue, its_owners in observed.items()) if observed else None
    return StrategyOwners(**even, strategy=name, mismatches=differ)
