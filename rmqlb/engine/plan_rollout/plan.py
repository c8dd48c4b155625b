"""Which order and pause of a rolling restart or a change of strategy keeps gaps and overlaps shortest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from math import comb

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.arguments import require
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.assignment.consumers import shared_id_findings
from rmqlb.engine.plan_rollout.stages import (
    EXACT_WORK,
    LeastOverlap,
    Overlaps,
    RolloutModel,
    RolloutRequest,
    added_overlap,
    assigned,
    badly_owned,
    events_of,
    least_overlap,
    members_when,
    mixed_stages,
    overlaps,
    rollout_model,
    total_overlap,
)
from rmqlb.engine.rebalance.simulate import TrialCount, simulate_group_trials
from rmqlb.errors import DataError, UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.group import States
from rmqlb.model.group_scenario import GroupScenario
from rmqlb.model.plan_rollout import MixedStage, Rollout, RolloutChoice
from rmqlb.model.route import TopicRouteData
from rmqlb.model.simulate_rebalance import GroupTrials
from rmqlb.model.times import milliseconds
from rmqlb.model.words import counted

MOST_COMBINATIONS = 12  # of pauses and numbers at once; each is tried with up to five orders
ALL_AT_ONCE = "all at once"

MOST_REBALANCES = 1_000_000
"""Rebalances of one topic by one consumer in all simulations, some 20 µs each."""
_REBALANCES_A_STEP, _FEWEST_TRIALS = 4, 2


def plan_rollout(
    group: str | None,
    members: Members,
    routes: Sequence[TopicRouteData],
    scenario: GroupScenario,  # how clients and servers are configured; its events, end and beginning are the rollout's
    request: RolloutRequest,
    *,
    trials: int,
    states: States | None = None,
    progress: Callable[[int, int], None] | None = None,
    most_rebalances: int = MOST_REBALANCES,
) -> tuple[Rollout, tuple[Finding, ...]]:
    """Try orders and pauses, the best first, and report the findings about them (raises DataError, UsageError).

    The stages and their overlap assume that each consumer is back before the next goes down; shorter pauses are only
    simulated.
    """
    if scenario.broadcasting:
        raise DataError(
            "the group is BROADCASTING: every consumer reads every queue, nothing is rebalanced",
            hint="restart its consumers in any order",
        )
    rollout = rollout_model(members, request.restart, request.to_strategy, request.becomes)
    check_candidates(rollout, request)
    require(trials, TrialCount, "trials")
    anyway = badly_owned(rollout, routes, orderly=scenario.orderly)
    known = None if request.to_strategy is None else overlaps(rollout, routes, orderly=scenario.orderly)
    together = () if known is None else together_of(rollout, request.at_once)
    searched = {number: least_overlap(known, number) for number in together if known is not None}
    least = {number: found for number, found in searched.items() if found is not None}
    candidates = all_candidates(rollout, routes, known, least, request)
    bounds = _bounds(rollout, routes, candidates, trials, most_rebalances)
    choices = []
    for number, candidate in enumerate(candidates[: bounds.choices]):
        restarted = _spread(candidate, bounds.steps)
        events = events_of(
            rollout, restarted, at_once=candidate.at_once, pause_us=candidate.pause_us, down_us=request.down_us
        )
        found = simulate_group_trials(
            *(group, rollout.members, routes, replace(scenario, events=events, until_us=None, all_new=False)),
            bounds.trials,
            states=states,
            progress=_counted(progress, number * bounds.trials, bounds.choices * bounds.trials),
        )
        choices.append((candidate.asked, _choice(candidate, len(restarted), request.down_us, found)))
    # choices that were not asked for come last, and are never the best
    tried = ranked([choice for asked, choice in choices if asked])
    best = tried[0]
    stages: tuple[MixedStage, ...] = ()
    is_least = known is None
    if known is not None:
        stages = _stages_of(known, best.order, best.at_once, round(best.pause_ms * 1000), request.down_us)
        is_whole = (len(best.order) - 1) // best.at_once <= known.most_stages
        total, smallest = total_overlap(stages), least.get(best.at_once)
        is_least = is_whole and (not total or (smallest is not None and smallest.is_least and total == smallest.total))
    plan = Rollout(
        group=group,
        strategy_before=rollout.members.name,
        strategy_after=rollout.name_after,
        members=rollout.client_ids,
        choices=(*tried, *(choice for asked, choice in choices if not asked)),
        stages=stages,
        misassigned=total_overlap(stages),
        misassigned_is_minimum=is_least,
        choices_in_all=len(candidates),
    )
    findings = rollout_findings(plan, rollout, scenario, known, least.get(best.at_once), anyway)
    return plan, (*_in_part(plan, known, trials), *findings)


class _Bounds(Struct, frozen=True):
    """How much is simulated: that many choices, trials of each, and steps in which consumers go down."""

    choices: int
    trials: int
    steps: int


def _bounds(
    rollout: RolloutModel,
    routes: Sequence[TopicRouteData],
    candidates: Sequence[Candidate],
    trials: int,
    most_rebalances: int,
) -> _Bounds:
    """As much as the work allows: fewer trials first, then fewer of the restarts, then fewer choices.

    The bound counts rebalances and not time, so that equal input has equal results. When a consumer goes and when it
    comes back, each of the others rebalances all topics, about twice.
    """
    step = max(_REBALANCES_A_STEP * len(rollout.members.client_ids) * len(routes), 1)
    number, most = len(candidates), max(-(-len(each.order) // each.at_once) for each in candidates)
    tried = max(min(trials, most_rebalances // (number * step * most)), min(trials, _FEWEST_TRIALS))
    steps = max(min(most, most_rebalances // (number * step * tried)), 1)
    return _Bounds(max(min(number, most_rebalances // (step * tried * steps)), 1), tried, steps)


def _spread(candidate: Candidate, steps: int) -> tuple[str, ...]:
    """The consumers of so many steps of the order, evenly spread, so that both directions restart similar ones."""
    order, together = candidate.order, candidate.at_once
    number = -(-len(order) // together)
    chosen = range(number) if steps >= number else [(2 * at + 1) * number // (2 * steps) for at in range(steps)]
    return tuple(client_id for at in chosen for client_id in order[at * together : (at + 1) * together])


def _in_part(plan: Rollout, known: Overlaps | None, trials: int) -> Iterator[Finding]:
    first, parts = plan.choices[0], []
    if len(plan.choices) < plan.choices_in_all or first.trials < trials or first.restarts < len(first.order):
        choices = f"searched {len(plan.choices)} of {plan.choices_in_all} orders and pauses"
        restarts = f"with {first.restarts} of {len(first.order)} restarts, evenly spread"
        parts += [f"{choices}, in {first.trials} of {trials} trials each, {restarts}"]
    if known is not None and (len(first.order) - 1) // first.at_once > known.most_stages:
        parts += [f"counted the first {counted(known.most_stages, 'mixed stage')}"]
    if parts:
        yield Finding("searched-in-part", f"{'; '.join(parts)}: the group is too large for all", plan.group)


def _counted(progress: Callable[[int, int], None] | None, before: int, total: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(before + done, total)


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


class Candidate(Struct, frozen=True):
    order: tuple[str, ...]  # client ids in the order in which they go down
    name: str  # how the order came about
    at_once: int
    pause_us: int  # from one going down to the next
    asked: bool = True  # it may be the best; one that was not asked for is only there to be compared with


def all_candidates(
    rollout: RolloutModel,
    routes: Sequence[TopicRouteData],
    known: Overlaps | None,  # the stages of a change of strategy; None of a mere restart
    least: Mapping[int, LeastOverlap],  # number at once → the order with the least overlap, where one was found
    request: RolloutRequest,
) -> list[Candidate]:
    """The choices to try.

    Orders are sorted, reversed and the given one. A change of strategy adds the one with the least overlap at rest, and
    its reverse if it has as little (it swaps duplicate owners for unassigned queues); a mere restart adds the one in
    which queues change owners least often. If every choice of a change of strategy has gaps or overlaps at rest, a
    restart of all consumers at once is tried too, for comparison.
    """
    number = len(rollout.client_ids)
    found = []
    for together in together_of(rollout, request.at_once):
        if together == number:
            found.append(Candidate(rollout.client_ids, "sorted" if number == 1 else ALL_AT_ONCE, number, 0))
            continue
        names: dict[tuple[str, ...], list[str]] = {}
        for name, order in _orders(rollout, routes, known, least.get(together), together, request.order):
            names.setdefault(order, []).append(name)
        found += [
            Candidate(order, ", ".join(names_of), together, pause_us)
            for pause_us in sorted(set(request.pauses_us))
            for order, names_of in names.items()
        ]
    if known is not None and all(
        added_overlap(known, _stages_of(known, each.order, each.at_once, each.pause_us, request.down_us))
        for each in found
    ):
        found.append(Candidate(rollout.client_ids, ALL_AT_ONCE, number, 0, asked=False))
    return found


def _stages_of(
    known: Overlaps, order: Sequence[str], at_once: int, pause_us: int, down_us: int
) -> tuple[MixedStage, ...]:
    """The mixed stages of a change of strategy; none if the last consumer goes down before the first is back."""
    last_down_us = (len(order) - 1) // at_once * pause_us
    return () if last_down_us < down_us else mixed_stages(known, order, at_once)


def together_of(rollout: RolloutModel, at_once: Sequence[int]) -> list[int]:
    """The numbers at once, at most the number of consumers."""
    return sorted({min(each, len(rollout.client_ids)) for each in at_once})


def check_candidates(rollout: RolloutModel, request: RolloutRequest) -> None:
    pauses_us, at_once = request.pauses_us, request.at_once
    if request.down_us < 0:
        raise UsageError("a consumer cannot be down for less than 0 s")
    if not pauses_us or min(pauses_us) <= 0:
        raise UsageError("a pause must be longer than 0 s", hint="consumers that go down together are --at-once")
    if not at_once or min(at_once) < 1:
        raise UsageError("at least one consumer goes down at once")
    if len(set(pauses_us)) * len(set(at_once)) > MOST_COMBINATIONS:
        raise UsageError(
            f"{len(set(pauses_us))} pauses with {len(set(at_once))} numbers at once: "
            f"no more than {MOST_COMBINATIONS} combinations are tried",
            hint="try fewer, then more around the best of them",
        )
    if request.order is None:
        return
    client_ids, order = rollout.client_ids, request.order
    named, restarting = set(order), set(client_ids)
    missing = [client_id for client_id in client_ids if client_id not in named]
    others = [client_id for client_id in order if client_id not in restarting]
    hint = f"it has to name each of the {len(client_ids)} consumers that restart once"
    if missing:
        raise UsageError(f"the order lacks {missing[0]}", hint=hint)
    if others:
        raise UsageError(f"the order names {others[0]}, which does not restart", hint=hint)
    if len(order) > len(client_ids):
        raise UsageError("the order names a consumer twice", hint=hint)


def _orders(
    rollout: RolloutModel,
    routes: Sequence[TopicRouteData],
    known: Overlaps | None,
    least: LeastOverlap | None,
    together: int,
    order: Sequence[str] | None,
) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "sorted", rollout.client_ids
    yield "reversed", rollout.client_ids[::-1]
    if order is not None:
        yield "given", tuple(order)
    if known is None and (rollout.becomes or together > 1):
        fewest = fewest_moves(rollout, routes, together)
        if fewest is not None:
            yield "fewest moves", fewest[0]
    if known is not None and least is not None:
        name = "least overlap" if least.is_least else "little overlap"
        yield name, least.order
        back = least.order[::-1]
        if total_overlap(mixed_stages(known, back, together)) == least.total:
            yield f"{name} reversed", back


def fewest_moves(
    rollout: RolloutModel, routes: Sequence[TopicRouteData], at_once: int
) -> tuple[tuple[str, ...], int] | None:
    """The order of a mere restart in which queues change owners least often, and how often; None if there are too many.

    With IDs that stay and one consumer at a time, every order moves as many queues; IDs that change, and consumers that
    are away together, make the difference.
    """
    number, queues = len(rollout.client_ids), sum(len(route.subscribe_queues()) for route in routes)
    if queues == 0:
        return tuple(rollout.client_ids), 0
    steps = sum(
        comb(number, done) * (1 + comb(number - done, min(at_once, number - done)))
        for done in range(0, number, at_once)
    )
    if steps * queues > EXACT_WORK:
        return None
    moves = Moves(rollout, routes)
    best: dict[frozenset[str], tuple[int, tuple[str, ...]]] = {frozenset(): (0, ())}
    for done in range(0, number, at_once):
        longer: dict[frozenset[str], tuple[int, tuple[str, ...]]] = {}
        for changed, (cost, order) in best.items():
            left = [client_id for client_id in rollout.client_ids if client_id not in changed]
            for away in combinations(left, min(at_once, number - done)):
                reached = changed.union(away)
                candidate = (cost + moves.of(changed, frozenset(away)), (*order, *away))
                if reached not in longer or candidate[0] < longer[reached][0]:
                    longer[reached] = candidate
        best = longer
    cost, order = best[frozenset(rollout.client_ids)]
    return order, cost


class Moves:
    """How often queues change owners; each list of consumers is assigned once."""

    def __init__(self, rollout: RolloutModel, routes: Sequence[TopicRouteData]) -> None:
        @cache
        def owners(changed: frozenset[str], away: frozenset[str]) -> list[tuple[str, ...]]:
            found = assigned(routes, members_when(rollout, changed, away))
            return [
                one.owners[queue]
                for route, one in zip(routes, found, strict=True)
                for queue in route.subscribe_queues()
            ]

        self._owners = owners

    def of(self, changed: frozenset[str], away: frozenset[str]) -> int:
        """Changes of owners when some consumers go and when they are back; IDs are those of before."""
        without = self._owners(changed, away)
        ends = self._owners(changed, frozenset()), self._owners(changed | away, frozenset())
        return sum(was != is_now for end in ends for was, is_now in zip(end, without, strict=True))


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
        others = len(set(rollout.members.client_ids)) - len(rollout.client_ids)
        end = known.counts((1 << len(rollout.client_ids)) - 1)
        if end.overlap > known.anyway:
            yield Finding(
                "stays-mixed",
                f"consumers that keep their strategy: {others}; the group stays mixed, {counted(end.several, 'queue')} "
                f"with duplicate owners, {counted(end.none, 'queue')} unassigned",
            )
    elif anyway:
        yield _bad_anyway(anyway, "before and after the restart; the times of each choice count them")
    if scenario.orderly:
        yield Finding(
            "orderly-group",
            "the listener is orderly: the broker's lock keeps a second owner out, and a queue that changes hands is "
            "not read until its lock is free",
        )
    short = sorted({each.pause_ms for each in plan.choices if 0 < each.pause_ms < each.down_ms})
    if short:
        yield Finding(
            "several-away",
            f"consumers are down for {_seconds(best.down_ms)}: with a pause of {' and '.join(map(_seconds, short))} "
            "the next goes before the last is back",
        )
    yield from shared_id_findings(rollout.members.client_ids)
    if failed := best.trials - best.converged:
        text = f"even with the best choice the group does not converge in {failed} of {best.trials} trials"
        yield Finding("not-converged", text)


def _bad_anyway(queues: int, when: str) -> Finding:
    are = "is" if queues == 1 else "are"
    text = f"{counted(queues, 'queue')} {are} unassigned or with duplicate owners {when}"
    return Finding("badly-owned-anyway", text)


def _overlap_findings(
    plan: Rollout, known: Overlaps, least: LeastOverlap | None, *, orderly: bool
) -> Iterator[Finding]:
    best, stages = plan.choices[0], plan.stages
    if known.anyway and stages:
        yield _bad_anyway(known.anyway, "before, during and after the change; each stage counts them")
    added, anyway = added_overlap(known, stages), known.anyway * len(stages)
    if not added:
        return
    smallest, claim = 0, "another order may have fewer"
    if least is not None and least.is_least:
        smallest, claim = least.total - anyway, f"the least is {least.total - anyway}"
    elif best.at_once == 1 and known.bound > anyway:
        smallest, claim = known.bound - anyway, f"the least is {known.bound - anyway} or more"
    together = f"{counted(best.at_once, 'consumer')} at a time"
    proven = f"no order with {together}, each back before the next goes down, prevents it: " if smallest > 0 else ""
    yield Finding(
        "mixed-strategies",
        f"{proven}while some consumers run {plan.strategy_before} and "
        f"others {plan.strategy_after}, queues are unassigned{'' if orderly else ' or have duplicate owners'}; "
        f"the best choice has {added} over its {counted(len(stages), 'mixed stage')} at rest, {claim}",
    )
    for choice in plan.choices:
        if choice.at_once == len(plan.members):
            yield Finding(
                "all-at-once",
                f"a restart of all {len(plan.members)} at once has no mixed stage: queues then have a gap of "
                f"{_seconds(choice.figures.longest_gap_ms.p95)}; gaps and overlaps summed over the queues: "
                f"{_seconds(hurt_ms(choice))}, against {_seconds(hurt_ms(best))} of the best choice",
            )


def _seconds(ms: float) -> str:
    return f"{ms / 1000:.0f}s" if ms >= 100_000 else f"{ms / 1000:.3g}s"


AS_GOOD = 1.1  # up to so many times the least counts as equal: trials are no more precise


def ranked(choices: Sequence[RolloutChoice]) -> list[RolloutChoice]:
    """Order the choices, each tried as often; the best first and marked.

    The best choice converges in the most trials. Among those, choices within a tenth of the least queue-time in gaps
    and overlaps count as equal; of these it is the quickest, again within a tenth. The others follow by that
    queue-time, the longest gap or overlap, and the time they take.
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
