"""The output of plan-rebalance: sentences with the worst effect first, then tables for screens and for scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from rmqlb.model.finding import ERROR, INFO, WARNING
from rmqlb.model.message_queue import MessageQueue, queue_ranges
from rmqlb.model.plan import (
    ADDED,
    REMOVED,
    SAME,
    ConsumerPlan,
    Move,
    MovedRange,
    PlanOfGroups,
    PopChange,
    RebalancePlan,
    Summary,
    total_of,
)
from rmqlb.model.sdk_use import sdks_text
from rmqlb.model.unknown import sum_if_known
from rmqlb.model.words import all_or_some, are, counted, have, messages, named, of_all
from rmqlb.views.of_groups import of_groups
from rmqlb.views.queue_lists import figure_column, fitting, lag_column, place_of, pop_facts, pop_title, severity_of
from rmqlb.views.report import (
    BETWEEN,
    NOT_THERE,
    QUEUE_COLUMNS,
    Cell,
    Column,
    Kind,
    Report,
    Rows,
    Section,
    about,
    labels,
    numbers,
    rows_of,
    worst,
)

_MOST_CONSUMERS = 8
_MOST_NOTABLE = 1_000_000
"""A consumer that is new, gone or idle goes before one that only gains and loses queues."""
_ROOM = 9
"""Lines of the queues that change."""
_NEW, _GONE = ("(new queue)",), ("(removed)",)
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
_ALWAYS = (*tuple(_FIGURES)[:5], "writable queues")
"""Rows of the summary that are shown even when they are 0 on both sides."""


def plan_report(plan: RebalancePlan, *, changed_only: bool = False, explained: bool = False) -> Report:
    """The report of one group's plan; with `changed_only` scripts get only the queues that change."""
    if plan.topics or not plan.pop_topics:
        shown = _owned_report(plan, changed_only, explained)
        if not plan.pop_topics:
            return shown
        return shown.with_part(_pop_section(plan, changed_only), _pop_facts(plan), _pop_rows(plan, changed_only))
    section = _pop_section(plan, changed_only)
    return Report(
        schema="rmqlb/plan",
        data=plan,
        facts=(_pop_headline(plan), *_pop_facts(plan)),
        sections=(section,) if section.rows else (),
        labels=labels(consumer.client_id for consumer in plan.consumers),
        rows=Rows(("topic", "brokerName", "queueId"), list(_pop_rows(plan, changed_only))),
        tables=(section,),
        grave=WARNING if any(each.consumers_after == () for _, each in _pop_rows(plan)) else "",
        more="-o json has everything",
    )


def plans_report(result: PlanOfGroups, *, changed_only: bool = False, explained: bool = False) -> Report:
    """The report of several groups: the effect on all of them, then each group."""
    plans = result.groups
    by_pop = sum(bool(plan.pop_topics) for plan in plans)
    texts = [verdict(total_of([plan.summary for plan in plans]))]
    if by_pop:
        texts.append(f"{of_all(by_pop, len(plans), 'group')} consume{'s' * (by_pop == 1)} by POP")
    parts = [(p.group or "", plan_report(p, changed_only=changed_only, explained=explained)) for p in plans]
    return of_groups(
        parts, [f"{counted(len(plans), 'group')}: {'; '.join(filter(None, texts))}"], result, _groups(plans)
    )


def _owned_report(plan: RebalancePlan, changed_only: bool, explained: bool) -> Report:
    moves = _moves_section(plan)
    compared = [_comparisons(plan)] if len(plan.comparison) > 1 else []
    queues, consumers, summary = _queues(plan, changed_only, explained), _consumers(plan), _summary(plan.summary)
    kept = sum(move.change == SAME for move in plan.moves)
    keep = f"{counted(kept, 'queue')} {'keeps its' if kept == 1 else 'keep their'} owner; " if kept else ""
    return Report(
        schema="rmqlb/plan",
        data=plan,
        facts=facts(plan, explained=explained),
        sections=(*compared, _changed_consumers(plan), *([moves] if moves.rows else []), queues, consumers, summary),
        labels=labels(consumer.client_id for consumer in plan.consumers),
        rows=Rows(
            ("topic", "brokerName", "queueId"), [({"topic": topic}, move) for topic, move in _shown(plan, changed_only)]
        ),
        tables=(queues, consumers, *compared, summary),
        grave=grave(plan),
        more=f"{keep}--all lists every queue, --explain says why, -o json has everything",
    )


# -- sentences


