"""A `RebalancePlan` as a report."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.model.plan import ADDED, REMOVED, SAME, Move, RebalancePlan, Summary
from rmqlb.model.words import counted
from rmqlb.views.plan.headline import facts, grave
from rmqlb.views.plan.screen import consumers_section, moves_section, note
from rmqlb.views.report import NOT_THERE, QUEUE_COLUMNS, Cell, Column, Kind, Report, Rows, Section, labels, rows_of

_ALWAYS = (
    "consumers",
    "queues",
    "writable queues",
    "idle consumers",
    "unassigned queues",
    "queues with duplicate owners",
)
"""Rows of the summary that are shown even when they are 0 on both sides."""
_FIGURES = {
    "consumers": "consumers",
    "queues": "queues",
    "idle consumers": "idle",
    "unassigned queues": "unassigned",
    "queues with duplicate owners": "duplicate_owners",
    "queues of duplicate client IDs": "queues_of_duplicate_client_ids",
    "queues per consumer, min": "fewest",
    "queues per consumer, mean": "mean",
    "queues per consumer, max": "most",
    "imbalance": "imbalance",
}
"""A row of the summary → the field of each side."""


def plan_report(plan: RebalancePlan, *, changed_only: bool = False, explained: bool = False) -> Report:
    """The plan for people and machines; with `changed_only` scripts have only the queues that change."""
    if not plan.pop_topics:
        return _of_owned(plan, changed_only=changed_only, explained=explained)
    from rmqlb.views.plan.by_pop import pop_plan_report, with_pop

    if not plan.topics:
        return pop_plan_report(plan, changed_only=changed_only)
    return with_pop(_of_owned(plan, changed_only=changed_only, explained=explained), plan, changed_only=changed_only)


def _of_owned(plan: RebalancePlan, *, changed_only: bool, explained: bool) -> Report:
    """What of the group is pulled."""
    moves = moves_section(plan)
    compared = [_comparisons(plan)] if len(plan.comparison) > 1 else []
    queues, consumers, summary = _queues(plan, changed_only, explained), _consumers(plan), _summary(plan.summary)
    listed = labels(consumer.client_id for consumer in plan.consumers)
    rows = [({"topic": topic}, move) for topic, move in _shown(plan, changed_only)]
    return Report(
        schema="rmqlb/plan",
        data=plan,
        facts=facts(plan, explained=explained),
        sections=(*compared, consumers_section(plan), *([moves] if moves.rows else []), queues, consumers, summary),
        labels=listed,
        rows=Rows(("topic", "brokerName", "queueId"), rows),
        tables=(queues, consumers, *compared, summary),
        grave=grave(plan),
        more=_more(plan),
    )


def _more(plan: RebalancePlan) -> str:
    kept = sum(move.change == SAME for move in plan.moves)
    verb = "keeps its" if kept == 1 else "keep their"
    keep = f"{counted(kept, 'queue')} {verb} owner; " if kept else ""
    return f"{keep}--all lists every queue, --explain says why, -o json has everything"


def _shown(plan: RebalancePlan, changed_only: bool) -> Iterator[tuple[str, Move]]:
    for topic in plan.topics:
        yield from ((topic.topic, move) for move in topic.queues if not changed_only or move.change != SAME)


def _queues(plan: RebalancePlan, changed_only: bool, explained: bool) -> Section:
    moves = plan.moves
    kind: Kind = "clients" if plan.broadcasting else "owners"
    differs = any(_before(move) != move.owners_observed is not None for move in moves)
    columns = (
        *QUEUE_COLUMNS,
        Column("predicted before" if differs else "before", "ownersBefore", kind, of=_before),
        Column("predicted after" if differs else "after", "ownersAfter", kind, of=_after),
        Column("change", "change", "change"),
        Column("observed owner", "ownersObserved", kind, shown=differs),
        Column("lag", "lag", "number", shown=any(move.lag is not None for move in moves)),
        Column("why before", "reasonBefore", shown=any(move.reason_before != move.reason_after for move in moves)),
        Column("why", "reasonAfter", shown=explained),
        Column(
            "start offset",
            "startOffset",
            "number",
            shown=any(move.start_offset is not None for move in moves),
            of=lambda move: "" if move.start_rule is None else move.start_offset,
        ),
        Column("start rule", "startRule", shown=False, of=lambda move: move.start_rule or ""),
    )
    shown = list(_shown(plan, changed_only))
    rows = tuple(
        (topic, *row) for (topic, _), row in zip(shown, rows_of(columns[1:], (move for _, move in shown)), strict=True)
    )
    title = "queues that change" if changed_only else "queues"
    return Section("queues", title, columns, rows, heads=3, audience="all" if explained else "scripts")


def _before(move: Move) -> Cell:
    """A queue that does not exist before has no owners at all."""
    return NOT_THERE if move.change == ADDED else move.owners_before


def _after(move: Move) -> Cell:
    return NOT_THERE if move.change == REMOVED else move.owners_after


def _consumers(plan: RebalancePlan) -> Section:
    known = any(c.lag_gained or c.lag_lost for c in plan.consumers)
    columns = (
        Column("#", "index", "label"),
        Column("consumer", "clientId"),
        Column("before", "queuesBefore", "number"),
        Column("after", "queuesAfter", "number"),
        Column("gained", "gained", "number"),
        Column("lost", "lost", "number"),
        Column("lag gained", "lagGained", "number", shown=known),
        Column("lag lost", "lagLost", "number", shown=known),
        Column("note", "note", of=note),
        Column(
            "observed",
            "queuesObserved",
            "number",
            shown=any(c.queues_observed not in (None, c.queues_before) for c in plan.consumers),
        ),
    )
    rows = tuple((index, *row) for index, row in enumerate(rows_of(columns[1:], plan.consumers)))
    return Section("consumers", "consumers", columns, rows, heads=2, audience="scripts")


def _comparisons(plan: RebalancePlan) -> Section:
    ranges = [c.summary.moved_range for c in plan.comparison]
    ranged = any(each is None or each.fewest < each.most for each in ranges)
    columns = (
        Column("strategy", "strategy"),
        Column("moved", "moved", "number"),
        Column("minimum", "minimumMoves", "number"),
        Column("idle", "idle", "number"),
        Column("unassigned", "unassigned", "number"),
        Column("duplicate owners", "duplicateOwners", "number"),
        Column("imbalance before", "imbalanceBefore", "number", of=lambda s: s.before.imbalance),
        Column("imbalance after", "imbalanceAfter", "number", of=lambda s: s.imbalance),
        Column(
            "moved, fewest", "movedFewest", "number", shown=ranged, of=lambda s: s.moved_range and s.moved_range.fewest
        ),
        Column("moved, most", "movedMost", "number", shown=ranged, of=lambda s: s.moved_range and s.moved_range.most),
    )
    names = [
        c.strategy if c.strategy == c.strategy_after else f"{c.strategy} → {c.strategy_after}" for c in plan.comparison
    ]
    found = rows_of(columns[1:], (c.summary for c in plan.comparison))
    rows = tuple((name, *row) for name, row in zip(names, found, strict=True))
    return Section("strategies", "the same change under each strategy", columns, rows, heads=1)


def _summary(summary: Summary) -> Section:
    before, after, seen = summary.before, summary.after, summary.observed
    columns = (
        Column("", "figure"),
        Column("before", "before", "number"),
        Column("after", "after", "number"),
        Column("observed", "observed", "number", shown=seen is not None and seen.mismatches > 0),
    )
    observed: dict[str, int] = {}
    if seen is not None:
        observed["queues"] = seen.queues
        observed["unassigned queues"] = seen.unassigned
        observed["queues with duplicate owners"] = seen.duplicate_owners
    rows: list[tuple[Cell, ...]] = [
        (name, getattr(before, field), getattr(after, field)) for name, field in _FIGURES.items()
    ]
    rows.insert(2, ("writable queues", summary.writable_queues_before, summary.writable_queues_after))
    kept = ((*row, observed.get(str(row[0]), "")) for row in rows if row[1:] != (0, 0) or row[0] in _ALWAYS)
    return Section("summary", "summary", columns, tuple(kept), audience="scripts")
