"""Findings before a group is restarted or gets another strategy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from rmqlb.engine.assignment.consumers import shared_id_findings
from rmqlb.engine.rollout.overlap import LeastOverlap, Overlaps, added_overlap
from rmqlb.engine.rollout.rollout_model import RolloutModel
from rmqlb.model.finding import Finding
from rmqlb.model.group_scenario import GroupScenario
from rmqlb.model.rollout import Rollout, RolloutChoice
from rmqlb.model.words import counted


def rollout_findings(
    plan: Rollout,
    rollout: RolloutModel,
    scenario: GroupScenario,
    known: Overlaps | None,
    # the order with the least overlap that was found, as many members at once as in the best choice
    least: LeastOverlap | None,
    anyway: int,  # queues that a mere restart finds and leaves with duplicate owners or none
) -> Iterator[Finding]:
    """The findings of a plan."""
    best = plan.choices[0]
    if known is not None:
        yield from _overlap_findings(plan, known, least, orderly=scenario.orderly)
        yield from _mixed_end(rollout, known)
    elif anyway:
        yield Finding(
            "badly-owned-anyway",
            f"{counted(anyway, 'queue')} {'is' if anyway == 1 else 'are'} unassigned or with duplicate owners "
            "before and after the restart; the times of each choice count them",
        )
    if scenario.orderly:
        yield Finding(
            "orderly-group",
            "the listener is orderly: the broker's lock keeps a second owner out, and a queue that changes hands is "
            "not read until its lock is free",
        )
    yield from _several_away(plan.choices)
    yield from shared_id_findings(rollout.members.client_ids)
    failed = best.trials - best.converged
    if failed:
        yield Finding(
            "not-converged",
            f"even with the best choice the group does not converge in {failed} of {best.trials} trials",
        )


def _overlap_findings(
    plan: Rollout, known: Overlaps, least: LeastOverlap | None, *, orderly: bool
) -> Iterator[Finding]:
    if known.anyway and plan.stages:
        yield Finding(
            "badly-owned-anyway",
            f"{counted(known.anyway, 'queue')} {'is' if known.anyway == 1 else 'are'} unassigned or with duplicate "
            "owners before, during and after the change; each stage counts them",
        )
    added, anyway = added_overlap(known, plan.stages), known.anyway * len(plan.stages)
    if not added:
        return
    best = plan.choices[0]
    smallest, claim = 0, "another order may have fewer"
    if least is not None and least.is_least:
        smallest, claim = least.total - anyway, f"the least is {least.total - anyway}"
    elif best.at_once == 1 and known.bound > anyway:
        smallest, claim = known.bound - anyway, f"the least is {known.bound - anyway} or more"
    together = f"{counted(best.at_once, 'consumer')} at a time"
    proven = f"no order with {together}, each back before the next goes down, prevents it: " if smallest > 0 else ""
    message = (
        f"{proven}while some consumers run {plan.strategy_before} and "
        f"others {plan.strategy_after}, queues are unassigned{'' if orderly else ' or have duplicate owners'}; "
        f"the best choice has {added} over its {counted(len(plan.stages), 'mixed stage')} at rest, {claim}"
    )
    yield Finding("mixed-strategies", message)
    yield from _all_at_once(plan)


def _all_at_once(plan: Rollout) -> Iterator[Finding]:
    best = plan.choices[0]
    for choice in plan.choices:
        if choice.at_once == len(plan.members):
            longest = choice.figures.longest_gap_ms.p95
            yield Finding(
                "all-at-once",
                f"a restart of all {len(plan.members)} at once has no mixed stage: queues then have a gap of "
                f"{_seconds(longest)}; gaps and overlaps summed over the queues: {_seconds(hurt_ms(choice))}, "
                f"against {_seconds(hurt_ms(best))} of the best choice",
            )


def _mixed_end(rollout: RolloutModel, known: Overlaps) -> Iterator[Finding]:
    others = len(set(rollout.members.client_ids)) - len(rollout.client_ids)
    end = known.counts((1 << len(rollout.client_ids)) - 1)
    if end.overlap > known.anyway:
        yield Finding(
            "stays-mixed",
            f"consumers that keep their strategy: {others}; the group stays mixed, {counted(end.several, 'queue')} "
            f"with duplicate owners, {counted(end.none, 'queue')} unassigned",
        )


def _several_away(choices: Sequence[RolloutChoice]) -> Iterator[Finding]:
    short = sorted({choice.pause_ms for choice in choices if 0 < choice.pause_ms < choice.down_ms})
    if short:
        pauses = " and ".join(_seconds(pause_ms) for pause_ms in short)
        yield Finding(
            "several-away",
            f"consumers are down for {_seconds(choices[0].down_ms)}: with a pause of {pauses} the next goes before the "
            "last is back",
        )


def _seconds(ms: float) -> str:
    seconds = ms / 1000
    return f"{seconds:.0f}s" if seconds >= 100 else f"{seconds:.3g}s"


AS_GOOD = 1.1  # what is no more than so many times the least is as good: trials tell no finer


def ranked(choices: Sequence[RolloutChoice]) -> list[RolloutChoice]:
    """The choices, each tried as often, at least one: the best first and marked.

    The best choice settles in the most trials; of those it is the quickest among the ones that hurt no more than a
    tenth above the least, and if others are as quick within a tenth, the one of them that hurts least. The others
    follow by how much they hurt, then by the longest window, then by the time they take.
    """
    by_hurt = sorted(choices, key=_rank)
    least = by_hurt[0]
    as_good = [
        choice
        for choice in by_hurt
        if _not_converged(choice) == _not_converged(least) and hurt_ms(choice) <= AS_GOOD * hurt_ms(least)
    ]
    quickest = min(_takes(choice) for choice in as_good)
    best = next(choice for choice in as_good if _takes(choice) <= AS_GOOD * quickest)
    others = [choice for choice in by_hurt if choice is not best]
    return [replace(best, best=True), *others]


def hurt_ms(choice: RolloutChoice) -> float:
    """Queue-time in gaps and in overlaps: the 95th percentiles of both, added."""
    found = choice.figures
    return round(found.total_gap_ms.p95 + found.total_overlap_ms.p95, 3)


def _rank(choice: RolloutChoice) -> tuple[int, float, float, float]:
    longest = max(choice.figures.longest_gap_ms.p95, choice.figures.longest_overlap_ms.p95)
    return _not_converged(choice), hurt_ms(choice), longest, _takes(choice)


def _not_converged(choice: RolloutChoice) -> int:
    return choice.trials - choice.converged


def _takes(choice: RolloutChoice) -> float:
    return float("inf") if choice.takes_ms is None else choice.takes_ms
