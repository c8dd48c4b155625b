"""Which order and pause of a rolling restart or a change of strategy keeps gaps and overlaps shortest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.arguments import require
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.rebalance.trials import TrialCount, simulate_group_trials
from rmqlb.engine.rollout.candidates import Candidate, all_candidates, check_candidates, least_overlaps, stages_of
from rmqlb.engine.rollout.findings import ranked, rollout_findings
from rmqlb.engine.rollout.overlap import LeastOverlap, Overlaps, overlaps, total_overlap
from rmqlb.engine.rollout.rollout_model import RolloutModel, RolloutRequest, badly_owned, events_of, rollout_model
from rmqlb.errors import DataError
from rmqlb.model.finding import Finding
from rmqlb.model.group import States
from rmqlb.model.group_report import GroupTrials
from rmqlb.model.group_scenario import GroupScenario
from rmqlb.model.rollout import MixedStage, PlannedRollout, RolloutChoice
from rmqlb.model.route import TopicRouteData
from rmqlb.model.times import milliseconds
from rmqlb.model.words import counted

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
) -> PlannedRollout:
    """Try orders and pauses (`all_candidates`), and tell which hurts least (`ranked`) (raises DataError, UsageError).

    The stages and their overlap are those of a group in which each member is back before the next goes down; shorter
    pauses are only simulated.
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
    least = {} if known is None else least_overlaps(rollout, known, request.at_once)
    candidates = all_candidates(rollout, routes, known, least, request)
    bounds = _bounds(rollout, routes, candidates, trials, most_rebalances)
    choices = []
    for number, candidate in enumerate(candidates[: bounds.choices]):
        restarted = _spread(candidate, bounds.steps)
        its_scenario = _scenario(rollout, scenario, candidate, restarted, request.down_us)
        told = _told(progress, number * bounds.trials, bounds.choices * bounds.trials)
        found = simulate_group_trials(
            group, rollout.members, routes, its_scenario, bounds.trials, states=states, progress=told
        )
        choices.append((candidate.asked, _choice(candidate, len(restarted), request.down_us, found)))
    plan = _planned(group, rollout, choices, known, least, request.down_us)
    plan = replace(plan, choices_in_all=len(candidates))
    findings = rollout_findings(plan, rollout, scenario, known, least.get(plan.choices[0].at_once), anyway)
    return replace(plan, findings=(*_in_part(plan, known, trials), *findings))


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


def _in_part(plan: PlannedRollout, known: Overlaps | None, trials: int) -> Iterator[Finding]:
    """How much of the rollout was looked at, where that is not all."""
    first, parts = plan.choices[0], []
    if len(plan.choices) < plan.choices_in_all or first.trials < trials or first.restarts < len(first.order):
        choices = f"searched {len(plan.choices)} of {plan.choices_in_all} orders and pauses"
        restarts = f"with {first.restarts} of {len(first.order)} restarts, evenly spread"
        parts += [f"{choices}, in {first.trials} of {trials} trials each, {restarts}"]
    if known is not None and (len(first.order) - 1) // first.at_once > known.most_stages:
        parts += [f"counted the first {counted(known.most_stages, 'mixed stage')}"]
    if parts:
        yield Finding("searched-in-part", f"{'; '.join(parts)}: the group is too large for all", plan.group)


def _planned(
    group: str | None,
    rollout: RolloutModel,
    # the choices, each with whether it was asked for; the others come last, and are never the best
    tried: Sequence[tuple[bool, RolloutChoice]],
    known: Overlaps | None,
    least: Mapping[int, LeastOverlap],
    down_us: int,
) -> PlannedRollout:
    choices = ranked([choice for asked, choice in tried if asked])
    best = choices[0]
    stages = () if known is None else stages_of(known, best, down_us)
    return PlannedRollout(
        group=group,
        strategy_before=rollout.members.name,
        strategy_after=rollout.name_after,
        members=rollout.client_ids,
        choices=(*choices, *(choice for asked, choice in tried if not asked)),
        stages=stages,
        misassigned=total_overlap(stages),
        misassigned_is_minimum=known is None
        or ((len(best.order) - 1) // best.at_once <= known.most_stages and _is_least(stages, least.get(best.at_once))),
    )


def _scenario(
    rollout: RolloutModel, scenario: GroupScenario, candidate: Candidate, restarted: Sequence[str], down_us: int
) -> GroupScenario:
    events = events_of(rollout, restarted, at_once=candidate.at_once, pause_us=candidate.pause_us, down_us=down_us)
    return replace(scenario, events=events, until_us=None, all_new=False)


def _told(progress: Callable[[int, int], None] | None, before: int, total: int) -> Callable[[int], None] | None:
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


def _is_least(stages: Sequence[MixedStage], least: LeastOverlap | None) -> bool:
    total = total_overlap(stages)
    return not total or (least is not None and least.is_least and total == least.total)
