"""The order and pause of a rolling restart or change of strategy with the shortest gaps and overlaps.

At rest, a stage of a change of strategy is the bit mask of the changed consumers, which are numbered as clients sort
them. Each consumer allocates by itself, so a queue belongs to the consumers of the mask that own it under the new
strategy, and to those outside the mask that own it under the old one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from math import comb

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate import full_name
from rmqlb.engine.assignment.assign import Members, Owners, assign
from rmqlb.engine.assignment.consumers import shared_id_findings
from rmqlb.engine.rebalance.simulate import restarts, simulate_group_trials
from rmqlb.errors import DataError, UsageError
from rmqlb.model.group import States
from rmqlb.model.group_scenario import GroupScenario
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.plan import MixedStage, Rollout, RolloutChoice
from rmqlb.model.result import Finding, are, counted, milliseconds
from rmqlb.model.route import TopicRouteData
from rmqlb.model.simulate_rebalance import GroupTrials

MOST_COMBINATIONS = 12  # of pauses and numbers at once; each is tried with up to five orders
ALL_AT_ONCE = "all at once"
MOST_REBALANCES = 1_000_000
"""Rebalances of one topic by one consumer in all simulations, some 20 µs each."""
_REBALANCES_A_STEP, _FEWEST_TRIALS = 4, 2
AS_GOOD = 1.1  # up to this many times the least counts as equal: trials are no more precise


class RolloutRequest(Struct, frozen=True, kw_only=True):
    restart: Sequence[str] | None = None  # None is all, or with a new strategy those that do not run it yet
    to_strategy: str | None = None  # name of the strategy that they come back with; None for a mere restart
    becomes: Mapping[str, str] = {}  # client id → the id afterwards, of those whose id changes
    down_us: int  # the absence of each
    pauses_us: Sequence[int]  # from one going down to the next, each to be tried
    at_once: Sequence[int] = (1,)  # numbers that go down together, each to be tried
    order: Sequence[str] | None = None  # one more order to try


class Candidate(Struct, frozen=True):
    order: tuple[str, ...]  # client ids in the order in which they go down
    name: str  # of the order
    at_once: int
    pause_us: int  # from one going down to the next
    only_compared: bool = False  # it is never the best

    @property
    def steps(self) -> int:
        return -(-len(self.order) // self.at_once)

    def spread(self, steps: int) -> tuple[str, ...]:
        """The consumers of this many steps, evenly spread, so that both directions restart similar ones."""
        number, together = self.steps, self.at_once
        chosen = range(number) if steps >= number else [(2 * at + 1) * number // (2 * steps) for at in range(steps)]
        return tuple(client_id for at in chosen for client_id in self.order[at * together : (at + 1) * together])

    def stages(self, known: Overlaps | None, down_us: int) -> tuple[MixedStage, ...]:
        """The mixed stages of a change of strategy; none if the last consumer goes down before the first is back."""
        if known is None or (self.steps - 1) * self.pause_us < down_us:
            return ()
        return known.stages(self.order, self.at_once)


def plan_rollout(
    group: str | None,
    members: Members,
    routes: Sequence[TopicRouteData],
    scenario: GroupScenario,  # settings of clients and servers; its events, end and beginning are the rollout's
    request: RolloutRequest,
    *,
    trials: int,
    states: States | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    most_rebalances: int = MOST_REBALANCES,
) -> tuple[Rollout, tuple[Finding, ...]]:
    """Try orders and pauses, the best first, and report findings (raises DataError, UsageError).

    The stages and their overlap assume that each consumer is back before the next goes down; shorter pauses are only
    simulated.
    """
    if scenario.broadcasting:
        text = "the group is BROADCASTING: every consumer reads every queue, so nothing is rebalanced"
        raise DataError(text, hint="restart its consumers in any order")
    rollout = rollout_model(members, request.restart, request.to_strategy, request.becomes)
    _check(rollout, request)
    anyway = misassigned_anyway(rollout, routes, orderly=scenario.orderly)
    known = None if request.to_strategy is None else overlaps(rollout, routes, orderly=scenario.orderly)
    together = sorted({min(each, len(rollout.client_ids)) for each in request.at_once})
    least = {number: None if known is None else least_overlap(known, number) for number in together}
    candidates = all_candidates(rollout, routes, known, least, request)
    rebalancing = len(rollout.members.client_ids) * len(routes)
    number, tried, steps = _affordable(candidates, trials, rebalancing, most_rebalances)
    choices: list[RolloutChoice] = []
    for place, candidate in enumerate(candidates[:number]):
        restarted = candidate.spread(steps)
        events = restarts(
            restarted,
            0,
            every_us=candidate.pause_us,
            down_us=request.down_us,
            at_once=candidate.at_once,
            becomes=rollout.becomes,
            strategy=rollout.to_strategy,
        )
        found = simulate_group_trials(
            *(group, rollout.members, routes, replace(scenario, events=events, until_us=None, all_new=False), tried),
            states=states,
            progress=lambda done, before=place * tried: progress(before + done, number * tried),  # type: ignore[misc]
        )
        choices.append(_choice(candidate, len(restarted), request.down_us, found))
    eligible = sum(not candidate.only_compared for candidate in candidates[:number])  # the others are the last
    ordered = (*ranked(choices[:eligible]), *choices[eligible:])
    best = ordered[0]
    chosen = Candidate(best.order, best.order_name, best.at_once, round(best.pause_ms * 1000))
    stages = chosen.stages(known, request.down_us)
    least_of_best, total = least.get(best.at_once), total_overlap(stages)
    is_least = not total or (least_of_best is not None and least_of_best.is_least and total == least_of_best.total)
    plan = Rollout(
        group=group,
        strategy_before=rollout.members.name,
        strategy_after=full_name(rollout.to_strategy or rollout.members.group_strategy, rollout.members.settings),
        members=rollout.client_ids,
        choices=ordered,
        stages=stages,
        misassigned=total,
        misassigned_is_minimum=known is None or (is_least and chosen.steps - 1 <= known.most_stages),
        choices_in_all=len(candidates),
    )
    findings = rollout_findings(plan, rollout, scenario, known, least_of_best, anyway)
    return plan, (*_in_part(plan, chosen, known, trials), *findings)


def _check(rollout: RolloutModel, request: RolloutRequest) -> None:
    pauses, together, client_ids = len(set(request.pauses_us)), len(set(request.at_once)), rollout.client_ids
    if pauses * together > MOST_COMBINATIONS:
        text = f"{pauses} pauses with {together} batch sizes"
        hint = "try fewer first, then values around the best one"
        raise UsageError(f"{text}: rmqlb tries at most {MOST_COMBINATIONS} combinations", hint=hint)
    order = client_ids if request.order is None else request.order
    missing = [f"lacks {client_id}" for client_id in client_ids if client_id not in order]
    others = [f"names {client_id}, which does not restart" for client_id in order if client_id not in client_ids]
    twice = ["names a consumer twice"] if len(order) > len(client_ids) else []
    for problem in (*missing, *others, *twice):
        hint = f"name each of the {len(client_ids)} restarting consumers once"
        raise UsageError(f"the order {problem}", hint=hint)


def all_candidates(
    rollout: RolloutModel,
    routes: Sequence[TopicRouteData],
    known: Overlaps | None,  # the stages of a change of strategy; None of a mere restart
    least: Mapping[int, LeastOverlap | None],  # each number at once to try → the order with the least overlap, if found
    request: RolloutRequest,
) -> list[Candidate]:
    """The choices to try.

    Orders are sorted, reversed and the given one. A change of strategy adds the one with the least overlap at rest, and
    its reverse if it has as little (it swaps duplicate owners for unassigned queues); a mere restart adds the one in
    which queues change owners least often. If every choice of a change of strategy has gaps or overlaps at rest, a
    restart of all consumers at once is tried too, for comparison.
    """
    client_ids, found = rollout.client_ids, list[Candidate]()
    number = len(client_ids)
    for together, best in least.items():
        if together == number:
            found.append(Candidate(client_ids, "sorted" if number == 1 else ALL_AT_ONCE, number, 0))
            continue
        orders = {"sorted": client_ids, "reversed": client_ids[::-1]}
        if request.order is not None:
            orders["given"] = tuple(request.order)
        if known is None and (rollout.becomes or together > 1) and (fewest := fewest_moves(rollout, routes, together)):
            orders["fewest moves"] = fewest
        if known is not None and best is not None:
            name = "least overlap" if best.is_least else "little overlap"
            orders[name] = best.order
            if total_overlap(known.stages(best.order[::-1], together)) == best.total:
                orders[f"{name} reversed"] = best.order[::-1]
        names = {order: ", ".join(name for name, same in orders.items() if same == order) for order in orders.values()}
        pauses = sorted(set(request.pauses_us))
        found += [Candidate(order, name, together, pause) for pause in pauses for order, name in names.items()]
    if known is not None and all(known.added(each.stages(known, request.down_us)) for each in found):
        found.append(Candidate(client_ids, ALL_AT_ONCE, number, 0, only_compared=True))
    return found


def _affordable(candidates: Sequence[Candidate], trials: int, rebalancing: int, bound: int) -> tuple[int, int, int]:
    """The number of choices to simulate, of trials of each, and of steps in which consumers go down.

    If not all are affordable, there are fewer trials first, then fewer restarts, then fewer choices. The bound counts
    rebalances and not time, so that equal input has equal results. When a consumer goes and when it comes back, each of
    the others rebalances all topics (`rebalancing` in total), about twice.
    """
    step = max(_REBALANCES_A_STEP * rebalancing, 1)
    number, most = len(candidates), max(each.steps for each in candidates)
    tried = max(min(trials, bound // (number * step * most)), min(trials, _FEWEST_TRIALS))
    steps = max(min(most, bound // (number * step * tried)), 1)
    return max(min(number, bound // (step * tried * steps)), 1), tried, steps


def _choice(candidate: Candidate, restarts: int, down_us: int, trials: GroupTrials) -> RolloutChoice:
    def back_us(consumers: int) -> int:
        return (consumers - 1) // candidate.at_once * candidate.pause_us + down_us

    convergence, takes_ms = trials.figures.convergence_ms, None
    if convergence is not None and trials.converged == trials.trials:
        left_us = back_us(len(candidate.order)) - back_us(restarts)
        takes_ms = milliseconds(left_us) + max(milliseconds(back_us(restarts)), convergence.p95)
    return RolloutChoice(
        trials=trials.trials,
        converged=trials.converged,
        figures=trials.figures,
        order=candidate.order,
        order_name=candidate.name,
        at_once=candidate.at_once,
        pause_ms=milliseconds(candidate.pause_us),
        down_ms=milliseconds(down_us),
        takes_ms=takes_ms,
        restarts=restarts,
    )


def ranked(choices: Sequence[RolloutChoice]) -> list[RolloutChoice]:
    """Order choices with equal numbers of trials; the best is first and marked.

    The best choice converges in the most trials. Among those, choices within a tenth of the least queue-time in gaps
    and overlaps count as equal, and the quickest of them is the best, again within a tenth. The others follow by that
    queue-time, the longest gap or overlap, and their duration.
    """

    def takes(choice: RolloutChoice) -> float:
        return float("inf") if choice.takes_ms is None else choice.takes_ms

    def rank(choice: RolloutChoice) -> tuple[float, ...]:
        longest = max(choice.figures.longest_gap_ms.p95, choice.figures.longest_overlap_ms.p95)
        return choice.trials - choice.converged, hurt_ms(choice), longest, takes(choice)

    by_hurt = sorted(choices, key=rank)
    failed, hurt, *_ = rank(by_hurt[0])
    as_good = [each for each in by_hurt if rank(each)[0] == failed and hurt_ms(each) <= AS_GOOD * hurt]
    quickest = min(map(takes, as_good))
    best = next(choice for choice in as_good if takes(choice) <= AS_GOOD * quickest)
    return [replace(best, best=True), *(choice for choice in by_hurt if choice is not best)]


def hurt_ms(choice: RolloutChoice) -> float:
    """Queue-time in gaps and overlaps: the sum of both p95."""
    found = choice.figures
    return round(found.total_gap_ms.p95 + found.total_overlap_ms.p95, 3)


def _in_part(plan: Rollout, chosen: Candidate, known: Overlaps | None, trials: int) -> Iterator[Finding]:
    best, parts = plan.choices[0], []
    if len(plan.choices) < plan.choices_in_all or best.trials < trials or best.restarts < len(best.order):
        choices = f"searched {len(plan.choices)} of {plan.choices_in_all} orders and pauses"
        restarts = f"with {best.restarts} of {len(best.order)} restarts, evenly spread"
        parts.append(f"{choices}, with {best.trials} of {trials} trials each, {restarts}")
    if known is not None and chosen.steps - 1 > known.most_stages:
        parts.append(f"counted the first {counted(known.most_stages, 'mixed stage')}")
    if parts:
        yield Finding("searched-in-part", f"{'; '.join(parts)}: the group is too large for all", plan.group)


def rollout_findings(
    plan: Rollout,
    rollout: RolloutModel,
    scenario: GroupScenario,
    known: Overlaps | None,
    least: LeastOverlap | None,  # the order with the least overlap, as many consumers at once as in the best choice
    anyway: int,  # queues that a mere restart finds and leaves with duplicate owners or none
) -> Iterator[Finding]:
    best = plan.choices[0]
    when = "before and after the restart; the times of each choice include them"
    if known is not None:
        anyway = known.anyway if plan.stages else 0
        when = "before, during and after the change; each stage includes them"
    if anyway:
        text = f"{counted(anyway, 'queue')} {are(anyway)} unassigned or with duplicate owners {when}"
        yield Finding("badly-owned-anyway", text)
    if known is not None:
        yield from _overlap_findings(plan, known, least, orderly=scenario.orderly)
        several, none = known.counts(rollout.all_changed)
        if several + none > known.anyway:
            others = len(set(rollout.members.client_ids)) - len(rollout.client_ids)
            queues = f"{counted(several, 'queue')} with duplicate owners, {counted(none, 'queue')} unassigned"
            text = f"consumers that keep their strategy: {others}; so the group stays mixed: {queues}"
            yield Finding("stays-mixed", text)
    if scenario.orderly:
        text = "the broker's lock prevents a second owner, and a queue that moves is not read until its lock"
        yield Finding("orderly-group", f"the listener is orderly: {text} is free")
    short = sorted({each.pause_ms for each in plan.choices if 0 < each.pause_ms < each.down_ms})
    if short:
        pauses = f"with a pause of {' and '.join(map(_seconds, short))}, the next consumer stops"
        text = f"consumers are down for {_seconds(best.down_ms)}: {pauses} before the previous one is back"
        yield Finding("several-away", text)
    yield from shared_id_findings(rollout.members.client_ids)
    if failed := best.trials - best.converged:
        text = f"even with the best choice the group does not converge in {failed} of {best.trials} trials"
        yield Finding("not-converged", text)


def _overlap_findings(
    plan: Rollout, known: Overlaps, least: LeastOverlap | None, *, orderly: bool
) -> Iterator[Finding]:
    best, stages = plan.choices[0], plan.stages
    added, anyway = known.added(stages), known.anyway * len(stages)
    if not added:
        return
    smallest, claim = 0, "another order may have fewer"
    if least is not None and least.is_least:
        smallest, claim = least.total - anyway, f"the minimum is {least.total - anyway}"
    elif best.at_once == 1 and known.bound > anyway:
        smallest, claim = known.bound - anyway, f"the minimum is {known.bound - anyway} or more"
    together = f"{counted(best.at_once, 'consumer')} at a time"
    proven = f"no order with {together}, each back before the next one stops, prevents this: " if smallest > 0 else ""
    yield Finding(
        "mixed-strategies",
        f"{proven}while some consumers run {plan.strategy_before} and "
        f"others {plan.strategy_after}, queues are unassigned{'' if orderly else ' or have duplicate owners'}; "
        f"the best choice has {added} such queues in its {counted(len(stages), 'mixed stage')} at rest, {claim}",
    )
    for choice in plan.choices:
        if choice.at_once == len(plan.members):
            gap = f"then queues have a gap of {_seconds(choice.figures.longest_gap_ms.p95)}"
            hurt = f"{_seconds(hurt_ms(choice))} ({_seconds(hurt_ms(best))} for the best choice)"
            text = f"a restart of all {len(plan.members)} at once has no mixed stage, but {gap}"
            yield Finding("all-at-once", f"{text}; all gaps and overlaps add up to {hurt}")


def _seconds(ms: float) -> str:
    return f"{ms / 1000:.0f}s" if ms >= 100_000 else f"{ms / 1000:.3g}s"


def cost_of_each(costs: Costs, number: int) -> list[int]:
    """The cost of every stage of so many consumers, by its bit mask."""
    stages = [costs[0]]
    for consumer in range(number):
        bit = 1 << consumer
        gains = [costs[bit]]
        for other in range(consumer):
            both = costs[bit | 1 << other]
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


def greedy_order(costs: Costs, number: int) -> list[int]:
    """A good order for many consumers: the next one is the consumer whose change costs least.

    For 20 to 100 consumers, a search for better places would lower the cost by only 1 to 6 %.
    """
    gains, order = {consumer: costs[1 << consumer] for consumer in range(number)}, list[int]()
    while gains:
        best = min(gains, key=gains.__getitem__)
        del gains[best]
        order.append(best)
        for consumer in gains:
            gains[consumer] += costs[1 << consumer | 1 << best]
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


Costs = Counter[int]
"""Bit mask of no, one or two consumers → the cost of every stage in which these have changed, summed over its masks."""


class Overlaps(Struct, frozen=True):
    client_ids: tuple[str, ...]
    counts: Callable[[int], tuple[int, int]]  # bit mask → queues with duplicate owners, and unassigned ones
    costs: Costs | None  # of stages; None when a queue concerns more than two consumers
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
    bit = {client_id: 1 << index for index, client_id in enumerate(rollout.client_ids)}
    before, after = (_owners(routes, rollout.members_when(stage)) for stage in (0, rollout.all_changed))
    kinds: Counter[Handover] = Counter()  # → number of queues
    for queue in before:
        was, becomes = set(before[queue]), set(after[queue])
        losers, gainers = (sum(bit[client_id] for client_id in some) for some in (was - becomes, becomes - was))
        kinds[Handover(len(was & becomes), losers, gainers)] += 1
    unmoved = ((kind.kept, count) for kind, count in kinds.items() if not kind.losers | kind.gainers)
    anyway = sum(count for owners, count in unmoved if _is_bad(owners, orderly))
    handed = sum(count for kind, count in kinds.items() if not kind.kept and kind.losers and kind.gainers)

    def counts(changed: int) -> tuple[int, int]:
        owners = [(kind.owners(changed), count) for kind, count in kinds.items()]
        several = 0 if orderly else sum(count for owned, count in owners if owned > 1)
        return several, sum(count for owned, count in owners if not owned)

    bound = anyway * (len(bit) - 1) + (0 if orderly else handed)
    costs = _costs(kinds, orderly)
    return Overlaps(rollout.client_ids, counts, costs, work=len(kinds), anyway=anyway, bound=bound)


def _costs(kinds: Mapping[Handover, int], orderly: bool) -> Costs | None:
    """Each kind of handover between two consumers is a quadratic function of whether either has changed."""
    costs: Costs = Counter()
    for kind, count in kinds.items():
        involved = kind.losers | kind.gainers
        first = involved & -involved
        second = involved ^ first
        if second & (second - 1):
            return None
        none, one, other, both = (
            count * _is_bad(kind.owners(changed), orderly) for changed in (0, first, second, involved)
        )
        costs[0] += none
        costs[first] += one - none
        costs[second] += other - none
        costs[involved] += both - one - other + none
    return costs


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
    number, costs = len(known.client_ids), known.costs
    is_least = number <= EXACT_CONSUMERS
    if costs is not None:
        order = least_order(cost_of_each(costs, number), at_once) if is_least else greedy_order(costs, number)
    elif is_least and known.work << number <= EXACT_WORK:
        order = least_order([sum(known.counts(changed)) for changed in range(1 << number)], at_once)
    else:
        return None
    named = tuple(known.client_ids[index] for index in order)
    total = total_overlap(known.stages(named, at_once))
    return LeastOverlap(named, total, is_least=is_least or (at_once == 1 and total == known.bound))


def fewest_moves(rollout: RolloutModel, routes: Sequence[TopicRouteData], at_once: int) -> tuple[str, ...] | None:
    """The order of a mere restart with the fewest moves; None if there are too many orders.

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
    ((_, order),) = best.values()
    return tuple(rollout.client_ids[index] for index in order)
