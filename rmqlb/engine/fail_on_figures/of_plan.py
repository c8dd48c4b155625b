"""The figures of a plan that `--fail-on` can ask about."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rmqlb.engine.fail_on_figures.conditions import Condition, Figures
from rmqlb.model.condition import TriedCondition
from rmqlb.model.plan import Summary

_Figure = Callable[[Summary], float | None]
_VALUES: dict[str, _Figure] = {
    "moved": lambda s: s.moved,
    "newly-assigned": lambda s: s.newly_assigned,
    "newly-unassigned": lambda s: s.newly_unassigned,
    "added": lambda s: s.added,
    "removed": lambda s: s.removed,
    "idle": lambda s: s.after.idle,
    "unassigned": lambda s: s.after.unassigned,
    "duplicate-owners": lambda s: s.after.duplicate_owners,
    "queues-of-duplicate-client-ids": lambda s: s.after.queues_of_duplicate_client_ids,
    "max-queues-per-consumer": lambda s: s.after.most,
    "min-queues-per-consumer": lambda s: s.after.fewest,
    "imbalance": lambda s: s.after.imbalance,
    "lag-moved": lambda s: s.lag_moved,
    "excess-moves": lambda s: None if s.minimum_moves is None else s.moved - s.minimum_moves,
    "lag-unassigned": lambda s: s.lag_unassigned,
    "lag-removed": lambda s: s.lag_removed,
    "mismatches": lambda s: None if s.observed is None else s.observed.mismatches,
    "observed-unassigned": lambda s: None if s.observed is None else s.observed.unassigned,
    "observed-duplicate-owners": lambda s: None if s.observed is None else s.observed.duplicate_owners,
}
_WHOLES: dict[str, _Figure] = {
    "moved": lambda s: s.before.queues - s.removed,
    "idle": lambda s: s.after.consumers,
    **dict.fromkeys(
        ("newly-assigned", "newly-unassigned", "unassigned", "duplicate-owners", "queues-of-duplicate-client-ids"),
        lambda s: s.after.queues,
    ),
    **dict.fromkeys(
        ("mismatches", "observed-unassigned", "observed-duplicate-owners"),
        lambda s: None if s.observed is None else s.observed.queues,
    ),
}
PLAN_FIGURES = Figures(tuple(_VALUES), shares=tuple(_WHOLES))  # percentages are of queues, or of consumers for `idle`


def try_on_plan(condition: Condition, summary: Summary, places: Iterable[Summary] = ()) -> TriedCondition:
    """Whether the condition is there in a plan, or in any order of the ids that are not known yet (`places`).

    The largest figure of those that meet it; of all when none does; the unknown one when there is one.
    """
    tried = [_try(condition, each) for each in (summary, *places)]
    met = [each for each in tried if each.met]
    unknown = [each for each in tried if each.met is None]
    return max(met or unknown or tried, key=lambda each: each.value or 0)


def _try(condition: Condition, summary: Summary) -> TriedCondition:
    whole = _WHOLES[condition.name](summary) if condition.percent else None
    return condition.try_on(_VALUES[condition.name](summary), whole)
