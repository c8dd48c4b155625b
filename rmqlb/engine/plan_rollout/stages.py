"""The stages of a rollout at rest: the consumers of the group, their strategies, the cost, and the cheapest order.

The consumers that restart are numbered as clients sort them, and a stage is the bit mask of the changed consumers.
Each consumer allocates by itself, so a queue belongs to the consumers of the mask that own it under the new strategy,
and to those outside the mask that own it under the old one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from math import comb

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate import full_name
from rmqlb.engine.assignment.assign import Members, Owners, assign
from rmqlb.errors import DataError, UsageError
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.plan import MixedStage
from rmqlb.model.route import TopicRouteData


class PairCosts(Struct, frozen=True):
    """The costs of stages in which each queue concerns at most two consumers."""

    constant: int  # of every stage
    single: Sequence[int]  # consumer → added when it has changed
    pair: Sequence[Sequence[int]]  # consumer → consumer → added when both have; symmetric


def cost_of_each(costs: PairCosts) -> list[int]:
    """The cost of every stage, by its bit mask."""
    stages = [costs.constant]
    for consumer, alone in enumerate(costs.single):
        gains = [alone]
        for other in range(consumer):
            both = costs.pair[consumer][other]
            gains += [gain + both for gain in gains]
        stages += [cost + gain for cost, gain in zip(stages, gains, strict=True)]
    return stages


def least_order(cost_of: Sequence[int], at_once: int = 1) -> list[int]:
    """The order whose stages between the first change and the last cost least in total.

    `cost_of` has every stage by its bit mask. Among equal orders, consumers stay in order from the last on.
    """
    full, least = len(cost_of) - 1, [0] * len(cost_of)
    for stage in range(1, full):
        rest, bit = stage & (stage - 1), stage & -stage
        smallest = least[stage ^ bit]
        while rest:
            bit = rest & -rest
            if least[stage ^ bit] < smallest:  # noqa: PLR1730 (this loop is the search; min triples it)
                smallest = least[stage ^ bit]
            rest ^= bit
        least[stage] = smallest + (cost_of[stage] if stage.bit_count() % at_once == 0 else 0)
    bits = [1 << consumer for consumer in reversed(range(full.bit_length()))]
    order, stage = list[int](), full
    while stage:
        last = min((least[stage ^ bit], place, bit) for place, bit in enumerate(bits) if stage & bit)[2]
        order.append(last.bit_length() - 1)
        stage ^= last
    return order[::-1]


def greedy_order(costs: PairCosts) -> list[int]:
    """A good order for many consumers: the next one is the consumer whose change costs least.

    For 20 to 100 consumers, a search for better places would lower the cost by only 1 to 6 %.
    """
    gains, left, order = list(costs.single), list(range(len(costs.single))), list[int]()
    while left:
        best = min(left, key=lambda consumer: gains[consumer])
        left.remove(best)
        order.append(best)
        for consumer in left:
            gains[consumer] += costs.pair[consumer][best]
    return order


EXACT_CONSUMERS = 18  # their 262,144 stages are searched in a quarter of a second; each further one doubles that
_MOST_STEPS, _MOST_ORDERS = 2_000_000, 4
"""Shares and queues computed for the stages of all orders, some microseconds each; and the number of orders."""
EXACT_WORK = 60_000  # visits of queues, or of kinds of handover, in a search; about half a second


class RolloutModel(Struct, frozen=True):
    members: Members  # the group before; what is known of the ids to come is in it as well
    client_ids: tuple[str, ...]  # the consumers that restart, sorted as clients sort them
    becomes: Mapping[str, str]  # client id → the id after the restart, of those whose id changes
    to_strategy: str | None  # the strategy afterwards; None leaves each its own

    @property
    def name_after(self) -> str:
        name = self.to_strategy
        return self.members.name if name is None else full_name(name, self.members.settings)

    @property
    def all_changed(self) -> int:
        return (1 << len(self.client_ids)) - 1

    def named(self, stage: int) -> set[str]:
        return {client_id for index, client_id in enumerate(self.client_ids) if stage >> index & 1}

    def members_when(self, changed: int, away: int = 0) -> Members:
        back, gone = self.named(changed), self.named(away)
        present = [client_id for client_id in self.members.client_ids if client_id not in gone]
        ids = tuple(self.becomes.get(each, each) if each in back else each for each in present)
        strategy_of = dict(self.members.strategy_of)
        if self.to_strategy is not None:
            strategy_of |= dict.fromkeys((self.becomes.get(each, each) for each in back), self.to_strategy)
        return replace(self.members, client_ids=ids, strategy_of=strategy_of)


def rollout_model(
    members: Members, restart: Sequence[str] | None, to_strategy: str | None, becomes: Mapping[str, str]
) -> RolloutModel:
    """Resolve who restarts (raises DataError, UsageError).

    `restart` None is all consumers, or with a new strategy those that do not run it yet; `to_strategy` None is a mere
    restart; `becomes` has the IDs that change.
    """
    chosen = sort_client_ids(dict.fromkeys(members.client_ids if restart is None else restart))
    if to_strategy is not None:
        after = full_name(to_strategy, members.settings)
        others = [each for each in chosen if full_name(members.strategy_for(each), members.settings) != after]
        if not others or (restart is not None and len(others) < len(chosen)):
            already = next(client_id for client_id in chosen if client_id not in others)
            raise UsageError(f"{already} already runs {after}", hint="for a restart only, leave out the new strategy")
        chosen = others
    processes = Counter(members.client_ids)
    for client_id in chosen:
        if processes[client_id] > 1:
            text = f"{processes[client_id]} processes share the client ID {client_id}"
            hint = "give each process its own instanceName first, or restart only the other consumers"
            raise DataError(f"{text}: rmqlb cannot tell their restarts apart", hint=hint)
    changes = {old: new for old, new in becomes.items() if old in chosen}
    members = members.known_as({new: old for old, new in changes.items()})
    return RolloutModel(members, tuple(chosen), changes, to_strategy)


def _owners(routes: Sequence[TopicRouteData], members: Members) -> Owners:
    """Each queue's owners at rest (raises DataError if a client throws: the client then keeps its former queues)."""
    owners: dict[MessageQueue, tuple[str, ...]] = {}
    for route in routes:
        assignment = assign(route, members)
        for client_id, failure in assignment.failures.items():
            text = f"topic {route.topic}: under {members.strategy_for(client_id)} the client of {client_id} fails"
            hint = "such a consumer keeps its queues, which rmqlb cannot plan; correct its settings first"
            raise DataError(f"{text}: {failure}", hint=hint)
        owners |= {queue: assignment.owners[queue] for queue in route.subscribe_queues()}
    return owners


