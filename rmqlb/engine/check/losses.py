"""How much moves when one member or one broker is lost: a plan for each of them, and the worst counts."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from rmqlb.engine.changes import Changes, change_route
from rmqlb.engine.check.facts import GroupFacts
from rmqlb.engine.check.measured import Measured
from rmqlb.engine.rebalance import Side, plan_rebalance
from rmqlb.model.message_queue import sort_client_ids


def moved_on_member_loss(facts: GroupFacts) -> Measured:
    """The largest share of the queues that goes to another owner when one process ends.

    Raises:
        DataError: the members or what they run are not known.
        AllocationError: the clients throw.
    """
    members, _ = facts.members
    ids = sort_client_ids(members.client_ids)
    left = ((i, [*ids[: ids.index(i)], *ids[ids.index(i) + 1 :]]) for i in dict.fromkeys(ids))
    sides = ((f"member {i}", Side(replace(members, client_ids=tuple(rest)), facts.routes)) for i, rest in left)
    return _worst(facts, sides)


def moved_on_broker_loss(facts: GroupFacts) -> Measured:
    """The largest share of the queues left that goes to another owner when one broker is lost.

    Raises:
        DataError: the members or what they run are not known.
        UsageError: a topic is a static one, whose queues do not follow brokers.
    """
    members, _ = facts.members
    brokers = {route.topic: {data.broker_name for data in route.queue_datas} for route in facts.routes}
    names = sorted(set().union(*brokers.values()))
    sides = (
        (
            f"broker {name}",
            Side(
                members,
                tuple(
                    change_route(route, Changes(remove_brokers=(name,))) if name in brokers[route.topic] else route
                    for route in facts.routes
                ),
            ),
        )
        for name in names
    )
    return _worst(facts, sides)


def _worst(facts: GroupFacts, losses: Iterable[tuple[str, Side]]) -> Measured:
    members, basis = facts.members
    before = Side(members, facts.routes)
    worst, why = 0.0, ""
    for lost, after in losses:
        summary = plan_rebalance(None, before, after).summary
        left = summary.before.queues - summary.removed
        if summary.moved > worst * left:
            worst = summary.moved / left
            why = f"{summary.moved} of {left} queues move when {lost} is lost"
    return Measured(worst, why=why, basis=basis)
