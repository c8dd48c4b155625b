"""A plan's tables for a screen: what becomes of each consumer, and which queues go from whom to whom."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from rmqlb.model.finding import ERROR, INFO
from rmqlb.model.message_queue import MessageQueue, queue_ranges
from rmqlb.model.plan import ADDED, REMOVED, SAME, ConsumerPlan, RebalancePlan
from rmqlb.model.unknown import sum_if_known
from rmqlb.model.words import counted
from rmqlb.views.queue_lists import fitting, lag_column, place_of, severity_of
from rmqlb.views.report import Cell, Column, Section, rows_of, worst

_MOST_CONSUMERS = 8
_MOST_NOTABLE = 1_000_000
"""A consumer that comes, goes or is idle goes before one that only gains and loses queues."""
_ROOM = 9
"""Lines of the queues that change."""
_NEW, _GONE = ("(new queue)",), ("(removed)",)


class _Moves(Struct, frozen=True):
    """Queues that go the same way."""

    owners_before: tuple[str, ...]
    owners_after: tuple[str, ...]
    queues: tuple[MessageQueue, ...]
    severity: str | None
    lag: int | None

    @property
    def which(self) -> str:
        return queue_ranges(self.queues, len(self.queues))


def consumers_section(plan: RebalancePlan) -> Section:
    """The consumers; of many those whose queues change most."""
    shown = plan.consumers
    places = {consumer.client_id: at for at, consumer in enumerate(shown)}
    before, after, lost = (
        max((len(str(getattr(each, name))) for each in shown), default=1)
        for name in ("queues_before", "queues_after", "lost")
    )
    columns = (
        Column("", "severity", "sign", shown=any(map(_severity, shown)), of=_severity),
        Column("#", "index", "label", of=lambda c: places[c.client_id]),
        Column("consumer", "clientId"),
        Column("queues", "queues", "number", of=lambda c: f"{c.queues_before:>{before}} → {c.queues_after:>{after}}"),
        Column("change", "change", of=lambda c: _change(c, lost + 1)),
        Column("observed", "queuesObserved", "number", shown=_observed_differ(shown), fold=1),
        lag_column("lag gained", "lagGained", shown, fold=2),
        lag_column("lag lost", "lagLost", shown, fold=3),
        Column("", "note", "prose", shown=any(map(note, shown)), of=note),
    )
    changed = [c.gained + c.lost + _MOST_NOTABLE * bool(note(c)) for c in shown]
    brief = worst(changed, _MOST_CONSUMERS) if len(shown) > _MOST_CONSUMERS + 1 else None
    return Section(
        "consumers", "consumers", columns, rows_of(columns, shown), heads=3, audience="screen",
        brief=brief, chosen="those whose queues change most",
    )  # fmt: skip


def _observed_differ(consumers: Iterable[ConsumerPlan]) -> bool:
    return any(c.queues_observed not in (None, c.queues_before) for c in consumers)


def _change(consumer: ConsumerPlan, wide: int) -> str:
    lost, gained = f"-{consumer.lost}" * bool(consumer.lost), f"+{consumer.gained}" * bool(consumer.gained)
    return f"{lost:>{wide}} {gained}".rstrip()


def _severity(consumer: ConsumerPlan) -> Cell:
    if consumer.processes_after > 1:
        return ERROR
    return INFO if consumer.index_after is not None and not consumer.queues_after else None


def note(consumer: ConsumerPlan) -> str:
    """What is to be said of a consumer beside its numbers."""
    notes = []
    if consumer.placeholder:
        notes.append("placeholder")
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


def moves_section(plan: RebalancePlan) -> Section:
    """The queues that change, those together that go the same way; what leaves queues without one owner comes first."""
    moves = _grouped(plan)
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


def _grouped(plan: RebalancePlan) -> list[_Moves]:
    places = {consumer.client_id: at for at, consumer in enumerate(plan.consumers)}
    ways: dict[tuple[tuple[str, ...], tuple[str, ...]], list[tuple[MessageQueue, int | None]]] = {}
    for topic in plan.topics:
        for move in topic.queues:
            if move.change != SAME:
                before = _NEW if move.change == ADDED else move.owners_before
                after = _GONE if move.change == REMOVED else move.owners_after
                queue = MessageQueue(topic.topic, move.broker_name, move.queue_id)
                ways.setdefault((before, after), []).append((queue, move.lag))
    found = [
        _Moves(
            before,
            after,
            tuple(q for q, _ in some),
            severity_of(after, broadcasting=plan.broadcasting),
            sum_if_known(lag for _, lag in some),
        )
        for (before, after), some in ways.items()
    ]
    return sorted(
        found,
        key=lambda each: (
            each.severity != ERROR,
            place_of(each.owners_before, places),
            place_of(each.owners_after, places),
        ),
    )