def misassigned_anyway(rollout: RolloutModel, routes: Sequence[TopicRouteData], *, orderly: bool) -> int:
    """Queues with duplicate owners or none both before and after a mere restart."""
    before, after = (_owners(routes, rollout.members_when(stage)) for stage in (0, rollout.all_changed))
    return sum(_is_bad(len(before[queue]), orderly) and _is_bad(len(after[queue]), orderly) for queue in before)


def _is_bad(owners: int, orderly: bool) -> bool:
    """Whether a queue has no owner or, unless it is locked (orderly), two or more."""
    return owners == 0 or (owners > 1 and not orderly)


class Handover(Struct, frozen=True):
    kept: int  # number of owners before and after, or not restarted
    losers: int  # bit mask of owners under the old strategy only
    gainers: int  # bit mask of owners under the new strategy only

    def owners(self, changed: int) -> int:
        return self.kept + (self.losers & ~changed).bit_count() + (self.gainers & changed).bit_count()


class Overlaps(Struct, frozen=True):
    client_ids: tuple[str, ...]
    counts: Callable[[int], tuple[int, int]]  # bit mask → queues with duplicate owners, and unassigned ones
    pairs: PairCosts | None  # the cost of stages; None when a queue concerns more than two consumers
    work: int  # queues or kinds of handover that one call of `counts` visits
    # queues unassigned or with duplicate owners in every stage, because no restarted consumer gains or loses them; 0
    # where that is not known
    anyway: int
    bound: int  # no order, one consumer at a time, has less overlap than this in all
    most_stages: int = 1 << 30  # of an order, from its first change on, that are counted

    def stages(self, order: Sequence[str], at_once: int) -> tuple[MixedStage, ...]:
        """The stages between the first change and the last, in this order of client IDs."""
        bit = {client_id: 1 << index for index, client_id in enumerate(self.client_ids)}
        numbers = range(at_once, len(order), at_once)[: self.most_stages]
        masks = ((changed, sum(bit[client_id] for client_id in order[:changed])) for changed in numbers)
        return tuple(MixedStage(changed, order[changed], *self.counts(mask)) for changed, mask in masks)

    def added(self, stages: Sequence[MixedStage]) -> int:
        """The overlap of these stages without the queues that always have it."""
        return total_overlap(stages) - self.anyway * len(stages)


