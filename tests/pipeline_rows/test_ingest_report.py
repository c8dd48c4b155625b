"""What an ingest says at its end."""

from __future__ import annotations

import pytest

from rmqlb.errors import DataError
from rmqlb.pipeline.ingest.ingest_report import IngestReport, ingest_findings, require_equal


def report(*, quarantined: int = 0, hidden: int = 0) -> IngestReport:
    return IngestReport(9, hidden, 9, 9 - quarantined, 0, quarantined, 0)


def test_what_was_read_whole_needs_no_word() -> None:
    assert ingest_findings(report()) == ()


def test_documents_and_files_that_are_not_in_the_tables_are_told() -> None:
    said = [(finding.code, finding.message) for finding in ingest_findings(report(quarantined=2, hidden=3))]
    assert said == [
        ("quarantined", "2 of 9 documents could not be read; table quarantine says which and why"),
        ("info", "files skipped because their names begin with . or _: 3"),
    ]


def test_a_loss_is_an_error() -> None:
    require_equal({"queues": (3, 3)})
    with pytest.raises(DataError, match="queues: 3 went in and 2 came out"):
        require_equal({"queues": (3, 2)})
