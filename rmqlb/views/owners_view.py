"""An `OwnersReport` as a report: queue × strategy, then one line a strategy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rmqlb.model.group import BROADCASTING
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.plan import OwnersReport
from rmqlb.model.words import counted
from rmqlb.views.of_groups import of_groups
from rmqlb.views.plan.data import evenness_data
from rmqlb.views.report import QUEUE_COLUMNS, Cell, Column, Report, Rows, Section, labels

if TYPE_CHECKING:
    from rmqlb.views.shapes.owners import GroupsSummaryData, OwnersData


def owners_report(report: OwnersReport) -> Report:
    """The report for people and machines."""
    sections = (
        _queues(report),
        *([_reasons(report)] if report.explained else []),
        _consumers(report),
        _summary(report),
    )
    data = _data(report)
    rows = Rows(("topic", "brokerName", "queueId"), [({}, queue) for queue in data["queues"]])
    return Report("rmqlb/owners", data, (_headline(report),), sections, labels(dict.fromkeys(report.client_ids)), rows)


def owners_of_groups(parts: Sequence[tuple[str, Report]]) -> Report:
    """The report of several groups: each group's name and report."""
    observed = [queue["ownersObserved"] for _, report in parts for queue in report.data["queues"]]
    seen = [len(owners) for owners in observed if owners is not None]
    several = [
        queue
        for _, report in parts
        for queue in report.data["queues"]
        if BROADCASTING not in queue["owners"] and len(queue["ownersObserved"] or ()) > 1
    ]
    summary: GroupsSummaryData = {
        "groups": len(parts),
        "queues": len(observed),
        "queuesObserved": len(seen),
        "observedUnassigned": sum(number == 0 for number in seen),
        "observedDuplicateOwners": len(several),
    }
    bad = "; ".join(_bad(summary["observedUnassigned"], summary["observedDuplicateOwners"]))
    headline = f"{counted(len(parts), 'group')}, {counted(len(observed), 'queue')}"
    return of_groups(parts, f"{headline}{': ' if bad else ''}{bad}", summary)


def _bad(unassigned: int, several: int) -> Iterator[str]:
    if unassigned:
        yield f"{unassigned} observed to be unassigned"
    if several:
        yield f"{several} observed to have duplicate owners"


def _headline(report: OwnersReport) -> str:
    group = f"group {report.group}" if report.group else "a group"
    consumers, processes = len(set(report.client_ids)), len(report.client_ids)
    shared = f" ({processes} processes)" if processes > consumers else ""
    queues = f"{counted(len(report.queues), 'queue')} of {', '.join(report.topics)}"
    verdict = "; ".join((*_seen(report), *_left(report)))
    return f"{group}, {counted(consumers, 'consumer')}{shared}, {queues}{': ' if verdict else ''}{verdict}"


def _seen(report: OwnersReport) -> Iterator[str]:
    """What the cluster reported, the bad first, and which strategy deals so."""
    unassigned = sum(not owners for owners in report.observed.values())
    several = 0 if report.broadcasting else sum(len(owners) > 1 for owners in report.observed.values())
    yield from _bad(unassigned, several)
    differs = {s.strategy: s.differs for s in report.strategies if s.differs is not None}
    if not differs:
        return
    fitting = [name for name, number in differs.items() if not number]
    if fitting:
        yield f"observed owners are those of {', '.join(fitting)}"
    else:
        name = min(differs, key=lambda each: differs[each])
        others = "" if len(differs) == 1 else ", and no fewer from any other strategy shown"
        yield f"observed owners of {differs[name]} differ from {name}{others}"


def _left(report: OwnersReport) -> Iterator[str]:
    """What strategies leave unassigned or give to several."""
    for what, numbers in (
        ("unassigned", {s.strategy: s.spread.unowned for s in report.strategies}),
        ("with duplicate owners", {s.strategy: s.spread.multiply_owned for s in report.strategies}),
        ("read by several processes of one client ID", {s.strategy: s.spread.shared_id for s in report.strategies}),
    ):
        bad = [f"{number} under {name}" for name, number in numbers.items() if number]
        if bad:
            yield f"predicted to be {what}: {', '.join(bad)}"