def total_overlap(stages: Sequence[MixedStage]) -> int:
    return sum(stage.duplicate_owners + stage.unassigned for stage in stages)


def overlaps(rollout: RolloutModel, routes: Sequence[TopicRouteData], *, orderly: bool) -> Overlaps:
    """Count the stages' gaps and overlaps (raises DataError).

    If no ID changes, all stages have the same list of consumers, so two assignments are enough: a queue that goes from
    x to y has no owner while only x has changed, and two while only y has.
    """
    if rollout.becomes:
        return _by_assigning(rollout, routes, orderly)
    number, kinds = len(rollout.client_ids), handovers(rollout, routes)
    unmoved = ((kind.kept, count) for kind, count in kinds.items() if not kind.losers | kind.gainers)
    anyway = sum(count for owners, count in unmoved if _is_bad(owners, orderly))
    handed = sum(count for kind, count in kinds.items() if not kind.kept and kind.losers and kind.gainers)

    def counts(changed: int) -> tuple[int, int]:
        owners = [(kind.owners(changed), count) for kind, count in kinds.items()]
        several = 0 if orderly else sum(count for owned, count in owners if owned > 1)
        return several, sum(count for owned, count in owners if not owned)

    bound = anyway * (number - 1) + (0 if orderly else handed)
    pairs = _pair_costs(kinds, number, orderly)
    return Overlaps(rollout.client_ids, counts, pairs, work=len(kinds), anyway=anyway, bound=bound)


def handovers(rollout: RolloutModel, routes: Sequence[TopicRouteData]) -> Mapping[Handover, int]:
    """Kind of owner change if IDs stay → number of queues (raises DataError if a client throws)."""
    bit = {client_id: 1 << index for index, client_id in enumerate(rollout.client_ids)}
    before, after = (_owners(routes, rollout.members_when(stage)) for stage in (0, rollout.all_changed))
    kinds: Counter[Handover] = Counter()
    for queue in before:
        was, becomes = set(before[queue]), set(after[queue])
        losers, gainers = (sum(bit[client_id] for client_id in some) for some in (was - becomes, becomes - was))
        kinds[Handover(len(was & becomes), losers, gainers)] += 1
    return kinds


def _pair_costs(kinds: Mapping[Handover, int], number: int, orderly: bool) -> PairCosts | None:
    """Each kind of handover between two consumers is a quadratic function of whether either has changed."""
    constant, single, pair = 0, [0] * number, [[0] * number for _ in range(number)]
    for kind, count in kinds.items():
        involved = [index for index in range(number) if (kind.losers | kind.gainers) >> index & 1]
        if len(involved) > 2:
            return None
        bits = [1 << index for index in involved]
        none, *alone = (count * _is_bad(kind.owners(changed), orderly) for changed in (0, *bits))
        constant += none
        for index, cost in zip(involved, alone, strict=True):
            single[index] += cost - none
        if len(involved) == 2:
            first, second = involved
            pair[first][second] += count * _is_bad(kind.owners(sum(bits)), orderly) - sum(alone) + none
            pair[second][first] = pair[first][second]
    return PairCosts(constant, single, pair)


