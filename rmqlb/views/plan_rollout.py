from collections.abc import Iterator, Sequence

from rmqlb.model.plan import Rollout, RolloutChoice
from rmqlb.model.result import ERROR, WARNING, counted, messages
from rmqlb.model.simulate_rebalance import FigureSpread
from rmqlb.views.columns import NOT_THERE, columns_from, columns_of
from rmqlb.views.numbers import about, duration
from rmqlb.views.report import BETWEEN, Report, Section, first_places, labels, section_of

_MOST_CONSUMERS = 20


def rollout_report(rollout: Rollout) -> Report:
    best = next((choice for choice in rollout.choices if choice.best), None) or rollout.choices[0]
    tried, of = len(rollout.choices), rollout.choices_in_all
    ways = counted(tried, "way") if tried >= of else f"{tried} of {of} ways"
    sections = (_order(rollout, best), *([_stages(rollout)] if rollout.stages else ()), _choices(rollout.choices))
    facts, grave = _facts(rollout, best), _gravity(rollout, best)
    closing = (f"{ways} tried, {counted(best.trials, 'trial')} each",)
    return Report("rmqlb/plan-rollout", rollout, facts, sections, labels(rollout.members), grave=grave, closing=closing)


def _gravity(rollout: Rollout, best: RolloutChoice) -> str:
    if best.takes_ms is None:
        return ERROR
    bad = rollout.misassigned or any(spread.max for _, spread in _longest(best))
    return WARNING if bad else "inOrder"


def _facts(rollout: Rollout, best: RolloutChoice) -> tuple[str, ...]:
    members = counted(len(rollout.members), "consumer")
    changes = rollout.strategy_after != rollout.strategy_before
    what = f"{rollout.strategy_before} → {rollout.strategy_after}, {members}" if changes else f"restart of {members}"
    costs = list(_costs(best))
    part = "" if best.restarts >= len(best.order) else f" (in {best.restarts} of {len(best.order)} restarts)"
    stages = (len(best.order) - 1) // best.at_once
    none = "no mixed stage" if len(rollout.stages) in (0, stages) else f"none of the first {len(rollout.stages)} stages"
    takes = f"{best.converged} of {best.trials} trials converged"
    if best.takes_ms is not None:
        takes = f"converged after {about(best.takes_ms)}, in 95% of {best.trials} trials"
    lines = [f"{rollout.group or 'the group'}, {what}: {_verdict(rollout, best, changes=changes)}{part}"]
    lines.append(f"  recommended: {_how(best)}{BETWEEN}{takes}")
    lines += [f"  {BETWEEN.join(costs)}"] if costs else []
    if changes and not rollout.misassigned:
        lines.append(f"  {none} has an unassigned queue or a queue with duplicate owners")
    return tuple(lines)


def _verdict(rollout: Rollout, best: RolloutChoice, *, changes: bool) -> str:
    parts = ["does not always converge"] if best.takes_ms is None else []
    if changes and rollout.misassigned:
        summed = f" (summed over {len(rollout.stages)} stages)" if len(rollout.stages) > 1 else ""
        bad = counted(rollout.misassigned, "queue")
        parts.append(f"mixed strategies leave {bad} unassigned or with duplicate owners{summed}")
    parts += [f"longest {what} {about(spread.max)}" for what, spread in _longest(best) if spread.max]
    return "; ".join(parts) or "every queue has one owner all the time"


def _how(choice: RolloutChoice) -> str:
    if choice.at_once >= len(choice.order):
        return f"all at once, each away {duration(choice.down_ms)}"
    together = "one at a time" if choice.at_once == 1 else f"{choice.at_once} at a time"
    times = f"every {duration(choice.pause_ms)}, each away {duration(choice.down_ms)}"
    return f"order {choice.order_name}, {together}, {times}"


def _longest(choice: RolloutChoice) -> tuple[tuple[str, FigureSpread], ...]:
    return ("gap", choice.figures.longest_gap_ms), ("overlap", choice.figures.longest_overlap_ms)


def _costs(choice: RolloutChoice) -> Iterator[str]:
    for what, spread in _longest(choice):
        if about(spread.p95) != about(spread.max):
            yield f"longest {what} {about(spread.p95)} in 95% of trials"
    if choice.figures.redelivered is not None:
        yield f"at most {messages(int(choice.figures.redelivered.max))} redelivered in any trial"


def _choices(choices: Sequence[RolloutChoice]) -> Section:
    hidden = [] if len({choice.down_ms for choice in choices}) > 1 else ["downMs"]
    hidden += [] if all(each.figures.redelivered for each in choices) else ["redeliveredMax"]
    hidden += [] if any(each.converged < each.trials for each in choices) else ["converged"]
    columns = columns_of(
        RolloutChoice,
        "orderName=order atOnce pauseMs=every downMs=away takesMs=takes "
        "longestGapP95Ms=longest_gap:ms@figures.longest_gap_ms.p95 "
        "longestGapMaxMs=:ms/hidden@figures.longest_gap_ms.max totalGapP95Ms=total:ms@figures.total_gap_ms.p95 "
        "longestOverlapP95Ms=longest_overlap:ms@figures.longest_overlap_ms.p95 "
        "longestOverlapMaxMs=:ms/hidden@figures.longest_overlap_ms.max "
        "totalOverlapP95Ms=total:ms@figures.total_overlap_ms.p95 "
        "redeliveredMax=redelivered:number@figures.redelivered.max converged trials=/hidden best=:text/hidden",
        hidden=hidden,
        best=lambda choice: "best" if choice.best else "",
    )
    title = "ways tried, best first (p95 of gaps and overlaps, per queue and summed over queues)"
    return section_of("choices", title, columns, choices, heads=1, audience="scripts")


def _order(rollout: Rollout, best: RolloutChoice) -> Section:
    columns = columns_from("place=:number index=#:label clientId=consumer downAtMs=stops:ms upAtMs=starts:ms")
    rows = []
    for place, client_id in enumerate(best.order):
        down = place // best.at_once * best.pause_ms
        rows.append((place + 1, rollout.members.index(client_id), client_id, down, down + best.down_ms))
    title = "recommended restart order (T+0: the first consumer stops)"
    brief = first_places(len(rows), _MOST_CONSUMERS)
    return Section("order", title, columns, tuple(rows), heads=3, brief=brief)


def _stages(rollout: Rollout) -> Section:
    columns = columns_from(
        "changed nextId=next:clients duplicateOwners unassigned",
        "number",
        nextId=lambda stage: NOT_THERE if stage.next_id is None else stage.next_id,
    )
    title = f"stages at rest, while {rollout.strategy_before} and {rollout.strategy_after} are mixed"
    return section_of("stages", title, columns, rollout.stages, heads=2, audience="scripts")
