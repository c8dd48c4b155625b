"""A `GroupSize` as a report."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from rmqlb.model.group_size import AfterLoss, GroupSize, SizePoint
from rmqlb.model.words import counted
from rmqlb.views.report import Cell, Column, Report, Section, duration, rows_of
from rmqlb.views.size.chart import chart_section
from rmqlb.views.size.facts import reasons, size_facts, size_gravity

_MOST_POINTS = 12
_MOST_CANDIDATES = 12


def size_report(size: GroupSize) -> Report:
    """The sizes for people and machines."""
    sections = [
        chart_section(size),
        _curve(size),
        *([_candidates(size)] if len(size.candidates) > 1 else []),
        _topics(size),
    ]
    return Report(
        "rmqlb/group-size",
        size,
        size_facts(size),
        tuple(sections),
        grave=size_gravity(size),
        closing=tuple(_work(size)),
    )


def _curve(size: GroupSize) -> Section:
    has_losses = bool(size.limits.survive)

    def why(point: SizePoint) -> Cell:
        return "; ".join(reasons(point, size)) or None

    columns = (
        Column("", "status", "sign", of=lambda point: "inOrder" if point.satisfied else "warning"),
        Column("consumers", "consumers", "number"),
        Column("imbalance", "imbalance", "number"),
        Column("idle", "idle", "number"),
        Column("unassigned", "unassigned", "number", shown=any(point.unassigned for point in size.curve)),
        Column(
            "duplicate owners",
            "duplicateOwners",
            "number",
            shown=any(point.duplicate_owners for point in size.curve),
        ),
        Column("utilisation", "utilisation", "share", shown=size.threads is not None),
        Column(
            "with consumers lost",
            "imbalanceAfterLoss",
            "number",
            shown=has_losses,
            fold=2,
            of=lambda point: _imbalance_after(point.after_loss),
        ),
        Column(
            "with a broker lost",
            "imbalanceAfterBrokerLoss",
            "number",
            shown=size.limits.survive_broker,
            fold=2,
            of=lambda point: _imbalance_after(point.after_broker_loss),
        ),
        Column("share of ID sets", "share", "share", shown=not size.every_order),
        Column("fails", "fails", shown=False),
        Column("why not", "whyNot", "prose", of=why),
    )
    title = f"sizes under {size.strategy}"
    if size.queues_per_broker is not None:
        title += f" with {counted(size.queues_per_broker, 'queue')} per broker"
    return Section("curve", title, columns, rows_of(columns, size.curve), brief=_around(size))


def _imbalance_after(loss: AfterLoss | None) -> Cell:
    return None if loss is None else "none left" if loss.imbalance is None else loss.imbalance


def _around(size: GroupSize) -> tuple[int, ...] | None:
    """The places of the answer, of those that satisfy all, and of its neighbours; None when there are few."""
    points = size.curve
    if len(points) <= _MOST_POINTS:
        return None
    answer = next(at for at, point in enumerate(points) if point.consumers == size.best.consumers)
    near = sorted(range(len(points)), key=lambda at: (abs(at - answer), at))
    wanted = [*near[:3], *(at for at, point in enumerate(points) if point.satisfied), *near]
    return tuple(sorted(list(dict.fromkeys(wanted))[:_MOST_POINTS]))


def _candidates(size: GroupSize) -> Section:
    columns = (
        Column("strategy", "strategy"),
        Column("queues per broker", "queuesPerBroker", "number", shown=size.queues_per_broker is not None),
        Column("consumers", "consumers", "number", of=lambda each: each.consumers or "none"),
        Column("allowed sizes", "allowed", "number", fold=2),
        Column("imbalance", "imbalance", "number", fold=1, of=attrgetter("best.imbalance")),
        Column("blocked by", "blockedBy", "prose", of=lambda each: ", ".join(each.best.fails) or None),
    )
    order = sorted(range(len(size.candidates)), key=lambda at: _order(size, at))
    brief = tuple(sorted(order[:_MOST_CANDIDATES])) if len(order) > _MOST_CANDIDATES else None
    return Section("candidates", "what was compared", columns, rows_of(columns, size.candidates), brief=brief)


def _order(size: GroupSize, at: int) -> tuple[bool, int, int]:
    found = size.candidates[at].consumers
    return found is None, found or 0, at


def _topics(size: GroupSize) -> Section:
    has_rate = size.threads is not None
    columns = (
        Column("topic", "topic"),
        Column("queues", "queues", "number"),
        Column("now", "queuesNow", "number", shown=size.queues_per_broker is not None),
        Column("messages per second", "ratePerSecond", "number", shown=has_rate),
        Column("consume time", "consumeMs", "ms", shown=has_rate),
    )
    return Section("topics", "topics", columns, rows_of(columns, size.topics), named_only=not has_rate, heads=1)


def _work(size: GroupSize) -> Iterator[str]:
    rates = [topic.rate_per_second for topic in size.topics if topic.rate_per_second is not None]
    times = sorted({topic.consume_ms for topic in size.topics if topic.consume_ms is not None})
    if size.threads is None or not times:
        return
    took = duration(times[0]) if len(times) == 1 else f"{duration(times[0])} to {duration(times[-1])}"
    threads = f"{counted(size.threads, 'consume thread')} per consumer"
    one = ", of which an orderly group has 1 for each queue" if size.orderly else ""
    yield f"work: {sum(rates):g} messages per second, {took} each, {threads}{one}"