def _by_assigning(rollout: RolloutModel, routes: Sequence[TopicRouteData], orderly: bool) -> Overlaps:
    """If IDs change, each stage has another order of consumers, so each stage is assigned separately."""
    queues = sum(len(route.subscribe_queues()) for route in routes)

    @cache
    def counts(changed: int) -> tuple[int, int]:
        numbers = [len(owners) for owners in _owners(routes, rollout.members_when(changed)).values()]
        return 0 if orderly else sum(number > 1 for number in numbers), numbers.count(0)

    most = max(_MOST_STEPS // (_MOST_ORDERS * (queues + len(routes) * len(rollout.members.client_ids))), 1)
    return Overlaps(rollout.client_ids, counts, None, work=queues, anyway=0, bound=0, most_stages=most)


class LeastOverlap(Struct, frozen=True):
    order: tuple[str, ...]
    total: int  # queues unassigned or with duplicate owners, summed over its mixed stages
    is_least: bool


def least_overlap(known: Overlaps, at_once: int) -> LeastOverlap | None:
    """The order whose mixed stages have the fewest gaps and overlaps in total; None if a search takes too long.

    All orders are searched for up to 18 consumers if each queue concerns at most two of them.
    """
    number, pairs = len(known.client_ids), known.pairs
    is_least = number <= EXACT_CONSUMERS
    if pairs is not None:
        order = least_order(cost_of_each(pairs), at_once) if is_least else greedy_order(pairs)
    elif is_least and known.work << number <= EXACT_WORK:
        order = least_order([sum(known.counts(changed)) for changed in range(1 << number)], at_once)
    else:
        return None
    named = tuple(known.client_ids[index] for index in order)
    total = total_overlap(known.stages(named, at_once))
    return LeastOverlap(named, total, is_least=is_least or (at_once == 1 and total == known.bound))


def fewest_moves(
    rollout: RolloutModel, routes: Sequence[TopicRouteData], at_once: int
) -> tuple[tuple[str, ...], int] | None:
    """The order of a mere restart with the fewest moves, and their number; None if there are too many orders.

    Orders differ only if IDs change or consumers are away together: otherwise each order moves as many queues.
    """
    number, queues = len(rollout.client_ids), sum(len(route.subscribe_queues()) for route in routes)
    left_at = ((done, number - done) for done in range(0, number, at_once))
    steps = sum(comb(number, done) * (1 + comb(rest, min(at_once, rest))) for done, rest in left_at)
    if steps * max(queues, 1) > EXACT_WORK:
        return None

    @cache
    def owners(changed: int, away: int) -> list[tuple[str, ...]]:
        return list(_owners(routes, rollout.members_when(changed, away)).values())

    def moves(changed: int, away: int) -> int:
        without, ends = owners(changed, away), (owners(changed, 0), owners(changed | away, 0))
        return sum(was != is_now for end in ends for was, is_now in zip(end, without, strict=True))

    best: dict[int, tuple[int, list[int]]] = {0: (0, [])}  # changed consumers → the fewest moves, and their order
    for done in range(0, number, at_once):
        longer: dict[int, tuple[int, list[int]]] = {}
        for changed, (cost, order) in best.items():
            left = [consumer for consumer in range(number) if not changed >> consumer & 1]
            for group in combinations(left, min(at_once, number - done)):
                away = sum(1 << consumer for consumer in group)
                total = cost + moves(changed, away)
                if changed | away not in longer or total < longer[changed | away][0]:
                    longer[changed | away] = total, [*order, *group]
        best = longer
    ((cost, order),) = best.values()
    return tuple(rollout.client_ids[index] for index in order), cost
