"""The plan of a change: both assignments, queue by queue and consumer by consumer, and its conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement
from math import comb

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import BY_PLACE
from rmqlb.engine.allocate.strategy import first_indexes
from rmqlb.engine.assignment.assign import Members, assign, merged, runnable, under, why_idle
from rmqlb.engine.assignment.balance import counts, minimum_moves, spread
from rmqlb.engine.conditions import Condition, declared
from rmqlb.model.assignment import Assignment
from rmqlb.model.condition import TriedCondition
from rmqlb.model.diff import Change
from rmqlb.model.evenness import Spread
from rmqlb.model.group import BROADCASTING, QueueState, States
from rmqlb.model.message_queue import sort_client_ids, sort_queues
from rmqlb.model.plan import (
    ADDED,
    ASSIGNED,
    MOVED,
    REMOVED,
    SAME,
    UNASSIGNED,
    Comparison,
    ConsumerPlan,
    Move,
    MovedRange,
    ObservedOwners,
    RebalancePlan,
    Summary,
    TopicPlan,
)
from rmqlb.model.route import TopicRouteData
from rmqlb.model.unknown import sum_if_known


class Side(Struct, frozen=True):
    """A group and its topics at one end of a change."""

    members: Members
    routes: tuple[TopicRouteData, ...]


def plan_rebalance(
    group: str | None,
    before: Side,  # members and routes before; both sides hold the same topics in the same order
    after: Side,
    *,
    states: States | None = None,
    changes: Sequence[str] = (),
    placeholders: Iterable[str] = (),
    explain: bool = False,
) -> RebalancePlan:
    """What happens to each queue when the group goes from one side to the other (raises AllocationError)."""
    was, becomes = assignments(before, explain=explain), assignments(after, explain=explain)
    topics, summary = _change(was, becomes, before, after, states or {})
    return RebalancePlan(
        group=group,
        strategy=before.members.name,
        strategy_after=after.members.name,
        strategy_origin="given",
        changes=tuple(changes),
        topics=topics,
        consumers=tuple(_consumers(was, becomes, topics, set(placeholders))),
        sorted_consumers_before=tuple(sort_client_ids(before.members.client_ids)),
        sorted_consumers_after=tuple(sort_client_ids(after.members.client_ids)),
        summary=summary,
        convergence=None,
        comparison=(Comparison(before.members.name, after.members.name, summary),),
    )


def assignments(side: Side, *, explain: bool = False) -> list[Assignment]:
    return [assign(route, side.members, explain=explain) for route in side.routes]


def summary_of(was: list[Assignment], before: Side, after: Side, states: States) -> Summary:
    """The plan's summary alone, where the assignments before are known."""
    return _change(was, assignments(after), before, after, states)[1]


def _change(
    was: list[Assignment], becomes: list[Assignment], before: Side, after: Side, states: States
) -> tuple[tuple[TopicPlan, ...], Summary]:
    topics = tuple(TopicPlan(old.topic, tuple(_moves(old, new, states))) for old, new in zip(was, becomes, strict=True))
    writable = [sum(len(route.publish_queues()) for route in side.routes) for side in (before, after)]
    summary = _summary(was, becomes, topics, writable)
    if not before.routes:  # POP gives out all of its messages: no consumer owns a queue, and none is idle
        summary = replace(summary, before=_only_counted(before), after=_only_counted(after))
    return topics, summary


def _only_counted(side: Side) -> Spread:
    return replace(spread({}, side.members.client_ids), idle=0, queues_per_consumer=None)


def compare(
    plan: RebalancePlan, before: Side, after: Side, strategies: Iterable[str], placeholders: Sequence[str] = ()
) -> RebalancePlan:
    """The plan with the same change under other strategies (raises AllocationError)."""
    others: list[Comparison] = []
    for strategy in runnable(strategies, before.members):
        old, new = (replace(side, members=under(side.members, strategy)) for side in (before, after))
        if old.members.name != plan.strategy:
            other, _ = over_places(plan_rebalance(None, old, new), old, new, placeholders)
            others += other.comparison
    return replace(plan, comparison=(*plan.comparison, *others))


def _moves(old: Assignment, new: Assignment, states: States) -> Iterable[Move]:
    everybody = new.strategy == BROADCASTING
    for queue in sort_queues({*old.queues, *new.queues}):
        state = states.get(queue, QueueState())
        was, becomes = old.owners.get(queue), new.owners.get(queue)
        yield Move(
            broker_name=queue.broker_name,
            queue_id=queue.queue_id,
            owners_before=was or (),
            owners_after=becomes or (),
            change=change_of(was, becomes, everybody=everybody),
            owners_observed=state.sorted_owners,
            lag=state.lag,
            reason_before=old.reasons.get(queue),
            reason_after=new.reasons.get(queue),
        )


def change_of(was: tuple[str, ...] | None, becomes: tuple[str, ...] | None, *, everybody: bool = False) -> Change:
    """None is a queue that is not on that side; where everybody reads it, others that come or go are no move."""
    if was is None:
        return ADDED
    if becomes is None:
        return REMOVED
    if was == becomes or (everybody and was and becomes):
        return SAME
    if not was:
        return ASSIGNED
    return MOVED if becomes else UNASSIGNED