def headline(plan: RebalancePlan) -> str:
    """The group, its consumers before and after, and the verdict."""
    s = plan.summary
    text = verdict(s, broadcasting=plan.broadcasting)
    if not s.before.queues and not s.after.queues:
        text = "its topics have no readable queue, so there is nothing to plan"
    return f"{plan.group or 'a group'}, {_counted_change(s.before.consumers, s.after.consumers)}: {text}"


def _counted_change(before: int, after: int) -> str:
    return counted(after, "consumer") if before == after else f"{before} → {counted(after, 'consumer')}"


def verdict(s: Summary, *, broadcasting: bool = False) -> str:
    """The effect on the queues, the worst first."""
    return "; ".join((*_bad(s), *_moves(s, broadcasting=broadcasting), *_observed(s)))


def _bad(s: Summary) -> Iterator[str]:
    if number := s.unassigned:
        before = s.before.unassigned
        verb = are(number) if before else "becomes" if number == 1 else "become"
        was = f" ({before} before the change)" if before else ""
        left = f", {messages(s.lag_unassigned)} left waiting" if s.lag_unassigned else ""
        yield f"{all_or_some(number, s.after.queues)} {verb} unassigned{was}{left}"
    if number := s.duplicate_owners:
        yield f"{of_all(number, s.after.queues)} {have(number)} duplicate owners"
    if number := s.after.queues_of_duplicate_client_ids:
        yield f"{of_all(number, s.after.queues)} {are(number)} read by several processes of one client ID"
    if s.removed:
        left = f" with {messages(s.lag_removed, 'unread ')}" if s.lag_removed else ""
        yield f"{of_all(s.removed, s.before.queues)} {are(s.removed)} removed{left}"


def _moves(s: Summary, *, broadcasting: bool) -> Iterator[str]:
    if broadcasting:  # a new consumer reads every queue, and one that leaves passes none on
        if not s.unassigned:
            yield "BROADCASTING, so each consumer reads every queue and none moves"
        return
    if s.unassigned != s.after.queues or s.moved:
        yield _moving(s.moved, s.moved_range, s.before.queues - s.removed)
    if s.newly_assigned:
        yield f"{counted(s.newly_assigned, 'queue')} that had no owner {'gets' if s.newly_assigned == 1 else 'get'} one"
    if s.added:
        yield f"{counted(s.added, 'queue')} {are(s.added)} added"


def _moving(moved: int, over_places: MovedRange | None, kept: int) -> str:
    """How many queues move; of IDs that are not known yet, over all of their orders."""

    def moves(number: str) -> str:
        if number == "0":
            return "no queue moves" if kept else "there is no queue that could move"
        return f"{number} of {counted(kept, 'queue')} move{'s' if number == '1' else ''}"

    if over_places is None:
        return f"{moves(str(moved))} with placeholder client IDs, which other IDs change"
    if over_places.fewest == over_places.most:
        text = moves(str(moved))
        return text if over_places.complete else f"about {text} (not every order of the new client IDs was tried)"
    text = f"{moves(f'{over_places.fewest} to {over_places.most}')}, depending on how the new client IDs sort"
    return text if over_places.complete else f"about {text} (not every order was tried)"


def _observed(s: Summary) -> Iterator[str]:
    seen = s.observed
    if seen is None or not seen.mismatches:
        return
    counts = ((seen.unassigned, "unassigned"), (seen.duplicate_owners, "with duplicate owners"))
    bad = " and ".join(f"{number} {what}" for number, what in counts if number)
    yield (
        f"observed owners of {of_all(seen.mismatches, seen.queues)} differ from the prediction before the change"
        f"{bad and ', '}{bad}"
    )


def grave(plan: RebalancePlan) -> str:
    """Red where queues are left without one owner, green where nothing changes."""
    s = plan.summary
    if s.unassigned or s.duplicate_owners or s.after.queues_of_duplicate_client_ids:
        return ERROR
    if s.lag_removed or (s.observed is not None and s.observed.mismatches):
        return WARNING
    return "inOrder" if all(move.change == SAME for move in plan.moves) else ""


def facts(plan: RebalancePlan, *, explained: bool = False) -> tuple[str, ...]:
    """The verdict, then the quality of the result, the time it takes, and the change."""
    change = f"change: {'; '.join(plan.changes) or 'none'}"
    lines = [list(_quality(plan)), list(_convergence(plan)), [_strategy(plan), sdks_text(plan.sdks), change]]
    told = [headline(plan), *(f"  {BETWEEN.join(filter(None, parts))}" for parts in lines if parts)]
    if explained:
        told += [f"  sorted consumers before: {_numbered(plan.sorted_consumers_before)}"]
        told += [f"  sorted consumers after: {_numbered(plan.sorted_consumers_after)}"]
    return tuple(told)


