"""An `OwnersReport` as a report: queue × strategy, then one line a strategy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from rmqlb.model.group import BROADCASTING
from rmqlb.model.owners import OwnersReport, QueueOwners
from rmqlb.model.words import counted
from rmqlb.views.of_groups import of_groups
from rmqlb.views.report import QUEUE_COLUMNS, Cell, Column, Report, Rows, Section, labels


class OwnersSummary(Struct, frozen=True, rename="camel"):
    """All groups in numbers.

    Attributes:
        groups: how many.
        queues: how many queues they have.
        queues_observed: queues of which the source saw the owners.
        observed_unassigned: those of them that had no owner.
        observed_duplicate_owners: those with duplicate owners.
    """

    groups: int
    queues: int
    queues_observed: int
    observed_unassigned: int
    observed_duplicate_owners: int


class OwnersOfGroups(Struct, frozen=True):
    """Who owns each queue of several groups under each strategy.

    Attributes:
        groups: each group's owners, as rmqlb/owners has them.
        summary: of all of them.
    """

    groups: tuple[OwnersReport, ...]
    summary: OwnersSummary


def owners_report(report: OwnersReport, *, explained: bool = False) -> Report:
    """The report for people and machines."""
    sections = (
        _queues(report),
        *([_reasons(report)] if explained else []),
        _consumers(report),
        _summary(report),
    )
    rows = Rows(("topic", "brokerName", "queueId"), [({}, queue) for queue in report.queues])
    listed = labels(dict.fromkeys(report.sorted_consumers))
    return Report("rmqlb/owners", report, (_headline(report),), sections, listed, rows)


def owners_of_groups(parts: Sequence[tuple[str, Report]], reports: Sequence[OwnersReport]) -> Report:
    """The report of several groups."""
    observed = [queue for report in reports for queue in _observed(report)]
    summary = OwnersSummary(
        groups=len(reports),
        queues=sum(len(report.queues) for report in reports),
        queues_observed=len(observed),
        observed_unassigned=sum(not queue.owners_observed for queue in observed),
        observed_duplicate_owners=sum(map(_has_duplicate_owners, observed)),
    )
    bad = _bad(summary.observed_unassigned, summary.observed_duplicate_owners)
    verdict = "; ".join((*bad, *_compared(reports)))
    headline = f"{counted(summary.groups, 'group')}, {counted(summary.queues, 'queue')}"
    return of_groups(parts, f"{headline}{': ' if verdict else ''}{verdict}", OwnersOfGroups(tuple(reports), summary))


def _compared(reports: Sequence[OwnersReport]) -> Iterator[str]:
    """What each of two or more strategies would make of all groups."""
    imbalance: dict[str, float] = {}
    idle: Counter[str] = Counter()
    for each in (each for report in reports for each in report.strategies):
        imbalance[each.strategy] = max(imbalance.get(each.strategy, 0), each.imbalance or 0)
        idle[each.strategy] += each.idle
    if len(imbalance) > 1:
        yield "largest imbalance " + ", ".join(f"{value:.2f} under {name}" for name, value in imbalance.items())
        yield from (f"{counted(number, 'idle consumer')} under {name}" for name, number in idle.items() if number)


def _observed(report: OwnersReport) -> list[QueueOwners]:
    return [queue for queue in report.queues if queue.owners_observed is not None]


def _has_duplicate_owners(queue: QueueOwners) -> bool:
    return len(queue.owners_observed or ()) > 1 and BROADCASTING not in queue.owners


def _bad(unassigned: int, several: int) -> Iterator[str]:
    if unassigned:
        yield f"{unassigned} observed to be unassigned"
    if several:
        yield f"{several} observed to have duplicate owners"


def _headline(report: OwnersReport) -> str:
    group = f"group {report.group}" if report.group else "a group"
    processes = len(report.sorted_consumers)
    consumers = len(set(report.sorted_consumers))
    shared = f" ({processes} processes)" if processes > consumers else ""
    queues = f"{counted(len(report.queues), 'queue')} of {', '.join(report.topics)}"
    verdict = "; ".join((*_seen(report), *_left(report)))
    return f"{group}, {counted(consumers, 'consumer')}{shared}, {queues}{': ' if verdict else ''}{verdict}"


def _seen(report: OwnersReport) -> Iterator[str]:
    """What the cluster reported, the bad first, and which strategy deals so."""
    observed = _observed(report)
    unassigned = sum(not queue.owners_observed for queue in observed)
    yield from _bad(unassigned, sum(map(_has_duplicate_owners, observed)))
    mismatches = {s.strategy: s.mismatches for s in report.strategies if s.mismatches is not None}
    if not mismatches:
        return
    fitting = [name for name, number in mismatches.items() if not number]
    if fitting:
        yield f"observed owners are those of {', '.join(fitting)}"
    else:
        name = min(mismatches, key=lambda each: mismatches[each])
        others = "" if len(mismatches) == 1 else ", and no fewer from any other strategy shown"
        yield f"observed owners of {mismatches[name]} differ from {name}{others}"


def _left(report: OwnersReport) -> Iterator[str]:
    by_name = {s.strategy: s for s in report.strategies}
    for what, numbers in (
        ("unassigned", {name: s.unassigned for name, s in by_name.items()}),
        ("with duplicate owners", {name: s.duplicate_owners for name, s in by_name.items()}),
        (
            "read by several processes of one client ID",
            {name: s.queues_of_duplicate_client_ids for name, s in by_name.items()},
        ),
    ):
        bad = [f"{number} under {name}" for name, number in numbers.items() if number]
        if bad:
            yield f"predicted to be {what}: {', '.join(bad)}"


def _queues(report: OwnersReport) -> Section:
    columns = (
        *QUEUE_COLUMNS,
        Column("owner seen", "ownersObserved", "clients", shown=bool(_observed(report))),
        Column("lag", "lag", "number", shown=any(queue.lag for queue in report.queues)),
        *(Column(s.strategy, s.strategy, "clients") for s in report.strategies),
    )
    rows: list[tuple[Cell, ...]] = [
        (*_name(queue), queue.owners_observed, queue.lag, *queue.owners.values()) for queue in report.queues
    ]
    return Section("queues", "owners", columns, tuple(rows), heads=3)


def _name(queue: QueueOwners) -> tuple[Cell, ...]:
    return (queue.topic, queue.broker_name, queue.queue_id)


def _reasons(report: OwnersReport) -> Section:
    columns = (
        *QUEUE_COLUMNS,
        Column("strategy", "strategy", quiet=True),
        Column("why", "reason"),
    )
    rows = tuple(
        (*_name(queue), s.strategy, why)
        for s in report.strategies
        for queue in report.queues
        if (why := queue.reasons[s.strategy]) is not None
    )
    return Section("reasons", "why", columns, rows, heads=4)


def _consumers(report: OwnersReport) -> Section:
    columns = (
        Column("#", "index", "label"),
        Column("consumer", "clientId"),
        *(Column(s.strategy, s.strategy, "number") for s in report.strategies),
        Column("idle because", "idleReason", shown=any(s.idle for s in report.strategies)),
    )
    each = zip(*(s.consumers for s in report.strategies), strict=True)
    rows: list[tuple[Cell, ...]] = []
    for index, (client_id, under) in enumerate(zip(dict.fromkeys(report.sorted_consumers), each, strict=True)):
        told = zip(report.strategies, under, strict=True)
        idle = [f"{s.strategy}: {one.idle_reason}" for s, one in told if one.idle_reason is not None]
        rows.append((index, client_id, *(one.queues for one in under), "; ".join(idle)))
    return Section("consumers", "queues per consumer", columns, tuple(rows), heads=2)


def _summary(report: OwnersReport) -> Section:
    columns = (
        Column("strategy", "strategy"),
        Column("min", "minQueuesPerConsumer", "number"),
        Column("max", "maxQueuesPerConsumer", "number"),
        Column("mean", "meanQueuesPerConsumer", "number"),
        Column("imbalance", "imbalance", "number"),
        Column("idle", "idle", "number"),
        Column("unassigned", "unassigned", "number"),
        Column("duplicate owners", "duplicateOwners", "number"),
        Column("mismatches", "mismatches", "number", shown=bool(_observed(report))),
    )
    rows = tuple(
        (s.strategy, s.fewest, s.most, s.mean, s.imbalance, s.idle, s.unassigned, s.duplicate_owners, s.mismatches)
        for s in report.strategies
    )
    return Section("summary", "summary", columns, rows, heads=1)
