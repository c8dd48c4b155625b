"""What a generated fleet consists of, as a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rmqlb.views.report import Column, Report, Section

_COUNTS = (Column("What", "what"), Column("Number", "number", "number"))
_DAMAGED = (Column("File", "file"), Column("Document", "position", "number"), Column("Damage", "damage"))


def fleet_report(folder: str, summary: Mapping[str, Any]) -> Report:
    """The fleet in numbers.

    Args:
        folder: where it was written.
        summary: counts by name in camelCase; `faults`, kind → groups; `badFiles`, each with file, position and damage.
    """
    counts = [(name, value) for name, value in summary.items() if isinstance(value, int)]
    bad = tuple((entry["file"], entry["position"], entry["damage"]) for entry in summary["badFiles"])
    faults = tuple(sorted(summary["faults"].items()))
    return Report(
        schema="rmqlb/fleet",
        data=summary,
        facts=(f"written to {folder}",),
        sections=(
            Section("fleet", "Fleet", _COUNTS, tuple(counts)),
            *((Section("faults", "Groups with faults", _COUNTS, faults),) if faults else ()),
            *((Section("damaged", "Damaged documents", _DAMAGED, bad),) if bad else ()),
        ),
        labels={},
    )
