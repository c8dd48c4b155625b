"""The time line of a simulation: a strip of characters for each broker, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rmqlb.model.send_report import SendReport, Slice
from rmqlb.views.report import Cell, Column, Section, duration

if TYPE_CHECKING:
    from rmqlb.views.shapes.send import SliceData

_WIDTH = 60
_MEANING = "= well, x some failed, X all failed, - avoided, . none"
_NOTHING = "."
"""Not a space: tables lose those at the ends of a cell."""


def timeline_section(report: SendReport) -> Section:
    """For people: which broker was used, failed or was avoided when; no wider than the terminal."""
    return replace(_drawn(report, _WIDTH), draw=lambda length: _drawn(report, min(length, _WIDTH)))


def _drawn(report: SendReport, length: int) -> Section:
    """A character a slice, or some of them together."""
    slices = _at_most(report.slices, max(length, 1))
    columns = (Column("broker", "brokerName"), Column(f"time ->  {_MEANING}", "strip", "strip"))
    rows: list[tuple[Cell, ...]] = [
        (name, "".join(_character(each, name) for each in slices)) for name in _brokers(report)
    ]
    failed = [sum(each.failed.values()) for each in slices]
    if any(failed):
        rows.append((f"failed (9 is {max(failed)})", "".join(_digit(number, max(failed)) for number in failed)))
    lost = [each.lost for each in slices]
    if any(lost):
        rows.append((f"lost (9 is {max(lost)})", "".join(_digit(number, max(lost)) for number in lost)))
    title = "timeline"
    if slices:
        width = slices[0].to_ms - slices[0].from_ms
        title += f" from {duration(slices[0].from_ms)} to {duration(slices[-1].to_ms)}, {duration(width)} a character"
    return Section("timeline", title, columns, tuple(rows))


def slices_section(report: SendReport) -> Section:
    """For CSV and the curious: each slice's numbers."""
    columns = (
        Column("from", "fromMs", "ms"),
        Column("to", "toMs", "ms"),
        Column("broker", "brokerName"),
        Column("attempts", "attempts", "number"),
        Column("failed", "failed", "number"),
        Column("avoided for", "avoidedMs", "ms"),
        Column("lost in all", "lost", "number"),
    )
    rows = tuple(
        (
            each.from_ms,
            each.to_ms,
            name,
            each.attempts.get(name, 0),
            each.failed.get(name, 0),
            each.avoided_ms.get(name, 0),
            each.lost,
        )
        for each in report.slices
        for name in _brokers(report)
    )
    return Section("slices", "slices of the time line", columns, rows, heads=3, named_only=True)


def timeline_data(report: SendReport) -> list[SliceData]:
    """The slices for machines."""
    return [
        {
            "fromMs": each.from_ms,
            "toMs": each.to_ms,
            "lost": each.lost,
            "brokers": [
                {
                    "brokerName": name,
                    "attempts": each.attempts.get(name, 0),
                    "failed": each.failed.get(name, 0),
                    "avoidedMs": each.avoided_ms.get(name, 0),
                }
                for name in _brokers(report)
            ],
        }
        for each in report.slices
    ]


def _brokers(report: SendReport) -> list[str]:
    return [broker.broker_name for broker in report.brokers]


def _character(each: Slice, name: str) -> str:
    attempts, failed = each.attempts.get(name, 0), each.failed.get(name, 0)
    if failed:
        return "X" if failed >= attempts else "x"
    if attempts:
        return "="
    return "-" if each.avoided_ms.get(name, 0) * 2 > each.to_ms - each.from_ms else _NOTHING


def _digit(number: int, most: int) -> str:
    return str(-(-9 * number // most)) if number else _NOTHING


def _at_most(slices: Sequence[Slice], most: int) -> list[Slice]:
    """Neighbours put together until there are few enough."""
    step = -(-len(slices) // most) or 1
    return [_together(slices[i : i + step]) for i in range(0, len(slices), step)]


def _together(slices: Sequence[Slice]) -> Slice:
    names = dict.fromkeys(name for each in slices for name in (*each.attempts, *each.avoided_ms))
    return Slice(
        from_ms=slices[0].from_ms,
        to_ms=slices[-1].to_ms,
        attempts={name: sum(each.attempts.get(name, 0) for each in slices) for name in names},
        failed={name: sum(each.failed.get(name, 0) for each in slices) for name in names},
        avoided_ms={name: sum(each.avoided_ms.get(name, 0) for each in slices) for name in names},
        lost=sum(each.lost for each in slices),
    )
