"""The owners of several groups as one report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from rmqlb.model.owners import OwnersOfGroups, OwnersReport
from rmqlb.model.words import counted, of_all
from rmqlb.views.of_groups import of_groups
from rmqlb.views.owners.headline import (
    basis,
    grave,
    predicted_by,
    summed_bad,
    summed_mismatches,
)
from rmqlb.views.report import Column, Report, Section, rows_of


def owners_of_groups(parts: Sequence[tuple[str, Report]], data: OwnersOfGroups) -> Report:
    """The report of several groups."""
    reports = data.groups
    owning = [report for report in reports if report.strategies]
    by_pop = sum(bool(report.pop_topics) for report in reports)
    popping = [f"{of_all(by_pop, len(reports), 'group')} consume{'s' * (by_pop == 1)} by POP"] if by_pop else []
    owned = [summed_mismatches(owning)] if owning else []
    verdict = "; ".join((*summed_bad(reports), *_compared(reports), *owned, *popping))
    headline = f"{counted(len(reports), 'group')}: {verdict}"
    return of_groups(parts, [headline], data, _groups(reports))


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


def _groups(reports: Sequence[OwnersReport]) -> Section:
    columns = (
        Column("", "severity", "sign", of=lambda report: _grave(report) or None),
        Column("group", "group"),
        Column(
            "consumers",
            "consumers",
            "number",
            of=lambda report: None if report.hidden else len(set(report.sorted_consumers)),
        ),
        Column("queues", "queues", "number", of=lambda report: len(report.queues) or len(report.offsets)),
        Column("observed", "queuesObserved", "number", fold=4, of=lambda report: len(report.observed_queues)),
        Column("unassigned", "unassigned", "number", of=lambda report: report.bad_owners[0]),
        Column("duplicate owners", "duplicateOwners", "number", of=lambda report: report.bad_owners[1]),
        Column("mismatches", "mismatches", "number", fold=1, of=_mismatches),
        Column("idle", "idle", "number", fold=3, of=lambda report: basis(report).idle if report.strategies else None),
        Column("imbalance", "imbalance", "number", fold=2, of=_imbalance),
        Column("strategy", "strategy", fold=5, of=_strategy),
    )
    rows = rows_of(columns, reports)
    figures = ("queuesObserved", "unassigned", "duplicateOwners", "mismatches", "idle")
    shown = (
        replace(column, shown=column.key not in figures or any(cells))
        for column, cells in zip(columns, zip(*rows, strict=True), strict=True)
    )
    return Section("groups", "groups", tuple(shown), rows)


def _grave(report: OwnersReport) -> str:
    if report.strategies:
        return grave(report)
    from rmqlb.views.owners.by_pop import pop_grave

    return pop_grave(report)


def _mismatches(report: OwnersReport) -> int | None:
    return predicted_by(report)[1] if report.strategies else None


def _imbalance(report: OwnersReport) -> float | None:
    return basis(report).imbalance if report.strategies else None


def _strategy(report: OwnersReport) -> str:
    if not report.strategies:
        names = dict.fromkeys(topic.strategy for topic in report.pop_topics)
        return ", ".join("behind a Proxy" if name is None else f"{name} by POP" for name in names)
    reported = report.strategies_reported
    return ", ".join(reported) if len(reported) > 1 else basis(report).strategy
