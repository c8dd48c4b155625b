"""A `Rollout` as a report."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from msgspec.structs import replace

from rmqlb.decoding import from_attributes
from rmqlb.model.condition import TriedCondition
from rmqlb.model.group_report import FigureSpread
from rmqlb.model.rollout import Rollout, RolloutChoice
from rmqlb.model.times import milliseconds
from rmqlb.model.words import counted
from rmqlb.views.report import NOT_THERE, Cell, Column, Report, Section, duration, labels, rows_of

_MOST_CHOICES = 20
_MOST_STAGES = 40
_MOST_MEMBERS = 60


def rollout_report(rollout: Rollout, *, conditions: Sequence[TriedCondition] = ()) -> Report:
    """The plan for people and machines."""
    sections = (
        _order(rollout),
        *([_stages(rollout)] if rollout.stages else ()),
        _choices(rollout.choices),
    )
    data = replace(from_attributes(rollout, Rollout), conditions=tuple(conditions))
    return Report("rmqlb/plan-rollout", data, _facts(rollout), sections, labels(rollout.members))


def _facts(rollout: Rollout) -> tuple[str, ...]:
    group = f"group {rollout.group}" if rollout.group else "a group"
    members = counted(len(rollout.members), "consumer")
    changes = rollout.strategy_after != rollout.strategy_before
    what = f"{rollout.strategy_before} to {rollout.strategy_after}, {members}" if changes else f"restart of {members}"
    best = _best(rollout)
    if best is None:
        return (f"{group}: {what}; no way was tried",)
    takes = f"it does not always converge: {best.converged} of {best.trials} trials did"
    if best.takes_ms is not None:
        takes = f"it takes {duration(best.takes_ms)} until the group has converged, in 95 % of trials"
    facts = [
        f"{group}: {what}: {_verdict(rollout, best, changes=changes)}",
        f"best: {_how(best)}",
        takes,
        *_costs(best),
    ]
    if changes:
        facts += [_misassigned(rollout, best), *_instead(rollout, best)]
    return (*facts, f"{counted(len(rollout.choices), 'way')} tried, {counted(best.trials, 'trial')} each")


def _verdict(rollout: Rollout, best: RolloutChoice, *, changes: bool) -> str:
    parts = []
    if best.takes_ms is None:
        parts.append("does not always converge")
    if changes and rollout.misassigned:
        summed = f" (summed over {len(rollout.stages)} stages)" if len(rollout.stages) > 1 else ""
        parts.append(f"mixed strategies leave {_queues(rollout)}{summed}")
    parts += [f"longest {what} {duration(spread.max)}" for what, spread in _longest(best) if spread.max]
    return "; ".join(parts) or "every queue has one owner all the time"


def _queues(rollout: Rollout) -> str:
    return f"{counted(rollout.misassigned, 'queue')} unassigned or with duplicate owners"


def _best(rollout: Rollout) -> RolloutChoice | None:
    return next((choice for choice in rollout.choices if choice.best), next(iter(rollout.choices), None))


def _how(choice: RolloutChoice) -> str:
    order = f"order {choice.order_name}"
    if choice.at_once >= len(choice.order):
        return f"all at once, each away {duration(choice.down_ms)}"
    together = "one at a time" if choice.at_once == 1 else f"{choice.at_once} at a time"
    return f"{order}, {together}, every {duration(choice.pause_ms)}, each away {duration(choice.down_ms)}"


def _longest(choice: RolloutChoice) -> tuple[tuple[str, FigureSpread], ...]:
    return ("gap", choice.figures.longest_gap_ms), ("overlap", choice.figures.longest_overlap_ms)


def _costs(choice: RolloutChoice) -> list[str]:
    parts = [f"longest {what} {_within(spread)}" for what, spread in _longest(choice)]
    facts = [f"in 95 % of trials: {', '.join(parts)}"]
    redelivered = choice.figures.redelivered
    if redelivered is not None:
        facts.append(f"messages redelivered: at most {redelivered.max:.10g} in any trial")
    return facts


def _within(spread: FigureSpread) -> str:
    p95, largest = duration(spread.p95), duration(spread.max)
    return p95 if p95 == largest else f"{p95} (max {largest})"


def _misassigned(rollout: Rollout, best: RolloutChoice) -> str:
    if not rollout.misassigned:
        return "mixed strategies do no harm: in no stage is a queue unassigned or has duplicate owners"
    number = len(rollout.stages)
    stages = f"summed over {number} stages at rest" if number > 1 else "in the stage at rest"
    how = "one at a time" if best.at_once == 1 else f"{best.at_once} at a time"
    if rollout.misassigned_is_minimum:
        return f"mixed strategies must overlap: {_queues(rollout)}, {stages}; no order has fewer, {how}"
    return f"mixed strategies overlap: {_queues(rollout)}, {stages}; not every order was tried, another may have fewer"


def _instead(rollout: Rollout, best: RolloutChoice) -> list[str]:
    if not rollout.misassigned or best.at_once >= len(best.order):
        return []
    whole = next((choice for choice in rollout.choices if choice.at_once >= len(choice.order)), None)
    if whole is None:
        lasts = f"at least the {duration(best.down_ms)} that they are away"
    else:
        lasts = f"{duration(whole.figures.longest_gap_ms.p95)} (95 % of trials)"
    return [f"only all at once avoids it; then all queues have a gap of {lasts}"]


def _choices(choices: Sequence[RolloutChoice]) -> Section:
    redelivered = all(each.figures.redelivered for each in choices)
    columns = (
        Column("order", "orderName"),
        Column("at once", "atOnce", "number"),
        Column("every", "pauseMs", "ms"),
        Column("away", "downMs", "ms", shown=len({choice.down_ms for choice in choices}) > 1),
        Column("takes", "takesMs", "ms"),
        Column("longest gap", "longestGapP95Ms", "ms", of=attrgetter("figures.longest_gap_ms.p95")),
        Column("", "longestGapMaxMs", "ms", shown=False, of=attrgetter("figures.longest_gap_ms.max")),
        Column("total", "totalGapP95Ms", "ms", of=attrgetter("figures.total_gap_ms.p95")),
        Column("longest overlap", "longestOverlapP95Ms", "ms", of=attrgetter("figures.longest_overlap_ms.p95")),
        Column("", "longestOverlapMaxMs", "ms", shown=False, of=attrgetter("figures.longest_overlap_ms.max")),
        Column("total", "totalOverlapP95Ms", "ms", of=attrgetter("figures.total_overlap_ms.p95")),
        Column("redelivered", "redeliveredMax", "number", shown=redelivered, of=_redelivered),
        Column("converged", "converged", "number", shown=any(each.converged < each.trials for each in choices)),
        Column("", "trials", "number", shown=False),
        Column("", "best", shown=False, of=lambda choice: "best" if choice.best else ""),
    )
    brief = tuple(range(_MOST_CHOICES)) if len(choices) > _MOST_CHOICES else None
    title = "ways, the best first: gaps and overlaps of a queue, and summed over queues, 95 % of trials"
    return Section("choices", title, columns, rows_of(columns, choices), heads=1, brief=brief)


def _redelivered(choice: RolloutChoice) -> Cell:
    found = choice.figures.redelivered
    return None if found is None else found.max


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
        Column("next", "nextId", "clients", of=lambda stage: NOT_THERE if stage.next_id is None else stage.next_id),
        Column("duplicate owners", "duplicateOwners", "number"),
        Column("unassigned", "unassigned", "number"),
    )
    brief = tuple(range(_MOST_STAGES)) if len(rollout.stages) > _MOST_STAGES else None
    title = f"stages at rest, while {rollout.strategy_before} and {rollout.strategy_after} are mixed"
    return Section("stages", title, columns, rows_of(columns, rollout.stages), heads=2, brief=brief)
