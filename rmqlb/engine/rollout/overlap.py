"""A change of strategy, member by member: the overlaps and gaps while some run the new one already.

Rule of this file: everything is at rest. The members that are restarted are numbered as clients sort them, and a stage
is the bit mask of those that run the new strategy. Every member allocates by itself, so a queue then belongs to those
of the mask that take it under the new strategy, and those outside it that take it under the old one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from msgspec import Struct

from rmqlb.engine.rollout.orders import PairCosts, cost_of_each, inserted_order, least_order
from rmqlb.engine.rollout.rollout_model import RolloutModel, assigned, members_when
from rmqlb.model.rollout import MixedStage
from rmqlb.model.route import TopicRouteData

EXACT_MEMBERS = 18  # their 262,144 stages are searched in a quarter of a second; each further member doubles that
_MOST_STEPS, _MOST_ORDERS = 2_000_000, 4
"""Shares and queues computed for the stages of all orders, some microseconds each; and how many orders there are."""
EXACT_WORK = 60_000  # looks at a queue, or at a kind of handover, that a search may take; about half a second


class Handover(Struct, frozen=True):
    """How the owners of a queue change."""

    kept: int  # how many own it before and after, or are not restarted
    losers: int  # bit mask of those that own it under the old strategy only
    gainers: int  # bit mask of those that own it under the new one only

    def owners(self, changed: int) -> int:
        return self.kept + (self.losers & ~changed).bit_count() + (self.gainers & changed).bit_count()


class Counts(Struct, frozen=True):
    """Queues of a stage that are not read by exactly one member."""

    several: int
    none: int

    @property
    def overlap(self) -> int:
        return self.several + self.none


class Overlaps(Struct, frozen=True):
    """What is known of the stages of a change of strategy."""

    client_ids: tuple[str, ...]
    counts: Callable[[int], Counts]  # bit mask → the stage
    # what the stages cost by pairs of members; None when more than two have to do with one another
    pairs: PairCosts | None
    work: int  # queues or kinds of handover that one call of `counts` looks at
    # queues unassigned or with duplicate owners in every stage, because no restarted member gains or loses them; 0
    # where that is not known
    anyway: int
    bound: int  # no order, one member at a time, has less overlap than this in all
    most_stages: int = 1 << 30  # of an order, from its first change on, that are looked at


class LeastOverlap(Struct, frozen=True):
    """The order with the least overlap that was found."""

    order: tuple[str, ...]
    total: int  # queues unassigned or with duplicate owners, summed over its mixed stages
    is_least: bool


def overlaps(rollout: RolloutModel, routes: Sequence[TopicRouteData], *, orderly: bool) -> Overlaps:
    """What is to know of the stages (raises DataError); the broker's lock keeps a second owner out of an orderly queue.

    Without ids that change, the members' list is the same in each stage, and two assignments tell all: with a queue
    that goes from x to y, a stage in which only x has changed has no owner for it, one in which only y has, two.
    """
    if rollout.becomes:
        return _by_assigning(rollout, routes, orderly)
    kinds = handovers(rollout, routes)
    unmoved = {kind: number for kind, number in kinds.items() if not kind.losers | kind.gainers}
    anyway = _counts(unmoved, 0, orderly=orderly).overlap
    handed = sum(number for kind, number in kinds.items() if not kind.kept and kind.losers and kind.gainers)
    return Overlaps(
        rollout.client_ids,
        lambda changed: _counts(kinds, changed, orderly=orderly),
        _pair_costs(kinds, len(rollout.client_ids), orderly=orderly),
        work=len(kinds),
        anyway=anyway,
        bound=anyway * (len(rollout.client_ids) - 1) + (0 if orderly else handed),
    )


def handovers(rollout: RolloutModel, routes: Sequence[TopicRouteData]) -> Mapping[Handover, int]:
    """How queues change owners, of members whose ids stay → how many do so; DataError when a member's client throws."""
    bit = {client_id: 1 << index for index, client_id in enumerate(rollout.client_ids)}
    before = assigned(routes, rollout.members)
    after = assigned(routes, members_when(rollout, bit.keys()))
    kinds: Counter[Handover] = Counter()
    for route, old, new in zip(routes, before, after, strict=True):
        for queue in route.subscribe_queues():
            was, becomes = set(old.owners[queue]), set(new.owners[queue])
            losers, gainers = (sum(bit[client_id] for client_id in some) for some in (was - becomes, becomes - was))
            kinds[Handover(len(was & becomes), losers, gainers)] += 1
    return kinds


def least_overlap(known: Overlaps, at_once: int) -> LeastOverlap | None:
    """The order whose mixed stages have the fewest gaps and overlaps in all; None when it cannot be searched for.

    All orders are searched up to 18 members when no more than two have to do with any queue, else as long as it takes
    half a second or so.
    """
    order, searched = _searched(known, at_once)
    if order is None:
        return None
    named = tuple(known.client_ids[index] for index in order)
    total = total_overlap(mixed_stages(known, named, at_once))
    return LeastOverlap(named, total, is_least=searched or (at_once == 1 and total == known.bound))


