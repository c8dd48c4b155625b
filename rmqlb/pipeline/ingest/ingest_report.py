"""What came of an ingest, and the check that counts in equal counts out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rmqlb.errors import DataError
from rmqlb.model.finding import Finding, info


@dataclass(frozen=True)
class IngestReport:
    """What came of an ingest.

    Attributes:
        files: read, those included that could not be.
        hidden: files passed over because their names begin with `.` or `_`.
        found: documents in the files; each is ingested, known, quarantined or passed over.
        ingested: those that the warehouse did not have.
        known: those that it had, or that came twice.
        quarantined: those that cannot be read, whether they were in quarantine before or not.
        passed_over: those that `only` leaves out.
        rows: table → rows written.
    """

    files: int
    hidden: int
    found: int
    ingested: int
    known: int
    quarantined: int
    passed_over: int
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
        text = f"files passed over because their names begin with . or _: {report.hidden}"
        findings.append(info(text))
    return tuple(findings)


def require_equal(counts: Mapping[str, tuple[int, int]]) -> None:
    """Refuse a loss: of each kind as many must go in as come out, each counted in its own way.

    Raises:
        DataError: two numbers differ.
    """
    for what, (before, after) in counts.items():
        if before != after:
            raise DataError(
                f"{what}: {before} went in and {after} came out; the warehouse is as it was",
                hint="did files change while they were read? run it again",
            )
