"""What came of an ingest, and the check that counts in equal counts out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rmqlb.errors import DataError
from rmqlb.model.finding import Finding, info


@dataclass(frozen=True)
class IngestReport:
    """What came of an ingest.

    `found` documents are `ingested`, `known` (the warehouse has them, or they came twice), `quarantined` (unreadable,
    whether or not they were in quarantine before) or `skipped` (left out by `only`). `files` includes unreadable
    ones; `hidden` ones begin with `.` or `_`. `rows`: written, by table.
    """

    files: int
    hidden: int
    found: int
    ingested: int
    known: int
    quarantined: int
    skipped: int
    rows: Mapping[str, int] = field(default_factory=dict)


def ingest_findings(report: IngestReport) -> tuple[Finding, ...]:
    """What is worth a line: documents that could not be read, files that nobody looked into."""
    findings = []
    if report.quarantined:
        text = (
            f"{report.quarantined} of {report.found} documents could not be read; table quarantine says which and why"
        )
        findings.append(Finding("quarantined", text))
    if report.hidden:
        text = f"files skipped because their names begin with . or _: {report.hidden}"
        findings.append(info(text))
    return tuple(findings)


def require_equal(counts: Mapping[str, tuple[int, int]]) -> None:
    """Refuse a loss: of each kind as many must go in as come out, each counted in its own way."""
    for what, (before, after) in counts.items():
        if before != after:
            raise DataError(
                f"{what}: {before} went in and {after} came out; the warehouse is as it was",
                hint="did files change while they were read? run it again",
            )
