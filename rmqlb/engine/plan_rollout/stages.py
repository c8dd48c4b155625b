"""The stages of a rollout at rest: who is in the group, with which strategy, and what that costs.

The consumers that restart are numbered as clients sort them, and a stage is the bit mask of those that have changed.
Each consumer allocates by itself, so a queue belongs to those of the mask that take it under the new strategy, and to
those outside it that take it under the old one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cache
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate import full_name
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.engine.rebalance.events import restarts
from rmqlb.errors import DataError, UsageError
from rmqlb.model.assignment import Assignment
from rmqlb.model.group_scenario import Event
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.plan_rollout import MixedStage
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import suggestion

_ROUNDS = 30
_STEPS = 3_000_000

EXACT_MEMBERS = 18  # their 262,144 stages are searched in a quarter of a second; each further member doubles that
_MOST_STEPS, _MOST_ORDERS = 2_000_000, 4
"""Shares and queues computed for the stages of all orders, some microseconds each; and the number of orders."""
EXACT_WORK = 60_000  # visits of queues, or of kinds of handover, in a search; about half a second


class RolloutRequest(Struct, frozen=True, kw_only=True):
    # None is everybody, or with a change of strategy those that do not run the new one yet
    restart: Sequence[str] | None = None
    to_strategy: str | None = None  # name of the strategy that they come back with; None for a mere restart
    becomes: Mapping[str, str] | None = None  # client id → the id afterwards, of those whose id changes
    down_us: int  # how long each is away
    pauses_us: Sequence[int]  # from one going down to the next, each to be tried
    at_once: Sequence[int] = (1,)  # how many go down together, each to be tried
    order: Sequence[str] | None = None


class RolloutModel(Struct, frozen=True):
    members: Members  # the group before; what is known of the ids to come is in it as well
    client_ids: tuple[str, ...]  # the members that are restarted, sorted as clients sort them
    becomes: Mapping[str, str]  # client id → the id after the restart, of those whose id changes
    to_strategy: str | None  # what they run afterwards; None leaves each its own

    @property
    def name_after(self) -> str:
        if self.to_strategy is None:
            return self.members.name
        return full_name(self.to_strategy, self.members.settings)


def rollout_model(
    members: Members, restart: Sequence[str] | None, to_strategy: str | None, becomes: Mapping[str, str] | None
) -> RolloutModel:
    """Check a request and resolve who restarts (raises DataError, UsageError)."""
    if not members.client_ids:
        raise DataError("the group has no consumers: there is nothing to restart")
    chosen = _chosen(members, restart, to_strategy)
    present, becomes = Counter(members.client_ids), becomes or {}
    for client_id in chosen:
        if present[client_id] > 1:
            raise DataError(
                f"{present[client_id]} processes share the client ID {client_id}: "
                "the restart of one looks like that of another",
                hint="give each its own instanceName first, or restart only the other consumers",
            )
    for old in becomes:
        if not present[old]:
            raise UsageError(f"{old} is not in the group", hint=suggestion("consumers", old, present))
    changes = {old: new for old, new in becomes.items() if new != old and old in chosen}
    taken = Counter(changes.values())
    for old, new in changes.items():
        if not new:
            raise UsageError(f"{old} cannot come back with an empty client id")
        if present[new] or taken[new] > 1:
            raise UsageError(
                f"{old} cannot come back as {new}: another consumer has that ID",
                hint="processes that share an id read the same queues; choose an id of its own",
            )
    own, topics = members.strategy_of, members.subscribed
    members = replace(
        members,
        strategy_of={**own, **{new: own[old] for old, new in changes.items() if old in own}},
        subscribed={**topics, **{new: topics[old] for old, new in changes.items() if old in topics}},
    )
    return RolloutModel(members, tuple(sort_client_ids(chosen)), changes, to_strategy)


def members_when(rollout: RolloutModel, changed: Set[str], away: Set[str] = frozenset()) -> Members:
    """The group while some consumers are back already (`changed`, by their IDs of before) and others are away."""
    ids = []
    strategy_of = dict(rollout.members.strategy_of)
    for client_id in rollout.members.client_ids:
        if client_id in away:
            continue
        if client_id not in changed:
            ids.append(client_id)
            continue
        new_id = rollout.becomes.get(client_id, client_id)
        ids.append(new_id)
        if rollout.to_strategy is not None:
            strategy_of[new_id] = rollout.to_strategy
    return replace(rollout.members, client_ids=tuple(ids), strategy_of=strategy_of)


def assigned(routes: Sequence[TopicRouteData], members: Members) -> list[Assignment]:
    """Who owns what at rest (raises DataError if a client throws: what it keeps depends on what it had)."""
    assignments = [assign(route, members) for route in routes]
    for assignment in assignments:
        for client_id, failure in assignment.failures.items():
            strategy = members.strategy_for(client_id)
            raise DataError(
                f"topic {assignment.topic}: under {strategy} the client of {client_id} throws: {failure}",
                hint="such a consumer keeps what it holds, which cannot be planned; correct its settings first",
            )
    return assignments


def badly_owned(rollout: RolloutModel, routes: Sequence[TopicRouteData], *, orderly: bool) -> int:
    """Queues with duplicate owners or none both before and after a mere restart."""
    before = assigned(routes, rollout.members)
    after = assigned(routes, members_when(rollout, set(rollout.client_ids)))
    bad = (0,) if orderly else (0, 2)
    return sum(
        min(len(owners), 2) in bad and min(len(becomes.owners.get(queue, ())), 2) in bad
        for was, becomes in zip(before, after, strict=True)
        for queue, owners in was.owners.items()
    )


def events_of(
    rollout: RolloutModel, order: Sequence[str], *, at_once: int, pause_us: int, down_us: int
) -> tuple[Event, ...]:
    """The restarts in that order, one every `pause_us`; each consumer returns with its new strategy."""
    return restarts(
        order,
        0,
        every_us=pause_us,
        down_us=down_us,
        at_once=at_once,
        becomes=rollout.becomes,
        strategy=rollout.to_strategy,
    )


def _chosen(members: Members, restart: Sequence[str] | None, to_strategy: str | None) -> list[str]:
    present = dict.fromkeys(sort_client_ids(members.client_ids))
    named = present if restart is None else dict.fromkeys(restart)
    for client_id in named:
        if client_id not in present:
            raise UsageError(f"{client_id} is not in the group", hint=suggestion("consumers", client_id, present))
    if restart is not None and len(named) < len(restart):
        twice = next(client_id for client_id, times in Counter(restart).items() if times > 1)
        raise UsageError(f"{twice} is to restart twice", hint="name each consumer once")
    if not named:
        raise UsageError("no consumer is to restart")
    if to_strategy is None:
        return list(named)
    after = full_name(to_strategy, members.settings)
    others = [each for each in named if full_name(members.strategy_for(each), members.settings) != after]
    if not others or (restart is not None and len(others) < len(named)):
        already = next(client_id for client_id in named if client_id not in others)
        raise UsageError(f"{already} runs {after} already", hint="a mere restart is planned without a new strategy")
    return others


class PairCosts(Struct, frozen=True):
    """The costs of stages in which each queue concerns at most two consumers."""

    constant: int  # in every stage
    single: Sequence[int]  # member → in addition when it has changed
    pair: Sequence[Sequence[int]]  # member → member → in addition when both have; symmetric


def cost_of_each(costs: PairCosts) -> list[int]:
    """What every stage costs, by its bit mask.

    >>> cost_of_each(PairCosts(0, (1, 1), ((0, -2), (-2, 0))))  # two members that swap one queue
    [0, 1, 1, 0]
    """
    stages = [costs.constant]
    for member, alone in enumerate(costs.single):
        gains = [alone]
        for other in range(member):
            both = costs.pair[member][other]
            gains += [gain + both for gain in gains]
        stages += [cost + gain for cost, gain in zip(stages, gains, strict=True)]
    return stages


def least_order(cost_of: Sequence[int], at_once: int = 1) -> list[int]:
    """The order whose stages between the first change and the last cost least in all, found among all orders.

    `cost_of` has every stage by its bit mask. Of equal orders the one that keeps members in order from the last on.

    >>> least_order([0, 3, 1, 2, 5, 6, 2, 0])
    [1, 0, 2]
    """
    full = len(cost_of) - 1
    least = [0] * len(cost_of)
    for stage in range(1, full):
        rest, bit = stage & (stage - 1), stage & -stage
        smallest = least[stage ^ bit]
        while rest:
            bit = rest & -rest
            if least[stage ^ bit] < smallest:  # noqa: PLR1730 (this loop is the search; min doubles it)
                smallest = least[stage ^ bit]
            rest ^= bit
        rests = stage.bit_count() % at_once == 0
        least[stage] = smallest + cost_of[stage] if rests else smallest
    order = []
    stage = full
    while stage:
        bits = [1 << member for member in reversed(range(stage.bit_length())) if stage >> member & 1]
        last = min(bits, key=lambda bit: least[stage ^ bit])
        order.append(last.bit_length() - 1)
        stage ^= last
    return order[::-1]


def inserted_order(costs: PairCosts) -> list[int]:
    """A good order for many consumers: the better of two starts, improved until no move of one consumer helps."""
    ends = [improved_order(start, costs) for start in (list(range(len(costs.single))), _greedy(costs))]
    return min(ends, key=lambda order: order_cost(order, costs))


def improved_order(start: Sequence[int], costs: PairCosts) -> list[int]:
    """Put each consumer in turn where it costs least, for at most 30 rounds (fewer beyond some 300 consumers)."""
    order = list(start)
    gains = _gains(order, costs)
    rounds = max(2, min(_ROUNDS, _STEPS // len(order) ** 2))
    for _ in range(rounds):
        if not sum(_put_best(member, order, gains, costs) for member in range(len(order))):
            break
    return order


def order_cost(order: Sequence[int], costs: PairCosts) -> int:
    """The total cost of the stages between the first change and the last, one change at a time."""
    gains = _gains(order, costs)
    stages = list(accumulate((gains[member] for member in order), initial=costs.constant))
    return sum(stages[1:-1])


def _gains(order: Sequence[int], costs: PairCosts) -> list[int]:
    """Consumer → what its change adds to the stage before it."""
    gains = [0] * len(order)
    for place, member in enumerate(order):
        row = costs.pair[member]
        gains[member] = costs.single[member] + sum(row[other] for other in order[:place])
    return gains


def _greedy(costs: PairCosts) -> list[int]:
    gains = list(costs.single)
    left = list(range(len(gains)))
    order = []
    while left:
        best = min(left, key=lambda member: gains[member])
        left.remove(best)
        order.append(best)
        for member in left:
            gains[member] += costs.pair[member][best]
    return order


def _put_best(member: int, order: list[int], gains: list[int], costs: PairCosts) -> bool:
    """Move the member to where it costs least, if that is less than now.

    To let it change one place later costs what the other adds without it, less what it adds itself.
    """
    row, was = costs.pair[member], order.index(member)
    order.pop(was)
    own, cost = costs.single[member], 0
    totals = [0]
    for place, other in enumerate(order):
        cost += gains[other] - (row[other] if place >= was else 0) - own
        own += row[other]
        totals.append(cost)
    best = min(totals)
    place = was if totals[was] == best else totals.index(best)
    order.insert(place, member)
    for other in order[place + 1 : was + 1]:
        gains[other] += row[other]
    for other in order[was:place]:
        gains[other] -= row[other]
    gains[member] = costs.single[member] + sum(row[other] for other in order[:place])
    return place != was


class Handover(Struct, frozen=True):
    kept: int  # how many own it before and after, or are not restarted
    losers: int  # bit mask of those that own it under the old strategy only
    gainers: int  # bit mask of those that own it under the new one only

    def owners(self, changed: int) -> int:
        return self.kept + (self.losers & ~changed).bit_count() + (self.gainers & changed).bit_count()


class Counts(Struct, frozen=True):
    """Queues of a stage without exactly one owner."""

    several: int
    none: int

    @property
    def overlap(self) -> int:
        return self.several + self.none


class Overlaps(Struct, frozen=True):
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
    order: tuple[str, ...]
    total: int  # queues unassigned or with duplicate owners, summed over its mixed stages
    is_least: bool


def overlaps(rollout: RolloutModel, routes: Sequence[TopicRouteData], *, orderly: bool) -> Overlaps:
    """Count the stages' gaps and overlaps (raises DataError); orderly queues have no second owner, due to locks.

    If no ID changes, all stages have the same list of consumers, so two assignments are enough: a queue that goes from
    x to y has no owner while only x has changed, and two while only y has.
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
    """How queues change owners if IDs stay → how many queues (raises DataError if a client throws)."""
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
    """The order whose mixed stages have the fewest gaps and overlaps in total; None if a search takes too long.

    All orders are searched for up to 18 consumers if each queue concerns at most two of them.
    """
    number, pairs = len(known.client_ids), known.pairs
    is_least = True
    if pairs is not None and number <= EXACT_MEMBERS:
        order = least_order(cost_of_each(pairs), at_once)
    elif number <= EXACT_MEMBERS and known.work << number <= EXACT_WORK:
        order = least_order([known.counts(changed).overlap for changed in range(1 << number)], at_once)
    elif pairs is not None:
        order, is_least = inserted_order(pairs), False
    else:
        return None
    named = tuple(known.client_ids[index] for index in order)
    total = total_overlap(mixed_stages(known, named, at_once))
    return LeastOverlap(named, total, is_least=is_least or (at_once == 1 and total == known.bound))