def _numbered(client_ids: tuple[str, ...]) -> str:
    return "  ".join(f"{index}={client_id}" for index, client_id in enumerate(client_ids)) or "none"


def _quality(plan: RebalancePlan) -> Iterator[str]:
    s = plan.summary
    if s.minimum_moves is not None and not plan.broadcasting and s.moved:
        yield f"a balanced plan needs at least {counted(s.minimum_moves, 'move')}"
    if not s.unassigned and s.after.queues:
        yield "nothing unassigned"
    if s.idle:
        yield counted(s.idle, "idle consumer") + ("" if s.before.idle == s.idle else f" ({s.before.idle} before)")
    if s.after.imbalance is not None:
        yield f"imbalance {_imbalance(s)}"
    if s.writable_queues_before != s.writable_queues_after:
        yield f"writable queues {s.writable_queues_before} → {s.writable_queues_after}"
    if s.lag_moved:
        yield f"{messages(s.lag_moved)} waiting in queues that move"
    if s.observed is not None and (moved := s.observed.moved) != s.moved:
        yield f"{counted(moved, 'queue')} move{'s' * (moved == 1)} away from the observed owner"


def _imbalance(s: Summary) -> str:
    sides = (s.before.imbalance, s.after.imbalance)
    before, after = ("unknown" if each is None else f"{each:.2f}" for each in sides)
    return after if before == after else f"{before} → {after}"


def _convergence(plan: RebalancePlan) -> Iterator[str]:
    if plan.strategy_after != plan.strategy:
        yield "consumers restart one after the other to change their strategy: see plan-rollout"
    found = plan.convergence
    if found is None:
        return
    if found.convergence_ms is None:
        yield f"does not converge in any of {found.trials} simulations"
    else:
        most = found.max_convergence_ms
        longest = "not in each of" if most is None else f"max {about(most)} over"
        yield f"converges in about {about(found.convergence_ms)} ({longest} {found.trials} simulations)"
    lengths = (("gap", found.longest_gap_ms), ("overlap", found.longest_overlap_ms))
    yield from (f"longest {what} {about(ms)}" for what, ms in lengths if ms)


def _strategies(plan: RebalancePlan) -> str:
    """The strategies before and, where it is another one, the strategy afterwards."""
    before = plan.strategy
    if len(plan.strategies_reported) > 1:
        before = ", ".join(f"{name} ({number})" for name, number in plan.strategies_reported.items())
    return before if plan.strategy_after == plan.strategy else f"{before} → {plan.strategy_after}"


def _strategy(plan: RebalancePlan) -> str:
    reports = sum(plan.strategies_reported.values())
    origin = {"observed": ", fits the observed owners", "assumed": ", assumed"}.get(plan.strategy_origin, "")
    if reports:
        origin = f", reported by {all_or_some(reports, plan.summary.before.consumers, 'consumer')}"
    return f"{'strategies' if len(plan.strategies_reported) > 1 else 'strategy'} {_strategies(plan)}{origin}"


# -- tables of consumers and queues


def _changed_consumers(plan: RebalancePlan) -> Section:
    """The consumers for a screen; of many those whose queues change most."""
    shown = plan.consumers
    places = {consumer.client_id: at for at, consumer in enumerate(shown)}
    before, after, lost = (
        max((len(str(getattr(each, name))) for each in shown), default=1)
        for name in ("queues_before", "queues_after", "lost")
    )

    def change(consumer: ConsumerPlan) -> str:
        less, more = f"-{consumer.lost}" * bool(consumer.lost), f"+{consumer.gained}" * bool(consumer.gained)
        return f"{less:>{lost + 1}} {more}".rstrip()

    columns = (
        Column("", "severity", "sign", shown=any(map(_severity, shown)), of=_severity),
        Column("#", "index", "label", of=lambda c: places[c.client_id]),
        Column("consumer", "clientId"),
        Column("queues", "queues", "number", of=lambda c: f"{c.queues_before:>{before}} → {c.queues_after:>{after}}"),
        Column("change", "change", of=change),
        Column("observed", "queuesObserved", "number", shown=_observed_differ(plan), fold=1),
        lag_column("lag gained", "lagGained", shown, fold=2),
        lag_column("lag lost", "lagLost", shown, fold=3),
        Column("", "note", "prose", shown=any(map(_note, shown)), of=_note),
    )
    changed = [c.gained + c.lost + _MOST_NOTABLE * bool(_note(c)) for c in shown]
    brief = worst(changed, _MOST_CONSUMERS) if len(shown) > _MOST_CONSUMERS + 1 else None
    return Section(
        "consumers", "consumers", columns, rows_of(columns, shown), heads=3, audience="screen",
        brief=brief, chosen="those whose queues change most",
    )  # fmt: skip


