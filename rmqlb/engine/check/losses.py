"""How much moves when one member or one broker is lost: each of them in turn, and the worst counts.

A queue moves as in a plan (`Move.change`): it had an owner, it has one afterwards, and they differ. Whole plans would
say the same and cost many times as much, which is felt where a group has hundreds of members.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from rmqlb.engine.assignment.assign import owners_at_rest
from rmqlb.engine.assignment.balance import Owners
from rmqlb.engine.check.group_facts import GroupFacts
from rmqlb.engine.check.measured import Measured
from rmqlb.engine.plan.changes import Changes, change_route
from rmqlb.engine.plan.rebalance import Side
from rmqlb.model.message_queue import sort_client_ids


def moved_on_consumer_loss(facts: GroupFacts) -> Measured:
    """The largest share of the queues that goes to another owner when one process ends (raises RmqlbError)."""
    members, _ = facts.members
    ids = sort_client_ids(members.client_ids)
    left = ((i, [*ids[: ids.index(i)], *ids[ids.index(i) + 1 :]]) for i in dict.fromkeys(ids))
    sides = ((f"member {i}", Side(replace(members, client_ids=tuple(rest)), facts.routes)) for i, rest in left)
    return _worst(facts, sides)


def moved_on_broker_loss(facts: GroupFacts) -> Measured:
    """The largest share of the queues left that goes to another owner when one broker is lost (raises RmqlbError)."""
    members, _ = facts.members
    names = sorted({data.broker_name for route in facts.routes for data in route.queue_datas})
    return _worst(facts, ((f"broker {name}", _without_broker(Side(members, facts.routes), name)) for name in names))


def moved(before: Owners, after: Owners) -> int:
    """How many queues go from one owner to another."""
    return sum(1 for queue, owners in before.items() if owners and after.get(queue) and after[queue] != owners)


def _without_broker(side: Side, name: str) -> Side:
    lost = Changes(remove_brokers=(name,))
    return replace(
        side,
        routes=tuple(
            change_route(route, lost) if any(data.broker_name == name for data in route.queue_datas) else route
            for route in side.routes
        ),
    )


def _worst(facts: GroupFacts, losses: Iterable[tuple[str, Side]]) -> Measured:
    members, basis = facts.members
    before = owners_at_rest(facts.routes, members)
    worst, why = 0.0, ""
    for lost, side in losses:
        after = owners_at_rest(side.routes, side.members)
        number, left = moved(before, after), sum(queue in after for queue in before)
        if number > worst * left:
            worst = number / left
            why = f"{number} of {left} queues move when {lost} is lost"
    return Measured(worst, why=why, basis=basis)
