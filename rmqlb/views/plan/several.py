"""The plans of several groups as one report."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.model.plan import PlanOfGroups, RebalancePlan, Summary, total_of
from rmqlb.model.words import counted, of_all
from rmqlb.views.of_groups import of_groups
from rmqlb.views.plan.headline import grave, imbalance_text, strategies, verdict
from rmqlb.views.report import Cell, Column, Report, Section, about, attribute_of, rows_of


def plans_report(parts: Sequence[tuple[str, Report]], data: PlanOfGroups) -> Report:
    """The report of several groups: what becomes of all of them, then each."""
    plans = data.groups
    by_pop = sum(bool(plan.pop_topics) for plan in plans)
    popping = f"{of_all(by_pop, len(plans), 'group')} consume{'s' * (by_pop == 1)} by POP" if by_pop else ""
    told = "; ".join(filter(None, (verdict(total_of([plan.summary for plan in plans])), popping)))
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
