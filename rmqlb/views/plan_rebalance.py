from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from rmqlb.model import plan as model
from rmqlb.model.client_versions import sdks_text
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.plan import Move, PlanOfGroups, PopChange, RebalancePlan, Summary
from rmqlb.model.result import ERROR, WARNING, all_or_some, are, counted, have, messages, named, of_all
from rmqlb.views.columns import NOT_THERE, QUEUE_COLUMNS, Cell, Column, Kind, columns_from, columns_of, rows_of
from rmqlb.views.numbers import about
from rmqlb.views.of_groups import of_groups
from rmqlb.views.queue_lists import Owners, owner_lines, owner_section, pop_facts, pop_title
from rmqlb.views.report import BETWEEN, Audience, Report, Rows, Section, labels, section_of, worst
from rmqlb.views.timeline import lag_text, rate_source

_MOST_CONSUMERS = 8
_MOST_NOTABLE = 1_000_000
"""A consumer that is new, gone or idle precedes all others."""
_ROOM = 9  # lines of changed queues
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
"""Rows of the summary that people see even when they are 0 on both sides."""


def plan_report(result: RebalancePlan | PlanOfGroups, *, changed_only: bool = False) -> Report:
    if isinstance(result, RebalancePlan):
        return _report(result, changed_only)
    plans = result.groups
    by_pop = sum(bool(plan.pop_topics) for plan in plans)
    texts = [verdict(model.total_of([plan.summary for plan in plans]))]
    if by_pop:
        texts.append(f"{of_all(by_pop, len(plans), 'group')} consume{'s' * (by_pop == 1)} by POP")
    parts = [(plan.group or "", _report(plan, changed_only)) for plan in plans]
    fact = f"{counted(len(plans), 'group')}: {'; '.join(filter(None, texts))}"
    return of_groups(parts, [fact], result, _groups(plans))


def _is_explained(plan: RebalancePlan) -> bool:
    return any(move.reason_before or move.reason_after for move in plan.moves)


def _report(plan: RebalancePlan, changed_only: bool) -> Report:
    moves = [(topic.topic, move) for topic in plan.topics for move in topic.queues]
    changed = [(topic, move) for topic, move in moves if move.change != "same"]
    rows: list[tuple[Mapping[str, str], Move | PopChange]] = []
    sections: list[Section] = []
    tables: list[Section] = []
    more = "-o json has everything"
    if not plan.by_pop:
        listed = changed if changed_only else moves
        compared = [_comparisons(plan)] if len(plan.comparison) > 1 else []
        consumers, queues, summary = _consumers(plan), _queues(plan, listed, changed_only), _summary(plan)
        sections += [*compared, consumers, *([_moves_section(plan, changed)] if changed else ()), queues, summary]
        tables += [queues, consumers, *compared, summary]
        rows += [({"topic": topic}, move) for topic, move in listed]
        kept = len(moves) - len(changed)
        keep = f"{counted(kept, 'queue')} {'keeps its' if kept == 1 else 'keep their'} owner; " if kept else ""
        more = f"{keep}--all lists every queue, --explain shows why, {more}"
    if plan.pop_topics:
        popped = _popped(plan)
        if changed_only:
            popped = [(topic, each) for topic, each in popped if each.consumers_before != each.consumers_after]
        section = _pop_section(plan, popped)
        if sections or popped:
            sections.insert(1, section)
        tables.append(section)
        rows += [({"topic": topic}, each) for topic, each in popped]
    change = [f"change: {', '.join(plan.changes)}"] if plan.changes and not plan.topics else []
    shown = (*facts(plan), *pop_facts(plan.pop_topics, *change))
    names = labels(consumer.client_id for consumer in plan.consumers)
    keyed = Rows(("topic", "brokerName", "queueId"), rows)
    return Report("rmqlb/plan", plan, shown, tuple(sections), names, keyed, tuple(tables), grave(plan), more=more)


def headline(plan: RebalancePlan) -> str:
    text = "; ".join(_pop_verdict(plan)) if plan.by_pop else verdict(plan.summary, broadcasting=plan.broadcasting)
    if not plan.by_pop and not plan.summary.before.queues and not plan.summary.after.queues:
        text = "its topics have no readable queue, so there is nothing to plan"
    before, after = _consumers_of(plan)
    consumers = counted(after, "consumer")
    return f"{plan.group or 'a group'}, {consumers if before == after else f'{before} → {consumers}'}: {text}"


