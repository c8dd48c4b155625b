"""What a generated fleet consists of, as a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqlb.views.report import Column, Report, Section

if TYPE_CHECKING:
    from rmqlb.views.shapes.pipeline import FleetData

_COUNTS = (Column("What", "what"), Column("Number", "number", "number"))
_DAMAGED = (Column("File", "file"), Column("Document", "position", "number"), Column("Damage", "damage"))


def fleet_report(summary: FleetData) -> Report:
    """The fleet in numbers."""
    counts = [(name, value) for name, value in summary.items() if isinstance(value, int)]
    bad = tuple((entry["file"], entry["position"], entry["damage"]) for entry in summary["badFiles"])
    faults = tuple(sorted(summary["faults"].items()))
    return Report(
        schema="rmqlb/fleet",
        data=summary,
        facts=(f"written to {summary['folder']}",),
        sections=(
            Section("fleet", "Fleet", _COUNTS, tuple(counts)),
            *((Section("faults", "Groups with faults", _COUNTS, faults),) if faults else ()),
            *((Section("damaged", "Damaged documents", _DAMAGED, bad),) if bad else ()),
        ),
        labels={},
    )