def _queues(report: OwnersReport) -> Section:
    columns = (
        *QUEUE_COLUMNS,
        Column("owner seen", "ownersObserved", "clients", shown=bool(report.observed)),
        Column("lag", "lag", "number", shown=any(report.lag.values())),
        *(Column(s.strategy, s.strategy, "clients") for s in report.strategies),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            queue.topic,
            queue.broker_name,
            queue.queue_id,
            report.observed.get(queue),
            report.lag.get(queue),
            *(s.owners.get(queue, ()) for s in report.strategies),
        )
        for queue in _all_queues(report)
    ]
    return Section("queues", "owners", columns, tuple(rows), heads=3)


def _all_queues(report: OwnersReport) -> list[MessageQueue]:
    """The topics' queues, then those that only a CONFIG list names."""
    return list(dict.fromkeys((*report.queues, *(queue for s in report.strategies for queue in s.owners))))


def _reasons(report: OwnersReport) -> Section:
    columns = (
        *QUEUE_COLUMNS,
        Column("strategy", "strategy", quiet=True),
        Column("why", "reason"),
    )
    rows = tuple(
        (queue.topic, queue.broker_name, queue.queue_id, s.strategy, s.reasons.get(queue))
        for s in report.strategies
        for queue in report.queues
    )
    return Section("reasons", "why", columns, rows, heads=4)


def _consumers(report: OwnersReport) -> Section:
    columns = (
        Column("#", "index", "label"),
        Column("consumer", "clientId"),
        *(Column(s.strategy, s.strategy, "number") for s in report.strategies),
        Column("idle because", "idleReason", shown=any(s.idle for s in report.strategies)),
    )
    rows: list[tuple[Cell, ...]] = []
    for index, client_id in enumerate(dict.fromkeys(report.client_ids)):
        reasons = [f"{s.strategy}: {s.idle[client_id]}" for s in report.strategies if client_id in s.idle]
        rows.append((index, client_id, *(s.counts[client_id] for s in report.strategies), "; ".join(reasons)))
    return Section("consumers", "queues a consumer", columns, tuple(rows), heads=2)


def _summary(report: OwnersReport) -> Section:
    columns = (
        Column("strategy", "strategy"),
        Column("min", "min", "number"),
        Column("max", "max", "number"),
        Column("mean", "mean", "number"),
        Column("max/mean", "maxOverMean", "number"),
        Column("idle", "idle", "number"),
        Column("unowned", "unowned", "number"),
        Column("multiply owned", "multiplyOwned", "number"),
        Column("unlike seen", "differsFromObserved", "number", shown=bool(report.observed)),
    )
    rows = tuple(
        (
            s.strategy,
            s.spread.least,
            s.spread.most,
            s.spread.mean,
            s.spread.max_over_mean,
            s.spread.idle,
            s.spread.unowned,
            s.spread.multiply_owned,
            s.differs,
        )
        for s in report.strategies
    )
    return Section("summary", "summary", columns, rows, heads=1)


def _data(report: OwnersReport) -> OwnersData:
    return {
        "group": report.group,
        "topics": list(report.topics),
        "sortedConsumers": list(report.client_ids),
        "queues": [
            {
                "topic": queue.topic,
                "brokerName": queue.broker_name,
                "queueId": queue.queue_id,
                "ownersObserved": None if queue not in report.observed else list(report.observed[queue]),
                "lag": report.lag.get(queue),
                "owners": {s.strategy: list(s.owners.get(queue, ())) for s in report.strategies},
                "reasons": {s.strategy: s.reasons.get(queue) for s in report.strategies},
            }
            for queue in _all_queues(report)
        ],
        "strategies": [
            {
                "strategy": s.strategy,
                "consumers": [
                    {"clientId": client_id, "queues": number, "idleReason": s.idle.get(client_id)}
                    for client_id, number in s.counts.items()
                ],
                **evenness_data(s.spread),
                "differsFromObserved": s.differs,
            }
            for s in report.strategies
        ],
    }