def _consumers(plan: RebalancePlan) -> Section:
    known = any(c.lag_gained or c.lag_lost for c in plan.consumers)
    places = {consumer.client_id: at for at, consumer in enumerate(plan.consumers)}
    columns = (
        Column("#", "index", "label", of=lambda c: places[c.client_id]),
        Column("consumer", "clientId"),
        *numbers("queuesBefore queuesAfter gained lost"),
        Column("lag gained", "lagGained", "number", shown=known),
        Column("lag lost", "lagLost", "number", shown=known),
        Column("note", "note", of=_note),
        Column("observed", "queuesObserved", "number", shown=_observed_differ(plan)),
    )
    rows = rows_of(columns, plan.consumers)
    return Section("consumers", "consumers", columns, rows, heads=2, audience="scripts")


def _observed_differ(plan: RebalancePlan) -> bool:
    return any(c.queues_observed not in (None, c.queues_before) for c in plan.consumers)


def _severity(consumer: ConsumerPlan) -> Cell:
    if consumer.processes_after > 1:
        return ERROR
    return INFO if consumer.index_after is not None and not consumer.queues_after else None


def _note(consumer: ConsumerPlan) -> str:
    notes = ["placeholder"] if consumer.placeholder else []
    notes += ["new"] if consumer.index_before is None else []
    notes += ["gone"] if consumer.index_after is None else []
    processes = dict.fromkeys(n for n in (consumer.processes_before, consumer.processes_after) if n)
    if max(processes, default=1) > 1:
        notes.append(f"{' → '.join(map(str, processes))} processes")
    if consumer.index_after is not None and consumer.queues_after == 0:
        notes.append(f"idle: {consumer.idle_reason}" if consumer.idle_reason else "idle")
    return ", ".join(notes)


class _Way(Struct, frozen=True):
    """Queues with the same owners before and the same owners afterwards."""

    owners_before: tuple[str, ...]
    owners_after: tuple[str, ...]
    queues: tuple[MessageQueue, ...]
    severity: str | None
    lag: int | None

    @property
    def which(self) -> str:
        return queue_ranges(self.queues, len(self.queues))


def _moves_section(plan: RebalancePlan) -> Section:
    """The queues that change; what leaves queues without one owner comes first."""
    moves = _ways(plan)
    columns = (
        Column("", "severity", "sign", shown=any(each.severity for each in moves)),
        Column("from", "ownersBefore", "clients"),
        Column("to", "ownersAfter", "clients" if plan.broadcasting else "owners"),
        Column("queues", "queues", "number", of=lambda each: len(each.queues), fold=1),
        lag_column("lag", "lag", moves, fold=2),
        Column("which", "which", "prose"),
    )
    number = sum(len(each.queues) for each in moves)
    title = f"{counted(number, 'queue')} that change{'s' if number == 1 else ''}"
    badness = [len(each.queues) + (1e6 if each.severity else 0) for each in moves]
    ids = [each.owners_before for each in moves], [each.owners_after for each in moves]
    more = 4 * any(each.severity for each in moves) + 9 * any(each.lag for each in moves)
    brief = fitting([each.which for each in moves], badness, _ROOM, beside=ids, more=more)
    return Section("moves", title, columns, rows_of(columns, moves), heads=3, audience="screen", brief=brief)


def _ways(plan: RebalancePlan) -> list[_Way]:
    places = {consumer.client_id: at for at, consumer in enumerate(plan.consumers)}
    ways: dict[tuple[tuple[str, ...], tuple[str, ...]], list[tuple[MessageQueue, int | None]]] = {}
    for topic in plan.topics:
        for move in topic.queues:
            if move.change != SAME:
                before = _NEW if move.change == ADDED else move.owners_before
                after = _GONE if move.change == REMOVED else move.owners_after
                queue = MessageQueue(topic.topic, move.broker_name, move.queue_id)
                ways.setdefault((before, after), []).append((queue, move.lag))
    found = []
    for (before, after), some in ways.items():
        severity = severity_of(after, broadcasting=plan.broadcasting)
        lag = sum_if_known(lag for _, lag in some)
        found.append(_Way(before, after, tuple(queue for queue, _ in some), severity, lag))

    def order(way: _Way) -> tuple[bool, tuple[int, ...], tuple[int, ...]]:
        return way.severity != ERROR, place_of(way.owners_before, places), place_of(way.owners_after, places)

    return sorted(found, key=order)