def _consumers_of(plan: RebalancePlan) -> tuple[int, int]:
    """The consumers before and after; the summary counts none if the group consumes only by POP."""
    if plan.by_pop:
        return len(set(plan.sorted_consumers_before)), len(set(plan.sorted_consumers_after))
    return plan.summary.before.consumers, plan.summary.after.consumers


def verdict(s: Summary, *, broadcasting: bool = False) -> str:
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
        yield _moving(s.moved, s.moved_range, s.kept)
    if s.newly_assigned:
        yield f"{counted(s.newly_assigned, 'unassigned queue')} {'gets' if s.newly_assigned == 1 else 'get'} an owner"
    if s.added:
        yield f"{counted(s.added, 'queue')} {are(s.added)} added"


def _moving(moved: int, over_places: model.MovedRange | None, kept: int) -> str:

    def moves(number: str) -> str:
        if number == "0":
            return "no queue moves" if kept else "no queue could move"
        return f"{number} of {counted(kept, 'queue')} move{'s' if number == '1' else ''}"

    if over_places is None:
        return f"{moves(str(moved))} with placeholder client IDs; real IDs may change the count"
    if over_places.fewest == over_places.most:
        text = moves(str(moved))
        return text if over_places.complete else f"about {text} (not every order of the new client IDs was tried)"
    text = f"{moves(f'{over_places.fewest} to {over_places.most}')}, depending on how the new client IDs sort"
    return text if over_places.complete else f"about {text} (not every order was tried)"


def _observed(s: Summary) -> Iterator[str]:
    seen = s.observed
    if seen is not None and seen.mismatches:
        counts = ((seen.unassigned, "unassigned"), (seen.duplicate_owners, "with duplicate owners"))
        bad = " and ".join(f"{number} {what}" for number, what in counts if number)
        text = f"observed owners of {of_all(seen.mismatches, seen.queues)} differ from the prediction before the change"
        yield f"{text}{bad and ', '}{bad}"


def grave(plan: RebalancePlan) -> str:
    """An error if queues are left without one owner; in order if nothing changes."""
    s = plan.summary
    if plan.by_pop:
        return WARNING if any(each.consumers_after == () for _, each in _popped(plan)) else ""
    if s.unassigned or s.duplicate_owners or s.after.queues_of_duplicate_client_ids:
        return ERROR
    if s.lag_removed or (s.observed is not None and s.observed.mismatches):
        return WARNING
    return "inOrder" if all(move.change == "same" for move in plan.moves) else ""


def facts(plan: RebalancePlan) -> tuple[str, ...]:
    if plan.by_pop:
        return (headline(plan),)
    change = f"change: {'; '.join(plan.changes) or 'none'}"
    lag = None if plan.convergence is None else plan.convergence.lag
    of_lag = [] if lag is None or plan.rates is None else [lag_text(lag), f"rates: {rate_source(plan.rates)}"]
    lines = [list(_quality(plan)), list(_convergence(plan)), [_strategy(plan), sdks_text(plan.sdks), change]]
    lines.insert(2 if lag is None or lag.gone_ms is not None else 0, of_lag)
    found = [headline(plan), *(f"  {BETWEEN.join(filter(None, parts))}" for parts in lines if parts)]
    if _is_explained(plan):
        for when, ids in (("before", plan.sorted_consumers_before), ("after", plan.sorted_consumers_after)):
            numbered = "  ".join(f"{index}={client_id}" for index, client_id in enumerate(ids))
            found.append(f"  sorted consumers {when}: {numbered or 'none'}")
    return tuple(found)


def _quality(plan: RebalancePlan) -> Iterator[str]:
    s = plan.summary
    if s.minimum_moves is not None and not plan.broadcasting and s.moved:
        least = f"at least {counted(s.minimum_moves, 'move')}" if s.minimum_moves else "no move"
        yield f"a balanced plan needs {least}"
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


def _consumers(plan: RebalancePlan) -> Section:
    shown = plan.consumers
    places = {consumer.client_id: at for at, consumer in enumerate(shown)}
    observed = any(c.queues_observed not in (None, c.queues_before) for c in shown)
    columns = (
        Column("#", "index", "label", of=lambda c: places[c.client_id]),
        *columns_from("clientId=consumer:text queuesBefore=before queuesAfter=after gained lost", "number"),
        *columns_from("lagGained?/2 lagLost?/3", "number"),
        Column("note", "note", "prose", spare=True, of=_note),
        Column("observed", "queuesObserved", "number", shown=observed, fold=1),
    )
    changed = [c.gained + c.lost + _MOST_NOTABLE * bool(_note(c)) for c in shown]
    brief = worst(changed, _MOST_CONSUMERS) if len(shown) > _MOST_CONSUMERS + 1 else None
    chosen = "those whose queues change most"
    return section_of("consumers", "consumers", columns, shown, heads=2, brief=brief, chosen=chosen)


