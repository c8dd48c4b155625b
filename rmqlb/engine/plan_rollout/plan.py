"""The order and pause of a rolling restart or change of strategy with the shortest gaps and overlaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.assignment.consumers import shared_id_findings
from rmqlb.engine.plan_rollout import stages as at_rest
from rmqlb.engine.plan_rollout.stages import LeastOverlap, Overlaps, RolloutModel
from rmqlb.engine.rebalance.simulate import restarts, simulate_group_trials
from rmqlb.errors import DataError, UsageError
from rmqlb.model.group import States
from rmqlb.model.group_scenario import GroupScenario
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
    rollout = at_rest.rollout_model(members, request.restart, request.to_strategy, request.becomes)
    _check(rollout, request)
    anyway = at_rest.misassigned_anyway(rollout, routes, orderly=scenario.orderly)
    known = None if request.to_strategy is None else at_rest.overlaps(rollout, routes, orderly=scenario.orderly)
    together = sorted({min(each, len(rollout.client_ids)) for each in request.at_once})
    least = {} if known is None else {number: at_rest.least_overlap(known, number) for number in together}
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
    least_of_best, total = least.get(best.at_once), at_rest.total_overlap(stages)
    is_least = not total or (least_of_best is not None and least_of_best.is_least and total == least_of_best.total)
    plan = Rollout(
        group=group,
        strategy_before=rollout.members.name,
        strategy_after=rollout.name_after,
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
    least: Mapping[int, LeastOverlap | None],  # number at once → the order with the least overlap, where one was found
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
    for together in sorted({min(each, number) for each in request.at_once}):
        if together == number:
            found.append(Candidate(client_ids, "sorted" if number == 1 else ALL_AT_ONCE, number, 0))
            continue
        orders = {"sorted": client_ids, "reversed": client_ids[::-1]}
        if request.order is not None:
            orders["given"] = tuple(request.order)
        if (
            known is None
            and (rollout.becomes or together > 1)
            and (fewest := at_rest.fewest_moves(rollout, routes, together))
        ):
            orders["fewest moves"] = fewest[0]
        if known is not None and (best := least.get(together)) is not None:
            name = "least overlap" if best.is_least else "little overlap"
            orders[name] = best.order
            if at_rest.total_overlap(known.stages(best.order[::-1], together)) == best.total:
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
    if known is not None:
        yield from _overlap_findings(plan, known, least, orderly=scenario.orderly)
        several, none = known.counts(rollout.all_changed)
        if several + none > known.anyway:
            others = len(set(rollout.members.client_ids)) - len(rollout.client_ids)
            queues = f"{counted(several, 'queue')} with duplicate owners, {counted(none, 'queue')} unassigned"
            text = f"consumers that keep their strategy: {others}; so the group stays mixed: {queues}"
            yield Finding("stays-mixed", text)
    elif anyway:
        yield _misassigned_anyway(anyway, "before and after the restart; the times of each choice include them")
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


def _misassigned_anyway(queues: int, when: str) -> Finding:
    text = f"{counted(queues, 'queue')} {are(queues)} unassigned or with duplicate owners {when}"
    return Finding("badly-owned-anyway", text)


def _overlap_findings(
    plan: Rollout, known: Overlaps, least: LeastOverlap | None, *, orderly: bool
) -> Iterator[Finding]:
    best, stages = plan.choices[0], plan.stages
    if known.anyway and stages:
        yield _misassigned_anyway(known.anyway, "before, during and after the change; each stage includes them")
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
