"""A `RebalancePlan` as a report."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.model.plan import ConsumerPlan, RebalancePlan, Summary, TriedCondition
from rmqlb.model.words import counted
from rmqlb.views.plan.data import move_data, plan_data
from rmqlb.views.plan.headline import headline
from rmqlb.views.plan.settling import settling_facts
from rmqlb.views.report import NOT_THERE, QUEUE_COLUMNS, Cell, Column, Report, Rows, Section, labels

_ALWAYS = (
    "consumers",
    "queues",
    "queues that producers see",
    "idle consumers",
    "queues without owner",
    "queues with several owners",
)
"""Rows of the summary that are shown even when they are 0 on both sides."""
_ORIGINS = {
    "given": "",
    "reported": " (as members report)",
    "observed": " (as the owners seen show)",
    "assumed": " (assumed)",
}


def plan_report(
    plan: RebalancePlan, *, changed_only: bool = False, conditions: Sequence[TriedCondition] = ()
) -> Report:
    """The plan for people and machines.

    Args:
        plan: the plan.
        changed_only: people, CSV and the rows have only queues that change.
        conditions: what the user asked to be told about.
    """
    sections = [
        _queues(plan, changed_only),
        _consumers(plan),
        *([_comparisons(plan)] if len(plan.comparisons) > 1 else []),
        _summary(plan.summary),
    ]
    listed = labels(consumer.client_id for consumer in plan.consumers)
    data = plan_data(plan, conditions)
    return Report("rmqlb/plan", data, _facts(plan), tuple(sections), listed, _rows(plan, changed_only))


def _rows(plan: RebalancePlan, changed_only: bool) -> Rows:
    moves = (move for topic in plan.topics for move in topic.moves if not changed_only or move.change != "same")
    return Rows(("topic", "brokerName", "queueId"), [({"topic": move.queue.topic}, move_data(move)) for move in moves])


def _facts(plan: RebalancePlan) -> tuple[str, ...]:
    strategy = plan.strategy_before + _ORIGINS[plan.strategy_origin]
    if plan.strategy_after != plan.strategy_before:
        strategy += f", afterwards {plan.strategy_after}"
    s = plan.summary
    least = (
        []
        if s.least_moves is None or plan.broadcasting
        else [f"minimum for a balanced plan: {counted(s.least_moves, 'move')}"]
    )
    change = f"change: {'; '.join(plan.changes) or 'none'}"
    facts = [headline(plan), "; ".join([change, *least]), f"strategy {strategy}", *settling_facts(plan)]
    if s.observed is not None and s.observed.moved != s.moved:
        moves = "moves" if s.observed.moved == 1 else "move"
        facts.append(f"{counted(s.observed.moved, 'queue')} {moves} away from the observed owner")
    if plan.explained:
        facts += [f"sorted consumers before: {_numbered(plan.sorted_before)}"]
        facts += [f"sorted consumers after: {_numbered(plan.sorted_after)}"]
    return tuple(facts)


def _numbered(client_ids: tuple[str, ...]) -> str:
    return "  ".join(f"{index}={client_id}" for index, client_id in enumerate(client_ids)) or "none"


def _queues(plan: RebalancePlan, changed_only: bool) -> Section:
    moves = [move for topic in plan.topics for move in topic.moves]
    differs = any(move.observed not in (None, move.owners_before) for move in moves)
    columns = (
        *QUEUE_COLUMNS,
        Column("predicted before" if differs else "before", "ownersBefore", "clients"),
        Column("predicted after" if differs else "after", "ownersAfter", "clients"),
        Column("change", "change", "change"),
        Column("owner seen", "ownersObserved", "clients", shown=differs),
        Column("lag", "lag", "number", shown=any(move.lag is not None for move in moves)),
        Column("why before", "reasonBefore", shown=any(move.reason_before != move.reason_after for move in moves)),
        Column("why", "reasonAfter", shown=plan.explained),
        Column("starts at", "startOffset", "number", shown=any(move.start_offset is not None for move in moves)),
        Column("start rule", "startRule", shown=False),
    )
    rows = tuple(
        (
            move.queue.topic,
            move.queue.broker_name,
            move.queue.queue_id,
            _owners(move.owners_before),
            _owners(move.owners_after),
            move.change,
            move.observed,
            move.lag,
            move.reason_before,
            move.reason_after,
            "" if move.start_rule is None else move.start_offset,
            move.start_rule or "",
        )
        for move in moves
        if not changed_only or move.change != "same"
    )
    title = "queues that change" if changed_only else "queues"
    return Section("queues", title, columns, rows, heads=3)


def _owners(owners: tuple[str, ...] | None) -> Cell:
    """A queue that does not exist on this side has no owners at all."""
    return NOT_THERE if owners is None else owners


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
        Column("note", "note"),
        Column(
            "observed",
            "queuesObserved",
            "number",
            shown=any(c.queues_observed not in (None, c.queues_before) for c in plan.consumers),
        ),
    )
    rows = tuple(
        (
            index,
            c.client_id,
            c.queues_before,
            c.queues_after,
            c.gained,
            c.lost,
            c.lag_gained,
            c.lag_lost,
            _note(c),
            c.queues_observed,
        )
        for index, c in enumerate(plan.consumers)
    )
    return Section("consumers", "consumers", columns, rows, heads=2)


def _note(consumer: ConsumerPlan) -> str:
    notes = []
    if consumer.made_up:
        notes.append("made up")
    if consumer.index_before is None:
        notes.append("new")
    if consumer.index_after is None:
        notes.append("gone")
    processes = dict.fromkeys(n for n in (consumer.processes_before, consumer.processes_after) if n)
    if max(processes, default=1) > 1:
        notes.append(f"{' → '.join(map(str, processes))} processes")
    if consumer.index_after is not None and consumer.queues_after == 0:
        notes.append(f"idle: {consumer.idle_reason}" if consumer.idle_reason else "idle")
    return ", ".join(notes)


def _comparisons(plan: RebalancePlan) -> Section:
    ranges = [c.summary.moved_range for c in plan.comparisons]
    ranged = any(each is None or each.fewest < each.most for each in ranges)
    columns = (
        Column("strategy", "strategy"),
        Column("moved", "moved", "number"),
        Column("least", "leastMoves", "number"),
        Column("idle", "idle", "number"),
        Column("unowned", "unowned", "number"),
        Column("multiply owned", "multiplyOwned", "number"),
        Column("max/mean before", "maxOverMeanBefore", "number"),
        Column("max/mean after", "maxOverMeanAfter", "number"),
        Column("moved, fewest", "movedFewest", "number", shown=ranged),
        Column("moved, most", "movedMost", "number", shown=ranged),
    )
    rows = tuple(
        (
            c.strategy if c.strategy == c.strategy_after else f"{c.strategy} → {c.strategy_after}",
            c.summary.moved,
            c.summary.least_moves,
            c.summary.after.idle,
            c.summary.after.unowned,
            c.summary.after.multiply_owned,
            c.summary.before.max_over_mean,
            c.summary.after.max_over_mean,
            None if over is None else over.fewest,
            None if over is None else over.most,
        )
        for c, over in zip(plan.comparisons, ranges, strict=True)
    )
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
        observed["queues without owner"] = seen.unassigned
        observed["queues with several owners"] = seen.duplicate_owners
    rows: list[tuple[Cell, ...]] = [
        ("consumers", before.consumers, after.consumers),
        ("queues", before.queues, after.queues),
        ("queues that producers see", summary.publish_before, summary.publish_after),
        ("idle consumers", before.idle, after.idle),
        ("queues without owner", before.unowned, after.unowned),
        ("queues with several owners", before.multiply_owned, after.multiply_owned),
        ("queues read by several processes of one id", before.shared_id, after.shared_id),
        ("queues a consumer, fewest", before.least, after.least),
        ("queues a consumer, mean", before.mean, after.mean),
        ("queues a consumer, most", before.most, after.most),
        ("most / mean", before.max_over_mean, after.max_over_mean),
    ]
    kept = ((*row, observed.get(str(row[0]), "")) for row in rows if row[1:] != (0, 0) or row[0] in _ALWAYS)
    return Section("summary", "summary", columns, tuple(kept))
