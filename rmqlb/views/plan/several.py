"""The plans of several groups as one report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rmqlb.model.plan import MovedRange, ObservedOwners, RebalancePlan, Spread, Summary
from rmqlb.model.words import counted
from rmqlb.views.of_groups import of_groups
from rmqlb.views.plan.headline import verdict
from rmqlb.views.report import Report

if TYPE_CHECKING:
    from rmqlb.views.shapes.plan import PlansSummaryData


def plans_report(parts: Sequence[tuple[str, Report]], plans: Sequence[RebalancePlan]) -> Report:
    """The report of several groups: what becomes of all of them, then each.

    Args:
        parts: each group's name and report.
        plans: the plans that those show.
    """
    total = _total([plan.summary for plan in plans])
    return of_groups(parts, f"{counted(len(plans), 'group')}: {verdict(total)}", _data(total, len(plans)))


def _data(total: Summary, groups: int) -> PlansSummaryData:
    over = total.moved_range
    return {
        "groups": groups,
        "queues": total.after.queues,
        "moved": total.moved,
        "movedRange": None if over is None else {"fewest": over.fewest, "most": over.most, "complete": over.complete},
        "assigned": total.assigned,
        "unassigned": total.unassigned,
        "added": total.added,
        "removed": total.removed,
        "unowned": total.after.unowned,
        "duplicateOwners": total.after.multiply_owned,
        "lagUnassigned": total.lag_unassigned,
        "lagRemoved": total.lag_removed,
    }


def _total(summaries: Sequence[Summary]) -> Summary:
    """All groups' numbers; nothing of how even each of them is."""
    observed = [summary.observed for summary in summaries if summary.observed is not None]
    return Summary(
        before=_spread([summary.before for summary in summaries]),
        after=_spread([summary.after for summary in summaries]),
        moved=sum(summary.moved for summary in summaries),
        assigned=sum(summary.assigned for summary in summaries),
        unassigned=sum(summary.unassigned for summary in summaries),
        added=sum(summary.added for summary in summaries),
        removed=sum(summary.removed for summary in summaries),
        least_moves=_sum(summary.least_moves for summary in summaries),
        lag_moved=_sum(summary.lag_moved for summary in summaries),
        publish_before=0,
        publish_after=0,
        moved_range=_range([summary.moved_range for summary in summaries]),
        lag_unassigned=_sum(summary.lag_unassigned for summary in summaries),
        lag_removed=_sum(summary.lag_removed for summary in summaries),
        observed=ObservedOwners(*map(sum, zip(*map(_fields, observed), strict=True))) if observed else None,
    )


def _fields(seen: ObservedOwners) -> tuple[int, ...]:
    return tuple(getattr(seen, name) for name in seen.__struct_fields__)


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = list(numbers)
    return None if None in known else sum(number or 0 for number in known)


def _range(ranges: Sequence[MovedRange | None]) -> MovedRange | None:
    """Each group's new members sort on their own: the fewest of each may come together."""
    known = [each for each in ranges if each is not None]
    if len(known) < len(ranges):
        return None
    complete = all(each.complete for each in known)
    return MovedRange(sum(each.fewest for each in known), sum(each.most for each in known), complete)


def _spread(spreads: Sequence[Spread]) -> Spread:
    return Spread(
        consumers=sum(spread.consumers for spread in spreads),
        queues=sum(spread.queues for spread in spreads),
        idle=sum(spread.idle for spread in spreads),
        unowned=sum(spread.unowned for spread in spreads),
        multiply_owned=sum(spread.multiply_owned for spread in spreads),
        shared_id=sum(spread.shared_id for spread in spreads),
        least=None,
        most=None,
        held=sum(spread.held for spread in spreads),
    )
