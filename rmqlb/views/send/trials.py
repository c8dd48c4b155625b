"""A `TrialsReport` as sections of a simulation's report."""

from __future__ import annotations

from collections.abc import Callable

from rmqlb.model.send_trials import Estimate, LongestSend, TimeSpread, TrialsReport
from rmqlb.views.report import Cell, Column, Section, duration


def trials_sections(report: TrialsReport) -> tuple[Section, ...]:
    """For people and CSV: each figure with its interval, and how each failure was taken."""
    columns = (
        Column("", "figure"),
        Column("mean", "mean", "number"),
        Column("low", "low", "number"),
        Column("high", "high", "number"),
    )
    figures: list[tuple[str, Estimate | None, Callable[[float], str]]] = [
        *((f"share of {name}", share, _percent) for name, share in report.shares.items()),
        ("attempts per message", report.attempts, _number),
        ("lost messages", report.lost_messages, _number),
        ("chance that a message is lost", report.lost_share, _percent),
        ("chance that a trial loses any", report.losing_trials, _percent),
        ("retries", report.retries, _number),
        ("time in failed attempts", report.failing_ms, duration),
        ("messages with a retry", report.retried, _number),
        *([("stored, not SEND_OK", report.not_store_ok, _number)] if report.not_store_ok.high else ()),
        *([("stored more than once", report.duplicated, _number)] if report.duplicated.high else ()),
        ("longest send", report.longest_send_ms, duration),
        *((f"isolations of {name}", times, _number) for name, times in report.isolations.items() if times.high),
    ]
    rows = tuple((figure, *_interval(estimate, text)) for figure, estimate, text in figures)
    ended = ", stopped early" if report.stopped_early else ""
    title = f"{report.trials} trials of {report.messages.mean:g} messages{ended}, 95 % intervals"
    return Section("trials", title, columns, rows, heads=1), _spreads(report)


def _spreads(report: TrialsReport) -> Section:
    columns = (
        Column("", "figure"),
        Column("trials", "trials", "number"),
        Column("mean", "meanMs", "ms"),
        Column("p50", "p50Ms", "ms"),
        Column("p95", "p95Ms", "ms"),
        Column("max", "maxMs", "ms"),
    )
    rows: list[tuple[Cell, ...]] = [("longest send", report.trials, *_spread(report.longest_send_ms))]
    rows += [
        (f"{failure.broker_name} isolated after", failure.isolated, *_spread(failure.until_isolated))
        for failure in report.failures
    ]
    return Section("spreads", "spread over trials", columns, tuple(rows), heads=1)


def _spread(spread: TimeSpread | LongestSend | None) -> tuple[float | None, ...]:
    if spread is None:
        return (None,) * 4
    return spread.mean_ms, spread.p50_ms, spread.p95_ms, spread.max_ms


def _interval(estimate: Estimate | None, text: Callable[[float], str]) -> tuple[Cell, ...]:
    return (None,) * 3 if estimate is None else (text(estimate.mean), text(estimate.low), text(estimate.high))


def _percent(share: float) -> str:
    """With as many digits as an interval may need to be seen."""
    return f"{100 * share:.4g}%"


def _number(value: float) -> str:
    return f"{value:.5g}"