def _note(consumer: model.ConsumerPlan) -> str:
    notes = ["placeholder"] if consumer.placeholder else []
    notes += ["new"] if consumer.index_before is None else []
    notes += ["gone"] if consumer.index_after is None else []
    processes = dict.fromkeys(n for n in (consumer.processes_before, consumer.processes_after) if n)
    if max(processes, default=1) > 1:
        notes.append(f"{' → '.join(map(str, processes))} processes")
    if consumer.index_after is not None and consumer.queues_after == 0:
        notes.append(f"idle: {consumer.idle_reason}" if consumer.idle_reason else "idle")
    return ", ".join(notes)


def _moves_section(plan: RebalancePlan, changed: Sequence[tuple[str, Move]]) -> Section:
    def owners(move: Move) -> Owners:
        added, removed = move.change == "added", move.change == "removed"
        return _NEW if added else move.owners_before, _GONE if removed else move.owners_after

    places = {consumer.client_id: at for at, consumer in enumerate(plan.consumers)}
    queues = ((owners(m), MessageQueue(topic, m.broker_name, m.queue_id), m.lag) for topic, m in changed)
    title = f"{counted(len(changed), 'queue')} that change{'s' if len(changed) == 1 else ''}"
    columns = columns_from(f"ownersBefore=from:clients ownersAfter=to:{_kind(plan)}")
    return owner_section("moves", title, columns, owner_lines(queues, places, broadcasting=plan.broadcasting), _ROOM)


def _kind(plan: RebalancePlan) -> Kind:
    return "clients" if plan.broadcasting else "owners"


def _before(move: Move) -> Cell:
    return NOT_THERE if move.change == "added" else move.owners_before


def _after(move: Move) -> Cell:
    return NOT_THERE if move.change == "removed" else move.owners_after


def _queues(plan: RebalancePlan, listed: Sequence[tuple[str, Move]], changed_only: bool) -> Section:
    moves, kind, explained = plan.moves, _kind(plan), _is_explained(plan)
    differs = any(_before(move) != move.owners_observed is not None for move in moves)
    predicted = "predicted " * differs
    starts = any(move.start_offset is not None for move in moves)
    columns = (
        *QUEUE_COLUMNS[1:],
        Column(f"{predicted}before", "ownersBefore", kind, of=_before),
        Column(f"{predicted}after", "ownersAfter", kind, of=_after),
        Column("change", "change", "change"),
        Column("observed owner", "ownersObserved", kind, shown=differs),
        Column("lag", "lag", "number", shown=any(move.lag is not None for move in moves)),
        Column("why before", "reasonBefore", shown=any(move.reason_before != move.reason_after for move in moves)),
        Column("why", "reasonAfter", shown=explained),
        Column(
            "start offset", "startOffset", "number", shown=starts, of=lambda m: m.start_offset if m.start_rule else ""
        ),
        Column("start rule", "startRule", shown=False, of=lambda move: move.start_rule or ""),
    )
    cells = rows_of(columns, (move for _, move in listed))
    rows = tuple((topic, *row) for (topic, _), row in zip(listed, cells, strict=True))
    title = "queues that change" if changed_only else "queues"
    audience: Audience = "all" if explained else "scripts"
    return Section("queues", title, (QUEUE_COLUMNS[0], *columns), rows, heads=3, audience=audience)


def _comparisons(plan: RebalancePlan) -> Section:
    ranges = [each.summary.moved_range for each in plan.comparison]
    ranged = any(each is None or each.fewest < each.most for each in ranges)

    def over_places(end: str) -> Callable[[model.Comparison], Cell]:
        return lambda each: getattr(each.summary.moved_range, end, None)

    columns = (
        Column("strategy", "strategy", of=lambda each: " → ".join(dict.fromkeys((each.strategy, each.strategy_after)))),
        *columns_of(Summary, "moved minimumMoves idle unassigned duplicateOwners", path="summary"),
        Column("imbalance before", "imbalanceBefore", "number", of=attrgetter("summary.before.imbalance")),
        Column("imbalance after", "imbalanceAfter", "number", of=attrgetter("summary.imbalance")),
        Column("moved, fewest", "movedFewest", "number", shown=ranged, of=over_places("fewest")),
        Column("moved, most", "movedMost", "number", shown=ranged, of=over_places("most")),
    )
    return section_of("strategies", "the same change under each strategy", columns, plan.comparison, heads=1)


