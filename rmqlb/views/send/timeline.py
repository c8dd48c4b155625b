"""The time line of a simulation: a strip of characters for each broker, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from rmqlb.model.send_report import SendReport, Slice
from rmqlb.views.formats.palette import BAD
from rmqlb.views.report import Cell, Column, Section, duration

_WIDTH = 60
_MEANING = "= stored, x some fail, X all fail, - isolated, . no attempt"
_STYLES = {"=": "green", "x": "yellow", "X": BAD, "-": "cyan"}
_NOTHING = "."
"""Not a space: tables lose those at the ends of a cell."""


def timeline_section(report: SendReport) -> Section:
    """For people: which broker was used, failed or was isolated when; no wider than the terminal."""
    return replace(_drawn(report, _WIDTH), draw=lambda length: _drawn(report, min(length, _WIDTH)))


def _drawn(report: SendReport, length: int) -> Section:
    """A character a slice, or some of them together."""
    slices = _at_most(report.slices, max(length, 1))
    columns = (Column("broker", "brokerName"), Column(_MEANING, "strip", "strip", styles=_STYLES))
    rows: list[tuple[Cell, ...]] = [
        (broker.broker_name, "".join(_character(each, place) for each in slices))
        for place, broker in enumerate(report.brokers)
    ]
    failed = [sum(broker.failed for one in each for broker in one.brokers) for each in slices]
    if any(failed):
        rows.append((f"failed, 9 = {max(failed)}", _digits(failed)))
    lost = [sum(one.lost for one in each) for each in slices]
    if any(lost):
        rows.append((f"lost, 9 = {max(lost)}", _digits(lost)))
    title = "timeline"
    if slices:
        begin, width = slices[0][0].from_ms, slices[0][-1].to_ms - slices[0][0].from_ms
        title += f" from {duration(begin)} to {duration(slices[-1][-1].to_ms)}, {duration(width)} per column"
    return Section("timeline", title, columns, tuple(rows))


def slices_section(report: SendReport) -> Section:
    """For CSV and the curious: each slice's numbers."""
    columns = (
        Column("from", "fromMs", "ms"),
        Column("to", "toMs", "ms"),
        Column("broker", "brokerName"),
        Column("attempts", "attempts", "number"),
        Column("failed", "failed", "number"),
        Column("isolated for", "isolatedMs", "ms"),
        Column("lost in all", "lost", "number"),
    )
    rows = tuple(
        (each.from_ms, each.to_ms, b.broker_name, b.attempts, b.failed, b.isolated_ms, each.lost)
        for each in report.slices
        for b in each.brokers
    )
    return Section("slices", "slices of the timeline", columns, rows, heads=3, named_only=True)


def _character(slices: Sequence[Slice], place: int) -> str:
    """What stands for a broker in some slices together."""
    brokers = [each.brokers[place] for each in slices]
    attempts, failed = sum(broker.attempts for broker in brokers), sum(broker.failed for broker in brokers)
    if failed:
        return "X" if failed >= attempts else "x"
    if attempts:
        return "="
    isolated = sum(broker.isolated_ms for broker in brokers)
    return "-" if isolated * 2 > slices[-1].to_ms - slices[0].from_ms else _NOTHING


def _digits(counts: Sequence[int]) -> str:
    """9 is the largest."""
    return "".join(str(-(-9 * count // max(counts))) if count else _NOTHING for count in counts)


def _at_most(slices: Sequence[Slice], most: int) -> list[Sequence[Slice]]:
    """Neighbours put together until there are few enough."""
    step = -(-len(slices) // most) or 1
    return [slices[place : place + step] for place in range(0, len(slices), step)]
