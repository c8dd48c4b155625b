"""The figures of a group's simulation, and of a planned rollout, that `--fail-on` can name.

- A group that did not converge has an infinite convergence time, so `convergence-ms>2000` is met. So has a length of
  time that is not over when the simulation ends: of queues without owner, with several, in an outage or unread.
- Of many trials a figure is the p95; `[p50]` and `[max]` after its name select those. A group that did not converge in
  each of them counts as not converged, and one trial with such a queue is enough.
"""

from __future__ import annotations

import math

from rmqlb.engine.conditions import Condition, Figures
from rmqlb.errors import UsageError
from rmqlb.model.condition import TriedCondition
from rmqlb.model.plan_rollout import Rollout
from rmqlb.model.simulate_rebalance import GroupFigures, GroupTrials
from rmqlb.model.snapshot import suggestion

_FIELDS = {name.replace("_", "-"): name for name in GroupFigures.__struct_fields__ if name != "rebalances"}
_OPEN = {
    **{
        f"{length}-{kind}-ms": f"queues_with_{kind}_at_end"
        for length in ("longest", "total")
        for kind in ("gap", "overlap", "outage")
    },
    "unread-ms": "queues_unread_at_end",
}
"""A length of time → the queues of which it is not over at the end."""
_SPREADS = ("p95", "p50", "max")
GROUP_FIGURES = Figures(names=tuple(_FIELDS), of_subject=tuple(_FIELDS))
ROLLOUT_FIGURES = Figures(names=(*_FIELDS, "takes-ms", "misassigned"), of_subject=tuple(_FIELDS))
"""Those of the best choice."""


def try_on_group(condition: Condition, found: GroupFigures) -> TriedCondition:
    """Try a condition on one simulation (raises UsageError if it is about trials)."""
    if condition.subject is not None:
        raise UsageError(
            f"--fail-on {condition.text!r}: [{condition.subject}] is of many trials", hint="give --trials N"
        )
    if _is_open(condition, found.convergence_ms is not None, getattr(found, _OPEN.get(condition.name, ""), 0)):
        return _without_end(condition)
    return condition.try_on(getattr(found, _FIELDS[condition.name]))


def try_on_group_trials(condition: Condition, trials: GroupTrials) -> TriedCondition:
    """Try a condition on the p95 of many trials, or on the spread that it names (raises UsageError)."""
    of = condition.subject or "p95"
    if of not in _SPREADS:
        raise UsageError(f"--fail-on {condition.text!r}: what is {of}?", hint=suggestion("spreads", of, _SPREADS))
    left = getattr(trials.figures, _OPEN.get(condition.name, ""), None)
    if _is_open(condition, trials.converged == trials.trials, 0 if left is None else left.max):
        return _without_end(condition)
    spread = getattr(trials.figures, _FIELDS[condition.name])
    return condition.try_on(None if spread is None else getattr(spread, of))


def try_on_rollout(condition: Condition, rollout: Rollout) -> TriedCondition:
    """Try a condition on the best choice of a rollout (raises UsageError)."""
    if condition.name == "misassigned":
        return condition.try_on(rollout.misassigned)
    best = next(choice for choice in rollout.choices if choice.best)
    if condition.name == "takes-ms":
        return _without_end(condition) if best.takes_ms is None else condition.try_on(best.takes_ms)
    return try_on_group_trials(condition, best)


def _is_open(condition: Condition, converged: bool, left: float) -> bool:
    return not converged if condition.name == "convergence-ms" else bool(left)


def _without_end(condition: Condition) -> TriedCondition:
    """More than any number; no document can hold that, so the value is unknown there."""
    return TriedCondition(condition.text, None, condition.compare(math.inf, condition.limit))