def _summary(plan: RebalancePlan) -> Section:
    s, seen = plan.summary, plan.summary.observed
    columns = (
        *columns_from("figure=:text before after", "number"),
        Column("observed", "observed", "number", shown=seen is not None and seen.mismatches > 0),
    )
    rows: list[tuple[Cell, ...]] = [
        (name, getattr(s.before, field), getattr(s.after, field), "" if seen is None else getattr(seen, field, ""))
        for name, field in _FIGURES.items()
    ]
    rows.insert(2, ("writable queues", s.writable_queues_before, s.writable_queues_after, ""))
    kept = tuple(row for row in rows if row[1:3] != (0, 0) or row[0] in _ALWAYS)
    return Section("summary", "summary", columns, kept, audience="scripts")


def _groups(plans: Sequence[RebalancePlan]) -> Section:
    columns = (
        Column("", "severity", "sign", spare=True, of=lambda plan: grave(plan) or None),
        Column("group", "group"),
        Column("consumers", "consumers", of=lambda plan: " → ".join(map(str, dict.fromkeys(_consumers_of(plan))))),
        Column("queues", "queues", "number", of=attrgetter("summary.queues")),
        Column("move", "moved", "number", of=_moved),
        Column("minimum", "minimumMoves", "number", fold=5, of=attrgetter("summary.minimum_moves")),
        *columns_of(Summary, "unassigned? duplicateOwners? lagUnassigned=left_waiting?/1", path="summary"),
        *columns_of(Summary, "removed? idle?/2", path="summary"),
        Column("imbalance", "imbalance", fold=3, of=lambda plan: _imbalance(plan.summary)),
        Column("converges in", "convergenceMs", fold=4, of=_converges),
        Column("strategy", "strategy", fold=6, of=_strategies),
    )
    return section_of("groups", "groups", columns, plans)


def _moved(plan: RebalancePlan) -> Cell:
    found = plan.summary.moved_range
    return plan.summary.moved if found is None or found.fewest == found.most else f"{found.fewest}-{found.most}"


def _converges(plan: RebalancePlan) -> str:
    found = plan.convergence
    return "" if found is None or found.convergence_ms is None else about(found.convergence_ms)


def _popped(plan: RebalancePlan) -> list[tuple[str, PopChange]]:
    return [(topic.topic, each) for topic in plan.pop_topics for each in topic.queues]


def _pop_section(plan: RebalancePlan, popped: Sequence[tuple[str, PopChange]]) -> Section:
    columns = (*QUEUE_COLUMNS, *columns_from("consumersBefore=may_read_it_before consumersAfter=afterwards", "clients"))
    cells: list[tuple[Cell, ...]] = []
    for topic, each in popped:
        sides = (NOT_THERE if ids is None else ids for ids in (each.consumers_before, each.consumers_after))
        cells.append((topic, each.broker_name, each.queue_id, *sides))
    return Section("pop", pop_title(plan.pop_topics), columns, tuple(cells), heads=3)


def _pop_verdict(plan: RebalancePlan) -> Iterator[str]:
    """Counts of brokers if consumers may read any queue of a broker, otherwise of queues."""
    how = "behind a Proxy" if any(topic.by_proxy for topic in plan.pop_topics) else "consumes by POP"
    yield f"{how}, so no consumer owns a queue and none moves"
    if silent := [topic.topic for topic in plan.pop_topics if not topic.queues]:
        yield f"brokers assign no queue of {named(silent)}"
    lines = [each for _, each in _popped(plan)]
    by_broker = all(each.queue_id < 0 for each in lines)
    noun = "broker" if by_broker else "queue"

    def number(found: Iterable[PopChange]) -> int:
        names = [each.broker_name for each in found]
        return len(set(names) if by_broker else names)

    if not lines:
        return
    whole = number(lines)
    for many, text in (
        (number(each for each in lines if each.consumers_after == ()), "no consumer may read {all}"),
        (number(each for each in lines if each.consumers_after is None), "{some} {are} removed"),
        (number(each for each in lines if each.consumers_before is None), "{some} {are} added"),
    ):
        if many:
            yield text.format(all=of_all(many, whole, noun), some=counted(many, noun), are=are(many))
    stay = [each for each in lines if None not in (each.consumers_before, each.consumers_after)]
    others = number(each for each in stay if each.consumers_before != each.consumers_after)
    yield f"{of_all(others, whole, noun)} may be read by other consumers than before"
