"""A snapshot as the text of a file that `-s` and the pipeline read."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.model.finding import Finding
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.sources.formats.snapshot_file import to_document
from rmqlb.views.envelope import Envelope
from rmqlb.views.formats.machine import as_json, envelope
from rmqlb.views.report import Report


def snapshot_report(snapshot: ClusterSnapshot) -> Report:
    return Report("rmqlb/snapshot", to_document(snapshot), (), ())


def snapshot_envelope(snapshot: ClusterSnapshot, findings: Sequence[Finding], command: str) -> Envelope:
    return envelope(snapshot_report(snapshot), command, snapshot, findings)


def snapshot_text(snapshot: ClusterSnapshot, findings: Sequence[Finding], command: str) -> str:
    return as_json(snapshot_envelope(snapshot, findings, command))