def _summary(
    was: list[Assignment], becomes: list[Assignment], topics: tuple[TopicPlan, ...], writable: Sequence[int]
) -> Summary:
    moves = [move for topic in topics for move in topic.queues]
    changes = Counter(move.change for move in moves)
    ids_before, ids_after = _ids(was), _ids(becomes)
    everybody = any(assignment.strategy == BROADCASTING for assignment in becomes)
    least = [
        0 if everybody else minimum_moves(old.owners, new.queues, ids_after)
        for old, new in zip(was, becomes, strict=True)
    ]
    after = spread(merged(becomes), ids_after, broadcasting=everybody)
    return Summary(
        moved=changes[MOVED],
        minimum_moves=None if (fewest := sum_if_known(least)) is None else min(fewest, changes[MOVED]),
        newly_assigned=changes[ASSIGNED],
        newly_unassigned=changes[UNASSIGNED],
        added=changes[ADDED],
        removed=changes[REMOVED],
        lag_moved=_lag(move for move in moves if move.change == MOVED),
        writable_queues_before=writable[0],
        writable_queues_after=writable[1],
        idle=after.idle,
        unassigned=after.unassigned,
        duplicate_owners=after.duplicate_owners,
        imbalance=after.imbalance,
        before=spread(merged(was), ids_before, broadcasting=everybody),
        after=after,
        moved_range=MovedRange(changes[MOVED], changes[MOVED]),
        lag_unassigned=_lag(move for move in moves if not move.owners_after and move.change != REMOVED),
        lag_removed=_lag(move for move in moves if move.change == REMOVED),
        observed=_observed(moves, everybody=everybody),
    )


def _observed(moves: Iterable[Move], *, everybody: bool) -> ObservedOwners | None:
    """Of queues before the change only: what a CONFIG list invents nobody can have observed."""
    seen = [(move, owners) for move in moves if (owners := move.owners_observed) is not None and move.change != ADDED]
    if not seen:
        return None
    return ObservedOwners(
        queues=len(seen),
        unassigned=sum(not owners for _, owners in seen),
        duplicate_owners=0 if everybody else sum(len(owners) > 1 for _, owners in seen),
        mismatches=sum(owners != move.owners_before for move, owners in seen),
        moved=0
        if everybody
        else sum(bool(owners and move.owners_after) and owners != move.owners_after for move, owners in seen),
    )


def _ids(assignments: list[Assignment]) -> tuple[str, ...]:
    return assignments[0].client_ids if assignments else ()


def _lag(moves: Iterable[Move]) -> int | None:
    return sum_if_known(move.lag for move in moves if move.change != ADDED)


def _consumers(
    was: list[Assignment], becomes: list[Assignment], topics: tuple[TopicPlan, ...], placeholders: set[str]
) -> Iterable[ConsumerPlan]:
    ids_before, ids_after = _ids(was), _ids(becomes)
    processes_before, processes_after = Counter(ids_before), Counter(ids_after)
    indexes_before, indexes_after = first_indexes(ids_before), first_indexes(ids_after)
    moves = [move for topic in topics for move in topic.queues]
    seen = [move.owners_observed for move in moves if move.owners_observed is not None]
    observed = Counter(client_id for owners in seen for client_id in owners)
    queues_before = counts(merged(was), processes_before)
    queues_after = counts(merged(becomes), processes_after)
    gains: dict[str, list[Move]] = {}
    losses: dict[str, list[Move]] = {}
    for move in moves:
        old, new = set(move.owners_before), set(move.owners_after)
        for client_id in new - old:
            gains.setdefault(client_id, []).append(move)
        for client_id in old - new:
            losses.setdefault(client_id, []).append(move)
    for client_id in sort_client_ids({*ids_before, *ids_after}):
        gained, lost = gains.get(client_id, []), losses.get(client_id, [])
        yield ConsumerPlan(
            client_id=client_id,
            index_before=indexes_before.get(client_id),
            index_after=indexes_after.get(client_id),
            processes_before=processes_before[client_id],
            processes_after=processes_after[client_id],
            queues_before=queues_before.get(client_id, 0),
            queues_after=queues_after.get(client_id, 0),
            gained=len(gained),
            lost=len(lost),
            lag_gained=_lag(gained),
            lag_lost=_lag(lost),
            placeholder=client_id in placeholders,
            idle_reason=None if queues_after.get(client_id, 1) else why_idle(client_id, becomes),
            queues_observed=observed[client_id] if seen else None,
        )


_MOST_WORK = 50_000


def over_places(
    plan: RebalancePlan, before: Side, after: Side, placeholders: Sequence[str], states: States | None = None
) -> tuple[RebalancePlan, tuple[Summary, ...]]:
    """The plan with the range of its moves over the places where the new members may sort, and a summary for each.

    Where the ids themselves decide (CONSISTENT_HASH, zones, hosts) that is not known.
    """
    if not placeholders or plan.broadcasting:
        return plan, ()
    places, complete = _summaries(before, after, placeholders, states)
    summary = replace(plan.summary, moved_range=_range(places, complete))
    own = replace(plan.comparison[0], summary=summary)
    return replace(plan, summary=summary, comparison=(own, *plan.comparison[1:])), places


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


PLAN_FIGURES = declared(Summary)


def try_on_plan(condition: Condition, summary: Summary, orders: Iterable[Summary] = ()) -> TriedCondition:
    """Whether the condition is met in a plan, or in any order of the client IDs that are not known yet.

    The answer has the largest figure among those that meet the condition, otherwise an unknown one, otherwise the
    largest.
    """
    tried = [condition.judge(each) for each in (summary, *orders)]
    met = [each for each in tried if each.met]
    unknown = [each for each in tried if each.met is None]
    return max(met or unknown or tried, key=lambda each: each.value or 0)