def mixed_stages(known: Overlaps, order: Sequence[str], at_once: int) -> tuple[MixedStage, ...]:
    """The stages between the first change and the last, in this order of client ids.

    >>> from rmqlb.engine.assignment.assign import Members
    >>> from rmqlb.engine.rollout.rollout_model import rollout_model
    >>> from rmqlb.model.route import BrokerData, QueueData
    >>> route = TopicRouteData("T", (QueueData("a", 4, 4, 6),), (BrokerData("c", "a", {0: "a:10911"}),))
    >>> change = rollout_model(Members(("x", "y"), "AVG"), None, "AVG_BY_CIRCLE", None)
    >>> mixed_stages(overlaps(change, [route], orderly=False), ("x", "y"), 1)
    (MixedStage(changed=1, next_id='y', duplicate_owners=1, unassigned=1),)

    Under AVG x has the queues 0 and 1, y has 2 and 3; under AVG_BY_CIRCLE x has 0 and 2, y has 1 and 3. When x has
    changed and y has not, both have queue 2, and nobody has queue 1.
    """
    bit = {client_id: 1 << index for index, client_id in enumerate(known.client_ids)}
    stages = []
    for changed in range(at_once, len(order), at_once)[: known.most_stages]:
        counts = known.counts(sum(bit[client_id] for client_id in order[:changed]))
        stages.append(MixedStage(changed, order[changed], counts.several, counts.none))
    return tuple(stages)


def total_overlap(stages: Sequence[MixedStage]) -> int:
    """Queues unassigned or with duplicate owners, summed over the stages."""
    return sum(stage.duplicate_owners + stage.unassigned for stage in stages)


def added_overlap(known: Overlaps, stages: Sequence[MixedStage]) -> int:
    """The same without the queues that are so anyway."""
    return total_overlap(stages) - known.anyway * len(stages)


def _searched(known: Overlaps, at_once: int) -> tuple[list[int] | None, bool]:
    number = len(known.client_ids)
    if number <= EXACT_MEMBERS:
        if known.pairs is not None:
            return least_order(cost_of_each(known.pairs), at_once), True
        if known.work << number <= EXACT_WORK:
            return least_order([known.counts(changed).overlap for changed in range(1 << number)], at_once), True
    return None if known.pairs is None else inserted_order(known.pairs), False


def _counts(kinds: Mapping[Handover, int], changed: int, *, orderly: bool) -> Counts:
    several = none = 0
    for kind, number in kinds.items():
        owners = kind.owners(changed)
        if owners == 0:
            none += number
        elif owners > 1 and not orderly:
            several += number
    return Counts(several, none)


def _pair_costs(kinds: Mapping[Handover, int], members: int, *, orderly: bool) -> PairCosts | None:
    """Each kind of handover between two members is a quadratic function of whether either has changed."""
    constant, single = 0, [0] * members
    pair = [[0] * members for _ in range(members)]
    for kind, number in kinds.items():
        involved = [index for index in range(members) if (kind.losers | kind.gainers) >> index & 1]
        if len(involved) > 2:
            return None
        one = {kind: number}
        still = _counts(one, 0, orderly=orderly).overlap
        constant += still
        alone = [_counts(one, 1 << index, orderly=orderly).overlap - still for index in involved]
        for index, more in zip(involved, alone, strict=True):
            single[index] += more
        if len(involved) == 2:
            first, second = involved
            both = _counts(one, 1 << first | 1 << second, orderly=orderly).overlap - still - sum(alone)
            pair[first][second] += both
            pair[second][first] += both
    return PairCosts(constant, single, pair)


def _by_assigning(rollout: RolloutModel, routes: Sequence[TopicRouteData], orderly: bool) -> Overlaps:
    """Ids that change put the members in another order at each stage, so each is assigned on its own."""
    queues = [(index, queue) for index, route in enumerate(routes) for queue in route.subscribe_queues()]

    @cache
    def counts(changed: int) -> Counts:
        names = {client_id for index, client_id in enumerate(rollout.client_ids) if changed >> index & 1}
        assignments = assigned(routes, members_when(rollout, names))
        numbers = [len(assignments[index].owners[queue]) for index, queue in queues]
        return Counts(0 if orderly else sum(number > 1 for number in numbers), numbers.count(0))

    steps = len(queues) + len(routes) * len(rollout.members.client_ids)
    most = max(_MOST_STEPS // (_MOST_ORDERS * steps), 1)
    return Overlaps(rollout.client_ids, counts, None, work=len(queues), anyway=0, bound=0, most_stages=most)
