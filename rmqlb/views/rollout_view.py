"""A `Rollout` as a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmqlb.model.group_report import FigureSpread
from rmqlb.model.plan import TriedCondition
from rmqlb.model.rollout import MixedStage, Rollout, RolloutChoice
from rmqlb.model.times import milliseconds, milliseconds_if_known
from rmqlb.model.words import counted
from rmqlb.views.group.facts import time
from rmqlb.views.group.figures import figure_value, shown_figure, trials_data
from rmqlb.views.report import NOT_THERE, Cell, Column, Report, Section, conditions_data, labels

if TYPE_CHECKING:
    from rmqlb.views.shapes.rollout import RolloutChoiceData, RolloutData

_MOST_CHOICES = 20
_MOST_STAGES = 40
_MOST_MEMBERS = 60


def rollout_report(rollout: Rollout, *, conditions: Sequence[TriedCondition] = ()) -> Report:
    """The plan for people and machines.

    Args:
        rollout: the plan.
        conditions: what the user asked to be told about.
    """
    sections = (
        _order(rollout),
        *([_stages(rollout)] if rollout.stages else ()),
        _choices(rollout.choices),
    )
    return Report("rmqlb/plan-rollout", _data(rollout, conditions), _facts(rollout), sections, labels(rollout.members))


def _facts(rollout: Rollout) -> tuple[str, ...]:
    group = f"group {rollout.group}" if rollout.group else "a group"
    members = counted(len(rollout.members), "consumer")
    changes = rollout.strategy_after != rollout.strategy_before
    what = f"{rollout.strategy_before} to {rollout.strategy_after}, {members}" if changes else f"restart of {members}"
    best = _best(rollout)
    if best is None:
        return (f"{group}: {what}; no way was tried",)
    facts = [
        f"{group}: {what}: {_verdict(rollout, best, changes=changes)}",
        f"best: {_how(best)}",
        _takes(best),
        *_costs(best),
    ]
    if changes:
        facts += [_overlap(rollout, best), *_instead(rollout, best)]
    return (*facts, f"{counted(len(rollout.choices), 'way')} tried, {counted(best.trials.trials, 'trial')} each")


def _verdict(rollout: Rollout, best: RolloutChoice, *, changes: bool) -> str:
    """What even the best way costs, the worst first."""
    parts = []
    if best.takes_us is None:
        parts.append("does not always settle")
    if changes and rollout.overlap:
        summed = f" (summed over {len(rollout.stages)} stages)" if len(rollout.stages) > 1 else ""
        parts.append(f"mixed strategies leave {counted(rollout.overlap, 'queue')} with several owners or none{summed}")
    spreads = best.trials.spreads
    for what, field in (("without owner", "longest_none_us"), ("with several owners", "longest_several_us")):
        if field in spreads and spreads[field].worst:
            parts.append(f"a queue is {what} for up to {shown_figure(field, spreads[field].worst)}")
    return "; ".join(parts) or "every queue has one owner all the time"


def _best(rollout: Rollout) -> RolloutChoice | None:
    return next((choice for choice in rollout.choices if choice.best), next(iter(rollout.choices), None))


def _how(choice: RolloutChoice) -> str:
    """The choice in words."""
    order = f"order {choice.order_name}"
    if choice.at_once >= len(choice.order):
        return f"all at once, each away {time(choice.down_us)}"
    together = "one at a time" if choice.at_once == 1 else f"{choice.at_once} at a time"
    return f"{order}, {together}, every {time(choice.pause_us)}, each away {time(choice.down_us)}"


def _takes(choice: RolloutChoice) -> str:
    trials = choice.trials
    if choice.takes_us is None:
        return f"it does not always settle: {trials.settled} of {trials.trials} trials did"
    return f"it takes {time(choice.takes_us)} until the group is settled, in 95 % of trials"


def _costs(choice: RolloutChoice) -> list[str]:
    spreads = choice.trials.spreads
    parts = [
        f"{what} {_within(field, spreads[field])}"
        for what, field in (("without owner", "longest_none_us"), ("with several owners", "longest_several_us"))
        if field in spreads
    ]
    facts = [f"at the longest, in 95 % of trials, a queue is {' and '.join(parts)}"] if parts else []
    if "again" in spreads:
        facts.append(f"messages delivered again: at most {shown_figure('again', spreads['again'].worst)} in any trial")
    return facts


def _within(field: str, spread: FigureSpread) -> str:
    p95, worst = shown_figure(field, spread.p95), shown_figure(field, spread.worst)
    return p95 if p95 == worst else f"{p95} (worst {worst})"


def _overlap(rollout: Rollout, best: RolloutChoice) -> str:
    if not rollout.overlap:
        return "mixed strategies do no harm: in no stage has a queue several owners or none"
    number = len(rollout.stages)
    queues = f"{counted(rollout.overlap, 'queue')} with several owners or none"
    stages = f"summed over {number} stages at rest" if number > 1 else "in the stage at rest"
    how = "one at a time" if best.at_once == 1 else f"{best.at_once} at a time"
    if rollout.overlap_is_least:
        return f"mixed strategies must overlap: {queues}, {stages}; no order has fewer, {how}"
    return f"mixed strategies overlap: {queues}, {stages}; not every order was tried, another may have fewer"


def _instead(rollout: Rollout, best: RolloutChoice) -> list[str]:
    """What avoids the overlap, and what that costs instead."""
    if not rollout.overlap or best.at_once >= len(best.order):
        return []
    whole = next((choice for choice in rollout.choices if choice.at_once >= len(choice.order)), None)
    if whole is None:
        return [
            f"only all at once avoids it; then nobody reads for at least the {time(best.down_us)} that they are away"
        ]
    spread = whole.trials.spreads.get("longest_none_us")
    lasts = time(whole.down_us) if spread is None else shown_figure("longest_none_us", spread.p95)
    return [f"only all at once avoids it; then nobody reads for {lasts} (95 % of trials)"]


def _choices(choices: Sequence[RolloutChoice]) -> Section:
    columns = (
        Column("order", "orderName"),
        Column("at once", "atOnce", "number"),
        Column("every", "pauseMs", "ms"),
        Column("away", "downMs", "ms", shown=len({choice.down_us for choice in choices}) > 1),
        Column("takes", "takesMs", "ms"),
        Column("no owner", "longestNoneP95Ms", "ms"),
        Column("", "longestNoneWorstMs", "ms", shown=False),
        Column("in all", "noneP95Ms", "ms"),
        Column("several", "longestSeveralP95Ms", "ms"),
        Column("", "longestSeveralWorstMs", "ms", shown=False),
        Column("in all", "severalP95Ms", "ms"),
        Column("again", "againWorst", "number", shown=all("again" in choice.trials.spreads for choice in choices)),
        Column("settled", "settled", "number", shown=any(each.trials.settled < each.trials.trials for each in choices)),
        Column("", "trials", "number", shown=False),
        Column("", "best", shown=False),
    )
    rows = tuple(
        (
            choice.order_name,
            choice.at_once,
            milliseconds(choice.pause_us),
            milliseconds(choice.down_us),
            milliseconds_if_known(choice.takes_us),
            _p95(choice, "longest_none_us"),
            _worst(choice, "longest_none_us"),
            _p95(choice, "none_us"),
            _p95(choice, "longest_several_us"),
            _worst(choice, "longest_several_us"),
            _p95(choice, "several_us"),
            _worst(choice, "again"),
            choice.trials.settled,
            choice.trials.trials,
            "best" if choice.best else "",
        )
        for choice in choices
    )
    brief = tuple(range(_MOST_CHOICES)) if len(rows) > _MOST_CHOICES else None
    title = "ways, the best first: longest time a queue has no owner or several, and summed over queues, 95 % of trials"
    return Section("choices", title, columns, rows, heads=1, brief=brief)


def _p95(choice: RolloutChoice, field: str) -> float | None:
    spread = choice.trials.spreads.get(field)
    return None if spread is None else figure_value(field, spread.p95)


def _worst(choice: RolloutChoice, field: str) -> float | None:
    spread = choice.trials.spreads.get(field)
    return None if spread is None else figure_value(field, spread.worst)


def _order(rollout: Rollout) -> Section:
    columns = (
        Column("", "place", "number"),
        Column("#", "index", "label"),
        Column("consumer", "clientId"),
        Column("goes down", "downAtMs", "ms"),
        Column("comes back", "upAtMs", "ms"),
    )
    best = _best(rollout)
    places = {client_id: place for place, client_id in enumerate(rollout.members)}
    rows: tuple[tuple[Cell, ...], ...] = ()
    if best is not None:
        times = [place // max(best.at_once, 1) * best.pause_us for place in range(len(best.order))]
        rows = tuple(
            (place, places.get(client_id), client_id, milliseconds(down), milliseconds(down + best.down_us))
            for place, (client_id, down) in enumerate(zip(best.order, times, strict=True), start=1)
        )
    brief = tuple(range(_MOST_MEMBERS)) if len(rows) > _MOST_MEMBERS else None
    return Section("order", "the best order, times from the first going down", columns, rows, heads=3, brief=brief)


def _stages(rollout: Rollout) -> Section:
    columns = (
        Column("changed", "changed", "number"),
        Column("next", "nextId", "clients"),
        Column("queues with several owners", "several", "number"),
        Column("without owner", "none", "number"),
    )
    rows = tuple((stage.changed, _next(stage), stage.several, stage.none) for stage in rollout.stages)
    brief = tuple(range(_MOST_STAGES)) if len(rows) > _MOST_STAGES else None
    title = f"stages at rest, while {rollout.strategy_before} and {rollout.strategy_after} are mixed"
    return Section("stages", title, columns, rows, heads=2, brief=brief)


def _next(stage: MixedStage) -> Cell:
    return NOT_THERE if stage.next_id is None else stage.next_id


def _data(rollout: Rollout, conditions: Sequence[TriedCondition]) -> RolloutData:
    return {
        "group": rollout.group,
        "strategyBefore": rollout.strategy_before,
        "strategyAfter": rollout.strategy_after,
        "consumers": list(rollout.members),
        "choices": [_choice_data(choice) for choice in rollout.choices],
        "stages": [
            {"changed": stage.changed, "nextId": stage.next_id, "several": stage.several, "none": stage.none}
            for stage in rollout.stages
        ],
        "overlap": rollout.overlap,
        "overlapIsLeast": rollout.overlap_is_least,
        "conditions": conditions_data(conditions),
    }


def _choice_data(choice: RolloutChoice) -> RolloutChoiceData:
    return {
        "order": list(choice.order),
        "orderName": choice.order_name,
        "atOnce": choice.at_once,
        "pauseMs": milliseconds(choice.pause_us),
        "downMs": milliseconds(choice.down_us),
        "takesMs": milliseconds_if_known(choice.takes_us),
        "best": choice.best,
        **trials_data(choice.trials),
    }
