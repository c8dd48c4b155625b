"""Owners for a screen: a line per consumer with all that it owns, and the queues with another owner than predicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from rmqlb.model.finding import ERROR, INFO, WARNING, Severity
from rmqlb.model.message_queue import MessageQueue, queue_ranges
from rmqlb.model.owners import OwnersReport, QueueOwners
from rmqlb.model.unknown import sum_if_known
from rmqlb.model.words import counted
from rmqlb.views.owners.headline import basis
from rmqlb.views.queue_lists import fitting, lag_column, place_of, severity_of
from rmqlb.views.report import Column, Kind, Section, rows_of

_ROOM = 24
_ROOM_OF_MISMATCHES = 8
_UNKNOWN = ("(not observed)",)


class _Owned(Struct, frozen=True):
    """Queues with the same owners."""

    owners: tuple[str, ...]
    queues: tuple[QueueOwners, ...]
    severity: Severity | None

    @property
    def number(self) -> int:
        return len(self.queues)

    @property
    def lag(self) -> int | None:
        return sum_if_known(queue.lag for queue in self.queues)

    @property
    def which(self) -> str:
        return _listed(self.queues) if self.queues else "idle"

    @property
    def badness(self) -> float:
        return 1e18 if self.severity == ERROR else (self.lag or 0) + self.number / 1e6


def owned_section(report: OwnersReport) -> Section:
    """Who owns what: as observed, or where nothing is, as the first strategy predicts."""
    observed = bool(report.observed_queues)
    rows = list(_owned(report, observed=observed))
    kind: Kind = "clients" if report.broadcasting else "owners"
    columns = (
        Column("", "severity", "sign", shown=any(each.severity for each in rows)),
        Column("observed owner" if observed else "predicted owner", "owners", kind),
        Column("queues", "number", "number", fold=1),
        lag_column("lag", "lag", rows, fold=2),
        Column("which", "which", "prose"),
    )
    title = "observed owners" if observed else f"owners that {basis(report).strategy} predicts"
    brief = fitting(
        [each.which for each in rows], [each.badness for each in rows], _ROOM, beside=[[each.owners for each in rows]]
    )
    return Section("owners", title, columns, rows_of(columns, rows), heads=2, audience="screen", brief=brief)


def _owned(report: OwnersReport, *, observed: bool) -> Iterator[_Owned]:
    """Unassigned queues and those with duplicate owners first, then consumer by consumer, idle ones last."""
    strategy = basis(report).strategy
    owned: dict[tuple[str, ...], list[QueueOwners]] = {}
    for queue in report.queues:
        owners = queue.owners_observed if observed else queue.owners[strategy]
        owned.setdefault(_UNKNOWN if owners is None else owners, []).append(queue)
    places = {client_id: at for at, client_id in enumerate(dict.fromkeys(report.sorted_consumers))}
    found = [
        _Owned(owners, tuple(queues), severity_of(owners, broadcasting=report.broadcasting))
        for owners, queues in owned.items()
    ]
    yield from sorted(found, key=lambda each: (each.severity != ERROR, place_of(each.owners, places)))
    if _UNKNOWN not in owned:
        owning = {owner for owners in owned for owner in owners}
        yield from (_Owned((client_id,), (), INFO) for client_id in places if client_id not in owning)


def _listed(queues: Sequence[QueueOwners]) -> str:
    return queue_ranges((MessageQueue(q.topic, q.broker_name, q.queue_id) for q in queues), len(queues))


class _Mismatch(Struct, frozen=True):
    """Queues that one consumer should own and another one does."""

    predicted: tuple[str, ...]
    observed: tuple[str, ...]
    which: str
    number: int
    severity: Severity = WARNING


def mismatches_section(report: OwnersReport) -> Section:
    """The queues whose observed owners are not those that the strategy predicts."""
    strategy = basis(report).strategy
    ways: dict[tuple[tuple[str, ...], tuple[str, ...]], list[QueueOwners]] = {}
    for queue in report.observed_queues:
        if queue.owners[strategy] != queue.owners_observed:
            ways.setdefault((queue.owners[strategy], queue.owners_observed or ()), []).append(queue)
    rows = [_Mismatch(*way, _listed(queues), len(queues)) for way, queues in ways.items()]
    columns = (
        Column("", "severity", "sign"),
        Column("predicted owner", "predicted", "clients"),
        Column("observed owner", "observed", "owners"),
        Column("queues", "number", "number", fold=1),
        Column("which", "which", "prose"),
    )
    number = sum(each.number for each in rows)
    ids = [each.predicted for each in rows], [each.observed for each in rows]
    brief = fitting([each.which for each in rows], [each.number for each in rows], _ROOM_OF_MISMATCHES, beside=ids)
    title = f"{counted(number, 'queue')} whose observed owner {strategy} does not predict"
    return Section("mismatches", title, columns, rows_of(columns, rows), heads=3, audience="screen", brief=brief)