def _shown(plan: RebalancePlan, changed_only: bool) -> Iterator[tuple[str, Move]]:
    for topic in plan.topics:
        yield from ((topic.topic, move) for move in topic.queues if not changed_only or move.change != SAME)


def _before(move: Move) -> Cell:
    return NOT_THERE if move.change == ADDED else move.owners_before


def _queues(plan: RebalancePlan, changed_only: bool, explained: bool) -> Section:
    moves = plan.moves
    kind: Kind = "clients" if plan.broadcasting else "owners"
    differs = any(_before(move) != move.owners_observed is not None for move in moves)
    starts = any(move.start_offset is not None for move in moves)
    columns = (
        *QUEUE_COLUMNS,
        Column("predicted before" if differs else "before", "ownersBefore", kind, of=_before),
        Column(
            "predicted after" if differs else "after",
            "ownersAfter",
            kind,
            of=lambda move: NOT_THERE if move.change == REMOVED else move.owners_after,
        ),
        Column("change", "change", "change"),
        Column("observed owner", "ownersObserved", kind, shown=differs),
        Column("lag", "lag", "number", shown=any(move.lag is not None for move in moves)),
        Column("why before", "reasonBefore", shown=any(move.reason_before != move.reason_after for move in moves)),
        Column("why", "reasonAfter", shown=explained),
        Column(
            "start offset",
            "startOffset",
            "number",
            shown=starts,
            of=lambda move: "" if move.start_rule is None else move.start_offset,
        ),
        Column("start rule", "startRule", shown=False, of=lambda move: move.start_rule or ""),
    )
    shown = list(_shown(plan, changed_only))
    cells = rows_of(columns[1:], (move for _, move in shown))
    rows = tuple((topic, *row) for (topic, _), row in zip(shown, cells, strict=True))
    title = "queues that change" if changed_only else "queues"
    return Section("queues", title, columns, rows, heads=3, audience="all" if explained else "scripts")