def mixed_stages(known: Overlaps, order: Sequence[str], at_once: int) -> tuple[MixedStage, ...]:
    """The stages between the first change and the last, in this order of client ids.

    >>> from rmqlb.engine.assignment.assign import Members
    >>> from rmqlb.model.route import BrokerData, QueueData
    >>> route = TopicRouteData("T", (QueueData("a", 4, 4, 6),), (BrokerData("c", "a", {0: "a:10911"}),))
    >>> change = rollout_model(Members(("x", "y"), "AVG"), None, "AVG_BY_CIRCLE", None)
    >>> mixed_stages(overlaps(change, [route], orderly=False), ("x", "y"), 1)
    (MixedStage(changed=1, next_id='y', duplicate_owners=1, unassigned=1),)

    Under AVG x has queues 0 and 1, y has 2 and 3; under AVG_BY_CIRCLE x has 0 and 2, y has 1 and 3. While only x has
    changed, both have queue 2, and nobody has queue 1.
    """
    bit = {client_id: 1 << index for index, client_id in enumerate(known.client_ids)}
    stages = []
    for changed in range(at_once, len(order), at_once)[: known.most_stages]:
        counts = known.counts(sum(bit[client_id] for client_id in order[:changed]))
        stages.append(MixedStage(changed, order[changed], counts.several, counts.none))
    return tuple(stages)


