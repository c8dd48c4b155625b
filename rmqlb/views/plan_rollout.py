"""A `Rollout` as a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from rmqlb.model.finding import ERROR, WARNING
from rmqlb.model.plan_rollout import Rollout, RolloutChoice
from rmqlb.model.simulate_rebalance import FigureSpread
from rmqlb.model.words import counted, messages
from rmqlb.views.report import (
    BETWEEN,
    NOT_THERE,
    Cell,
    Column,
    Report,
    Section,
    about,
    duration,
    first_places,
    labels,
    numbers,
    rows_of,
)

_MOST_CHOICES = 20
_MOST_STAGES = 40
_MOST_MEMBERS = 20


def rollout_report(rollout: Rollout) -> Report:
    sections = (_order(rollout), *([_stages(rollout)] if rollout.stages else ()), _choices(rollout.choices))
    best = _best(rollout)
    trials = "" if best is None else f", {counted(best.trials, 'trial')} each"
    return Report(
        "rmqlb/plan-rollout",
        rollout,
        _facts(rollout),
        sections,
        labels(rollout.members),
        grave=_gravity(rollout),
        closing=(f"{_tried(rollout)} tried{trials}",),
    )


def _facts(rollout: Rollout) -> tuple[str, ...]:
    """The way to go and its worst moment; then how long it takes and what else it costs."""
    group = rollout.group or "the group"
    members = counted(len(rollout.members), "consumer")
    changes = rollout.strategy_after != rollout.strategy_before
    what = f"{rollout.strategy_before} → {rollout.strategy_after}, {members}" if changes else f"restart of {members}"
    best = _best(rollout)
    if best is None:
        return (f"{group}, {what}: no way was tried",)
    harmless, costs = changes and not rollout.misassigned, list(_costs(best))
    part = "" if best.restarts >= len(best.order) else f" (in {best.restarts} of {len(best.order)} restarts)"
    stages = (len(best.order) - 1) // max(best.at_once, 1)
    none = "no mixed stage" if len(rollout.stages) in (0, stages) else f"none of the first {len(rollout.stages)} stages"
    return (
        f"{group}, {what}: {_verdict(rollout, best, changes=changes)}{part}",
        f"  recommended: {_how(best)}{BETWEEN}{_takes(best)}",
        *((f"  {BETWEEN.join(costs)}",) if costs else ()),
        *((f"  in {none} is a queue unassigned or with duplicate owners",) if harmless else ()),
    )


def _tried(rollout: Rollout) -> str:
    number = len(rollout.choices)
    return counted(number, "way") if number >= rollout.choices_in_all else f"{number} of {rollout.choices_in_all} ways"


def _gravity(rollout: Rollout) -> str:
    best = _best(rollout)
    if best is None:
        return ""
    if best.takes_ms is None:
        return ERROR
    bad = rollout.misassigned or any(spread.max for _, spread in _longest(best))
    return WARNING if bad else "inOrder"


def _verdict(rollout: Rollout, best: RolloutChoice, *, changes: bool) -> str:
    parts = []
    if best.takes_ms is None:
        parts.append("does not always converge")
    if changes and rollout.misassigned:
        summed = f" (summed over {len(rollout.stages)} stages)" if len(rollout.stages) > 1 else ""
        bad = counted(rollout.misassigned, "queue")
        parts.append(f"mixed strategies leave {bad} unassigned or with duplicate owners{summed}")
    parts += [f"longest {what} {about(spread.max)}" for what, spread in _longest(best) if spread.max]
    return "; ".join(parts) or "every queue has one owner all the time"


def _best(rollout: Rollout) -> RolloutChoice | None:
    return next((choice for choice in rollout.choices if choice.best), next(iter(rollout.choices), None))


def _how(choice: RolloutChoice) -> str:
    if choice.at_once >= len(choice.order):
        return f"all at once, each away {duration(choice.down_ms)}"
    together = "one at a time" if choice.at_once == 1 else f"{choice.at_once} at a time"
    times = f"every {duration(choice.pause_ms)}, each away {duration(choice.down_ms)}"
    return f"order {choice.order_name}, {together}, {times}"


def _takes(choice: RolloutChoice) -> str:
    if choice.takes_ms is None:
        return f"{choice.converged} of {choice.trials} trials converged"
    return f"converged after {about(choice.takes_ms)}, in 95 % of {choice.trials} trials"


def _longest(choice: RolloutChoice) -> tuple[tuple[str, FigureSpread], ...]:
    return ("gap", choice.figures.longest_gap_ms), ("overlap", choice.figures.longest_overlap_ms)


def _costs(choice: RolloutChoice) -> Iterator[str]:
    """What the longest times of the first line are in most trials, where that is less, and what is redelivered."""
    for what, spread in _longest(choice):
        if about(spread.p95) != about(spread.max):
            yield f"longest {what} {about(spread.p95)} in 95 % of trials"
    redelivered = choice.figures.redelivered
    if redelivered is not None:
        yield f"at most {messages(int(redelivered.max))} redelivered in any trial"


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
        Column(
            "redelivered",
            "redeliveredMax",
            "number",
            shown=redelivered,
            of=lambda choice: choice.figures.redelivered and choice.figures.redelivered.max,
        ),
        Column("converged", "converged", "number", shown=any(each.converged < each.trials for each in choices)),
        Column("", "trials", "number", shown=False),
        Column("", "best", shown=False, of=lambda choice: "best" if choice.best else ""),
    )
    brief = first_places(len(choices), _MOST_CHOICES)
    title = "ways tried, the best first (p95 of gaps and overlaps of a queue, and summed over queues)"
    rows = rows_of(columns, choices)
    return Section("choices", title, columns, rows, heads=1, brief=brief, audience="scripts")


def _order(rollout: Rollout) -> Section:
    columns = (
        Column("", "place", "number"),
        Column("#", "index", "label"),
        Column("consumer", "clientId"),
        Column("stops", "downAtMs", "ms"),
        Column("starts", "upAtMs", "ms"),
    )
    best = _best(rollout)
    places = {client_id: place for place, client_id in enumerate(rollout.members)}
    rows: list[tuple[Cell, ...]] = []
    for place, client_id in enumerate(best.order if best else ()):
        down = place // max(best.at_once, 1) * best.pause_ms if best else 0
        rows.append((place + 1, places.get(client_id), client_id, down, down + (best.down_ms if best else 0)))
    brief = first_places(len(rows), _MOST_MEMBERS)
    title = "recommended restart order (T+0: the first consumer stops)"
    return Section("order", title, columns, tuple(rows), heads=3, brief=brief)


def _stages(rollout: Rollout) -> Section:
    columns = (
        Column("changed", "changed", "number"),
        Column("next", "nextId", "clients", of=lambda stage: NOT_THERE if stage.next_id is None else stage.next_id),
        *numbers("duplicateOwners unassigned"),
    )
    brief = first_places(len(rollout.stages), _MOST_STAGES)
    title = f"stages at rest, while {rollout.strategy_before} and {rollout.strategy_after} are mixed"
    rows = rows_of(columns, rollout.stages)
    return Section("stages", title, columns, rows, heads=2, brief=brief, audience="scripts")
