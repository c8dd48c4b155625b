"""The plan of a change: both assignments, queue by queue and consumer by consumer, and its conditions."""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from itertools import combinations_with_replacement
from math import comb

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import BY_PLACE
from rmqlb.engine.allocate.strategy import first_indexes
from rmqlb.engine.assignment.assign import (
    Members,
    assign,
    counts,
    merged,
    minimum_moves,
    runnable,
    spread,
    under,
    why_idle,
)
from rmqlb.engine.conditions import Condition, declared
from rmqlb.model.group import BROADCASTING, QueueState, States
from rmqlb.model.message_queue import grouped, sort_client_ids, sort_queues
from rmqlb.model.owners import Assignment, Change
from rmqlb.model.plan import (
    Comparison,
    ConsumerPlan,
    Move,
    MovedRange,
    ObservedOwners,
    RebalancePlan,
    Summary,
    TopicPlan,
)
from rmqlb.model.result import TriedCondition, sum_if_known
from rmqlb.model.route import TopicRouteData


class Side(Struct, frozen=True):
    members: Members
    routes: tuple[TopicRouteData, ...]

    def assign(self, *, explain: bool = False) -> list[Assignment]:
        return [assign(route, self.members, explain=explain) for route in self.routes]


def plan_rebalance(
    group: str | None,
    before: Side,
    after: Side,
    *,
    states: States | None = None,
    changes: Sequence[str] = (),
    placeholders: Iterable[str] = (),
    explain: bool = False,
) -> RebalancePlan:
    """The change of each queue; both sides hold the same topics in the same order (raises AllocationError)."""
    was, becomes = before.assign(explain=explain), after.assign(explain=explain)
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


def compare(
    plan: RebalancePlan, before: Side, after: Side, strategies: Iterable[str], placeholders: Sequence[str] = ()
) -> RebalancePlan:
    others: list[Comparison] = []
    for strategy in runnable(strategies, before.members):
        old, new = (replace(side, members=under(side.members, strategy)) for side in (before, after))
        if old.members.name != plan.strategy:
            other, _ = over_places(plan_rebalance(None, old, new), old, new, placeholders)
            others += other.comparison
    return replace(plan, comparison=(*plan.comparison, *others))


def _moves(old: Assignment, new: Assignment, states: States) -> Iterable[Move]:
    for queue in sort_queues({*old.queues, *new.queues}):
        state, was, becomes = states.get(queue, QueueState()), old.owners.get(queue), new.owners.get(queue)
        yield Move(
            broker_name=queue.broker_name,
            queue_id=queue.queue_id,
            owners_before=was or (),
            owners_after=becomes or (),
            change=change_of(was, becomes, everybody=new.strategy == BROADCASTING),
            owners_observed=state.sorted_owners,
            lag=state.lag,
            reason_before=old.reasons.get(queue),
            reason_after=new.reasons.get(queue),
        )


def change_of(was: tuple[str, ...] | None, becomes: tuple[str, ...] | None, *, everybody: bool = False) -> Change:
    """The kind of change of a queue; None is a queue absent from that side. A queue that all read does not move."""
    if was == becomes or (everybody and was and becomes):
        return "same"
    if was is None:
        return "added"
    if becomes is None:
        return "removed"
    if not was:
        return "assigned"
    return "moved" if becomes else "unassigned"


def _change(
    was: Sequence[Assignment], becomes: Sequence[Assignment], before: Side, after: Side, states: States
) -> tuple[tuple[TopicPlan, ...], Summary]:
    topics = tuple(TopicPlan(old.topic, tuple(_moves(old, new, states))) for old, new in zip(was, becomes, strict=True))
    moves = [move for topic in topics for move in topic.queues]
    number = Counter(move.change for move in moves)
    everybody, ids = after.members.broadcasting, after.members.client_ids
    fewest = sum_if_known(
        0 if everybody else minimum_moves(old.owners, new.queues, ids) for old, new in zip(was, becomes, strict=True)
    )
    spreads = [
        spread(merged(assigned), side.members.client_ids, broadcasting=everybody)
        for assigned, side in ((was, before), (becomes, after))
    ]
    if not topics:  # POP gives out all messages: no consumer owns a queue, and none is idle
        spreads = [replace(each, idle=0, queues_per_consumer=None) for each in spreads]
    writable = [sum(len(route.publish_queues()) for route in side.routes) for side in (before, after)]
    return topics, Summary(
        moved=number["moved"],
        minimum_moves=None if fewest is None else min(fewest, number["moved"]),
        newly_assigned=number["assigned"],
        newly_unassigned=number["unassigned"],
        added=number["added"],
        removed=number["removed"],
        lag_moved=_lag(move for move in moves if move.change == "moved"),
        writable_queues_before=writable[0],
        writable_queues_after=writable[1],
        **{name: getattr(spreads[1], name) for name in ("idle", "unassigned", "duplicate_owners", "imbalance")},
        before=spreads[0],
        after=spreads[1],
        moved_range=MovedRange(number["moved"], number["moved"]),
        lag_unassigned=_lag(move for move in moves if not move.owners_after and move.change != "removed"),
        lag_removed=_lag(move for move in moves if move.change == "removed"),
        observed=_observed(moves, everybody=everybody),
    )


