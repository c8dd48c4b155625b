"""What a generated fleet consists of, as a report."""

from __future__ import annotations

from msgspec import to_builtins

from rmqlb.model.fleet import FleetSummary
from rmqlb.views.report import Column, Report, Section

_COUNTS = (Column("What", "what"), Column("Number", "number", "number"))
_DAMAGED = (Column("File", "file"), Column("Document", "position", "number"), Column("Damage", "damage"))


def fleet_report(summary: FleetSummary) -> Report:
    """The fleet in numbers."""
    counts = [(name, value) for name, value in to_builtins(summary).items() if isinstance(value, int)]
    bad = tuple((each.file, each.position, str(each.damage)) for each in summary.bad_files)
    faults = tuple(sorted(summary.faults.items()))
    return Report(
        schema="rmqlb/fleet",
        data=summary,
        facts=(f"written to {summary.folder}",),
        sections=(
            Section("fleet", "Fleet", _COUNTS, tuple(counts)),
            *((Section("faults", "Groups with faults", _COUNTS, faults),) if faults else ()),
            *((Section("damaged", "Damaged documents", _DAMAGED, bad),) if bad else ()),
        ),
        labels={},
    )