def _comparisons(plan: RebalancePlan) -> Section:
    ranges = [c.summary.moved_range for c in plan.comparison]
    ranged = any(each is None or each.fewest < each.most for each in ranges)
    columns = (
        Column("strategy", "strategy"),
        *numbers("moved minimumMoves idle unassigned duplicateOwners"),
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
    cells = rows_of(columns[1:], (c.summary for c in plan.comparison))
    rows = tuple((name, *row) for name, row in zip(names, cells, strict=True))
    return Section("strategies", "the same change under each strategy", columns, rows, heads=1)


def _summary(summary: Summary) -> Section:
    before, after, seen = summary.before, summary.after, summary.observed
    columns = (
        Column("", "figure"),
        Column("before", "before", "number"),
        Column("after", "after", "number"),
        Column("observed", "observed", "number", shown=seen is not None and seen.mismatches > 0),
    )
    observed: Mapping[str, int] = {}
    if seen is not None:
        values = (seen.queues, seen.unassigned, seen.duplicate_owners)
        observed = dict(zip(("queues", "unassigned queues", "queues with duplicate owners"), values, strict=True))
    rows: list[tuple[Cell, ...]] = [
        (name, getattr(before, field), getattr(after, field)) for name, field in _FIGURES.items()
    ]
    rows.insert(2, ("writable queues", summary.writable_queues_before, summary.writable_queues_after))
    kept = ((*row, observed.get(str(row[0]), "")) for row in rows if row[1:] != (0, 0) or row[0] in _ALWAYS)
    return Section("summary", "summary", columns, tuple(kept), audience="scripts")


def _groups(plans: Sequence[RebalancePlan]) -> Section:
    columns = (
        Column("", "severity", "sign", shown=any(map(grave, plans)), of=lambda plan: grave(plan) or None),
        Column("group", "group"),
        Column("consumers", "consumers", of=_consumers_text),
        Column("queues", "queues", "number", of=lambda p: p.summary.after.queues),
        Column("move", "moved", "number", of=_moved),
        Column("minimum", "minimumMoves", "number", fold=5, of=lambda p: p.summary.minimum_moves),
        figure_column("unassigned", "unassigned", plans, within="summary"),
        figure_column("duplicate owners", "duplicateOwners", plans, within="summary"),
        figure_column("left waiting", "lagUnassigned", plans, fold=1, within="summary"),
        figure_column("removed", "removed", plans, within="summary"),
        figure_column("idle", "idle", plans, fold=2, within="summary"),
        Column("imbalance", "imbalance", fold=3, of=lambda p: _imbalance(p.summary)),
        Column("converges in", "convergenceMs", fold=4, of=_converges),
        Column("strategy", "strategy", fold=6, of=_strategies),
    )
    return Section("groups", "groups", columns, rows_of(columns, plans))


def _consumers_text(plan: RebalancePlan) -> str:
    """The summary counts no consumer of a group that consumes all by POP."""
    before, after = plan.summary.before.consumers, plan.summary.after.consumers
    if plan.pop_topics and not plan.topics:
        before, after = len(set(plan.sorted_consumers_before)), len(set(plan.sorted_consumers_after))
    return f"{after}" if before == after else f"{before} → {after}"


def _moved(plan: RebalancePlan) -> Cell:
    found = plan.summary.moved_range
    return plan.summary.moved if found is None or found.fewest == found.most else f"{found.fewest}-{found.most}"


def _converges(plan: RebalancePlan) -> str:
    found = plan.convergence
    return "" if found is None or found.convergence_ms is None else about(found.convergence_ms)


# -- topics without owners: POP, and consumers behind a Proxy


def _pop_facts(plan: RebalancePlan) -> Iterator[str]:
    yield from pop_facts(
        plan.pop_topics, *([f"change: {', '.join(plan.changes)}"] * bool(plan.changes and not plan.topics))
    )


def _pop_rows(plan: RebalancePlan, changed_only: bool = False) -> Iterator[tuple[Mapping[str, str], PopChange]]:
    for topic in plan.pop_topics:
        for each in topic.queues:
            if not changed_only or each.consumers_before != each.consumers_after:
                yield {"topic": topic.topic}, each


def _pop_section(plan: RebalancePlan, changed_only: bool) -> Section:
    columns = (
        *QUEUE_COLUMNS,
        Column("may read it before", "consumersBefore", "clients"),
        Column("afterwards", "consumersAfter", "clients"),
    )

    def cell(consumers: tuple[str, ...] | None) -> Cell:
        return NOT_THERE if consumers is None else consumers

    rows = tuple(
        (names["topic"], each.broker_name, each.queue_id, cell(each.consumers_before), cell(each.consumers_after))
        for names, each in _pop_rows(plan, changed_only)
    )
    return Section("pop", pop_title(plan.pop_topics), columns, rows, heads=3)


def _pop_headline(plan: RebalancePlan) -> str:
    before, after = (len(set(ids)) for ids in (plan.sorted_consumers_before, plan.sorted_consumers_after))
    how = "behind a Proxy" if any(topic.by_proxy for topic in plan.pop_topics) else "consumes by POP"
    texts = "; ".join((f"{how}, no consumer owns a queue and none moves", *_pop_verdict(plan)))
    return f"{plan.group or 'a group'}, {_counted_change(before, after)}: {texts}"


def _pop_verdict(plan: RebalancePlan) -> Iterator[str]:
    """Counts of brokers where no consumer may read single queues, otherwise of queues."""
    lines = list(_pop_rows(plan))
    if silent := [topic.topic for topic in plan.pop_topics if not topic.queues]:
        yield f"brokers assign nothing of {named(silent)}"
    if not lines:
        return
    by_broker = all(each.queue_id < 0 for _, each in lines)
    noun = "broker" if by_broker else "queue"

    def number(which: Callable[[PopChange], bool]) -> int:
        found = [each for _, each in lines if which(each)]
        return len({each.broker_name for each in found}) if by_broker else len(found)

    whole = number(lambda _: True)
    if nobody := number(lambda each: each.consumers_after == ()):
        yield f"no consumer may read {of_all(nobody, whole, noun)}"
    if removed := number(lambda each: each.consumers_after is None):
        yield f"{counted(removed, noun)} {are(removed)} removed"
    if added := number(lambda each: each.consumers_before is None):
        yield f"{counted(added, noun)} {are(added)} added"
    others = number(lambda each: None not in (old := each.consumers_before, new := each.consumers_after) and old != new)
    yield f"{of_all(others, whole, noun)} may be read by other consumers than before"
