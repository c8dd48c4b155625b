"""The same load sent by producers of several SDKs, side by side: who leaves a failing broker, and who never does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from rmqlb.model.send_report import FailureReport, SendReport
from rmqlb.model.send_scenario import JAVA
from rmqlb.views.report import Cell, Column, Section, rows_of
from rmqlb.views.send.facts import last_failed_ms


def sdk_facts(sdks: Sequence[SendReport]) -> Iterator[str]:
    """For each broker that fails, the SDKs that never leave it, then those that lose messages until they do.

    Those that lose the most stand last.
    """
    by_loss = sorted(sdks, key=lambda each: each.totals.lost)
    for place, failure in enumerate(sdks[0].failures if sdks else ()):
        never = [each for each in by_loss if _never_left(each.failures[place])]
        late = [each for each in by_loss if each not in never and each.totals.lost and each.failures[place].failed]
        if never:
            yield f"never leave {failure.broker_name}: {', '.join(map(_with_loss, never))}"
        if late:
            yield f"leave {failure.broker_name} after messages are lost: {', '.join(map(_with_loss, late))}"
        if not never and any(each.failures[place].failed for each in sdks):
            yield f"producers of every SDK leave {failure.broker_name}"


def _with_loss(report: SendReport) -> str:
    lost, scenario = report.totals.lost, report.scenario
    name = "java without latency fault" if scenario.sdk == JAVA and not scenario.latency_fault else scenario.sdk
    return name + (f" ({lost:,} lost)" if lost else "")


def _never_left(taken: FailureReport) -> bool:
    return bool(taken.failed) and taken.isolated_ms is None


def sdks_section(sdks: Sequence[SendReport], chosen: SendReport) -> Section:
    """A line per SDK."""
    failing = bool(chosen.failures)
    columns = (
        Column("SDK", "sdk", of=attrgetter("scenario.sdk")),
        Column("rules of", "profile", fold=3),
        Column("lost", "lost", "number", of=attrgetter("totals.lost")),
        Column("failed", "failedAttempts", "number", of=attrgetter("totals.failed_attempts")),
        Column("retries", "retries", "number", fold=4, of=attrgetter("totals.retries")),
        Column("longest send", "longestSendMs", "ms", fold=2, of=attrgetter("totals.longest_send_ms")),
        Column("last failed at", "lastFailedMs", "ms", shown=failing, of=last_failed_ms),
        Column("leaves after", "isolatedAfterMs", "ms", shown=failing, of=_of_first("isolated_after_ms")),
        Column("by", "isolatedBy", shown=failing, of=_left_by),
        Column(
            "used again after", "usedAgainAfterMs", "ms", fold=1, shown=failing, of=_of_first("used_again_after_ms")
        ),
    )
    return Section("sdks", "producers of each SDK", columns, rows_of(columns, sdks))


def _of_first(name: str) -> Callable[[SendReport], Cell]:
    """Of the first failure."""
    return lambda report: getattr(report.failures[0], name) if report.failures else None


def _left_by(report: SendReport) -> str | None:
    if not report.failures:
        return None
    taken = report.failures[0]
    return "never" if _never_left(taken) else taken.isolated_by