def _observed(moves: Iterable[Move], *, everybody: bool) -> ObservedOwners | None:
    """The observed owners of queues before the change; queues that only a CONFIG list names have none."""
    seen = [(move, owners) for move in moves if (owners := move.owners_observed) is not None and move.change != "added"]
    if not seen:
        return None
    away = sum(bool(owners and move.owners_after) and owners != move.owners_after for move, owners in seen)
    return ObservedOwners(
        queues=len(seen),
        unassigned=sum(not owners for _, owners in seen),
        duplicate_owners=0 if everybody else sum(len(owners) > 1 for _, owners in seen),
        mismatches=sum(owners != move.owners_before for move, owners in seen),
        moved=0 if everybody else away,
    )


def _lag(moves: Iterable[Move]) -> int | None:
    return sum_if_known(move.lag for move in moves if move.change != "added")


def _consumers(
    was: Sequence[Assignment], becomes: Sequence[Assignment], topics: Sequence[TopicPlan], placeholders: Set[str]
) -> Iterable[ConsumerPlan]:
    ids_before, ids_after = (assigned[0].client_ids if assigned else () for assigned in (was, becomes))
    processes_before, processes_after = Counter(ids_before), Counter(ids_after)
    indexes_before, indexes_after = first_indexes(ids_before), first_indexes(ids_after)
    queues_before, queues_after = counts(merged(was), ids_before), counts(merged(becomes), ids_after)
    moves = [move for topic in topics for move in topic.queues]
    seen = [move.owners_observed for move in moves if move.owners_observed is not None]
    observed = Counter(client_id for owners in seen for client_id in owners)
    gains = grouped((i, move) for move in moves for i in {*move.owners_after} - {*move.owners_before})
    losses = grouped((i, move) for move in moves for i in {*move.owners_before} - {*move.owners_after})
    for client_id in sort_client_ids({*ids_before, *ids_after}):
        yield ConsumerPlan(
            client_id=client_id,
            index_before=indexes_before.get(client_id),
            index_after=indexes_after.get(client_id),
            processes_before=processes_before[client_id],
            processes_after=processes_after[client_id],
            queues_before=queues_before.get(client_id, 0),
            queues_after=queues_after.get(client_id, 0),
            gained=len(gains.get(client_id, ())),
            lost=len(losses.get(client_id, ())),
            lag_gained=_lag(gains.get(client_id, ())),
            lag_lost=_lag(losses.get(client_id, ())),
            placeholder=client_id in placeholders,
            idle_reason=None if queues_after.get(client_id, 1) else why_idle(client_id, becomes),
            queues_observed=observed[client_id] if seen else None,
        )


_MOST_WORK = 50_000


def over_places(
    plan: RebalancePlan, before: Side, after: Side, placeholders: Sequence[str], states: States | None = None
) -> tuple[RebalancePlan, tuple[Summary, ...]]:
    """The plan with the range of its moves over the places where new consumers may sort, and a summary for each.

    The range is unknown where the IDs themselves decide (CONSISTENT_HASH, zones, hosts).
    """
    if not placeholders or plan.broadcasting:
        return plan, ()
    found: list[Summary] = []
    over = None
    if before.members.name in BY_PLACE and after.members.name in BY_PLACE:
        real = [each for each in sort_client_ids(after.members.client_ids) if each not in placeholders]
        queues = sum(len(route.subscribe_queues()) for route in after.routes)
        places, complete = _places(len(real) + 1, len(placeholders), queues)
        was = before.assign()
        for taken in places:
            # Nothing sorts between an ID and the same ID with a NUL after it.
            ids = (f"{real[place - 1] if place else ''}\0{index:06d}" for index, place in enumerate(taken))
            side = replace(after, members=replace(after.members, client_ids=(*real, *ids)))
            found.append(_change(was, side.assign(), before, side, states or {})[1])
        moved = [summary.moved for summary in found]
        over = MovedRange(min(moved), max(moved), complete)
    summary = replace(plan.summary, moved_range=over)
    own = replace(plan.comparison[0], summary=summary)
    return replace(plan, summary=summary, comparison=(own, *plan.comparison[1:])), tuple(dict.fromkeys(found))


def _places(number: int, joiners: int, queues: int) -> tuple[Iterable[tuple[int, ...]], bool]:
    """The ways to sort the joiners into the places, and whether these are all; at most `_MOST_WORK` queues."""
    if comb(number + joiners - 1, joiners) * queues <= _MOST_WORK:
        return combinations_with_replacement(range(number), joiners), True
    together = range(number) if number * queues <= _MOST_WORK else (0, number // 2, number - 1)
    return ((place,) * joiners for place in together), False


PLAN_FIGURES = declared(Summary)


def try_on_plan(condition: Condition, summary: Summary, orders: Iterable[Summary] = ()) -> TriedCondition:
    """Whether the condition is met in the plan, or in any order of unknown client IDs.

    The result has the largest figure among those that meet the condition, otherwise of unknown ones, otherwise of all.
    """
    tried = [condition.judge(each) for each in (summary, *orders)]
    met = [each for each in tried if each.met]
    unknown = [each for each in tried if each.met is None]
    return max(met or unknown or tried, key=lambda each: each.value or 0)
