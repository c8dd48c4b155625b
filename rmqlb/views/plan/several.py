"""The plans of several groups as one report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from rmqlb.model.evenness import Spread
from rmqlb.model.plan import MovedRange, ObservedOwners, RebalancePlan, Summary
from rmqlb.model.unknown import sum_if_known
from rmqlb.model.words import counted, of_all
from rmqlb.views.of_groups import of_groups
from rmqlb.views.plan.headline import grave, imbalance_text, strategies, verdict
from rmqlb.views.report import Cell, Column, Report, Section, about, attribute_of, rows_of


class PlansSummary(Struct, frozen=True, rename="camel"):
    """What the change does to all groups together.

    Attributes:
        groups: how many.
        queues: queues afterwards.
        moved: queues that go from one owner to another.
        moved_range: moved over the orders of client ids that are not known yet; null when the ids themselves decide.
        newly_assigned: queues that had no owner and get one.
        newly_unassigned: queues that lose their owner and get none.
        added: queues that exist only afterwards.
        removed: queues that exist only before.
        unassigned: queues without an owner afterwards.
        duplicate_owners: queues with duplicate owners afterwards.
        lag_unassigned: messages waiting in the queues without an owner afterwards; null when not known for all of them.
        lag_removed: messages waiting in the queues that exist only before; null when not known for all of them.
    """

    groups: int
    queues: int
    moved: int
    moved_range: MovedRange | None
    newly_assigned: int
    newly_unassigned: int
    added: int
    removed: int
    unassigned: int
    duplicate_owners: int
    lag_unassigned: int | None
    lag_removed: int | None


class PlanOfGroups(Struct, frozen=True):
    """What a change does to several groups.

    Attributes:
        groups: each group's plan, as rmqlb/plan has it.
        summary: of all of them.
    """

    groups: tuple[RebalancePlan, ...]
    summary: PlansSummary


def plans_report(parts: Sequence[tuple[str, Report]], plans: Sequence[RebalancePlan]) -> Report:
    """The report of several groups: what becomes of all of them, then each."""
    total = _total([plan.summary for plan in plans])
    names = set(PlansSummary.__struct_fields__) - {"groups", "queues"}
    numbers = {name: getattr(total, name) for name in names}
    data = PlanOfGroups(tuple(plans), PlansSummary(groups=len(plans), queues=total.after.queues, **numbers))
    by_pop = sum(bool(plan.pop_topics) for plan in plans)
    popping = f"{of_all(by_pop, len(plans), 'group')} consume{'s' * (by_pop == 1)} by POP" if by_pop else ""
    told = "; ".join(filter(None, (verdict(total), popping)))
    return of_groups(parts, [f"{counted(len(plans), 'group')}: {told}"], data, _groups(plans))


def _groups(plans: Sequence[RebalancePlan]) -> Section:
    summaries = [plan.summary for plan in plans]
    columns = (
        Column("", "severity", "sign", shown=any(map(grave, plans)), of=lambda plan: grave(plan) or None),
        Column("group", "group"),
        Column("consumers", "consumers", of=_consumers),
        Column("queues", "queues", "number", of=lambda p: p.summary.after.queues),
        Column("move", "moved", "number", of=lambda p: _moved(p.summary)),
        Column("minimum", "minimumMoves", "number", fold=5, of=lambda p: p.summary.minimum_moves),
        _figure("unassigned", "unassigned", summaries, 0),
        _figure("duplicate owners", "duplicateOwners", summaries, 0),
        _figure("left waiting", "lagUnassigned", summaries, 1),
        _figure("removed", "removed", summaries, 0),
        _figure("idle", "idle", summaries, 2),
        Column("imbalance", "imbalance", fold=3, of=lambda p: imbalance_text(p.summary)),
        Column("converges in", "convergenceMs", fold=4, of=_converges),
        Column("strategy", "strategy", fold=6, of=strategies),
    )
    return Section("groups", "groups", columns, rows_of(columns, plans))


def _figure(title: str, key: str, summaries: Sequence[Summary], fold: int) -> Column:
    """A figure that people see where it is not 0 in each group."""
    field = attribute_of(key)
    shown = any(getattr(summary, field) for summary in summaries)
    return Column(title, key, "number", fold=fold, shown=shown, of=lambda plan: getattr(plan.summary, field))


def _consumers(plan: RebalancePlan) -> str:
    """The summary counts no consumer of a group that consumes all by POP."""
    if plan.topics or not plan.pop_topics:
        return _change(plan.summary.before.consumers, plan.summary.after.consumers)
    return _change(len(set(plan.sorted_consumers_before)), len(set(plan.sorted_consumers_after)))


def _change(before: int, after: int) -> str:
    return f"{after}" if before == after else f"{before} → {after}"


def _moved(s: Summary) -> Cell:
    found = s.moved_range
    return s.moved if found is None or found.fewest == found.most else f"{found.fewest}-{found.most}"


def _converges(plan: RebalancePlan) -> str:
    found = plan.convergence
    return "" if found is None or found.convergence_ms is None else about(found.convergence_ms)


_SUMMED = ("moved", "newly_assigned", "newly_unassigned", "added", "removed", "idle", "unassigned", "duplicate_owners")
_SUMMED_IF_KNOWN = ("minimum_moves", "lag_moved", "lag_unassigned", "lag_removed")
_SUMMED_OF_SPREADS = ("queues", "idle", "unassigned", "duplicate_owners", "queues_of_duplicate_client_ids", "consumers")


def _total(summaries: Sequence[Summary]) -> Summary:
    observed = [summary.observed for summary in summaries if summary.observed is not None]
    known: dict[str, Any] = {name: sum_if_known(getattr(each, name) for each in summaries) for name in _SUMMED_IF_KNOWN}
    return Summary(
        **_sums(summaries, _SUMMED),
        **known,
        writable_queues_before=0,
        writable_queues_after=0,
        imbalance=None,
        before=_spread([summary.before for summary in summaries]),
        after=_spread([summary.after for summary in summaries]),
        moved_range=_range([summary.moved_range for summary in summaries]),
        observed=ObservedOwners(**_sums(observed, ObservedOwners.__struct_fields__)) if observed else None,
    )


def _sums(parts: Sequence[Struct], names: Iterable[str]) -> dict[str, Any]:
    return {name: sum(getattr(part, name) for part in parts) for name in names}


def _range(ranges: Sequence[MovedRange | None]) -> MovedRange | None:
    """Each group's new consumers sort on their own: the fewest of each may come together."""
    known = [each for each in ranges if each is not None]
    if len(known) < len(ranges):
        return None
    complete = all(each.complete for each in known)
    return MovedRange(sum(each.fewest for each in known), sum(each.most for each in known), complete)


def _spread(spreads: Sequence[Spread]) -> Spread:
    return Spread(**_sums(spreads, _SUMMED_OF_SPREADS), queues_per_consumer=None, imbalance=None)
