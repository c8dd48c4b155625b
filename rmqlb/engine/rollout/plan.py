"""Which order and pause of a rolling restart or a change of strategy keeps gaps and overlaps shortest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.consume.trials import simulate_group_trials
from rmqlb.engine.rollout.candidates import Candidate, all_candidates, check_candidates, least_overlaps, stages_of
from rmqlb.engine.rollout.findings import ranked, rollout_findings
from rmqlb.engine.rollout.overlap import LeastOverlap, Overlaps, overlaps, total_overlap
from rmqlb.engine.rollout.rollout_model import RolloutModel, RolloutRequest, badly_owned, events_of, rollout_model
from rmqlb.errors import DataError
from rmqlb.model.group import States
from rmqlb.model.group_report import GroupTrials
from rmqlb.model.group_scenario import GroupScenario
from rmqlb.model.rollout import MixedStage, PlannedRollout, RolloutChoice
from rmqlb.model.route import TopicRouteData
from rmqlb.model.times import milliseconds


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
    anyway = badly_owned(rollout, routes, orderly=scenario.orderly)
    known = None if request.to_strategy is None else overlaps(rollout, routes, orderly=scenario.orderly)
    least = {} if known is None else least_overlaps(rollout, known, request.at_once)
    candidates = all_candidates(rollout, routes, known, least, request)
    choices = []
    for number, candidate in enumerate(candidates):
        its_scenario = _scenario(rollout, scenario, candidate, request.down_us)
        told = _told(progress, number * trials, len(candidates) * trials)
        found = simulate_group_trials(
            group, rollout.members, routes, its_scenario, trials, states=states, progress=told
        )
        choices.append((candidate.asked, _choice(candidate, request.down_us, found)))
    plan = _planned(group, rollout, choices, known, least, request.down_us)
    findings = rollout_findings(plan, rollout, scenario, known, least.get(plan.choices[0].at_once), anyway)
    return replace(plan, findings=tuple(findings))


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
        misassigned_is_minimum=known is None or _is_least(stages, least.get(best.at_once)),
    )


def _scenario(rollout: RolloutModel, scenario: GroupScenario, candidate: Candidate, down_us: int) -> GroupScenario:
    events = events_of(
        rollout, candidate.order, at_once=candidate.at_once, pause_us=candidate.pause_us, down_us=down_us
    )
    return replace(scenario, events=events, until_us=None, all_new=False)


def _told(progress: Callable[[int, int], None] | None, before: int, total: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(before + done, total)


def _choice(candidate: Candidate, down_us: int, trials: GroupTrials) -> RolloutChoice:
    back_us = (len(candidate.order) - 1) // candidate.at_once * candidate.pause_us + down_us
    convergence, takes_ms = trials.figures.convergence_ms, None
    if convergence is not None and trials.converged == trials.trials:
        takes_ms = max(milliseconds(back_us), convergence.p95)
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
    )


def _is_least(stages: Sequence[MixedStage], least: LeastOverlap | None) -> bool:
    total = total_overlap(stages)
    return not total or (least is not None and least.is_least and total == least.total)