def total_overlap(stages: Sequence[MixedStage]) -> int:
    return sum(stage.duplicate_owners + stage.unassigned for stage in stages)


def added_overlap(known: Overlaps, stages: Sequence[MixedStage]) -> int:
    """The same without the queues that are so anyway."""
    return total_overlap(stages) - known.anyway * len(stages)


def _counts(kinds: Mapping[Handover, int], changed: int, *, orderly: bool) -> Counts:
    owners = [(kind.owners(changed), number) for kind, number in kinds.items()]
    several = 0 if orderly else sum(number for count, number in owners if count > 1)
    return Counts(several, sum(number for count, number in owners if count == 0))


def _pair_costs(kinds: Mapping[Handover, int], members: int, *, orderly: bool) -> PairCosts | None:
    """Each kind of handover between two members is a quadratic function of whether either has changed."""
    constant, single = 0, [0] * members
    pair = [[0] * members for _ in range(members)]
    for kind, number in kinds.items():
        involved = [index for index in range(members) if (kind.losers | kind.gainers) >> index & 1]
        if len(involved) > 2:
            return None

        def cost(changed: int, one: Mapping[Handover, int] = {kind: number}) -> int:
            return _counts(one, changed, orderly=orderly).overlap

        constant += cost(0)
        for index in involved:
            single[index] += cost(1 << index) - cost(0)
        if len(involved) == 2:
            first, second = involved
            both = cost(1 << first | 1 << second) - cost(1 << first) - cost(1 << second) + cost(0)
            pair[first][second] += both
            pair[second][first] += both
    return PairCosts(constant, single, pair)


def _by_assigning(rollout: RolloutModel, routes: Sequence[TopicRouteData], orderly: bool) -> Overlaps:
    """If IDs change, each stage has another order of consumers, so each is assigned on its own."""
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
