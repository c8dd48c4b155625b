"""An `OwnersReport` as a report: for scripts queue × strategy, and a line per strategy."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.model.finding import ERROR, WARNING
from rmqlb.model.owners import OwnersReport, QueueOwners
from rmqlb.views.owners.headline import basis, facts, grave
from rmqlb.views.owners.screen import mismatches_section, owned_section
from rmqlb.views.report import QUEUE_COLUMNS, Cell, Column, Kind, Report, Rows, Section, labels


def owners_report(report: OwnersReport, *, explained: bool = False) -> Report:
    """The report; a screen has a line per consumer, or where nothing is observed per strategy, if there are several."""
    if not report.pop_topics:
        return _of_owned(report, explained=explained)
    from rmqlb.views.owners.by_pop import pop_report, with_pop

    return with_pop(_of_owned(report, explained=explained), report) if report.strategies else pop_report(report)


def _of_owned(report: OwnersReport, *, explained: bool) -> Report:
    """What of the group is pulled."""
    observed = bool(report.observed_queues)
    compared = not observed and len(report.strategies) > 1
    mismatches = [mismatches_section(report)] if basis(report).mismatches and report.mixed_mismatches is None else []
    tables = (_queues(report), *([_reasons(report)] if explained else []), _consumers(report), _summary(report))
    asked_for = ("summary", "reasons") if compared else ("reasons",)
    of_scripts = [each if each.name in asked_for else replace(each, audience="scripts") for each in tables]
    sections = (*([] if compared else [owned_section(report), *mismatches]), *of_scripts)
    rows = Rows(("topic", "brokerName", "queueId"), [({}, queue) for queue in report.queues])
    return Report(
        schema="rmqlb/owners",
        data=report,
        facts=facts(report),
        sections=sections,
        labels=labels(dict.fromkeys(report.sorted_consumers)),
        rows=rows,
        tables=tables,
        grave=grave(report),
        more=_more(report),
    )


def _more(report: OwnersReport) -> str:
    """How to see more; of a group whose observed owners are not as they should be, also why."""
    bad = report.group is not None and bool(report.observed_queues) and grave(report) in (ERROR, WARNING)
    why = f"rmqlb diagnose -g {report.group} says why; " if bad else ""
    return f"{why}--all lists every queue under each strategy, --explain how a strategy decides, -o json has everything"


def _queues(report: OwnersReport) -> Section:
    kind: Kind = "clients" if report.broadcasting else "owners"
    columns = (
        *QUEUE_COLUMNS,
        Column("observed owner", "ownersObserved", kind, shown=bool(report.observed_queues)),
        Column("lag", "lag", "number", shown=any(queue.lag for queue in report.queues)),
        *(Column(s.strategy, s.strategy, kind) for s in report.strategies),
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
        Column("idle", "idle", "number", shown=any(s.idle for s in report.strategies)),
        Column("unassigned", "unassigned", "number", shown=any(s.unassigned for s in report.strategies)),
        Column(
            "duplicate owners", "duplicateOwners", "number", shown=any(s.duplicate_owners for s in report.strategies)
        ),
        Column("mismatches", "mismatches", "number", shown=bool(report.observed_queues)),
    )
    rows = tuple(
        (s.strategy, s.fewest, s.most, s.mean, s.imbalance, s.idle, s.unassigned, s.duplicate_owners, s.mismatches)
        for s in report.strategies
    )
    return Section("summary", "summary", columns, rows, heads=1)
