"""A `TrialsReport` as sections of a simulation's report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqlb.model.send_report import Estimate, TimeSpread, TrialsReport
from rmqlb.views.report import Cell, Column, Section, duration

if TYPE_CHECKING:
    from rmqlb.views.shapes.send_trials import EstimateData, TrialsData, TrialsSpreadData


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
        ("chance that a message is lost", *_percent(report.lost)),
        ("chance that a trial loses any", *_percent(report.losing_trials)),
        ("extra attempts", *_number(report.extra_attempts)),
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
        Column("half below", "p50Ms", "ms"),
        Column("95 % below", "p95Ms", "ms"),
        Column("most", "maxMs", "ms"),
    )
    rows: list[tuple[Cell, ...]] = [("longest send", report.trials, *_spread(report.longest_send))]
    rows += [
        (f"{failure.failure.broker_name} avoided after", failure.avoided, *_spread(failure.until_avoided))
        for failure in report.failures
    ]
    return Section("spreads", "spread over trials", columns, tuple(rows), heads=1)


def trials_data(report: TrialsReport) -> TrialsData:
    """For machines."""
    return {
        "trials": report.trials,
        "wanted": report.wanted,
        "stoppedEarly": report.stopped_early,
        "messages": _estimate(report.messages),
        "share": {name: _estimate(share) for name, share in report.shares.items()},
        "attemptsPerMessage": _estimate(report.attempts),
        "lost": _estimate(report.lost),
        "lostShare": _estimate(report.lost),
        "lostMessages": _estimate(report.lost_messages),
        "losingTrials": _estimate(report.losing_trials),
        "extraAttempts": _estimate(report.extra_attempts),
        "failingMs": _estimate(report.failing_ms),
        "notStoreOk": _estimate(report.not_store_ok),
        "duplicated": _estimate(report.duplicated),
        "retried": _estimate(report.retried),
        "longestSendMs": (
            None
            if report.longest_send_ms is None or report.longest_send is None
            else {**_estimate(report.longest_send_ms), **_spread_data(report.longest_send)}
        ),
        "isolations": {name: _estimate(times) for name, times in report.isolations.items()},
        "failures": [
            {
                "brokerName": failure.failure.broker_name,
                "began": failure.began,
                "avoided": failure.avoided,
                "untilAvoidedMs": None if failure.until_avoided is None else _spread_data(failure.until_avoided),
            }
            for failure in report.failures
        ],
    }


def _estimate(estimate: Estimate) -> EstimateData:
    return {"mean": estimate.mean, "low": estimate.low, "high": estimate.high}


def _spread_data(spread: TimeSpread) -> TrialsSpreadData:
    return {"meanMs": spread.mean_ms, "p50Ms": spread.p50_ms, "p95Ms": spread.p95_ms, "maxMs": spread.max_ms}


def _spread(spread: TimeSpread | None) -> tuple[float | None, ...]:
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
