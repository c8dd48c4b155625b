"""What a joiner moves depends on where its id sorts; a made-up id only stands for one of the places."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from rmqlb.engine.rebalance import Side, plan_rebalance
from rmqlb.model.message_queue import sort_client_ids

_BY_PLACE = ("AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM")
_MOST_WORK = 50_000


def moves_by_place(before: Side, after: Side, made_up: Sequence[str]) -> tuple[int, int] | None:
    """The fewest and the most queues that move, over all places where the new members may sort side by side.

    Args:
        before: the group before.
        after: the group afterwards, made-up members included.
        made_up: their ids.

    Returns:
        Both numbers of queues, or None where the ids themselves decide (CONSISTENT_HASH, zones, hosts) or where the
        group is so large that trying every place would be felt.
    """
    real = [client_id for client_id in sort_client_ids(after.members.client_ids) if client_id not in made_up]
    queues = sum(len(route.subscribe_queues()) for route in after.routes)
    if after.members.name not in _BY_PLACE or (len(real) + 1) * queues > _MOST_WORK:
        return None
    moved = []
    for place in range(len(real) + 1):
        # Nothing sorts between an id and the same id with a NUL behind it.
        left = real[place - 1] if place else ""
        joiners = tuple(f"{left}\0{index:06d}" for index in range(len(made_up)))
        members = replace(after.members, client_ids=(*real, *joiners))
        moved.append(plan_rebalance(None, before, replace(after, members=members)).summary.moved)
    return min(moved), max(moved)
