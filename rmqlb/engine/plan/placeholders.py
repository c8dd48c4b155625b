"""What a joiner moves depends on where its id sorts; a placeholder only stands for one of the places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement
from math import comb

from msgspec.structs import replace

from rmqlb.engine.allocate.rules import BY_PLACE
from rmqlb.engine.assignment.assign import under
from rmqlb.engine.plan.rebalance import Side, assignments, summary_of
from rmqlb.model.group import States
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.plan import Comparison, MovedRange, RebalancePlan, Summary

_MOST_WORK = 50_000


def over_places(
    plan: RebalancePlan, before: Side, after: Side, placeholders: Sequence[str], states: States | None = None
) -> tuple[RebalancePlan, tuple[Summary, ...]]:
    """The plan with what else may come of it, over the places where the new members may sort, and what comes of each.

    Where the ids themselves decide (CONSISTENT_HASH, zones, hosts) that is not known.
    """
    if not placeholders or plan.broadcasting:
        return plan, ()
    places, complete = _summaries(before, after, placeholders, states)
    ranged = replace(
        plan,
        summary=replace(plan.summary, moved_range=_range(places, complete)),
        comparison=tuple(_compared(each, before, after, placeholders) for each in plan.comparison),
    )
    return ranged, places


def _compared(comparison: Comparison, before: Side, after: Side, placeholders: Sequence[str]) -> Comparison:
    first, then = before, after
    if comparison.strategy != before.members.name:
        first, then = (replace(side, members=under(side.members, comparison.strategy)) for side in (before, after))
    found = _range(*_summaries(first, then, placeholders, None))
    return replace(comparison, summary=replace(comparison.summary, moved_range=found))


def _range(places: Sequence[Summary], complete: bool) -> MovedRange | None:
    moved = [summary.moved for summary in places]
    return MovedRange(min(moved), max(moved), complete) if moved else None


def _summaries(
    before: Side, after: Side, placeholders: Sequence[str], states: States | None
) -> tuple[tuple[Summary, ...], bool]:
    if any(side.members.name not in BY_PLACE for side in (before, after)):
        return (), False
    new = set(placeholders)
    real = [client_id for client_id in sort_client_ids(after.members.client_ids) if client_id not in new]
    queues = sum(len(route.subscribe_queues()) for route in after.routes)
    number, joiners = len(real) + 1, len(placeholders)
    complete = comb(number + joiners - 1, joiners) * queues <= _MOST_WORK
    places: Iterable[tuple[int, ...]]
    if complete:
        places = combinations_with_replacement(range(number), joiners)
    elif number * queues <= _MOST_WORK:
        places = ((place,) * joiners for place in range(number))
    else:
        places = ((place,) * joiners for place in (0, number // 2, number - 1))
    found, was = [], assignments(before)
    for taken in places:
        # Nothing sorts between an id and the same id with a NUL behind it.
        ids = tuple(f"{real[place - 1] if place else ''}\0{index:06d}" for index, place in enumerate(taken))
        members = replace(after.members, client_ids=(*real, *ids))
        found.append(summary_of(was, before, replace(after, members=members), states or {}))
    return tuple(dict.fromkeys(found)), complete
