"""The consumers of a group, a running process each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rmqlb.model.groups import ConsumerProcess, Consumers, GroupState
from rmqlb.model.words import counted
from rmqlb.views.overview.words import lag_text, strategies_text, verdict
from rmqlb.views.report import Cell, Column, Report, Rows, Section, labels, rows_of


def consumers_report(consumers: Consumers) -> Report:
    """The report for people and machines."""
    state, processes = consumers.overview, consumers.consumers
    facts = (verdict(state, consumers.findings, processes), *(f"  {fact}" for fact in _facts(state)))
    listed = labels(dict.fromkeys(each.client_id for each in processes))
    why = f"rmqlb diagnose -g {state.group} says why; " if state.status in ("error", "warning") else ""
    more = f"{why}rmqlb show-owners -g {state.group} shows each queue and its owner"
    table, rows = _consumers(processes), _rows(processes)
    return Report("rmqlb/consumers", consumers, facts, (table,), listed, rows, grave=state.status, more=more)


def _facts(state: GroupState) -> Iterator[str]:
    topics = "topics unknown" if state.topics is None else f"topics {', '.join(state.topics)}"
    queues = "" if state.queues is None else f" ({counted(state.queues, 'queue')})"
    yield f"{topics}{queues}"
    strategy = f"strategy {strategies_text(state)}" if state.strategies else "strategy unknown"
    origin = {"reported": ", reported", "observed": ", fits the observed owners"}.get(state.strategy_origin or "", "")
    model = f"; {state.message_model}" if state.message_model else ""
    yield f"{strategy}{origin}; lag {lag_text(state)}{model}"


def _consumers(processes: Sequence[ConsumerProcess]) -> Section:
    columns = (
        Column("#", "index", "label", of=lambda one: indexes[one.client_id]),
        Column("consumer", "clientId"),
        Column("processes", "processes", "number", shown=False),
        Column("address", "address", of=_address),
        Column("version", "version", quiet=True, fold=7),
        Column("language", "language", quiet=True, fold=9),
        Column("type", "consumeType", quiet=True, fold=5),
        Column("strategy", "strategy", quiet=True, fold=4),
        Column("topics", "topics", quiet=True, fold=8, of=_topics),
        Column("observed", "queuesObserved", "number"),
        Column("predicted", "queuesPredicted", "number", fold=6),
        Column("lag", "lagText", "number", of=lambda one: None if one.lag is None else f"{one.lag:,}"),
        Column("lag", "lag", "number", shown=False),
        Column("started", "startedAt", quiet=True, fold=10, shown=any(each.started_at for each in processes)),
        Column("not listed by", "notListedBy", shown=any(each.not_listed_by for each in processes), of=_not_listed_by),
        Column("findings", "findings", "prose", shown=any(each.findings for each in processes), of=_codes),
    )
    indexes = {client_id: at for at, client_id in enumerate(dict.fromkeys(each.client_id for each in processes))}
    return Section("consumers", "consumers", columns, rows_of(columns, processes), heads=3)


def _address(one: ConsumerProcess) -> Cell:
    """The process's end of its first connection: the others differ by their ports, where nothing stands between."""
    return one.addresses[0].client_addr if one.addresses else None


def _topics(one: ConsumerProcess) -> Cell:
    return None if one.topics is None else " ".join(one.topics)


def _not_listed_by(one: ConsumerProcess) -> Cell:
    return " ".join(one.not_listed_by)


def _codes(one: ConsumerProcess) -> Cell:
    return " ".join(one.findings)


def _rows(processes: Sequence[ConsumerProcess]) -> Rows:
    """Processes that share a client ID are told apart by their address, or else by their number."""
    items = [({"address": str(_address(one) or at)}, one) for at, one in enumerate(processes)]
    return Rows(("clientId", "address"), items)
