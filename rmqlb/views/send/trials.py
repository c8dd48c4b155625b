"""A `TrialsReport` as sections of a simulation's report."""

from __future__ import annotations

from rmqlb.model.send_report import Estimate, LongestSend, TimeSpread, TrialsReport
from rmqlb.views.report import Cell, Column, Section, duration


def trials_sections(report: TrialsReport) -> tuple[Section, ...]:
    """For people and CSV: each figure with its interval, and how each failure was taken."""
    ended = ", stopped early" if report.stopped_early else ""
    columns = (
        Column("", "figure"),
        Column("mean", "mean", "number"),
        Column("low", "low", "number"),
        Column("high", "high", "number"),
    )
    shares = [(f"share of {name}", *_percent(share)) for name, share in report.shares.items()]
    isolations = [(f"isolations of {name}", *_number(times)) for name, times in report.isolations.items() if times.high]
    rows: tuple[tuple[Cell, ...], ...] = (
        *shares,
        ("attempts for a message", *_number(report.attempts)),
        ("lost messages", *_number(report.lost_messages)),
        ("chance that a message is lost", *_percent(report.lost_share)),
        ("chance that a trial loses any", *_percent(report.losing_trials)),
        ("retries", *_number(report.retries)),
        ("time in failed attempts", *_ms(report.failing_ms)),
        ("messages with a retry", *_number(report.retried)),
        *([("stored, not SEND_OK", *_number(report.not_store_ok))] if report.not_store_ok.high else []),
        *([("stored more than once", *_number(report.duplicated))] if report.duplicated.high else []),
        ("longest send", *((None,) * 3 if report.longest_send_ms is None else _ms(report.longest_send_ms))),
        *isolations,
    )
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


def _percent(estimate: Estimate) -> tuple[str, str, str]:
    """With as many digits as an interval may need to be seen."""
    return f"{100 * estimate.mean:.4g}%", f"{100 * estimate.low:.4g}%", f"{100 * estimate.high:.4g}%"


def _number(estimate: Estimate) -> tuple[str, str, str]:
    return f"{estimate.mean:.5g}", f"{estimate.low:.5g}", f"{estimate.high:.5g}"


def _ms(estimate: Estimate) -> tuple[str, str, str]:
    return duration(estimate.mean), duration(estimate.low), duration(estimate.high)
