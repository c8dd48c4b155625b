"""A `ReceiveReport` as a report."""

from __future__ import annotations

from msgspec import Struct

from rmqlb.model.receive_report import ReceiveReport, WaitTimes
from rmqlb.views.receive.facts import receive_facts, receive_gravity, receive_settings
from rmqlb.views.report import Cell, Column, Report, Section, rows_of

_TOTALS: tuple[tuple[str, str], ...] = (
    ("messages", "messages"),
    ("further arrivals", "further"),
    ("received", "received"),
    ("acknowledged", "acknowledged"),
    ("redelivered", "redelivered"),
    ("dead letters", "dead_lettered"),
    ("left at the end", "left"),
    ("not stored", "not_stored"),
    ("receives", "receives"),
    ("empty receives", "empty_receives"),
    ("failed receives", "failed_receives"),
)
_TIMES = (
    Column("messages", "messages", "number"),
    Column("p50", "p50Ms", "ms"),
    Column("p95", "p95Ms", "ms"),
    Column("p99", "p99Ms", "ms", fold=1),
    Column("max", "maxMs", "ms"),
    Column("mean", "meanMs", "ms", fold=1),
)


class _Named(Struct, frozen=True):
    """Times with what they are of."""

    what: str
    times: WaitTimes


def receive_report(report: ReceiveReport) -> Report:
    """The simulation for people and machines."""
    sections = [
        _waits(report),
        _brokers(report),
        *([_failures(report)] if report.failures else []),
        *([_crashes(report)] if report.crashes else []),
        _quantiles(report),
        _queues(report),
        _closed_forms(report),
        _totals(report),
        *([_messages(report)] if report.messages is not None else []),
    ]
    return Report(
        "rmqlb/receive",
        report,
        receive_facts(report),
        tuple(sections),
        grave=receive_gravity(report),
        closing=receive_settings(report),
    )


def _waits(report: ReceiveReport) -> Section:
    named = [
        *([_Named("until received", report.wait)] if report.wait else []),
        *([_Named("until redelivered", report.back)] if report.back else []),
        *(_Named(f"at {broker.broker_name}", broker.wait) for broker in report.brokers if broker.wait),
        *([_Named("over all trials", report.trials.wait)] if report.trials and report.trials.wait else []),
    ]
    columns = (Column("wait", "wait"), *_TIMES)
    rows = tuple((each.what, *row) for each, row in zip(named, rows_of(_TIMES, [n.times for n in named]), strict=True))
    return Section("waits", "how long messages wait", columns, rows, heads=1)


def _brokers(report: ReceiveReport) -> Section:
    columns = (
        Column("broker", "brokerName"),
        Column("queues", "queues", "number"),
        Column("receives", "receives", "number"),
        Column("share", "share", "share"),
        Column("empty", "empty", "number"),
        Column("failed", "failed", "number", shown=bool(report.failures)),
        Column("messages", "messages", "number"),
        Column("longest without a receive", "longestUnpolledMs", "ms"),
    )
    return Section("brokers", "brokers", columns, rows_of(columns, report.brokers), heads=1)


def _failures(report: ReceiveReport) -> Section:
    columns = (
        Column("broker", "brokerName"),
        Column("kind", "kind"),
        Column("from", "fromMs", "ms"),
        Column("to", "toMs", "ms"),
        Column("failed receives", "failed", "number"),
        Column("the last", "lastFailedMs", "ms"),
        Column("received from again", "receivedAgainMs", "ms"),
        Column("longest wait on it", "longestWaitMs", "ms"),
        Column("left", "left", "number"),
    )
    return Section("failures", "brokers that fail", columns, rows_of(columns, report.failures), heads=1)


def _crashes(report: ReceiveReport) -> Section:
    columns = (
        Column("consumer", "consumer", "number"),
        Column("dies at", "atMs", "ms"),
        Column("not acknowledged", "unacknowledged", "number"),
        Column("received again", "again", "number"),
        Column("p50 after", "p50Ms", "ms", of=lambda crash: crash.after and crash.after.p50_ms),
        Column("max after", "maxMs", "ms", of=lambda crash: crash.after and crash.after.max_ms),
        Column("ready at the earliest", "againEarliestMs", "ms"),
        Column("at the latest", "againLatestMs", "ms"),
    )
    return Section("crashes", "consumers that die", columns, rows_of(columns, report.crashes), heads=1)


def _quantiles(report: ReceiveReport) -> Section:
    columns = (Column("messages, %", "percent", "number"), Column("wait up to", "waitMs", "ms"))
    rows = rows_of(columns, report.quantiles)
    return Section("quantiles", "distribution of waits", columns, rows, named_only=True)


def _queues(report: ReceiveReport) -> Section:
    columns = (
        Column("broker", "brokerName"),
        Column("queue", "queueId", "number"),
        Column("messages", "messages", "number"),
        Column("mean", "meanMs", "ms"),
        Column("p95", "p95Ms", "ms"),
        Column("max", "maxMs", "ms"),
    )
    rows = rows_of(columns, report.queue_waits)
    return Section("queues", "how long messages wait in each queue", columns, rows, heads=2, named_only=True)


def _closed_forms(report: ReceiveReport) -> Section:
    columns = (Column("closed form", "name"), Column("value", "value", "ms"))
    forms = report.closed_forms
    rows: tuple[tuple[Cell, ...], ...] = (
        ("an empty receive", forms.receive_ms),
        ("all queues once", forms.cycle_ms),
        ("longest wait of rare messages", forms.wait_ms),
        ("longest without a receive, any rates", forms.unpolled_ms),
    )
    return Section("closed-forms", "without simulation", columns, rows, named_only=True)


def _totals(report: ReceiveReport) -> Section:
    columns = (Column("count", "name"), Column("number", "value", "number"))
    rows = tuple((title, getattr(report.totals, name)) for title, name in _TOTALS)
    return Section("totals", "totals", columns, rows, named_only=True)


def _messages(report: ReceiveReport) -> Section:
    columns = (
        Column("message", "message", "number"),
        Column("broker", "brokerName"),
        Column("queue", "queueId", "number"),
        Column("stored", "storedMs", "ms"),
        Column("received", "receivedMs", "ms"),
        Column("wait", "waitMs", "ms"),
        Column("consumer", "consumer", "number", shown=report.scenario.consumers > 1),
        Column("deliveries", "deliveries", "number", shown=bool(report.totals.redelivered)),
    )
    return Section("messages", "messages", columns, rows_of(columns, report.messages or ()), heads=1)
